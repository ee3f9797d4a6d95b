//! A shared value that is replaced now and then.
//!
//! Readers must not wait and must not write to shared memory. So a read is one load of a pointer under a
//! guard. A replaced value waits until every reader that may have loaded its address has unpinned (PACMAN's
//! paper calls it an RCU-like barrier, section 3.4). A lock admits one replacement at a time, so the exchange
//! of the pointer is a plain store.

use super::participant::Guard;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicPtr, Ordering};
use std::ptr::null_mut;
use std::sync::Arc;

/// A place for a shared value that is replaced as a whole, empty at first.
///
/// All guards must be of one [`Collector`](crate::epoch::Collector). It is alone on its lines, so that
/// counters nearby cause readers no cache misses.
#[repr(align(128))]
pub struct Current<T> {
    /// The address of the value in `owner`, or null.
    pointer: AtomicPtr<T>,
    owner: SpinLock<Option<Arc<T>>>,
}

impl<T> Default for Current<T> {
    fn default() -> Current<T> {
        Current { pointer: AtomicPtr::new(null_mut()), owner: SpinLock::default() }
    }
}

impl<T: Send + Sync + 'static> Current<T> {
    /// Whether the place is empty at this moment.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pointer.load(Ordering::Relaxed).is_null()
    }

    /// The present value. It stays until the guard drops, even if it is replaced meanwhile.
    #[inline]
    pub fn get<'g>(&'g self, _guard: &'g Guard<'_>) -> Option<&'g T> {
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: the pointer is null, or `replace` stored it as the address of the value in the `Arc` in
        // `owner`. The acquiring load sees that value complete. The `Arc` leaves `owner` only in two ways.
        // `replace` stores another pointer and then defers the drop of the `Arc`, which does not happen while
        // this guard lives. Or `self` drops, which `'g` forbids. Until then the value is only shared, never
        // lent mutably.
        unsafe { pointer.as_ref() }
    }

    /// The present value, for a caller without a guard; `None` also while another thread replaces it.
    pub fn latest(&self) -> Option<Arc<T>> {
        self.owner.try_lock()?.clone()
    }

    /// Puts another value here, or none. A later collection drops the old value once no reader can see it.
    pub fn replace(&self, guard: &Guard<'_>, new: Option<T>) {
        let new = new.map(Arc::new);
        let old = {
            let mut owner = self.owner.lock();
            let pointer = new.as_ref().map_or(null_mut(), |new| Arc::as_ptr(new).cast_mut());
            self.pointer.store(pointer, Ordering::Release);
            std::mem::replace(&mut *owner, new)
        };
        if let Some(old) = old {
            guard.defer_to_anyone(Box::new(move || drop(old)));
        }
    }
}
