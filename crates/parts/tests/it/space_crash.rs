//! Crashes at every operation on the medium, in many of the states that each may leave: during allocation by
//! one and by two tasks, during recovery and creation. The power may fail after a crash of the process, too.
//!
//! The oracle: things acknowledged as committed are committed, those acknowledged as released are free, and
//! those in flight are either. Committed and free add up; the superblock is that of the last update or of the
//! one in flight; and the pool works on.

use crate::crashes::at_each_operation;
use crate::shared::random::Random;
use quipu_medium::sim::{SimArena, SimOptions, Snapshot, sched};
use quipu_medium::{Node, Region};
use quipu_parts::space::{
    FormatOptions, FreeListKind, ObjectId, PoolSpec, SETTINGS_LEN, Space, SpaceError, ZoneId,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const LEN: u64 = 96 << 10;
const OBJECTS: u64 = 6;
const KINDS: [FreeListKind; 2] = [FreeListKind::Persistent, FreeListKind::Volatile];

fn options(free_list: FreeListKind) -> FormatOptions {
    FormatOptions {
        zone_size: 8 << 10,
        design: 1,
        settings: [0; SETTINGS_LEN],
        pools: vec![PoolSpec { id: 1, object_size: 64, count: OBJECTS }],
        free_list,
        secret: [1; 32],
        boot_id: [0; 16],
    }
}

fn region(seed: u64) -> Region {
    Region::sim(SimOptions { len: LEN, seed, nodes: 2, ..SimOptions::default() })
}

/// A zone or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Zone(ZoneId),
    Object(ObjectId),
}

impl Thing {
    fn all(space: &Space) -> Vec<Thing> {
        let zones = (0..space.zone_count()).map(|zone| Thing::Zone(ZoneId(zone)));
        zones.chain((0..OBJECTS as u32).map(|object| Thing::Object(ObjectId(object)))).collect()
    }

    fn get(space: &Space, zone: bool, node: u16) -> Option<Thing> {
        if zone {
            space.get_zone(Some(Node(node)), 0).expect("sound").map(Thing::Zone)
        } else {
            space.pool(1).expect("the pool").get().expect("sound").map(Thing::Object)
        }
    }

    fn commit(self, space: &Space) {
        match self {
            Thing::Zone(zone) => space.commit_zone(zone),
            Thing::Object(object) => space.pool(1).expect("the pool").commit(object),
        }
    }

    fn release(self, space: &Space) {
        match self {
            Thing::Zone(zone) => space.release_zone(zone),
            Thing::Object(object) => space.pool(1).expect("the pool").release(object),
        }
    }

    fn check(self, space: &Space) -> bool {
        match self {
            Thing::Zone(zone) => space.check_zone(zone),
            Thing::Object(object) => space.pool(1).expect("the pool").check(object),
        }
    }
}

/// What a reader of acknowledgements knows.
#[derive(Clone, Default)]
struct Model {
    committed: BTreeSet<Thing>,
    in_flight: BTreeSet<Thing>,
    /// Run numbers that the superblock may have.
    runs: BTreeSet<u64>,
}

/// Opens a crash image and holds it against the model. Returns what is committed.
fn verify(region: &Region, model: &Model) -> BTreeMap<Thing, bool> {
    let (space, recovery) = Space::open(region.clone()).expect("the pool opens after any crash");
    let found: BTreeMap<_, _> =
        Thing::all(&space).into_iter().map(|thing| (thing, thing.check(&space))).collect();
    for (thing, committed) in &found {
        let right = model.in_flight.contains(thing) || *committed == model.committed.contains(thing);
        assert!(right, "{thing:?} is {} and should not be", if *committed { "committed" } else { "free" });
    }
    let run = space.superblock().run.get();
    assert!(model.runs.contains(&run), "run {run} is none of {:?}", model.runs);
    let audit = space.audit().expect("no word contradicts another");
    let pool = audit.pools[0].1;
    assert_eq!((audit.zones.gotten, pool.gotten), (0, 0), "leaked");
    assert_eq!(audit.zones.committed, u64::from(recovery.committed_zones));
    assert_eq!(pool.committed + pool.free, OBJECTS);
    found
}

