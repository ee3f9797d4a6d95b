//! A slot that a record has left is soon another record's, of another key or of the same one. The tests read
//! meanwhile, in thousands of schedules of the simulator's scheduler. A reader must not take another key's
//! record for the absence of its own key, nor a new record of its key for an older one. So a key that is put
//! with higher and higher numbers is present for every reader, and its numbers never fall. (Histories as
//! `linear` judges them have values of many lengths; slots are of one.)

use quipu::internals::twin::leave_out;
use quipu::internals::{NodePlace, RecordForm, Twin};
use quipu::{Client, Design, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::{SimOptions, sched};
use std::ops::RangeInclusive;

/// Keys that take each other's slots, the first of which is read.
const KEYS: RangeInclusive<u64> = 1..=4;

/// How often each is put again, and the first one read meanwhile.
const ROUNDS: u64 = 40;
const READS: usize = 80;

/// Schedules for each number of keys.
const SCHEDULES: u64 = 600;

fn put(client: &mut Client, key: u64, round: u64) {
    client.put(&key.to_le_bytes(), &round.to_le_bytes()).expect("there is room");
}

/// One schedule; what has been read.
fn read_of(options: &Options, keys: u64, seed: u64) -> Vec<Option<u64>> {
    let region = Region::sim(SimOptions { len: 1 << 20, seed, ..SimOptions::default() });
    let store = Store::create_on(region, options).expect("a new pool");
    let mut client = store.client();
    (0..keys).for_each(|key| put(&mut client, key, 0));
    let mut found = Vec::new();
    let write = || (1..=ROUNDS).for_each(|round| (0..keys).for_each(|key| put(&mut client, key, round)));
    let read = || {
        let client = store.client();
        let number = |value: Vec<u8>| u64::from_le_bytes(value.try_into().expect("eight bytes were put"));
        found.extend((0..READS).map(|_| client.get(&0u64.to_le_bytes()).expect("sound").map(number)));
    };
    sched::run(seed, vec![Box::new(write), Box::new(read)]).expect("both come to an end");
    found
}

fn options_of(late: bool, nodes: NodePlace) -> Options {
    let mut options = Options::new()
        .design(Design::VIPER)
        .zone_size(16 << 10)
        .cleaner(false)
        .with(|options| options.late = late);
    options.slots.form = RecordForm::Fixed { key: 8, value: 8 };
    options.offset_map.nodes = nodes;
    options
}

fn is_sound(found: &[Option<u64>]) -> bool {
    found.is_sorted() && found.iter().all(Option::is_some)
}

fn is_there_and_rises(late: bool, nodes: NodePlace) {
    let options = options_of(late, nodes);
    for keys in KEYS {
        for seed in 0..SCHEDULES {
            let found = read_of(&options, keys, seed);
            assert!(is_sound(&found), "late {late}, {nodes:?}, {keys} keys, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn published_before_a_put_returns() {
    is_there_and_rises(false, NodePlace::Dram);
}

#[test]
fn published_before_a_put_returns_in_the_pool() {
    is_there_and_rises(false, NodePlace::Pm);
}

#[test]
fn published_late() {
    is_there_and_rises(true, NodePlace::Dram);
}

/// The first schedules with so many keys in which a broken store is convicted, at most three. A get by one
/// look is rarely held up where it matters.
fn convictions(late: bool, keys: u64, twin: Twin) -> usize {
    let _left_out = leave_out(Some(twin));
    let options = options_of(late, NodePlace::Dram);
    (0..100 * SCHEDULES).filter(|seed| !is_sound(&read_of(&options, keys, *seed))).take(3).count()
}

/// A reader finds the new record by an offset that the index named before. A later one does not find it
/// parked.
#[test]
fn a_page_that_is_free_before_its_record_is_parked_is_convicted() {
    assert_eq!(convictions(true, 1, Twin::PageFreeBeforeParked), 3);
}

/// The slot of a record that moves again and again is another key's whenever it is looked at.
#[test]
fn a_second_look_without_the_lock_is_convicted() {
    assert_eq!(convictions(false, 3, Twin::SecondLookUnlocked), 3);
}
