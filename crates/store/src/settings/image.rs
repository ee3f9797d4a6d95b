//! The settings that a pool keeps in its superblock: [`Image`].

use crate::types::error::Error;
use quipu_parts::index::IndexRoot;
use quipu_parts::space::{SETTINGS_LEN, SpaceError};
use quipu_parts::table::Table;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Settings with an image in the superblock, which also names the index of the pool, if that is there.
pub(crate) trait Image: Copy {
    /// The structure of the image.
    type Layout: FromBytes + IntoBytes + Immutable;

    /// The fields of the image, for the check of `docs/FORMAT.md` against the code.
    fn table() -> Table;

    /// The image of these settings.
    fn image(&self) -> Self::Layout;

    /// The settings of an image. Unknown values may give any settings: the caller refuses an image that these
    /// would not have, so nothing can hide in it.
    fn of_image(image: Self::Layout) -> Self;

    /// The root of the index; zeros before the index is created, and where it is in DRAM.
    fn root_mut(&mut self) -> &mut IndexRoot;

    /// The bytes for the superblock.
    fn encode(&self) -> [u8; SETTINGS_LEN] {
        const { assert!(size_of::<Self::Layout>() == SETTINGS_LEN) };
        let mut bytes = [0; SETTINGS_LEN];
        bytes.copy_from_slice(self.image().as_bytes());
        bytes
    }

    /// The settings that a superblock keeps, or an error for bytes that this release does not know.
    fn decode(bytes: &[u8; SETTINGS_LEN]) -> Result<Self, Error> {
        let settings = Self::Layout::read_from_bytes(bytes).ok().map(Self::of_image);
        let known = settings.filter(|settings| settings.encode() == *bytes);
        known.ok_or_else(|| refused("the superblock holds settings that no release knows"))
    }

    /// The root of the index.
    fn root(mut self) -> IndexRoot {
        *self.root_mut()
    }

    /// These settings with an index of this root.
    fn with_root(mut self, root: IndexRoot) -> Self {
        *self.root_mut() = root;
        self
    }
}

