//! Readers beside atomic batches: of several writes to one key the last counts, and nobody is ever shown one
//! before it.

use quipu::{Client, Design, Options, Store, WriteBatch};
use quipu_medium::sim::{SimOptions, sched};
use quipu_medium::{Pages, Region};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const KEY: &[u8] = b"key";
const OTHER: &[u8] = b"other";
const TAKEN_BACK: &[u8] = b"taken back";

fn options(design: Design) -> Options {
    Options::new().design(design).zone_size(16 << 10).cleaner(false).recovery_threads(1)
}

fn designs() -> impl Iterator<Item = Design> {
    Design::ALL.iter().copied().filter(|design| design.can().batches)
}

/// Writes a value that it takes back itself, by a deletion or by another value.
fn batch(number: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(KEY, TAKEN_BACK).put(OTHER, &number.to_le_bytes());
    if number.is_multiple_of(2) {
        batch.delete(KEY)
    } else {
        batch.put(KEY, b"stays")
    };
    batch
}

/// Whether a reader is shown what a batch has taken back.
fn sees_it(client: &Client) -> bool {
    let one = client.get(KEY).expect("a read").as_deref() == Some(TAKEN_BACK);
    let mut of_many = false;
    client.get_many(&[OTHER, KEY], |_, value| of_many |= value == Some(TAKEN_BACK)).expect("a read");
    one || of_many
}

#[test]
fn no_schedule_shows_what_a_batch_takes_back() {
    for design in designs() {
        for seed in 0..40 {
            let region = Region::sim(SimOptions { len: 1 << 20, seed, ..SimOptions::default() });
            let store = Store::create_on(region, &options(design)).expect("a new pool");
            let (store, seen) = (&store, &Cell::new(false));
            let writer = move || {
                let mut client = store.client();
                (0..6).for_each(|number| client.write(&batch(number)).expect("room"));
            };
            let reader = move || {
                let client = store.client();
                (0..8).for_each(|_| seen.set(seen.get() || sees_it(&client)));
            };
            sched::run(seed, vec![Box::new(writer), Box::new(reader)]).expect("it ends");
            assert!(!seen.get(), "{design}, seed {seed}");
        }
    }
}

#[test]
fn no_thread_is_shown_what_a_batch_takes_back() {
    for design in designs() {
        let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
        let store = Store::create_on(region, &options(design)).expect("a new pool");
        let (store, ends) = (&store, &AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut client, begun) = (store.client(), Instant::now());
                for number in (0..).take_while(|_| begun.elapsed() < Duration::from_millis(400)) {
                    client.write(&batch(number)).expect("room");
                }
                ends.store(true, Ordering::Release);
            });
            let client = store.client();
            while !ends.load(Ordering::Acquire) {
                assert!(!sees_it(&client), "{design}");
            }
        });
    }
}

/// Also where the hash of keys is no help, and whatever stands between them.
#[test]
fn what_is_left_of_a_batch_is_the_last_write_of_each_key() {
    for design in designs() {
        let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
        let store = Store::create_on(region, &options(design)).expect("a new pool");
        let mut client = store.client();
        let mut batch = WriteBatch::new();
        for number in 0..200u64 {
            batch.put(&(number % 7).to_le_bytes(), &number.to_le_bytes());
        }
        batch.delete(&3u64.to_le_bytes());
        client.write(&batch).expect("room");
        let records = store.stats().record_bytes;
        for key in 0..7u64 {
            let last = (0..200).rev().find(|number| number % 7 == key).filter(|_| key != 3);
            let found = client.get(&key.to_le_bytes()).expect("a read");
            assert_eq!(found, last.map(|number: u64| number.to_le_bytes().to_vec()), "{design}");
        }
        // A frame's head, six records and a tombstone; or a chunk of them, in whole lines.
        let expected = match design {
            Design::XP => (64 + 6 * 32 + 24u64).next_multiple_of(64),
            _ => 24 + 6 * 40 + 32,
        };
        assert_eq!(records, expected, "{design}");
    }
}
