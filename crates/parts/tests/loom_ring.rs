//! The ring under a model of memory: every order in which owners of items may end them, others may wait for
//! them, and a reader may look, as far as the language allows. Each rule of the protocol is left out once,
//! and the model has to notice.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_ring --release
//! ```

#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use quipu_parts::commit::Ring;
use quipu_parts::commit::ring::Grants;
use quipu_parts::twin::{Twin, leave_out};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Items that a run may have.
const MOST: usize = 4;

/// A ring, the records that its items write, and an index.
struct Log {
    ring: Ring<u64>,
    records: [UnsafeCell<u64>; MOST + 1],
    index: [AtomicU64; MOST + 1],
}

// SAFETY: the model's cells track each access, and fail the test if two of them race.
unsafe impl Sync for Log {}
// SAFETY: as above.
unsafe impl Send for Log {}

impl Log {
    fn new(capacity: usize, grants: Grants) -> Arc<Log> {
        let ring = Ring::new(capacity, grants, 0, 0);
        ring.turn().expect("a new ring").add_numbers(1..100);
        let records = std::array::from_fn(|_| UnsafeCell::new(0));
        Arc::new(Log { ring, records, index: Default::default() })
    }

    /// Writes an item of one record, and waits until it is visible.
    fn write(&self) -> u64 {
        let (flight, nth) = self.ring.turn().expect("nobody panics").grant(1, |granted, place| {
            *granted += 1;
            assert_eq!(*granted, place.first, "places have the order of the numbers");
            place.first
        });
        assert_eq!((flight.place().before, flight.place().last), (nth - 1, nth));
        assert!(flight.place().floor < nth, "the floor is of an earlier item");
        // SAFETY: the model fails the test if somebody reads the record.
        self.records[nth as usize].with_mut(|record| unsafe { *record = nth + 100 });
        self.index[nth as usize].store(nth, Ordering::Relaxed);
        flight.done();
        self.ring.wait(nth).expect("nobody panics");
        self.read(nth);
        nth
    }

    /// Reads all that is visible, which is at least `least`.
    fn read(&self, least: u64) -> u64 {
        let visible = self.ring.visible();
        assert!(visible >= least, "{least} was acknowledged, and {visible} is visible");
        for number in 1..=visible as usize {
            assert_eq!(self.index[number].load(Ordering::Relaxed), number as u64, "it is published");
            // SAFETY: the model fails the test if the record is being written.
            let record = self.records[number].with(|record| unsafe { *record });
            assert_eq!(record, number as u64 + 100, "it is written");
        }
        visible
    }
}

/// Explores `writers` threads with so many items each, beside a thread that writes one and reads.
fn explore(capacity: usize, grants: Grants, writers: &'static [u64], preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 50_000;
    builder.check(move || {
        let log = Log::new(capacity, grants);
        let threads: Vec<_> = writers
            .iter()
            .map(|items| {
                let log = log.clone();
                thread::spawn(move || (0..*items).for_each(|_| assert!(log.write() > 0)))
            })
            .collect();
        let seen = log.read(0);
        let own = log.write();
        log.read(seen.max(own));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let all = writers.iter().sum::<u64>() + 1;
        assert_eq!(log.read(all), all);
    });
}

#[test]
fn two_threads_and_a_ring_of_one() {
    explore(1, Grants::Lock, &[2], 3);
}

#[test]
fn two_threads_and_a_ring_of_two() {
    explore(2, Grants::Lock, &[3], 3);
}

#[test]
fn three_threads_and_a_ring_of_two() {
    explore(2, Grants::Lock, &[1, 1], 2);
}

#[test]
fn tickets() {
    explore(1, Grants::Ticket, &[1, 1], 2);
}

#[test]
fn a_panic_wakes_all() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let log = Log::new(1, Grants::Lock);
        let other = log.clone();
        let thread = thread::spawn(move || drop(other.ring.turn().map(|turn| turn.grant(1, |_, _| ()))));
        let outcome = log.ring.turn().map(|turn| turn.grant(1, |_, place| place.first));
        if let Ok((flight, number)) = outcome {
            flight.done();
            let waited = log.ring.wait(number);
            assert_eq!(waited.is_ok(), log.ring.visible() >= number);
        }
        thread.join().unwrap();
        assert!(log.ring.turn().is_err());
    });
}

#[test]
fn every_rule_counts() {
    let rules = [
        Twin::HeadNotChanged,
        Twin::EndNotReleased,
        Twin::LastReadLate,
        Twin::SlotShared,
        Twin::VisibleWhenGranted,
    ];
    for rule in rules {
        let left_out = leave_out(Some(rule));
        let runs: [fn(); 3] = [
            || explore(1, Grants::Lock, &[2], 3),
            || explore(2, Grants::Lock, &[3], 3),
            || explore(2, Grants::Lock, &[1, 1], 2),
        ];
        let convicted = runs.iter().any(|run| catch_unwind(AssertUnwindSafe(run)).is_err());
        drop(left_out);
        assert!(convicted, "{rule:?} was left out, and nobody noticed");
    }
}
