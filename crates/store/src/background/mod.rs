//! The only place that starts threads.
//!
//! Work that can be divided runs on threads of the operating system. Inside a simulated run it runs as
//! further tasks of that run, so that the explorer sees every interleaving of it too.
//!
//! Work beside the clients, such as compaction ahead of the writers, is a [`Job`]. The jobs of all stores of
//! the process share the threads of one [crew]. On a simulated medium no job has a thread, and elsewhere a
//! thread may not be available: then the writers take the same steps themselves.

mod bell;
mod crew;
mod workers;

pub(crate) use bell::Bell;
use workers::Helpers;
pub(crate) use workers::Workers;

use crate::types::error::Error;
use quipu_medium::sim::sched;
use quipu_parts::twin::inherited;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;

/// Calls `test(0..count)` on up to so many threads. Returns whether all calls returned `true`. After a
/// `false` the remaining calls may be left out.
pub(crate) fn all(threads: usize, count: usize, test: impl Fn(usize) -> bool + Sync) -> bool {
    let (next, refused) = (AtomicUsize::new(0), AtomicBool::new(false));
    in_parallel(threads.clamp(1, count.max(1)), |_| {
        while !refused.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            if !test(number) {
                refused.store(true, Ordering::Relaxed);
            }
        }
    });
    !refused.into_inner()
}

/// Runs `work(0..threads)`, each on its own thread, and returns when all have ended. Those for which the
/// system has no thread run one after the other on this one.
pub(crate) fn in_parallel(threads: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    if sched::simulated() {
        sched::join_all(
            (0..threads).map(|i| Box::new(move || work(i)) as Box<dyn FnOnce() + Send + '_>).collect(),
        );
    } else if threads <= 1 {
        work(0);
    } else {
        thread::scope(|scope| {
            let spawn = |i: usize| thread::Builder::new().spawn_scoped(scope, inherited(move || work(i)));
            let left: Vec<usize> = (0..threads).filter(|i| spawn(*i).is_err()).collect();
            left.into_iter().for_each(work);
        });
    }
}

/// Calls `work(0..count)` beside the clients, on this thread and on others, and returns when all calls have
/// ended. All stores together have few other threads for this.
pub(crate) fn in_pieces(count: usize, work: impl Fn(usize) + Sync) {
    if sched::simulated() {
        return in_parallel(count, work);
    }
    let helpers = Helpers::of(count.saturating_sub(1));
    let (next, work) = (AtomicUsize::new(0), &work);
    let some = || {
        let pieces = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        pieces.take_while(|piece| *piece < count).for_each(work);
    };
    thread::scope(|scope| {
        for _ in 0..helpers.count() {
            // If the system has no thread, the others do its part.
            let Ok(_) = thread::Builder::new().spawn_scoped(scope, inherited(some)) else { break };
        }
        some();
    });
}

/// Decides who may write: all clients, until the store fails; none if it is open for reading only.
#[derive(Default)]
pub(crate) struct Admission {
    state: AtomicU8,
}

/// States of an [`Admission`].
const OPEN: u8 = 0;
const READ_ONLY: u8 = 1;
const FAILED: u8 = 2;

impl Admission {
    /// Admits a write, before it changes anything. Every kind of write calls this.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], or [`Error::BackgroundFailed`] as [`has_failed`](Admission::has_failed).
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), Error> {
        let state = self.state.load(Ordering::Relaxed);
        if state != OPEN { Err(refused(state)) } else { Ok(()) }
    }

    /// Admits no write from now on.
    pub(crate) fn shut(&self) {
        self.state.store(READ_ONLY, Ordering::Relaxed);
    }

    /// Whether a job has panicked, or a thread that published a write.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FAILED
    }

    /// Admits no more writes once the owner of the result panics, unless it was [dismissed](Mourner::dismiss)
    /// before.
    #[inline]
    pub(crate) fn mourner(&self) -> Mourner<'_> {
        Mourner(self)
    }
}

#[cold]
fn refused(state: u8) -> Error {
    if state == READ_ONLY { Error::ReadOnly } else { Error::BackgroundFailed }
}

pub(crate) struct Mourner<'a>(&'a Admission);

impl Mourner<'_> {
    /// The owner has succeeded; costs nothing.
    #[inline]
    pub(crate) fn dismiss(self) {
        std::mem::forget(self);
    }
}

impl Drop for Mourner<'_> {
    #[cold]
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.store(FAILED, Ordering::Release);
        }
    }
}

/// The result of a piece of a job's work.
pub(crate) enum Progress {
    /// There may be more to do.
    More,
    /// There is nothing to do until a writer calls.
    Enough,
    /// There is work that cannot be done now.
    Stuck,
}

/// The name of the jobs that answer the requests of scans.
pub(crate) const READER: &str = "quipu-reader";

/// How long a step of a job takes, and who takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// Milliseconds at most, on a thread that all jobs share.
    Brief,
    /// As long as a device needs for what is in the pool. Writers may wait for room from it, so it does not
    /// wait for one of the longest.
    Long,
    /// As long as a device needs for what is on the levels.
    Longest,
    /// On a thread of its own: it has to run on one node, or somebody waits for its answer.
    Apart,
}

impl Steps {
    /// Lengths of steps.
    const LENGTHS: usize = 3;

    fn length(self) -> usize {
        match self {
            Steps::Brief | Steps::Apart => 0,
            Steps::Long => 1,
            Steps::Longest => 2,
        }
    }
}

/// Work of a walk that runs beside its clients.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) steps: Steps,
    pub(crate) bell: Arc<Bell>,
    pub(crate) step: Box<dyn FnMut() -> Progress + Send>,
}

#[cfg(test)]
mod tests;
