//! A process dies alone, and the next one finds words in the caches that the medium has not. It works on, and
//! then the power fails. Words built upon, or told to a reader, must not rest on a cache alone.

use crate::buckets::support;
use crate::crashes;
use crate::shared::keyed::by_hash;

use crashes::at_each_operation;
use quipu_medium::Region;
use quipu_medium::sim::{SimArena, Snapshot};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::Index as _;
use quipu_parts::index::IndexRoot;
use quipu_parts::index::buckets::{BucketSettings, TableLocks};
use quipu_parts::space::Space;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use support::{Twin, create, format, get, hash_of, key_of, reference, rehash, walk};

type Index = quipu_parts::index::buckets::BucketIndex<support::BrokenWords, TableLocks>;

const LEN: u64 = 96 << 10;

/// A new index.
fn created(space: &Arc<Space>, settings: BucketSettings) -> (Index, IndexRoot) {
    let (index, root) = create::<TableLocks>(space, settings);
    drop(index);
    (support::open(space, root, Twin::Sound).expect("just created"), root)
}

/// The index as another process finds it.
fn opened(region: Region, root: IndexRoot) -> Index {
    let (space, _) = Space::open(region).expect("a pool");
    support::open(&Arc::new(space), root, Twin::Sound).expect("an index")
}

/// The process dies before each operation on the medium of `act`.
fn deaths(region: &Region, act: impl FnOnce()) -> Vec<Snapshot> {
    let deaths = Rc::new(RefCell::new(Vec::new()));
    let noted = deaths.clone();
    at_each_operation(region, move |now| noted.borrow_mut().push(now.clone()), act);
    deaths.take()
}

/// What is left when the power fails now, and nothing arrives that need not.
fn power_lost(arena: &mut SimArena, region: &Region, seed: u64) -> Region {
    let during = region.simulator().expect("simulated").snapshot();
    arena.boot(&during, &during.nothing(), seed)
}

fn add(index: &Index, guard: &Guard<'_>, key: u64) {
    let upsert = index.upsert(guard, by_hash(hash_of(key)), reference(key, 0), None, |_| false, &rehash);
    assert_eq!(upsert.expect("room"), None);
}

/// Keys of one chain of a table of two buckets: those whose hashes are in the lower half, or in the upper
/// one.
fn keys_of(half: u64) -> impl Iterator<Item = u64> {
    (0..).filter(move |key| hash_of(*key) >> 63 == half)
}

/// The last bucket that was handed out may be linked in a cache only. Before another one is handed out, its
/// link is durable: of two that are not linked the first would be lost.
#[test]
fn a_bucket_whose_link_was_in_a_cache_is_not_lost() {
    let (mut dead, mut linked) = (0, 0);
    let space = format(LEN, 1);
    let (index, root) = created(&space, BucketSettings { buckets: 2, grow: false });
    let participant = Collector::new().register();
    let guard = participant.pin();
    let (mut lower, mut upper) = (keys_of(0), keys_of(1));
    (0..8).for_each(|_| {
        [&mut lower as &mut dyn Iterator<Item = u64>, &mut upper]
            .into_iter()
            .for_each(|keys| add(&index, &guard, keys.next().expect("endless")))
    });
    let (one, other) = (lower.next().expect("endless"), upper.next().expect("endless"));
    let mut arena = SimArena::default();
    for death in deaths(space.region(), || add(&index, &guard, one)) {
        let region = arena.boot_process_crash(&death, 1);
        let index = opened(region.clone(), root);
        linked += index.stats().overflow;
        add(&index, &guard, other);
        drop(index);
        let index = opened(power_lost(&mut arena, &region, 1), root);
        assert_eq!(get(&index, &guard, other).expect("sound"), Some(reference(other, 0)));
        assert_eq!(index.audit(|_| true).expect("sound").linked, index.stats().overflow, "a bucket is lost");
        dead += 1;
    }
    assert!(dead > 5 && linked > 0, "{dead} deaths, {linked} after the link");
}

/// A process dies while it deletes a key; another puts a further one into the slot, and dies as well. A
/// reader that is told then that the first one is gone is told so after a power failure too.
#[test]
fn a_key_that_is_missed_stays_gone_when_its_slot_is_taken() {
    let (mut told, mut missed) = (0, 0);
    let space = format(LEN, 1);
    let (index, root) = created(&space, BucketSettings { buckets: 1, grow: false });
    let participant = Collector::new().register();
    let guard = participant.pin();
    (0..8).for_each(|key| add(&index, &guard, key));
    let other = (8..).find(|key| hash_of(*key) as u16 != hash_of(0) as u16).expect("another fingerprint");
    let mut arena = SimArena::default();
    let take = || {
        _ = index.take(&guard, by_hash(hash_of(0)), None, |reference| key_of(reference) == 0).expect("sound")
    };
    for death in deaths(space.region(), take) {
        let region = arena.boot_process_crash(&death, 1);
        let index = opened(region.clone(), root);
        for death in deaths(&region, || add(&index, &guard, other)) {
            let region = arena.boot_process_crash(&death, 1);
            let answer = get(&opened(region.clone(), root), &guard, 0).expect("sound");
            let index = opened(power_lost(&mut arena, &region, 1), root);
            assert_eq!(get(&index, &guard, 0).expect("sound"), answer);
            (told, missed) = (told + 1, missed + usize::from(answer.is_none()));
        }
    }
    assert!(told > 10 && missed > 5 && missed < told, "{told} {missed}");
}

