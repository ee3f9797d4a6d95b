//! Waits and locks, all in one place, so that a simulated run can replay every interleaving from its seed.
//!
//! No lock outside this module may block. The simulator runs all threads of a run on one OS thread, so a wait
//! that it does not know of would never end. Every wait is therefore a loop around [`Waiter::wait`], and
//! every acquisition is a point where the simulator may switch threads. The locks protect short critical
//! sections (from tens of nanoseconds to one persist), for which spinning is also the fastest choice.
//!
//! The simulator switches threads at these points and shows all threads the same memory. It cannot show what
//! a processor may reorder; `loom` can. Code that takes its atomics from [`atomic`] is checked by `loom` when
//! the crate is built with `--cfg loom` (`tests/loom_*.rs`).

pub use quipu_medium::sim::sched::point;

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

/// A place between two looks that must come in one order, or between two changes. A simulated run may switch
/// threads here, and real threads may dawdle. Nothing without the feature `twins`: such places are on the
/// shortest paths.
#[inline(always)]
pub fn between_looks() {
    if crate::twin::ARE_THERE {
        quipu_medium::sim::sched::look();
        crate::twin::dawdle();
    }
}

/// The atomics of the standard library, or those of the model checker.
pub mod atomic {
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

    #[cfg(loom)]
    pub use checked::fence;
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering};

    #[cfg(loom)]
    pub mod checked {
        //! A fence that a test can leave out, for twins that the model checker must convict.

        use loom::sync::atomic::Ordering;

        /// The line of the fence to leave out; zero for none.
        pub static LEFT_OUT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

        /// The fence of the model, unless it is the one to leave out.
        #[track_caller]
        pub fn fence(order: Ordering) {
            if std::panic::Location::caller().line() != LEFT_OUT.load(std::sync::atomic::Ordering::Relaxed) {
                loom::sync::atomic::fence(order);
            }
        }
    }
}

/// Whether this thread is unwinding: a value that drops now was not used to its end.
#[inline]
pub fn panicking() -> bool {
    std::thread::panicking()
}

/// The patience of a loop that waits for another thread. It spins first, and then yields the processor: with
/// fewer cores than threads, the other thread may not be running.
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
        // A simulated thread waits for another one of the same thread of the system.
        if self.turns > SPINS && !quipu_medium::sim::sched::simulated() {
            std::thread::yield_now();
        }
    }
}

/// A value that many threads write, alone on two cache lines, because processors fetch lines in pairs.
/// Readers of its neighbours then do not wait for its line.
#[derive(Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// A mutual-exclusion lock for short critical sections.
#[derive(Default)]
pub struct SpinLock<T> {
    #[cfg(not(loom))]
    locked: AtomicBool,
    /// The model must know the waiters of its locks: it would explore the turns of a spinning waiter for
    /// ever.
    #[cfg(loom)]
    locked: loom::sync::Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one `&mut T` at a time, so sharing the lock needs no more than sending the
// value.
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
        // The model's lock would panic again in a thread that the model has convicted.
        #[cfg(loom)]
        let held = (!panicking()).then(|| self.locked.lock().expect("no panic outside a conviction"));
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

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        point();
        #[cfg(loom)]
        let held = Some(self.locked.try_lock().ok()?);
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

    /// The value, without locking: `&mut self` proves that no thread holds the lock.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Holds a [`SpinLock`].
pub struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
    /// Sharing the guard shares the value, so the guard must not be `Sync` for a value that can only be sent.
    value: PhantomData<&'a mut T>,
    #[cfg(loom)]
    _held: Option<loom::sync::MutexGuard<'a, ()>>,
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
