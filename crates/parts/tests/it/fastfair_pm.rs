//! A FAST&FAIR index without crashes: its cost on the medium, its words after an open, and hints that are
//! wrong in any way.

use crate::fastfair::support;

use crate::shared::keyed::{ByKey, by_bytes};
use quipu_medium::sim::Cost;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index;
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::{Hint, IndexError};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::space::{Space, SpaceError};
use std::sync::Arc;
use support::{Keys, create, fill, format, mix, participant, quick};
use zerocopy::{FromZeros, IntoBytes};

const ZONE: u64 = 4 << 10;
/// The second word of a link to no node.
const NO_LINK: u64 = 0x5A46_95C3_2DEB_806C;

fn cost(space: &Space) -> Cost {
    space.region().simulator().expect("simulated").cost()
}

/// Fences and lines made durable by an operation.
fn costs<T>(space: &Space, act: impl FnOnce() -> T) -> (T, u64, u64) {
    let before = cost(space);
    let result = act();
    let spent = cost(space) - before;
    (result, spent.fences, spent.lines_persisted())
}

fn reopen(space: Arc<Space>) -> Arc<Space> {
    let region = space.region().clone();
    drop(Arc::into_inner(space).expect("nobody else has the pool"));
    Arc::new(Space::open(region).expect("the pool").0)
}

fn get(index: &FastFairIndex, guard: &Guard<'_>, keys: Keys, number: u64) -> Option<u64> {
    index.get(guard, &keys.of(number)).expect("sound")
}

/// The lines that an insertion leaves, and its last one, are a flush and a fence each: 29 entries of 16 bytes
/// behind a header of 48.
#[test]
fn an_insertion_costs_a_fence_for_each_line_that_it_shifts() {
    let participant = participant();
    let guard = participant.pin();
    let space = format(256 << 10, ZONE, 1);
    let (index, _) = create(&space);
    let line = |slot: u64| (48 + 16 * slot) / 64;
    // Backwards: each key goes before all others, whose last line moves on.
    for present in 0..29u64 {
        let insert = || index.insert(&guard, &(1000 - present).to_be_bytes(), 7).expect("room");
        let (_, fences, lines) = costs(&space, insert);
        assert_eq!((fences, lines), (line(present) + 1, line(present) + 1), "{present} present");
    }
    assert_eq!(index.stats().splits, 0);
    // A split: the sibling, eight lines; the link; what goes, in its lines; the new root and its number; the
    // key itself.
    let (_, fences, _) = costs(&space, || index.insert(&guard, &2000u64.to_be_bytes(), 7).expect("room"));
    assert_eq!((index.stats().splits, fences), (1, 1 + 1 + 1 + 1 + 1 + 1));
}

#[test]
fn other_changes_cost_one_fence_and_lookups_none() {
    let participant = participant();
    let guard = participant.pin();
    let space = format(256 << 10, ZONE, 1);
    let (index, _) = create(&space);
    fill(&index, &guard, Keys::Words, 0..300);
    for number in 0..300 {
        let key = Keys::Words.of(number);
        let update = || index.upsert(&guard, &key, number + 1000).expect("room");
        assert_eq!(costs(&space, update), (Some(number + 1), 1, 1));
        let replace = || index.replace(&guard, &key, number + 1000, number + 2000).expect("sound");
        assert_eq!(costs(&space, replace), (true, 1, 1));
        let hint = index.locate(&guard, &key).expect("sound");
        let replace_at = || index.replace_at(&guard, hint, number + 2000, number + 3000);
        assert_eq!(costs(&space, replace_at), (true, 1, 1));
        assert_eq!(costs(&space, || get(&index, &guard, Keys::Words, number)), (Some(number + 3000), 0, 0));
        assert_eq!(costs(&space, || get(&index, &guard, Keys::Words, number + 300)), (None, 0, 0));
        let remove = || index.remove_if(&guard, &key, number + 3000).expect("sound");
        let (is_removed, fences, lines) = costs(&space, remove);
        // A leaf that becomes empty: its pointer, and the link of its sibling.
        assert!(is_removed && (fences, lines) <= (3, 3) && fences == lines, "{fences} {lines}");
        let again = || index.upsert(&guard, &key, number + 1).expect("room");
        assert_eq!(costs(&space, again), (None, 1, 1), "into the hole that it left");
    }
    let read = cost(&space).lines_read;
    index.prefetch_at(&guard, index.locate(&guard, &Keys::Words.of(1)).expect("sound"));
    index.prefetch_at(&guard, Hint::from_bits(u64::MAX));
    let located = cost(&space).lines_read;
    index.prefetch_at(&guard, Hint::from_bits(1 << 5));
    assert!(located > read && cost(&space).lines_read == located, "asking for lines reads none");
}

