//! Replacing the hot set under a model of memory: every order in which one who looks and one who replaces may
//! see each other's stores, as far as the language allows.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_hot_set --release
//! ```

#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use quipu_parts::epoch::Current;
use quipu_parts::epoch::{Collector, Guard};

/// What is looked at. The model notices a look that may come before it is complete, or meet its end.
struct Thing(UnsafeCell<u64>);

// SAFETY: the model's cell tracks each access, and fails the test if two of them race.
unsafe impl Sync for Thing {}
// SAFETY: as above.
unsafe impl Send for Thing {}

impl Thing {
    fn new(number: u64) -> Thing {
        let thing = Thing(UnsafeCell::new(0));
        // SAFETY: the model checks the access.
        thing.0.with_mut(|word| unsafe { *word = number });
        thing
    }

    fn number(&self) -> u64 {
        // SAFETY: the model checks the access.
        self.0.with(|word| unsafe { *word })
    }
}

impl Drop for Thing {
    fn drop(&mut self) {
        // SAFETY: the model checks the access.
        self.0.with_mut(|word| unsafe { *word = 0 });
    }
}

fn replace(current: &Current<Thing>, guard: &Guard<'_>, number: u64) {
    current.replace(guard, (number > 0).then(|| Thing::new(number)));
}

/// One looks while another puts these numbers there, zero for nothing. What was replaced is freed by the
/// latter, or by a third who collects.
fn check(numbers: &'static [u64], third: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(if third { 2 } else { 3 });
    model.check(move || {
        let (current, collector) = (Arc::new(Current::default()), Collector::new());
        let (reader, writer) = (collector.register(), collector.register());
        replace(&current, &writer.pin(), numbers[0]);
        let seen = Arc::clone(&current);
        let mut threads = vec![loom::thread::spawn(move || {
            let guard = reader.pin();
            let number = seen.get(&guard).map_or(0, Thing::number);
            assert!(numbers.contains(&number));
            drop(guard);
            drop(reader);
        })];
        if third {
            let other = collector.register();
            threads.push(loom::thread::spawn(move || (0..2).for_each(|_| _ = other.collect())));
        }
        for &number in &numbers[1..] {
            replace(&current, &writer.pin(), number);
            if !third {
                (0..2).for_each(|_| _ = writer.collect());
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn who_looks_sees_what_is_whole_and_alive() {
    check(&[0, 1, 2], false);
    check(&[1, 0, 2], false);
    check(&[1, 2], true);
}
