//! Stalls: operations that take too long, told apart from a machine that stands still.
//!
//! A processor that the host of a virtual machine takes away stops the store for as long, and the store is
//! not to blame. So an idle thread sits beside the load as a control: it sleeps a millisecond at a time, and
//! notes when it wakes up late. An operation that stalls while the control is late too was stalled by the
//! machine; any other was stalled by the store.

use serde::Serialize;
use serde_with::skip_serializing_none;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An operation that takes longer has stalled, and a control that wakes up so late.
const STALL: Duration = Duration::from_millis(100);

/// How long the control sleeps at a time.
const NAP: Duration = Duration::from_millis(1);

/// A time in which something stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    begin: Instant,
    end: Instant,
}

impl Stall {
    /// The stall that an operation of these times was, if it was one.
    #[inline]
    pub fn of(begin: Instant, end: Instant) -> Option<Stall> {
        (end - begin > STALL).then_some(Stall { begin, end })
    }

    fn ms(&self) -> u64 {
        (self.end - self.begin).as_millis() as u64
    }

    fn meets(&self, other: &Stall) -> bool {
        self.begin <= other.end && other.begin <= self.end
    }
}

/// Operations of more than 100 ms, and an idle thread that woke up later than that.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stalls {
    /// Operations of more than 100 ms.
    pub stalls: u64,
    /// The longest of them, in milliseconds.
    pub longest_stall_ms: Option<u64>,
    /// Those during which the idle thread was in time.
    pub stalls_of_store: u64,
    /// The longest of these, in milliseconds.
    pub longest_stall_of_store_ms: Option<u64>,
    /// How often the idle thread woke up more than 100 ms late.
    pub stalls_of_machine: u64,
    /// The longest of these, in milliseconds.
    pub longest_stall_of_machine_ms: Option<u64>,
}

impl Stalls {
    /// The sum of operations that stalled, and of a control that did.
    pub fn of(operations: &[Stall], control: &[Stall]) -> Stalls {
        let is_of_store = |stall: &&Stall| !control.iter().any(|other| other.meets(stall));
        let of_store = || operations.iter().filter(is_of_store);
        Stalls {
            stalls: operations.len() as u64,
            longest_stall_ms: operations.iter().map(Stall::ms).max(),
            stalls_of_store: of_store().count() as u64,
            longest_stall_of_store_ms: of_store().map(Stall::ms).max(),
            stalls_of_machine: control.len() as u64,
            longest_stall_of_machine_ms: control.iter().map(Stall::ms).max(),
        }
    }
}

/// Does `work` beside an idle thread, and tells when that woke up late.
pub fn beside_control<T>(work: impl FnOnce() -> T) -> (T, Vec<Stall>) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let control = scope.spawn(|| nap_until(&is_over));
        let over = Over(&is_over);
        let done = work();
        drop(over);
        (done, control.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Ends the control, also when the work panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn nap_until(is_over: &AtomicBool) -> Vec<Stall> {
    let mut stalls = Vec::new();
    let mut asleep = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(NAP);
        let awake = Instant::now();
        stalls.extend(Stall::of(asleep + NAP, awake));
        asleep = awake;
    }
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_of_the_machine_are_those_that_the_control_shares() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let stall = |begin, end| Stall::of(at(begin), at(end));
        assert_eq!(stall(0, 100), None, "as long as is bearable");
        let operations = [stall(0, 300), stall(1_000, 1_150), stall(1_100, 1_260), stall(5_000, 6_000)];
        let control = [stall(1_120, 1_240), stall(8_000, 9_500)];
        let [operations, control] = [operations.to_vec(), control.to_vec()]
            .map(|all| all.into_iter().map(|stall| stall.expect("longer than that")).collect::<Vec<_>>());
        let expected = Stalls {
            stalls: 4,
            longest_stall_ms: Some(1_000),
            stalls_of_store: 2,
            longest_stall_of_store_ms: Some(1_000),
            stalls_of_machine: 2,
            longest_stall_of_machine_ms: Some(1_500),
        };
        assert_eq!(Stalls::of(&operations, &control), expected);
        assert_eq!(Stalls::of(&[], &[]), Stalls::default());
    }

    #[test]
    fn the_control_ends_with_the_work() {
        let (done, stalls) = beside_control(|| {
            thread::sleep(Duration::from_millis(20));
            7
        });
        assert_eq!(done, 7);
        assert!(stalls.len() < 10, "{stalls:?}");
        let panicked = std::panic::catch_unwind(|| beside_control(|| panic!("a broken invariant")));
        assert!(panicked.is_err(), "and does not hold a panic up");
    }
}
