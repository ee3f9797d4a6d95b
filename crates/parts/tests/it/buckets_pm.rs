//! A bucket index without crashes: its costs on the medium, that it is there again after an open, and that
//! damage in a pool is refused or harmless.

use crate::buckets::support;
use crate::shared::keyed::{self, by_hash};

use quipu_medium::sim::{Cost, SimArena, sched};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::buckets::{
    BucketCursor, BucketIndex, BucketLocks, BucketSettings, Locking, TableLocks,
};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::index::{Index as _, IndexError, PmWords};
use quipu_parts::space::{Space, SpaceError, ZoneId};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use support::{create, format, key_of, mix, reference, walk};
use zerocopy::{FromZeros, IntoBytes};

type Index<L = TableLocks> = BucketIndex<PmWords, L>;

fn cost(space: &Space) -> Cost {
    space.region().simulator().expect("simulated").cost()
}

fn costs<T>(space: &Space, act: impl FnOnce() -> T) -> (T, Cost) {
    let before = cost(space);
    let result = act();
    (result, cost(space) - before)
}

fn reopen(space: Arc<Space>) -> Arc<Space> {
    let region = space.region().clone();
    drop(Arc::into_inner(space).expect("nobody else has the pool"));
    Arc::new(Space::open(region).expect("the pool").0)
}

/// The pool as a power failure leaves it at which nothing arrives that need not.
fn crashed(space: &Space) -> Arc<Space> {
    let snapshot = space.region().simulator().expect("simulated").snapshot();
    Arc::new(Space::open(SimArena::new().boot(&snapshot, &snapshot.nothing(), 1)).expect("the pool").0)
}

fn rehash(reference: u64) -> u64 {
    mix(key_of(reference))
}

fn put<L: Locking>(index: &Index<L>, guard: &Guard<'_>, key: u64, version: u64) {
    let matches = |reference| key_of(reference) == key;
    index.upsert(guard, by_hash(mix(key)), reference(key, version), None, matches, &rehash).expect("room");
}

fn get<L: Locking>(index: &Index<L>, guard: &Guard<'_>, key: u64) -> Option<u64> {
    index.get(guard, by_hash(mix(key)), |reference| key_of(reference) == key).expect("sound")
}

fn take<L: Locking>(index: &Index<L>, guard: &Guard<'_>, key: u64) -> Option<u64> {
    index.take(guard, by_hash(mix(key)), None, |reference| key_of(reference) == key).expect("sound")
}

/// Words that each of these stores beside the word itself: lock and unlock.
fn costs_one_line_and_one_fence<L: Locking>(locking: u64) {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let (index, _) = create::<L>(&space, BucketSettings { buckets: 500, grow: false });
    // So few for each bucket that hardly any has more than one.
    for key in 0..400 {
        let seen = |act: &dyn Fn()| {
            let ((), cost) = costs(&space, act);
            (cost.words_stored - locking, cost.lines_persisted(), cost.fences)
        };
        assert_eq!(seen(&|| put(&index, &guard, key, 1)), (2, 1, 1), "an insertion: the word, and its mark");
        assert_eq!(seen(&|| put(&index, &guard, key, 2)), (2, 1, 1), "an update");
        assert_eq!(seen(&|| assert!(get(&index, &guard, key).is_some())), (0, 0, 0));
        assert_eq!(seen(&|| assert!(get(&index, &guard, key + 1000).is_none())), (0, 0, 0));
        assert_eq!(seen(&|| assert!(take(&index, &guard, key).is_some())), (2, 1, 1), "a mark, and nothing");
        put(&index, &guard, key, 3);
    }
    assert_eq!(index.stats().overflow, 0);
}

#[test]
fn a_change_costs_one_line_and_one_fence_and_a_lookup_none() {
    costs_one_line_and_one_fence::<TableLocks>(0);
}

/// What the baseline of the paper pays more is what it stores to its locks, and nothing else.
#[test]
fn locks_in_the_buckets_are_stores_to_pm() {
    costs_one_line_and_one_fence::<BucketLocks>(2);
}

