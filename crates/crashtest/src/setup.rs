//! [`CrashTest`]: what is tested, and how far.

use crate::judge::{Cut, Within};
use crate::panics::Kept;
use crate::program::{After, Event, Outcome, Task};
use crate::recorder::Recorder;
use crate::report::{self, Failure, FailureKind, Summary};
use crate::search::Search;
use crate::shorten::shorten;
use crate::tapes::Tapes;
use crate::watch::Watch;
use quipu::{Design, Levels, Options, Store};
use std::sync::Arc;
use std::time::Duration;

/// The variable of the environment that has a report's seed.
pub(crate) const VARIABLE: &str = "QUIPU_CRASHTEST";

/// A pool has about sixty zones of this size, unless the test says otherwise.
const POOL: u64 = 1 << 20;
const ZONE: u64 = 16 << 10;

const CUTS: u64 = 1_000;

/// One history of so many is cut. Races are rarer than moments, and need no cut: histories without any take
/// little time.
const UNCUT: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(10);

type Start<P> = dyn Fn(Arc<Store>) -> Outcome<P>;
type Work<P, E> = dyn Fn(&P, &Task<E>) -> Outcome;
type Invariant<P, E> = dyn Fn(&P, &After<E>) -> Outcome;

/// A crash test of a program `P`, whose tasks tell of events `E`. See the [crate](crate)'s page.
#[must_use = "a test runs when it is checked"]
pub struct CrashTest<P, E> {
    pub(crate) start: Box<Start<P>>,
    pub(crate) tasks: Vec<Arc<Work<P, E>>>,
    pub(crate) invariant: Box<Invariant<P, E>>,
    design: Option<Design>,
    pub(crate) options: Options,
    pub(crate) pool: u64,
    pub(crate) cuts: u64,
    pub(crate) recoveries: u32,
    pub(crate) moves_clock: bool,
    pub(crate) fills_pool: bool,
    seed: u64,
    replay: Option<String>,
    patience: Duration,
}

