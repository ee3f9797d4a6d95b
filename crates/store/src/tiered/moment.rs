//! The states that reads see, and the times at which values expire for them.
//!
//! A scan and a transaction see values expire by the time at which they began. Cleaning takes a value for
//! expired only when it has for all of them.

use super::Tiers;
use crate::engine::holder;
use crate::engine::moment::Moment;
use quipu_parts::epoch::What;
use quipu_parts::index::InOrder;
use quipu_parts::sync::between_looks;
use quipu_parts::versions::{Snapshot, Terms};

impl<I: InOrder> Tiers<I> {
    /// A snapshot with this end, and its moment. A value that was put after its own end is in no snapshot of
    /// a time before that end.
    pub(super) fn moment(&self, what: What, end: u64) -> (Snapshot, Moment) {
        loop {
            let before = self.log.visible();
            between_looks();
            let now = self.expiry_time();
            between_looks();
            let holder = holder::here(self.region(), what);
            let snapshot = self.snapshots.take(holder, Terms { time: now, end }, || self.log.visible());
            let number = snapshot.number();
            if number == before || self.expiry_time() == now {
                return (snapshot, Moment { number, time: now });
            }
        }
    }

    /// Ends transactions that are older than they may be.
    pub(super) fn end_old_transactions(&self) {
        if self.transaction_age.is_some() {
            self.snapshots.end_due(self.region().coarse_ticks());
        }
    }

    /// The time of a moment.
    #[cold]
    pub(super) fn time_at(&self, at: Moment) -> u64 {
        if at.time == 0 { self.expiry_time() } else { at.time }
    }

    /// The time by which values expire.
    #[cold]
    pub(super) fn expiry_time(&self) -> u64 {
        self.log.heap().space().expiry_time()
    }

    /// The time by which values have expired for all who read.
    #[cold]
    pub(super) fn time_of_all(&self) -> u64 {
        self.expiry_time().min(self.snapshots.earliest_time())
    }
}
