//! A lock around the simulator's state.
//!
//! An operation holds it for a few instructions, and never across a switch of tasks or a call of the
//! observer. A simulated run has one OS thread, so there the lock is always free. It keeps a `Region` safe to
//! share: a test may use a simulated region from real threads, which then take turns here.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Latch<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one guard at a time hands out the value, so sharing the latch needs no more than sending the value.
unsafe impl<T: Send> Sync for Latch<T> {}

impl<T> Latch<T> {
    pub(crate) fn new(value: T) -> Latch<T> {
        Latch { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn hold(&self) -> Held<'_, T> {
        while self.held.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
            std::thread::yield_now();
        }
        Held { latch: self }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

pub(crate) struct Held<'a, T> {
    latch: &'a Latch<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this thread holds the latch.
        unsafe { &*self.latch.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the reference unique.
        unsafe { &mut *self.latch.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.latch.held.store(false, Ordering::Release);
    }
}