/// What writers of another run find, and that they find nothing, is durable too, though they change nothing
/// then.
#[test]
fn a_key_that_a_writer_misses_stays_gone() {
    let (mut found, mut missed) = (0, 0);
    let space = format(LEN, 1);
    let (index, root) = created(&space, BucketSettings { buckets: 1, grow: false });
    let participant = Collector::new().register();
    let guard = participant.pin();
    (0..8).for_each(|key| add(&index, &guard, key));
    let take = |key| {
        let taken = index
            .take(&guard, by_hash(hash_of(key)), None, |reference| key_of(reference) == key)
            .expect("sound");
        assert!(taken.is_some());
    };
    // So that another slot is the first free one.
    take(0);
    let mut arena = SimArena::default();
    for death in deaths(space.region(), || take(7)) {
        let region = arena.boot_process_crash(&death, 1);
        let old = reference(7, 0);
        let is_there =
            opened(region.clone(), root).replace(&guard, by_hash(hash_of(7)), old, old).expect("sound");
        let index = opened(power_lost(&mut arena, &region, 1), root);
        assert_eq!(get(&index, &guard, 7).expect("sound"), is_there.then_some(old));
        (found, missed) = (found + usize::from(is_there), missed + usize::from(!is_there));
    }
    assert!(found > 0 && missed > 1, "{found} {missed}");
}

/// A process dies while a split frees what it has moved out of several buckets; the next one changes a key,
/// and then the power fails. What was freed stays free, or the key would be there twice.
#[test]
fn what_a_split_has_freed_stays_free_after_the_next_run() {
    let mut dead = 0;
    for seed in 0..6 {
        let space = format(LEN, seed);
        let (index, root) = created(&space, BucketSettings::tiny());
        let participant = Collector::new().register();
        let guard = participant.pin();
        let keys = seed * 50..seed * 50 + 24;
        let (first, others) = (keys.clone().take(9), keys.clone().skip(9));
        first.for_each(|key| add(&index, &guard, key));
        let deaths = deaths(space.region(), || others.for_each(|key| add(&index, &guard, key)));
        let mut arena = SimArena::default();
        for death in deaths {
            for key in keys.clone() {
                let region = arena.boot_process_crash(&death, seed);
                let index = opened(region.clone(), root);
                if !index
                    .replace(&guard, by_hash(hash_of(key)), reference(key, 0), reference(key, 1))
                    .expect("sound")
                {
                    continue;
                }
                dead += 1;
                let index = opened(power_lost(&mut arena, &region, seed), root);
                let mut walked = walk(&index, &guard).expect("sound");
                walked.retain(|reference| key_of(*reference) == key);
                assert_eq!(walked, [reference(key, 1)], "seed {seed}");
            }
        }
        assert!(index.stats().splits > 1, "{:?}", index.stats());
    }
    assert!(dead > 5_000, "{dead} deaths");
}

/// A process dies while it fills a bucket that no hash leads to yet. The next one removes keys before it
/// splits again: none of those comes back with the bucket.
#[test]
fn what_a_split_began_in_vain_does_not_come_back() {
    let mut dead = 0;
    for seed in 0..4 {
        let space = format(LEN, seed);
        let (index, root) = created(&space, BucketSettings::tiny());
        let participant = Collector::new().register();
        let guard = participant.pin();
        let keys = seed * 50..seed * 50 + 24;
        let deaths = deaths(space.region(), || keys.clone().for_each(|key| add(&index, &guard, key)));
        let mut arena = SimArena::default();
        for death in deaths {
            let index = opened(arena.boot_process_crash(&death, seed), root);
            for key in keys.clone() {
                let is_it = |reference| key_of(reference) == key;
                index.take(&guard, by_hash(hash_of(key)), None, is_it).expect("sound");
            }
            let fresh = 1_000 + seed * 50..1_024 + seed * 50;
            fresh.clone().for_each(|key| add(&index, &guard, key));
            let walked = walk(&index, &guard).expect("sound");
            assert_eq!(walked, Vec::from_iter(fresh.map(|key| reference(key, 0))), "seed {seed}");
            dead += 1;
        }
    }
    assert!(dead > 500, "{dead} deaths");
}
