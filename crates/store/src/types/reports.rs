//! Results of opening, checking and salvaging a pool.

use super::error::{Damage, DamagedPlace};
use std::time::Duration;

/// Findings and repairs of a recovery.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the pool had been closed cleanly, so that nothing had to be repaired.
    pub was_clean: bool,
    /// Whether the checkpoint of a clean close described the segments, so that none had to be scanned. Their
    /// records are not proved then.
    pub from_checkpoint: bool,
    /// Segments found.
    pub segments: usize,
    /// Records scanned, superseded ones and tombstones included: none with a checkpoint.
    pub records: u64,
    /// Open segments of earlier runs that were sealed; none where the index is in the pool, since that
    /// happens later.
    pub sealed: usize,
    /// Freed segments without records, freed zones of large values, and zones that were taken and never
    /// committed.
    pub reclaimed: usize,
    /// Places lost with a crash of the operating system that the pool's durability did not cover, or accepted
    /// as lost ([`Options::accept_damage`](crate::Options::accept_damage)).
    pub lost: Vec<DamagedPlace>,
    /// Keys whose latest record was in these places, in order, as far as they are legible.
    pub lost_keys: Vec<LostKey>,
    /// Places in segments left open by the last run where nothing proves itself, although records behind them
    /// do. Either the run died before it had acknowledged their records, or they were damaged later; which of
    /// the two is not known. If too many bytes behind a place look like records, the search stops and the
    /// place extends to the end of the segment. Records in it may then be missing.
    pub torn: Vec<DamagedPlace>,
    /// How far the clock by which values expire is ahead of the system's clock, which was set back or was
    /// wrong ([`Options::reset_expiry`](crate::Options::reset_expiry)).
    pub expiry_ahead: Duration,
}

/// Findings of a check.
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
    /// Everything that is wrong.
    pub damage: Damage,
    /// Parts for which the format of the pool has no check: damage there does not show.
    pub unproved: &'static [&'static str],
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.places.is_empty()
    }
}

/// Results of a salvage.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Keys copied, each with the latest value that proves itself.
    pub keys: u64,
    /// Everything that is wrong in the old pool.
    pub damage: Damage,
    /// Keys that the pool had when it was closed, and whose latest record is lost. `None` if their
    /// number is not known: the pool was not closed, or has lost its count.
    pub missing: Option<u64>,
    /// Keys whose latest record is lost, in order, as far as they are legible.
    pub lost: Vec<LostKey>,
}

impl SalvageReport {
    /// How many of the missing keys are named. The other [lost](SalvageReport::lost) ones had been deleted.
    pub fn named(&self) -> usize {
        self.lost.iter().filter(|lost| lost.instead != Instead::DeletedValue).count()
    }
}

/// A key whose latest record cannot be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKey {
    /// The key, as far as it is legible.
    pub key: Vec<u8>,
    /// The state of the key in the new pool.
    pub instead: Instead,
}

/// The state of a key whose latest record is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The key is absent.
    Nothing,
    /// An older value.
    OlderValue,
    /// The value that a lost deletion had deleted.
    DeletedValue,
}
