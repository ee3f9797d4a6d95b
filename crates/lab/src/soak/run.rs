//! [`explore`]: work, reopen, compare, again and again.

use super::config::{SoakConfig, SoakReport};
use super::make::{Make, ZONE};
use crate::calls::{Codec, Draw, Hand, Model, verify};
use crate::contract::message;
use crate::run::{At, Conviction, RunError};
use quipu::internals::twin::{dawdle_by, leave_out};
use quipu::{Error, Store};
use quipu_bench::threads::on_threads;
use quipu_bench::workload::mix;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reopenings of a pool.
const ROUNDS: u64 = 6;

/// Most calls of all threads between two of them; at least a tenth of it.
const CALLS: u64 = 8000;

/// Passes of compaction in the end: the first drops what was superseded, the others the tombstones that had
/// to outlive it.
const PASSES: usize = 3;

/// Works and reopens as `config` says. The first violation ends the run. `progress` sees the report after
/// each reopening and each pool, how much is done, and of how much.
///
/// # Errors
/// Impossible settings, and pools that cannot be made.
pub fn explore(
    config: &SoakConfig,
    progress: &mut dyn FnMut(&SoakReport, u64, u64),
) -> Result<SoakReport, RunError> {
    RunError::check([("threads", config.threads as u64, 1..=64)])?;
    let begun = Instant::now();
    let time = config.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    let _left_out = leave_out(config.twin);
    let mut report = SoakReport {
        design: config.design.to_string(),
        medium: if config.folder.is_some() { "file" } else { "dram" }.to_owned(),
        seed: config.seed,
        threads: config.threads,
        ..SoakReport::default()
    };
    let is_over = |pools: u64| time.map_or(pools >= config.pools, |time| begun.elapsed() >= time);
    while !is_over(report.pools) && report.violations == 0 {
        let (before, seed) = (report.pools, config.seed + report.pools);
        let mut reopened = |report: &mut SoakReport, rounds: u64| {
            report.seconds = begun.elapsed().as_secs_f64();
            match time {
                Some(time) => progress(report, begun.elapsed().as_secs().min(time.as_secs()), time.as_secs()),
                None => progress(report, before * ROUNDS + rounds, config.pools * ROUNDS),
            }
        };
        match pool(config, seed, &mut report, &mut reopened) {
            Ok(()) => {}
            Err(Broken::Rule(what)) => report.convict(config, seed, what),
            Err(Broken::Run(error)) => return Err(error),
        }
        report.pools += 1;
        reopened(&mut report, ROUNDS);
    }
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

/// Now and then a thread dawdles between two looks, so that others come in between.
fn dawdle(one_in: u32) {
    if rand::rng().random_ratio(1, one_in) {
        std::thread::sleep(Duration::from_micros(20 << rand::rng().random_range(0..7)));
    }
}

/// Threads that make calls come to such places many times in each.
fn dawdle_at_work() {
    dawdle(200);
}

/// Those that dump and clean come to few.
fn dawdle_beside() {
    dawdle(3);
}

/// Creates or opens a store, whose own threads dawdle then. The caller does not: it reads all of it.
fn with_slow_threads<R>(open: impl FnOnce() -> R) -> R {
    dawdle_by(Some(dawdle_beside));
    let opened = open();
    dawdle_by(None);
    opened
}

/// Why a run ends early.
enum Broken {
    /// The store broke a rule.
    Rule(String),
    /// The run could not be carried out.
    Run(RunError),
}

impl From<String> for Broken {
    fn from(what: String) -> Broken {
        Broken::Rule(what)
    }
}

/// One owner: its calls to come, and what its keys must be.
struct Owner {
    draw: Draw,
    model: Model,
    names: Vec<String>,
}

/// Lives through one pool.
fn pool(
    config: &SoakConfig,
    seed: u64,
    report: &mut SoakReport,
    reopened: &mut dyn FnMut(&mut SoakReport, u64),
) -> Result<(), Broken> {
    let levels = match &config.folder {
        Some(folder) => tempfile::tempdir_in(folder),
        // A disk would hold the dumps up.
        None => tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()),
    };
    let levels = levels.map_err(RunError::system("a folder for levels")).map_err(Broken::Run)?;
    let make = Make::new(
        config.design,
        config.threads,
        mix(seed),
        (config.folder.as_ref(), &levels.path().join("levels")),
    );
    let mut run = Run::new(make, config.threads, seed).map_err(RunError::Create).map_err(Broken::Run)?;
    run.all(report, reopened).map_err(|broken| match broken {
        Broken::Rule(what) if config.folder.is_some() => {
            run.make.fixture.keep();
            let levels = levels.keep();
            Broken::Rule(format!(
                "{what}\nits levels are in {}, its settings: {}",
                levels.display(),
                run.settings
            ))
        }
        Broken::Rule(what) => Broken::Rule(format!("{what}\nits settings: {}", run.settings)),
        broken => broken,
    })
}

