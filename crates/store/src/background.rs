//! The only place that starts threads.
//!
//! Work that can be divided runs on threads of the operating system, or, inside a simulated run, as further tasks of
//! that run, so that the explorer sees every interleaving of it too.

use quipu_medium::sim::sched;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Asks `test(0..count)`, on up to so many threads, and tells whether all said yes. After a no the rest may be left out.
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