impl<P: 'static, E: Event> CrashTest<P, E> {
    /// A test of a program that starts so: it is given the store, which has just been opened, and returns
    /// what its tasks share. It runs on the empty pool at first, and again after each recovery, so it finds
    /// what it had begun, and may be cut itself. A program without such a start is `CrashTest::new(Ok)`.
    pub fn new(start: impl Fn(Arc<Store>) -> Outcome<P> + 'static) -> CrashTest<P, E> {
        CrashTest {
            start: Box::new(start),
            tasks: Vec::new(),
            invariant: Box::new(|_, _| Ok(())),
            design: None,
            options: Options::new(),
            pool: POOL,
            cuts: CUTS,
            recoveries: 1,
            moves_clock: false,
            fills_pool: false,
            seed: 1,
            replay: None,
            patience: PATIENCE,
        }
    }

    /// Adds so many tasks that do this work, side by side with the others. It runs once for each history,
    /// thousands of times in all, and makes its choices by [`Task::draw`] alone. An error or a panic fails
    /// the test.
    pub fn tasks(
        mut self,
        count: usize,
        work: impl Fn(&P, &Task<E>) -> Outcome + 'static,
    ) -> CrashTest<P, E> {
        let work: Arc<Work<P, E>> = Arc::new(work);
        self.tasks.extend((0..count).map(|_| work.clone()));
        self
    }

    /// Sets what must hold after each recovery, and at the end of a history that was not cut. An error or a
    /// panic says that it does not.
    pub fn invariant(mut self, holds: impl Fn(&P, &After<E>) -> Outcome + 'static) -> CrashTest<P, E> {
        self.invariant = Box::new(holds);
        self
    }

    /// The design of the pool. Default: that of the options, and else `quipu`.
    pub fn design(self, design: Design) -> CrashTest<P, E> {
        CrashTest { design: Some(design), ..self }
    }

    /// The options that the pool is created and opened with. Those of files and levels do not count: the pool
    /// is in simulated memory.
    pub fn options(self, options: Options) -> CrashTest<P, E> {
        CrashTest { options, ..self }
    }

    /// Bytes of the pool. Default: 1 MiB, in zones of 16 KiB. Each history has a new one, so a large one
    /// takes time.
    pub fn pool(self, bytes: u64) -> CrashTest<P, E> {
        CrashTest { pool: bytes, ..self }
    }

    /// States after a cut to judge, at least. Default: 1000.
    pub fn cuts(self, count: u64) -> CrashTest<P, E> {
        CrashTest { cuts: count, ..self }
    }

    /// How often in a row a recovery may be cut, too. Default: once. The start of the program is a part of
    /// the recovery here.
    pub fn recoveries(self, deep: u32) -> CrashTest<P, E> {
        CrashTest { recoveries: deep, ..self }
    }

    /// Lets the store's clock move between calls, and between a cut and the recovery: by a millisecond, or by
    /// days. Values that expire do so at times that the tasks do not choose. The system's clock is another
    /// one.
    pub fn moves_clock(self) -> CrashTest<P, E> {
        CrashTest { moves_clock: true, ..self }
    }

    /// Lets the pool be full in half of the histories. From some call on, each that takes room fails with
    /// [`Error::PoolFull`](quipu::Error::PoolFull), but for deletions. An error that a task then returns ends
    /// the task, and does not fail the test.
    pub fn fills_pool(self) -> CrashTest<P, E> {
        CrashTest { fills_pool: true, ..self }
    }

    /// Where the seeds of the histories begin. Default: 1, so that a test does the same each time. A run at
    /// night may give the date.
    pub fn seed(self, seed: u64) -> CrashTest<P, E> {
        CrashTest { seed, ..self }
    }

    /// Runs the one history of a report's seed, and no search: a fault that was found becomes a test of its
    /// own. The variable `QUIPU_CRASHTEST` of the environment does it for one run. A test of another design
    /// than the report's does nothing then.
    pub fn replay(self, seed: impl Into<String>) -> CrashTest<P, E> {
        CrashTest { replay: Some(seed.into()), ..self }
    }

    /// How long the program may go without a call of the store before it counts as stuck. Default: ten
    /// seconds. A program that is stuck cannot be stopped, so the process ends then, with an error that says
    /// what to look for.
    pub fn patience(self, time: Duration) -> CrashTest<P, E> {
        CrashTest { patience: time, ..self }
    }

    /// Runs the test.
    ///
    /// # Panics
    /// With the report, if a history breaks the invariant, or the test cannot be simulated.
    pub fn check(self) -> Summary {
        match self.explore() {
            Ok(summary) => summary,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Runs the test, for callers who look at the failure.
    ///
    /// # Errors
    /// The failure with its report, as for [`check`](CrashTest::check).
    pub fn explore(mut self) -> Result<Summary, Box<Failure>> {
        let options = match self.design {
            Some(design) => self.options.design(design),
            None => self.options,
        };
        // Nothing may be outside of the simulated machine: no thread, and no folder.
        let options = options.cleaner(false).recovery_threads(1).levels(Levels::Off);
        self.options = options.with(|options| {
            options.zone_size.get_or_insert(ZONE);
            options.testing.tiny_index = true;
        });
        let recorder = Arc::new(Recorder::new());
        let _watch = Watch::new(recorder.clone(), self.patience);
        let mut search = Search::new(&self, recorder).map_err(|error| {
            Failure::of(FailureKind::Setup, format!("the pool cannot be created: {error}"))
        })?;
        // Panics of the program are part of the report.
        let _kept = Kept::new();
        let given = self.replay.clone().or_else(|| std::env::var(VARIABLE).ok());
        match given {
            Some(seed) => self.repeat(&mut search, &seed),
            None => self.search(&mut search),
        }
    }

    fn search(&self, search: &mut Search<'_, P, E>) -> Result<Summary, Box<Failure>> {
        let mut summary = Summary::default();
        while search.judged < self.cuts {
            let is_cut = summary.histories.is_multiple_of(UNCUT);
            search.only = (!is_cut).then_some(Cut::None);
            let tapes = Tapes::fresh(self.seed.wrapping_add(summary.histories), self.tasks.len());
            let (used, found) = search.history(tapes);
            summary.histories += 1;
            summary.cuts = search.judged;
            if let Some(found) = found {
                return Err(Box::new(shorten(search, (used, found), summary)));
            }
        }
        Ok(summary)
    }

    /// Runs the history of a report's seed.
    fn repeat(&self, search: &mut Search<'_, P, E>, seed: &str) -> Result<Summary, Box<Failure>> {
        let (design, tapes) = report::parse(seed, self.tasks.len())
            .map_err(|what| Failure::of(FailureKind::Setup, format!("the seed to replay: {what}")))?;
        if design != search.design {
            return Ok(Summary::default());
        }
        (search.only, search.within) = (None, Within::All);
        let (_, found) = search.history(tapes);
        let summary = Summary { histories: 1, cuts: search.judged };
        found.map_or(Ok(summary), |found| Err(Box::new(Failure::found(found, search.design, summary, 0))))
    }
}
