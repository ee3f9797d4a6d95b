//! Get, Commit, Check and Release on pools and zones, of both kinds of list, without crashes and with damaged
//! links.

use proptest::prelude::*;
use quipu_medium::sim::SimOptions;
use quipu_medium::{Node, Pages, Region};
use quipu_parts::space::{
    FormatOptions, FreeListKind, ObjectId, PoolSpec, SETTINGS_LEN, Space, SpaceError, ZoneId,
};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

const KINDS: [FreeListKind; 2] = [FreeListKind::Persistent, FreeListKind::Volatile];
const COMMITTED: u64 = 1 << 63;

fn options(free_list: FreeListKind, count: u64) -> FormatOptions {
    FormatOptions {
        zone_size: 4096,
        design: 0,
        settings: [0; SETTINGS_LEN],
        pools: vec![PoolSpec { id: 1, object_size: 64, count }],
        free_list,
        secret: [1; 32],
        boot_id: [0; 16],
    }
}

fn space(free_list: FreeListKind, nodes: u16, count: u64) -> Space {
    let region = match nodes {
        1 => Region::dram(256 << 10, Pages::Ordinary).expect("memory"),
        _ => Region::sim(SimOptions { len: 256 << 10, nodes, ..SimOptions::default() }),
    };
    Space::format(region, &options(free_list, count)).expect("format")
}

fn get(space: &Space) -> Option<ObjectId> {
    space.pool(1).expect("the pool").get().expect("sound")
}

#[test]
fn each_object_is_handed_out_once() {
    for kind in KINDS {
        let space = space(kind, 1, 20);
        let pool = space.pool(1).expect("the pool");
        let mut offsets = BTreeSet::new();
        while let Some(object) = get(&space) {
            assert!(!pool.check(object));
            assert!(offsets.insert(pool.object_offset(object).expect("an object")));
        }
        assert_eq!((offsets.len(), pool.free()), (20, 0));
        assert!(offsets.iter().zip(offsets.iter().skip(1)).all(|(one, next)| next - one == 64));
        for number in 0..20 {
            pool.release(ObjectId(number));
        }
        assert_eq!(pool.free(), 20);
        assert_eq!(space.audit().expect("sound").pools[0].1.free, 20);
        assert!(space.pool(2).is_none());
        assert!(pool.object_offset(ObjectId(20)).is_none());
        assert!(!pool.check(ObjectId(20)));
    }
}

#[test]
fn misuse_panics_before_two_owners_meet() {
    for kind in KINDS {
        let space = space(kind, 1, 4);
        let pool = space.pool(1).expect("the pool");
        let object = get(&space).expect("an object");
        pool.commit(object);
        let fails = |act: &dyn Fn()| catch_unwind(AssertUnwindSafe(act)).is_err();
        assert!(fails(&|| pool.commit(object)), "committed twice");
        pool.release(object);
        assert!(fails(&|| pool.release(object)), "released twice");
        assert!(fails(&|| pool.commit(object)), "committed without Get");
        assert!(fails(&|| pool.release(ObjectId(4))), "no such object");
        assert!(fails(&|| space.release_zone(ZoneId(u32::MAX))), "no such zone");
        assert_eq!(space.audit().expect("sound").pools[0].1.free, 4);
    }
}

#[test]
fn zones_come_from_the_node_that_asks_then_from_others() {
    for kind in KINDS {
        let space = space(kind, 3, 1);
        let per_node = (0..space.zone_count()).filter(|zone| space.zone_node(ZoneId(*zone)).0 == 1).count();
        assert!(per_node > 5);
        let mut seen = BTreeSet::new();
        for _ in 0..per_node {
            let zone = space.get_zone(Some(Node(1)), 0).expect("sound").expect("a zone");
            assert_eq!(space.zone_node(zone).0, 1);
            assert!(seen.insert(space.zone_offset(zone)));
        }
        let other = space.get_zone(Some(Node(1)), 0).expect("sound").expect("a zone of another node");
        assert_ne!(space.zone_node(other).0, 1);
        // A released zone goes back to its own node and is the next one taken there.
        let back =
            ZoneId((0..space.zone_count()).find(|zone| space.zone_node(ZoneId(*zone)).0 == 1).expect("one"));
        space.release_zone(back);
        assert_eq!(space.get_zone(Some(Node(1)), 0).expect("sound"), Some(back));
        assert!(space.get_zone(Some(Node(77)), 0).expect("sound").is_some(), "an unknown node gets any zone");
    }
}

