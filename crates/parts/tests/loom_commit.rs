//! The stripes under a model of memory: every order in which writers that park, others that publish, and
//! readers may see each other's stores, as far as the language allows.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_commit --release
//! ```

#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use quipu_parts::commit::{Parked, Roster, Stripes};

const WORDS: usize = 4;

/// Two hashes under one stripe: records that are written before they are parked, an index, what has been
/// acknowledged.
struct Table {
    stripes: Stripes,
    records: [[UnsafeCell<u64>; WORDS]; 2],
    index: [AtomicU64; 2],
    acknowledged: [AtomicU64; 2],
    /// Changed by the thread that publishes: the model notices two at once.
    publisher: UnsafeCell<u64>,
}

// SAFETY: the model's cells track each access, and fail the test if two of them race.
unsafe impl Sync for Table {}
// SAFETY: as above.
unsafe impl Send for Table {}

impl Table {
    fn new() -> Arc<Table> {
        let records = std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(0)));
        Arc::new(Table {
            stripes: Stripes::new(1),
            records,
            index: Default::default(),
            acknowledged: Default::default(),
            publisher: UnsafeCell::new(0),
        })
    }

    fn publish(&self, parked: Parked) {
        let Parked { hash, word } = parked;
        // SAFETY: the model fails the test if another publisher is here.
        self.publisher.with_mut(|count| unsafe { *count += 1 });
        // SAFETY: the model fails the test if the record is being written.
        let record = self.records[hash as usize][word as usize].with(|record| unsafe { *record });
        assert_eq!(record, word + 100, "the record is seen");
        let before = self.index[hash as usize].swap(word, Ordering::Relaxed);
        assert_eq!(before + 1, word, "each once and in order");
    }

    fn write(&self, hash: u64, word: u64) {
        // SAFETY: the model fails the test if somebody reads the record.
        self.records[hash as usize][word as usize].with_mut(|record| unsafe { *record = word + 100 });
        let stripe = self.stripes.lock(0, |parked| self.publish(parked));
        stripe.note_newest(stripe.newest() + 1);
        stripe.park(Parked { hash, word }, || ());
        self.acknowledged[hash as usize].store(word, Ordering::Release);
    }

    fn read(&self, hash: u64) -> u64 {
        let least = self.acknowledged[hash as usize].load(Ordering::Acquire);
        self.stripes.settle(hash, |parked| self.publish(parked)).unwrap();
        let word = self.index[hash as usize].load(Ordering::Relaxed);
        assert!(word >= least, "word {least} was acknowledged, and {word} seen");
        word
    }
}

fn model(test: impl Fn() + Sync + Send + 'static) {
    model_of(2, test);
}

/// With so many moments at which a thread is interrupted.
fn model_of(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(test);
}

#[test]
fn writers_of_two_hashes_and_a_reader() {
    model(|| {
        let table = Table::new();
        let (one, other) = (table.clone(), table.clone());
        let first = thread::spawn(move || {
            one.write(0, 1);
            one.write(0, 2);
            one.stripes.finish(0, |parked, _| one.publish(parked));
        });
        let second = thread::spawn(move || other.write(1, 1));
        let seen = table.read(0);
        assert!(table.read(0) >= seen);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!((table.read(0), table.read(1)), (2, 1));
    });
}

#[test]
fn a_writer_takes_over_its_own_and_leaves_what_is_of_another() {
    model(|| {
        let table = Table::new();
        let (one, other) = (table.clone(), table.clone());
        let first = thread::spawn(move || {
            one.write(0, 1);
            let own = Parked { hash: 0, word: 1 };
            if let Some(taken) = one.stripes.take(own) {
                one.publish(own);
                drop(taken);
            }
            assert_eq!(one.read(0), 1);
        });
        let second = thread::spawn(move || other.write(1, 1));
        table.read(1);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!((table.read(0), table.read(1)), (1, 1));
    });
}

#[test]
fn what_one_reader_saw_no_later_one_misses() {
    model(|| {
        let table = Table::new();
        let (writing, reading) = (table.clone(), table.clone());
        let writer = thread::spawn(move || {
            writing.write(0, 1);
            writing.write(0, 2);
        });
        let reader = thread::spawn(move || {
            let seen = reading.read(0);
            reading.acknowledged[1].store(seen, Ordering::Release);
        });
        let seen = table.acknowledged[1].load(Ordering::Acquire);
        assert!(table.read(0) >= seen);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(table.read(0), 2);
    });
}

