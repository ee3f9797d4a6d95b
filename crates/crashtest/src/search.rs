//! One history: the program runs on a simulated machine, and every state that a cut may leave is judged.
//!
//! A history is a function of its [`Tapes`]: the same tapes give the same calls, the same cuts and the same
//! finding. The search, the shortening and the replay are all this function, with other tapes.

use crate::judge::{Cut, Within};
use crate::moments::{Moments, Told};
use crate::program::{After, Event, Events, Outcome, Task};
use crate::recorder::{Entry, History, Phase, Recorder, Traits};
use crate::report::lines_of;
use crate::setup::CrashTest;
use crate::tapes::Tapes;
use crate::{FailureKind, panics};
use quipu::{Design, Error, ErrorKind, Store};
use quipu_medium::Region;
use quipu_medium::sim::{Observer, SimArena, SimOptions, Snapshot, sched};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// Switch points that a history may take: far more than any that is worth reading.
const MOST_STEPS: u64 = 1 << 18;

/// Stores that may be alive at once: a thread that only computes may hold one for a while.
const MOST_ALIVE: usize = 64;

/// A failure, in words.
pub(crate) type Failed = (FailureKind, String);

/// A program that runs. It drops as a task of a simulated run, also where a failure is on its way: it may
/// call the store then, and may panic.
struct Running<P>(Option<P>);

impl<P> Running<P> {
    fn get(&self) -> &P {
        self.0.as_ref().expect("present until it ends")
    }

    fn end(mut self) -> Result<(), Failed> {
        let ended = self.drop_in_run();
        ended.map_err(|error| (FailureKind::Task, format!("as the program drops, {}", said(Err(error)))))
    }

    fn drop_in_run(&mut self) -> Result<(), sched::RunError> {
        let program = self.0.take();
        sched::run(0, vec![Box::new(move || drop(program))])
    }
}

impl<P> Drop for Running<P> {
    fn drop(&mut self) {
        if self.0.is_some() {
            // The failure that is on its way comes before this one.
            let _ = self.drop_in_run();
        }
    }
}

/// A finding, with the history up to it.
pub(crate) struct Found {
    pub(crate) kind: FailureKind,
    /// In words.
    pub(crate) what: String,
    /// Where the history was cut, in words; nothing if it was not.
    pub(crate) cut: Option<String>,
    /// Which state the cut left.
    pub(crate) left: Cut,
    /// Cuts before it.
    pub(crate) depth: u32,
    pub(crate) log: Vec<Entry>,
    /// The part of the tapes that led to it.
    pub(crate) tapes: Tapes,
}

impl Found {
    /// The history up to the finding, for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        lines_of(&self.log)
    }

    /// Calls that had not returned when something else was told.
    pub(crate) fn interrupted(&self) -> usize {
        let is_answer =
            |at: usize| matches!(self.log.get(at + 1), Some(Entry::Answer { call, .. }) if *call == at);
        let calls = (0..self.log.len()).filter(|at| matches!(self.log[*at], Entry::Call { .. }));
        calls.filter(|at| !is_answer(*at)).count()
    }

    /// Calls that had begun.
    pub(crate) fn calls(&self) -> usize {
        self.log.iter().filter(|line| matches!(line, Entry::Call { .. })).count()
    }
}

/// See the module's documentation.
pub(crate) struct Search<'t, P, E> {
    pub(crate) test: &'t CrashTest<P, E>,
    pub(crate) design: Design,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) arena: SimArena,
    /// A pool without contents, closed.
    empty: Snapshot,
    pub(crate) events: Rc<RefCell<Events<E>>>,
    /// States that were judged, in all.
    pub(crate) judged: u64,
    /// Those of this history.
    pub(crate) seen: HashSet<(u64, usize, u64)>,
    /// Judge no other images.
    pub(crate) only: Option<Cut>,
    /// Which recoveries are cut themselves.
    pub(crate) within: Within,
    /// The stores that were opened, as far as they are alive.
    alive: RefCell<Vec<Weak<Store>>>,
}

