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

/// One schedule: two writers, a reader, a cleaner and a walk, over keys that share nodes and layers.
fn schedule(shape: Keys, keys: u64, seed: u64) {
    let world = World::new(shape, keys, seed);
    let world = &world;
    const STEPS: u64 = 50;
    let writer = |writer: u64| {
        let participant = world.collector.register();
        move || {
            let mut random = Random(seed << 32 | writer << 16);
            for step in 0..STEPS {
                let number = random.below(world.len() / 2) * 2 + writer;
                let removals = if step < STEPS / 2 { 2 } else { 8 };
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
    // Some keys are there from the start, or all, so that removals soon empty nodes.
    let setup = world.collector.register();
    let present = if seed.is_multiple_of(2) { world.len() } else { world.len() / 2 };
    (0..present).for_each(|number| world.write(&setup, number, false));
    drop(setup);
    let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
        Box::new(writer(0)),
        Box::new(writer(1)),
        Box::new(other(2, 2 * STEPS)),
        Box::new(other(3, STEPS)),
        Box::new(other(4, 4)),
    ];
    sched::run(seed, tasks).unwrap_or_else(|error| panic!("{shape:?} seed {seed}: {error}"));
    world.check_and_clear();
}

#[test]
fn schedules_over_few_keys() {
    for seed in 0..150 {
        for shape in Keys::ALL {
            schedule(shape, [24, 40, 90][seed as usize % 3], seed);
        }
    }
}
