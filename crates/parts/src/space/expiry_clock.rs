//! The clock by which values expire. It never goes back, whatever the system's clock does.
//!
//! Its time is the greatest of the system's clock, of the superblock's *mark*, and of the times that this
//! handle has seen. Before a handle that may write answers "expired" for a time beyond the mark, it raises
//! the mark to this moment, durably. So a value that a reader has not found any more stays away after a
//! crash, however the system's clock is set. Each other update of the superblock takes the mark along, so it
//! also follows the runs in which nobody asks.
//!
//! A mark ahead of the clock would be raised less often, and values would expire early after a crash. Times
//! are milliseconds, so the mark is raised at most once in one.
//!
//! A pool in which nothing expires has no mark. So a clock that was wrong for a while does it no harm.
//!
//! A handle that only reads cannot raise the mark. Its answers hold for itself.

use super::handle::Space;
use crate::sync::SpinLock;
use std::sync::atomic::{AtomicU64, Ordering};

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
}

impl ExpiryClock {
    pub(super) fn new(mark: u64, may_raise: bool) -> ExpiryClock {
        let [floor, mark] = [mark; 2].map(AtomicU64::new);
        ExpiryClock { floor, mark, raising: SpinLock::new(()), may_raise }
    }

    /// The mark for an update of a superblock that has this mark, at this time of the system.
    pub(super) fn next_mark(&self, mark: u64, system: u64) -> u64 {
        if mark == 0 { 0 } else { mark.max(system).max(self.floor.load(Ordering::Acquire)) }
    }
}

impl Space {
    /// The time by which values expire, in milliseconds since 1970. An answer to a user asks
    /// [`has_passed`](Space::has_passed) instead.
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

    /// Notes that the pool has a value that expires, before it is there.
    #[inline]
    pub fn note_expiring(&self) {
        if self.expiry.mark.load(Ordering::Relaxed) == 0 {
            self.raise_mark(self.region().now().max(1));
        }
    }

    /// Milliseconds by which this clock is ahead of the system's: values stand still for so long.
    pub fn expiry_ahead(&self) -> u64 {
        self.expiry.floor.load(Ordering::Acquire).saturating_sub(self.region().now())
    }

    /// Sets this clock back to the system's, durably. Values that had expired, and whose room was not used
    /// again, are there again.
    pub fn reset_expiry(&self) {
        let _alone = self.expiry.raising.lock();
        if !self.expiry.may_raise || self.expiry.mark.load(Ordering::Acquire) == 0 {
            return;
        }
        // Never zero, which would mean that nothing expires.
        let now = self.region().now().max(1);
        self.expiry.floor.store(now, Ordering::Release);
        self.expiry.mark.store(now, Ordering::Release);
        self.update_superblock(|superblock| superblock.expiry_mark.set(now));
    }

    #[cold]
    fn raise_mark(&self, time: u64) {
        let _alone = self.expiry.raising.lock();
        if !self.expiry.may_raise || time <= self.expiry.mark.load(Ordering::Acquire) {
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
