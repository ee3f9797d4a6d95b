//! The state of a node, one word in DRAM: its lock, its version, and whether all of it is durable.
//!
//! A reader looks at it before and after it reads the node. If the state is the same and *quiet*, nothing was
//! changed meanwhile, and the words that it read are durable. A writer holds the lock from before its first
//! store until after its last fence, and unflushed values are counted. If the state is the same and not
//! quiet, the reader has seen the work of at most one writer, whose direction it knew, and makes the node
//! durable. This is the switch counter of the paper (FAST'18, section 4), with the lock that the paper has in
//! PM.
//!
//! ```text
//! bit 0         locked
//! bit 1         the one who holds the lock moves entries to the left
//! bit 2         settled: durable as it stands, and free of what a crash may have left
//! bit 3         known: in use, or free, or about to be; not left over from an earlier run
//! bit 4         retired: out of the tree, until nobody can reach it any more
//! bits 5..=20   values that have been replaced and not flushed
//! bits 21..=63  version: one more after each use of the lock
//! ```

use crate::sync::{Waiter, point};
use std::sync::atomic::{AtomicU64, Ordering, fence};

const LOCKED: u64 = 1;
const LEFT: u64 = 1 << 1;
const SETTLED: u64 = 1 << 2;
const KNOWN: u64 = 1 << 3;
const RETIRED: u64 = 1 << 4;
const UNFLUSHED: u64 = 1 << 5;
const UNFLUSHED_MASK: u64 = 0xFFFF * UNFLUSHED;
const VERSION: u64 = 1 << 21;

/// A state as a look saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen(u64);

impl Seen {
    /// Whether all that stands in the node is durable.
    #[inline]
    pub(super) fn is_quiet(self) -> bool {
        self.0 & (LOCKED | SETTLED | UNFLUSHED_MASK) == SETTLED
    }

    pub(super) fn is_left(self) -> bool {
        self.0 & LEFT != 0
    }

    pub(super) fn is_settled(self) -> bool {
        self.0 & SETTLED != 0
    }

    pub(super) fn is_retired(self) -> bool {
        self.0 & RETIRED != 0
    }

    pub(super) fn is_known(self) -> bool {
        self.0 & KNOWN != 0
    }
}

/// The state of a node. It is changed by single atomic steps only, since counts change without the lock.
#[derive(Default)]
pub(super) struct State(AtomicU64);

impl State {
    /// The state, before the node is read.
    #[inline]
    pub(super) fn before(&self) -> Seen {
        point();
        Seen(self.0.load(Ordering::Acquire))
    }

    /// The state, after the node has been read.
    #[inline]
    pub(super) fn after(&self) -> Seen {
        point();
        // The loads before must not be taken for later than this one.
        fence(Ordering::Acquire);
        Seen(self.0.load(Ordering::Relaxed))
    }

    /// Takes the lock if nobody has it.
    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        point();
        let state = self.0.load(Ordering::Relaxed);
        let is_free = state & LOCKED == 0;
        let locked = || self.0.compare_exchange(state, state | LOCKED, Ordering::Acquire, Ordering::Relaxed);
        let is_ours = is_free && locked().is_ok();
        if is_ours {
            // Stores to the node must not be seen before the lock.
            fence(Ordering::Release);
        }
        is_ours
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub(super) fn lock(&self) {
        let mut waiter = Waiter::default();
        while !self.try_lock() {
            waiter.wait();
        }
    }

    /// Gives the lock back.
    #[inline]
    pub(super) fn unlock(&self) {
        let left = self.0.load(Ordering::Relaxed) & LEFT;
        self.0.fetch_add(VERSION - LOCKED - left, Ordering::Release);
    }

    /// From here on the holder of the lock moves entries to the left.
    pub(super) fn turn_left(&self) {
        self.0.fetch_or(LEFT, Ordering::AcqRel);
        fence(Ordering::Release);
    }

    /// The node is durable as it stands, and in the tree.
    pub(super) fn settle(&self) {
        self.0.fetch_or(SETTLED | KNOWN, Ordering::AcqRel);
    }

    /// The node is out of the tree. The caller holds the lock.
    pub(super) fn retire(&self) {
        self.0.fetch_or(RETIRED | KNOWN, Ordering::AcqRel);
        self.0.fetch_and(!SETTLED, Ordering::AcqRel);
    }

    /// The node is used again.
    pub(super) fn reuse(&self) {
        self.0.fetch_and(!(RETIRED | SETTLED), Ordering::AcqRel);
        self.0.fetch_or(KNOWN, Ordering::AcqRel);
    }

    /// Counts a value that will not be flushed; false if there are too many. The caller holds the lock.
    pub(super) fn add_unflushed(&self) -> bool {
        let add = |state: u64| (state & UNFLUSHED_MASK != UNFLUSHED_MASK).then(|| state + UNFLUSHED);
        let is_counted = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, add).is_ok();
        fence(Ordering::Release);
        is_counted
    }

    /// One of those is durable now.
    pub(super) fn remove_unflushed(&self) {
        self.0.fetch_sub(UNFLUSHED, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_quiet_only_if_nothing_is_left_to_do() {
        let state = State::default();
        assert!(!state.before().is_quiet() && !state.before().is_settled());
        state.lock();
        assert!(!state.try_lock());
        state.settle();
        assert!(!state.before().is_quiet());
        state.turn_left();
        assert!(state.before().is_left());
        state.unlock();
        let quiet = state.before();
        assert!(quiet.is_quiet() && !quiet.is_left() && quiet.is_known());
        state.lock();
        assert!(state.add_unflushed());
        state.unlock();
        assert!(!state.after().is_quiet());
        state.remove_unflushed();
        assert!(state.after().is_quiet() && state.after() != quiet, "another version");
        state.retire();
        assert!(state.before().is_retired() && !state.before().is_quiet());
        state.reuse();
        assert!(!state.before().is_retired() && !state.before().is_settled());
    }

    #[test]
    fn counts_do_not_run_over() {
        let state = State::default();
        assert!((0..0xFFFF).all(|_| state.add_unflushed()));
        assert!(!state.add_unflushed());
        state.remove_unflushed();
        assert!(state.add_unflushed() && state.try_lock());
    }
}
