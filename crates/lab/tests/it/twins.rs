//! Stores broken on purpose by rules that the explorer seldom comes upon, each convicted by a run that was
//! made for it, and the real store in the same run.

use quipu::internals::twin::leave_out;
use quipu::internals::{Testing, Twin};
use quipu::{Design, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::{Sim, SimArena, SimOptions, Snapshot, sched};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

const ZONE: u64 = 16 << 10;

/// Small zones and a small index, whose checkpoint is short.
fn options() -> Options {
    Options::new()
        .design(Design::QUIPU)
        .zone_size(ZONE)
        .cleaner(false)
        .recovery_threads(1)
        // No two keys of a test are locked together.
        .with(|options| {
            options.testing = Testing { tiny_index: true, stripes: Some(1 << 15), ..Testing::default() }
        })
}

fn region(zones: u64, seed: u64) -> Region {
    Region::sim(SimOptions { len: zones * ZONE, seed, ..SimOptions::default() })
}

/// The value of this key after a crash of the process.
fn after_a_crash(region: &Region, key: &[u8]) -> Option<Vec<u8>> {
    let crashed = region.simulator().expect("simulated").snapshot();
    let mut arena = SimArena::new();
    let region = arena.boot(&crashed, &crashed.everything(), 1);
    let store = Store::open_on(region, &options().reset_expiry(true)).expect("recovery");
    let found = store.client().get(key).expect("a read");
    drop(store);
    found
}

/// Reads a value of twenty zones, which others supersede and then take zones for their own, in a schedule of
/// this seed: whether it was one of the values that there were.
fn reads_a_whole_value(seed: u64, twin: Option<Twin>) -> bool {
    let _left_out = leave_out(twin);
    let store = Store::create_on(region(28, seed), &options()).expect("a new pool");
    store.client().put(b"large", &vec![1; 20 * 16_000]).expect("room");
    let is_whole = Cell::new(false);
    let (store, whole) = (&store, &is_whole);
    let writer = |key: &'static [u8]| {
        move || {
            let mut client = store.client();
            // Where there is no room as long as the reader is there, nothing is written.
            (2..14).for_each(|number| drop(client.put(key, &[number; 5000])));
        }
    };
    let reader = move || {
        let found = store.client().get(b"large");
        whole.set(matches!(&found, Ok(Some(value)) if value.iter().all(|byte| *byte == value[0])));
    };
    let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
        Box::new(reader),
        Box::new(writer(b"large")),
        Box::new(writer(b"one")),
        Box::new(writer(b"two")),
    ];
    sched::run(seed, tasks).expect("it ends");
    is_whole.get()
}

#[test]
fn the_zones_of_a_superseded_large_value_wait_for_its_readers() {
    // Of the first 400 schedules, those in which the twin was convicted.
    const SEEDS: [u64; 8] = [76, 94, 156, 180, 203, 208, 226, 263];
    assert!(SEEDS.iter().all(|seed| reads_a_whole_value(*seed, None)));
    let is_torn = |seed: &&u64| !reads_a_whole_value(**seed, Some(Twin::ValueFreedAtOnce));
    let convicted = SEEDS.iter().filter(is_torn).count();
    assert!(convicted >= 3, "{convicted} schedules convict the twin");
}

/// A record expires and moves as a tombstone, which has its number. The machine crashes before its segment is
/// free, and its operator sets the clock of expiry back: an absent key stays absent.
fn expired_after_the_clock_was_set_back(twin: Option<Twin>) -> Option<Vec<u8>> {
    let _left_out = leave_out(twin);
    let region = region(40, 1);
    let sim = region.simulator().expect("simulated");
    let store = Store::create_on(region.clone(), &options()).expect("a new pool");
    let (mut client, reader) = (store.client(), store.client());
    let key = |number: u64| format!("f{number:07}").into_bytes();
    // A segment that is older, so that the tombstone has to stay; 127 records fill one.
    (0..127).for_each(|number| client.put(&key(number), &[1; 96]).expect("room"));
    client.put_until(b"KKKKKKKK", &[2; 88], sim.now() + 1000).expect("room");
    (200..330).for_each(|number| client.put(&key(number), &[1; 96]).expect("room"));
    (200..300).for_each(|number| client.put(&key(number), &[3; 96]).expect("room"));
    sim.set_now(sim.now() + 2000);
    assert_eq!(reader.get(b"KKKKKKKK").expect("a read"), None);
    // A reader that stays keeps the segment from being freed.
    let guard = reader.pin();
    store.compact().expect("room");
    let found = after_a_crash(&region, b"KKKKKKKK");
    drop(guard);
    found
}

#[test]
fn a_tombstone_is_final_over_the_record_that_it_was_made_of() {
    assert_eq!(expired_after_the_clock_was_set_back(None), None);
    assert!(expired_after_the_clock_was_set_back(Some(Twin::TombstoneNotFinal)).is_some());
}

/// Where the records of a key stand.
fn records_of(region: &Region, key: &[u8; 8]) -> Vec<u64> {
    let mut bytes = vec![0; region.len() as usize];
    region.read_racing(0, &mut bytes);
    let words = bytes.chunks_exact(8).enumerate();
    words.filter(|(_, word)| word == key).map(|(i, _)| i as u64 * 8 - 24).collect()
}

