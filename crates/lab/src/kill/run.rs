//! [`explore`]: round after round on one pool.

use super::config::{KillConfig, KillReport, WriterConfig};
use super::judge::{judge, read};
use super::plan::{Extent, MOST_THREADS};
use super::round;
use super::transfers;
use crate::linear::Contents;
use crate::run::{At, Conviction, RunError};
use quipu::{Design, Levels, MediumKind, Options, Store};
use std::io::ErrorKind;
use std::process::Command;
use std::time::Instant;

/// Kills one writer after another, each started by the command that `writer` makes for it, which has to end
/// in [`write`](super::write). The first violation ends the run and leaves the pool. `progress` is told the
/// rounds done.
///
/// # Errors
/// A pool that cannot be made, or a process that cannot be run.
pub fn explore(
    config: &KillConfig,
    writer: &dyn Fn(&WriterConfig) -> Command,
    progress: &mut dyn FnMut(u64),
) -> Result<KillReport, RunError> {
    RunError::check([("threads", config.threads as u64, 1..=MOST_THREADS as u64)])?;
    if config.transfers {
        transfers::check(config.design, config.twin).map_err(RunError::Create)?;
    }
    let begun = Instant::now();
    let mut report = KillReport {
        design: config.design.to_string(),
        seed: config.seed,
        threads: config.threads,
        ..KillReport::default()
    };
    create(config, &mut report)?;
    let result = rounds(config, writer, progress, &mut report);
    report.seconds = begun.elapsed().as_secs_f64();
    if report.violations == 0 {
        remove(config)?;
    }
    result.map(|()| report)
}

fn create(config: &KillConfig, report: &mut KillReport) -> Result<(), RunError> {
    let extent = Extent::of(config.design);
    let options = Options::new()
        .design(config.design)
        .size(config.size.unwrap_or(extent.size))
        .zone_size(extent.zone)
        .medium(MediumKind::File);
    let store = Store::create(&config.pool, &options).map_err(RunError::Create)?;
    for name in &extent.tables[1..] {
        store.create_table(name).map_err(RunError::Create)?;
    }
    report.pools += 1;
    Ok(())
}

/// Removes the pool, and its levels.
fn remove(config: &KillConfig) -> Result<(), RunError> {
    let wrong = RunError::system(config.pool.display());
    std::fs::remove_file(&config.pool).map_err(wrong)?;
    let Levels::Folder(folder) = Levels::beside(&config.pool) else { return Ok(()) };
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RunError::system(folder.display())(error)),
        _ => Ok(()),
    }
}

fn rounds(
    config: &KillConfig,
    writer: &dyn Fn(&WriterConfig) -> Command,
    progress: &mut dyn FnMut(u64),
    report: &mut KillReport,
) -> Result<(), RunError> {
    let KillConfig { seed, threads, transfers, twin, .. } = *config;
    let extent = Extent::of(config.design);
    let mut contents = Contents::new();
    for number in 0..config.rounds {
        let told = WriterConfig { pool: config.pool.clone(), seed, round: number, threads, transfers, twin };
        let traces = round::run(&told, extent, writer(&told))
            .map_err(RunError::system(format!("the writer of round {number}")))?;
        let refused = traces.acknowledged.iter().filter(|call| call.outcome.is_none()).count() as u64;
        report.rounds += 1;
        report.early += u64::from(traces.acknowledged.is_empty());
        report.acknowledged += traces.acknowledged.len() as u64;
        report.refused += refused;
        match after(config.design, &told, &contents, traces) {
            Ok(Found { values, in_flight, level_bytes }) => {
                report.in_flight += in_flight;
                report.level_bytes = level_bytes;
                contents = values;
            }
            Err(what) => {
                report.convict(config, number, what);
                return Ok(());
            }
        }
        if refused > 0 {
            remove(config)?;
            create(config, report)?;
            contents.clear();
        }
        progress(number + 1);
    }
    Ok(())
}

/// The contents of the pool of a dead writer.
pub(super) struct Found {
    pub values: Contents,
    /// Calls in flight that show in them.
    pub in_flight: u64,
    level_bytes: u64,
}

/// Opens the pool of a dead writer and judges it.
pub(super) fn after(
    design: Design,
    told: &WriterConfig,
    before: &Contents,
    traces: round::Traces,
) -> Result<Found, String> {
    if let Some(complaint) = traces.complaint {
        return Err(complaint);
    }
    let opened = Store::open(&told.pool, &Options::default());
    let mut store = opened.map_err(|error| format!("the pool cannot be opened: {error}"))?;
    let (values, arrived) = if told.transfers {
        let values = read(&mut store, Extent::of_transfers(design))?;
        let arrived = transfers::judge(told, before, &traces.acknowledged, &values)?;
        transfers::sum_up(&store)?;
        (values, arrived)
    } else {
        let extent = Extent::of(design);
        let operations = round::operations(told, extent, &traces.acknowledged)?;
        let in_flight: Vec<_> =
            operations.iter().filter(|operation| operation.returned.is_none()).copied().collect();
        let values = judge(&mut store, extent, before, operations)?;
        let shows = |key: &u64, value: Option<u64>| value.is_some() && values.get(key).copied() == value;
        let arrived =
            in_flight.iter().filter(|call| shows(&call.key, call.action.written().flatten())).count();
        (values, arrived as u64)
    };
    let level_bytes = store.stats().level_bytes;
    // The next writer finds a pool that was closed, or one that two processes in a row have dropped.
    if told.round.is_multiple_of(2) {
        store.close().map_err(|error| format!("the pool cannot be closed: {error}"))?;
    }
    Ok(Found { values, in_flight: arrived, level_bytes })
}

impl KillReport {
    fn convict(&mut self, config: &KillConfig, round: u64, what: String) {
        self.violations += 1;
        let KillConfig { pool, design, size, threads, seed, .. } = config;
        let size = size.unwrap_or(Extent::of(*design).size);
        let twin = config.twin.map_or(String::new(), |twin| format!(" --twin {twin}"));
        let transfers = if config.transfers { " --transfers" } else { "" };
        let replay = format!(
            "quipu-lab kill {} --design {design} --size {size} --rounds {} --threads {threads} --seed {seed}{transfers}{twin}",
            pool.display(),
            round + 1
        );
        self.details.push(Conviction { at: At::Round(round), what, replay });
    }
}