/// A record that cannot be read, or is another key's by now, does not tell where its word belongs. The word
/// stays where it is looked for.
#[test]
fn a_chain_with_a_word_that_belongs_nowhere_is_not_split() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    for (wrong, told) in [(3, 0), (3, mix(3) ^ 1 << 40), (3, mix(3) ^ 1)] {
        let (index, _) = create::<TableLocks>(&format(1 << 20, 1), BucketSettings { buckets: 2, grow: true });
        let rehash = |reference| if key_of(reference) == wrong { told } else { mix(key_of(reference)) };
        for key in 0..400 {
            let matches = |reference| key_of(reference) == key;
            index.upsert(&guard, by_hash(mix(key)), reference(key, 1), None, matches, &rehash).expect("room");
        }
        assert!((0..400).all(|key| get(&index, &guard, key).is_some()), "{told:x}");
    }
}

/// Such a chain is looked at now and then only, and when its word is in order again the table grows on.
#[test]
fn a_split_that_was_refused_is_not_tried_with_every_key() {
    const WRONG: u64 = 3;
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let (index, _) = create::<TableLocks>(&format(1 << 20, 1), BucketSettings { buckets: 2, grow: true });
    let is_damaged = Cell::new(true);
    let rehash = |reference| match key_of(reference) {
        WRONG if is_damaged.get() => 0,
        key => mix(key),
    };
    let add = |keys: Range<u64>| {
        for key in keys {
            index
                .upsert(&guard, by_hash(mix(key)), reference(key, 1), None, |_| false, &rehash)
                .expect("room");
        }
        index.stats()
    };
    let (refused, later) = (add(0..200), add(200..1_000));
    assert!(refused.records_read > 0, "{refused:?}");
    assert_eq!((later.splits, later.records_read), (refused.splits, refused.records_read));
    is_damaged.set(false);
    let grown = add(1_000..10_000);
    assert!(grown.splits > refused.splits + 100, "{grown:?}");
    assert!((0..10_000).all(|key| get(&index, &guard, key).is_some()));
}

#[test]
fn a_lookup_reads_one_line_in_a_bucket_without_overflow() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let (index, _) = create::<TableLocks>(&space, BucketSettings { buckets: 1, grow: false });
    for key in 0..8 {
        put(&index, &guard, key, 1);
        for asked in 0..16 {
            let (found, cost) = costs(&space, || get(&index, &guard, asked));
            assert_eq!((found.is_some(), cost.reads, cost.lines_read), (asked <= key, 1, 1));
        }
    }
    let (_, cost) = costs(&space, || put(&index, &guard, 8, 1));
    // The zone, its link and commit; the bucket and the usage of its zone; the link to it.
    assert_eq!((cost.fences, index.stats().overflow), (4, 1));
    let (_, cost) = costs(&space, || get(&index, &guard, 8));
    assert_eq!((cost.lines_read, cost.words_stored), (2, 0));
    (9..15).for_each(|key| put(&index, &guard, key, 1));
    let (_, cost) = costs(&space, || put(&index, &guard, 15, 1));
    assert_eq!((cost.fences, cost.lines_persisted(), index.stats().overflow), (2, 3, 2));
}

#[test]
fn a_split_costs_three_fences() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(512 << 10, 1);
    let (index, _) = create::<TableLocks>(&space, BucketSettings::tiny());
    let (mut splits, mut plain) = (0, 0);
    for key in 0..1500 {
        let before = (index.stats(), index.zones().len());
        let (_, cost) = costs(&space, || put(&index, &guard, key, 1));
        let (after, zones) = (index.stats(), (index.zones().len() - before.1) as u64);
        let (split, linked) = (after.splits - before.0.splits, after.overflow - before.0.overflow);
        assert!(split <= 1);
        // An insertion into a bucket of its own costs two; one more is linked if more than eight keys move.
        let fences = if linked == 0 { 1 } else { 2 * linked } + 3 * split + 2 * zones;
        assert!(
            cost.fences == fences || linked > 0 && cost.fences == fences + 1,
            "{cost:?} {split} {linked} {zones}"
        );
        splits += split;
        plain += u64::from(split + linked + zones == 0);
    }
    let stats = index.stats();
    assert!(splits > 200 && plain > 1000, "{splits} {plain}");
    assert_eq!(index.audit(|_| true).expect("sound").linked, stats.overflow);
    assert!(stats.buckets < 400 && stats.overflow < 100, "{stats:?}");
}

