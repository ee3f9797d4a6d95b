//! CCEH.

use super::{format, moments, opened, rebooted, snapshot_of};
use crate::shared::mix::mix;
use quipu_medium::sim::{SimArena, sched};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, NodeMemory, PmNodes};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::space::Space;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

type Index = CcehIndex<PmNodes>;

const LEN: u64 = 96 << 10;

/// Hashes that all name one bucket, so that four keys fill a segment.
fn hash_of(key: u64) -> u64 {
    mix(key) & !0x1E | 0x6
}

/// Keys whose hashes are in the lower half, or in the upper one.
fn keys_of(half: u64) -> impl Iterator<Item = u64> {
    (0..).filter(move |key| hash_of(*key) >> 63 == half)
}

fn add(index: &Index, guard: &Guard<'_>, key: u64) {
    index.insert(guard, hash_of(key), key + 1).expect("room");
}

fn has(index: &Index, guard: &Guard<'_>, key: u64) -> bool {
    index.get(guard, hash_of(key), |found| found == key + 1).is_some()
}

fn create(space: &Arc<Space>, initial_depth: u32) -> (Index, IndexRoot) {
    let settings = CcehSettings { initial_depth, bucket_bits: 4, probe: 1 };
    let mut root = None;
    let index = CcehIndex::create(space.clone(), settings, 0, |made| root = Some(made)).expect("room");
    (index, root.expect("the root is given before the index is"))
}

fn open(space: Arc<Space>, root: IndexRoot) -> Index {
    CcehIndex::open(space, root, 0).expect("an index")
}

/// A reader that comes by the directory as it was finds the place of its key used again, once the key has
/// moved.
#[test]
fn a_reader_that_a_split_overtakes_looks_at_the_directory_again() {
    const THERE: u64 = 3;
    for seed in 0..200 {
        let space = format(LEN, seed);
        let (index, _) = create(&space, 0);
        let collector = Collector::new();
        let [writer, reader] = [(); 2].map(|()| collector.register());
        (0..THERE).for_each(|key| add(&index, &writer.pin(), key));
        let write = || (THERE..20).for_each(|key| add(&index, &writer.pin(), key));
        let read = || {
            for key in (0..60).map(|turn| turn % THERE) {
                assert!(has(&index, &reader.pin(), key), "seed {seed}: key {key} is missed");
            }
        };
        sched::run(seed, vec![Box::new(write), Box::new(read)]).expect("both come to an end");
        assert!(index.stats().splits > 2);
    }
}