impl<'t, P: 'static, E: Event> Search<'t, P, E> {
    pub(crate) fn new(test: &'t CrashTest<P, E>, recorder: Arc<Recorder>) -> Result<Search<'t, P, E>, Error> {
        let region = Region::sim(SimOptions { len: test.pool, ..SimOptions::default() });
        let store = Store::create_on(region.clone(), &test.options)?;
        let design = store.design();
        store.close()?;
        let empty = region.simulator().expect("a simulated region").snapshot();
        let (events, seen, alive) = Default::default();
        let (arena, within) = (SimArena::new(), Within::Some);
        let (judged, only) = (0, None);
        Ok(Search { test, design, recorder, arena, empty, events, judged, seen, only, within, alive })
    }

    /// Carries out the history of these tapes, and judges its cuts. Returns the tapes as far as they were
    /// used.
    pub(crate) fn history(&mut self, tapes: Tapes) -> (Tapes, Option<Found>) {
        let region = self.arena.boot(&self.empty, &self.empty.everything(), tapes.seed);
        let CrashTest { moves_clock, fills_pool, .. } = *self.test;
        let (seed, runs) = (tapes.seed, tapes.runs.clone());
        self.recorder.begin(tapes, &region, Traits { moves_clock, fills_pool });
        *self.events.borrow_mut() = Events::default();
        self.seen.clear();
        let found = self.history_on(region, seed, &runs);
        self.recorder.end();
        let used = self.recorder.history().tapes().used();
        (used, found)
    }

    fn history_on(&mut self, region: Region, seed: u64, runs: &[bool]) -> Option<Found> {
        let sim = region.simulator().expect("a simulated region").clone();
        let moments = Rc::new(RefCell::new(Moments::default()));
        let is_cut = self.only != Some(Cut::None);
        sim.set_observer(is_cut.then(|| self.observer(&moments)));
        let program = match self.start(region, seed) {
            Ok(program) => Running(Some(program)),
            Err(failure) => {
                sim.set_observer(None);
                return Some(self.found_or_refused(failure));
            }
        };
        let ended = self.tasks(program.get(), runs);
        sim.set_observer(None);
        if let Some(failure) = ended.err().or_else(|| self.refusal()) {
            return Some(self.found_or_refused(failure));
        }
        if is_cut {
            moments.borrow_mut().end("when all tasks had ended", self.told(), sim.snapshot());
        }
        self.recorder.goes_on(Phase::Judging);
        let state = || (sim.snapshot().nothing().hash(), sim.snapshot().everything().hash());
        let before = state();
        // A failure without a cut is easier to understand.
        let at_end = self.only.is_none_or(|only| only == Cut::None);
        if let Some(found) = at_end.then(|| self.judge_end(program.get())).flatten() {
            return Some(found);
        }
        self.recorder.goes_on(Phase::End);
        // A cut would not find what the invariant has written.
        let is_cut = is_cut && state() == before;
        sim.set_observer(is_cut.then(|| self.observer(&moments)));
        let ended = program.end();
        sim.set_observer(None);
        if let Some(failure) = ended.err().or_else(|| self.refusal()) {
            return Some(self.found_or_refused(failure));
        }
        if is_cut {
            moments.borrow_mut().end("when the program had ended", self.told(), sim.snapshot());
        }
        self.recorder.goes_on(Phase::Judging);
        let moments = moments.take().list;
        moments.iter().find_map(|moment| self.judge_moment(moment, 0, seed))
    }

    /// Starts the program of a history.
    fn start(&self, region: Region, seed: u64) -> Result<P, Failed> {
        let started = Cell::new(None);
        let task = || started.set(Some(self.open(region)));
        let ended = sched::run(seed, vec![Box::new(task)]);
        match (ended, started.into_inner()) {
            (Ok(()), Some(Ok(program))) => Ok(program),
            (Ok(()), Some(Err((kind, what)))) => Err((kind, what)),
            (ended, _) => Err((FailureKind::Start, said(ended))),
        }
    }

    /// Opens the store of a pool that may have been cut, and starts the program on it.
    pub(crate) fn open(&self, region: Region) -> Result<P, Failed> {
        let opened = Store::open_on(region, &self.test.options);
        let store =
            opened.map_err(|error| (FailureKind::Store, format!("the pool does not open: {error}")))?;
        let store = Arc::new(store.heard_by(self.recorder.clone()));
        let mut alive = self.alive.borrow_mut();
        alive.retain(|store| store.strong_count() > 0);
        alive.push(Arc::downgrade(&store));
        if alive.len() > MOST_ALIVE {
            let what = format!(
                "{} stores are alive of programs that have ended: something keeps the store that the start was given. Look for \
                 a cycle of Arc, a static, std::mem::forget, or a thread that does not end",
                alive.len() - 1
            );
            return Err((FailureKind::Refused, what));
        }
        drop(alive);
        let started = (self.test.start)(store);
        started.map_err(|error| (FailureKind::Start, error.to_string()))
    }

    /// Runs the tasks to their end.
    fn tasks(&self, program: &P, runs: &[bool]) -> Result<(), Failed> {
        let running: Vec<_> = (1..)
            .zip(&self.test.tasks)
            .filter(|(id, _)| runs.get(*id as usize - 1) != Some(&false))
            .collect();
        self.recorder.tasks(running.iter().map(|(id, _)| *id).collect());
        let failed = RefCell::new(None);
        let work = |id: u64, work: &dyn Fn(&P, &Task<E>) -> Outcome| {
            let task = Task { id, recorder: self.recorder.clone(), events: self.events.clone() };
            self.recorder.runs(id);
            let Err(error) = work(program, &task) else { return };
            let is_room = error.downcast_ref::<Error>().is_some_and(|error| error.kind() == ErrorKind::Room);
            // In a pool that is filled, running out of room ends a task as a cut would.
            if self.recorder.history().was_full || self.test.fills_pool && is_room {
                self.recorder.note(id, format!("ends: {error}"));
                return;
            }
            let hint = if is_room { ". Give the test a larger pool (CrashTest::pool)" } else { "" };
            *failed.borrow_mut() = Some(format!("task {id} failed: {error}{hint}"));
            // The history ends here: another task may wait for what this one will not do.
            resume_unwind(Box::new("a task failed"));
        };
        let work = &work;
        let tasks = running
            .iter()
            .map(|(id, task)| Box::new(move || work(*id, &***task)) as Box<dyn FnOnce() + '_>)
            .collect();
        let recorder = self.recorder.clone();
        let switches = Box::new(std::iter::from_fn(move || recorder.history().tapes().switch()));
        let options = sched::RunOptions { max_steps: MOST_STEPS, ..sched::RunOptions::default() };
        let ended = sched::run_switched(options, switches, tasks);
        let what = failed.into_inner().or_else(|| ended.is_err().then(|| said(ended)));
        what.map_or(Ok(()), |what| Err((FailureKind::Task, what)))
    }

    /// Collects the moments of the history that a region sees.
    fn observer(&self, moments: &Rc<RefCell<Moments>>) -> Observer {
        let (recorder, events, moments) = (self.recorder.clone(), self.events.clone(), moments.clone());
        Box::new(move |sim, _| {
            recorder.beat();
            let mut history = recorder.history();
            let lines = history.log.len();
            moments.borrow_mut().pass(lines, || told(&mut history, &events.borrow()), || sim.snapshot());
        })
    }

    fn told(&self) -> Told {
        told(&mut self.recorder.history(), &self.events.borrow())
    }

    fn refusal(&self) -> Option<Failed> {
        self.recorder.refused().map(|what| (FailureKind::Refused, what))
    }

    /// A finding at the end of the history so far. A refusal comes first: what it led to means nothing.
    fn found_or_refused(&self, failed: Failed) -> Found {
        let (kind, what) = self.refusal().unwrap_or(failed);
        self.found(kind, what)
    }

    /// Asks the invariant of a history that was not cut.
    fn judge_end(&mut self, program: &P) -> Option<Found> {
        let asked = RefCell::new(Ok(()));
        let task = || {
            let now = self.recorder.history().now();
            let after = self.after(usize::MAX, usize::MAX, now);
            *asked.borrow_mut() = (self.test.invariant)(program, &after).map_err(|error| error.to_string())
        };
        let ended = sched::run(0, vec![Box::new(task)]);
        let what = match ended {
            Ok(()) => asked.into_inner().err(),
            ended => Some(said(ended)),
        };
        let failed = what.map(|what| (FailureKind::Invariant, what)).or_else(|| self.refusal())?;
        Some(self.found_or_refused(failed))
    }

    /// The events up to here, for the invariant.
    pub(crate) fn after(&self, began: usize, done: usize, now: u64) -> After<E> {
        let events = self.events.borrow();
        let began: Vec<E> = events.began.iter().take(began).cloned().collect();
        let mut is_done = vec![false; began.len()];
        events.done.iter().take(done).for_each(|at| is_done[*at] = true);
        After { began, is_done, now }
    }

    /// A finding at the end of the history so far.
    fn found(&self, kind: FailureKind, what: String) -> Found {
        let mut history = self.recorder.history();
        let (log, tapes) = (history.log.clone(), history.tapes().used());
        Found { kind, what, cut: None, left: Cut::None, depth: 0, log, tapes }
    }

    /// A finding in a state that a cut left at a moment, after so many others.
    pub(crate) fn found_at(
        &self,
        told: &Told,
        (kind, what): Failed,
        (cut, left): (String, Cut),
        depth: u32,
    ) -> Found {
        let mut history = self.recorder.history();
        let (log, tapes) = (history.log[..told.lines].to_vec(), history.tapes().until(&told.marks));
        Found { kind, what, cut: Some(cut), left, depth, log, tapes }
    }

    pub(crate) fn phase_is_judging(&self) -> bool {
        self.recorder.history().phase == Phase::Judging
    }
}

/// All that has been told so far.
fn told<E>(history: &mut History, events: &Events<E>) -> Told {
    let (lines, now) = (history.log.len(), history.now());
    let (began, done) = (events.began.len(), events.done.len());
    Told { lines, began, done, marks: history.tapes().marks(), now }
}

/// Why a simulated run ended, for users.
pub(crate) fn said(ended: Result<(), sched::RunError>) -> String {
    match ended {
        Ok(()) => "it did not come to its end".into(),
        Err(sched::RunError::Panicked { message, .. }) => {
            // A destructor may have panicked after it.
            let kept = panics::Kept::take().filter(|kept| kept.starts_with(&message));
            format!("it panicked: {}", kept.unwrap_or(message))
        }
        Err(sched::RunError::Livelock { .. }) => {
            "its tasks wait for each other for ever: each holds what another one waits for".into()
        }
        Err(sched::RunError::OutOfSteps { .. }) => {
            format!(
                "its tasks do not end within {MOST_STEPS} steps on memory: one of them may wait, by reading again and again, for \
                 what no task does. If they only do so much, let a history do less"
            )
        }
        Err(error) => error.to_string(),
    }
}