/// The pool works on: everything free can be had, once, and given back.
fn work_on(region: &Region) {
    let (space, recovery) = Space::open(region.clone()).expect("open again");
    assert_eq!((recovery.leaked_reclaimed, recovery.links_repaired), (0, 0), "recovery left work behind");
    let free = Thing::all(&space).into_iter().filter(|thing| !thing.check(&space)).count();
    let mut taken = BTreeSet::new();
    for zone in [true, false] {
        while let Some(thing) = Thing::get(&space, zone, 0) {
            assert!(!thing.check(&space) && taken.insert(thing));
            thing.commit(&space);
        }
    }
    assert_eq!(taken.len(), free);
    for thing in taken {
        thing.release(&space);
    }
    space.audit().expect("sound");
}

/// Checks every image of a crash point, and of crashes while it is being recovered.
fn explore(arena: &RefCell<SimArena>, snapshot: &Snapshot, model: &Model, seed: u64, budget: usize) -> usize {
    let mut states = 0;
    for image in snapshot.images(seed, budget) {
        let region = arena.borrow_mut().boot(snapshot, &image, seed);
        let crashes = Rc::new(RefCell::new(Vec::new()));
        let noted = crashes.clone();
        at_each_operation(
            &region,
            move |during| noted.borrow_mut().push(during.clone()),
            || {
                verify(&region, model);
            },
        );
        work_on(&region);
        let crashes = crashes.take();
        states += 1;
        for during in crashes.iter().skip((seed % 3) as usize).step_by(3) {
            for image in during.images(seed, 3) {
                verify(&arena.borrow_mut().boot(during, &image, seed), model);
                states += 1;
            }
        }
    }
    states
}

/// After a crash of the process, the answers of the next open must survive a power failure.
fn explore_process_crash(arena: &RefCell<SimArena>, snapshot: &Snapshot, model: &Model, seed: u64) {
    let region = arena.borrow_mut().boot_process_crash(snapshot, seed);
    let answered = verify(&region, model);
    let (space, _) = Space::open(region.clone()).expect("open");
    let run = space.superblock().run.get();
    let answers = Model {
        committed: answered.iter().filter(|(_, committed)| **committed).map(|(thing, _)| *thing).collect(),
        in_flight: BTreeSet::new(),
        runs: BTreeSet::from([run, run + 1000]),
    };
    let crashes = Rc::new(RefCell::new(Vec::new()));
    let noted = crashes.clone();
    at_each_operation(
        &region,
        move |during| noted.borrow_mut().push(during.clone()),
        || space.update_superblock(|superblock| superblock.run.set(run + 1000)),
    );
    for during in crashes.take() {
        for image in during.images(seed, 6) {
            verify(&arena.borrow_mut().boot(&during, &image, seed), &answers);
        }
    }
}

/// One task's random work, with its acknowledgements told to the model.
fn work(space: &Space, model: &RefCell<Model>, seed: u64, task: u16, operations: usize) {
    let mut random = Random(seed ^ (u64::from(task) << 32));
    let (mut gotten, mut owned) = (Vec::new(), Vec::new());
    for _ in 0..operations {
        let acknowledged = |thing: Thing, act: &dyn Fn(Thing)| {
            model.borrow_mut().in_flight.insert(thing);
            act(thing);
            model.borrow_mut().in_flight.remove(&thing);
        };
        match random.below(12) {
            0..=4 => gotten.extend(Thing::get(space, random.below(2) == 0, task)),
            5..=7 => {
                if let Some(thing) = random.take(&mut gotten) {
                    acknowledged(thing, &|thing| {
                        thing.commit(space);
                        model.borrow_mut().committed.insert(thing);
                    });
                    owned.push(thing);
                }
            }
            8 => {
                if let Some(thing) = random.take(&mut gotten) {
                    thing.release(space);
                }
            }
            9 | 10 => {
                if let Some(thing) = random.take(&mut owned) {
                    acknowledged(thing, &|thing| {
                        // From its start until another commit the release may be seen; it is acknowledged at
                        // its end.
                        model.borrow_mut().committed.remove(&thing);
                        thing.release(space);
                    });
                }
            }
            _ if task == 0 => {
                let run = space.superblock().run.get() + 1;
                model.borrow_mut().runs.insert(run);
                space.update_superblock(|superblock| {
                    superblock.run.set(run);
                });
                model.borrow_mut().runs = BTreeSet::from([run]);
            }
            _ => {}
        }
    }
}

