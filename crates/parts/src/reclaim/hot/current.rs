//! The thing that is looked at now, of which another takes the place now and then.
//!
//! Whoever looks must not wait and must not write to shared memory. So a look is one load of a pointer under a guard, and what
//! was replaced waits until nobody who might have loaded its address is still pinned (section 3.4 of the paper calls it an
//! RCU-like barrier). Only one replaces at a time, under a lock, so the exchange of the pointer is a plain store.

use crate::epoch::Guard;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicPtr, Ordering};
use std::ptr::null_mut;
use std::sync::Arc;

/// A place for a shared thing that is replaced as a whole, empty at first.
///
/// All guards must be of one [`Collector`](crate::epoch::Collector). Alone on its lines: who looks should not miss because of
/// what others count nearby.
#[repr(align(128))]
pub struct Current<T> {
    /// What `owner` owns, or null.
    pointer: AtomicPtr<T>,
    owner: SpinLock<Option<Arc<T>>>,
}

impl<T> Default for Current<T> {
    fn default() -> Current<T> {
        Current { pointer: AtomicPtr::new(null_mut()), owner: SpinLock::default() }
    }
}

impl<T: Send + Sync + 'static> Current<T> {
    /// Whether nothing is here at this moment.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pointer.load(Ordering::Relaxed).is_null()
    }

    /// What is here now. It stays until the guard drops, even if it is replaced meanwhile.
    #[inline]
    pub fn get<'g>(&'g self, _guard: &'g Guard<'_>) -> Option<&'g T> {
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: the pointer is null or was stored by `replace`, as the address of what an `Arc` in `owner` holds; the
        // acquiring load sees it complete. That `Arc` leaves `owner` only in `replace`, after another pointer has been stored,
        // for a deferral, which does not drop it while this guard lives; or when `self` drops, which `'g` forbids. It is
        // only shared until then, never lent mutably.
        unsafe { pointer.as_ref() }
    }

    /// Puts something else here, or nothing. What was here is dropped by whoever collects once nobody can look at it any more.
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
