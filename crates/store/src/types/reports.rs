//! What opening, checking and salvaging a pool found.

use super::error::{Damage, DamagedPlace};

/// What recovery found and did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the pool had been closed cleanly, so that nothing had to be repaired.
    pub was_clean: bool,
    /// Whether the checkpoint of a clean close told what the segments hold, so that none had to be scanned. Their records
    /// are then not proved.
    pub from_checkpoint: bool,
    /// Segments found.
    pub segments: usize,
    /// Records scanned, superseded ones and tombstones included: none with a checkpoint.
    pub records: u64,
    /// Open segments of earlier runs that were sealed; none where the index is in the pool, since that is done later.
    pub sealed: usize,
    /// Empty segments, zones of large values that were given up, and zones taken but never committed, that were freed.
    pub reclaimed: usize,
    /// Places lost with a crash of the operating system that the pool's durability did not cover, or accepted as lost
    /// ([`Options::accept_damage`](crate::Options::accept_damage)).
    pub lost: Vec<DamagedPlace>,
    /// Keys whose latest record was in these places, in order, as far as they are legible.
    pub lost_keys: Vec<LostKey>,
    /// Places in segments that the last run left open where nothing proves itself, although records behind them do. The run
    /// died before it had written them, so that nobody was told of them; or they were damaged since. Nothing tells which. If too much
    /// behind a place looks like records, the search for more is given up, and the place reaches to the end of the segment: then
    /// records in it may be missing.
    pub torn: Vec<DamagedPlace>,
}

/// What a check found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// Segments proved.
    pub segments: usize,
    /// Large values proved.
    pub values: u64,
    /// Records proved, superseded ones and tombstones included.
    pub records: u64,
    /// Keys that the index names.
    pub keys: u64,
    /// Zones free.
    pub free_zones: u64,
    /// Everything that does not hold.
    pub damage: Damage,
    /// What was not proved, since the format of the pool's design has no check for it: damage there does not show.
    pub unproved: &'static [&'static str],
}

impl CheckReport {
    /// Whether everything holds.
    pub fn is_sound(&self) -> bool {
        self.damage.places.is_empty()
    }
}

/// What a salvage kept and what it did not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Keys copied, each with the latest value that proves itself.
    pub keys: u64,
    /// Everything in the old pool that does not hold.
    pub damage: Damage,
    /// Keys whose latest record is lost, in order, as far as they are legible.
    pub lost: Vec<LostKey>,
}

/// A key whose latest record cannot be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKey {
    /// The key, as it is legible.
    pub key: Vec<u8>,
    /// What the new pool has of it.
    pub instead: Instead,
}

/// What stands for a record that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The key is absent.
    Nothing,
    /// An older value.
    OlderValue,
    /// The value that a lost deletion had deleted.
    DeletedValue,
}