#[test]
fn a_reserve_is_left() {
    let space = space(FreeListKind::Persistent, 2, 1);
    let count = space.zone_count();
    for _ in 0..count - 3 {
        let zone = space.get_zone(None, 3).expect("sound").expect("above the reserve");
        space.commit_zone(zone);
    }
    assert_eq!(space.free_zones(), 3);
    assert_eq!(space.get_zone(None, 3).expect("sound"), None);
    assert!(space.get_zone(None, 2).expect("sound").is_some());
    assert!(space.get_zone(None, 0).expect("sound").is_some());
    assert!(space.get_zone(None, 0).expect("sound").is_some());
    assert_eq!(space.get_zone(None, 0).expect("sound"), None);
    assert_eq!(space.committed_zones().len() as u32, count - 3);
}

#[test]
fn several_zones_come_together_or_not_at_all() {
    for kind in KINDS {
        let space = space(kind, 2, 1);
        let free = space.free_zones();
        assert_eq!(space.get_zones(None, 3, free - 2).expect("sound"), None);
        assert_eq!(space.free_zones(), free, "nothing was taken");
        let zones = space.get_zones(Some(Node(1)), 3, free - 3).expect("sound").expect("above the reserve");
        assert_eq!(zones.iter().collect::<BTreeSet<_>>().len() as u32, free - 3);
        assert_eq!(space.free_zones(), 3);
        zones.into_iter().for_each(|zone| space.release_zone(zone));
        assert_eq!(space.free_zones(), free);
        assert_eq!(space.audit().expect("sound").zones.gotten, 0);
    }
}

#[test]
fn zones_are_aligned_and_disjoint() {
    let space = space(FreeListKind::Volatile, 3, 7);
    let mut end = 0;
    for zone in 0..space.zone_count() {
        let offset = space.zone_offset(ZoneId(zone));
        assert!(offset.is_multiple_of(4096) && offset >= end);
        end = offset + space.zone_size();
    }
    assert!(end <= space.region().len());
    assert_eq!(space.checked_zone_offset(ZoneId(space.zone_count())), None);
}

#[test]
fn uncommitted_objects_are_free_after_the_next_open() {
    for kind in KINDS {
        let space = space(kind, 2, 8);
        let pool = space.pool(1).expect("the pool");
        let kept = get(&space).expect("an object");
        get(&space).expect("an object that leaks");
        pool.commit(kept);
        let zone = space.get_zone(None, 0).expect("sound").expect("a zone");
        space.get_zone(None, 0).expect("sound").expect("a zone that leaks");
        space.commit_zone(zone);
        let region = space.region().clone();
        drop(space);
        let (space, recovery) = Space::open(region).expect("open");
        let leaked = if kind == FreeListKind::Persistent { 2 } else { 0 };
        assert_eq!(recovery.leaked_reclaimed, leaked);
        assert_eq!((recovery.committed_zones, recovery.committed_objects), (1, 1));
        assert_eq!(space.committed_zones(), [zone]);
        assert_eq!(space.pool(1).expect("the pool").committed(), [kept]);
        assert_eq!(space.free_zones(), space.zone_count() - 1);
        assert_eq!(space.audit().expect("sound").pools[0].1.free, 7);
    }
}

