//! The clock by which values expire. It never goes back, whatever the system's clock does.
//!
//! Its time is the greatest of the system's clock, of the superblock's *mark*, and of the times that this
//! handle has seen. Before a handle that may write answers "expired" for a time beyond the mark, it raises
//! the mark to this moment, durably. So a value that a reader has not found any more stays away after a
//! crash, however the system's clock is set. Each other update of the superblock takes the mark along, so it
//! also follows the runs in which nobody asks.
//!
//! The mark is never ahead of this clock: after a crash, values would expire early. Times are milliseconds,
//! so the mark is raised at most once in one.
//!
//! A pool in which nothing expires has no mark. So a clock that was wrong for a while does it no harm.
//!
//! An opening may refuse the pool, and must not have changed it then. So until the pool is accepted the mark
//! stays, and what was found to have expired raises it afterwards.
//!
//! A handle that only reads cannot raise the mark. Its answers hold for itself.

use super::handle::Space;
use crate::sync::SpinLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Milliseconds by which the mark may be behind when a value is put that expires.
const MOST_BEHIND: u64 = 10 * 60 * 1000;

/// The times of a handle, in milliseconds since 1970. Other updates of the superblock may have a later mark
/// than `mark`.
pub(super) struct ExpiryClock {
    /// The mark at the open, or the latest time that was asked for.
    floor: AtomicU64,
    /// The durable mark; 0 if nothing has expired in this pool or will.
    mark: AtomicU64,
    /// Held by the thread that raises the mark.
    raising: SpinLock<()>,
    /// Whether this handle writes to the pool.
    may_raise: bool,
    /// Whether the opening has accepted the pool.
    is_accepted: AtomicBool,
    /// To where the mark has to be raised then.
    owed: AtomicU64,
}

impl ExpiryClock {
    pub(super) fn new(mark: u64, may_raise: bool) -> ExpiryClock {
        let [floor, mark, owed] = [mark, mark, 0].map(AtomicU64::new);
        let is_accepted = AtomicBool::new(false);
        ExpiryClock { floor, mark, raising: SpinLock::new(()), may_raise, is_accepted, owed }
    }

    /// The mark for an update of a superblock that has this mark, at this time of the system.
    pub(super) fn next_mark(&self, mark: u64, system: u64) -> u64 {
        if mark == 0 { 0 } else { mark.max(system).max(self.floor.load(Ordering::Acquire)) }
    }
}

impl Space {
    /// The time by which values expire, in milliseconds since 1970. An answer to a user comes from
    /// [`has_passed`](Space::has_passed) instead, which stays so over a crash.
    #[inline]
    pub fn expiry_time(&self) -> u64 {
        let (now, floor) = (self.region().now(), self.expiry.floor.load(Ordering::Acquire));
        if now > floor {
            self.expiry.floor.fetch_max(now, Ordering::AcqRel);
        }
        now.max(floor)
    }

    /// Whether a value that expires at this time has expired. If so, that stays so.
    pub fn has_passed(&self, time: u64) -> bool {
        self.has_passed_by(time, self.expiry_time())
    }

    /// Whether a value that expires at this time had expired at an [expiry time](Space::expiry_time).
    pub fn has_passed_by(&self, time: u64, now: u64) -> bool {
        let has_passed = time <= now;
        if has_passed && time > self.expiry.mark.load(Ordering::Acquire) {
            self.raise_mark(time);
        }
        has_passed
    }

    /// Notes that the pool has a value that expires, before it is there. A crash forgets times beyond the
    /// mark, by which the end of the value may have been reckoned. So the mark follows in steps.
    #[inline]
    pub fn note_expiring(&self) {
        let mark = self.expiry.mark.load(Ordering::Relaxed);
        let floor = self.expiry.floor.load(Ordering::Relaxed);
        if mark == 0 || floor > mark.saturating_add(MOST_BEHIND) {
            self.raise_mark(self.expiry_time().max(1));
        }
    }

    /// Milliseconds by which this clock is ahead of the system's. Until that has come here, this one stands
    /// still, and nothing more expires.
    pub fn expiry_ahead(&self) -> u64 {
        self.expiry.floor.load(Ordering::Acquire).saturating_sub(self.region().now())
    }

    /// Sets this clock back to the system's, in this handle alone: for an opening, which accepts the pool
    /// first, and then [resets it](Space::reset_expiry).
    pub fn forget_expiry(&self) {
        self.expiry.floor.store(self.region().now(), Ordering::Release);
    }

    /// Sets this clock back to the system's, durably. Values that had expired, and whose room was not used
    /// again, are there again.
    pub fn reset_expiry(&self) {
        if !self.expiry.may_raise {
            return;
        }
        let _alone = self.expiry.raising.lock();
        if self.expiry.mark.load(Ordering::Acquire) == 0 {
            return;
        }
        // Never zero, which would mean that nothing expires.
        let now = self.region().now().max(1);
        self.expiry.floor.store(now, Ordering::Release);
        self.expiry.mark.store(now, Ordering::Release);
        self.update_superblock(|superblock| superblock.expiry_mark.set(now));
    }

    /// The pool may be changed from here on.
    pub(super) fn accept_expiry(&self) {
        self.expiry.is_accepted.store(true, Ordering::Release);
        let owed = self.expiry.owed.swap(0, Ordering::AcqRel);
        if owed != 0 {
            self.raise_mark(owed);
        }
    }

    #[cold]
    fn raise_mark(&self, time: u64) {
        if !self.expiry.may_raise {
            return;
        }
        if !self.expiry.is_accepted.load(Ordering::Acquire) {
            self.expiry.owed.fetch_max(time, Ordering::AcqRel);
            return;
        }
        let _alone = self.expiry.raising.lock();
        if time <= self.expiry.mark.load(Ordering::Acquire) {
            return;
        }
        let mark = time.max(self.expiry_time());
        self.update_superblock(|superblock| {
            let higher = mark.max(superblock.expiry_mark.get());
            superblock.expiry_mark.set(higher);
        });
        self.expiry.mark.store(mark, Ordering::Release);
    }
}
