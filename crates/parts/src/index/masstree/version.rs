//! The version word of a node: its lock, and counters that tell readers that the node has changed.
//!
//! ```text
//! bit | 0 locked | 1 inserting | 2 splitting | 3 live | 4 root | 5 first | 8.. insertions | 40.. splits |
//! ```
//!
//! A reader takes the word while it is neither *inserting* nor *splitting*, reads the node, and looks at the
//! word again: if only the lock has changed, the words that it read belong together. A writer locks, marks
//! the kind of its change, changes the node, and unlocks, which counts the marks. *Splitting* says that this
//! node is for fewer keys than before: a reader on the way to it for a key has to begin again above.
//! *Inserting* says that something in it has moved: reading it again is enough. Changes that take effect with
//! a single word need no mark.
//!
//! All bits zero is a node that nobody has used yet. A node that is not *live* cannot be locked, so the
//! thread that takes it into use again is alone with it. The counters go on from one use to the next, so a
//! version never comes back.

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Waiter, point};

const LOCKED: u64 = 1;
const INSERTING: u64 = 1 << 1;
const SPLITTING: u64 = 1 << 2;
const LIVE: u64 = 1 << 3;
const ROOT: u64 = 1 << 4;
const FIRST: u64 = 1 << 5;
const FLAGS: u64 = 0xFF;
const INSERTION: u64 = 1 << 8;
const SPLIT: u64 = 1 << 40;
const INSERTIONS: u64 = SPLIT - INSERTION;
const SPLITS: u64 = !(SPLIT - 1);

/// A version that a reader has seen, without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen(u64);

impl Seen {
    /// Whether the node is part of the tree.
    #[inline]
    pub(super) fn is_live(self) -> bool {
        self.0 & LIVE != 0
    }

    /// Whether the node is the root of its layer.
    #[inline]
    pub(super) fn is_root(self) -> bool {
        self.0 & ROOT != 0
    }

    /// Whether the node is a border node of the first layer.
    #[inline]
    pub(super) fn is_in_first_layer(self) -> bool {
        self.0 & FIRST != 0
    }

    /// Whether the way to a key may not lead through this node any more, although it did at `before`.
    #[inline]
    pub(super) fn has_left(self, before: Seen) -> bool {
        (self.0 ^ before.0) & SPLITS != 0 || !self.is_live()
    }
}

/// The version word. See the module's documentation.
pub(super) struct Version(AtomicU64);

impl Version {
    /// The version of a node that nobody has used yet.
    #[cfg(loom)]
    pub(super) fn new() -> Version {
        Version(AtomicU64::new(0))
    }

    /// The version, as soon as nobody changes the node.
    #[inline]
    pub(super) fn stable(&self) -> Seen {
        point();
        let version = self.0.load(Ordering::Acquire);
        if version & (INSERTING | SPLITTING) == 0 { Seen(version & !LOCKED) } else { self.await_stable() }
    }

