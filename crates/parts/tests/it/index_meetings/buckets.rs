//! Buckets.

use super::{format, rebooted, snapshot_of};
use crate::shared::keyed::by_hash;
use crate::shared::mix::mix;
use quipu_medium::sim::{SimArena, sched};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::Index as _;
use quipu_parts::index::buckets::{BucketIndex, BucketSettings};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::space::Space;
use quipu_parts::sync::Waiter;
use quipu_parts::twin::{Twin, leave_out};
use std::cell::RefCell;
use std::sync::Arc;

const LEN: u64 = 96 << 10;

/// Eight fingerprints, and sixteen buckets at most, some of which have most of the keys.
fn hash_of(key: u64) -> u64 {
    let drawn = mix(key);
    drawn << 32 | (drawn >> 40 & drawn >> 50 & 15) << 16 | drawn >> 60 & 7
}

fn create(space: &Arc<Space>, settings: BucketSettings) -> (BucketIndex, IndexRoot) {
    let mut root = None;
    let index = BucketIndex::create(space.clone(), settings, 0, |made| root = Some(made)).expect("room");
    (index, root.expect("the root is given before the index is"))
}

fn add(index: &BucketIndex, guard: &Guard<'_>, key: u64) {
    let rehash = |reference| hash_of(reference - 1);
    let added = index.upsert(guard, by_hash(hash_of(key)), key + 1, None, |_| false, &rehash);
    assert_eq!(added.expect("room"), None);
}

fn has(index: &BucketIndex, guard: &Guard<'_>, key: u64) -> bool {
    index.get(guard, by_hash(hash_of(key)), |found| found == key + 1).expect("sound").is_some()
}

/// One writer adds the key that is the first behind a chain's only bucket, and one reader looks for it until
/// it is there. Returns whether it is there after a power failure at that moment too. If readers do not
/// `help`, they take every word for durable.
fn is_kept_behind_a_link(help: bool, seed: u64) -> bool {
    const KEY: u64 = 8;
    let space = format(LEN, seed);
    let (index, root) = create(&space, BucketSettings { buckets: 1, grow: false });
    let _left_out = leave_out((!help).then_some(Twin::ReadersDoNotHelp));
    let collector = Collector::new();
    let [writer, reader] = [(); 2].map(|()| collector.register());
    (0..KEY).for_each(|key| add(&index, &writer.pin(), key));
    let told = RefCell::new(None);
    let read = || {
        let mut waiter = Waiter::default();
        while !has(&index, &reader.pin(), KEY) {
            waiter.wait();
        }
        *told.borrow_mut() = Some(snapshot_of(space.region()));
    };
    sched::run(seed, vec![Box::new(|| add(&index, &writer.pin(), KEY)), Box::new(read)]).expect("both end");
    let power_lost = told.take().expect("it was read");
    let space = rebooted(&mut SimArena::new(), &power_lost, &power_lost.nothing(), seed);
    let index: BucketIndex = BucketIndex::open(space, root, 0).expect("an index");
    has(&index, &reader.pin(), KEY)
}

/// A key that a reader finds behind a link stays there: the reader makes the link durable, although the word
/// that it finds has its mark.
#[test]
fn readers_help_the_links_that_they_go_through() {
    assert!((0..60).all(|seed| is_kept_behind_a_link(true, seed)));
    assert!((0..60).filter(|seed| !is_kept_behind_a_link(false, *seed)).count() >= 3);
}

/// A reader that goes by the size of the table as it was finds its key gone from there, once a split has
/// moved it.
#[test]
fn a_reader_that_a_split_overtakes_looks_at_the_size_again() {
    const THERE: u64 = 6;
    for seed in 0..200 {
        let space = format(LEN, seed);
        let (index, _) = create(&space, BucketSettings::tiny());
        let collector = Collector::new();
        let [writer, reader] = [(); 2].map(|()| collector.register());
        (0..THERE).for_each(|key| add(&index, &writer.pin(), key));
        let write = || (THERE..40).for_each(|key| add(&index, &writer.pin(), key));
        let read = || {
            for key in (0..80).map(|turn| turn % THERE) {
                assert!(has(&index, &reader.pin(), key), "seed {seed}: key {key} is missed");
            }
        };
        sched::run(seed, vec![Box::new(write), Box::new(read)]).expect("both come to an end");
        assert!(index.stats().splits > 2, "{:?}", index.stats());
    }
}
