//! [`explore`]: many small histories on real threads, each judged.
//!
//! Histories are made in lots that share a store and its threads, each on keys of its own, so that the index
//! and the heap grow while they run. After a lot the store is dropped, opened again, and every key read once
//! more: that reading belongs to its history too, so what recovery returns must fit in behind what the
//! threads were told.

use super::check::{History, Verdict, check};
use super::config::{LinearConfig, LinearReport};
use super::contents::prove;
use super::drive::{Driver, Leaving, Meeting};
use super::operation::{Action, Caller, Operation};
use super::record::{Clock, Log};
use super::subject::{Subject, Timing};
use super::twins::Broken;
use crate::contract::{Ending, Fixture, Medium};
use crate::run::{At, Conviction, RunError, on_threads};
use quipu::internals::twin::leave_out;
use quipu::internals::{CacheSize, NodePlace};
use quipu::{Error, Store};
use std::time::Instant;

/// Histories of a lot.
const LOT: u64 = 200;

/// More bytes than an operation takes of the pool, on average.
const OPERATION_BYTES: u64 = 512;

const ZONE: u64 = 16 << 10;

/// Violations that are kept in full.
const DETAILS: usize = 10;

/// Makes and judges the histories. `progress` is told how many are done.
///
/// # Errors
/// Impossible settings, and calls on the store that fail.
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
    let mut first = 0;
    while first < config.histories {
        let end = config.histories.min(first + LOT);
        let lot = Lot { config, first, end };
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

/// Histories that share a store.
struct Lot<'c> {
    config: &'c LinearConfig,
    first: u64,
    end: u64,
}

/// The result of a lot.
struct Done {
    operations: Vec<Operation>,
    /// Puts that were eliminated.
    eliminated: u64,
    /// The unsoundness of the pool afterwards.
    unsound: Option<String>,
}

impl Lot<'_> {
    /// Runs all histories.
    fn run(&self) -> Result<Done, Error> {
        let LinearConfig { design, folder, threads, keys, calls, .. } = self.config;
        let medium = folder.clone().map_or(Medium::Dram, Medium::File);
        // A call may be a batch over all keys; every client has a zone of its own open.
        let batches = (self.end - self.first) * (threads * calls) as u64;
        let size =
            (batches * (1 + *keys as u64 / 4) * OPERATION_BYTES + 64 * ZONE + *threads as u64 * 2 * ZONE)
                .next_multiple_of(1 << 20);
        let mut fixture = Fixture::new(*design, &medium, size, ZONE);
        let lot = self.first / LOT;
        fixture.options.testing.tiny_index = lot.is_multiple_of(2);
        fixture.options.offset_map.nodes =
            if (lot / 2).is_multiple_of(2) { NodePlace::Dram } else { NodePlace::Pm };
        if design.can().caches && (lot % 3 == 1 || self.config.twin.is_some_and(Broken::is_of_cache)) {
            fixture.options.cache = CacheSize::Bytes(64 << 10);
            fixture.options.testing.cache_sample = Some(1);
            // It turns off and on again and again.
            let turns = lot % 2 == 1 || self.config.twin.is_some_and(Broken::is_of_turns);
            fixture.options.testing.cache_turns = turns.then_some(8);
        }
        let _left_out = leave_out(self.config.twin.and_then(Broken::rule));
        let clock = Clock::default();
        let store = fixture.create()?;
        let mut operations = self.threads(&store, &clock)?;
        let eliminated = store.stats().eliminated_writes;
        let mut store = fixture.reopen(store, Ending::Dropped)?;
        let mut log = Log::new(&clock, Caller::Afterwards);
        let mut subject = Subject::new(store.client(), None, 0);
        for key in self.first * *keys as u64..self.end * *keys as u64 {
            log.call(&mut subject, key, Action::Get, &Timing::FREE)?;
        }
        operations.extend(log.into_operations());
        drop(subject);
        Ok(Done { operations, eliminated, unsound: prove(&mut store).err() })
    }

    /// The operations of the threads.
    fn threads(&self, store: &Store, clock: &Clock) -> Result<Vec<Operation>, Error> {
        let meeting = &Meeting::new(self.config.threads);
        let work = |thread: u64| -> Result<Vec<Operation>, Error> {
            let _leaving = Leaving(meeting);
            let LinearConfig { keys, calls, seed, twin, .. } = *self.config;
            let mut subject = Subject::new(store.client(), twin, seed ^ self.first ^ thread);
            let mut log = Log::new(clock, Caller::Thread(thread as u32));
            let driver = Driver { meeting, seed, thread, keys: keys as u64, calls };
            for (number, history) in (self.first..self.end).enumerate() {
                driver.run(history, number, &mut subject, &mut log)?;
            }
            Ok(log.into_operations())
        };
        let done = on_threads(self.config.threads, |thread| work(thread as u64));
        Ok(done.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The operations of each history.
    fn sorted(&self, operations: Vec<Operation>) -> Vec<Vec<Operation>> {
        let mut histories = vec![Vec::new(); (self.end - self.first) as usize];
        for operation in operations {
            let history = operation.key / self.config.keys as u64 - self.first;
            histories[history as usize].push(operation);
        }
        histories
    }
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
                "quipu linear --design {design} --histories {} --threads {threads} --keys {keys} --calls {calls} \
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