#[test]
fn a_batch_of_replaced_references_costs_one_fence() {
    let participant = participant();
    let guard = participant.pin();
    let space = format(512 << 10, ZONE, 1);
    let (index, _) = create(&space);
    fill(&index, &guard, Keys::Words, 0..3_000);
    let hints: Vec<Hint> =
        (0..3_000).map(|number| index.locate(&guard, &Keys::Words.of(number)).expect("sound")).collect();
    // The references of a segment, in no order of the keys.
    let batch: Vec<u64> = (0..32).map(|n| n * 90).collect();
    let before = cost(&space);
    let replaced: Vec<_> = batch
        .iter()
        .map(|number| {
            let hint = hints[*number as usize];
            index.replace_at_unflushed(&guard, hint, number + 1, number + 10_000).expect("valid")
        })
        .collect();
    let spent = cost(&space) - before;
    assert_eq!((spent.fences, spent.flushes), (0, 0));
    // A reader makes what it answers durable, and one of another leaf need not.
    let (found, fences, _) = costs(&space, || get(&index, &guard, Keys::Words, batch[0]));
    assert_eq!((found, fences), (Some(batch[0] + 10_000), 1));
    let ((), fences, lines) = costs(&space, || index.persist_all(replaced));
    assert_eq!(fences, 1);
    assert!((25..=32).contains(&lines), "{lines}");
    for number in batch {
        let lookup = || get(&index, &guard, Keys::Words, number);
        assert_eq!(costs(&space, lookup), (Some(number + 10_000), 0, 0));
    }
}

/// A guess is asked for while values wait to become durable, and must not wait for that.
#[test]
fn guesses_make_nothing_durable() {
    let participant = participant();
    let guard = participant.pin();
    let space = format(256 << 10, ZONE, 1);
    let (index, _) = create(&space);
    fill(&index, &guard, Keys::Mixed, 0..100);
    let bytes = Keys::Mixed.of(7);
    let key = by_bytes(&bytes);
    let replaced = index.replace_unflushed(&guard, &bytes, 8, 800).expect("sound");
    let ((), fences, _) = costs(&space, || {
        index::Index::prefetch(&index, &participant, key);
        assert!(index.names(&guard, &bytes, 800).expect("sound"));
        assert_eq!(index::Index::candidate(&index, &guard, key, None), Some(800));
        index.locate(&guard, &bytes).expect("sound");
    });
    assert_eq!(fences, 0);
    let (found, fences, _) = costs(&space, || index.get(&guard, &bytes).expect("sound"));
    assert_eq!((found, fences), (Some(800), 1), "a lookup does care");
    index.persist_all(replaced);
}

/// What compaction saves by hints: no inner node is read.
#[test]
fn a_valid_hint_reads_its_leaf_and_nothing_else() {
    let participant = participant();
    let guard = participant.pin();
    let space = format(512 << 10, ZONE, 1);
    let (index, _) = create(&space);
    fill(&index, &guard, Keys::Words, 0..3_000);
    for number in (0..3_000).step_by(97) {
        let hint = index.locate(&guard, &Keys::Words.of(number)).expect("sound");
        let before = cost(&space).lines_read;
        assert!(index.replace_at(&guard, hint, number + 1, number + 1));
        assert!(cost(&space).lines_read - before < 8, "level and entry");
    }
}

