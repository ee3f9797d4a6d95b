//! Waiting and locking, in one place, so that a simulated run can replay every interleaving from its seed.
//!
//! No lock outside this module may block: the simulator runs all threads of a run on one OS thread, and a wait it
//! does not know of would never end. So every wait is a loop around [`Waiter::wait`], and every
//! acquisition is a point where the simulator may switch threads. The locks protect short critical sections
//! (tens of nanoseconds to one persist), for which spinning is also the fastest choice.
//!
//! The simulator switches threads at the points it is told of and shows every one the same memory. What a processor may
//! reorder it cannot show; `loom` can. Code that takes its atomics from [`atomic`] is checked by it when the crate is
//! built with `--cfg loom` (`tests/loom_*.rs`).

pub use quipu_medium::sim::sched::point;

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

/// Atomics of the standard library, or of the model checker in their place.
pub mod atomic {
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

    #[cfg(loom)]
    pub use checked::fence;
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    #[cfg(loom)]
    pub mod checked {
        //! A fence that can be left out, for a twin that the model checker must convict.

        use loom::sync::atomic::Ordering;

        /// The line of the fence that is left out; none if it is zero.
        pub static LEFT_OUT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

        /// The fence of the model, unless it is left out.
        #[track_caller]
        pub fn fence(order: Ordering) {
            if std::panic::Location::caller().line() != LEFT_OUT.load(std::sync::atomic::Ordering::Relaxed) {
                loom::sync::atomic::fence(order);
            }
        }
    }
}

/// Whether this thread is unwinding: what it drops has not come to its end.
#[inline]
pub fn panicking() -> bool {
    std::thread::panicking()
}

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
        #[cfg(loom)]
        {
            loom::skip_branch();
            loom::thread::yield_now();
        }
        const SPINS: u32 = 128;
        quipu_medium::sim::sched::spin();
        self.turns += 1;
        if self.turns > SPINS {
            std::thread::yield_now();
        }
    }
}

/// Something that many threads write, alone on its cache lines (two, because processors fetch lines in pairs), so that nobody
/// who reads what stands beside it waits for its line.
#[derive(Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// A mutual-exclusion lock for short critical sections.
#[derive(Default)]
pub struct SpinLock<T> {
    #[cfg(not(loom))]
    locked: AtomicBool,
    /// The model knows who waits for its own locks; turns of a spinning one it would try out for ever.
    #[cfg(loom)]
    locked: loom::sync::Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one `&mut T` at a time, so sharing the lock needs no more than sending the value.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// A new, unlocked lock.
    pub fn new(value: T) -> SpinLock<T> {
        SpinLock { locked: Default::default(), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock and takes it until the guard drops.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        point();
        // A thread that the model has convicted still releases what it holds.
        #[cfg(loom)]
        let held = self.locked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        #[cfg(not(loom))]
        {
            let mut waiter = Waiter::default();
            while self.locked.swap(true, Ordering::Acquire) {
                while self.locked.load(Ordering::Relaxed) {
                    waiter.wait();
                }
            }
        }
        SpinGuard {
            lock: self,
            value: PhantomData,
            #[cfg(loom)]
            _held: held,
        }
    }

    /// Takes the lock if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        point();
        #[cfg(loom)]
        let held = self.locked.try_lock().ok()?;
        #[cfg(not(loom))]
        if self.locked.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(SpinGuard {
            lock: self,
            value: PhantomData,
            #[cfg(loom)]
            _held: held,
        })
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
    #[cfg(loom)]
    _held: loom::sync::MutexGuard<'a, ()>,
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

#[cfg(not(loom))]
impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
    }
}
