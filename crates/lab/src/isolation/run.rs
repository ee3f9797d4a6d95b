//! One history: a store of its own, tasks that meet on it, and the verdict.

use super::check::{Verdict, check};
use super::draw::{Shape, TASKS};
use super::history::{End, History};
use super::perform::Hand;
use super::record::Recorder;
use crate::sim_levels::SimForest;
use quipu::internals::{TestForest, Testing, Twin, twin::leave_out};
use quipu::{Design, Error, Options, Store, Table};
use quipu_bench::threads::on_threads;
use quipu_medium::sim::SimOptions;
use quipu_medium::sim::sched::{self, RunOptions};
use quipu_medium::{Pages, Region};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a pool, and of its zones: few records fill one.
const LEN: u64 = 2 << 20;
const ZONE: u64 = 16 << 10;

/// Steps of each of the store's own jobs beside a run, and points in between.
const PIECES: u32 = 24;
const POINTS: u32 = 6;

/// The task that reads everything at the end.
const AFTERWARDS: u32 = 99;

/// The findings in a history.
#[derive(Default)]
pub(super) struct Done {
    pub verdict: Verdict,
    /// The faults that showed without a judge, and what the store said of itself.
    pub faults: Vec<String>,
    pub transactions: u64,
    pub committed: u64,
    pub conflicts: u64,
    pub reads: u64,
    pub dumped_bytes: u64,
    pub moved_records: u64,
}

/// Where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// Tasks of the simulator, whose schedule the seed draws.
    Sim,
    /// Threads.
    Threads,
}

/// Runs and judges the history of a shape.
pub(super) fn run(shape: &Shape, ground: Ground, twin: Option<Twin>) -> Result<Done, Error> {
    let _left_out = leave_out(twin);
    let recorder = Recorder::default();
    let options = options(shape, ground, &recorder);
    let region = match ground {
        Ground::Sim => Region::sim(SimOptions { len: LEN, seed: shape.seed, ..SimOptions::default() }),
        Ground::Threads => Region::dram(LEN, Pages::Ordinary)?,
    };
    let mut store = Store::create_on(region.clone(), &options)?;
    let mut tables = vec![store.table("default")?];
    for number in 1..shape.tables {
        tables.push(store.create_table(&format!("table {number}"))?);
    }
    let mut done = Done::default();
    let ended = match ground {
        Ground::Sim => on_simulator(shape, &store, &recorder, &tables)?,
        Ground::Threads => {
            on_real_threads(shape, &store, &recorder, &tables)?;
            None
        }
    };
    done.faults.extend(ended);
    let read = |store: &Store, tables: &[Table]| {
        Hand::new(store, (&recorder, shape.level, tables), AFTERWARDS, &|| ())?.read(shape.all())
    };
    read(&store, &tables)?;
    let stats = store.stats();
    (done.dumped_bytes, done.moved_records) = (stats.dumped_bytes, stats.moved_records);
    store.compact()?;
    read(&store, &tables)?;
    if shape.is_reopened {
        store.close()?;
        store = Store::open_on(region, &options)?;
        for table in &mut tables {
            *table = store.table(table.name())?;
        }
        read(&store, &tables)?;
    }
    let report = store.check(&|_, _| {})?;
    if !report.is_sound() {
        done.faults.push(format!("the pool is not sound: {}", report.damage));
    }
    drop(store);
    let (transactions, faults) = recorder.into_parts();
    done.faults.extend(faults);
    for transaction in transactions.iter().filter(|transaction| !transaction.is_plain) {
        done.transactions += 1;
        done.committed += u64::from(matches!(transaction.end, End::Committed(_)));
        done.conflicts += u64::from(transaction.end == End::Conflict);
        done.reads += transaction.reads().count() as u64;
    }
    done.verdict = check(&History { level: shape.level, transactions });
    Ok(done)
}

fn options(shape: &Shape, ground: Ground, recorder: &Recorder) -> Options {
    let options = Options::new()
        .design(Design::XP)
        .zone_size(ZONE)
        .recovery_threads(1)
        .cleaner(ground == Ground::Threads && shape.seed.is_multiple_of(2));
    options.with(|options| {
        options.merging = shape.merging;
        options.testing = Testing {
            tiny_index: true,
            stripes: shape.stripes,
            granted: Some(recorder.grants.listener()),
            dump_at: Some(shape.dump_at),
            forest: shape.has_levels.then(|| TestForest(Arc::new(SimForest::default()))),
            ..Testing::default()
        };
    })
}

/// Runs all tasks in a schedule of the seed. Returns the panic or livelock that ended it early.
fn on_simulator(
    shape: &Shape,
    store: &Store,
    recorder: &Recorder,
    tables: &[Table],
) -> Result<Option<String>, Error> {
    let failure = RefCell::new(None);
    let failed = &failure;
    let note = move |done: Result<(), Error>| {
        if let Err(error) = done {
            failed.borrow_mut().get_or_insert(error);
        }
    };
    let mut tasks: Vec<Box<dyn FnOnce() + '_>> = Vec::new();
    for task in 0..=TASKS {
        tasks.push(Box::new(move || note(work(shape, (store, recorder, tables), task, &sched::point))));
    }
    tasks.push(Box::new(move || {
        for _ in 0..shape.compactions {
            (0..POINTS).for_each(|_| sched::point());
            note(store.compact().map(drop));
        }
    }));
    for mut piece in store.work_beside() {
        tasks.push(Box::new(move || {
            for _ in 0..PIECES {
                piece();
                (0..POINTS).for_each(|_| sched::point());
            }
        }));
    }
    let options = RunOptions { seed: shape.seed, looks: shape.seed % 3 == 1, ..RunOptions::default() };
    let ended = sched::run_with(options, tasks);
    match failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(ended.err().map(|error| error.to_string())),
    }
}

/// Runs all tasks on threads. They yield their processors between their steps, so that they meet.
fn on_real_threads(shape: &Shape, store: &Store, recorder: &Recorder, tables: &[Table]) -> Result<(), Error> {
    let arrived = AtomicU32::new(0);
    let all = TASKS as u32 + 1;
    let done = on_threads(TASKS + 2, |task| {
        if task > TASKS {
            return (0..shape.compactions).try_for_each(|_| {
                std::thread::yield_now();
                store.compact().map(drop)
            });
        }
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < all {
            std::thread::yield_now();
        }
        work(shape, (store, recorder, tables), task, &std::thread::yield_now)
    });
    done.into_iter().collect()
}

/// The work of a task: transactions, or the single calls.
fn work(
    shape: &Shape,
    (store, recorder, tables): (&Store, &Recorder, &[Table]),
    task: usize,
    between: &dyn Fn(),
) -> Result<(), Error> {
    let mut hand = Hand::new(store, (recorder, shape.level, tables), task as u32, between)?;
    match shape.plans.get(task) {
        Some(plans) => plans.iter().try_for_each(|plan| hand.transaction(plan)),
        None => shape.calls.iter().try_for_each(|call| hand.call(call)),
    }
}
