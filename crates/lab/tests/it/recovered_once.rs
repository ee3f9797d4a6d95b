//! Recovery by several threads lets the index name each key once, however they meet.
//!
//! Of the versions of a key that a pool has, threads may bring two at the same time, and the index may be
//! growing meanwhile.

use crate::shared::schedule;
use quipu::internals::{Testing, Twin, twin};
use quipu::{Design, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::{SimArena, SimOptions, Snapshot, sched};
use std::cell::RefCell;

const KEYS: u64 = 200;
const VERSIONS: u64 = 4;
const THREADS: usize = 4;

fn options(design: Design) -> Options {
    let testing = Testing { tiny_index: true, ..Testing::default() };
    let options = schedule::options(design, testing).recovery_threads(THREADS);
    options.with(|options| options.slots.pages_per_block = 1)
}

/// A pool whose records are older versions of its keys for the most part.
fn pool(options: &Options) -> Snapshot {
    let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
    let store = Store::create_on(region, options).expect("a new pool");
    for version in 0..VERSIONS {
        // The versions of a key lie far apart, where different threads begin to scan.
        let mut client = store.client();
        for key in 0..KEYS {
            client.put(&key.to_le_bytes(), &[version as u8; 900]).expect("room");
        }
    }
    store.region().simulator().expect("simulated").snapshot()
}

/// What is wrong with the pool if it is recovered in this schedule.
fn recovered(options: &Options, image: &Snapshot, arena: &mut SimArena, seed: u64) -> Option<String> {
    let region = arena.boot(image, &image.everything(), seed);
    let opened = RefCell::new(None);
    let open = || *opened.borrow_mut() = Some(Store::open_on(region, options));
    sched::run(seed, vec![Box::new(open)]).expect("it ends");
    let mut store = opened.into_inner().expect("it was opened").expect("it is sound");
    let mut shown: Vec<_> = store.client().pin().iter().map(|(key, _)| key.into_owned()).collect();
    let count = shown.len() as u64;
    shown.sort();
    shown.dedup();
    if (count, shown.len() as u64) != (KEYS, KEYS) {
        return Some(format!("seed {seed}: of {KEYS} keys it shows {}, {count} times", shown.len()));
    }
    let checked = store.check(&|_, _| {}).expect("nobody else has it");
    (!checked.is_sound() || checked.keys != KEYS).then(|| format!("seed {seed}: {}", checked.damage))
}

fn faults(design: Design, schedules: u64) -> Option<String> {
    let (options, mut arena) = (options(design), SimArena::default());
    let image = pool(&options);
    schedule::seeds(schedules).find_map(|seed| recovered(&options, &image, &mut arena, seed))
}

#[test]
fn in_every_design() {
    for design in Design::ALL {
        assert_eq!(faults(*design, 50), None, "{design}");
    }
}

#[test]
fn who_found_a_key_absent_before_a_split_is_convicted() {
    assert_eq!(faults(Design::VIPER_PACMAN, 100), None);
    let _left_out = twin::leave_out(Some(Twin::AbsentBeforeSplit));
    assert!(faults(Design::VIPER_PACMAN, 100).is_some_and(|fault| fault.contains("it shows")));
}
