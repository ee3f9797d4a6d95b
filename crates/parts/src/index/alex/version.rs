//! The version word of a node: its lock, and a counter that tells readers that the node has changed.
//!
//! ```text
//! bit | 0 locked | 1 changing | 2 obsolete | 3.. changes |
//! ```
//!
//! A reader takes the word while the node is not *changing*, reads the node, and looks at the word again: if
//! only the lock has changed, the words that it read belong together. A writer locks, marks a change of more
//! than one slot, makes it, and unlocks, which counts the mark. An *obsolete* node has left the tree.

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Waiter, point};

const LOCKED: u64 = 1;
const CHANGING: u64 = 1 << 1;
const OBSOLETE: u64 = 1 << 2;
const CHANGE: u64 = 1 << 3;

/// A version that a reader has seen, without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen(u64);

impl Seen {
    /// Whether the node has left the tree.
    #[inline]
    pub(super) fn is_obsolete(self) -> bool {
        self.0 & OBSOLETE != 0
    }
}

/// The version word. See the module's documentation.
pub(super) struct Version(AtomicU64);

impl Version {
    /// The version of a new node.
    pub(super) fn new() -> Version {
        Version(AtomicU64::new(0))
    }

    /// The version, as soon as nobody changes the node.
    #[inline]
    pub(super) fn stable(&self) -> Seen {
        point();
        let version = self.0.load(Ordering::Acquire);
        if version & CHANGING == 0 { Seen(version & !LOCKED) } else { self.await_stable() }
    }

    #[cold]
    fn await_stable(&self) -> Seen {
        let mut waiter = Waiter::default();
        loop {
            waiter.wait();
            let version = self.0.load(Ordering::Acquire);
            if version & CHANGING == 0 {
                return Seen(version & !LOCKED);
            }
        }
    }

    /// Whether words of the node that were read since `seen` may not belong together.
    #[inline]
    pub(super) fn has_changed(&self, seen: Seen) -> bool {
        point();
        // Words of a marked change were read after the mark: pairs with the fence of `mark`.
        fence(Ordering::Acquire);
        (self.0.load(Ordering::Relaxed) ^ seen.0) & !LOCKED != 0
    }

    /// Waits for the lock and takes it; `false` if the node has left the tree.
    #[inline]
    pub(super) fn lock(&self) -> bool {
        point();
        let mut waiter = Waiter::default();
        loop {
            // A thread that finds the node gone finds its way to the one in its place.
            let version = self.0.load(Ordering::Acquire);
            if version & OBSOLETE != 0 {
                return false;
            }
            let is_free = version & LOCKED == 0;
            let (locked, acquire) = (version | LOCKED, Ordering::Acquire);
            if is_free && self.0.compare_exchange(version, locked, acquire, Ordering::Relaxed).is_ok() {
                return true;
            }
            waiter.wait();
        }
    }

    /// Takes the lock if it is free.
    pub(super) fn try_lock(&self) -> bool {
        point();
        let version = self.0.load(Ordering::Relaxed);
        let (is_free, acquire) = (version & (LOCKED | OBSOLETE) == 0, Ordering::Acquire);
        is_free && self.0.compare_exchange(version, version | LOCKED, acquire, Ordering::Relaxed).is_ok()
    }

    /// Announces that more than one slot will change. The caller holds the lock.
    #[inline]
    pub(super) fn mark(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) | CHANGING, Ordering::Relaxed);
        // A thread that sees one of the following stores sees the mark: pairs with the fence of
        // `has_changed`.
        fence(Ordering::Release);
        point();
    }

    /// Gives the lock back and counts the mark.
    #[inline]
    pub(super) fn unlock(&self) {
        point();
        self.0.store(counted(self.0.load(Ordering::Relaxed)), Ordering::Release);
    }

    /// Gives the lock back for ever: the node has left the tree.
    pub(super) fn unlock_obsolete(&self) {
        point();
        self.0.store(counted(self.0.load(Ordering::Relaxed)) | OBSOLETE, Ordering::Release);
    }
}

/// The version after a marked change is counted, without mark and lock.
#[inline]
fn counted(version: u64) -> u64 {
    let changes = if version & CHANGING != 0 { CHANGE } else { 0 };
    (version & !(LOCKED | CHANGING)).wrapping_add(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_alone_changes_nothing_and_marks_are_counted() {
        let version = Version::new();
        let seen = version.stable();
        assert!(version.lock() && !version.has_changed(seen) && version.stable() == seen);
        version.unlock();
        assert!(!version.has_changed(seen));
        assert!(version.lock());
        version.mark();
        assert!(version.has_changed(seen));
        version.unlock();
        assert!(version.has_changed(seen) && !version.stable().is_obsolete());
    }

    #[test]
    fn a_node_that_has_left_is_not_locked_again() {
        let version = Version::new();
        let seen = version.stable();
        assert!(version.lock());
        version.mark();
        version.unlock_obsolete();
        assert!(!version.lock() && version.has_changed(seen) && version.stable().is_obsolete());
    }
}
