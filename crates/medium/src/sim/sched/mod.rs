//! The seeded scheduler: tasks of a simulated run take turns on one OS thread.
//!
//! A crash or a race that cannot be repeated cannot be understood. Real threads cannot be repeated, so a
//! simulated run has none: its tasks are stackful coroutines, and exactly one of them runs. The seed draws
//! the next task at *switch points*: every medium operation, [`point`] (acquisitions of the sync room) and
//! [`spin`] (every turn of a waiting loop). Runs that ask for it have points between two looks that must come
//! in one order, too ([`look`]). One seed replays exactly, on any machine.
//!
//! - **Thread-safety.** A run is confined to the OS thread that called [`run`]; several runs may live on
//!   several OS threads. Outside of any run a switch point is one relaxed load.
//! - **Failure.** A panic in a task, or a livelock, ends the run. The other tasks are then unwound, children
//!   before the parents whose stacks they borrow. Meanwhile nothing switches, and medium operations change
//!   nothing.
//! - **Waiting.** No task may block in the operating system: it would block all. Every wait is a loop around
//!   [`spin`].

mod marks;
mod policy;
mod run;

pub use marks::{is_marked, is_marked_as, marked};
pub use policy::{Switch, Switches};
pub use run::{RunError, RunOptions};

pub(crate) use run::{Access, Identity};

use marks::Marks;
use policy::Policy;
use run::Run;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Simulated runs alive in this process; zero in production, so that a switch point is one predicted branch.
static RUNS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The run that this OS thread is inside of. The pointee outlives the pointer: `run` resets it before it
    /// returns.
    static CURRENT: Cell<*const Run> = const { Cell::new(std::ptr::null()) };
    /// Steps of the last run that ended on this OS thread.
    static LAST_STEPS: Cell<u64> = const { Cell::new(0) };
}

/// The run around the caller.
#[inline]
fn current<'a>() -> Option<&'a Run> {
    if RUNS.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // SAFETY: `CURRENT` is either null or names the `Run` in a frame of `run_with` below the caller, on this
    // thread. The reference does not leave the functions of this module, all of which return before that
    // frame does.
    unsafe { CURRENT.get().as_ref() }
}

/// A place where a simulated run may switch to another of its tasks. Nothing outside a simulation.
#[inline(always)]
pub fn point() {
    if RUNS.load(Ordering::Relaxed) != 0 {
        offer_switch();
    }
}

#[cold]
#[inline(never)]
fn offer_switch() {
    if let Some(run) = current() {
        run.step(Access::Sync);
    }
}

/// A place between two looks of a caller that must come in one order, or between a change and telling of it.
/// Runs that [ask for it](RunOptions::looks) switch here, and often; all others do nothing.
pub fn look() {
    if RUNS.load(Ordering::Relaxed) != 0
        && let Some(run) = current()
    {
        run.look();
    }
}

/// A turn of a loop that waits for another thread: lets it run, in a simulation and outside.
#[inline]
pub fn spin() {
    match current() {
        Some(run) => run.spin(),
        None => std::hint::spin_loop(),
    }
}

/// Whether the caller is a task of a simulated run.
#[inline]
pub fn simulated() -> bool {
    current().is_some()
}

/// The number of the running task, from 1 in the order of creation; 0 outside of a run.
#[inline]
pub fn task_id() -> u32 {
    current().map_or(0, |run| run.identity().task)
}

/// Switch points passed so far in the current run, or in the last one of this OS thread.
pub fn steps() -> u64 {
    current().map_or_else(|| LAST_STEPS.get(), Run::steps)
}

/// Runs the tasks to completion under the schedule that `seed` names.
///
/// # Errors
/// [`RunError`] if a task panicked or the tasks wait for each other without end.
///
/// # Panics
/// When called from inside a run; [`join_all`] runs tasks in parallel there.
pub fn run(seed: u64, tasks: Vec<Box<dyn FnOnce() + '_>>) -> Result<(), RunError> {
    run_with(RunOptions { seed, ..RunOptions::default() }, tasks)
}

/// [`run`] with other limits than the default ones.
///
/// # Errors
/// As for [`run`].
pub fn run_with(options: RunOptions, tasks: Vec<Box<dyn FnOnce() + '_>>) -> Result<(), RunError> {
    drive(options, Policy::new(options.seed), tasks)
}

/// [`run_with`], with these interruptions in place of those that a seed draws. Otherwise a task runs until it
/// ends or waits, or its long turn is over; then the one behind it runs.
///
/// # Errors
/// As for [`run`].
pub fn run_switched(
    options: RunOptions,
    switches: Switches<'static>,
    tasks: Vec<Box<dyn FnOnce() + '_>>,
) -> Result<(), RunError> {
    drive(options, Policy::given(switches), tasks)
}

fn drive(options: RunOptions, policy: Policy, tasks: Vec<Box<dyn FnOnce() + '_>>) -> Result<(), RunError> {
    assert!(CURRENT.get().is_null(), "a run inside a run; use join_all");
    let run = Run::new(options, policy);
    run.spawn(tasks, None);
    let _inside = Inside::enter(&run);
    let result = run.drive();
    LAST_STEPS.set(run.steps());
    result
}

/// Runs children as further tasks of the same run and returns when all have ended. Outside of a run they run
/// one after the other.
///
/// A panic of a child ends the run, like that of any task.
pub fn join_all(tasks: Vec<Box<dyn FnOnce() + Send + '_>>) {
    match current() {
        Some(run) => run.join(tasks.into_iter().map(|task| task as Box<dyn FnOnce() + '_>).collect()),
        None => tasks.into_iter().for_each(|task| task()),
    }
}

/// A switch point before an operation of a simulated medium. Returns the caller's identity, or `None` if the
/// run is being torn down and the operation must change nothing.
#[inline]
pub(crate) fn step(access: Access) -> Option<Identity> {
    match current() {
        Some(run) => run.step(access),
        None => Some(Identity::OUTSIDE),
    }
}

/// Runs `work` as if outside of the run: an observer may reopen other simulated regions without its reads and
/// writes becoming steps of the run that it watches.
pub(crate) fn outside<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(*const Run, Marks);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
            marks::exchange(self.1);
        }
    }
    let _restore = Restore(CURRENT.replace(std::ptr::null()), marks::exchange(Marks::NONE));
    work()
}

/// Counts a run as alive and makes it the current one of this thread, until dropped.
struct Inside;

impl Inside {
    fn enter(run: &Run) -> Inside {
        RUNS.fetch_add(1, Ordering::Relaxed);
        CURRENT.set(run);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CURRENT.set(std::ptr::null());
        RUNS.fetch_sub(1, Ordering::Relaxed);
    }
}
