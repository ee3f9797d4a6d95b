//! [`Bell`]: where writers call a job.

use super::crew::{Crew, Number, lock};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

/// Where writers call a job. A call costs a system call only if the job sleeps.
#[derive(Default)]
pub(crate) struct Bell {
    state: AtomicU8,
    /// Where the job has its seat.
    seat: Mutex<Option<(Arc<Crew>, Number)>>,
}

/// States of a [`Bell`]: those of its job.
pub(super) const NOBODY: u8 = 0;
/// It works, rests, or waits for its turn.
pub(super) const AWAKE: u8 = 1;
pub(super) const ASLEEP: u8 = 2;
pub(super) const LEAVING: u8 = 3;

impl Bell {
    /// Calls the job, and tells whether a thread carries it out.
    ///
    /// A call during the last look of a step for work is lost. The next write repeats it.
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

    /// Calls the job, also out of a rest, and tells whether a thread carries it out. No such call is lost: a
    /// step begins after it.
    pub(crate) fn ring_now(&self) -> bool {
        let is_there = matches!(self.state.load(Ordering::Relaxed), ASLEEP | AWAKE);
        if is_there {
            self.call();
        }
        is_there
    }

    #[cold]
    fn wake(&self) {
        if self.change(ASLEEP, AWAKE) {
            self.call();
        }
    }

    fn call(&self) {
        let seat = lock(&self.seat).clone();
        if let Some((crew, number)) = seat {
            crew.call(number);
        }
    }

    /// The job has a seat from now on; `false` if it has one.
    pub(super) fn hang(&self, crew: &Arc<Crew>, number: Number) -> bool {
        let mut seat = lock(&self.seat);
        let hangs = self.change(NOBODY, AWAKE);
        if hangs {
            *seat = Some((crew.clone(), number));
        }
        hangs
    }

    /// The job has no seat any more.
    pub(super) fn take_down(&self, state: u8) {
        // A call changes no other state than `ASLEEP`, and so none after this.
        self.state.store(state, Ordering::Release);
        *lock(&self.seat) = None;
    }

    pub(super) fn is_leaving(&self) {
        self.state.store(LEAVING, Ordering::Release);
    }

    pub(super) fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
