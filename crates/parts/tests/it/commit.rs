//! Stripes: every interleaving that the scheduler finds must publish each parked word once, before its key is
//! read, and before a later word of the same key.

use quipu_medium::sim::sched;
use quipu_parts::commit::{Failed, Parked, Stripes};
use quipu_parts::sync::point;
use std::cell::{Cell, RefCell};

/// One table under test: what readers see of each hash, and what has been acknowledged.
struct Table {
    stripes: Stripes,
    published: RefCell<Vec<(u64, u64)>>,
}

impl Table {
    fn new(count: usize) -> Table {
        Table { stripes: Stripes::new(count), published: RefCell::default() }
    }

    fn publish(&self, parked: Parked) {
        // Publishing takes time: others come in between.
        point();
        self.published.borrow_mut().push((parked.hash, parked.word));
        point();
    }

    fn write(&self, hash: u64, word: u64) {
        let stripe = self.stripes.lock(self.stripes.of(hash), |parked| self.publish(parked));
        stripe.park(Parked { hash, word }, point);
    }

    fn read(&self, hash: u64) -> u64 {
        self.stripes.settle(hash, |parked| self.publish(parked)).unwrap();
        let published = self.published.borrow();
        published.iter().rev().find(|(other, _)| *other == hash).map_or(0, |(_, word)| *word)
    }
}

/// Runs threads that write rising words under one stripe while others read; `hashes` of them share the
/// stripe.
fn run(seed: u64, hashes: u64, finish: bool) {
    const WRITES: u64 = 6;
    let table = Table::new(1);
    // One writer a hash, so that the newest acknowledged word of a hash is known.
    let acknowledged: Vec<_> = (0..hashes).map(|_| Cell::new(0)).collect();
    let mut tasks: Vec<Box<dyn FnOnce() + '_>> = Vec::new();
    for hash in 0..hashes {
        let (table, acknowledged) = (&table, &acknowledged);
        tasks.push(Box::new(move || {
            for word in 1..=WRITES {
                table.write(hash, word);
                acknowledged[hash as usize].set(word);
                if finish {
                    table.stripes.finish(hash, |parked, _| table.publish(parked));
                }
            }
        }));
        tasks.push(Box::new(move || {
            let mut newest = 0;
            for _ in 0..WRITES {
                point();
                let least = acknowledged[hash as usize].get();
                let word = table.read(hash);
                assert!(word >= least, "an acknowledged word {least} was not seen, but {word}");
                assert!(word >= newest, "a read went back from {newest} to {word}");
                newest = word;
            }
        }));
    }
    sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    table.stripes.settle_all(|parked| table.publish(parked)).unwrap();
    for hash in 0..hashes {
        let published = table.published.borrow();
        let words: Vec<_> =
            published.iter().filter(|(other, _)| *other == hash).map(|(_, word)| *word).collect();
        assert_eq!(words, (1..=WRITES).collect::<Vec<_>>(), "each once and in order, seed {seed}");
    }
}

#[test]
fn parked_words_are_published_once_in_order_and_before_they_are_missed() {
    for seed in 0..400 {
        run(seed, 1 + seed % 3, seed % 2 == 0);
    }
}

/// Without the simulator, on threads that really run at once.
#[test]
fn threads_lose_no_word() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const WRITES: u64 = 20_000;
    let stripes = Stripes::new(1);
    let published = [AtomicU64::new(0), AtomicU64::new(0)];
    let publish = |parked: Parked| {
        let before = published[parked.hash as usize].swap(parked.word, Ordering::Relaxed);
        assert_eq!(before + 1, parked.word, "each once and in order");
    };
    std::thread::scope(|scope| {
        for hash in 0..2 {
            let (stripes, publish) = (&stripes, &publish);
            scope.spawn(move || {
                for word in 1..=WRITES {
                    stripes.lock(0, publish).park(Parked { hash, word }, || ());
                    if word % 3 == 0 {
                        stripes.finish(hash, |parked, _| publish(parked));
                    }
                }
            });
            let published = &published;
            scope.spawn(move || {
                let mut newest = 0;
                while newest < WRITES {
                    stripes.settle(hash, publish).unwrap();
                    let word = published[hash as usize].load(Ordering::Relaxed);
                    assert!(word >= newest);
                    newest = word;
                    if newest == WRITES - 1 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert!(published.iter().all(|word| word.load(Ordering::Relaxed) == WRITES));
}

/// Who waits would note the number of the stripe's last write, which may have been seen, and return for it.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "an earlier write")]
fn no_write_is_offered_before_its_number_is_noted() {
    let stripes = Stripes::new(1);
    let stripe = stripes.lock(0, |_| ());
    stripe.note_newest(1);
    stripe.offer(2);
}

/// The next thread at the stripe once waited for ever.
#[test]
fn a_publication_that_panics_fails_its_stripe_and_no_other() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let stripes = Stripes::new(2);
    let other = 1 << 24;
    assert_ne!(stripes.of(0), stripes.of(other));
    for hash in [0, other] {
        stripes.lock(stripes.of(hash), |_| ()).park(Parked { hash, word: 7 }, || ());
    }
    let publish = AssertUnwindSafe(|| stripes.settle(0, |_| panic!("on purpose")));
    assert!(catch_unwind(publish).is_err());
    assert_eq!(stripes.settle(0, |_| ()), Err(Failed));
    // Another key of the stripe is published: it would have been before this one was parked.
    assert_eq!(stripes.settle(1, |_| ()), Ok(()));
    stripes.finish(0, |_, _| panic!("nobody knows how much of it is left to do"));
    assert!(stripes.take(Parked { hash: 0, word: 7 }).is_none());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(stripes.lock(0, |_| ())))).is_err());
    let mut published = Vec::new();
    assert_eq!(stripes.settle_all(|parked| published.push(parked.hash)), Err(Failed));
    assert_eq!(published, [other]);
    drop(stripes.lock(stripes.of(other), |_| ()));
}

#[test]
fn a_client_that_panics_while_it_publishes_its_own_write_fails_its_stripe() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let stripes = Stripes::new(1);
    let own = Parked { hash: 0, word: 7 };
    stripes.lock(0, |_| ()).park(own, || ());
    let publish = AssertUnwindSafe(|| {
        let _taken = stripes.take(own).expect("parked");
        panic!("on purpose");
    });
    assert!(catch_unwind(publish).is_err());
    assert_eq!(stripes.settle(0, |_| ()), Err(Failed));
}

/// What is parked may look like the caller's own, and be another's in the same place. The number tells.
#[test]
fn whoever_finishes_is_told_the_newest_number() {
    let stripes = Stripes::new(1);
    let own = Parked { hash: 0, word: 7 };
    for number in [5, 9] {
        let stripe = stripes.lock(0, |parked| assert_eq!(parked, own));
        stripe.note_newest(number);
        stripe.park(own, || ());
    }
    let mut told = None;
    stripes.finish(0, |parked, newest| told = Some((parked, newest)));
    assert_eq!(told, Some((own, 9)));
}
