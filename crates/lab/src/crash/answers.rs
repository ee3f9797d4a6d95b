//! Histories: runs that judge the answers of calls. A wrong answer needs no crash, but several calls that
//! meet at one place, and hundreds of histories cost no more than the crash points of one.
//!
//! A history has up to [`LIVES`] lives. In each, tasks work on few keys of a small pool beside those that
//! clean, dump, compact and move the clock; they are switched between looks of one call as well. At the end
//! all keys are read and judged. All lives except the last end in one crash, of the machine or of the
//! process. It comes at a moment of their work, most likely of its compaction, or behind a clean close. The
//! next life works on the recovered pool for as long as the one before: a crash may only prepare a fault that
//! comes out then. Lines that a dead process has left in the caches may be lost with the power in a later
//! life.

use super::dense::{Dense, plans};
use super::explorer::Findings;
use super::hand::{Hand, table_name};
use super::history::{Expectation, Recorder};
use super::ledger::{Contents, Ledger};
use super::levels::{Disk, DiskImage};
use super::moment::Label;
use super::oracle::{Time, ValueId, milliseconds};
use super::pace::work_beside;
use super::perform::perform;
use super::pool::Pool;
use super::report::{Broken, CrashConfig, Violation};
use super::verdict::{compare, read_all};
use super::workload::Step;
use crate::breaks::twin_argument;
use quipu::Store;
use quipu::internals::twin;
use quipu_medium::Region;
use quipu_medium::sim::sched::{self, RunOptions};
use quipu_medium::sim::{Observer, Sim, SimArena, SimOptions, Snapshot};
use rand::rngs::SmallRng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Lives of a history at most.
const LIVES: u32 = 4;

/// A moment while the store compacts is so many times as likely to be that of the crash.
const COMPACTING: u32 = 8;

/// Images that the one after a crash is drawn from.
const IMAGES: usize = 6;

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In a crash.
    Crashes,
    /// With a clean close, and a crash behind it.
    Closes,
    /// It is the last one.
    Ends,
}

/// A moment of a life that may be its last.
struct End {
    snapshot: Snapshot,
    levels: DiskImage,
    expectation: Expectation,
    operation: u64,
    time: Time,
    label: Label,
}

/// One history in progress.
pub(super) struct History<'a> {
    config: &'a CrashConfig,
    arena: &'a mut SimArena,
    random: SmallRng,
    seed: u64,
    pool: Pool,
    findings: Findings,
}