/// A key is deleted, and the deletion is parked while a cleaner copies the key's record to a segment that is
/// younger. So this segment holds the tombstone back, also in the next run. Whether the key is back after
/// that one crashes.
fn deleted_before_it_moved(twin: Option<Twin>) -> bool {
    let _left_out = leave_out(twin);
    const K: &[u8; 8] = b"KKKKKKKK";
    // With a header and a key 136 bytes, of which 120 fill a segment: no room behind them is a reason to
    // clean it.
    const LEN: usize = 104;
    let region = region(40, 1);
    let store = Store::create_on(region.clone(), &options()).expect("a new pool");
    let key = |number: u64| format!("f{number:07}").into_bytes();
    let word = |at: u64| region.load(at);
    let (mut one, mut other) = (store.client(), store.client());
    one.put(K, &[7; LEN]).expect("room");
    let [first] = records_of(&region, K)[..] else { panic!("one record") };
    let base = (first - 64) % ZONE;
    let zone = |at: u64| (at - base) / ZONE * ZONE + base;
    // All else in its segment is superseded, so that it is cleaned first; and of the other segments some.
    (0..130).for_each(|number| one.put(&key(number), &[1; LEN]).expect("room"));
    (0..126).for_each(|number| other.put(&key(number), &[1; LEN]).expect("room"));
    (1000..3600).for_each(|number| other.put(&key(number), &[1; LEN]).expect("room"));
    let mut random = SmallRng::seed_from_u64(1);
    while store.stats().free_zones > 6 {
        other.put(&key(random.random_range(1000..3600)), &[2; LEN]).expect("room");
    }
    one.delete(K).expect("room");
    let tombstone = records_of(&region, K).into_iter().map(|at| word(at + 8)).max().expect("a tombstone");
    // Fresh keys from now on: nothing is superseded in the segment that takes the copies. That becomes full,
    // so that there is no reason to clean it.
    let sequence = word(first + 8);
    let mut fresh = 5000;
    let target = loop {
        (fresh..fresh + 8).for_each(|number| other.put(&key(number), &[3; LEN]).expect("room"));
        fresh += 8;
        let copies = records_of(&region, K).into_iter().filter(|at| word(at + 8) == sequence);
        let mut zones = copies.map(zone).filter(|place| *place != zone(first));
        if let Some(full) = zones.next_back().filter(|place| word(place + 64 + 119 * 136) != 0) {
            break full;
        }
    };
    let life = word(target + 16);
    assert!(life > tombstone, "the copy's segment is younger than the tombstone");
    assert_eq!(other.get(K).expect("a read"), None);
    drop((one, other));
    store.close().expect("closed");

    let store = Store::open_on(region.clone(), &options()).expect("opened");
    assert!(store.recovery().from_checkpoint);
    // All is written again but for what stands beside the copy.
    let mut bytes = vec![0; ZONE as usize];
    region.read_racing(target, &mut bytes);
    let words: HashSet<_> = bytes.chunks_exact(8).collect();
    let is_beside = |number: &u64| words.contains(&key(*number)[..]);
    let mut client = store.client();
    for round in 0..8 {
        let others = (0..130).chain(5000..fresh);
        others
            .filter(|number| !is_beside(number))
            .for_each(|number| client.put(&key(number), &[round; LEN]).expect("room"));
        for _ in 0..2000 {
            let some = random.random_range(1000..3600);
            if !is_beside(&some) {
                client.put(&key(some), &[round; LEN]).expect("room");
            }
        }
        assert_eq!(word(target + 16), life, "the copy's segment is still there");
        let _sound = leave_out(None);
        if after_a_crash(&region, K).is_some() {
            return true;
        }
    }
    false
}

#[test]
fn a_checkpoint_tells_which_segments_hold_tombstones_back() {
    assert!(!deleted_before_it_moved(None));
    assert!(deleted_before_it_moved(Some(Twin::HoldsForgotten)));
    assert!(deleted_before_it_moved(Some(Twin::ReplacedHoldsNothing)));
}

/// A large value expires, and compaction gives up the segment of its head. The process dies there; then the
/// machine loses power while the pool is recovered, at every moment of that: how many of these pools no store
/// can open.
fn refused_after_a_process_and_then_the_power_was_lost(twin: Option<Twin>) -> usize {
    let _left_out = leave_out(twin);
    let region = region(12, 1);
    let sim = region.simulator().expect("simulated").clone();
    let store = Store::create_on(region, &options()).expect("a new pool");
    let mut client = store.client();
    client.put_until(b"large", &[1; 17_000], sim.now() + 1000).expect("room");
    (0..130u64).for_each(|number| client.put(&number.to_le_bytes(), &[1; 96]).expect("room"));
    (0..100u64).for_each(|number| client.put(&number.to_le_bytes(), &[2; 96]).expect("room"));
    drop(client);
    sim.set_now(sim.now() + 2000);
    let deaths = moments_of(&sim, || {
        store.compact().expect("room");
    });
    let mut refused = 0;
    for (seed, death) in (0..).zip(&deaths) {
        let (mut arena, mut again) = (SimArena::new(), SimArena::new());
        let region = arena.boot_process_crash(death, seed);
        let sim = region.simulator().expect("simulated").clone();
        for loss in moments_of(&sim, || drop(Store::open_on(region, &options()).expect("recovery"))) {
            let region = again.boot(&loss, &loss.nothing(), seed);
            refused += usize::from(Store::open_on(region, &options()).is_err());
        }
    }
    refused
}

/// The state of the medium before each of its operations while this runs.
fn moments_of(sim: &Sim, work: impl FnOnce()) -> Vec<Snapshot> {
    let moments = Rc::new(RefCell::new(Vec::new()));
    let seen = moments.clone();
    sim.set_observer(Some(Box::new(move |sim, _| seen.borrow_mut().push(sim.snapshot()))));
    work();
    sim.set_observer(None);
    moments.take()
}

#[test]
fn a_segment_that_was_given_up_does_not_come_back_without_its_values() {
    assert_eq!(refused_after_a_process_and_then_the_power_was_lost(None), 0);
    assert!(refused_after_a_process_and_then_the_power_was_lost(Some(Twin::ValuesFreedBeforeGivenUp)) > 0);
}