#[test]
fn all_is_published_that_was_parked_before() {
    model(|| {
        let table = Table::new();
        let (writing, settling) = (table.clone(), table.clone());
        let writer = thread::spawn(move || {
            writing.write(0, 1);
            writing.write(1, 1);
        });
        let settler = thread::spawn(move || settling.stripes.settle_all(|parked| settling.publish(parked)));
        let least = [0, 1].map(|hash: usize| table.acknowledged[hash].load(Ordering::Acquire));
        table.stripes.settle_all(|parked| table.publish(parked)).unwrap();
        for (hash, least) in least.into_iter().enumerate() {
            assert!(table.index[hash].load(Ordering::Relaxed) >= least);
        }
        writer.join().unwrap();
        settler.join().unwrap().unwrap();
    });
}

/// A client that writes a hash, and then another one over it in its place, beside a reader of the first
/// hash and a walk. Whether the walk has found the first write, if it had been acknowledged. `is_sound`: the
/// client waits for whoever publishes its write.
fn walk_beside(is_sound: bool) -> bool {
    let (table, roster) = (Table::new(), Roster::default());
    let place = roster.register();
    let (reading, walking) = (table.clone(), table.clone());
    let reader = thread::spawn(move || reading.stripes.settle(1, |parked| reading.publish(parked)).unwrap());
    let walk = thread::spawn(move || {
        let least = walking.acknowledged[1].load(Ordering::Acquire);
        for hash in roster.hashes() {
            walking.stripes.settle(hash, |parked| walking.publish(parked)).unwrap();
        }
        walking.index[1].load(Ordering::Relaxed) >= least
    });
    place.note(0, 1);
    table.write(1, 1);
    let was_parked = table.stripes.finish(1, |parked, _| table.publish(parked));
    if !was_parked && is_sound {
        table.stripes.settle(1, |parked| table.publish(parked)).unwrap();
    }
    // The hash of a place that has none.
    place.note(0, 0);
    reader.join().unwrap();
    walk.join().unwrap()
}

#[test]
fn a_walk_finds_all_that_was_acknowledged() {
    model(|| assert!(walk_beside(true)));
}

#[test]
fn a_walk_may_miss_what_its_client_has_left_to_others() {
    static MISSES: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    model(|| {
        if !walk_beside(false) {
            MISSES.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let misses = MISSES.load(std::sync::atomic::Ordering::Relaxed);
    assert!(misses, "a model that never misses would prove nothing");
}

/// Two writes of a key, of which the first is on offer, beside a thread that looks at the index and then
/// locks. Returns which write that thread has met at the stripe, and which it had seen in the index.
/// `is_sound`: the offer ends before the write can be seen.
fn meet(is_sound: bool) -> (Option<u64>, u64) {
    let table = Table::new();
    let writing = table.clone();
    let writer = thread::spawn(move || {
        let stripe = writing.stripes.lock(0, |_| ());
        stripe.note_newest(1);
        stripe.offer(1);
        if is_sound {
            stripe.withdraw();
        }
        writing.index[0].store(1, Ordering::Release);
        drop(stripe);
        let stripe = writing.stripes.lock(0, |_| ());
        stripe.note_newest(2);
        writing.index[0].store(2, Ordering::Release);
    });
    let seen = table.index[0].load(Ordering::Acquire);
    let met = table.stripes.lock(0, |_| ()).met();
    writer.join().unwrap();
    (met, seen)
}

#[test]
fn a_write_that_was_seen_or_is_not_on_offer_is_met_by_nobody() {
    static MET: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    // Before the number is read, and before the state is read again, the holder goes on.
    model_of(3, || match meet(true) {
        (None, _) => {}
        (met, seen) => {
            assert_eq!((met, seen), (Some(1), 0));
            MET.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(MET.load(std::sync::atomic::Ordering::Relaxed) > 0, "nobody ever met it");
}

#[test]
#[should_panic(expected = "had been seen")]
fn as_published_a_write_is_met_that_was_seen() {
    model(|| {
        let (met, seen) = meet(false);
        assert!(met.is_none() || seen == 0, "{met:?} is met, and {seen} had been seen");
    });
}