/// A pool at work.
struct Run {
    make: Make,
    store: Option<Store>,
    owners: Vec<Mutex<Owner>>,
    random: SmallRng,
    /// Those of the store, in words.
    settings: String,
}

impl Run {
    fn new(make: Make, threads: usize, seed: u64) -> Result<Run, Error> {
        let store = with_slow_threads(|| make.fixture.create())?;
        let tables = make.scope.tables;
        if tables > 1 {
            store.create_table("side")?;
        }
        let codec = Codec::of(&store, make.form);
        let can = make.scope.can.clone().expect("only calls that the design offers");
        let owner = |owner: u8| {
            let names = ["default".to_owned(), "side".to_owned(), format!("of {owner}")];
            Mutex::new(Owner {
                draw: Draw::new(make.scope.clone(), mix(seed ^ mix(owner.into()))),
                model: Model::new((owner, threads as u8), codec, can.clone(), tables),
                names: names[..tables].to_vec(),
            })
        };
        let owners = (1..=threads as u8).map(owner).collect();
        let settings = store.settings().into_iter().map(|(name, value)| format!("{name}={value}"));
        let settings = settings.collect::<Vec<_>>().join(" ");
        Ok(Run { settings, make, store: Some(store), owners, random: SmallRng::seed_from_u64(mix(!seed)) })
    }

    fn all(
        &mut self,
        report: &mut SoakReport,
        reopened: &mut dyn FnMut(&mut SoakReport, u64),
    ) -> Result<(), Broken> {
        for round in 0..ROUNDS {
            let has_cleaner = self.random.random_ratio(2, 3);
            self.open(has_cleaner)?;
            let calls = self.random.random_range(CALLS / 10..=CALLS);
            let hands = self.work(calls, report)?;
            let store = self.store.take().expect("it was opened");
            report.note(&store);
            // The copy of an open store must not change meanwhile, and is of the pool alone.
            let may_abandon = !has_cleaner && !self.make.has_levels;
            match self.random.random_range(0..3) {
                0 => {
                    drop(hands);
                    store.close().map_err(|error| format!("the pool cannot be closed: {error}"))?;
                    report.closed += 1;
                }
                1 if may_abandon => {
                    // While the clients still hold everything that they hold.
                    let image = self.make.fixture.image(&store);
                    drop(hands);
                    drop(store);
                    self.make
                        .fixture
                        .restore(&image)
                        .map_err(RunError::system("a copy of the pool"))
                        .map_err(Broken::Run)?;
                    report.abandoned += 1;
                }
                _ => {
                    drop(hands);
                    drop(store);
                    report.dropped += 1;
                }
            }
            self.open(false)?;
            self.judge()?;
            reopened(report, round + 1);
        }
        self.end(report)
    }

    /// Opens the pool, unless it is open, as every opening may choose.
    fn open(&mut self, has_cleaner: bool) -> Result<(), String> {
        drop(self.store.take());
        let (verifies, threads) = (self.random.random_ratio(1, 4), self.random.random_range(1..4));
        let with = |options: quipu::Options| {
            options.cleaner(has_cleaner).verify_reads(verifies).recovery_threads(threads).accept_copy(true)
        };
        let opened = with_slow_threads(|| self.make.fixture.open_with(with));
        self.store = Some(opened.map_err(|error| format!("the pool cannot be opened: {error}"))?);
        Ok(())
    }

