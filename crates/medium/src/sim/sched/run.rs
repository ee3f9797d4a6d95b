//! One simulated run: its tasks, the switch between them, and its end.
//!
//! Control goes back and forth between the *driver*, on the stack of the caller of `run`, and one coroutine.
//! An interrupted task names its successor and suspends; the driver resumes the successor.
//!
//! Invariants:
//!
//! - `ready` holds every task that can run, the running one included;
//! - a task's coroutine is absent from the table while it runs or is being unwound;
//! - a parent has `children > 0` while any task borrows its stack.

use super::marks::{self, Marks};
use super::policy::Policy;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a simulated run did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A task panicked; the others were unwound.
    #[error("task {task} panicked at step {step}: {message}")]
    Panicked {
        /// The task.
        task: u32,
        /// Switch points passed before.
        step: u64,
        /// Its message.
        message: String,
    },
    /// Every task waits for another one.
    #[error("no task makes progress after {steps} steps; still waiting: tasks {waiting:?}")]
    Livelock {
        /// Switch points passed.
        steps: u64,
        /// The tasks that had not ended.
        waiting: Vec<u32>,
    },
    /// The run took more steps than it was allowed.
    #[error(
        "the run was stopped after its budget of {steps} steps; raise max_steps if it is to take that long"
    )]
    OutOfSteps {
        /// Switch points passed.
        steps: u64,
    },
}

/// The seed and the limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Names the schedule.
    pub seed: u64,
    /// Switch points after which the run is stopped as endless.
    pub max_steps: u64,
    /// Turns of waiting loops in a row, without a store and without a task doing anything else for long,
    /// after which the run is stopped as a livelock.
    pub max_spins: u64,
    /// Whether tasks are interrupted between looks too, at [`look`](super::look).
    pub looks: bool,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { seed: 0, max_steps: 1 << 28, max_spins: 1 << 18, looks: false }
    }
}

/// The next operation of a task at a switch point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A read of the medium.
    Load,
    /// An operation that changes the medium or its durable state.
    Store,
    /// An acquisition of the sync room.
    Sync,
    /// The second of two looks.
    Look,
}

/// The task that performs an operation of a simulated medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Tells runs apart: task 1 of the next run is another thread.
    pub(crate) run: u64,
    pub(crate) task: u32,
}

impl Identity {
    pub(crate) const OUTSIDE: Identity = Identity { run: 0, task: 0 };
}

/// Switch points without a wait after which a task counts as making progress.
const PROGRESS: u32 = 64;
/// Turns that a task may wait while it is being unwound.
const UNWINDING_SPINS: u64 = 1 << 16;

type Work<'a> = Box<dyn FnOnce() + 'a>;
/// Yields nothing, and at its end returns the message of a panic.
type Fiber = Coroutine<(), (), Option<String>, DefaultStack>;

struct Task {
    fiber: Option<Fiber>,
    yielder: *const Yielder<(), ()>,
    /// Those of its work, while another task runs.
    marks: Marks,
    parent: Option<usize>,
    children: usize,
    ended: bool,
}

pub(super) struct Run {
    id: u64,
    options: RunOptions,
    tasks: RefCell<Vec<Task>>,
    ready: RefCell<Vec<usize>>,
    policy: RefCell<Policy>,
    /// The running task, and how it gets back to the driver.
    running: Cell<usize>,
    yielder: Cell<*const Yielder<(), ()>>,
    next: Cell<usize>,
    alone: Cell<bool>,
    steps: Cell<u64>,
    /// Turns of waiting loops since anything else happened, and switch points since the last such turn.
    spins: Cell<u64>,
    calm: Cell<u32>,
    failure: RefCell<Option<RunError>>,
    stopping: Cell<bool>,
}

