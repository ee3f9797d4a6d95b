//! One run: a workload with its crash points, and the judgement of every state that they may leave.

use super::bank::Bank;
use super::explorer::{DETAILS, Findings};
use super::hand::{Hand, table_name};
use super::history::Recorder;
use super::ledger::{Contents, Ledger};
use super::levels::{Disk, DiskImage, address_of};
use super::moment::{Label, Point, Points, closed};
use super::oracle::{Time, ValueId, milliseconds};
use super::pace::{DEPTH, MOST_FOLLOWED, Pace, first_zones, within, work_beside};
use super::perform::perform;
use super::pool::Pool;
use super::records::Records;
use super::report::{Broken, CrashConfig, Violation};
use super::stage::Stage;
use super::tables::with_tables;
use super::transfers;
use super::verdict::{judged, read_all, surveyed, works_on};
use super::workload::{self, Step, Work};
use quipu::Store;
use quipu::internals::twin;
use quipu_medium::Region;
use quipu_medium::sim::{Image, Observer, Sim, SimArena, SimOptions, sched};
use quipu_parts::space::SpaceError;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Operations at the start of a run, or of a run's continuation, that work on fresh segments.
const FRESH: u64 = 3;

/// Steps of each thread after the store was closed and opened again.
const STEPS_AFTER_CLOSE: usize = 5;

/// The name of the first value written then: beyond those of before, below those after a crash.
const AFTER_CLOSE: ValueId = 1 << 20;

/// Operations of a recovery that are all crash points; of those that follow only some are.
const LONG_RECOVERY: u32 = 24;

/// Operations, one in so many, of a survey behind a recovery that are crash points.
const SURVEY_MOMENTS: u32 = 8;

/// How the machine stopped.
enum Crash<'i> {
    /// Power was lost, and this much had arrived.
    Power {
        image: &'i Image,
        /// Something had arrived and something not.
        torn: bool,
    },
    /// The process died and nothing else.
    Process,
}

/// One run in progress.
pub(super) struct Run<'a> {
    config: &'a CrashConfig,
    arena: &'a mut SimArena,
    random: SmallRng,
    seed: u64,
    pool: Pool,
    pace: Pace,
    /// States that were judged. Their levels are kept, so that no others get the same address.
    judged: HashMap<(u64, usize, u64), DiskImage>,
    findings: Findings,
}

