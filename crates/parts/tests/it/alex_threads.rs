//! c-ALEX under several threads, real ones and those of the simulator's scheduler, while leaves and layers
//! come and go. Lookups find the keys that are there and no others. A walk sees a key exactly once and in
//! order, and per key reads never go back. In the end nothing is left of leaves and layers.

use crate::shared::keys::Keys;
use crate::shared::world::{Plan, World};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::{Imaged, Index};

/// Nobody works on the index any more. Once all keys are removed it has given everything back.
fn check_and_clear(world: &World<Alex>, shape: Keys) {
    world.check_and_clear();
    let (participant, bytes) = (world.collector.register(), world.index.stats().bytes);
    assert!(bytes < Alex::tiny().stats().bytes + 4096, "{shape:?}: {bytes} bytes, no key");
    let guard = participant.pin();
    assert_eq!(world.index.image(&guard).expect("an image").len(), 32, "{shape:?}: no layers");
}

/// The share of removals swings, so that leaves and layers fill up and go.
fn real_threads(shape: Keys, keys: u64, rounds: u64) {
    let world = World::new(Alex::tiny(), shape, keys, 1);
    world.in_threads(rounds, [1, 9, 3, 10], |participant, random| {
        world.walk_words(participant, 1 + random.below(100) as usize, random.below(2) == 0);
    });
    check_and_clear(&world, shape);
}

#[test]
fn keys_of_all_shapes() {
    for shape in Keys::ALL {
        real_threads(shape, 2_000, 12);
        real_threads(shape, 60, 200);
    }
}

/// Removals soon empty leaves and layers, which then come again.
#[test]
fn schedules_in_which_leaves_and_layers_go() {
    for seed in 0..100 {
        for shape in Keys::ALL {
            let keys = [12, 40, 120][seed as usize % 3];
            let removals = [10, [2, 5, 10][seed as usize / 3 % 3]];
            let world = World::new(Alex::tiny(), shape, keys, seed);
            world.in_schedule(
                Plan { keys, present: keys, steps: 2 * keys, removals },
                seed,
                &[
                    &|participant, limit| world.walk_words(participant, limit, false),
                    &|participant, limit| world.walk_words(participant, limit, true),
                ],
            );
            check_and_clear(&world, shape);
        }
    }
}
