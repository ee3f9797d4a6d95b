//! A key that is deleted and put again while somebody walks over all keys is shown once at most.
//!
//! In a leaf of c-ALEX it may come back to a slot behind its old one, and the walk met it in both.

use quipu::internals::IndexChoice;
use quipu::{Design, ErrorKind, Options, Store};
use quipu_medium::{Pages, Region};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const KEYS: u64 = 600;

/// How long the walks go on for each pool.
const TIME: Duration = Duration::from_millis(400);

fn key(number: u64) -> Vec<u8> {
    // Far from equal distances, so that a leaf has gaps of every length.
    (number * number * 977 % 60_013).to_be_bytes().to_vec()
}

/// Walks while two others delete and put.
fn walks(what: &str, options: &Options) {
    let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
    let store = Store::create_on(region, options).expect("a pool");
    let all: Vec<_> = (0..KEYS).map(key).collect::<BTreeSet<_>>().into_iter().collect();
    let mut client = store.client();
    all.iter().for_each(|key| client.put(key, b"first").expect("room"));
    let (over, store) = (&AtomicBool::new(false), &store);
    std::thread::scope(|scope| {
        for (part, keys) in all.chunks(all.len().div_ceil(2)).enumerate() {
            scope.spawn(move || {
                let mut client = store.client();
                for number in (0..).take_while(|_| !over.load(Ordering::Relaxed)) {
                    let key = &keys[(number * 31 + part) % keys.len()];
                    for done in [client.delete(key), client.put(key, b"again")] {
                        match done {
                            // A walk that waits for a processor has all that was deleted meanwhile.
                            Err(error) if error.kind() == ErrorKind::Room => std::thread::yield_now(),
                            done => done.expect("no other error"),
                        }
                    }
                }
            });
        }
        let begun = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| {
            while begun.elapsed() < TIME {
                let guard = client.pin();
                let shown: Vec<_> = guard.iter().map(|(key, _)| key.into_owned()).collect();
                let once: BTreeSet<_> = shown.iter().collect();
                assert_eq!(once.len(), shown.len(), "{what} shows a key twice");
                if let Ok(range) = guard.range(Bound::Unbounded, Bound::Unbounded) {
                    let shown: Vec<_> = range.map(|pair| pair.expect("no damage").0.into_owned()).collect();
                    assert!(shown.is_sorted_by(|one, two| one < two), "{what} shows a key twice in order");
                }
            }
        }));
        over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

#[test]
fn of_every_design() {
    for design in Design::ALL {
        let options = Options::new().design(*design).size(4 << 20).zone_size(16 << 10).cleaner(false);
        let options = options.with(|options| options.testing.tiny_index = true);
        walks(design.name(), &options);
        if design.can().chooses_index {
            let what = format!("{design} with c-ALEX");
            walks(&what, &options.with(|options| options.index = IndexChoice::Alex));
        }
    }
}
