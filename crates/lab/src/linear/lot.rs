//! [`Lot`]: histories that share a store and its threads, each on keys of its own, so that the index and the
//! heap grow while they run.
//!
//! Behind them the store is closed or dropped, opened again, and every key read once more. That reading
//! belongs to its history too, so what recovery returns must fit in behind what the threads were told.
//!
//! Lots differ in what is optional: a cache, levels, an order of keys, tables, a small pool that is cleaned
//! all the time, somebody who compacts beside the threads.

use super::config::LinearConfig;
use super::drive::{Course, Driver, Leaving, Meeting, leanings};
use super::operation::{Caller, Operation};
use super::record::{Clock, Log};
use super::subject::{Subject, Timing};
use super::twins::Broken;
use crate::action::Action;
use crate::calls::{prove, vary};
use crate::contract::{Ending, Fixture, Medium};
use quipu::internals::twin::leave_out;
use quipu::internals::{CacheSize, IndexChoice, Merging, RecordForm};
use quipu::{Client, Error, Levels, Store};
use quipu_bench::threads::on_threads;
use std::path::Path;
use std::time::Duration;

/// Histories of a lot.
pub(super) const LOT: u64 = 100;

/// More bytes than an operation takes of the pool, and than a key with its value takes, on average.
const OPERATION_BYTES: u64 = 512;

const ZONE: u64 = 16 << 10;

/// Zones that a pool has beyond those for its data and its clients: of a large one, and of a small one.
const FURTHER_ZONES: u64 = 64;
const FEW_ZONES: u64 = 24;

/// Zones in use at which memtables go to levels: few, since lots are short.
const DUMP_AT: u32 = 8;

/// Time between two compactions.
const BETWEEN_COMPACTIONS: Duration = Duration::from_micros(500);

/// The name of a second table.
const TABLE: &str = "second";

/// Histories that share a store.
pub(super) struct Lot<'c> {
    config: &'c LinearConfig,
    /// Where levels may be.
    scratch: &'c Path,
    first: u64,
    end: u64,
    /// The calls of all histories are side by side.
    is_drawn_out: bool,
    /// Small, so that zones change hands all the time.
    is_small: bool,
    /// Somebody compacts beside the threads.
    compacts: bool,
    has_order: bool,
    has_tables: bool,
}

/// The result of a lot.
pub(super) struct Done {
    pub operations: Vec<Operation>,
    /// Puts that were eliminated.
    pub eliminated: u64,
    /// The unsoundness of the pool afterwards.
    pub unsound: Option<String>,
}