#[test]
fn hints_that_are_out_of_date_find_nothing_or_what_they_should() {
    let participant = participant();
    let space = quick(8 << 20, 16 << 10);
    let (index, _) = create(&space);
    let keys = Keys::Words;
    let mut hints = Vec::new();
    for number in 0..2_000 {
        hints.push(index.insert(&participant.pin(), &keys.of(number), number + 1).expect("room"));
    }
    let mut valid = 0;
    for number in 0..2_000 {
        valid += u64::from(index.replace_at(
            &participant.pin(),
            hints[number as usize],
            number + 1,
            number + 10_001,
        ));
    }
    assert!(valid > 400, "{valid} of 2000 hints outlive the shifts and splits");
    for number in 0..2_000 {
        let (guard, key) = (participant.pin(), keys.of(number));
        let was = index.get(&guard, &key).expect("sound").expect("present");
        assert!(was == number + 1 || was == number + 10_001);
        assert!(index.remove_if(&guard, &key, was).expect("sound"));
        participant.collect();
    }
    (0..8).for_each(|_| _ = participant.collect());
    // The nodes are used again, for other keys with other values.
    fill(&index, &participant.pin(), Keys::Rising, 5_000_000..5_002_000);
    for (number, hint) in (0..2_000).zip(&hints) {
        assert!(!index.replace_at(&participant.pin(), *hint, number + 1, 1));
    }
    for forged in (0..200_000).map(mix).chain(0..20_000).chain((0..64).map(|bit| 1 << bit)) {
        let hint = Hint::from_bits(forged);
        assert!(hint.bits() < 1 << 48);
        assert!(!index.replace_at(&participant.pin(), hint, 77, 1));
        assert_eq!(index.replace_at_unflushed(&participant.pin(), hint, 77, 1), None);
        index.prefetch_at(&participant.pin(), hint);
    }
    assert_eq!(index.audit(&participant.pin()).expect("sound").keys, 2_000);
}

/// A node that a crash left between being written and being linked holds values that are elsewhere in the
/// tree. No hint may lead to it: not before the sweep, and not after.
#[test]
fn hints_do_not_lead_to_what_is_not_in_the_tree() {
    let participant = participant();
    let space = format(256 << 10, ZONE, 1);
    let (index, root) = create(&space);
    let (region, zone) = (space.region().clone(), space.zone_offset(root.zone()));
    let first_root = region.load(zone + 40);
    fill(&index, &participant.pin(), Keys::Rising, 0..40);
    drop(index);
    // The second node of the first zone, unlinked by hand: what the link of the first one says goes.
    let first = zone + 512;
    assert_ne!(region.load(first + 24), 0, "it is linked");
    let space = reopen(space);
    region.store(first + 24, NO_LINK);
    region.store(zone + 40, first_root);
    let index = FastFairIndex::open(space, root, 0).expect("the index");
    for node in 0..8u64 {
        for slot in 0..29u64 {
            assert!(!index.replace_at(&participant.pin(), Hint::from_bits(node << 5 | slot), 35, 36));
        }
    }
    index.sweep(&participant.pin()).expect("sound");
    for number in 0..40 {
        let found = get(&index, &participant.pin(), Keys::Rising, number);
        let hit = (0..8u64).any(|node| {
            let hint = Hint::from_bits(node << 5);
            index.replace_at(&participant.pin(), hint, number + 1, number + 1)
        });
        assert_eq!(found.is_some(), hit, "key {number}");
    }
}

#[test]
fn an_index_is_there_again_after_an_open() {
    let participant = participant();
    let guard = participant.pin();
    for keys in [Keys::Words, Keys::Mixed] {
        let space = format(512 << 10, ZONE, 1);
        let (index, root) = create(&space);
        fill(&index, &guard, keys, 0..1_000);
        let hint = index.locate(&guard, &keys.of(5)).expect("sound");
        let before = (index.stats(), index.audit(&guard).expect("sound"));
        let read = cost(&space).lines_read;
        assert_eq!(index.len(&guard).expect("sound"), 1_000);
        assert_eq!(cost(&space).lines_read, read, "counted and not looked up");
        drop(index);
        let space = reopen(space);
        let read = cost(&space).lines_read;
        let (opened, fences, _) =
            costs(&space, || FastFairIndex::open(space.clone(), root, 0).expect("the index"));
        let zones = opened.zones().len() as u64;
        let read = cost(&space).lines_read - read;
        assert!(read <= 4 * zones + 8, "{read} lines read of {zones} zones");
        assert_eq!(fences, 1, "the number of the root made durable, and nothing to repair");
        let after = (opened.stats(), opened.audit(&guard).expect("sound"));
        assert_eq!(
            (after.0.pm_bytes, after.0.levels, after.1),
            (before.0.pm_bytes, before.0.levels, before.1)
        );
        assert_eq!(opened.len(&guard).expect("sound"), 1_000);
        for number in 0..1_000 {
            assert_eq!(get(&opened, &guard, keys, number), Some(number + 1));
        }
        assert!(opened.replace_at(&guard, hint, 6, 6), "hints outlive a restart");
        fill(&opened, &guard, keys, 1_000..1_300);
        assert_eq!(opened.len(&guard).expect("sound"), 1_300);
        assert_eq!(opened.zones(), space.committed_zones());
    }
}