/// The error for settings that no pool of the design has.
pub(crate) fn refused(what: &'static str) -> Error {
    SpaceError::Geometry { what }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::bucket_table::MpkvSettings;
    use crate::settings::files::{EntryForm, NstoreSettings};
    use crate::settings::memtables::TieredSettings;
    use crate::settings::offset_map::{NodePlace, OffsetMap};
    use crate::settings::slots::PoolSettings;
    use crate::settings::techniques::{FlatSettings, Shortcut, Techniques};
    use quipu_parts::heap::slots::{RecordForm, SlotSettings, SlotTechniques};
    use quipu_parts::index::buckets::BucketSettings;
    use quipu_parts::index::cceh::CcehSettings;
    use std::fmt::Debug;
    use zerocopy::FromZeros;

    /// Settings survive the superblock, and no byte of their image can be another one unnoticed.
    fn prove<I: Image + PartialEq + Debug>(samples: impl IntoIterator<Item = I>) {
        for sample in samples {
            let bytes = sample.encode();
            assert_eq!(I::decode(&bytes).expect("its image"), sample);
            for at in 0..SETTINGS_LEN {
                for bit in 0..8 {
                    let mut other = bytes;
                    other[at] ^= 1 << bit;
                    assert_ne!(I::decode(&other).ok(), Some(sample), "bit {bit} of byte {at} says nothing");
                }
            }
        }
        assert!(I::decode(&[0; _]).is_err());
        assert_eq!(I::table().1.iter().map(|(_, _, size)| size).sum::<usize>(), SETTINGS_LEN);
    }

    fn some_root() -> IndexRoot {
        zerocopy::transmute!([7u8; 16])
    }

    #[test]
    fn images_of_logs() {
        let shapes = [CcehSettings::paper(), CcehSettings::dense(), CcehSettings::tiny()];
        prove((0..48).map(|i| {
            let [reduce, separate, shortcut, batch] = [1, 2, 4, 8].map(|bit| i & bit != 0);
            let shortcut = if shortcut { Shortcut::On } else { Shortcut::Off };
            let techniques = Techniques { reduce, separate, shortcut, batch };
            FlatSettings { techniques, shape: shapes[i / 16], root: some_root() }
        }));
    }

    #[test]
    fn images_of_bucket_tables() {
        let tables = [BucketSettings::default(), BucketSettings::paper(1 << 30), BucketSettings::tiny()];
        prove(tables.map(|table| MpkvSettings { table: table.in_range(), root: some_root() }));
    }

    #[test]
    fn images_of_memtables() {
        prove(
            [1, 16, 0x1234_5678]
                .map(|slots| TieredSettings { root: some_root(), ..TieredSettings::new(slots) }),
        );
        assert_eq!(TieredSettings::new(0x0102).encode()[..12], *b"TIER\x02\x01\0\0\0\0\0\0");
    }

    #[test]
    fn images_of_files() {
        let forms = [(EntryForm::Checked, 0), (EntryForm::OpLast, 1)];
        prove(forms.map(|(form, _)| NstoreSettings::new(form).with_root(some_root())));
        for (form, number) in forms {
            let expected = [&b"NLOG"[..], &[number], &[0; 123]].concat();
            assert_eq!(NstoreSettings::new(form).encode()[..], expected);
        }
    }

    #[test]
    fn images_of_slots() {
        let shape = CcehSettings::dense();
        let in_pool = OffsetMap { nodes: NodePlace::Pm, shape };
        let settings = |slots| PoolSettings { slots, map: in_pool, root: some_root() };
        let reduced = SlotSettings {
            techniques: SlotTechniques { separate: false, ..SlotTechniques::ALL },
            ..default()
        };
        let other = SlotSettings {
            form: RecordForm::Fixed { key: 16, value: 200 },
            page_size: 8192,
            pages_per_block: 4,
            random_first_page: false,
            alignment_shift: 2048,
            reclaim_percent: 40,
            fill_percent: 80,
            techniques: SlotTechniques::default(),
        };
        let in_dram = PoolSettings {
            map: OffsetMap { nodes: NodePlace::Dram, shape },
            root: IndexRoot::new_zeroed(),
            ..settings(default())
        };
        prove([settings(default()), settings(reduced), settings(other), in_dram]);
        let rooted = PoolSettings { root: some_root(), ..in_dram };
        assert_eq!(PoolSettings::decode(&rooted.encode()).expect("its image"), in_dram);
    }

    fn default() -> SlotSettings {
        SlotSettings::default()
    }

    /// These bytes followed by the bytes of [`some_root`], and then zeros.
    fn rooted(head: &[u8]) -> Vec<u8> {
        let mut bytes = [head, &[7; 16]].concat();
        bytes.resize(SETTINGS_LEN, 0);
        bytes
    }

    /// Pools of earlier releases have each value at its place: no two fields may change places.
    #[test]
    fn every_value_is_where_docs_format_has_it() {
        let mut slots = SlotSettings {
            form: RecordForm::Fixed { key: 16, value: 200 },
            page_size: 8192,
            pages_per_block: 4,
            random_first_page: true,
            alignment_shift: 2048,
            reclaim_percent: 40,
            fill_percent: 80,
            techniques: SlotTechniques::default(),
        };
        for bit in [1, 2, 4] {
            let [reduce, separate, batch] = [1, 2, 4].map(|own| own == bit);
            slots.techniques = SlotTechniques { reduce, separate, batch };
            let map = OffsetMap { nodes: NodePlace::Pm, shape: CcehSettings::dense() };
            let mut head =
                [&b"QVP3\0\x20\0\0\xc8\0\0\0\x10\0\0\x08\x04\x01\x01\x28\x50"[..], &[bit]].concat();
            head.resize(64, 0);
            head.extend([2, 5, 5, 6, 0, 0, 0, 0]);
            assert_eq!(PoolSettings { slots, map, root: some_root() }.encode()[..], rooted(&head));
        }
        for bit in [1, 2, 4, 8] {
            let [reduce, separate, shortcut, batch] = [1, 2, 4, 8].map(|own| own == bit);
            let shortcut = if shortcut { Shortcut::On } else { Shortcut::Off };
            let techniques = Techniques { reduce, separate, shortcut, batch };
            let settings = FlatSettings { techniques, shape: CcehSettings::paper(), root: some_root() };
            assert_eq!(settings.encode()[..], rooted(&[b'F', b'L', b'A', b'T', bit, 5, 8, 4]));
        }
        let table = BucketSettings { buckets: 0x1234_0000, grow: true };
        let settings = MpkvSettings { table, root: some_root() };
        assert_eq!(settings.encode()[..], rooted(b"MPKV\0\0\x34\x12\x01\0\0\0\0\0\0\0"));
    }
}
