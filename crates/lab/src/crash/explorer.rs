//! Explores runs until enough states have been judged, on several threads of the machine at once.

use super::report::{CrashConfig, CrashReport, Violation};
use super::run::{Label, Run};
use quipu_medium::sim::SimArena;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Violations kept in full; exploration stops at so many.
const DETAILS: usize = 10;

/// What the exploring threads share.
pub(super) struct Shared {
    target: u64,
    images: Mutex<HashSet<u64>>,
    states: AtomicU64,
    nested: AtomicU64,
    recovering: AtomicU64,
    growing: AtomicU64,
    compacting: AtomicU64,
    closing: AtomicU64,
    checkpoints: AtomicU64,
    operations: AtomicU64,
    violations: Mutex<Vec<Violation>>,
}

impl Shared {
    fn new(target: u64) -> Shared {
        Shared {
            target,
            images: Mutex::default(),
            states: AtomicU64::new(0),
            nested: AtomicU64::new(0),
            recovering: AtomicU64::new(0),
            growing: AtomicU64::new(0),
            compacting: AtomicU64::new(0),
            closing: AtomicU64::new(0),
            checkpoints: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            violations: Mutex::default(),
        }
    }

    pub(super) fn add_operations(&self, operations: u64) {
        self.operations.fetch_add(operations, Ordering::Relaxed);
    }

    /// Counts a state, unless the same image was counted before.
    pub(super) fn count(&self, image: u64, label: &Label) {
        let Label { depth, growing, recovering, compacting, closing, .. } = *label;
        let nested = depth > 0;
        if self.images.lock().expect("no panic while counting").insert(image) {
            self.states.fetch_add(1, Ordering::Relaxed);
            self.nested.fetch_add(nested as u64, Ordering::Relaxed);
            self.recovering.fetch_add(recovering as u64, Ordering::Relaxed);
            self.growing.fetch_add(growing as u64, Ordering::Relaxed);
            self.compacting.fetch_add(compacting as u64, Ordering::Relaxed);
            self.closing.fetch_add(closing as u64, Ordering::Relaxed);
        }
    }

    /// Counts a state that was opened from its checkpoint.
    pub(super) fn count_checkpoint(&self) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn report(&self, violation: Violation) {
        self.violations.lock().expect("no panic while reporting").push(violation);
    }

    /// Whether enough was seen.
    pub(super) fn is_done(&self) -> bool {
        self.states.load(Ordering::Relaxed) >= self.target
            || self.violations.lock().expect("no panic while reporting").len() >= DETAILS
    }
}

/// Explores. `progress` is told the states judged so far and in all, from one thread.
pub fn explore(config: &CrashConfig, progress: &mut dyn FnMut(u64, u64)) -> CrashReport {
    let begun = Instant::now();
    let shared = Shared::new(config.states);
    let next = AtomicU64::new(0);
    let limit = config.runs.unwrap_or(u64::MAX);
    std::thread::scope(|scope| {
        let explore = || {
            let mut arena = SimArena::new();
            while !shared.is_done() {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= limit {
                    break;
                }
                Run::new(config, &shared, &mut arena, config.seed.wrapping_add(run)).explore();
            }
        };
        let workers: Vec<_> = (0..config.workers).map(|_| scope.spawn(explore)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            progress(shared.states.load(Ordering::Relaxed), config.states);
        }
    });
    let details = shared.violations.into_inner().expect("no panic while reporting");
    CrashReport {
        design: config.design.to_string(),
        seed: config.seed,
        operations: shared.operations.into_inner(),
        states: shared.states.into_inner(),
        nested: shared.nested.into_inner(),
        during_compaction: shared.compacting.into_inner(),
        during_recovery: shared.recovering.into_inner(),
        during_growth: shared.growing.into_inner(),
        during_close: shared.closing.into_inner(),
        from_checkpoint: shared.checkpoints.into_inner(),
        violations: details.len() as u64,
        runs: next.into_inner().min(limit),
        seconds: begun.elapsed().as_secs_f64(),
        details,
    }
}
