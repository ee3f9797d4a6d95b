//! What allocation costs on the medium, counted exactly (section 4.5 of the paper: one flush and one fence
//! for an object of any size), with creation counted apart.

use quipu_medium::Region;
use quipu_medium::sim::{Cost, SimArena, SimOptions};
use quipu_parts::space::{FormatOptions, FreeListKind, PoolSpec, SETTINGS_LEN, Space, SpaceError};

const KINDS: [FreeListKind; 2] = [FreeListKind::Persistent, FreeListKind::Volatile];

fn options(free_list: FreeListKind, object_size: u64) -> FormatOptions {
    FormatOptions {
        zone_size: 16 << 10,
        design: 0,
        settings: [0; SETTINGS_LEN],
        pools: vec![PoolSpec { id: 1, object_size, count: 20 }],
        free_list,
        secret: [1; 32],
        boot_id: [0; 16],
    }
}

fn region() -> Region {
    Region::sim(SimOptions { len: 1 << 20, nodes: 2, ..SimOptions::default() })
}

fn cost_of<T>(region: &Region, act: impl FnOnce() -> T) -> (T, Cost) {
    let sim = region.simulator().expect("simulated");
    let before = sim.cost();
    let result = act();
    (result, sim.cost() - before)
}

/// Flush instructions, lines that they made durable, fences, lines streamed, words stored.
fn counts(cost: &Cost) -> [u64; 5] {
    [cost.flushes, cost.lines_flushed, cost.fences, cost.lines_streamed, cost.words_stored]
}

#[test]
fn commit_costs_one_flush_and_one_fence_for_any_size() {
    for kind in KINDS {
        let get_stores = if kind == FreeListKind::Persistent { 1 } else { 0 };
        let release_stores = if kind == FreeListKind::Persistent { 3 } else { 1 };
        for object_size in [64, 128, 512, 1 << 10, 4 << 10, 16 << 10] {
            let region = region();
            let space = Space::format(region.clone(), &options(kind, object_size)).expect("format");
            let pool = space.pool(1).expect("the pool");
            for _ in 0..20 {
                let (object, get) = cost_of(&region, || pool.get().expect("sound").expect("an object"));
                assert_eq!(counts(&get), [0, 0, 0, 0, get_stores]);
                let (_, commit) = cost_of(&region, || pool.commit(object));
                assert_eq!(counts(&commit), [1, 1, 1, 0, 1], "{kind:?}, {object_size} bytes");
                let (_, check) = cost_of(&region, || assert!(pool.check(object)));
                assert_eq!(check, Cost::default());
            }
            for object in pool.committed() {
                let (_, release) = cost_of(&region, || pool.release(object));
                assert_eq!(counts(&release), [1, 1, 1, 0, release_stores]);
            }
            let (zone, get) = cost_of(&region, || space.get_zone(None, 0).expect("sound").expect("a zone"));
            assert_eq!(counts(&get), [0, 0, 0, 0, get_stores]);
            let (_, commit) = cost_of(&region, || space.commit_zone(zone));
            assert_eq!(counts(&commit), [1, 1, 1, 0, 1]);
            let (_, offset) = cost_of(&region, || space.zone_offset(zone));
            assert_eq!(offset, Cost::default(), "finding a zone reads no PM");
        }
    }
}

#[test]
fn the_fence_of_a_commit_covers_the_header() {
    let region = region();
    let space = Space::format(region.clone(), &options(FreeListKind::Persistent, 64)).expect("format");
    let zone = space.get_zone(None, 0).expect("sound").expect("a zone");
    let offset = space.zone_offset(zone);
    let (_, cost) = cost_of(&region, || {
        region.write(offset, &[7; 64]);
        region.flush(offset, 64);
        space.commit_zone(zone);
    });
    assert_eq!((cost.fences, cost.lines_flushed), (1, 2));
    let sim = region.simulator().expect("simulated");
    assert_eq!(sim.snapshot().durable_word(offset), u64::from_le_bytes([7; 8]));
}

#[test]
fn creation_is_counted_apart_and_an_update_fences_once() {
    for kind in KINDS {
        let region = region();
        let (space, format) =
            cost_of(&region, || Space::format(region.clone(), &options(kind, 64)).expect("format"));
        assert!(format.fences < 12 && format.lines_persisted() > 128);
        for run in [1, 2] {
            let (_, update) =
                cost_of(&region, || space.update_superblock(|superblock| superblock.run.set(run)));
            // The other part hears of a run before and after the superblock does.
            assert_eq!((update.fences, update.lines_persisted()), (3, 66));
        }
        let (_, update) =
            cost_of(&region, || space.update_superblock(|superblock| superblock.clock_ceiling.set(9)));
        assert_eq!((update.fences, update.lines_persisted()), (1, 64));
        let zone = space.get_zone(None, 0).expect("sound").expect("a zone");
        space.commit_zone(space.get_zone(None, 0).expect("sound").expect("a zone"));
        space.release_zone(zone);
        space.update_superblock(|superblock| superblock.set_clean(true));
        // Nor after a power failure: what the lists had left to the caches was made durable before.
        let snapshot = region.simulator().expect("simulated").snapshot();
        let region = SimArena::new().boot(&snapshot, &snapshot.nothing(), 0);
        let (_, open) = cost_of(&region, || Space::open(region.clone()).expect("open"));
        assert_eq!(
            (open.words_stored, open.lines_persisted()),
            (0, 0),
            "a clean pool is opened without a write"
        );
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_zone_stays_free() {
    for kind in KINDS {
        let region = region();
        let space = Space::format(region.clone(), &options(kind, 64)).expect("format");
        let sim = region.simulator().expect("simulated").clone();
        let zone = space.get_zone(None, 0).expect("room").expect("a zone");
        sim.fail_reserve_after(0);
        let before = space.free_zones();
        assert!(matches!(space.get_zone(None, 0), Err(SpaceError::Medium(_))));
        assert_eq!(space.free_zones(), before);
        let audit = space.audit().expect("sound");
        assert_eq!((audit.zones.gotten, audit.zones.free), (1, u64::from(before)));
        space.commit_zone(zone);
        sim.fail_reserve_after(u64::MAX);
        assert!(space.get_zone(None, 0).expect("room again").is_some());

        drop(space);
        sim.fail_reserve_after(0);
        let refused = Space::format(region.clone(), &options(kind, 64));
        assert!(matches!(refused.err(), Some(SpaceError::Medium(_))));
        Space::open(region).expect("a refused creation has not touched the pool that was there");
    }
}
