//! The settings for the files of Nlog: of a handle, and the form of entries, which a pool keeps.

use crate::settings::image::Image;
use crate::types::error::Error;
use quipu_parts::index::IndexRoot;
use quipu_parts::space::SETTINGS_LEN;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, Unaligned};

/// How clients write to files of clusters, and how these are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSettings {
    /// A power of two: keys of so many clusters have files of their own on each node, where the pool has room
    /// for that (NStore III-C).
    pub clusters: u32,
    /// Per cent of a file that must be dead before it is cleaned ahead of need (III-F).
    pub gc_threshold: u32,
    /// Cleaners at a time on each node (III-F).
    pub cleaners: u32,
    /// How entries tell that they are whole; a pool keeps it.
    pub entry: EntryForm,
}

/// How an entry of a file tells that all of it has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryForm {
    /// By a check over all of it: one fence.
    #[default]
    Checked,
    /// By its first word, which is written last (NStore III-E). An entry within a line of the cache takes one
    /// fence, a longer one two. Its check covers its header alone.
    OpLast,
}

/// The most clusters: a key's stripe tells its cluster, and there are so many stripes.
pub(crate) const CLUSTERS_MAX: u32 = 4096;

/// The most cleaners of a node: with more, the paper expects too many remote writes.
pub(crate) const CLEANERS_MAX: u32 = 8;

impl Default for FileSettings {
    /// Those of the paper's evaluation (V-A, V-F), and entries that prove themselves.
    fn default() -> FileSettings {
        FileSettings { clusters: 256, gc_threshold: 50, cleaners: 1, entry: EntryForm::default() }
    }
}

/// The settings that a pool of design `nstore` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NstoreSettings {
    pub(crate) entry: EntryForm,
    /// Always zeros: the index is in DRAM.
    root: IndexRoot,
}

/// Their image.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct NstoreImage {
    magic: [u8; 4],
    entry: u8,
    reserved_a: [u8; 3],
    root: IndexRoot,
    reserved_b: [u8; 104],
}

impl NstoreSettings {
    /// With entries of this form.
    pub(crate) fn new(entry: EntryForm) -> NstoreSettings {
        NstoreSettings { entry, root: IndexRoot::new_zeroed() }
    }

    /// The settings that a superblock keeps. Pools that were made before there was a choice keep zeros.
    pub(crate) fn kept(bytes: &[u8; SETTINGS_LEN]) -> Result<NstoreSettings, Error> {
        if *bytes == [0; _] {
            Ok(NstoreSettings::new(EntryForm::Checked))
        } else {
            NstoreSettings::decode(bytes)
        }
    }
}

impl Image for NstoreSettings {
    type Layout = NstoreImage;

    fn table() -> Table {
        table!(NstoreImage as "NstoreSettings"; magic, entry, reserved_a, root, reserved_b)
    }

    fn image(&self) -> NstoreImage {
        let entry = match self.entry {
            EntryForm::Checked => 0,
            EntryForm::OpLast => 1,
        };
        NstoreImage { magic: *b"NLOG", entry, reserved_a: [0; _], root: self.root, reserved_b: [0; _] }
    }

    fn of_image(image: NstoreImage) -> NstoreSettings {
        let entry = if image.entry == 1 { EntryForm::OpLast } else { EntryForm::Checked };
        NstoreSettings { entry, root: image.root }
    }

    fn root_mut(&mut self) -> &mut IndexRoot {
        &mut self.root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_of_pools_without_a_choice() {
        assert_eq!(NstoreSettings::kept(&[0; _]).expect("known"), NstoreSettings::new(EntryForm::Checked));
        for entry in [EntryForm::Checked, EntryForm::OpLast] {
            let kept = NstoreSettings::new(entry).encode();
            assert_eq!(NstoreSettings::kept(&kept).expect("known").entry, entry);
        }
        let mut other = NstoreSettings::new(EntryForm::OpLast).encode();
        other[4] = 2;
        assert!(NstoreSettings::kept(&other).is_err(), "a form of a later release");
    }
}