/// After a restart nobody knows what is free; a pool without zones finds out, and refuses nothing for that.
#[test]
fn room_of_earlier_runs_is_found_again() {
    let participant = participant();
    for keys in [Keys::Words, Keys::Long] {
        let mut space = format(128 << 10, ZONE, 1);
        let (index, root) = create(&space);
        drop(index);
        let mut most = None;
        for _ in 0..6 {
            let index = FastFairIndex::open(space.clone(), root, 0).expect("the index");
            let mut count = 0;
            while index.insert(&participant.pin(), &keys.of(count), count + 1).is_ok() {
                count += 1;
            }
            assert_eq!(*most.get_or_insert(count), count, "{keys:?}: room was lost");
            for number in 0..count {
                assert_eq!(
                    index.take(&participant.pin(), &keys.of(number)).expect("sound"),
                    Some(number + 1)
                );
            }
            // What waits for readers is lost with the process.
            drop(index);
            (0..8).for_each(|_| _ = participant.collect());
            space = reopen(space);
        }
        assert!(most > Some(100), "{most:?}");
    }
}

/// A walk for free units under which keys move to nodes that it has passed: what they are kept in must not be
/// free.
#[test]
fn what_moves_during_a_sweep_is_not_free() {
    let key = |number: u64| format!("a key of more than eight bytes: {number:06}").into_bytes();
    for seed in 0..8 {
        let space = quick(4 << 20, ZONE);
        let (index, root) = create(&space);
        for number in 0..4_000 {
            index.insert(&participant().pin(), &key(number), number + 1).expect("room");
        }
        drop(index);
        let space = reopen(space);
        let index = FastFairIndex::open(space.clone(), root, 0).expect("the index");
        let collector = Collector::new();
        let participant = collector.register();
        {
            // Nothing comes back while this is pinned, so every key that is added moves the walk on.
            let _all = participant.pin();
            for block in 0..30u64 {
                let first = mix(seed << 8 | block) % 39 * 100;
                for number in first..first + 100 {
                    index.take(&participant.pin(), &key(number)).expect("sound");
                }
                index.insert(&participant.pin(), &key(100_000 + block), 7).expect("room");
            }
        }
        index.sweep(&participant.pin()).expect("sound");
        (0..8).for_each(|_| _ = participant.collect());
        let (audit, stats) = (index.audit(&participant.pin()).expect("sound"), index.stats());
        assert!(stats.removals > 10, "{stats:?}");
        assert_eq!(audit.nodes + stats.free_nodes, audit.nodes_all, "seed {seed}: {audit:?} {stats:?}");
        assert_eq!(audit.chunks + stats.free_chunks, audit.chunks_all, "seed {seed}: {audit:?} {stats:?}");
    }
}

#[test]
fn room_that_is_made_is_there() {
    let participant = participant();
    let guard = participant.pin();
    let space = format(128 << 10, ZONE, 1);
    let (index, _) = create(&space);
    index::Index::make_room(&index, &guard, 20, 8).expect("room");
    let free = index.stats().free_nodes;
    assert!(free >= 20);
    assert!(matches!(index::Index::make_room(&index, &guard, 10_000, 8), Err(IndexError::Full { .. })));
    assert!(matches!(index::Index::make_room(&index, &guard, 10_000, 100), Err(IndexError::Full { .. })));
    assert!(index.stats().free_nodes > free);
    index.insert(&guard, b"eight by", 1).expect("room");
}

#[test]
fn a_root_of_nothing_names_nothing() {
    let space = format(64 << 10, ZONE, 1);
    let nothing = IndexRoot::new_zeroed();
    assert!(matches!(FastFairIndex::open(space.clone(), nothing, 0), Err(IndexError::Absent)));
    let (index, root) = create(&space);
    drop(index);
    let mut other_root = root;
    *other_root.as_mut_bytes().last_mut().expect("bytes") ^= 1;
    let other = FastFairIndex::open(space.clone(), other_root, 0).err();
    assert!(matches!(other, Some(IndexError::Space(SpaceError::Damaged { .. }))), "{other:?}");
    other_root.as_mut_bytes()[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let absent = FastFairIndex::open(space.clone(), other_root, 0);
    assert!(matches!(absent, Err(IndexError::Absent)));
}
