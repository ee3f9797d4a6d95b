//! [`explore`]: many small histories on real threads, each judged.

use super::check::{History, Verdict, check};
use super::config::{LinearConfig, LinearReport};
use super::lot::{Done, LOT, Lot};
use super::operation::Operation;
use crate::run::{At, Conviction, RunError};
use std::time::Instant;

/// Violations that are kept in full.
const DETAILS: usize = 10;

/// Histories, in multiples of the number asked for, after which the calls asked for will never meet.
const PATIENCE: u64 = 50;

/// Makes and judges the histories, and further ones until as many calls have met as were asked for.
/// `progress` is told how many are done.
///
/// # Errors
/// Impossible settings, calls on the store that fail, and calls that do not meet.
///
/// # Panics
/// If the store does.
pub fn explore(config: &LinearConfig, progress: &mut dyn FnMut(u64)) -> Result<LinearReport, RunError> {
    RunError::check([
        ("threads", config.threads as u64, 1..=64),
        ("keys", config.keys as u64, 1..=64),
        ("calls", config.calls as u64, 1..=10_000),
    ])?;
    let begun = Instant::now();
    let mut report = LinearReport {
        design: config.design.to_string(),
        medium: if config.folder.is_some() { "file" } else { "dram" }.to_owned(),
        seed: config.seed,
        threads: config.threads,
        ..LinearReport::default()
    };
    let scratch = tempfile::tempdir().map_err(RunError::system("a folder for levels"))?;
    let mut first = 0;
    while first < config.histories || report.overlapping < config.overlapping {
        if first >= config.histories.max(LOT) * PATIENCE {
            return Err(RunError::Met { met: report.overlapping, asked: config.overlapping });
        }
        let end = if first < config.histories { config.histories.min(first + LOT) } else { first + LOT };
        let lot = Lot::new(config, scratch.path(), (first, end));
        let doing = format!("history {first} of seed {}", config.seed);
        let failed = |source| RunError::Store { doing, source };
        let Done { operations, eliminated, unsound } = lot.run().map_err(failed)?;
        report.eliminated += eliminated;
        if let Some(what) = unsound {
            report.convict(config, first, what);
        }
        for (history, operations) in (first..end).zip(lot.sorted(operations)) {
            report.judge(config, history, operations);
        }
        first = end;
        progress(first);
    }
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

impl LinearReport {
    fn judge(&mut self, config: &LinearConfig, history: u64, operations: Vec<Operation>) {
        self.histories += 1;
        self.operations += operations.len() as u64;
        self.overlapping += overlapping(&operations);
        match check(&History { operations, ..History::default() }, config.budget) {
            Verdict::Linearizable => {}
            Verdict::Undecided { .. } => self.undecided += 1,
            Verdict::Violation(violation) => self.convict(config, history, violation.to_string()),
        }
    }

    fn convict(&mut self, config: &LinearConfig, history: u64, what: String) {
        self.violations += 1;
        if self.details.len() < DETAILS {
            let LinearConfig { design, threads, keys, calls, seed, .. } = config;
            let folder = config.folder.as_ref();
            let folder = folder.map_or(String::new(), |folder| format!(" --folder {}", folder.display()));
            let twin = config.twin.map_or(String::new(), |twin| format!(" --twin {twin}"));
            let replay = format!(
                "quipu-lab linear --design {design} --histories {} --threads {threads} --keys {keys} --calls {calls} \
                 --seed {seed}{folder}{twin}",
                (history / LOT + 1) * LOT
            );
            self.details.push(Conviction { at: At::History(history), what, replay });
        }
    }
}

/// How many operations ran while another thread was at the same key.
fn overlapping(operations: &[Operation]) -> u64 {
    let meets = |one: &Operation| {
        operations.iter().any(|other| {
            let at_once = other.invoked < one.end() && one.invoked < other.end();
            one.key == other.key && one.caller != other.caller && at_once
        })
    };
    operations.iter().filter(|operation| meets(operation)).count() as u64
}