/// Two writers fill a segment until it splits. A key that one of them has added to the sibling is there if
/// the power fails: the directory leads to the sibling only once its name counts.
#[test]
fn a_key_in_a_sibling_is_durable_as_soon_as_it_is_acknowledged() {
    let mut looked_at = 0;
    let mut arena = SimArena::new();
    for seed in 0..60 {
        let space = format(LEN, seed);
        let (index, root) = create(&space, 0);
        let index = Arc::new(index);
        let collector = Collector::new();
        let acknowledged = Rc::new(RefCell::new(Vec::new()));
        let writer = |task: u64| {
            let (participant, index, acknowledged) = (collector.register(), &index, acknowledged.clone());
            move || {
                for key in (0..8).map(|number| number * 2 + task) {
                    add(index, &participant.pin(), key);
                    acknowledged.borrow_mut().push(key);
                }
            }
        };
        let (seen, known) = (index.clone(), acknowledged.clone());
        let note = move || quipu_parts::index::Index::growing(&*seen).then(|| known.borrow().clone());
        let work = || {
            let tasks = [0, 1].map(|task| Box::new(writer(task)) as Box<dyn FnOnce() + '_>);
            sched::run(seed, tasks.into()).expect("both come to an end");
        };
        for (now, known) in moments(space.region(), note, work) {
            let Some(known) = known else { continue };
            let index = open(rebooted(&mut arena, &now, &now.nothing(), seed), root);
            let participant = Collector::new().register();
            for key in known {
                assert!(has(&index, &participant.pin(), key), "seed {seed}: key {key} is lost");
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 500, "{looked_at} moments of splits");
}

/// A process dies while it adds a key. A writer that looks for the key later, in vain or not, gives its entry
/// a mark. A key that a reader finds under a mark is there after a power failure too.
#[test]
fn a_key_that_a_writer_has_met_is_durable() {
    let (mut told, mut found) = (0, 0);
    let space = format(LEN, 1);
    let (index, root) = create(&space, 0);
    let participant = Collector::new().register();
    let guard = participant.pin();
    add(&index, &guard, 0);
    let mut arena = SimArena::new();
    for (death, ()) in moments(space.region(), || (), || add(&index, &guard, 1)) {
        let region = arena.boot_process_crash(&death, 1);
        let index = open(opened(region.clone()), root);
        assert!(!index.replace(&guard, hash_of(1), 1000, 1001), "another reference");
        let answer = has(&index, &guard, 1);
        drop(index);
        let lost = snapshot_of(&region);
        let index = open(rebooted(&mut arena, &lost, &lost.nothing(), 1), root);
        assert_eq!(has(&index, &guard, 1), answer);
        (told, found) = (told + 1, found + u32::from(answer));
    }
    assert!(told > 3 && found > 0 && found < told, "{found} of {told}");
}

/// Two splits are cut off by a crash. Their siblings are free, and later splits use them again. So their old
/// names are gone first, or two segments would have one name.
#[test]
fn siblings_of_splits_that_did_not_happen_have_no_name() {
    let mut both = 0;
    let mut arena = SimArena::new();
    for seed in 0..20 {
        let space = format(LEN, seed);
        let (index, root) = create(&space, 1);
        let collector = Collector::new();
        let participants = [(); 2].map(|()| collector.register());
        let keys = [0, 1].map(|half| keys_of(half).take(6).collect::<Vec<_>>());
        for (participant, keys) in participants.iter().zip(&keys) {
            keys[..4].iter().for_each(|key| add(&index, &participant.pin(), *key));
        }
        let work = || {
            let tasks = participants.iter().zip(&keys).map(|(participant, keys)| {
                Box::new(|| add(&index, &participant.pin(), keys[4])) as Box<dyn FnOnce() + '_>
            });
            sched::run(seed, tasks.collect()).expect("both come to an end");
        };
        for (now, ()) in moments(space.region(), || (), work) {
            let region = arena.boot(&now, &now.everything(), seed);
            let index = open(opened(region.clone()), root);
            let guard = participants[0].pin();
            both += u32::from(index.stats().segments == 2);
            keys[0][4..]
                .iter()
                .filter(|key| !has(&index, &guard, **key))
                .for_each(|key| add(&index, &guard, *key));
            drop(index);
            let index = open(opened(region), root);
            assert!(keys[0].iter().all(|key| has(&index, &guard, *key)), "seed {seed}");
        }
    }
    assert!(both > 20, "{both} crashes before either split");
}

/// A zone is committed behind the link to it: a crash leaves no zone that is in use and that nothing leads
/// to.
#[test]
fn a_zone_that_is_committed_is_linked() {
    let space = format(LEN, 1);
    let (index, root) = create(&space, 0);
    let participant = Collector::new().register();
    let work = || (0..20).for_each(|key| add(&index, &participant.pin(), key));
    let mut arena = SimArena::new();
    let mut most = 0;
    for (now, ()) in moments(space.region(), || (), work) {
        let space = rebooted(&mut arena, &now, &now.nothing(), 1);
        let mut zones = open(space.clone(), root).memory().zones();
        zones.sort_unstable();
        assert_eq!(space.committed_zones(), zones);
        most = most.max(zones.len());
    }
    assert!(most > 2, "{most} zones");
}
