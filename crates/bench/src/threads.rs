//! Work on several threads at once.

use quipu::internals::twin::inherited;
use std::panic::resume_unwind;

/// Runs `work` on so many threads at once, and returns their answers in order. A panic of one of them goes on
/// here: its message says more than that it panicked.
pub fn on_threads<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let spawned: Vec<_> =
            (0..threads).map(|thread| scope.spawn(inherited(move || work(thread)))).collect();
        spawned.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
