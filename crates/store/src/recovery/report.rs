//! What recovery found and did, and what it takes damage for.

use crate::error::DamagedPlace;
use crate::salvage::LostKey;
use quipu_parts::space::Space;

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

/// Whether holes in the pool are damage, or the price of a durability that does not cover what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// They are damage: refuse.
    AreDamage,
    /// The operating system crashed under a pool whose durability covers process crashes only: report them as lost. Its pages may be of
    /// different times, so a segment that the zone table takes for free may have been given up, and is not reported.
    AreLost,
    /// The user accepts damage: report all of it as lost.
    AreAccepted,
    /// Take what can be proved around them, and change nothing.
    Salvaged,
}

/// What is said of a pool that was closed and has other headers than it was closed with, each of which may prove itself.
pub(crate) fn changed_headers(space: &Space) -> Option<DamagedPlace> {
    let what = "the header of a zone, which is not the one that the pool was closed with,".into();
    (!space.has_headers_of_close()).then_some(DamagedPlace { what, offset: 0, len: 0 })
}

/// How far beyond the ceiling in the superblock a record or a life may have a number. A crash of the system may have lost the
/// last raises of the ceiling, of which each is a block; whoever knows the pool's secret can write any number, and a clock
/// that went on from it would come to the end of all numbers.
const AHEAD: u64 = 1 << 40;

/// No record and no life of a pool with this ceiling has a number from here on.
pub(crate) fn drawn_end(ceiling: u64) -> u64 {
    ceiling.saturating_add(AHEAD)
}
