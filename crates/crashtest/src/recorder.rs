//! The recorder: hears each call of the program under test, and decides what the world does at it.
//!
//! A call is a place where another task may go on, where the clock may move, and where the pool may be found
//! full. All of that is told in the history. Calls of threads that the simulator does not know are refused.

use crate::tapes::{Tapes, WORLD};
use quipu::Error;
use quipu::internals::{Answer, Call, Listener};
use quipu_medium::Region;
use quipu_medium::sim::sched;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Bytes of a key or value that the history shows.
const SHOWN: usize = 40;

/// A full pool is found so at one of so many calls that take room, at most.
const ROOM: u64 = 24;

/// The clock moves before one call of so many, by up to ten to this power of milliseconds.
const STANDS: u64 = 6;
pub(crate) const LONGEST: u64 = 10;

/// The program as it drops, in place of a task.
pub(crate) const END: u64 = u64::MAX;

/// The stage of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It starts.
    #[default]
    Start,
    /// Its tasks run.
    Tasks,
    /// The program drops.
    End,
    /// A state is judged: calls are not part of the history.
    Judging,
}

/// A line of a history.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Call { task: u64, text: String },
    Answer { call: usize, text: String },
    Note { task: u64, text: String },
    Clock { step: u64 },
}

/// The traits of the world of a test.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub(crate) moves_clock: bool,
    pub(crate) fills_pool: bool,
}

/// The state of a history.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) phase: Phase,
    pub(crate) tapes: Option<Tapes>,
    pub(crate) log: Vec<Entry>,
    /// The simulated machine of the history.
    region: Option<Region>,
    /// The names of the tasks, by their numbers in the run.
    names: Vec<u64>,
    traits: Traits,
    /// Calls that took room, and how many find some.
    took: u64,
    room: Option<u64>,
    /// Calls, and answers, while a state was judged.
    pub(crate) unheard: usize,
    /// A call found none.
    pub(crate) was_full: bool,
}

/// See the module's documentation.
pub(crate) struct Recorder {
    thread: ThreadId,
    /// Rises whenever something happens.
    beats: AtomicU64,
    /// The task that was the last to be heard of; 0 for the program while it starts or is judged, or [`END`].
    running: AtomicU64,
    history: Mutex<History>,
    refused: Mutex<Option<String>>,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        let (beats, running, history, refused) = Default::default();
        Recorder { thread: thread::current().id(), beats, running, history, refused }
    }

    /// Never held where tasks may switch.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happens.
    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// A task goes on.
    pub(crate) fn runs(&self, task: u64) {
        self.beat();
        self.running.store(task, Ordering::Relaxed);
    }

    /// The task that goes on, as far as is known.
    pub(crate) fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// The refusal of something that cannot be simulated.
    pub(crate) fn refused(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins a history.
    pub(crate) fn begin(&self, tapes: Tapes, region: &Region, traits: Traits) {
        let mut history = self.history();
        *history = History { tapes: Some(tapes), region: Some(region.clone()), traits, ..History::default() };
        if traits.fills_pool {
            let room = history.tapes().happens(2, ROOM);
            history.room = room.checked_sub(1);
        }
    }

    /// Ends the history, whose machine goes.
    pub(crate) fn end(&self) {
        self.history().region = None;
    }

    /// The tasks with these names run.
    pub(crate) fn tasks(&self, names: Vec<u64>) {
        let mut history = self.history();
        (history.phase, history.names) = (Phase::Tasks, names);
    }

    /// The history comes to a stage that is not that of the tasks.
    pub(crate) fn goes_on(&self, phase: Phase) {
        self.history().phase = phase;
        self.runs(if phase == Phase::End { END } else { 0 });
    }

    /// Adds a line to the history.
    pub(crate) fn note(&self, task: u64, text: String) {
        self.beat();
        self.history().log.push(Entry::Note { task, text });
    }

    fn refuse(&self, what: &str) -> ! {
        let name = thread::current().name().map_or_else(String::new, |name| format!(" ({name})"));
        let text = format!(
            "a thread that the program has started{name} has called {what}. The simulator does not know this thread, and could \
             not run it again in the same order. Let tasks do its work (CrashTest::tasks), and call the store without a pool of \
             threads or an async runtime that has some"
        );
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text.clone());
        panic!("{text}");
    }
}

impl History {
    pub(crate) fn tapes(&mut self) -> &mut Tapes {
        self.tapes.as_mut().expect("a history has tapes")
    }