impl<'a> History<'a> {
    pub(super) fn new(config: &'a CrashConfig, arena: &'a mut SimArena, seed: u64) -> History<'a> {
        let (random, pool) = (SmallRng::seed_from_u64(seed), Pool::of_history(seed, config));
        History { config, arena, random, seed, pool, findings: Findings::default() }
    }

    /// Carries out the history and judges it.
    pub(super) fn explore(mut self) -> Findings {
        // Its tasks and recoveries are all on this thread.
        let _left_out = twin::leave_out(self.config.twin.and_then(Broken::twin));
        if let Err((operation, what)) = self.live() {
            let CrashConfig { design, threads, settings, twin, .. } = self.config;
            let set: String = settings.iter().map(|(name, value)| format!(" --set {name}={value}")).collect();
            let replay = format!(
                "quipu-lab crash --design {design} --seed {} --histories 1 --threads {threads}{set}{}",
                self.seed,
                twin_argument(*twin)
            );
            let image = String::new();
            self.findings.violations.push(Violation { seed: self.seed, operation, what, image, replay });
        }
        self.findings
    }

    /// All lives; the operation on persistent memory and the fault, if there was one.
    fn live(&mut self) -> Result<(), (u64, String)> {
        let Pool { len, nodes, .. } = self.pool;
        let mut region = Region::sim(SimOptions { len, nodes, seed: self.seed, ..SimOptions::default() });
        let mut disk = Disk::new(self.pool.levels.is_some());
        let mut store = Store::create_on(region.clone(), &disk.below(&self.pool.options))
            .map_err(|error| (0, format!("the pool could not be created: {error}")))?;
        let (keys, tables) = (self.pool.records.keys, self.pool.records.tables);
        let mut contents = Contents { states: vec![None; keys], tables: vec![None; tables] };
        let mut time = 0;
        let lives = self.random.random_range(1..=LIVES).min(self.random.random_range(1..=LIVES));
        let mut was_closed = false;
        for life in 0..lives {
            let sim = region.simulator().expect("a simulated region").clone();
            sim.set_fault(self.config.twin.and_then(Broken::fault));
            if life == 0 {
                self.pool.levels.iter().for_each(|faults| disk.fail(*faults));
            }
            let way = match life + 1 == lives {
                true => Way::Ends,
                false if self.random.random_ratio(1, 4) => Way::Closes,
                false => Way::Crashes,
            };
            let plans = if was_closed && self.random.random_ratio(1, 2) {
                // A store that cleans changes a closed pool before anybody writes.
                vec![vec![Step::Compact]]
            } else {
                self.plans(life, time)
            };
            was_closed = way == Way::Closes;
            let end = self.work((&sim, &disk), store, (&contents, &plans), (time, life, way));
            let Some(end) = end.map_err(|what| (0, what))? else { return Ok(()) };
            let (operation, label) = (end.operation, end.label);
            time = end.time + u64::from(self.pool.moves_clock && self.random.random_ratio(1, 2));
            let seed = self.random.random();
            region = if self.random.random_ratio(1, 3) {
                self.arena.boot_process_crash(&end.snapshot, seed)
            } else {
                let images = end.snapshot.images(seed, IMAGES);
                let image = images.choose(&mut self.random).expect("nothing arrived");
                self.findings.states.push((image.hash(), label));
                self.arena.boot(&end.snapshot, &image, seed)
            };
            region.simulator().expect("a simulated region").set_now(milliseconds(time));
            disk = Disk::of(&end.levels);
            let recovered = self.recover((region.clone(), &disk), &end.expectation, time);
            (store, contents) = recovered.map_err(|what| (operation, what))?;
        }
        Ok(())
    }

    /// A life on an open store with these contents, at this time. The moment of its crash, or after its
    /// close; nothing for the last one.
    fn work(
        &mut self,
        (sim, disk): (&Sim, &Disk),
        store: Store,
        (contents, plans): (&Contents, &[Vec<Step>]),
        (time, life, way): (Time, u32, Way),
    ) -> Result<Option<End>, String> {
        let ledger = |grants| Ledger::new(grants, self.pool.records, contents);
        let recorder = Rc::new(RefCell::new(Recorder::new(
            &contents.states,
            time,
            self.pool.grants.as_ref().map(ledger),
        )));
        let (store, kept) = (Rc::new(store), Rc::new(RefCell::new(None)));
        if let Some(ledger) = recorder.borrow_mut().ledger() {
            ledger.knows_default(store.table(&table_name(0)).map_err(|error| error.to_string())?);
        }
        self.findings.operations += plans.iter().map(|plan| plan.len() as u64).sum::<u64>();
        let label = Label { depth: life, ordered: self.pool.grants.is_some(), ..Label::default() };
        if way == Way::Crashes {
            sim.set_observer(Some(self.observer(disk, &recorder, &store, &kept, label)));
        }
        let failure = self.run(plans, &store, &recorder);
        sim.set_observer(None);
        if let Some(what) = failure {
            return Err(what);
        }
        let mut store = Rc::into_inner(store).expect("its tasks have ended");
        if let Some(end) = kept.take() {
            return Ok(Some(end));
        }
        let mut recorder = recorder.borrow_mut();
        let (now, expectation) = (recorder.now(), recorder.expectation());
        if way == Way::Closes {
            store.close().map_err(|error| format!("close: {error}"))?;
            let (snapshot, levels) = (sim.snapshot(), disk.image());
            let label = Label { closing: true, timed: now > 0, ..label };
            return Ok(Some(End { snapshot, levels, expectation, operation: 0, time: now, label }));
        }
        let found = read_all(&store, self.pool.records)?;
        compare(&found, &expectation, now).map_err(|what| format!("at the end of all calls: {what}"))?;
        is_sound(&mut store)?;
        Ok(None)
    }

    fn plans(&mut self, life: u32, time: Time) -> Vec<Vec<Step>> {
        let (can, records) = (self.config.design.can(), self.pool.records);
        let dense = Dense {
            threads: self.config.threads,
            first_value: ValueId::from(life) << 24 | 1,
            records,
            is_ordered: self.pool.grants.is_some(),
            clock: self.pool.moves_clock.then_some(time),
        };
        let plans = plans(&mut self.random, &dense).into_iter();
        plans.map(|plan| plan.into_iter().map(|step| step.for_design(can, records)).collect()).collect()
    }

    /// Runs these plans, and all that goes on beside the clients. Tells what went wrong.
    fn run(
        &mut self,
        plans: &[Vec<Step>],
        store: &Rc<Store>,
        recorder: &Rc<RefCell<Recorder>>,
    ) -> Option<String> {
        let (failure, records) = (RefCell::new(None), self.pool.records);
        let work = |plan: &Vec<Step>| {
            let mut hand = Hand::new(store, records, recorder);
            for step in plan {
                // Nothing that comes later can be trusted.
                if failure.borrow().is_some() || recorder.borrow().inexplicable.is_some() {
                    return;
                }
                if let Err(what) = perform(&mut hand, step) {
                    failure.borrow_mut().get_or_insert(format!("{step:?}: {what}"));
                }
            }
        };
        let beside = store.work_beside().into_iter();
        let tasks = plans
            .iter()
            .map(|plan| Box::new(move || work(plan)) as Box<dyn FnOnce() + '_>)
            .chain(beside.map(|piece| Box::new(|| work_beside(piece)) as Box<dyn FnOnce() + '_>))
            .collect();
        let options = RunOptions { seed: self.random.random(), looks: true, ..RunOptions::default() };
        if let Err(error) = sched::run_with(options, tasks) {
            return Some(error.to_string());
        }
        recorder.borrow_mut().inexplicable.take().or(failure.into_inner())
    }

    /// An observer that keeps one of the moments that it sees.
    fn observer(
        &mut self,
        disk: &Disk,
        recorder: &Rc<RefCell<Recorder>>,
        store: &Rc<Store>,
        kept: &Rc<RefCell<Option<End>>>,
        label: Label,
    ) -> Observer {
        let (disk, recorder, kept) = (disk.clone(), recorder.clone(), kept.clone());
        let store = Rc::downgrade(store);
        let mut random = SmallRng::seed_from_u64(self.random.random());
        let (mut operation, mut weights) = (0, 0);
        Box::new(move |sim, _| {
            let Some(store) = store.upgrade() else { return };
            operation += 1;
            let compacting = store.activity().is_compacting;
            let weight = if compacting { COMPACTING } else { 1 };
            weights += weight;
            if random.random_ratio(weight, weights) {
                let mut recorder = recorder.borrow_mut();
                let (time, expectation) = (recorder.now(), recorder.expectation());
                let (snapshot, levels) = (sim.snapshot(), disk.image());
                let label = Label { compacting, timed: time > 0, ..label };
                *kept.borrow_mut() = Some(End { snapshot, levels, expectation, operation, time, label });
            }
        })
    }

    /// Recovers the pool of a crash, and asks the oracle.
    fn recover(
        &mut self,
        (region, disk): (Region, &Disk),
        expectation: &Expectation,
        time: Time,
    ) -> Result<(Store, Contents), String> {
        let (options, records, found) = (disk.below(&self.pool.options), self.pool.records, Cell::new(None));
        let recover = || {
            let mut store = Store::open_on(region, &options)
                .map_err(|error| format!("recovery refused the pool: {error}"))?;
            let contents = read_all(&store, records)?;
            compare(&contents, expectation, time)?;
            is_sound(&mut store)?;
            Ok((store, contents))
        };
        let ended = sched::run(self.random.random(), vec![Box::new(|| found.set(Some(recover())))]);
        ended.map_err(|error| format!("recovery: {error}"))?;
        found.into_inner().expect("it has ended")
    }
}

/// Asks the store itself.
fn is_sound(store: &mut Store) -> Result<(), String> {
    let report = store.check(&|_, _| {}).map_err(|error| error.to_string())?;
    if report.is_sound() { Ok(()) } else { Err(format!("the pool is not sound: {}", report.damage)) }
}
