//! PACMAN's techniques, each a switch, and how the superblock remembers them with the rest of what design `flatstore` lets choose.
//!
//! All of them off is the *raw* store that the paper measures its gain against.

use crate::settings::image::Remembered;
use quipu_medium::MediumKind;
use quipu_parts::index::IndexRoot;
use quipu_parts::index::cceh::CcehSettings;
use quipu_parts::space::SETTINGS_LEN;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What makes compaction cheap (Wang et al., "Pacman", USENIX ATC 2022).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Techniques {
    /// The index's word tells how long a record is, and bits in DRAM which records are dead (3.2). Without, whoever supersedes a
    /// record reads its length from it, and compaction asks the index about every record.
    pub reduce: bool,
    /// What is written often lies in segments of its own (3.4).
    pub separate: bool,
    /// A record tells where its entry in the index stands (3.1), where the index can say so.
    pub shortcut: Shortcut,
    /// Many records are copied under one fence, and their entries flushed together (3.3). Without, one record moves after the
    /// other, each with its own fences.
    pub batch: bool,
}

/// Whether records tell where the index has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortcut {
    /// They do not.
    Off,
    /// They do.
    On,
    /// They do on persistent memory, and on the simulator of it. In memory and in a file on a page cache a tree's inner nodes are found
    /// faster than the eight bytes of a shortcut are made up for, at every utilization.
    Auto,
}

impl Techniques {
    /// All of them.
    pub const ALL: Techniques =
        Techniques { reduce: true, separate: true, shortcut: Shortcut::On, batch: true };
    /// None: the raw store.
    pub const RAW: Techniques =
        Techniques { reduce: false, separate: false, shortcut: Shortcut::Off, batch: false };

    /// The same for a pool on this medium, with nothing left open.
    pub(crate) fn on(self, medium: MediumKind) -> Techniques {
        let shortcut = match (self.shortcut, medium) {
            (Shortcut::Auto, MediumKind::Dax | MediumKind::Sim) => Shortcut::On,
            (Shortcut::Auto, _) => Shortcut::Off,
            (chosen, _) => chosen,
        };
        Techniques { shortcut, ..self }
    }

    fn bits(self) -> u8 {
        let Techniques { reduce, separate, shortcut, batch } = self;
        debug_assert_ne!(shortcut, Shortcut::Auto, "the medium has decided");
        let shortcut = shortcut == Shortcut::On;
        [reduce, separate, shortcut, batch].iter().rev().fold(0, |bits, on| bits << 1 | u8::from(*on))
    }

    fn from_bits(bits: u8) -> Techniques {
        let is_on = |bit: u8| bits >> bit & 1 != 0;
        let shortcut = if is_on(2) { Shortcut::On } else { Shortcut::Off };
        Techniques { reduce: is_on(0), separate: is_on(1), shortcut, batch: is_on(3) }
    }
}

/// Those that pay on the medium.
impl Default for Techniques {
    fn default() -> Techniques {
        Techniques { shortcut: Shortcut::Auto, ..Techniques::ALL }
    }
}

/// What the superblock remembers of a pool of design `flatstore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlatSettings {
    pub(crate) techniques: Techniques,
    /// The shape of a CCEH index; the published one if there is another index.
    pub(crate) shape: CcehSettings,
    /// The root of an index in the pool; zeros without, and before it is made.
    pub(crate) root: [u8; IndexRoot::LEN],
}

/// The same as it stands there.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FlatImage {
    magic: [u8; 4],
    techniques: u8,
    initial_depth: u8,
    bucket_bits: u8,
    probe: u8,
    root: [u8; IndexRoot::LEN],
    reserved: [u8; 104],
}

const _: () = assert!(size_of::<FlatImage>() == SETTINGS_LEN);

const MAGIC: [u8; 4] = *b"FLAT";

impl Remembered for FlatSettings {
    fn encode(&self) -> [u8; SETTINGS_LEN] {
        let CcehSettings { initial_depth, bucket_bits, probe } = self.shape.in_range();
        let image = FlatImage {
            magic: MAGIC,
            techniques: self.techniques.bits(),
            initial_depth: initial_depth as u8,
            bucket_bits: bucket_bits as u8,
            probe: probe as u8,
            root: self.root,
            reserved: [0; _],
        };
        zerocopy::transmute!(image)
    }

    fn decode(bytes: &[u8; SETTINGS_LEN]) -> Option<FlatSettings> {
        let image: FlatImage = zerocopy::transmute!(*bytes);
        let [initial_depth, bucket_bits, probe] =
            [image.initial_depth, image.bucket_bits, image.probe].map(u32::from);
        let shape = CcehSettings { initial_depth, bucket_bits, probe };
        let techniques = Techniques::from_bits(image.techniques);
        let settings = FlatSettings { techniques, shape, root: image.root };
        // What is not looked at is not known either: nothing may hide there.
        (settings.encode() == *bytes).then_some(settings)
    }

    fn root(&self) -> IndexRoot {
        IndexRoot::from_bytes(self.root)
    }

    fn with_root(self, root: IndexRoot) -> FlatSettings {
        FlatSettings { root: root.to_bytes(), ..self }
    }
}

/// The fields in the superblock as (name, offset, size), for the check of `docs/FORMAT.md` against the code.
#[doc(hidden)]
pub fn flat_table() -> Table {
    table!(FlatImage as "FlatSettings"; magic, techniques, initial_depth, bucket_bits, probe, root, reserved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_survive_the_superblock_and_every_byte_is_looked_at() {
        for bits in 0..16 {
            let techniques = Techniques::from_bits(bits);
            assert_eq!(techniques.bits(), bits);
            let settings = FlatSettings { techniques, shape: CcehSettings::dense(), root: [bits; _] };
            let bytes = settings.encode();
            assert_eq!(FlatSettings::decode(&bytes), Some(settings));
            for at in 0..SETTINGS_LEN {
                let mut other = bytes;
                other[at] ^= 0x40;
                assert_ne!(FlatSettings::decode(&other), Some(settings), "byte {at} says nothing");
            }
        }
        let on = |medium| Techniques::default().on(medium);
        assert_eq!((on(MediumKind::Dax), on(MediumKind::Sim)), (Techniques::ALL, Techniques::ALL));
        let without = Techniques { shortcut: Shortcut::Off, ..Techniques::ALL };
        assert_eq!((on(MediumKind::Dram), on(MediumKind::File)), (without, without));
        assert_eq!(Techniques::ALL.on(MediumKind::Dram), Techniques::ALL, "who asks for it gets it");
        assert_eq!((Techniques::from_bits(15), Techniques::from_bits(0)), (Techniques::ALL, Techniques::RAW));
        assert_eq!(FlatSettings::decode(&[0; _]), None);
    }
}
