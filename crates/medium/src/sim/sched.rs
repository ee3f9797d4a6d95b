//! The seeded scheduler: threads of a simulated run take turns on one OS thread.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Simulated runs alive in this process; zero in production, so that a switch point is one predicted branch.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// A place where a simulated run may switch to another of its threads. Nothing outside a simulation.
#[inline]
pub fn point() {
    if RUNS.load(Ordering::Relaxed) != 0 {
        simulated_point();
    }
}

#[cold]
fn simulated_point() {}

/// A turn of a loop that waits for another thread: lets it run, in a simulation and outside.
#[inline]
pub fn spin() {
    if RUNS.load(Ordering::Relaxed) != 0 {
        simulated_point();
    } else {
        std::hint::spin_loop();
    }
}