#[test]
fn a_list_that_changes_under_us_is_damage_not_a_panic() {
    let space = space(FreeListKind::Persistent, 1, 4);
    let superblock = space.superblock();
    let head = superblock.pools()[0].metadata.get() + 64;
    for bad in [5, COMMITTED, u64::MAX] {
        space.region().store(head, bad);
        assert!(
            matches!(space.pool(1).expect("the pool").get(), Err(SpaceError::Damaged { .. })),
            "{bad:#x}"
        );
    }
    let extent = superblock.extents()[0].start.get() + 64;
    space.region().store(extent, u64::MAX);
    assert!(matches!(space.get_zone(None, 0), Err(SpaceError::Damaged { .. })));
    assert_eq!(space.free_zones(), space.zone_count());
    assert!(matches!(space.audit(), Err(SpaceError::Damaged { .. })));
}

#[test]
fn threads_share_lists_without_losing_objects() {
    for kind in KINDS {
        let space = space(kind, 2, 16);
        std::thread::scope(|scope| {
            for thread in 0..4_u16 {
                let space = &space;
                scope.spawn(move || {
                    for round in 0..2000 {
                        if let Some(zone) = space.get_zone(Some(Node(thread % 2)), 2).expect("sound") {
                            if round % 3 != 0 {
                                space.commit_zone(zone);
                                assert!(space.check_zone(zone));
                            }
                            space.release_zone(zone);
                        }
                        let pool = space.pool(1).expect("the pool");
                        if let Some(object) = pool.get().expect("sound") {
                            pool.commit(object);
                            pool.release(object);
                        }
                    }
                });
            }
        });
        let audit = space.audit().expect("sound");
        assert_eq!(audit.zones.free, u64::from(space.zone_count()));
        assert_eq!(audit.pools[0].1.free, 16);
    }
}

proptest! {
    /// With any links, circles and places outside included, recovery keeps every commit bit, loses no object,
    /// and a second open finds nothing left to do.
    #[test]
    fn any_links_recover(
        head in word(), words in prop::collection::vec(word(), 12), persistent in any::<bool>(), takes in 0..12,
    ) {
        let kind = if persistent { FreeListKind::Persistent } else { FreeListKind::Volatile };
        let space = space(kind, 1, 12);
        let metadata = space.superblock().pools()[0].metadata.get();
        let region = space.region().clone();
        drop(space);
        region.store(metadata + 64, head);
        for (number, word) in words.iter().enumerate() {
            region.store(metadata + 128 + 8 * number as u64, *word);
        }
        let (space, _) = Space::open(region.clone()).expect("open");
        let pool = space.pool(1).expect("the pool");
        let committed: Vec<_> =
            (0..12).filter(|index| words[*index as usize] & COMMITTED != 0).map(ObjectId).collect();
        prop_assert_eq!(&pool.committed(), &committed);
        let audit = space.audit().expect("sound").pools[0].1;
        prop_assert_eq!((audit.committed + audit.free, audit.gotten), (12, 0));

        drop(space);
        let (again, second) = Space::open(region.clone()).expect("open");
        prop_assert_eq!((second.leaked_reclaimed, second.links_repaired), (0, 0));
        let pool = again.pool(1).expect("the pool");
        let mut taken = BTreeSet::new();
        for _ in 0..takes {
            if let Some(object) = pool.get().expect("sound") {
                prop_assert!(taken.insert(object) && !committed.contains(&object));
                pool.commit(object);
            }
        }
        prop_assert_eq!(taken.len(), (takes as usize).min(12 - committed.len()));
        again.audit().expect("sound");
    }
}

/// An index word: mostly a link within the list, sometimes garbage, sometimes committed.
fn word() -> impl Strategy<Value = u64> {
    let link = prop_oneof![6 => 0..=12_u64, 1 => any::<u64>().prop_map(|any| any & !COMMITTED)];
    (link, prop::bool::weighted(0.4))
        .prop_map(|(link, committed)| if committed { link | COMMITTED } else { link })
}

#[test]
fn a_list_that_ends_too_early_is_damage_and_no_hang() {
    let space = space(FreeListKind::Persistent, 1, 12);
    let table = space.superblock().extents()[0].start.get();
    space.region().store(table + 64, 0);
    assert!(matches!(space.get_zone(None, 0), Err(SpaceError::Damaged { .. })));
    assert_eq!(space.free_zones(), space.zone_count(), "the zone that was not found stays counted as free");
}
