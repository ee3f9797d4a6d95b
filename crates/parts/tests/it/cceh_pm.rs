//! A CCEH index in PM without crashes: its costs on the medium, that it is there again after an open, and
//! that damage in a pool is refused or harmless.

use crate::cceh::support;
use crate::shared::keyed;

use quipu_medium::sim::{Cost, SimArena};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, Cursor, NodeMemory, PmNodes};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::index::{Index as _, IndexError};
use quipu_parts::space::{Space, SpaceError};
use std::sync::Arc;
use support::{create, format, mix};
use zerocopy::{FromZeros, IntoBytes};

fn cost(space: &Space) -> Cost {
    space.region().simulator().expect("simulated").cost()
}

/// Fences and flushed lines of an operation.
fn costs<T>(space: &Space, act: impl FnOnce() -> T) -> (T, u64, u64) {
    let before = cost(space);
    let result = act();
    let after = cost(space);
    (result, after.fences - before.fences, after.lines_flushed - before.lines_flushed)
}

fn reopen(space: Arc<Space>) -> Arc<Space> {
    let region = space.region().clone();
    drop(Arc::into_inner(space).expect("nobody else has the pool"));
    Arc::new(Space::open(region).expect("the pool").0)
}

fn fill(index: &CcehIndex<PmNodes>, guard: &Guard<'_>, keys: std::ops::Range<u64>) {
    keys.for_each(|key| index.insert(guard, mix(key), key + 1).expect("room"));
}

#[test]
fn a_change_costs_one_fence_and_a_lookup_none() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let settings = CcehSettings { initial_depth: 0, bucket_bits: 4, probe: 4 };
    let (index, _) = create(&space, settings);
    let mut splits = 0;
    for key in 0..500 {
        let zones = index.memory().zones().len();
        let (_, fences, lines) = costs(&space, || index.insert(&guard, mix(key), key + 1).expect("room"));
        let split = index.stats().splits - splits;
        splits += split;
        // A zone: its head with the link to it, and the commit. A split: the sibling with its name, and the
        // narrowed name.
        let zones = (index.memory().zones().len() - zones) as u64;
        assert_eq!((fences, lines), (1 + 2 * split + 2 * zones, 1 + 2 * split + 2 * zones));
    }
    assert!(splits > 5);
    for key in 0..500 {
        let change = || assert!(index.replace(&guard, mix(key), key + 1, key + 1000));
        assert_eq!(costs(&space, change), ((), 1, 1));
        let matches = |reference| reference == key + 1000;
        assert_eq!(costs(&space, || index.get(&guard, mix(key), matches)), (Some(key + 1000), 0, 0));
        assert_eq!(costs(&space, || index.get(&guard, mix(key + 500), |_| true)), (None, 0, 0));
        let remove = || assert!(index.remove(&guard, mix(key), key + 1000));
        assert_eq!(costs(&space, remove), ((), 1, 1));
    }
    let read = cost(&space).lines_read;
    (0..500).for_each(|key| index.prefetch(mix(key)));
    assert_eq!(cost(&space).lines_read, read, "asking for lines reads none");
}

/// The work of a cleaner: one fence for all; readers that come before pay for the words that they read.
#[test]
fn many_changes_cost_one_fence() {
    const KEYS: u64 = 200;
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let (index, root) = create(&space, CcehSettings { initial_depth: 2, bucket_bits: 3, probe: 3 });
    fill(&index, &guard, 0..KEYS);
    let (segments, mut unflushed) = (index.stats().segments, Vec::new());
    let (_, fences, lines) = costs(&space, || {
        for key in 0..KEYS {
            unflushed.extend(keyed::repoint(&index, &guard, mix(key), key + 1, key + 1001));
            assert_eq!(keyed::repoint(&index, &guard, mix(key), key + 1, key + 2001), None);
        }
    });
    // The second attempt at each finds an entry that is not durable, and makes it so.
    assert_eq!((fences, lines, unflushed.len()), (KEYS, KEYS, KEYS as usize));
    for key in 0..KEYS {
        unflushed.extend(keyed::repoint(&index, &guard, mix(key), key + 1001, key + 2001));
    }
    let look = |key| costs(&space, || index.get(&guard, mix(key), |reference| reference == key + 2001));
    assert_eq!(look(0), (Some(2001), 1, 1), "a reader makes durable what it tells");
    assert_eq!(look(0), (Some(2001), 0, 0));
    assert_eq!(costs(&space, || index.names(mix(1), 2002)), (true, 0, 0));
    // Some move to other segments before they are durable.
    fill(&index, &guard, KEYS..KEYS + 100);
    assert!(index.stats().segments > segments + 5);
    let (_, fences, _) = costs(&space, || index.persist(&guard, &mut unflushed));
    assert_eq!((fences, unflushed.len()), (1, 0));
    let (_, fences, _) = costs(&space, || index.persist(&guard, &mut unflushed));
    assert_eq!(fences, 0, "there is nothing left to be made durable");
    drop(index);
    let snapshot = space.region().simulator().expect("simulated").snapshot();
    let (space, _) = Space::open(SimArena::new().boot(&snapshot, &snapshot.nothing(), 1)).expect("the pool");
    let index = CcehIndex::open(Arc::new(space), root, 0).expect("the index");
    assert!((0..KEYS).all(|key| index.names(mix(key), key + 2001)));
}