/// Runs tasks over one pool and explores the crashes at every operation. Returns the states opened.
fn run(kind: FreeListKind, seed: u64, tasks: u16, operations: usize, budget: usize) -> usize {
    let region = region(seed);
    let space = Rc::new(Space::format(region.clone(), &options(kind)).expect("format"));
    let model = Rc::new(RefCell::new(Model { runs: BTreeSet::from([0]), ..Model::default() }));
    let states = Rc::new(Cell::new(0));
    let arena = Rc::new(RefCell::new(SimArena::new()));
    let (seen, known, count) = (space.clone(), model.clone(), states.clone());
    let mut point = 0;
    at_each_operation(
        &region,
        move |snapshot| {
            let mut model = known.borrow().clone();
            // What Check answers now must be true in every image.
            for thing in Thing::all(&seen).into_iter().filter(|thing| thing.check(&seen)) {
                model.in_flight.remove(&thing);
                model.committed.insert(thing);
            }
            point += 1;
            count.set(count.get() + explore(&arena, snapshot, &model, seed + point, budget));
            if point % 4 == 0 {
                explore_process_crash(&arena, snapshot, &known.borrow(), seed + point);
            }
        },
        || {
            let boxed = (0..tasks).map(|task| {
                let (space, model) = (&*space, &*model);
                Box::new(move || work(space, model, seed, task, operations)) as Box<dyn FnOnce() + '_>
            });
            sched::run(seed, boxed.collect()).expect("the run ends");
        },
    );
    states.get()
}

#[test]
fn allocation_survives_a_crash_at_any_operation() {
    for kind in KINDS {
        let states: usize = (0..4).map(|seed| run(kind, seed * 7919, 1, 60, 10)).sum();
        assert!(states > 2000, "{states} states explore too little");
    }
}

#[test]
fn two_tasks_survive_a_crash_at_any_operation() {
    for kind in KINDS {
        for seed in 0..4 {
            run(kind, seed * 104_729, 2, 30, 10);
        }
    }
}

/// A process dies, and the next one opens what it finds: if that is a pool, a power failure does not take it
/// away again.
fn stays_if_it_opens(arena: &RefCell<SimArena>, snapshot: &Snapshot, seed: u64) {
    let region = arena.borrow_mut().boot_process_crash(snapshot, seed);
    let Ok((space, _)) = Space::open(region.clone()) else { return };
    let design = space.superblock().design.get();
    drop(space);
    let opened = region.simulator().expect("simulated").snapshot();
    for image in opened.images(seed, 12) {
        let (space, _) = Space::open(arena.borrow_mut().boot(&opened, &image, seed)).expect("the same pool");
        assert_eq!(space.superblock().design.get(), design);
    }
}

/// A crash during creation leaves no pool, or the old one as long as nothing has been changed, or a whole new
/// one.
#[test]
fn a_crash_during_creation_leaves_no_half_pool() {
    for kind in KINDS {
        for old in [false, true] {
            let region = region(1);
            if old {
                let space = Space::format(region.clone(), &FormatOptions { design: 9, ..options(kind) })
                    .expect("old");
                while let Some(thing) = Thing::get(&space, true, 0) {
                    thing.commit(&space);
                }
            }
            let arena = RefCell::new(SimArena::new());
            let seen = Rc::new(RefCell::new(BTreeSet::new()));
            let noted = seen.clone();
            let mut point = 0;
            at_each_operation(
                &region,
                move |snapshot| {
                    point += 1;
                    for image in snapshot.images(point, 12) {
                        let booted = arena.borrow_mut().boot(snapshot, &image, point);
                        let answer = match Space::open(booted) {
                            Ok((space, _)) => {
                                let audit = space.audit().expect("a pool that opens is whole");
                                let design = space.superblock().design.get();
                                let zones =
                                    if design == 1 { audit.zones.free } else { audit.zones.committed };
                                assert_eq!(zones, u64::from(space.zone_count()), "design {design}");
                                if design == 1 { "new" } else { "old" }
                            }
                            Err(SpaceError::NotAPool) => "none",
                            Err(SpaceError::Damaged { .. }) if old => "old, being erased",
                            Err(other) => panic!("{other}"),
                        };
                        noted.borrow_mut().insert(answer);
                    }
                    stays_if_it_opens(&arena, snapshot, point);
                },
                || drop(Space::format(region.clone(), &options(kind)).expect("format")),
            );
            let seen = seen.take();
            assert!(seen.contains("none") && seen.contains("new"), "{seen:?}");
            assert_eq!(seen.contains("old"), old);
        }
    }
}