impl<'c> Lot<'c> {
    /// The lot of the histories from `first` to below `end`. Levels are in a folder in `scratch`.
    pub fn new(config: &'c LinearConfig, scratch: &'c Path, (first, end): (u64, u64)) -> Lot<'c> {
        let (number, can) = (first / LOT, config.design.can());
        // Twins of elimination and late puts want stores without an order.
        let is_ordered = can.orders_on_request() && number % 5 >= 3 && config.twin.is_none();
        let is_drawn_out = number % 3 == 2;
        Lot {
            config,
            scratch,
            first,
            end,
            is_drawn_out,
            // Snapshots of many histories would keep all of a small pool.
            is_small: number % 4 >= 2 && !is_drawn_out,
            compacts: number % 2 == 1,
            has_order: can.ordered || is_ordered,
            has_tables: can.tables && number % 5 < 3,
        }
    }

    /// A place for the pool, and how it is opened.
    fn fixture(&self) -> Fixture {
        let LinearConfig { design, folder, threads, keys, calls, twin, .. } = self.config;
        let (lot, can) = (self.first / LOT, design.can());
        let medium = folder.clone().map_or(Medium::Dram, Medium::File);
        let histories = self.end - self.first;
        // Each client has a zone or two of its own open.
        let clients = *threads as u64 * 4 * ZONE;
        let size = match self.is_small {
            true => histories * *keys as u64 * OPERATION_BYTES + FEW_ZONES * ZONE + clients,
            // A call may be a batch over all keys.
            false => {
                let batches = histories * (threads * calls) as u64;
                batches * (1 + *keys as u64 / 4) * OPERATION_BYTES + FURTHER_ZONES * ZONE + clients
            }
        };
        let mut fixture = Fixture::new(*design, &medium, size.next_multiple_of(ZONE), ZONE);
        let options = &mut fixture.options;
        vary(options, *design, lot);
        // Values of histories have many lengths.
        options.slots.form = RecordForm::Variable;
        if can.orders_on_request() {
            options.index = if self.has_order { IndexChoice::Alex } else { IndexChoice::Own };
        }
        if can.caches && twin.is_some_and(Broken::is_of_cache) {
            options.cache = CacheSize::Bytes(64 << 10);
            options.testing.cache_sample = Some(1);
            // It turns off and on again and again.
            let turns = lot % 2 == 1 || twin.is_some_and(Broken::is_of_turns);
            options.testing.cache_turns = turns.then_some(8);
        }
        if can.levels && !lot.is_multiple_of(3) {
            *options = options.clone().levels(Levels::Folder(self.scratch.join(format!("levels-{lot}"))));
            options.testing.dump_at = Some(DUMP_AT);
            options.merging = [Merging::Direct, Merging::Key, Merging::Off][lot as usize / 3 % 3];
        }
        fixture
    }

    /// Runs all histories.
    pub fn run(&self) -> Result<Done, Error> {
        let fixture = self.fixture();
        let _left_out = leave_out(self.config.twin.and_then(Broken::rule));
        let clock = Clock::default();
        let store = fixture.create()?;
        if self.has_tables {
            store.create_table(TABLE)?;
        }
        let mut operations = self.threads(&store, &clock)?;
        let eliminated = store.stats().eliminated_writes;
        let ending = Ending::ALL[self.first as usize / LOT as usize % 7 / 6];
        let mut store = fixture.reopen(store, ending)?;
        let mut log = Log::new(&clock, Caller::Afterwards);
        let mut subjects = self.clients(&store)?.map(|client| Subject::new(client, None, 0));
        let keys = self.config.keys as u64;
        for key in self.first * keys..self.end * keys {
            let subject = &mut subjects[(key / keys % 2) as usize];
            log.call(subject, key, Action::Get, &Timing::FREE)?;
        }
        operations.extend(log.into_operations());
        drop(subjects);
        Ok(Done { operations, eliminated, unsound: prove(&mut store).err() })
    }

    /// The clients of even histories and of odd ones, which are on a table of their own if there is one.
    fn clients(&self, store: &Store) -> Result<[Client; 2], Error> {
        let client = store.client();
        let second = if self.has_tables { client.on(&store.table(TABLE)?)? } else { store.client() };
        Ok([client, second])
    }

    /// The operations of the threads.
    fn threads(&self, store: &Store, clock: &Clock) -> Result<Vec<Operation>, Error> {
        let LinearConfig { design, threads, keys, calls, seed, twin, .. } = *self.config;
        let meeting = &Meeting::new(threads);
        let leanings = &leanings(design.can(), self.has_order);
        let driver = &Driver { store, meeting, leanings, seed, keys: keys as u64, calls };
        let work = |thread: u64| -> Result<Vec<Operation>, Error> {
            let _leaving = Leaving(meeting);
            let subject = |client| Subject::new(client, twin, seed ^ self.first ^ thread);
            let mut subjects = self.clients(store)?.map(subject);
            let mut log = Log::new(clock, Caller::Thread(thread as u32));
            let mut courses =
                Vec::from_iter((self.first..self.end).map(|history| Course::new(driver, thread, history)));
            // One history behind the other, or all side by side: then all else goes on between their calls.
            let turns = if self.is_drawn_out { calls } else { 1 };
            let mut made = 0;
            for _ in 0..turns {
                for (course, history) in courses.iter_mut().zip(self.first..) {
                    for _ in 0..calls / turns {
                        made += 1;
                        course.call(made, &mut subjects[history as usize % 2], &mut log)?;
                    }
                }
            }
            Ok(log.into_operations())
        };
        let done = on_threads(threads + self.compacts as usize, |thread| match thread < threads {
            true => work(thread as u64),
            false => compact(store, meeting),
        });
        Ok(done.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The operations of each history.
    pub fn sorted(&self, operations: Vec<Operation>) -> Vec<Vec<Operation>> {
        let mut histories = vec![Vec::new(); (self.end - self.first) as usize];
        for operation in operations {
            let history = operation.key / self.config.keys as u64 - self.first;
            histories[history as usize].push(operation);
        }
        histories
    }
}

/// Compacts again and again, until a thread has left.
fn compact(store: &Store, meeting: &Meeting) -> Result<Vec<Operation>, Error> {
    while !meeting.is_left() {
        store.compact()?;
        std::thread::sleep(BETWEEN_COMPACTIONS);
    }
    Ok(Vec::new())
}
