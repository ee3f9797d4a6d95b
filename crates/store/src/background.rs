//! The only place that starts threads.
//!
//! Work that can be divided runs on threads of the operating system. Inside a simulated run it runs as
//! further tasks of that run, so that the explorer sees every interleaving of it too.
//!
//! Work beside the clients, such as compaction ahead of the writers, is a [`Job`]. On a simulated medium no
//! job has a thread, and elsewhere a thread may not be available: then the writers take the same steps
//! themselves.

use crate::types::error::Error;
use quipu_medium::sim::sched;
use quipu_parts::twin::inherited;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

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

/// Where writers call a job. A call costs a system call only if the job's thread sleeps.
#[derive(Default)]
pub(crate) struct Bell {
    state: AtomicU8,
    thread: Mutex<Option<Thread>>,
}

/// States of a [`Bell`]: those of the job's thread.
const NO_THREAD: u8 = 0;
const AWAKE: u8 = 1;
const ASLEEP: u8 = 2;
const LEAVING: u8 = 3;

impl Bell {
    /// Calls the job, and tells whether it has a thread.
    #[inline]
    pub(crate) fn ring(&self) -> bool {
        match self.state.load(Ordering::Relaxed) {
            ASLEEP => {
                self.wake();
                true
            }
            state => state == AWAKE,
        }
    }

    /// Calls the job, also out of a rest, and tells whether it has a thread.
    pub(crate) fn ring_now(&self) -> bool {
        let is_there = self.ring();
        if is_there {
            self.unpark();
        }
        is_there
    }

    #[cold]
    fn wake(&self) {
        if self.change(ASLEEP, AWAKE) {
            self.unpark();
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn unpark(&self) {
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
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

/// Work of a walk that runs beside its clients.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) bell: Arc<Bell>,
    pub(crate) step: Box<dyn FnMut() -> Progress + Send>,
}

/// How long a job that cannot work rests: at first, and at most. A look for work takes longer in a larger
/// pool.
const REST: Duration = Duration::from_millis(1);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The threads of a store's jobs. They end when this is dropped.
#[derive(Default)]
pub(crate) struct Workers {
    threads: Vec<(Arc<Bell>, JoinHandle<()>)>,
}

impl Workers {
    /// Starts a thread for each job, where one is available. A job that panics ends the `admission`.
    pub(crate) fn start(jobs: Vec<Job>, admission: &Arc<Admission>) -> Workers {
        let mut workers = Workers::default();
        for job in jobs {
            let (bell, admission) = (job.bell.clone(), admission.clone());
            if admission.has_failed() || !bell.change(NO_THREAD, AWAKE) {
                continue;
            }
            let builder = thread::Builder::new().name(job.name.to_owned());
            match builder.spawn(inherited(move || run(job, &admission))) {
                Ok(thread) => workers.threads.push((bell, thread)),
                Err(_) => bell.state.store(NO_THREAD, Ordering::Release),
            }
        }
        workers
    }
}

impl Workers {
    /// Tells the threads to end.
    fn call_off(&self) {
        for (bell, _) in &self.threads {
            // A call may wake the thread between two looks at its state.
            while !bell.change(bell.state.load(Ordering::Relaxed), LEAVING) {}
            bell.unpark();
        }
    }

    /// Tells the threads to end, and waits for none of them. No other threads of these jobs are started.
    pub(crate) fn leave(&mut self) {
        self.call_off();
        self.threads.clear();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.call_off();
        for (bell, thread) in self.threads.drain(..) {
            // The thread has reported its panic, and the admission reports it for ever.
            let _ = thread.join();
            bell.change(LEAVING, NO_THREAD);
        }
    }
}

/// Notes at a bell that its thread has ended, in any way.
struct Gone(Arc<Bell>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.change(AWAKE, NO_THREAD);
    }
}

/// Works whenever the bell rings, until it is told to leave or the store has failed: DRAM may be wrong then.
fn run(job: Job, admission: &Admission) {
    let Job { bell, mut step, .. } = job;
    let _gone = Gone(bell.clone());
    let _mourner = admission.mourner();
    *bell.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
    let mut rest = REST;
    while bell.state.load(Ordering::Relaxed) != LEAVING && !admission.has_failed() {
        match step() {
            Progress::More => rest = REST,
            Progress::Stuck => {
                thread::park_timeout(rest);
                rest = (rest * 2).min(LONGEST_REST);
            }
            // The next write repeats a call that is lost in between. A call that comes at once ends the first
            // park.
            Progress::Enough if bell.change(AWAKE, ASLEEP) => {
                thread::park();
                bell.change(ASLEEP, AWAKE);
            }
            Progress::Enough => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that never rests.
    fn job(bell: &Arc<Bell>) -> Job {
        Job { name: "restless", bell: bell.clone(), step: Box::new(|| Progress::More) }
    }

    /// DRAM may be wrong then, and a cleaner frees segments that it believes dead.
    #[test]
    fn a_store_that_has_failed_has_no_jobs() {
        let (admission, bell) = (Arc::<Admission>::default(), Arc::<Bell>::default());
        let workers = Workers::start(vec![job(&bell)], &admission);
        assert!(bell.ring() && admission.admit().is_ok());
        let publisher = admission.clone();
        let published = thread::spawn(move || {
            let _mourner = publisher.mourner();
            panic!("a publication that fails");
        });
        assert!(published.join().is_err());
        while bell.ring() {
            thread::yield_now();
        }
        assert!(matches!(admission.admit(), Err(Error::BackgroundFailed)));
        drop(workers);
        assert!(Workers::start(vec![job(&bell)], &admission).threads.is_empty());
    }
}
