//! The bytes of a checkpoint, apart from those of the images.

use quipu_parts::heap::chain::{SavedCounts, Usage};
use quipu_parts::space::ZoneId;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The head of the contents.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Summary {
    zones: U64,
    tables: U64,
    reserved: [u8; 16],
}

/// One zone of a memtable.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ZoneCounts {
    zone: U32,
    reserved: [u8; 4],
    bytes: U32,
    packed: U32,
    records: U32,
    tombstones: U32,
    dead: U32,
    expiring: U32,
    expires: U64,
}

/// One table.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TableEntry {
    pub(super) created: U64,
    pub(super) image: U64,
}

const _: () = assert!(size_of::<Summary>() == 32);
const _: () = assert!(size_of::<ZoneCounts>() == 40);
const _: () = assert!(size_of::<TableEntry>() == 16);

impl Summary {
    /// Of so many zones and tables.
    pub(super) fn new(zones: usize, tables: usize) -> Summary {
        Summary { zones: (zones as u64).into(), tables: (tables as u64).into(), reserved: [0; 16] }
    }

    /// How many zones and tables there are, if that is what it tells.
    pub(super) fn read(bytes: &[u8]) -> Option<(u64, u64)> {
        let summary = Summary::read_from_bytes(bytes).ok()?;
        (summary.reserved == [0; 16]).then_some((summary.zones.get(), summary.tables.get()))
    }
}

impl ZoneCounts {
    /// The counts of a zone.
    pub(super) fn new(usage: &Usage, zone: ZoneId) -> ZoneCounts {
        let SavedCounts { counts, expires } = usage.save(zone);
        let [bytes, packed, records, tombstones, dead, expiring] = counts.map(U32::from);
        let (zone, expires) = (zone.0.into(), expires.into());
        ZoneCounts { zone, reserved: [0; 4], bytes, packed, records, tombstones, dead, expiring, expires }
    }

    pub(super) fn zone(&self) -> ZoneId {
        ZoneId(self.zone.get())
    }

    /// The counts, in a pool with zones of this size; `None` if they are impossible.
    pub(super) fn counts(&self, zone_size: u64) -> Option<SavedCounts> {
        let ZoneCounts { bytes, packed, records, tombstones, dead, expiring, .. } = *self;
        let counts @ [bytes, packed, records, tombstones, dead, expiring] =
            [bytes, packed, records, tombstones, dead, expiring].map(U32::get);
        let is_sound = self.reserved == [0; 4]
            && u64::from(bytes.max(records)) <= zone_size
            && packed <= bytes
            && u64::from(tombstones) + u64::from(dead) <= records.into()
            && expiring <= records;
        is_sound.then_some(SavedCounts { counts, expires: self.expires.get() })
    }
}

/// The structures with their fields, for the check of `docs/FORMAT.md` against the code.
#[doc(hidden)]
pub fn checkpoint_tables() -> Vec<Table> {
    vec![
        table!(Summary as "MemtablesSummary"; zones, tables, reserved),
        table!(ZoneCounts: zone, reserved, bytes, packed, records, tombstones, dead, expiring, expires),
        table!(TableEntry: created, image),
    ]
}
