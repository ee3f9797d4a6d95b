//! The Masstree under several threads, real ones and those of the simulator's scheduler: what is there is found, what is not
//! is not, a walk sees it exactly once and in order, per key reads never go back, a cleaner's words arrive or are refused,
//! whatever nodes and layers come and go meanwhile; and in the end nothing is left of them.

#[path = "masstree/support.rs"]
mod support;
#[path = "masstree/world.rs"]
mod world;

use quipu_medium::sim::sched;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Keys, Random};
use world::World;

/// Two writers, each of its own half of the keys; two readers, a cleaner and a walk.
fn real_threads(shape: Keys, keys: u64, rounds: u64) {
    let world = World::new(shape, keys, 1);
    let finished = AtomicBool::new(false);
    let (world, finished) = (&world, &finished);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let participant = world.collector.register();
            scope.spawn(move || {
                let mut random = Random(reader << 32);
                while !finished.load(Ordering::Relaxed) {
                    world.read(&participant, random.below(world.len()));
                }
            });
        }
        let cleaner = world.collector.register();
        scope.spawn(move || {
            let mut random = Random(3 << 32);
            while !finished.load(Ordering::Relaxed) {
                world.move_word(&cleaner, random.below(world.len()));
            }
        });
        let walker = world.collector.register();
        scope.spawn(move || {
            let mut random = Random(4 << 32);
            while !finished.load(Ordering::Relaxed) {
                world.walk(&walker, 1 + random.below(100) as usize);
            }
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let participant = world.collector.register();
                scope.spawn(move || {
                    let mut random = Random(writer << 40);
                    // The share of removals swings, so that nodes and layers fill up and go.
                    for round in 0..rounds {
                        let removals = [1, 9, 3, 7][round as usize % 4];
                        for _ in 0..world.len() {
                            let number = random.below(world.len() / 2) * 2 + writer;
                            world.write(&participant, number, random.below(10) < removals);
                        }
                    }
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        finished.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a writer failed");
    });
    world.check_and_clear();
}

#[test]
fn keys_of_all_shapes() {
    for shape in Keys::ALL {
        real_threads(shape, 4_000, 12);
        real_threads(shape, 60, 400);
    }
}

/// How a schedule begins and what its writers do.
#[derive(Clone, Copy)]
struct Plan {
    keys: u64,
    /// Keys that are there from the start.
    present: u64,
    /// Operations of a writer.
    steps: u64,
    /// Removals among ten of these, in the first half and in the second.
    removals: [u64; 2],
}

/// One schedule: two writers, a reader, a cleaner and a walk, over keys that share nodes and layers.
fn schedule(shape: Keys, plan: Plan, seed: u64) {
    let world = World::new(shape, plan.keys, seed);
    let world = &world;
    let writer = |writer: u64| {
        let participant = world.collector.register();
        move || {
            let mut random = Random(seed << 32 | writer << 16);
            for step in 0..plan.steps {
                let number = random.below(world.len() / 2) * 2 + writer;
                let removals = plan.removals[usize::from(step >= plan.steps / 2)];
                world.write(&participant, number, random.below(10) < removals);
            }
        }
    };
    let other = |task: u64, steps: u64| {
        let participant = world.collector.register();
        move || {
            let mut random = Random(seed << 32 | task << 16);
            for _ in 0..steps {
                match task {
                    2 => world.read(&participant, random.below(world.len())),
                    3 => world.move_word(&participant, random.below(world.len())),
                    _ => world.walk(&participant, 1 + random.below(20) as usize),
                }
            }
        }
    };
    let setup = world.collector.register();
    (0..plan.present.min(world.len())).for_each(|number| world.write(&setup, number, false));
    drop(setup);
    let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
        Box::new(writer(0)),
        Box::new(writer(1)),
        Box::new(other(2, 2 * plan.steps)),
        Box::new(other(3, plan.steps)),
        Box::new(other(4, 4)),
    ];
    sched::run(seed, tasks).unwrap_or_else(|error| panic!("{shape:?} seed {seed}: {error}"));
    world.check_and_clear();
}

/// Removals soon empty nodes and layers, which then come again.
#[test]
fn schedules_over_few_keys() {
    for seed in 0..120 {
        for shape in Keys::ALL {
            let keys = [24, 40, 90][seed as usize % 3];
            let present = if seed % 2 == 0 { keys } else { keys / 2 };
            schedule(shape, Plan { keys, present, steps: 50, removals: [2, 8] }, seed);
        }
    }
}

/// Insertions soon split a full inner node.
#[test]
fn schedules_in_which_inner_nodes_split() {
    for seed in 0..150 {
        for (shape, present) in [(Keys::Random8, 155), (Keys::Ascending8, 150), (Keys::LongPrefix, 155)] {
            schedule(shape, Plan { keys: 400, present, steps: 60, removals: [0, 1] }, seed);
        }
    }
}

/// Removals soon leave inner nodes without children.
#[test]
fn schedules_in_which_inner_nodes_go() {
    for seed in 0..100 {
        for shape in [Keys::Random8, Keys::LongPrefix] {
            schedule(shape, Plan { keys: 190, present: 190, steps: 400, removals: [10, 9] }, seed);
        }
    }
}
