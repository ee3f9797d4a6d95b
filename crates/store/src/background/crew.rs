//! [`Crew`]: threads that jobs share.
//!
//! Each job has a *seat*. A thread takes the job that has waited longest for its turn, takes one step of it,
//! and puts it at the end of the queue, to rest, or to sleep. So a busy store holds the others back by a step
//! at a time. Steps that are [long](Steps) never have all threads: one is left for those that are shorter.
//!
//! A thread is started when all others are at work, up to as many as there are jobs, and by a thread of the
//! crew or one that opens a store, never by a writer. Threads without work wait without a time, and one of
//! them for the end of the first rest. They end when the last store has left.
//!
//! A job is dropped before its seat is gone, with all that it shares with its store. No lock is held
//! meanwhile, nor during a step. So a step may call any job, and open and close any store.

use super::bell::{ASLEEP, AWAKE, Bell, NOBODY};
use super::{Admission, Job, Progress, Steps};
use quipu_parts::twin::Habits;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// How long a job that cannot work rests: at first, and at most. A look for work takes longer in a larger
/// pool.
const REST: Duration = Duration::from_millis(1);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The number of a seat.
pub(super) type Number = u64;

type Step = Box<dyn FnMut() -> Progress + Send>;

/// See the module's documentation.
pub(super) struct Crew {
    /// Of its threads.
    name: &'static str,
    state: Mutex<State>,
    /// Where threads wait for work.
    work: Condvar,
    /// Where stores wait for the end of a step.
    end: Condvar,
}

#[derive(Default)]
struct State {
    /// Threads at most.
    most: usize,
    /// Stores with jobs here.
    stores: usize,
    /// The last store has left.
    is_over: bool,
    seats: BTreeMap<Number, Seat>,
    last: Number,
    queue: VecDeque<Number>,
    rests: BTreeSet<(Instant, Number)>,
    /// Steps that are being taken, by their length.
    taken: [usize; Steps::LENGTHS],
    threads: Vec<JoinHandle<()>>,
    /// Threads that wait for work, and the end of a rest for which one of them waits.
    waiting: usize,
    alarm: Option<Instant>,
}

struct Seat {
    /// Absent while it is taken.
    step: Option<Step>,
    place: Place,
    bell: Arc<Bell>,
    admission: Arc<Admission>,
    habits: Habits,
    length: usize,
    rest: Duration,
    /// A call that no step has begun after.
    is_called: bool,
    /// It is to be vacated, and its bell to be in this state.
    leaves: Option<u8>,
}

#[derive(Clone, Copy)]
enum Place {
    Asleep,
    Queued,
    Resting(Instant),
    Taken(ThreadId),
}

/// A step that has its turn.
struct Turn {
    number: Number,
    step: Step,
    admission: Arc<Admission>,
    habits: Habits,
}

/// Locks what no thread holds while it may panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Whether a job of this length may be taken beside those that are.
    fn admits(&self, length: usize) -> bool {
        self.taken[length..].iter().sum::<usize>() < self.most.saturating_sub(length).max(1)
    }

    /// The place in the queue of the next job that may be taken.
    fn next(&self) -> Option<usize> {
        self.queue.iter().position(|number| self.admits(self.seats[number].length))
    }

    fn take(&mut self) -> Option<Turn> {
        self.end_rests();
        let number = self.queue.remove(self.next()?)?;
        let seat = self.seats.get_mut(&number)?;
        let step = seat.step.take()?;
        seat.place = Place::Taken(thread::current().id());
        self.taken[seat.length] += 1;
        Some(Turn { number, step, admission: seat.admission.clone(), habits: seat.habits })
    }

    fn end_rests(&mut self) {
        while let Some((until, number)) = self.rests.first().copied().filter(|(at, _)| *at <= Instant::now())
        {
            self.rests.remove(&(until, number));
            self.enqueue(number);
        }
    }

    fn enqueue(&mut self, number: Number) {
        if let Some(seat) = self.seats.get_mut(&number) {
            seat.place = Place::Queued;
            self.queue.push_back(number);
        }
    }

    /// Takes a job that is not taken out of where it is.
    fn vacate(&mut self, number: Number, bell: u8) -> Option<Step> {
        let Seat { step, place, bell: own, .. } = self.seats.remove(&number)?;
        own.take_down(bell);
        match place {
            Place::Queued => self.queue.retain(|queued| *queued != number),
            Place::Resting(until) => _ = self.rests.remove(&(until, number)),
            Place::Asleep | Place::Taken(_) => {}
        }
        step
    }
}