/// A reference that two cleaners have moved is durable as soon as the first of them says so.
#[test]
fn what_one_cleaner_persists_another_has_changed() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let (index, root) = create(&space, CcehSettings::tiny());
    fill(&index, &guard, 0..10);
    let mut first = Vec::new();
    first.extend(keyed::repoint(&index, &guard, mix(3), 4, 100));
    let second = keyed::repoint(&index, &guard, mix(3), 100, 200);
    index.persist(&guard, &mut first);
    assert!(second.is_some(), "and is not persisted");
    let snapshot = space.region().simulator().expect("simulated").snapshot();
    let (crashed, _) =
        Space::open(SimArena::new().boot(&snapshot, &snapshot.nothing(), 1)).expect("the pool");
    let opened = CcehIndex::open(Arc::new(crashed), root, 0).expect("the index");
    assert!(opened.names(mix(3), 200));
}

#[test]
fn an_index_is_there_again_after_an_open() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let settings = CcehSettings { initial_depth: 2, bucket_bits: 3, probe: 3 };
    let (index, root) = create(&space, settings);
    fill(&index, &guard, 0..400);
    let before = index.stats();
    drop(index);
    let space = reopen(space);
    let (opened, fences, _) = costs(&space, || CcehIndex::open(space.clone(), root, 0).expect("the index"));
    assert_eq!(fences, 1, "names made durable, and nothing to repair");
    let after = opened.stats();
    assert_eq!((after.segments, after.depth, after.slots), (before.segments, before.depth, before.slots));
    assert_eq!((opened.settings().bucket_bits, opened.settings().probe), (3, 3));
    assert_eq!(opened.len(), 400);
    for key in 0..400 {
        assert_eq!(opened.get(&guard, mix(key), |reference| reference == key + 1), Some(key + 1));
    }
    fill(&opened, &guard, 400..600);
    assert_eq!(opened.len(), 600);
    assert_eq!(opened.memory().zones(), space.committed_zones());
}

/// What a recovery does that compares the index with the records.
#[test]
fn entries_that_are_not_kept_are_durably_gone() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(256 << 10, 1);
    let (index, root) = create(&space, CcehSettings { initial_depth: 1, bucket_bits: 3, probe: 3 });
    fill(&index, &guard, 0..300);
    drop(index);
    let space = reopen(space);
    let index = CcehIndex::open(space.clone(), root, 0).expect("the index");
    let mut seen = Vec::new();
    let keep = |hash, reference: u64| {
        assert_eq!(hash, mix(reference - 1) & !1);
        seen.push(reference - 1);
        true
    };
    assert_eq!(index.retain(keep), 300);
    seen.sort_unstable();
    assert_eq!(seen, (0..300).collect::<Vec<_>>(), "every entry is asked for once");
    assert_eq!(index.retain(|_, reference| reference % 3 == 0), 100);
    fill(&index, &guard, 300..310);
    assert_eq!(index.len(), 110, "counted and not looked up");
    for key in 0..300 {
        assert_eq!(index.names(mix(key), key + 1), (key + 1) % 3 == 0);
    }
    drop(index);
    let snapshot = space.region().simulator().expect("simulated").snapshot();
    let (space, _) = Space::open(SimArena::new().boot(&snapshot, &snapshot.nothing(), 1)).expect("the pool");
    let index = CcehIndex::open(Arc::new(space), root, 0).expect("the index");
    assert_eq!(index.len(), 110);
}

#[test]
fn a_root_of_nothing_names_nothing() {
    let space = format(64 << 10, 1);
    let nothing = IndexRoot::new_zeroed();
    assert!(matches!(CcehIndex::open(space.clone(), nothing, 0), Err(IndexError::Absent)));
    let (index, root) = create(&space, CcehSettings::tiny());
    drop(index);
    let mut other_root = root;
    *other_root.as_mut_bytes().last_mut().expect("bytes") ^= 1;
    let other = CcehIndex::open(space.clone(), other_root, 0).err();
    assert!(matches!(other, Some(IndexError::Space(SpaceError::Damaged { .. }))), "{other:?}");
    other_root.as_mut_bytes()[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(CcehIndex::open(space.clone(), other_root, 0), Err(IndexError::Absent)));
}

/// With any word of a zone's head changed, the index is refused, or it is walked and searched without harm.
#[test]
fn a_damaged_head_is_refused_or_harmless() {
    let collector = Collector::new();
    let participant = collector.register();
    let guard = participant.pin();
    let space = format(128 << 10, 1);
    let (index, root) = create(&space, CcehSettings { initial_depth: 0, bucket_bits: 4, probe: 2 });
    fill(&index, &guard, 0..500);
    let zones = index.memory().zones();
    assert!(zones.len() > 2);
    drop(index);
    let region = space.region();
    let mut refused = 0;
    for zone in &zones {
        for word in 0..11 {
            let place = space.zone_offset(*zone) + word * 8;
            let sound = region.load(place);
            for damaged in [0, 1, u64::MAX, sound ^ 1, sound ^ 1 << 31, sound ^ 1 << 63, sound + 1] {
                region.store(place, damaged);
                match CcehIndex::open(space.clone(), root, 0) {
                    Err(IndexError::Space(SpaceError::Damaged { .. })) => refused += 1,
                    Err(error) => panic!("{error}"),
                    Ok(index) => {
                        let (mut cursor, mut walked) = (Cursor::default(), Vec::new());
                        while index.next_batch(&guard, &mut cursor, &mut walked) {}
                        (0..500).for_each(|key| {
                            index.get(&guard, mix(key), |reference| reference == key + 1);
                        });
                    }
                }
                region.store(place, sound);
            }
        }
    }
    assert!(refused > 100, "{refused} damaged heads refused");
    let index = CcehIndex::open(space.clone(), root, 0).expect("nothing was changed");
    assert_eq!(index.len(), 500);
}
