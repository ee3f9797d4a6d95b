//! The holders that keep things from being released for long, for the error of a writer that waits in vain.
//!
//! Only a pin that its user keeps is told: a call of the store returns soon, and telling costs a look at the
//! clock.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The thing that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A pin.
    Guard,
    /// A pin that has begun a scan.
    Scan,
    /// A number to read at.
    Snapshot,
    /// The number that a transaction reads at.
    Transaction,
}

/// Somebody who keeps things from being released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its kind.
    pub what: What,
    /// The number of the thread that took it.
    pub thread: u32,
    /// When it was taken, in milliseconds of the medium's clock.
    pub since: u64,
}

/// A [`Holder`] in an announcement.
#[derive(Default)]
pub(super) struct HolderWords {
    /// One of the constants below.
    what: AtomicU32,
    thread: AtomicU32,
    since: AtomicU64,
}

const NOBODY: u32 = 0;
const GUARD: u32 = 1;
const SCAN: u32 = 2;
const SNAPSHOT: u32 = 3;
const TRANSACTION: u32 = 4;

fn word_of(what: What) -> u32 {
    match what {
        What::Guard => GUARD,
        What::Scan => SCAN,
        What::Snapshot => SNAPSHOT,
        What::Transaction => TRANSACTION,
    }
}

impl HolderWords {
    #[inline]
    pub(super) fn set(&self, holder: Holder) {
        self.thread.store(holder.thread, Ordering::Relaxed);
        self.since.store(holder.since, Ordering::Relaxed);
        self.what.store(word_of(holder.what), Ordering::Release);
    }

    pub(super) fn become_what(&self, what: What) {
        self.what.store(word_of(what), Ordering::Release);
    }

    #[inline]
    pub(super) fn clear(&self) {
        self.what.store(NOBODY, Ordering::Release);
    }

    /// It is for a message: one that changes at this moment may be mixed from two.
    pub(super) fn get(&self) -> Option<Holder> {
        let what = match self.what.load(Ordering::Acquire) {
            GUARD => What::Guard,
            SCAN => What::Scan,
            SNAPSHOT => What::Snapshot,
            TRANSACTION => What::Transaction,
            _ => return None,
        };
        let (thread, since) = (self.thread.load(Ordering::Relaxed), self.since.load(Ordering::Relaxed));
        Some(Holder { what, thread, since })
    }
}
