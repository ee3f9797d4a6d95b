//! The bytes of a checkpoint, apart from those of the index's image.

use crate::walk::checkpoint::head_table;
use quipu_parts::heap::segments::{EXPIRY_STEPS, Expiring, RecordBytes, SegmentState};
use quipu_parts::index::{alex, hash, masstree};
use quipu_parts::space::ZoneId;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Kind of a [`SegmentEntry`] of a segment with records. Other kinds may follow.
const RECORDS: u8 = 1;

/// The head of the contents.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Summary {
    segments: U64,
    index: U64,
    reserved: [u8; 16],
}

/// One segment of the pool.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct SegmentEntry {
    zone: U32,
    kind: u8,
    reserved_a: [u8; 3],
    life: U64,
    written: U64,
    garbage: U64,
    tombstones: U64,
    /// Zero if it is the life.
    oldest: U64,
    reserved_b: [u8; 16],
    /// Bytes and last time of each step.
    expiring: [[U64; 2]; EXPIRY_STEPS],
}

const _: () = assert!(size_of::<Summary>() == 32);
const _: () = assert!(size_of::<SegmentEntry>() == 192);

impl Summary {
    /// Of so many segments, and an image of the index of so many bytes.
    pub(super) fn new(segments: usize, index: u64) -> Summary {
        Summary { segments: (segments as u64).into(), index: index.into(), reserved: [0; 16] }
    }

    /// Segments, and bytes of the index's image, if the contents are as long as these make them.
    pub(super) fn read(bytes: &[u8], contents: u64) -> Option<(usize, u64)> {
        let summary = Summary::read_from_bytes(bytes).ok()?;
        let (segments, index) = (summary.segments.get(), summary.index.get());
        let before =
            segments.checked_mul(size_of::<SegmentEntry>() as u64)?.checked_add(bytes.len() as u64)?;
        let sound = summary.reserved == [0; 16] && before.checked_add(index) == Some(contents);
        sound.then_some((segments as usize, index))
    }
}

impl SegmentEntry {
    /// The entry of a segment.
    pub(super) fn new(state: &SegmentState) -> SegmentEntry {
        let SegmentState { zone, life, oldest, bytes, expiring } = *state;
        let RecordBytes { written, garbage, tombstones } = bytes;
        SegmentEntry {
            zone: zone.0.into(),
            kind: RECORDS,
            reserved_a: [0; 3],
            life: life.into(),
            written: written.into(),
            garbage: garbage.into(),
            tombstones: tombstones.into(),
            oldest: if oldest < life { oldest } else { 0 }.into(),
            reserved_b: [0; 16],
            expiring: expiring.map(|Expiring { bytes, last }| [bytes.into(), last.into()]),
        }
    }

    /// The recorded state, in a pool with zones of this size; `None` if that state is impossible.
    pub(super) fn state(&self, zone_size: u64) -> Option<SegmentState> {
        let bytes = RecordBytes {
            written: self.written.get(),
            garbage: self.garbage.get(),
            tombstones: self.tombstones.get(),
        };
        let known = self.kind == RECORDS && self.reserved_a == [0; 3] && self.reserved_b == [0; 16];
        let expiring = self.expiring.map(|[bytes, last]| Expiring { bytes: bytes.get(), last: last.get() });
        let most = expiring.iter().map(|step| step.bytes).fold(bytes.written.max(bytes.garbage), u64::max);
        let life = self.life.get();
        let oldest = if self.oldest == 0 { life } else { self.oldest.get() };
        let sound = most.max(bytes.tombstones) <= zone_size && oldest <= life;
        (known && sound).then_some(SegmentState {
            zone: ZoneId(self.zone.get()),
            life,
            oldest,
            bytes,
            expiring,
        })
    }
}

/// The structures of a checkpoint with their fields, for the check of `docs/FORMAT.md` against the code.
#[doc(hidden)]
pub fn checkpoint_tables() -> Vec<Table> {
    let mut tables = vec![
        head_table(),
        table!(Summary: segments, index, reserved),
        table!(SegmentEntry: zone, kind, reserved_a, life, written, garbage, tombstones, oldest, reserved_b, expiring),
    ];
    tables.extend(hash::image_tables());
    tables.extend(masstree::image_tables());
    tables.extend(alex::image_tables());
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_the_state_that_it_was_made_of() {
        let bytes = RecordBytes { written: 900, garbage: 50, tombstones: 7 };
        let expiring = std::array::from_fn(|i| Expiring { bytes: i as u64, last: 1 << i });
        let state = |oldest| SegmentState { zone: ZoneId(3), life: 70, oldest, bytes, expiring };
        for state in [state(70), state(69), state(1)] {
            assert_eq!(SegmentEntry::new(&state).state(1000), Some(state));
            assert_eq!(SegmentEntry::new(&state).state(899), None, "more than a zone has room for");
        }
        // The entry of version 1.
        assert_eq!(SegmentEntry::new(&state(70)).oldest, 0);
        let later = SegmentEntry { oldest: 71.into(), ..SegmentEntry::new(&state(70)) };
        assert_eq!(later.state(1000), None, "a segment holds all that is younger than it is");
    }
}
