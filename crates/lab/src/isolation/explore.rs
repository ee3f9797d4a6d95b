//! [`explore`]: many small histories, each on a store of its own, and each judged.

use super::config::{IsolationConfig, IsolationReport, MERGING};
use super::draw::Shape;
use super::history::Level;
use super::run::{Done, Ground, run};
use crate::run::{At, Conviction, RunError};
use std::time::{Duration, Instant};

/// Violations that are kept in full.
const DETAILS: usize = 10;

/// Runs and judges histories until there were as many transactions as were asked for. `progress` is told how
/// many there were.
///
/// # Errors
/// Impossible settings; calls on the store that fail.
///
/// # Panics
/// If the store does, on real threads.
pub fn explore(config: &IsolationConfig, progress: &mut dyn FnMut(u64)) -> Result<IsolationReport, RunError> {
    RunError::check([("transactions", config.transactions, 1..=u64::MAX)])?;
    let begun = Instant::now();
    let end = config.seconds.map(|seconds| begun + Duration::from_secs(seconds));
    let ground = if config.threads { Ground::Threads } else { Ground::Sim };
    let mut report = IsolationReport {
        level: config.level.to_string(),
        ground: if config.threads { "threads" } else { "sim" }.to_owned(),
        seed: config.seed,
        ..IsolationReport::default()
    };
    let mut seed = config.seed;
    while report.transactions < config.transactions && end.is_none_or(|end| Instant::now() < end) {
        let shape = Shape::of(seed, config.level, config.merging);
        let failed = |source| RunError::Store { doing: format!("the history of seed {seed}"), source };
        let done = run(&shape, ground, config.twin).map_err(failed)?;
        report.add(config, seed, done);
        seed = seed.wrapping_add(1);
        progress(report.transactions);
    }
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

impl IsolationReport {
    fn add(&mut self, config: &IsolationConfig, seed: u64, done: Done) {
        self.histories += 1;
        self.transactions += done.transactions;
        self.committed += done.committed;
        self.conflicts += done.conflicts;
        self.reads += done.reads;
        self.dumped_bytes += done.dumped_bytes;
        self.moved_records += done.moved_records;
        self.lost_updates += done.verdict.lost_updates;
        self.skewed += u64::from(done.verdict.has_skew && config.level == Level::Snapshot);
        let found = done.verdict.violations.into_iter().map(|violation| violation.what);
        let found: Vec<_> = done.faults.into_iter().chain(found).collect();
        if found.is_empty() {
            return;
        }
        self.violations += 1;
        if self.details.len() < DETAILS {
            let threads = if config.threads { " --threads" } else { "" };
            let twin = config.twin.map_or(String::new(), |twin| format!(" --twin {}", twin.name()));
            let merging = MERGING.iter().find(|(_, merging)| config.merging == Some(*merging));
            let merging = merging.map_or(String::new(), |(name, _)| format!(" --merging {name}"));
            let replay = format!(
                "quipu-lab isolation --level {} --seed {seed} --transactions 1{merging}{threads}{twin}",
                config.level
            );
            self.details.push(Conviction { at: At::Seed(seed), what: found.join("\n"), replay });
        }
    }
}