thread_local! {
    /// Stacks of ended tasks: a run is often shorter than the two system calls that a stack costs.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

fn keep(stack: DefaultStack) {
    const KEPT: usize = 64;
    STACKS.with_borrow_mut(|stacks| {
        if stacks.len() < KEPT {
            stacks.push(stack);
        }
    });
}

impl Run {
    pub(super) fn new(options: RunOptions, policy: Policy) -> Run {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Run {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            options,
            tasks: RefCell::new(Vec::new()),
            ready: RefCell::new(Vec::new()),
            policy: RefCell::new(policy),
            running: Cell::new(0),
            yielder: Cell::new(std::ptr::null()),
            next: Cell::new(0),
            alone: Cell::new(true),
            steps: Cell::new(0),
            spins: Cell::new(0),
            calm: Cell::new(0),
            failure: RefCell::new(None),
            stopping: Cell::new(false),
        }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.get()
    }

    #[inline]
    pub(super) fn identity(&self) -> Identity {
        Identity { run: self.id, task: self.running.get() as u32 + 1 }
    }

    /// Adds tasks, ready to run.
    pub(super) fn spawn(&self, works: Vec<Work<'_>>, parent: Option<usize>) {
        let mut tasks = self.tasks.borrow_mut();
        for work in works {
            let index = tasks.len();
            let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_default();
            let run: *const Run = self;
            let body = move |yielder: &Yielder<(), ()>, ()| {
                // SAFETY: the run outlives its coroutines: `drive` returns only when all have ended.
                let run = unsafe { &*run };
                run.tasks.borrow_mut()[index].yielder = yielder;
                run.yielder.set(yielder);
                let panic = catch_unwind(AssertUnwindSafe(work)).err()?;
                // The unwinding of a stopped run is not a failure of the task.
                (!run.stopping.get()).then(|| message(panic.as_ref()))
            };
            // SAFETY: the borrows of the closure outlive the coroutine: tasks of `run_with` end before it
            // returns (driven to their end, or unwound by `stop`), and children end before the parent whose
            // stack they borrow leaves `join`, by returning or by being unwound (`unwind_one` takes no task
            // with live children).
            let fiber = unsafe { Coroutine::with_stack_unchecked(stack, body) };
            tasks.push(Task {
                fiber: Some(fiber),
                yielder: std::ptr::null(),
                marks: Marks::NONE,
                parent,
                children: 0,
                ended: false,
            });
            self.ready.borrow_mut().push(index);
            self.policy.borrow_mut().add();
        }
        self.note_ready();
    }

    fn note_ready(&self) {
        self.alone.set(self.ready.borrow().len() < 2);
    }

    fn choose(&self, but: Option<usize>) -> usize {
        self.policy.borrow_mut().choose(&self.ready.borrow(), but)
    }

    /// Runs all tasks to their end.
    pub(super) fn drive(&self) -> Result<(), RunError> {
        if self.ready.borrow().is_empty() {
            return Ok(());
        }
        self.next.set(self.choose(None));
        loop {
            let index = self.next.get();
            self.running.set(index);
            let (mut fiber, own) = {
                let task = &mut self.tasks.borrow_mut()[index];
                self.yielder.set(task.yielder);
                (task.fiber.take().expect("only ready tasks are chosen"), task.marks)
            };
            let marks = marks::exchange(own);
            let resumed = fiber.resume(());
            self.tasks.borrow_mut()[index].marks = marks::exchange(marks);
            match resumed {
                CoroutineResult::Yield(()) => self.tasks.borrow_mut()[index].fiber = Some(fiber),
                CoroutineResult::Return(panic) => {
                    keep(fiber.into_stack());
                    if let Some(message) = panic {
                        let failure =
                            RunError::Panicked { task: index as u32 + 1, step: self.steps.get(), message };
                        self.failure.borrow_mut().get_or_insert(failure);
                    }
                    self.end(index);
                    if self.failure.borrow().is_none() {
                        if self.ready.borrow().is_empty() {
                            return Ok(());
                        }
                        self.next.set(self.choose(None));
                    }
                }
            }
            if let Some(failure) = self.failure.take() {
                self.stopping.set(true);
                while self.unwind_one() {}
                return Err(failure);
            }
        }
    }

    /// Takes an ended task off the books and wakes its parent if it was the last child.
    fn end(&self, index: usize) {
        let mut tasks = self.tasks.borrow_mut();
        let mut ready = self.ready.borrow_mut();
        tasks[index].ended = true;
        ready.retain(|task| *task != index);
        if let Some(parent) = tasks[index].parent {
            tasks[parent].children -= 1;
            if tasks[parent].children == 0 {
                ready.push(parent);
            }
        }
        drop((tasks, ready));
        self.note_ready();
        self.spins.set(0);
    }

    /// Unwinds the youngest task that no other one borrows from. Whether there was one.
    fn unwind_one(&self) -> bool {
        let found = {
            let mut tasks = self.tasks.borrow_mut();
            let found = tasks.iter().rposition(|task| task.fiber.is_some() && task.children == 0);
            found.and_then(|index| Some((index, tasks[index].fiber.take()?, tasks[index].marks)))
        };
        let Some((index, mut fiber, own)) = found else { return false };
        let marks = marks::exchange(own);
        let (running, yielder) = (self.running.get(), self.yielder.get());
        self.running.set(index);
        self.yielder.set(self.tasks.borrow()[index].yielder);
        // A destructor that panics now adds nothing: the run has failed already, for a better reason.
        let _ = catch_unwind(AssertUnwindSafe(|| fiber.force_unwind()));
        keep(fiber.into_stack());
        marks::exchange(marks);
        self.running.set(running);
        self.yielder.set(yielder);
        self.end(index);
        true
    }

    /// Passes a switch point. `None` if the run is being torn down.
    #[inline]
    pub(super) fn step(&self, access: Access) -> Option<Identity> {
        if self.stopping.get() {
            self.leave_stopped();
            return None;
        }
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if access == Access::Store {
            self.spins.set(0);
        } else {
            let calm = self.calm.get() + 1;
            self.calm.set(calm);
            if calm == PROGRESS {
                self.spins.set(0);
                self.calm.set(0);
            }
        }
        if steps > self.options.max_steps {
            self.fail(RunError::OutOfSteps { steps });
        } else if !self.alone.get()
            && self.policy.borrow_mut().interrupts(self.running.get(), access)
            && !std::thread::panicking()
        {
            let running = self.running.get();
            let chosen = self.choose(Some(running));
            if chosen != running {
                self.next.set(chosen);
                self.suspend();
            }
        }
        Some(self.identity())
    }

    /// Passes a place between two looks.
    #[cold]
    pub(super) fn look(&self) {
        if self.options.looks {
            self.step(Access::Look);
        }
    }

    /// Passes a turn of a waiting loop: always lets another task run.
    #[cold]
    pub(super) fn spin(&self) {
        let spins = self.spins.get() + 1;
        self.spins.set(spins);
        self.calm.set(0);
        if self.stopping.get() {
            self.leave_stopped();
            // The one waited for may be suspended with the lock held: its own unwinding sets it free.
            if !self.unwind_one() && spins > UNWINDING_SPINS {
                eprintln!("a task waits for ever while a failed simulated run unwinds; giving up");
                std::process::abort();
            }
            return;
        }
        self.steps.set(self.steps.get() + 1);
        if spins > self.options.max_spins {
            let tasks = self.tasks.borrow();
            let waiting = (0..tasks.len()).filter(|index| !tasks[*index].ended).map(|index| index as u32 + 1);
            let failure = RunError::Livelock { steps: self.steps.get(), waiting: waiting.collect() };
            drop(tasks);
            self.fail(failure);
        } else if !self.alone.get() {
            let running = self.running.get();
            self.policy.borrow_mut().demote(running);
            self.next.set(self.choose(Some(running)));
            self.suspend();
        }
    }

    /// Runs children and waits for them.
    pub(super) fn join(&self, works: Vec<Work<'_>>) {
        if works.is_empty() {
            return;
        }
        if self.stopping.get() {
            // Torn down: destructors of a task get no help.
            return;
        }
        let parent = self.running.get();
        self.tasks.borrow_mut()[parent].children = works.len();
        self.spawn(works, Some(parent));
        self.ready.borrow_mut().retain(|task| *task != parent);
        self.note_ready();
        self.next.set(self.choose(None));
        self.suspend();
    }

    /// Ends the run from inside a task.
    fn fail(&self, failure: RunError) {
        self.failure.borrow_mut().get_or_insert(failure);
        self.suspend();
    }

    /// In a run that is being torn down: ends a task that goes on after it caught its own unwinding. A task
    /// that never started has no stack to leave; its captures are dropped on the driver's.
    fn leave_stopped(&self) {
        if !std::thread::panicking() && !self.yielder.get().is_null() {
            self.suspend();
        }
    }

    /// Goes back to the driver, until chosen again.
    #[inline]
    fn suspend(&self) {
        // SAFETY: set by the running coroutine when it started, or by the driver when it resumed it; it lies
        // on the coroutine's own stack, on which this very call runs.
        unsafe { (*self.yielder.get()).suspend(()) }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}
