//! Closures of updates: what they call while their key is locked.
//!
//! A closure that writes to its own store would wait for its own lock, or for another closure that waits for
//! it. So each write, and each call that may wait for writers, is refused inside of it. Reads take no lock
//! that a closure is under, and are allowed.

use crate::engine::Engine;
use crate::types::error::Error;
use quipu_medium::sim::sched;
use std::ptr::from_ref;

/// The mark of the closures of a store.
pub(super) fn mark_of(engine: &dyn Engine) -> usize {
    from_ref(engine).addr()
}

/// Runs a piece of a caller's code while a key of the store with this mark is locked.
#[inline]
pub(super) fn run<R>(mark: usize, closure: impl FnOnce() -> R) -> R {
    sched::marked(mark, closure)
}

/// Refuses a call inside of a closure of an update of the same store, by the same thread or task.
#[inline]
pub(super) fn refuse<'e>(engine: impl FnOnce() -> &'e dyn Engine) -> Result<(), Error> {
    if sched::is_marked() && is_inside(engine()) { Err(Error::InsideUpdate) } else { Ok(()) }
}

/// Whether the caller is inside of such a closure.
#[cold]
pub(super) fn is_inside(engine: &dyn Engine) -> bool {
    sched::is_marked_as(mark_of(engine))
}
