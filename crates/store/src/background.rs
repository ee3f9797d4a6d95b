//! The only place that starts threads.
//!
//! Work that can be divided runs on threads of the operating system, or, inside a simulated run, as further tasks of
//! that run, so that the explorer sees every interleaving of it too.
//!
//! Compaction runs ahead of the writers on a thread of its own, the [`Cleaner`]. On a simulated medium there is none, nor
//! where no thread can be had: the writers take the same steps themselves then.

use crate::engine::Engine;
use crate::error::Error;
use quipu_medium::MediumKind;
use quipu_medium::sim::sched;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

/// Asks `test(0..count)`, on up to so many threads, and tells whether all said yes. After a no the rest may be left out.
pub(crate) fn all(threads: usize, count: usize, test: impl Fn(usize) -> bool + Sync) -> bool {
    let (next, refused) = (AtomicUsize::new(0), AtomicBool::new(false));
    in_parallel(threads.clamp(1, count.max(1)), |_| {
        while !refused.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            if !test(number) {
                refused.store(true, Ordering::Relaxed);
            }
        }
    });
    !refused.into_inner()
}

/// Runs `work(0..threads)`, each on a thread of its own, and returns when all have ended.
pub(crate) fn in_parallel(threads: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    if sched::simulated() {
        sched::join_all(
            (0..threads).map(|i| Box::new(move || work(i)) as Box<dyn FnOnce() + Send + '_>).collect(),
        );
    } else if threads <= 1 {
        work(0);
    } else {
        thread::scope(|scope| {
            for i in 0..threads {
                scope.spawn(move || work(i));
            }
        });
    }
}

/// Where writers call the cleaner, and are told if they may not write. A call costs a system call only if the cleaner sleeps.
#[derive(Default)]
pub(crate) struct Bell {
    state: AtomicU8,
    thread: Mutex<Option<Thread>>,
}

/// States of a [`Bell`]: what whoever hears it is doing.
const NOBODY: u8 = 0;
const AWAKE: u8 = 1;
const ASLEEP: u8 = 2;
const LEAVING: u8 = 3;
const FAILED: u8 = 4;
/// The store is open for reading only: nobody hears it, and nobody may write. From [`FAILED`] on nobody may.
const SHUT: u8 = 5;

impl Bell {
    /// Calls the cleaner, and tells whether there is one.
    #[inline]
    pub(crate) fn ring(&self) -> bool {
        match self.state.load(Ordering::Relaxed) {
            ASLEEP => {
                self.wake();
                true
            }
            state => state == AWAKE,
        }
    }

    /// Calls the cleaner, and tells whether there is one; not even a rest keeps it from coming.
    pub(crate) fn ring_now(&self) -> bool {
        let is_there = self.ring();
        if is_there {
            self.unpark();
        }
        is_there
    }

    /// Lets a write go on, which asks before it changes anything: every way to write comes here.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], or [`Error::BackgroundFailed`] as [`has_failed`](Bell::has_failed).
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), Error> {
        let state = self.state.load(Ordering::Relaxed);
        if state >= FAILED { Err(refused(state)) } else { Ok(()) }
    }

    /// Admits no write from now on, and no cleaner.
    pub(crate) fn shut(&self) {
        self.state.store(SHUT, Ordering::Relaxed);
    }

    /// Whether the cleaner has panicked, or somebody who published a write.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FAILED
    }

    /// Tells everyone, from now on, that whoever has this panicked before it was [dismissed](Mourner::dismiss).
    #[inline]
    pub(crate) fn mourner(&self) -> Mourner<'_> {
        Mourner(self)
    }

    #[cold]
    fn wake(&self) {
        if self.change(ASLEEP, AWAKE) {
            self.unpark();
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn unpark(&self) {
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }
}

#[cold]
fn refused(state: u8) -> Error {
    if state == SHUT { Error::ReadOnly } else { Error::BackgroundFailed }
}

/// What a piece of the cleaner's work has come to.
pub(crate) enum Progress {
    /// There may be more to do.
    More,
    /// Enough room is left until a writer calls.
    Enough,
    /// There is too little room, and nothing to be done about it now.
    Stuck,
}

/// How long a cleaner that can do nothing leaves the store alone: at first, and at most, since a look at what there is to do
/// takes the longer the larger the pool.
const REST: Duration = Duration::from_millis(1);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The thread that compacts ahead of the writers of a store. It ends when this is dropped.
pub(crate) struct Cleaner {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Cleaner {
    /// Starts it, where there can be one.
    pub(crate) fn start(engine: &Engine) -> Option<Cleaner> {
        let (bell, own) = (engine.bell().clone(), engine.clone());
        let is_simulated = engine.region().kind() == MediumKind::Sim || sched::simulated();
        if is_simulated || !bell.change(NOBODY, AWAKE) {
            return None;
        }
        let builder = thread::Builder::new().name("quipu-cleaner".to_owned());
        let Ok(thread) = builder.spawn(move || clean(&own)) else {
            bell.state.store(NOBODY, Ordering::Release);
            return None;
        };
        Some(Cleaner { bell, thread: Some(thread) })
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        // A call may wake it between two looks at its state.
        loop {
            let state = self.bell.state.load(Ordering::Relaxed);
            if state == FAILED || self.bell.change(state, LEAVING) {
                break;
            }
        }
        self.bell.unpark();
        // A panic has been reported by its thread, and the bell tells of it for ever.
        let _ = self.thread.take().map(JoinHandle::join);
        self.bell.change(LEAVING, NOBODY);
    }
}

/// Compacts whenever the bell rings, until it is told to leave.
fn clean(engine: &Engine) {
    let bell = engine.bell();
    let _mourner = bell.mourner();
    *bell.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
    let mut rest = REST;
    while !matches!(bell.state.load(Ordering::Relaxed), LEAVING | FAILED) {
        engine.clock().raise_ahead(engine.space());
        match engine.clean_ahead() {
            Progress::More => rest = REST,
            Progress::Stuck => {
                thread::park_timeout(rest);
                rest = (rest * 2).min(LONGEST_REST);
            }
            // A call that is lost in between is made again by the next write.
            Progress::Enough if bell.change(AWAKE, ASLEEP) => {
                // A writer that was due to have the clock raised may have called before this slept: its call ends the first park.
                while bell.state.load(Ordering::Acquire) == ASLEEP {
                    engine.clock().raise_ahead(engine.space());
                    thread::park();
                }
            }
            Progress::Enough => {}
        }
    }
}

/// Tells the bell if its thread panics.
pub(crate) struct Mourner<'a>(&'a Bell);

impl Mourner<'_> {
    /// All went well; costs nothing.
    #[inline]
    pub(crate) fn dismiss(self) {
        std::mem::forget(self);
    }
}

impl Drop for Mourner<'_> {
    #[cold]
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.store(FAILED, Ordering::Release);
        }
    }
}
