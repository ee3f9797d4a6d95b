//! The state of a segment in DRAM, which recovery rebuilds by a scan, or takes from a checkpoint.

use super::expiry::{EXPIRY_STEPS, Expiring};
use super::log::LogHeap;
use super::usage::RecordBytes;
use crate::space::ZoneId;

/// The state of a sealed segment. Any number that recovery counts by scanning belongs here, and into the
/// checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// Its zone.
    pub zone: ZoneId,
    /// Its life number.
    pub life: u64,
    /// The number from which on it holds tombstones, at most its life; see [`LogHeap::hold_tombstones`].
    pub oldest: u64,
    /// Bytes of its records.
    pub bytes: RecordBytes,
    /// Bytes of records that expire, by their time to live.
    pub expiring: [Expiring; EXPIRY_STEPS],
}

impl LogHeap {
    /// Every segment, if all are sealed. `None` while one is open or withdrawn: its records are damaged, or
    /// it is being freed.
    pub fn states(&self) -> Option<Vec<SegmentState>> {
        let state = |(zone, life)| {
            let (bytes, expiring) = (self.usage.of_zone(zone), self.expiries.of_zone(zone));
            SegmentState { zone, life, oldest: self.lives.oldest((zone, life)), bytes, expiring }
        };
        self.lives.others().next().is_none().then(|| self.lives.sealed().map(state).collect())
    }

    /// Takes over a segment of an earlier run with its state of then.
    pub fn restore(&self, state: &SegmentState) {
        self.lives.begin(state.zone, state.life);
        self.lives.seal(state.zone);
        self.lives.hold(state.zone, state.oldest);
        if let Some(dead) = &self.dead {
            dead.restore(state.zone);
        }
        self.usage.restore(state.zone, state.bytes);
        self.expiries.restore(state.zone, &state.expiring);
    }
}