/// The work of a cleaner: one fence for all; readers that come before pay for the words that they read.
#[test]
fn many_changes_cost_one_fence() {
    const KEYS: u64 = 32;
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let (index, root) = create::<TableLocks>(&space, BucketSettings { buckets: 8, grow: true });
    (0..KEYS).for_each(|key| put(&index, &guard, key, 1));
    let (mut unflushed, mut second) = (Vec::new(), Vec::new());
    let (_, cost) = costs(&space, || {
        for key in 0..KEYS {
            let moved = keyed::repoint(&index, &guard, mix(key), reference(key, 1), reference(key, 2));
            unflushed.extend(moved);
        }
    });
    assert_eq!((cost.fences, cost.lines_persisted(), unflushed.len()), (0, 0, KEYS as usize));
    let look = |key| costs(&space, || get(&index, &guard, key));
    let (found, cost) = look(0);
    assert_eq!((found, cost.fences, cost.words_stored), (Some(reference(0, 2)), 1, 1), "a reader helps");
    let (found, cost) = look(0);
    assert_eq!((found, cost.fences, cost.words_stored), (Some(reference(0, 2)), 0, 0));
    assert!(costs(&space, || index.names(&guard, by_hash(mix(1)), reference(1, 2)).expect("sound")).0);
    // One that has moved on meanwhile, and some that stand elsewhere by now.
    second.extend(keyed::repoint(&index, &guard, mix(3), reference(3, 2), reference(3, 3)));
    let splits = index.stats().splits;
    (KEYS..KEYS + 100).for_each(|key| put(&index, &guard, key, 1));
    assert!(index.stats().splits > splits + 5);
    let (_, cost) = costs(&space, || index.persist(&guard, &mut unflushed));
    assert_eq!((cost.fences, unflushed.len(), second.len()), (1, 0, 1));
    let (_, cost) = costs(&space, || index.persist(&guard, &mut unflushed));
    assert_eq!(cost.fences, 0, "there is nothing left to be made durable");
    drop(index);
    let index = Index::<TableLocks>::open(crashed(&space), root, 0).expect("the index");
    for key in 0..KEYS {
        let version = if key == 3 { 3 } else { 2 };
        assert!(index.names(&guard, by_hash(mix(key)), reference(key, version)).expect("sound"), "key {key}");
    }
}

#[test]
fn an_index_is_there_again_after_an_open() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    for settings in [BucketSettings::tiny(), BucketSettings { buckets: 150, grow: false }] {
        let space = format(256 << 10, 1);
        let (index, root) = create::<TableLocks>(&space, settings);
        (0..400).for_each(|key| put(&index, &guard, key, 1));
        let before = index.stats();
        let (keys, cost) = costs(&space, || keyed::len(&index).expect("sound"));
        assert_eq!((keys, cost.reads), (400, 0), "counted and not looked up");
        drop(index);
        let space = reopen(space);
        let index = Index::<TableLocks>::open(space.clone(), root, 0).expect("the index");
        let after = index.stats();
        assert_eq!((after.buckets, after.overflow), (before.buckets, before.overflow));
        assert_eq!(index.settings(), settings);
        assert_eq!(keyed::len(&index).expect("sound"), 400);
        assert!((0..400).all(|key| get(&index, &guard, key) == Some(reference(key, 1))));
        (400..700).for_each(|key| put(&index, &guard, key, 1));
        assert_eq!(keyed::len(&index).expect("sound"), 700);
        assert_eq!(index.zones(), space.committed_zones());
        assert_eq!(index.audit(|_| true).expect("sound").keys, 700);
    }
}

/// Zones that others have used, and left what they had in them.
#[test]
fn what_was_in_a_zone_is_not_in_the_table() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    for settings in [BucketSettings::tiny(), BucketSettings { buckets: 150, grow: false }] {
        let space = format(256 << 10, 1);
        for zone in 0..space.zone_count() {
            let start = space.zone_offset(ZoneId(zone));
            (start..start + space.zone_size()).step_by(8).for_each(|at| space.region().store(at, mix(at)));
        }
        let (index, _) = create::<TableLocks>(&space, settings);
        (0..700).for_each(|key| put(&index, &guard, key, 1));
        assert_eq!(
            walk(&index, &guard).expect("sound"),
            Vec::from_iter((0..700).map(|key| reference(key, 1)))
        );
        assert_eq!(index.audit(|_| true).expect("sound").keys, 700);
    }
}

