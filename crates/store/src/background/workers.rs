//! [`Workers`]: the jobs of one store.

use super::bell::{LEAVING, NOBODY};
use super::crew::{Crew, Number, lock};
use super::{Admission, Job, Steps};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

/// The crew of the process, while a store has jobs in it.
static SHARED: Mutex<Option<Arc<Crew>>> = Mutex::new(None);

/// Threads of the crew, if no store names a number: as many as processors. From three on, a compaction of
/// levels, a dump and a cleaner go on beside each other. A large machine is not to be full of them.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from).clamp(3, 8));

/// The jobs of a store that have threads. They leave when this is dropped.
#[derive(Default)]
pub(crate) struct Workers {
    jobs: Vec<(Arc<Crew>, Vec<Number>)>,
}

impl Workers {
    /// Starts the jobs of a store, where a thread is available. It names so many threads for those of all
    /// stores. A job that panics ends the `admission`.
    pub(crate) fn start(jobs: Vec<Job>, admission: &Arc<Admission>, threads: Option<usize>) -> Workers {
        let mut workers = Workers::default();
        if admission.has_failed() {
            return workers;
        }
        let (apart, shared): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.steps == Steps::Apart);
        for job in apart {
            let crew = Crew::new(job.name);
            crew.join(1);
            workers.add(crew, vec![job], admission);
        }
        if !shared.is_empty() {
            let crew = {
                let mut crew = lock(&SHARED);
                let crew = crew.get_or_insert_with(|| Crew::new("quipu-worker"));
                crew.join(threads.unwrap_or(*THREADS).max(1));
                crew.clone()
            };
            workers.add(crew, shared, admission);
        }
        workers
    }

    /// Gives jobs their seats in a crew that the store has joined.
    pub(super) fn add(&mut self, crew: Arc<Crew>, jobs: Vec<Job>, admission: &Arc<Admission>) {
        let numbers = jobs.into_iter().filter_map(|job| crew.admit(job, admission)).collect();
        self.jobs.push((crew, numbers));
    }

    /// Calls the jobs off, and waits for none of them. No other threads take them any more.
    pub(crate) fn leave(&mut self) {
        for (crew, numbers) in self.jobs.drain(..) {
            crew.call_off(&numbers, LEAVING);
            leave(&crew);
        }
    }
}

/// A store leaves a crew. Returns whether it was the last one.
fn leave(crew: &Arc<Crew>) -> bool {
    let mut shared = lock(&SHARED);
    let is_last = crew.leave();
    // Nobody may join a crew whose threads end.
    shared.take_if(|shared| is_last && Arc::ptr_eq(shared, crew));
    is_last
}

/// Threads of all stores that help with a piece of work of a job.
static HELPING: AtomicUsize = AtomicUsize::new(0);

/// Threads that may help, until this drops.
pub(super) struct Helpers(usize);

impl Helpers {
    /// So many, or as many as are left: all together are fewer than the crew's.
    pub(super) fn of(wanted: usize) -> Helpers {
        let most = lock(&SHARED).as_ref().map_or(*THREADS, |crew| crew.most()) - 1;
        let more = |helping: usize| Some(helping + wanted.min(most.saturating_sub(helping)));
        match HELPING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(before) | Err(before) => Helpers(wanted.min(most.saturating_sub(before))),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.0
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        HELPING.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for (crew, numbers) in &self.jobs {
            crew.call_off(numbers, NOBODY);
        }
        for (crew, numbers) in self.jobs.drain(..) {
            crew.wait_for(&numbers);
            if leave(&crew) {
                crew.wait_for_all();
            }
        }
    }
}
