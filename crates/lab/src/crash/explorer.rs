//! Explores runs until enough states have been judged, on several threads of the machine at once.

use super::answers::History;
use super::moment::{KINDS, Label};
use super::pool::Pool;
use super::report::{CrashConfig, CrashReport, Violation};
use super::run::Run;
use quipu::Error;
use quipu_medium::sim::SimArena;
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Exploration, or a run of it, stops at so many violations.
pub(super) const DETAILS: usize = 10;

/// The findings of one run.
#[derive(Default)]
pub(super) struct Findings {
    /// The states that it judged, by their images.
    pub(super) states: Vec<(u64, Label)>,
    /// States that were opened from their checkpoint.
    pub(super) checkpoints: u64,
    /// Transactions that committed.
    pub(super) commits: u64,
    /// Puts that returned for others, which had overwritten them.
    pub(super) eliminated: u64,
    /// Operations that its workloads carried out.
    pub(super) operations: u64,
    /// Rules that were broken.
    pub(super) violations: Vec<Violation>,
}

/// The findings of all runs, taken in the order of the runs: what an exploration finds does not depend on
/// which thread is faster.
#[derive(Default)]
struct Merged {
    report: CrashReport,
    images: HashSet<u64>,
    /// Runs that ended before one of smaller number did.
    early: BTreeMap<u64, Findings>,
}

impl Merged {
    fn add(&mut self, run: u64, findings: Findings, states: u64) {
        self.early.insert(run, findings);
        while !self.is_done(states)
            && let Some(findings) = self.early.remove(&self.report.runs)
        {
            let report = &mut self.report;
            report.runs += 1;
            report.operations += findings.operations;
            report.from_checkpoint += findings.checkpoints;
            report.commits += findings.commits;
            report.eliminated += findings.eliminated;
            report.details.extend(findings.violations);
            for (_, label) in findings.states.iter().filter(|(image, _)| self.images.insert(*image)) {
                report.states += 1;
                for kind in &KINDS {
                    *report.kinds.entry(kind.name).or_default() += (kind.holds)(label) as u64;
                }
            }
        }
    }

    /// Whether enough was seen.
    fn is_done(&self, states: u64) -> bool {
        self.report.states >= states || self.report.details.len() >= DETAILS
    }
}

/// Explores. `progress` is told the states judged so far and in all, from one thread.
///
/// # Errors
/// [`Error::Option`] for a setting that the design does not have or that every run chooses for itself, and
/// for a value that it does not take.
pub fn explore(config: &CrashConfig, progress: &mut dyn FnMut(u64, u64)) -> Result<CrashReport, Error> {
    Pool::check(config)?;
    let begun = Instant::now();
    let merged = Mutex::new(Merged::default());
    let locked = || merged.lock().expect("no panic while merging");
    let next = AtomicU64::new(0);
    let (limit, states) = (config.histories.or(config.runs).unwrap_or(u64::MAX), config.most_states());
    let most = config.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let is_late = || most.is_some_and(|most| begun.elapsed() >= most);
    std::thread::scope(|scope| {
        let explore = || {
            let mut arena = SimArena::new();
            while !locked().is_done(states) {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= limit {
                    break;
                }
                let seed = config.seed.wrapping_add(run);
                let findings = match config.histories {
                    Some(_) => History::new(config, &mut arena, seed).explore(),
                    None => Run::new(config, &mut arena, seed).explore(),
                };
                locked().add(run, findings, states);
                // Behind a run, so that there is something to tell.
                if is_late() {
                    break;
                }
            }
        };
        let workers: Vec<_> = (0..config.workers).map(|_| scope.spawn(explore)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            progress(locked().report.states.min(states), states);
        }
    });
    let Merged { mut report, early, .. } = merged.into_inner().expect("no panic while merging");
    // Runs that were not needed any more; what they convicted of counts all the same.
    report.details.extend(early.into_values().flat_map(|findings| findings.violations));
    report.violations = report.details.len() as u64;
    report.design = config.design.to_string();
    report.seed = config.seed;
    KINDS.iter().for_each(|kind| _ = report.kinds.entry(kind.name).or_default());
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}