/// Who walks beside splits sees each key that is there all the while, once.
#[test]
fn a_walk_beside_splits_sees_each_key_once() {
    let mut splits = 0;
    for seed in 0..300 {
        let collector = Collector::new();
        let space = format(256 << 10, seed);
        let (index, _) = create::<TableLocks>(&space, BucketSettings::tiny());
        let (adding, walking) = (collector.register(), collector.register());
        (0..20).for_each(|key| put(&index, &adding.pin(), key, 1));
        let before = index.stats().splits;
        let add = || (20..40).for_each(|key| put(&index, &adding.pin(), key, 1));
        let walk = || {
            for _ in 0..3 {
                let mut walked = walk(&index, &walking.pin()).expect("sound");
                walked.retain(|reference| key_of(*reference) < 20);
                assert_eq!(walked, Vec::from_iter((0..20).map(|key| reference(key, 1))), "seed {seed}");
            }
        };
        sched::run(seed, vec![Box::new(add), Box::new(walk)]).expect("the run ends");
        splits += index.stats().splits - before;
    }
    assert!(splits > 300, "{splits}");
}

/// Opening looks at zones and at the last split, not at the keys in the buckets.
#[test]
fn an_open_costs_the_same_whatever_the_number_of_keys() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let [few, many] = [450, 650].map(|keys| {
        let space = format(256 << 10, 1);
        let (index, root) = create::<TableLocks>(&space, BucketSettings { buckets: 63, grow: false });
        (0..keys).for_each(|key| put(&index, &guard, key, 1));
        let zones = index.zones().len();
        drop(index);
        let space = reopen(space);
        let (_, cost) =
            costs(&space, || drop(Index::<TableLocks>::open(space.clone(), root, 0).expect("it")));
        ((zones, cost.fences, cost.words_stored), cost.lines_read)
    });
    assert_eq!(few.0, many.0);
    // The chain that was the last to get longer is looked at, and may be longer by a bucket or two.
    assert!(few.1 < 12 && many.1 < 12, "{few:?} {many:?}");
}

#[test]
fn a_root_of_nothing_names_nothing() {
    let space = format(64 << 10, 1);
    let nothing = IndexRoot::new_zeroed();
    assert!(matches!(Index::<TableLocks>::open(space.clone(), nothing, 0), Err(IndexError::Absent)));
    let (index, root) = create::<TableLocks>(&space, BucketSettings::tiny());
    drop(index);
    let other = Index::<BucketLocks>::open(space.clone(), root, 0).err();
    let is_damage = |error| matches!(error, Some(IndexError::Space(SpaceError::Damaged { .. })));
    assert!(is_damage(other), "an index with other locks is another index");
    let mut other_root = root;
    *other_root.as_mut_bytes().last_mut().expect("bytes") ^= 1;
    assert!(is_damage(Index::<TableLocks>::open(space.clone(), other_root, 0).err()));
    let full = BucketIndex::<PmWords>::create(space.clone(), BucketSettings::paper(100_000), 0, |_| ());
    assert!(matches!(full, Err(IndexError::Full { .. })));
    assert_eq!(space.committed_zones().len(), 1, "nothing was changed");
}

const LINK: u64 = 4;

/// The word of a link, as it is laid out; without its mark.
fn link(zone: u64, line: u64) -> u64 {
    let number = zone << 24 | line;
    let check = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48 << 48;
    check | (!number & ((1 << 45) - 1)) << 3 | LINK
}

/// The slots of a pool's buckets in which links stand, with these.
fn links(space: &Space, index: &Index) -> Vec<(u64, u64)> {
    let starts = index.zones().into_iter().map(|zone| space.zone_offset(zone));
    let slots = starts.flat_map(|start| (start + 64..start + (4 << 10)).step_by(64).map(|line| line + 56));
    slots.map(|slot| (slot, space.region().load(slot))).filter(|(_, word)| word & 6 == LINK).collect()
}

