//! The head of each zone of a checkpoint, and its checks.

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

/// Bytes of a zone's head.
pub(super) const HEAD: usize = size_of::<ZoneHead>();

const _: () = assert!(HEAD == 64);

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

/// The structure with its fields, for the check of `docs/FORMAT.md` against the code.
pub(crate) fn head_table() -> Table {
    table!(ZoneHead as "CheckpointHead"; check, magic, version, run, zone, next, len, reserved)
}
