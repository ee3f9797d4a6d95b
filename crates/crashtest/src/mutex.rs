//! [`Mutex`]: a lock that a simulated task may hold over a call of the store.

use quipu_medium::sim::sched;
use std::sync::{LockResult, MutexGuard, PoisonError, TryLockError, TryLockResult};

/// A lock for programs under test, with the calls of [`std::sync::Mutex`], which it is outside of a crash
/// test.
///
/// All tasks of a crash test share one thread of the system. A task that waits for a lock of the standard
/// library stops that thread, and with it the task that holds the lock. This one lets the others run.
///
/// ```
/// #[cfg(not(test))]
/// use std::sync::Mutex;
/// # #[cfg(any())]
/// #[cfg(test)]
/// use quipu_crashtest::Mutex;
///
/// let next = Mutex::new(1);
/// *next.lock().unwrap() += 1;
/// ```
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// The value.
    ///
    /// # Errors
    /// As for [`lock`](Mutex::lock).
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock, while other tasks run, and takes it until the guard drops.
    ///
    /// # Errors
    /// If a task has panicked while it held the lock, as [`std::sync::Mutex::lock`].
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        sched::point();
        loop {
            match self.0.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(PoisonError::new(poisoned.into_inner())),
                Err(TryLockError::WouldBlock) if sched::simulated() => sched::spin(),
                Err(TryLockError::WouldBlock) => return self.0.lock(),
            }
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// As [`std::sync::Mutex::try_lock`].
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        sched::point();
        self.0.try_lock()
    }

    /// The value, without locking.
    ///
    /// # Errors
    /// As for [`lock`](Mutex::lock).
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}
