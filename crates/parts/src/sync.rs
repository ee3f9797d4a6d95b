//! Waiting and locking, in one place, so that a simulated run can replay every interleaving from its seed.
//!
//! No lock outside this module may block: the simulator runs all threads of a run on one OS thread, and a wait it
//! does not know of would never end. So every wait is a loop around [`Waiter::wait`], and every
//! acquisition is a point where the simulator may switch threads. The locks protect short critical sections
//! (tens of nanoseconds to one persist), for which spinning is also the fastest choice.

pub use quipu_medium::sim::sched::point;

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Patience of a loop that waits for another thread: spins first, then offers the processor to others, since on a
/// machine with fewer cores than threads the one waited for may not be running.
#[derive(Default)]
pub struct Waiter {
    turns: u32,
}

impl Waiter {
    /// Lets some time pass; in a simulation, lets another thread run.
    #[inline]
    pub fn wait(&mut self) {
        const SPINS: u32 = 128;
        quipu_medium::sim::sched::spin();
        self.turns += 1;
        if self.turns > SPINS {
            std::thread::yield_now();
        }
    }
}

/// A mutual-exclusion lock for short critical sections.
#[derive(Default)]
pub struct SpinLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one `&mut T` at a time, so sharing the lock needs no more than sending the value.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// A new, unlocked lock.
    pub const fn new(value: T) -> SpinLock<T> {
        SpinLock { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock and takes it until the guard drops.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        point();
        let mut waiter = Waiter::default();
        while self.locked.swap(true, Ordering::Acquire) {
            while self.locked.load(Ordering::Relaxed) {
                waiter.wait();
            }
        }
        SpinGuard { lock: self, value: PhantomData }
    }

    /// The value, without locking, when no one else can hold the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Holds a [`SpinLock`].
pub struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
    /// Sharing the guard shares the value, which the lock alone would let pass for any value that can be sent.
    value: PhantomData<&'a mut T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the reference unique.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
    }
}