impl Crew {
    pub(super) fn new(name: &'static str) -> Arc<Crew> {
        Arc::new(Crew { name, state: Mutex::default(), work: Condvar::new(), end: Condvar::new() })
    }

    /// A store joins that names so many threads. The largest number counts until the crew ends.
    pub(super) fn join(&self, most: usize) {
        let mut state = lock(&self.state);
        state.stores += 1;
        state.most = state.most.max(most);
    }

    /// Threads at most.
    pub(super) fn most(&self) -> usize {
        lock(&self.state).most
    }

    /// Gives a job a seat, unless it has one, or there is no thread for it.
    pub(super) fn admit(self: &Arc<Self>, job: Job, admission: &Arc<Admission>) -> Option<Number> {
        let Job { bell, steps, step, .. } = job;
        let mut state = lock(&self.state);
        let number = state.last + 1;
        if !bell.hang(self, number) {
            return None;
        }
        let (admission, habits) = (admission.clone(), Habits::of_this_thread());
        let seat = Seat {
            step: Some(step),
            place: Place::Queued,
            bell,
            admission,
            habits,
            length: steps.length(),
            rest: REST,
            is_called: false,
            leaves: None,
        };
        state.last = number;
        state.seats.insert(number, seat);
        state.enqueue(number);
        self.hand_over(&mut state);
        if !state.threads.is_empty() {
            return Some(number);
        }
        let step = state.vacate(number, NOBODY);
        drop(state);
        drop(step);
        None
    }

    /// Sees to it that another thread takes the next job, and waits for the next call and the next rest.
    fn hand_over(self: &Arc<Self>, state: &mut State) {
        if state.waiting == 0 {
            if state.threads.len() < state.most.min(state.seats.len()) {
                let (crew, builder) = (self.clone(), thread::Builder::new().name(self.name.to_owned()));
                // If the system has no thread, those that are there do all.
                state.threads.extend(builder.spawn(move || crew.run()));
            }
        } else if state.next().is_some() || state.alarm.is_none() && !state.rests.is_empty() {
            self.work.notify_one();
        }
    }

    /// Calls a job: a step of it begins after this.
    pub(super) fn call(&self, number: Number) {
        let mut state = lock(&self.state);
        let Some(seat) = state.seats.get_mut(&number) else { return };
        match seat.place {
            Place::Queued => return,
            Place::Taken(_) => return seat.is_called = true,
            // It has been changed, unless the call is of another moment.
            Place::Asleep => _ = seat.bell.change(ASLEEP, AWAKE),
            Place::Resting(until) => _ = state.rests.remove(&(until, number)),
        }
        state.enqueue(number);
        if state.waiting > 0 {
            drop(state);
            self.work.notify_one();
        }
    }

    /// The life of a thread.
    fn run(self: Arc<Self>) {
        let mut state = lock(&self.state);
        loop {
            if let Some(mut turn) = state.take() {
                self.hand_over(&mut state);
                drop(state);
                let progress = turn.carry_out();
                state = self.put_back(turn, progress);
            } else if state.is_over {
                return;
            } else {
                state = self.wait(state);
            }
        }
    }

