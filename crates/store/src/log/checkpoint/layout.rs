//! The bytes of a checkpoint, apart from those of the index's image.

use quipu_parts::heap::segments::{EXPIRY_STEPS, Expiring, RecordBytes, SegmentState};
use quipu_parts::index::{hash, masstree};
use quipu_parts::record::{Certifier, LifeKey};
use quipu_parts::space::ZoneId;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Version that this release writes. It advances with the layout, and with every kind or flag of records that
/// is added: a reader of a checkpoint looks at no record, and could not refuse one.
const VERSION: u32 = 2;

/// The oldest version that this release believes. Its missing fields are zero, which has a meaning for each.
const OLDEST_VERSION: u32 = 1;

const MAGIC: [u8; 4] = *b"QCKP";
/// Ends the chain: no zone has this number.
const NO_ZONE: u32 = u32::MAX;
/// Kind of a [`SegmentEntry`] of a segment with records. Other kinds may follow.
const RECORDS: u8 = 1;

/// The head of each zone of a checkpoint.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ZoneHead {
    check: U64,
    magic: [u8; 4],
    version: U32,
    run: U64,
    zone: U32,
    next: U32,
    len: U64,
    reserved: [u8; 24],
}

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

/// Bytes of a zone's head.
pub(super) const HEAD: usize = size_of::<ZoneHead>();

const _: () = assert!(HEAD == 64);
const _: () = assert!(size_of::<Summary>() == 32);
const _: () = assert!(size_of::<SegmentEntry>() == 192);

/// The key of the checks of a run's checkpoint. A segment has this nonce only by a chance of one in 2^64.
pub(super) fn checkpoint_key(certifier: &Certifier, run: u64) -> LifeKey {
    certifier.life_key(run, u64::MAX)
}

impl ZoneHead {
    /// The head of the zone that stands at `number` in the chain, before its check.
    pub(super) fn new(run: u64, zone: ZoneId, next: Option<ZoneId>, len: u64) -> ZoneHead {
        ZoneHead {
            check: 0.into(),
            magic: MAGIC,
            version: VERSION.into(),
            run: run.into(),
            zone: zone.0.into(),
            next: next.map_or(NO_ZONE, |next| next.0).into(),
            len: len.into(),
            reserved: [0; 24],
        }
    }

    /// Whether it claims to be the head of this zone, in a checkpoint of this run.
    pub(super) fn is_of(&self, run: u64, zone: ZoneId) -> bool {
        let ours = self.magic == MAGIC
            && (OLDEST_VERSION..=VERSION).contains(&self.version.get())
            && self.reserved == [0; 24];
        ours && self.run == run && self.zone == zone.0
    }

    /// The zone that follows.
    pub(super) fn next(&self) -> Option<ZoneId> {
        (self.next != NO_ZONE).then_some(ZoneId(self.next.get()))
    }

    /// Bytes of contents in this zone.
    pub(super) fn len(&self) -> u64 {
        self.len.get()
    }

    /// The check that it carries.
    pub(super) fn check(&self) -> u64 {
        self.check.get()
    }
}

/// The check that the zone at `number` in the chain must carry, of these bytes from its start.
pub(super) fn zone_check(certifier: &Certifier, key: LifeKey, number: usize, zone: &[u8]) -> u64 {
    certifier.check(key, number as u64, &zone[size_of::<U64>()..])
}

/// The check in the superblock, of the checks of all zones in order.
pub(super) fn chain_check(certifier: &Certifier, key: LifeKey, checks: impl Iterator<Item = u64>) -> u64 {
    let checks: Vec<u8> = checks.flat_map(u64::to_le_bytes).collect();
    certifier.check(key, u64::MAX, &checks)
}

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
        table!(ZoneHead as "CheckpointHead"; check, magic, version, run, zone, next, len, reserved),
        table!(Summary: segments, index, reserved),
        table!(SegmentEntry: zone, kind, reserved_a, life, written, garbage, tombstones, oldest, reserved_b, expiring),
    ];
    tables.extend(hash::image_tables());
    tables.extend(masstree::image_tables());
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