/// The bucket that the table grows into next may have a damaged link, into another chain or to a bucket that
/// nobody has yet. What is there is another's, and not overwritten.
#[test]
fn a_damaged_link_of_a_bucket_to_come_costs_no_key() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let settings = BucketSettings { buckets: 8, grow: true };
    let filled = || {
        let space = format(256 << 10, 1);
        let (index, _) = create::<TableLocks>(&space, settings);
        (0..150).for_each(|key| put(&index, &guard, key, 1));
        (space, index)
    };
    let (space, index) = filled();
    let words: Vec<u64> = links(&space, &index).into_iter().map(|(_, word)| word).collect();
    let line = words.len() as u64;
    assert!(words.contains(&(link(0, line) | 1)), "the last bucket that was handed out");
    for damaged in words.into_iter().chain([link(0, line + 1), link(1, line + 1)]) {
        let (space, index) = filled();
        let before = index.stats();
        let to_come = space.zone_offset(index.zones()[0]) + (before.buckets + 1) * 64;
        space.region().store(to_come + 56, damaged);
        (150..600).for_each(|key| put(&index, &guard, key, 1));
        let lost = (0..600).filter(|key| get(&index, &guard, *key) != Some(reference(*key, 1))).count();
        assert_eq!((lost, index.stats().splits), (0, before.splits), "{damaged:#x}");
    }
}

/// Looks at all that there is; what is damaged may say so, and does no harm.
fn look_around(index: &Index, guard: &Guard<'_>, keys: u64) -> u64 {
    let (mut cursor, mut walked, mut refused) = (BucketCursor::default(), Vec::new(), 0);
    while match index.next_batch(guard, &mut cursor, &mut walked) {
        Ok(more) => more,
        Err(IndexError::Space(SpaceError::Damaged { .. })) => false,
        Err(error) => panic!("{error}"),
    } {}
    for key in 0..keys {
        let found = index.get(guard, by_hash(mix(key)), |reference| reference == support::reference(key, 1));
        refused += u64::from(found.is_err());
        refused +=
            u64::from(index.replace(guard, by_hash(mix(key)), reference(key, 1), reference(key, 1)).is_err());
    }
    let _ = (index.audit(|_| true), keyed::len(index));
    refused
}

/// With any word of a zone's head changed, the index is refused, or it is walked and searched without harm.
#[test]
fn a_damaged_head_is_refused_or_harmless() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(128 << 10, 1);
    let (index, root) = create::<TableLocks>(&space, BucketSettings::tiny());
    (0..500).for_each(|key| put(&index, &guard, key, 1));
    let zones = index.zones();
    assert!(zones.len() > 2);
    drop(index);
    let region = space.region();
    let mut refused = 0;
    for zone in &zones {
        for word in 0..8 {
            let place = space.zone_offset(*zone) + word * 8;
            let sound = region.load(place);
            for damaged in
                [0, 1, u64::MAX, sound ^ 1, sound ^ 1 << 31, sound ^ 1 << 63, sound.wrapping_add(1)]
            {
                region.store(place, damaged);
                match Index::<TableLocks>::examine(space.clone(), root, 0) {
                    Err(IndexError::Space(SpaceError::Damaged { .. })) => refused += 1,
                    Err(error) => panic!("{error}"),
                    Ok(index) => _ = look_around(&index, &guard, 500),
                }
                region.store(place, sound);
            }
        }
    }
    assert!(refused > 100, "{refused} damaged heads refused");
    let index = Index::<TableLocks>::open(space.clone(), root, 0).expect("nothing was changed");
    assert_eq!(keyed::len(&index).expect("sound"), 500);
}

/// A link that leads in a circle, nowhere, or into another chain is told, and nobody hangs.
#[test]
fn a_damaged_link_is_told() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let (index, _) = create::<TableLocks>(&space, BucketSettings { buckets: 20, grow: false });
    (0..400).for_each(|key| put(&index, &guard, key, 1));
    let region = space.region();
    let links = links(&space, &index);
    assert!(links.len() > 20, "{} links", links.len());
    let mut told = 0;
    for (slot, sound) in &links {
        let others = links.iter().map(|(_, other)| *other).filter(|other| other != sound);
        for damaged in
            others.take(3).chain([LINK, u64::MAX, sound ^ 1 << 3, sound ^ 1 << 27, sound ^ 1 << 20])
        {
            region.store(*slot, damaged);
            told += look_around(&index, &guard, 400);
            assert!(index.audit(|_| true).is_err(), "{damaged:#x} in place of {sound:#x}");
            region.store(*slot, *sound);
        }
    }
    assert!(told > 100, "{told}");
    assert_eq!(index.audit(|_| true).expect("sound").keys, 400);
}
