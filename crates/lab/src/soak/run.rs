//! [`explore`]: work, reopen, compare, again and again.

use super::config::{SoakConfig, SoakReport};
use super::model::Model;
use crate::arguments::twin_argument;
use crate::linear::{contents, prove};
use crate::run::{At, Conviction, RunError, on_threads};
use crate::workload::mix;
use quipu::internals::twin::leave_out;
use quipu::{Client, Levels, MediumKind, Options, Store};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Keys in use, at least.
const FEWEST_KEYS: u64 = 20;

/// Zones this small fill up and change hands often.
const ZONE: u64 = 16 << 10;

/// Bytes of the pool for a key: several times what its value takes, so that there is always something to
/// clean, and never want of room.
const BYTES_PER_KEY: u64 = 1024;

/// Passes of compaction in the end: the first drops what was superseded, the others the tombstones that had
/// to outlive it.
const PASSES: usize = 3;

/// Works and reopens as `config` says. The first violation ends the run and leaves the pool. `progress` is
/// told the reopenings done.
///
/// # Errors
/// A pool that cannot be made, or files that cannot be handled.
pub fn explore(config: &SoakConfig, progress: &mut dyn FnMut(u64)) -> Result<SoakReport, RunError> {
    RunError::check([
        ("keys", config.keys, FEWEST_KEYS..=u64::MAX),
        ("threads", config.threads as u64, 1..=u64::MAX),
        ("ops", config.ops, 1..=u64::MAX),
    ])?;
    let begun = Instant::now();
    let mut run = Run {
        config,
        model: Model::new(config.keys),
        random: SmallRng::seed_from_u64(mix(config.seed)),
        report: SoakReport {
            design: config.design.to_string(),
            seed: config.seed,
            threads: config.threads,
            ..SoakReport::default()
        },
    };
    let broken = match run.all(progress) {
        Ok(()) => None,
        Err(Broken::Rule(what)) => Some(what),
        Err(Broken::Run(error)) => return Err(error),
    };
    let mut report = run.report;
    (report.puts, report.deletes) = run.model.calls();
    report.seconds = begun.elapsed().as_secs_f64();
    match broken {
        None => remove(&config.pool)?,
        Some(what) => report.convict(config, what),
    }
    Ok(report)
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

impl From<RunError> for Broken {
    fn from(error: RunError) -> Broken {
        Broken::Run(error)
    }
}

struct Run<'a> {
    config: &'a SoakConfig,
    model: Model,
    random: SmallRng,
    report: SoakReport,
}