impl<'a> Run<'a> {
    pub(super) fn new(config: &'a CrashConfig, arena: &'a mut SimArena, seed: u64) -> Run<'a> {
        let random = SmallRng::seed_from_u64(seed);
        let pool = Pool::of(seed, config);
        let pace = Pace::of(seed, config, &pool);
        Run { config, arena, random, seed, pool, pace, judged: HashMap::new(), findings: Findings::default() }
    }

    /// Carries out the run and judges its states.
    pub(super) fn explore(mut self) -> Findings {
        // The tasks and recoveries of a run are all on this thread.
        let _left_out = twin::leave_out(self.config.twin.and_then(Broken::twin));
        self.explore_all();
        self.findings
    }

    fn explore_all(&mut self) {
        let Pace { steps, chance, budget, compactions, points: most, .. } = self.pace;
        let Pool { len, nodes, .. } = self.pool;
        let region = Region::sim(SimOptions { len, nodes, seed: self.seed, ..SimOptions::default() });
        let sim = region.simulator().expect("a simulated region").clone();

        let points = Points::default();
        let Records { words, tables, keys, .. } = self.pool.records;
        let nothing = Contents { states: vec![None; keys], tables: vec![None; tables] };
        let recorder = Rc::new(RefCell::new(self.recorder(&nothing, 0)));
        let stage = Rc::new(Stage::default());
        let (fixed, ordered) = (self.pool.records.are_of_one_size(), self.pool.grants.is_some());
        let label = Label { words, fixed, ordered, tables: tables > 1, ..Label::default() };
        let disk = Disk::new(self.pool.levels.is_some());
        let observer = self.observer((&points, &disk), &recorder, &stage, chance, label);
        sim.set_observer(Some(observer));
        match Store::create_on(region.clone(), &disk.below(&self.pool.options)) {
            Ok(created) => stage.open(created),
            Err(error) => {
                return self.violation(0, format!("the pool could not be created: {error}"), String::new());
            }
        }
        sim.set_fault(self.config.twin.and_then(Broken::fault));
        self.pool.levels.iter().for_each(|faults| disk.fail(*faults));
        let closes = !self.seed.is_multiple_of(3);
        let mut failure =
            self.work(&stage, &recorder, (steps, compactions[0]), workload::FIRST_VALUE, closes);
        if closes && failure.is_none() {
            // A pool that was closed and not touched since is what its checkpoint is for.
            closed((&sim, &disk), &recorder, &points, label);
            failure = self.work_after_close((region, &disk), &stage, &recorder);
        }
        sim.set_observer(None);
        if let Some(what) = failure {
            return self.violation(0, what, String::new());
        }
        self.judge_points(&points, budget, most[0]);
    }

    /// A record of work on a pool with these contents.
    fn recorder(&self, contents: &Contents, time: Time) -> Recorder {
        let ledger = |grants| Ledger::new(grants, self.pool.records, contents);
        let bank = self.config.transfers.then(|| Bank::new(&contents.states));
        Recorder::new(&contents.states, time, self.pool.grants.as_ref().map(ledger)).with_bank(bank)
    }

    /// An observer that freezes some of the moments it sees, those of growth always.
    fn observer(
        &mut self,
        (points, disk): (&Points, &Disk),
        recorder: &Rc<RefCell<Recorder>>,
        stage: &Rc<Stage>,
        chance: f64,
        base: Label,
    ) -> Observer {
        let (points, recorder, stage) = (points.clone(), recorder.clone(), stage.clone());
        let disk = disk.clone();
        let Pace { compacting: while_compacting, commits: few, .. } = self.pace;
        let first_zones = first_zones(self.config.design);
        let believes_index = self.config.design.can().index_in_pool;
        let mut random = SmallRng::seed_from_u64(self.random.random());
        let (mut operation, mut returned, mut ranged) = (0, 0, base.ranged);
        Box::new(move |sim, _| {
            operation += 1;
            // A write that has just returned must stay, and nothing came after it that could help.
            let has_returned = std::mem::replace(&mut returned, recorder.borrow().version()) != returned;
            let open = stage.store.borrow().clone();
            let activity = open.as_ref().map(|store| store.activity()).unwrap_or_default();
            let (growing, growth) = (activity.is_growing, activity.index_growth);
            let (compacting, surveying) = (activity.is_compacting, activity.is_surveying);
            let (creating, closing) = (!stage.created.get(), stage.closing.get());
            let changing = recorder.borrow().is_changing();
            let (changing_tables, holding) = recorder.borrow_mut().tables_and_snapshots();
            let deleting_range = recorder.borrow().is_deleting_range();
            ranged |= deleting_range;
            let read_ahead = recorder.borrow_mut().take_read_ahead();
            // The first records of fresh segments decide what recovery does with them.
            let fresh = !growing && recorder.borrow().version() < FRESH;
            let chance = match () {
                () if read_ahead || growth.is_linking => 1.0,
                () if changing_tables => chance.max(0.5),
                () if growth.is_splitting && believes_index => chance.max(0.3),
                () if creating => chance / 4.0,
                // Few moments, and what the close has left still counts.
                () if stage.reopened.get() && open.is_none() => 1.0,
                () if closing || stage.reopened.get() => chance.max(0.25),
                () if compacting => chance.max(while_compacting),
                () if growing => chance.max(0.12),
                () if changing || deleting_range => chance.max(0.3),
                () if has_returned => chance.max(0.25),
                () if fresh => chance.max(0.6),
                () => chance,
            };
            let commits = base.commits + recorder.borrow().commits();
            let chance = if commits < few { chance.min(0.01) } else { chance };
            if random.random_bool(chance) {
                let stays = read_ahead || growth.is_linking;
                let time = recorder.borrow().now();
                let timed = base.timed || time > 0;
                let label = Label { creating, growing, compacting, surveying, closing, changing, ..base };
                let label = Label { timed, changing_tables, holding, ranged, commits, ..label };
                let label = label.with(growth, first_zones);
                let expectation = Rc::new(recorder.borrow_mut().expectation());
                let (snapshot, levels) = (sim.snapshot(), disk.image());
                let point = Point { snapshot, levels, expectation, operation, time, stays, label };
                points.borrow_mut().push(point);
            }
        })
    }

    /// Runs generated steps on an open store, and as many compactions beside them, and closes it or lets it
    /// drop. Tells what went wrong, crash or no crash.
    fn work(
        &mut self,
        stage: &Stage,
        recorder: &Rc<RefCell<Recorder>>,
        (steps, compactions): (usize, usize),
        first_value: ValueId,
        closes: bool,
    ) -> Option<String> {
        let (design, records) = (self.config.design.can(), self.pool.records);
        let clock = self.pool.moves_clock.then(|| recorder.borrow().now());
        let work = Work { threads: self.config.threads, steps, first_value, records, clock };
        let generate = if self.config.transfers { transfers::generate } else { workload::generate };
        let mut plans: Vec<Vec<_>> = generate(self.random.random(), &work)
            .into_iter()
            .map(|plan| plan.into_iter().map(|step| step.for_design(design, records)).collect())
            .collect();
        if compactions > 0 {
            plans.push(vec![Step::Compact; compactions]);
        }
        if self.pool.grants.is_some() && !self.config.transfers {
            with_tables(&mut plans, self.random.random(), records);
        }
        self.findings.operations += plans.iter().map(|plan| plan.len() as u64).sum::<u64>();
        let open = stage.store.borrow().clone().expect("work needs an open store");
        if let Some(ledger) = recorder.borrow_mut().ledger() {
            ledger.knows_default(open.table(&table_name(0)).expect("every pool has it"));
        }
        let failure = RefCell::new(None);
        let doer = |plan: Vec<Step>, node| {
            let (open, failure) = (&open, &failure);
            Box::new(move || {
                if let Err(error) = open.pin(node) {
                    failure.borrow_mut().get_or_insert(format!("no place on node {node}: {error}"));
                }
                let mut hand = Hand::new(open, records, recorder);
                for step in plan {
                    if let Err(what) = perform(&mut hand, &step) {
                        failure.borrow_mut().get_or_insert(format!("{step:?}: {what}"));
                    }
                }
            }) as Box<dyn FnOnce() + '_>
        };
        if self.config.transfers {
            recorder.borrow_mut().bank().names_from(first_value);
            let deposit = vec![doer(vec![Step::Deposit], 0)];
            if let Err(error) = sched::run(self.random.random(), deposit) {
                return Some(error.to_string());
            }
        }
        let before = recorder.borrow().commits();
        // Seeds of two tasks have been pinned without these.
        let beside = if self.config.threads > 2 { open.work_beside() } else { Vec::new() };
        let beside =
            beside.into_iter().map(|piece| Box::new(|| work_beside(piece)) as Box<dyn FnOnce() + '_>);
        let nodes = (0..self.pool.nodes).cycle();
        let tasks = plans.into_iter().zip(nodes).map(|(plan, node)| doer(plan, node)).chain(beside).collect();
        if let Err(error) = sched::run(self.random.random(), tasks) {
            return Some(error.to_string());
        }
        self.findings.commits += u64::from(recorder.borrow().commits() - before);
        self.findings.eliminated += open.stats().eliminated_writes;
        drop(open);
        let open =
            stage.store.borrow_mut().take().and_then(Rc::into_inner).expect("only this run holds the store");
        if closes {
            stage.closing.set(true);
            if let Err(error) = open.close() {
                return Some(format!("close: {error}"));
            }
            stage.closing.set(false);
        }
        recorder.borrow_mut().inexplicable.take().or(failure.into_inner())
    }

    /// Opens the store that was closed and works on: what the close has left must count until the first
    /// change, and not after it.
    fn work_after_close(
        &mut self,
        (region, disk): (Region, &Disk),
        stage: &Rc<Stage>,
        recorder: &Rc<RefCell<Recorder>>,
    ) -> Option<String> {
        let options = &disk.below(&self.pool.options);
        stage.reopened.set(true);
        let opened = Cell::new(None);
        let task = || opened.set(Some(Store::open_on(region, options)));
        if let Err(error) = sched::run(self.random.random(), vec![Box::new(task)]) {
            return Some(error.to_string());
        }
        match opened.into_inner() {
            Some(Ok(store)) => stage.open(store),
            Some(Err(error)) => return Some(format!("open after close: {error}")),
            None => return Some("open after close did not end".into()),
        }
        let closes = self.random.random_ratio(1, 3);
        self.work(stage, recorder, (STEPS_AFTER_CLOSE, self.pace.compactions[1]), AFTER_CLOSE, closes)
    }

    /// Judges the images of so many of the points.
    fn judge_points(&mut self, points: &Points, budget: usize, most: usize) {
        let mut points = std::mem::take(&mut *points.borrow_mut());
        if points.len() > most {
            let (mut stay, mut others): (Vec<_>, Vec<_>) = points.into_iter().partition(|point| point.stays);
            others.shuffle(&mut self.random);
            others.truncate(most.saturating_sub(stay.len()));
            stay.append(&mut others);
            points = stay;
        }
        for point in points {
            let budget = within(budget, self.findings.states.len());
            for (i, image) in point.snapshot.images(self.random.random(), budget).enumerate() {
                if self.findings.violations.len() >= DETAILS {
                    return;
                }
                let version = point.expectation.version;
                let state = (image.hash(), address_of(&point.levels), version);
                if self.judged.insert(state, point.levels.clone()).is_none() {
                    // The first two images are the whole ones: nothing arrived, everything did.
                    self.judge(&point, Crash::Power { image: &image, torn: i >= 2 });
                }
            }
            let Label { depth, ordered, recovering, .. } = point.label;
            // Where recovery ends what a crash has left open, its marks may be in the caches only.
            if (depth == 0 || ordered && recovering) && self.random.random_ratio(1, 8) {
                self.judge(&point, Crash::Process);
            }
        }
    }

    /// Recovers one state and asks the oracle; now and then crashes recovery too, or works on and crashes
    /// again.
    fn judge(&mut self, point: &Point, crash: Crash<'_>) {
        let Label { depth, creating, .. } = point.label;
        let seed = self.random.random();
        // The machine starts again at once, or so late that some values have expired meanwhile.
        let time = match self.pool.moves_clock {
            true if self.random.random_ratio(1, 2) => point.time + self.random.random_range(1..3),
            _ => point.time,
        };
        // One in so many recoveries is crashed. One in so many stores is worked on and crashed.
        let (region, describe, recovery, work) = match crash {
            Crash::Power { image, torn } => {
                let expired = point.expectation.has_expired(time);
                self.findings.states.push((image.hash(), Label { expired, ..point.label }));
                // Worth following: a torn batch, whose later records stand whole behind an invalid one.
                // In a fresh segment such a record comes to lie where the next life of the zone begins.
                let lives = self.config.design.can().batches;
                let torn_batch = lives && torn && point.expectation.batch_in_flight && depth == 0;
                let work = match point.expectation.version {
                    _ if point.label.closing => 8,
                    ..FRESH if torn_batch => 1,
                    _ if torn_batch => 3,
                    _ => 100,
                };
                (self.arena.boot(&point.snapshot, image, seed), image.describe(&point.snapshot), 32, work)
            }
            Crash::Process => {
                let region = self.arena.boot_process_crash(&point.snapshot, seed);
                let describe = "the process died; what it had stored was still in the caches".to_owned();
                // Only a power failure that follows can take away what the caches still hold.
                (region, describe, 2, 3)
            }
        };
        let sim = region.simulator().expect("a simulated region").clone();
        sim.set_now(milliseconds(time));
        let (nested, stage) = (Points::default(), Rc::new(Stage::default()));
        let disk = Disk::of(&point.levels);
        let follows = depth < DEPTH && self.findings.states.len() < MOST_FOLLOWED;
        let is_watched = follows && self.random.random_ratio(1, recovery);
        if is_watched {
            sim.set_observer(Some(self.recovery_observer(point, (&nested, &disk), &stage, time)));
        }
        let goes_on = follows && self.random.random_ratio(1, work);

        let (options, records) = (&disk.below(&self.pool.options), self.pool.records);
        let verdict = Cell::new(Ok(Contents::default()));
        let from_checkpoint = Cell::new(false);
        let task = || {
            verdict.set((|| {
                let mut store = match Store::open_on(region, options) {
                    Err(quipu::Error::Space(SpaceError::NotAPool)) if creating => {
                        return Ok(Contents::default());
                    }
                    other => other.map_err(|error| format!("recovery refused the pool: {error}"))?,
                };
                if is_watched && store.activity().is_surveying {
                    store = surveyed(store, &stage.store)?;
                }
                sim.set_observer(None);
                from_checkpoint.set(store.recovery().from_checkpoint);
                let contents = read_all(&store, records)?;
                judged(&store, records, &contents, &point.expectation, time)?;
                let report = store.check(&|_, _| {}).map_err(|error| error.to_string())?;
                if !report.is_sound() {
                    return Err(format!("the recovered pool is not sound: {}", report.damage));
                }
                if goes_on {
                    stage.open(store);
                } else {
                    works_on(&store, records)?;
                }
                Ok(contents)
            })());
        };
        let ended = sched::run(self.random.random(), vec![Box::new(task)]);
        sim.set_observer(None);
        self.findings.checkpoints += from_checkpoint.get() as u64;
        let verdict = match ended {
            Ok(()) => verdict.into_inner(),
            Err(error) => Err(format!("recovery: {error}")),
        };
        match verdict {
            Err(what) => self.violation(point.operation, what, describe),
            Ok(contents) if goes_on && stage.created.get() => {
                let timed = point.label.timed || time > 0;
                let label = Label { depth: depth + 1, timed, ..point.label.inherited() };
                self.go_on((&sim, &disk), &stage, &contents, (label, time));
            }
            Ok(_) => {}
        }
        // A recovery that believes its index does little, so its moments are seen torn too.
        let budget = if self.config.design.can().index_in_pool { 3 } else { 2 };
        self.judge_points(&nested, budget, self.pace.points[1]);
    }

    /// An observer of a recovery, and of the survey that follows it: a crash of them must be explained by the
    /// same history.
    fn recovery_observer(
        &mut self,
        point: &Point,
        (nested, disk): (&Points, &Disk),
        stage: &Rc<Stage>,
        time: Time,
    ) -> Observer {
        let (nested, disk, stage) = (nested.clone(), disk.clone(), stage.clone());
        let expectation = point.expectation.clone();
        let (operation, first_zones) = (point.operation, first_zones(self.config.design));
        let timed = point.label.timed || time > 0;
        let Label { depth, creating, .. } = point.label;
        let base = Label { depth: depth + 1, creating, timed, ..point.label.inherited() };
        let mut random = SmallRng::seed_from_u64(self.random.random());
        let mut seen = 0;
        Box::new(move |sim, _| {
            seen += 1;
            let open = stage.store.borrow().clone();
            let activity = open.as_ref().map(|store| store.activity()).unwrap_or_default();
            let (surveying, recovering) = (activity.is_surveying, open.is_none());
            let chance = match () {
                () if !recovering && !surveying => return,
                () if surveying => SURVEY_MOMENTS,
                // One that frees many zones does much of the same.
                () if seen > LONG_RECOVERY => 8,
                () => 1,
            };
            if !random.random_ratio(1, chance) {
                return;
            }
            let compacting = activity.is_compacting;
            let label = Label { recovering, surveying, compacting, ..base };
            let label = label.with(activity.index_growth, first_zones);
            let expectation = expectation.clone();
            let stays = false;
            let (snapshot, levels) = (sim.snapshot(), disk.image());
            let point = Point { snapshot, levels, expectation, operation, time, stays, label };
            nested.borrow_mut().push(point);
        })
    }

    /// Goes on working on a recovered store, and crashes that too.
    fn go_on(
        &mut self,
        (sim, disk): (&Sim, &Disk),
        stage: &Rc<Stage>,
        contents: &Contents,
        (label, time): (Label, Time),
    ) {
        let points = Points::default();
        let recorder = Rc::new(RefCell::new(self.recorder(contents, time)));
        sim.set_observer(Some(self.observer((&points, disk), &recorder, stage, 0.1, label)));
        // Values of every generation have names of their own.
        let closes = self.random.random_ratio(1, 4);
        let amount = (3, self.pace.compactions[1]);
        let failure = self.work(stage, &recorder, amount, ValueId::from(label.depth) << 24 | 1, closes);
        sim.set_observer(None);
        if closes && failure.is_none() && self.pool.is_crowded {
            // Most states of a crowded run have crashed before; so have the pools that were closed.
            closed((sim, disk), &recorder, &points, label);
        }
        match failure {
            Some(what) => self.violation(0, format!("after recovery: {what}"), String::new()),
            None => self.judge_points(&points, 2, self.pace.points[2]),
        }
    }

    fn violation(&mut self, operation: u64, what: String, image: String) {
        let replay = self.config.replay(self.seed);
        self.findings.violations.push(Violation { seed: self.seed, operation, what, image, replay });
    }
}