    /// All threads at work, until they have made their calls or one has found a fault. Their hands are still
    /// there in the end: one that goes tidies up.
    fn work(&mut self, calls: u64, report: &mut SoakReport) -> Result<Vec<Hand>, String> {
        let store = self.store.as_ref().expect("it was opened");
        let (stop, owners) = (&AtomicBool::new(false), &self.owners);
        let calls = calls / owners.len() as u64;
        let work = |number: usize| -> Result<(Hand, u64), String> {
            dawdle_by(Some(dawdle_at_work));
            let mut owner = owners[number].lock().unwrap_or_else(PoisonError::into_inner);
            let Owner { draw, model, names } = &mut *owner;
            let mut hand = Hand::new(store, names).map_err(|error| error.to_string())?;
            let mut made = 0;
            while made < calls && !stop.load(Ordering::Relaxed) {
                let (table, call) = draw.call();
                hand.perform(store, model, table, &call)?;
                made += 1;
            }
            Ok((hand, made))
        };
        let ended = on_threads(owners.len(), |number| {
            let done = catch_unwind(AssertUnwindSafe(|| work(number)))
                .unwrap_or_else(|panic| Err(format!("a panic: {}", message(&*panic))));
            if done.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            done.map_err(|what| format!("thread {}: {what}", number + 1))
        });
        let ended = ended.into_iter().collect::<Result<Vec<_>, String>>()?;
        report.calls += ended.iter().map(|(_, made)| made).sum::<u64>();
        report.full += ended.iter().map(|(hand, _)| hand.full).sum::<u64>();
        Ok(ended.into_iter().map(|(hand, _)| hand).collect())
    }

    /// Judges an open pool that nobody uses.
    fn judge(&mut self) -> Result<(), String> {
        let store = self.store.as_mut().expect("it was opened");
        let owners =
            self.owners.iter_mut().map(|owner| owner.get_mut().unwrap_or_else(PoisonError::into_inner));
        let owners = owners.map(|owner| (&mut owner.model, &owner.names[..]));
        verify(store, owners, self.make.scope.keys)
    }

    /// When nobody writes any more, compaction leaves hardly a tombstone, and everything else.
    fn end(&mut self, report: &mut SoakReport) -> Result<(), Broken> {
        let store = self.store.as_ref().expect("it was opened");
        for _ in 0..PASSES {
            store.compact().map_err(|error| format!("compaction fails: {error}"))?;
        }
        report.note(store);
        self.judge()?;
        let left = self.store.as_ref().expect("it was opened").stats().tombstone_bytes;
        report.tombstone_bytes = report.tombstone_bytes.max(left);
        self.open(false)?;
        self.judge()?;
        // Each table has a memtable that is being written, and the levels need theirs.
        let most = ZONE * self.make.scope.tables as u64;
        if left > most && !self.make.has_levels {
            return Err(format!("compaction leaves {left} bytes of tombstones").into());
        }
        Ok(())
    }
}

impl SoakReport {
    /// Adds up what a store did that is about to go.
    fn note(&mut self, store: &Store) {
        let stats = store.stats();
        self.freed_segments += stats.freed_segments;
        self.moved_bytes += stats.moved_bytes;
        self.dumped_bytes += stats.dumped_bytes;
        self.most_tombstone_bytes = self.most_tombstone_bytes.max(stats.tombstone_bytes);
    }

    fn convict(&mut self, config: &SoakConfig, seed: u64, what: String) {
        self.violations += 1;
        let SoakConfig { design, threads, folder, twin, .. } = config;
        let folder =
            folder.as_ref().map_or(String::new(), |folder| format!(" --folder {}", folder.display()));
        let twin = twin.map_or(String::new(), |twin| format!(" --twin {}", twin.name()));
        let replay = format!(
            "quipu-lab soak --design {design} --pools 1 --threads {threads} --seed {seed}{folder}{twin}"
        );
        self.details.push(Conviction {
            at: At::Reopenings(self.closed + self.dropped + self.abandoned),
            what,
            replay,
        });
    }
}