    #[cold]
    fn await_stable(&self) -> Seen {
        let mut waiter = Waiter::default();
        loop {
            waiter.wait();
            let version = self.0.load(Ordering::Acquire);
            if version & (INSERTING | SPLITTING) == 0 {
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

    /// Waits for the lock and takes it; nothing if the node is not live.
    #[inline]
    pub(super) fn lock(&self) -> Option<Seen> {
        point();
        let mut waiter = Waiter::default();
        loop {
            let version = self.0.load(Ordering::Relaxed);
            if version & LIVE == 0 {
                return None;
            }
            if version & LOCKED == 0 && self.take(version) {
                return Some(Seen(version));
            }
            waiter.wait();
        }
    }

    /// Takes the lock if nobody has it and the version is still this one.
    pub(super) fn try_lock(&self, seen: Seen) -> bool {
        point();
        seen.is_live() && self.take(seen.0)
    }

    #[inline]
    fn take(&self, version: u64) -> bool {
        self.0.compare_exchange(version, version | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Announces that something in the node will move. The caller holds the lock.
    #[inline]
    pub(super) fn mark_inserting(&self) {
        self.mark(INSERTING);
    }

    /// Announces that the node will be for fewer keys. The caller holds the lock.
    #[inline]
    pub(super) fn mark_splitting(&self) {
        self.mark(SPLITTING);
    }

    #[inline]
    fn mark(&self, bit: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
        // A thread that sees one of the following stores sees the mark: pairs with the fence of
        // `has_changed`.
        fence(Ordering::Release);
        point();
    }

    /// Makes the node the root of a layer, or takes that away. The caller holds the lock.
    pub(super) fn set_root(&self, is_root: bool) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(if is_root { version | ROOT } else { version & !ROOT }, Ordering::Relaxed);
    }

    /// Whether it is. The caller holds the lock.
    pub(super) fn is_in_first_layer(&self) -> bool {
        Seen(self.0.load(Ordering::Relaxed)).is_in_first_layer()
    }

    /// Makes the node one of the first layer, for as long as it is live. The caller holds the lock.
    pub(super) fn set_in_first_layer(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) | FIRST, Ordering::Relaxed);
    }

    /// Gives the lock back and counts the marks.
    #[inline]
    pub(super) fn unlock(&self) {
        point();
        self.0.store(counted(self.0.load(Ordering::Relaxed)), Ordering::Release);
    }

    /// Gives the lock back for ever: the node has been taken out of the tree.
    pub(super) fn unlock_dead(&self) {
        point();
        let version = counted(self.0.load(Ordering::Relaxed) | SPLITTING);
        self.0.store(version & !(LIVE | ROOT | FIRST), Ordering::Release);
    }

    /// Takes a node that was not live into use: locked, and live. Its content has been written before.
    pub(super) fn revive(&self) {
        let version = counted(self.0.load(Ordering::Relaxed) | SPLITTING);
        self.0.store(version | LIVE | LOCKED, Ordering::Release);
    }
}

/// The version after the marked changes are counted, without marks and lock.
#[inline]
fn counted(version: u64) -> u64 {
    let mut counters = version & !FLAGS;
    if version & INSERTING != 0 {
        counters = counters & SPLITS | counters.wrapping_add(INSERTION) & INSERTIONS;
    }
    if version & SPLITTING != 0 {
        counters = counters.wrapping_add(SPLIT);
    }
    counters | version & (LIVE | ROOT | FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Version {
        let version = Version(AtomicU64::new(0));
        version.revive();
        version.unlock();
        version
    }

    #[test]
    fn a_lock_alone_changes_nothing_and_marks_are_counted() {
        let version = live();
        let seen = version.stable();
        assert_eq!(version.lock(), Some(seen));
        assert!(!version.has_changed(seen) && version.stable() == seen);
        version.unlock();
        assert!(!version.has_changed(seen));
        version.lock();
        version.mark_inserting();
        assert!(version.has_changed(seen));
        version.unlock();
        let inserted = version.stable();
        assert!(version.has_changed(seen) && !inserted.has_left(seen));
        version.lock();
        version.mark_splitting();
        version.unlock();
        assert!(version.stable().has_left(inserted));
    }

    #[test]
    fn counters_wrap_without_touching_each_other() {
        let full = Version(AtomicU64::new(INSERTIONS | LIVE | LOCKED | INSERTING));
        full.unlock();
        assert_eq!(full.stable(), Seen(LIVE));
        let full = Version(AtomicU64::new(SPLITS | LIVE | ROOT | LOCKED | SPLITTING));
        full.unlock();
        assert_eq!(full.stable(), Seen(LIVE | ROOT));
    }

    #[test]
    fn dead_nodes_are_not_locked_and_versions_do_not_come_back() {
        let version = live();
        let seen = version.stable();
        version.lock();
        version.unlock_dead();
        assert_eq!(version.lock(), None);
        assert!(!version.try_lock(version.stable()) && version.stable().has_left(seen));
        version.revive();
        version.unlock();
        assert!(version.stable() != seen && !version.try_lock(seen));
    }
}