    /// The task that runs; 0 for the program while it starts, and [`END`] while it drops.
    fn task(&self) -> u64 {
        let place = sched::task_id().checked_sub(1).and_then(|place| self.names.get(place as usize));
        match self.phase {
            Phase::Tasks => place.copied().unwrap_or(0),
            Phase::End => END,
            Phase::Start | Phase::Judging => 0,
        }
    }

    /// The time of the simulated clock.
    pub(crate) fn now(&self) -> u64 {
        let sim = self.region.as_ref().and_then(Region::simulator);
        sim.map_or(0, |sim| sim.now())
    }

    fn move_clock(&mut self) {
        let power = self.tapes().happens(STANDS, LONGEST);
        if power > 0
            && let Some(sim) = self.region.as_ref().and_then(Region::simulator)
        {
            let step = step_of(power);
            sim.set_now(sim.now() + step);
            self.log.push(Entry::Clock { step });
        }
    }

    /// Whether a call that takes room finds the pool full.
    fn is_full(&mut self, call: &Call<'_>) -> bool {
        let counts = call.takes_room && self.phase == Phase::Tasks;
        self.took += counts as u64;
        counts && self.room.is_some_and(|room| self.took > room)
    }
}

/// Milliseconds by which the clock moves at a choice above 0.
pub(crate) fn step_of(power: u64) -> u64 {
    10u64.pow(power as u32 - 1)
}

impl Listener for Recorder {
    fn begins(&self, call: &Call<'_>) -> Result<u64, Error> {
        self.beat();
        if !sched::simulated() {
            self.refuse(call.name);
        }
        sched::point();
        let mut history = self.history();
        self.runs(history.task());
        if history.phase == Phase::Judging {
            history.unheard += 1;
            return Ok(0);
        }
        if history.phase == Phase::Tasks && history.traits.moves_clock {
            history.move_clock();
        }
        let (task, number) = (history.task(), history.log.len());
        history.log.push(Entry::Call { task, text: shown_call(call) });
        if history.is_full(call) {
            history.was_full = true;
            let wanted =
                call.items.iter().map(|(key, value)| (key.len() + value.map_or(0, <[u8]>::len)) as u64);
            let error = Error::PoolFull { zones: 0, wanted: wanted.sum(), free: 0 };
            history.log.push(Entry::Answer { call: number, text: "the pool is full".into() });
            return Err(error);
        }
        Ok(number as u64)
    }

    fn ended(&self, number: u64, answer: Answer<'_>) {
        let mut history = self.history();
        self.runs(history.task());
        if history.phase == Phase::Judging {
            history.unheard += 1;
        } else {
            let call = number as usize;
            history.log.push(Entry::Answer { call, text: shown_answer(answer) });
        }
    }

    fn may_drop(&self) -> bool {
        thread::current().id() == self.thread
    }
}

/// Bytes as a history shows them.
fn shown(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN) {
        Some(first) if bytes.len() > SHOWN => {
            format!("\"{}…\" ({} bytes)", first.escape_ascii(), bytes.len())
        }
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

fn shown_value(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "none".into(), shown)
}

fn shown_call(call: &Call<'_>) -> String {
    let mut text = call.name.to_owned();
    if let Some(table) = call.table {
        let _ = write!(text, " on {table}");
    }
    let is_batch = matches!(call.name, "write" | "commit");
    let tables = call.tables.iter().map(Option::as_deref).chain(std::iter::repeat(None));
    let items = call.items.iter().zip(tables).map(|((key, value), table)| {
        let on = table.map_or(String::new(), |table| format!("on {table} "));
        match value {
            Some(value) if is_batch => format!("put {on}{} {}", shown(key), shown(value)),
            Some(value) => format!("{}, {}", shown(key), shown(value)),
            None if is_batch => format!("delete {on}{}", shown(key)),
            None => shown(key),
        }
    });
    let _ = write!(text, "({})", items.collect::<Vec<_>>().join(", "));
    text
}

fn shown_answer(answer: Answer<'_>) -> String {
    match answer {
        Answer::Done => "done".into(),
        Answer::Is(is) => if is { "yes" } else { "no" }.into(),
        Answer::Value(value) => shown_value(value),
        Answer::Changed(old, new) if old == new => format!("stays {}", shown_value(old)),
        Answer::Changed(old, new) => format!("from {} to {}", shown_value(old), shown_value(new)),
        Answer::Failed(error) => format!("failed: {error}"),
    }
}

impl Recorder {
    /// A number that a task draws, on its own tape.
    pub(crate) fn draw(&self, task: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.history().tapes().draw(WORLD + task as usize, range)
    }
}
