//! Runs the chosen engines, one after another, each in the same place and by the same runner.
//!
//! Our own designs go through the same door as in `quipu bench`, on a pool in the place where the others have
//! their folders, so that the file system and its medium are the same.

use crate::engines::{
    Choice, Fjall, FjallOptimistic, Handle, Kind, Pmemkv, Redb, Rival, RocksDb, Setup, Sqlite,
};
use crate::level::Survival;
use crate::place::Place;
use quipu::{Design, Durability, MediumKind, Statement};
use quipu_bench::settings;
use quipu_bench::{BenchError, Config, Progress, Roofline, Row, Sink};
use quipu_lab::bench::paper::Benchmark;
use quipu_medium::Region;
use std::fs;
use std::path::Path;

/// Bytes of a region that is made only to ask the medium about itself.
const TRIAL: u64 = 4096;

/// The failures that acknowledged writes of `choice` survive in `place`, on the medium of `config`. Those of
/// an engine whose log has a folder of its own survive as that folder does.
///
/// # Errors
/// [`BenchError`] if the place is taken, or cannot be the medium.
pub fn survival(choice: &Choice, config: &Config, place: &Place) -> Result<Survival, BenchError> {
    // Tried for the others too: they would take any folder for the medium that it is said to be.
    let statement = statement_at(place.path(), Some(config.medium))?;
    Ok(match (choice.kind, place.log()) {
        (Kind::Quipu(_), _) => match place.pool() {
            Some(pool) => Survival::from(&statement_at(pool, None)?),
            None => Survival::from(&statement),
        },
        (kind, Some(log)) if kind.is_rocksdb() => choice.level.on(statement_at(log, None)?.medium),
        _ => choice.level.on(config.medium),
    })
}

/// The statement of a medium at a path about itself; without a medium, of the one that is found there.
fn statement_at(path: &Path, medium: Option<MediumKind>) -> Result<Statement, BenchError> {
    let statement = Region::create(path, TRIAL, medium, Durability::Process)?.statement();
    fs::remove_file(path).map_err(|source| BenchError::File { path: path.to_owned(), source })?;
    Ok(statement)
}

/// Runs `benchmark` on each of `choices`, in `place`, which must not exist.
///
/// # Errors
/// The first error of any engine; the rows before it have been handed over.
pub fn run(
    choices: &[Choice],
    benchmark: &Benchmark,
    config: &Config,
    place: &Place,
    progress: &dyn Progress,
    sink: &mut dyn FnMut(&Choice, Row),
) -> Result<(), BenchError> {
    let config = match benchmark {
        Benchmark::Ycsb(workload) => config.of_workload(workload),
        _ => config.clone(),
    };
    let config = Config { pool: Some(place.path().to_owned()), ..config };
    let mut rivals = Rivals { benchmark, config: &config, roofline: None, progress };
    for choice in choices {
        let setup = choice.setup(&config, place.clone());
        let sink: Sink<'_> = &mut |row| sink(choice, row);
        match choice.kind {
            Kind::Quipu(design) => ours(design, benchmark, &of_ours(&config, place)?, progress, sink)?,
            Kind::RocksDb | Kind::RocksDbOptimistic | Kind::RocksDbLocking => {
                rivals.measure::<RocksDb>(setup, sink)?;
            }
            Kind::Redb => rivals.measure::<Redb>(setup, sink)?,
            Kind::Fjall => rivals.measure::<Fjall>(setup, sink)?,
            Kind::FjallOptimistic => rivals.measure::<FjallOptimistic>(setup, sink)?,
            Kind::Sqlite => rivals.measure::<Sqlite>(setup, sink)?,
            Kind::Pmemkv => rivals.measure::<Pmemkv>(setup, sink)?,
        }
    }
    Ok(())
}

/// The settings of our own designs: their pools may be elsewhere, on another medium, above their levels.
fn of_ours(config: &Config, place: &Place) -> Result<Config, BenchError> {
    let Some(pool) = place.pool() else { return Ok(config.clone()) };
    let beside = place.path().parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(Config {
        medium: statement_at(pool, None)?.medium,
        pool: Some(pool.to_owned()),
        levels: Some(beside.unwrap_or(Path::new(".")).to_owned()),
        ..config.clone()
    })
}

fn ours(
    design: Design,
    benchmark: &Benchmark,
    config: &Config,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    // Of several designs with settings, each has its own.
    let settings = settings::of_design(&config.settings, design);
    let config = Config { designs: vec![design], settings, ..config.clone() };
    benchmark.run(&config, progress, sink)
}

/// The common state of the engines that are not ours.
struct Rivals<'a> {
    benchmark: &'a Benchmark,
    config: &'a Config,
    roofline: Option<Roofline>,
    progress: &'a dyn Progress,
}

impl Rivals<'_> {
    fn measure<H: Handle>(&mut self, setup: Setup, sink: Sink<'_>) -> Result<(), BenchError> {
        let engine = Rival::<H>::new(setup);
        if self.config.roofline && self.roofline.is_none() {
            self.roofline = Some(Roofline::new(self.config)?);
        }
        self.benchmark.run_on(self.config, &engine, self.roofline.as_mut(), self.progress, sink)
    }
}