impl Run<'_> {
    fn options(&self) -> Options {
        let SoakConfig { design, keys, .. } = *self.config;
        Options::new()
            .design(design)
            .size((keys * BYTES_PER_KEY).max(2 << 20).next_multiple_of(4096))
            .zone_size(ZONE)
            .medium(MediumKind::File)
            // An abandoned pool is copied while it rests.
            .accept_copy(true)
            // Copies are of the pool alone.
            .levels(Levels::Off)
            // The copy of an open store must not change meanwhile.
            .cleaner(false)
    }

    fn all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), Broken> {
        let _left_out = leave_out(self.config.twin.and_then(|broken| broken.twin()));
        let pool = &self.config.pool;
        let mut store = Store::create(pool, &self.options()).map_err(RunError::Create)?;
        let (mut clean, mut unclean) = (self.config.clean, self.config.unclean);
        while clean + unclean > 0 {
            let abandon = self.random.random_range(0..clean + unclean) >= clean;
            self.work(&store, abandon)?;
            self.note(&store);
            if abandon {
                drop(store);
                let copy = copy_of(pool);
                fs::rename(&copy, pool).map_err(RunError::system(copy.display()))?;
                unclean -= 1;
                self.report.unclean += 1;
            } else {
                store.close().map_err(|error| format!("the pool cannot be closed: {error}"))?;
                clean -= 1;
                self.report.clean += 1;
            }
            store = self.reopen()?;
            progress(self.report.clean + self.report.unclean);
        }
        self.end(store)
    }

    /// All clients at work, until they have made their calls. To abandon the pool, it is copied while they
    /// still hold everything that they hold.
    fn work(&mut self, store: &Store, abandon: bool) -> Result<(), Broken> {
        let SoakConfig { pool, threads, ops, .. } = self.config;
        // From few keys, which are hot, to all of them: each order of magnitude as often as any other.
        let most = (self.config.keys as f64 / FEWEST_KEYS as f64).ln();
        let keys = (FEWEST_KEYS as f64 * self.random.random_range(0.0..=most).exp()) as u64;
        let (seed, model) = (self.random.random::<u64>(), &self.model);
        let ops = ops / *threads as u64;
        let ended = on_threads(*threads, |thread| calls(store, model, keys, ops, seed, thread as u64));
        // Dropped at the end of this function and not before: a client that goes tidies up.
        let _clients = ended.into_iter().collect::<Result<Vec<_>, String>>()?;
        if abandon {
            let copy = copy_of(pool);
            fs::copy(pool, &copy).map_err(RunError::system(copy.display()))?;
        }
        Ok(())
    }

    /// Adds up what a store did that is about to go.
    fn note(&mut self, store: &Store) {
        let stats = store.stats();
        self.report.freed_segments += stats.freed_segments;
        self.report.moved_bytes += stats.moved_bytes;
        self.report.most_tombstone_bytes = self.report.most_tombstone_bytes.max(stats.tombstone_bytes);
    }

    /// Opens the pool and judges it.
    fn reopen(&self) -> Result<Store, Broken> {
        let opened = Store::open(&self.config.pool, &self.options());
        let mut store = opened.map_err(|error| format!("the pool cannot be opened: {error}"))?;
        self.judge(&mut store)?;
        Ok(store)
    }

    fn judge(&self, store: &mut Store) -> Result<(), Broken> {
        prove(store)?;
        let keys: Vec<u64> = (0..self.config.keys).collect();
        Ok(self.model.compare(&contents(&store.client(), &keys)?)?)
    }

    /// When nobody writes any more, compaction leaves hardly a tombstone, and everything else.
    fn end(&mut self, mut store: Store) -> Result<(), Broken> {
        for _ in 0..PASSES {
            store.compact().map_err(|error| format!("compaction fails: {error}"))?;
        }
        self.note(&store);
        self.judge(&mut store)?;
        self.report.tombstone_bytes = store.stats().tombstone_bytes;
        drop(store);
        drop(self.reopen()?);
        if self.report.tombstone_bytes > ZONE {
            return Err(
                format!("compaction leaves {} bytes of tombstones", self.report.tombstone_bytes).into()
            );
        }
        Ok(())
    }
}

fn copy_of(pool: &Path) -> PathBuf {
    let mut path = pool.to_owned().into_os_string();
    path.push(".copy");
    path.into()
}

/// The calls of one client, which is still there in the end.
fn calls(
    store: &Store,
    model: &Model,
    keys: u64,
    calls: u64,
    seed: u64,
    thread: u64,
) -> Result<Client, String> {
    let mut random = SmallRng::seed_from_u64(mix(seed ^ thread));
    let mut client = store.client();
    // Beside what writers do by themselves, and not always, since it leaves little that is old.
    let asks = thread == 0 && random.random_ratio(1, 4);
    for call in 0..calls {
        if asks && call == calls / 2 {
            store.compact().map_err(|error| format!("compaction fails: {error}"))?;
        }
        model.call(&mut client, keys, &mut random)?;
    }
    Ok(client)
}

fn remove(pool: &Path) -> Result<(), RunError> {
    fs::remove_file(pool).map_err(RunError::system(pool.display()))
}

impl SoakReport {
    fn convict(&mut self, config: &SoakConfig, what: String) {
        self.violations += 1;
        let SoakConfig { pool, design, keys, threads, ops, clean, unclean, seed, twin } = config;
        let replay = format!(
            "quipu soak {} --design {design} --keys {keys} --threads {threads} --ops {ops} --clean {clean} --unclean \
             {unclean} --seed {seed}{}",
            pool.display(),
            twin_argument(*twin)
        );
        self.details.push(Conviction { at: At::Reopenings(self.clean + self.unclean), what, replay });
    }
}
