//! The only place that starts threads.
//!
//! Work that can be divided runs on threads of the operating system, or, inside a simulated run, as further tasks of
//! that run, so that the explorer sees every interleaving of it too.

use quipu_medium::sim::sched;

/// Runs `work(0..threads)`, each on a thread of its own, and returns when all have ended.
pub(crate) fn in_parallel(threads: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    if sched::simulated() {
        sched::join_all(
            (0..threads).map(|i| Box::new(move || work(i)) as Box<dyn FnOnce() + Send + '_>).collect(),
        );
    } else if threads <= 1 {
        work(0);
    } else {
        std::thread::scope(|scope| {
            for i in 0..threads {
                scope.spawn(move || work(i));
            }
        });
    }
}
