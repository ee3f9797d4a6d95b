//! The side of reclamation that belongs to one thread: pinning, and its own garbage.

use super::barrier::{note_write, see_own_writes};
use super::collector::{Retired, Shared, Slot, UNPINNED};
use super::holder::{Holder, What};
use crate::sync::atomic::Ordering;
use crate::sync::point;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

/// Retirements after which a participant tries to release the oldest on its own.
const COLLECT_EVERY: usize = 32;

/// A client thread's membership in a [`Collector`](super::Collector).
///
/// It may move to another thread, but only one thread uses it at a time. When it drops, its remaining garbage
/// goes to the collector, and other participants release it.
pub struct Participant {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    pins: Cell<usize>,
    /// See [`hold`](Participant::hold).
    holds: Cell<usize>,
    /// Oldest first, since the epoch never decreases.
    limbo: RefCell<VecDeque<Retired>>,
}

impl Participant {
    pub(super) fn new(shared: Arc<Shared>, slot: Arc<Slot>) -> Participant {
        Participant { shared, slot, pins: Cell::new(0), holds: Cell::new(0), limbo: RefCell::default() }
    }

    /// Keeps everything that is reachable now from being released until the guard drops.
    ///
    /// Pins nest; only the outermost announces anything, so an inner one costs an addition. A guard that is
    /// held for long holds back all reclamation.
    ///
    /// When the guard drops, the stores made meanwhile count as written: every thread sees them before this
    /// thread next reads ([`pin_to_read`](Participant::pin_to_read)). So every later reader sees a write that
    /// has returned, although its thread may go on before its stores have left the processor.
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        self.enter(false)
    }

    /// Pins for reads only. All that this thread has written is visible to other threads before the first of
    /// them.
    #[inline]
    pub fn pin_to_read(&self) -> Guard<'_> {
        self.enter(true)
    }

    #[inline]
    fn enter(&self, only_reads: bool) -> Guard<'_> {
        let pins = self.pins.get();
        self.pins.set(pins + 1);
        if pins == 0 {
            point();
            let epoch = self.shared.epoch_to_announce();
            self.shared.barrier.announce(&self.slot.0.epoch, epoch, only_reads);
        } else if only_reads {
            see_own_writes();
        }
        Guard { participant: self, only_reads }
    }

    /// Says who keeps this participant pinned, until the result drops, for
    /// [`Collector::oldest_holder`](super::Collector::oldest_holder): it may be for long. Of several the
    /// first is named, until all have dropped.
    #[inline]
    pub fn hold(&self, holder: Holder) -> Held<'_> {
        if self.holds.replace(self.holds.get() + 1) == 0 {
            self.slot.0.holder.set(holder);
        }
        Held { participant: self }
    }

    /// Releases this participant's garbage and that of participants that left, as far as it may be released.
    /// Returns how many things it released.
    ///
    /// To know what may be released, the system may have to interrupt every running thread of the process. It
    /// does so only while garbage waits and no participant is seen to hold it back, so a caller may collect
    /// at any rate.
    pub fn collect(&self) -> usize {
        let own = self.limbo.borrow().front().map(|retired| retired.epoch);
        let Some(oldest) = own.into_iter().chain(self.shared.oldest_orphan()).min() else {
            return 0;
        };
        let horizon = self.shared.horizon(oldest);
        let mut released = 0;
        // One at a time, and not while the queue is borrowed: a release may take long, and may panic.
        while let Some(retired) = self.next_ripe(horizon) {
            (retired.release)();
            released += 1;
        }
        for retired in self.shared.ripe_orphans(horizon) {
            (retired.release)();
            released += 1;
        }
        released
    }

    /// Things that this participant has retired and that are not released yet.
    pub fn pending(&self) -> usize {
        self.limbo.borrow().len()
    }

    fn next_ripe(&self, horizon: u64) -> Option<Retired> {
        let mut limbo = self.limbo.borrow_mut();
        if limbo.front()?.is_ripe(horizon) { limbo.pop_front() } else { None }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.shared.adopt(self.limbo.get_mut().drain(..));
        // This is right even if a guard was forgotten: the objects that it protected could only be reached
        // through its borrow.
        self.shared.return_slot(&self.slot);
    }
}

/// See [`Participant::hold`].
pub struct Held<'a> {
    participant: &'a Participant,
}

impl Held<'_> {
    /// Says what it has become.
    pub fn becomes(&self, what: What) {
        self.participant.slot.0.holder.become_what(what);
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        let holds = self.participant.holds.get() - 1;
        self.participant.holds.set(holds);
        if holds == 0 {
            self.participant.slot.0.holder.clear();
        }
    }
}

/// Proof that its thread is pinned: nothing that was reachable when it was made is released while it lives.
pub struct Guard<'a> {
    participant: &'a Participant,
    only_reads: bool,
}

impl<'a> Guard<'a> {
    /// Makes the writes of this thread since it was pinned, by another participant, visible before it reads
    /// on.
    #[inline]
    pub fn see_own_writes(&self) {
        see_own_writes();
    }

    /// Whose guard it is.
    #[inline]
    pub fn participant(&self) -> &'a Participant {
        self.participant
    }

    /// Calls `release` once every thread that is pinned now has unpinned. A thread that pins from now on must
    /// not be able to reach the thing.
    ///
    /// For rare things (directories, zones): each costs a box and a fence. `release` may run on another
    /// thread. It runs at the latest when the collector and all its participants are gone.
    pub fn defer(&self, release: Box<dyn FnOnce() + Send>) {
        let epoch = self.participant.shared.epoch_of_retirement();
        let waiting = {
            let mut limbo = self.participant.limbo.borrow_mut();
            limbo.push_back(Retired { epoch, release });
            limbo.len()
        };
        if waiting % COLLECT_EVERY == 0 {
            self.participant.collect();
        }
    }

    /// Like [`defer`](Guard::defer), for a thing that others wait for: any participant's next collection
    /// releases it, since this participant may not collect for long.
    pub fn defer_to_anyone(&self, release: Box<dyn FnOnce() + Send>) {
        let epoch = self.participant.shared.epoch_of_retirement();
        self.participant.shared.adopt(std::iter::once(Retired { epoch, release }));
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        let Participant { slot, pins: count, .. } = self.participant;
        let pins = count.get() - 1;
        count.set(pins);
        if pins == 0 {
            slot.0.epoch.store(UNPINNED, Ordering::Release);
        }
        if !self.only_reads {
            note_write();
        }
    }
}