    fn wait<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let first = state.rests.first().map(|(until, _)| *until);
        state.waiting += 1;
        let mut state = match first.filter(|until| state.alarm.is_none_or(|alarm| *until < alarm)) {
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                state.alarm = Some(until);
                let rest = until.saturating_duration_since(Instant::now());
                let woken = self.work.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner);
                let mut state = woken.0;
                state.alarm = state.alarm.filter(|alarm| *alarm != until);
                state
            }
        };
        state.waiting -= 1;
        state
    }

    /// Puts a job where its step sends it. One that has failed or leaves is dropped.
    fn put_back(&self, turn: Turn, progress: Option<Progress>) -> MutexGuard<'_, State> {
        let Turn { number, step, .. } = turn;
        let mut state = lock(&self.state);
        let seat = state.seats.get_mut(&number).expect("a seat is not vacated while its step is taken");
        let Some(progress) = progress.filter(|_| seat.leaves.is_none()) else {
            seat.bell.is_leaving();
            drop(state);
            // It may be the last to have the store. A panic in this ends nothing else.
            drop(catch_unwind(AssertUnwindSafe(|| drop(step))));
            let mut state = lock(&self.state);
            let (length, leaves) = (state.seats[&number].length, state.seats[&number].leaves);
            state.taken[length] -= 1;
            state.vacate(number, leaves.unwrap_or(NOBODY));
            self.end.notify_all();
            return state;
        };
        seat.step = Some(step);
        let (length, is_called) = (seat.length, std::mem::take(&mut seat.is_called));
        match progress {
            Progress::More => seat.rest = REST,
            Progress::Stuck if !is_called => {
                let until = Instant::now() + seat.rest;
                (seat.place, seat.rest) = (Place::Resting(until), (seat.rest * 2).min(LONGEST_REST));
                state.rests.insert((until, number));
            }
            Progress::Enough if !is_called && seat.bell.change(AWAKE, ASLEEP) => seat.place = Place::Asleep,
            Progress::Stuck | Progress::Enough => {}
        }
        state.taken[length] -= 1;
        if let Place::Taken(_) = state.seats[&number].place {
            state.enqueue(number);
        }
        state
    }

    /// Vacates these seats, and leaves their bells in this state. A step that is being taken goes on.
    pub(super) fn call_off(&self, numbers: &[Number], bell: u8) {
        let mut steps = Vec::new();
        let mut state = lock(&self.state);
        for number in numbers {
            match state.seats.get_mut(number) {
                Some(seat) if matches!(seat.place, Place::Taken(_)) => {
                    seat.leaves = Some(bell);
                    seat.bell.is_leaving();
                }
                _ => steps.extend(state.vacate(*number, bell)),
            }
        }
        drop(state);
        drop(steps);
    }

    /// Waits until these seats are vacated, but not for the step that this thread takes.
    pub(super) fn wait_for(&self, numbers: &[Number]) {
        let own = thread::current().id();
        let mut state = lock(&self.state);
        let is_taken = |state: &State| {
            let by_another = |seat: &Seat| !matches!(seat.place, Place::Taken(by) if by == own);
            numbers.iter().filter_map(|number| state.seats.get(number)).any(by_another)
        };
        while is_taken(&state) {
            state = self.end.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A store leaves. Returns whether it was the last one.
    pub(super) fn leave(&self) -> bool {
        let mut state = lock(&self.state);
        state.stores -= 1;
        state.is_over = state.stores == 0;
        if state.is_over {
            self.work.notify_all();
        }
        state.is_over
    }

    /// Waits until the threads have ended, unless one takes a step that was left to itself. The last store
    /// has left.
    pub(super) fn wait_for_all(&self) {
        let mut state = lock(&self.state);
        let threads = if state.seats.is_empty() { std::mem::take(&mut state.threads) } else { Vec::new() };
        drop(state);
        for thread in threads {
            // No step is in it, and so no panic either.
            drop(thread.join());
        }
    }
}

impl Turn {
    /// Takes the step, unless the store has failed: DRAM may be wrong then. `None` if it has or does now.
    fn carry_out(&mut self) -> Option<Progress> {
        let Turn { step, admission, habits, .. } = self;
        if admission.has_failed() {
            return None;
        }
        let work = || {
            let _mourner = admission.mourner();
            habits.during(step)
        };
        // The panic has been reported, and the admission reports it for ever.
        catch_unwind(AssertUnwindSafe(work)).ok()
    }
}

#[cfg(test)]
impl Crew {
    /// Threads that are there.
    pub(super) fn threads(&self) -> usize {
        lock(&self.state).threads.len()
    }
}
