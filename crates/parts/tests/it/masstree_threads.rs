//! The Masstree under several threads, real ones and those of the simulator's scheduler, while nodes and
//! layers come and go. Lookups find the keys that are there and no others. A walk sees a key exactly once and
//! in order, and per key reads never go back. A cleaner's words arrive or are refused. In the end nothing is
//! left of nodes and layers.

use crate::shared::keyed::{ByKey, Walked};
use crate::shared::keys::Keys;
use crate::shared::world::{Plan, World};

use quipu_medium::sim::sched;
use quipu_parts::epoch::Collector;
use quipu_parts::index::masstree::{Cursor, Masstree};

/// Nobody works on the index any more. Once all keys are removed it has given everything back.
fn check_and_clear(world: &World<Masstree>, shape: Keys) {
    let participant = world.collector.register();
    world.walk(&participant, usize::MAX);
    world.walk_back(&participant, 3);
    world.check_and_clear();
    let stats = world.index.stats();
    let left = (world.index.keys(), stats.layers, stats.borders, stats.inners, stats.suffix_bytes);
    assert_eq!(left, (0, 0, 1, 0, 0), "{shape:?}");
}

/// The share of removals swings, so that nodes and layers fill up and go.
fn real_threads(shape: Keys, keys: u64, rounds: u64) {
    let world = World::new(Masstree::new(), shape, keys, 1);
    world.in_threads(rounds, [1, 9, 3, 7], |participant, random| {
        let mut limit = || 1 + random.below(100) as usize;
        world.walk(participant, limit());
        world.walk_back(participant, limit());
        let (limit, back) = (limit(), random.below(2) == 0);
        world.walk_words(participant, limit, back);
    });
    check_and_clear(&world, shape);
}

#[test]
fn keys_of_all_shapes() {
    for shape in Keys::ALL {
        real_threads(shape, 4_000, 12);
        real_threads(shape, 60, 400);
    }
}

/// One schedule over keys that share nodes and layers.
fn schedule(shape: Keys, plan: Plan, seed: u64) {
    let world = World::new(Masstree::new(), shape, plan.keys, seed);
    world.in_schedule(
        plan,
        seed,
        &[
            &|participant, limit| world.walk(participant, limit),
            &|participant, limit| world.walk_back(participant, limit),
            &|participant, limit| world.walk_words(participant, limit, false),
            &|participant, limit| world.walk_words(participant, limit, true),
        ],
    );
    check_and_clear(&world, shape);
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

/// Removals soon leave a layer without keys, of which two nodes were the last.
#[test]
fn schedules_in_which_layers_go() {
    for seed in 0..1500 {
        let keys = 16 + seed % 4;
        let plan = Plan { keys, present: keys, steps: 3 * keys, removals: [10, 10 - seed % 2 * 3] };
        schedule(Keys::OneLayer, plan, seed);
    }
}

/// Nodes that change at once: the last keys of some are removed while those beside them split. In the end
/// every key is where a walk passes, and where it is looked for; and a layer without keys has gone.
fn neighbours(front: &[u8], nodes: u64, emptied: &[u64], split: &[u64], seed: u64) {
    const FANOUT: u64 = 15;
    let (index, collector) = (Masstree::new(), Collector::new());
    let setup = collector.register();
    let key = |number: u64| [front, &number.to_be_bytes()].concat();
    // In ascending order they fill their nodes. Of those to be emptied the last key is left.
    let keys_of = |node: u64| (node * FANOUT + 1..=node * FANOUT + FANOUT).map(|number| number * 100);
    for number in (0..nodes).flat_map(keys_of) {
        index.upsert(&setup.pin(), &key(number), number).expect("room");
    }
    for number in emptied.iter().flat_map(|node| keys_of(*node).take(FANOUT as usize - 1)) {
        assert_eq!(index.take(&setup.pin(), &key(number)).expect("sound"), Some(number));
    }
    let new_keys_of = |node: u64| keys_of(node).skip(3).take(3).map(|number| number + 1);
    let change = |number: u64, is_new: bool| {
        let (participant, index) = (collector.register(), &index);
        move || {
            let guard = participant.pin();
            if is_new {
                index.upsert(&guard, &key(number), number).expect("room");
            } else {
                assert_eq!(index.take(&guard, &key(number)).expect("sound"), Some(number), "seed {seed}");
            }
            assert_eq!(index.get(&guard, &key(number)).expect("sound").is_some(), is_new, "seed {seed}");
        }
    };
    let mut tasks: Vec<Box<dyn FnOnce() + '_>> = Vec::new();
    for last in emptied.iter().filter_map(|node| keys_of(*node).next_back()) {
        tasks.push(Box::new(change(last, false)));
    }
    for node in split {
        let works: Vec<_> = new_keys_of(*node).map(|number| change(number, true)).collect();
        tasks.push(Box::new(|| works.into_iter().for_each(|work| work())));
    }
    sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let kept = (0..nodes).filter(|node| !emptied.contains(node)).flat_map(keys_of);
    let mut expected: Vec<u64> = kept.chain(split.iter().flat_map(|node| new_keys_of(*node))).collect();
    expected.sort_unstable();
    let mut seen = Vec::new();
    index.next_batch(&setup.pin(), &mut Cursor::default(), usize::MAX, |_, word| seen.push(word));
    assert_eq!(seen, expected, "seed {seed}");
    assert!(
        expected.iter().all(|number| index.get(&setup.pin(), &key(*number)).expect("sound") == Some(*number))
    );
    assert_eq!(index.stats().layers, u64::from(!front.is_empty() && !expected.is_empty()), "seed {seed}");
}

#[test]
fn schedules_of_neighbours() {
    for seed in 0..300 {
        for front in [&b""[..], b"in front"] {
            neighbours(front, 5, &[1, 3], &[0, 2], seed);
            neighbours(front, 5, &[1, 2], &[0, 3], seed);
            // The root of two nodes goes, or gets a third.
            neighbours(front, 2, &[1], &[0], seed);
            neighbours(front, 3, &[1, 2], &[0], seed);
            // Nothing is left.
            neighbours(front, 2, &[0, 1], &[], seed);
            neighbours(front, 3, &[0, 1, 2], &[], seed);
        }
    }
}

/// The last keys of a layer below another are removed while keys come in that layer, in the one above, and in
/// the first: the layers go if they are empty, and not else.
#[test]
fn schedules_of_layers_that_hang_on_each_other() {
    let name = |slices: &[&[u8]], rest: &str| [slices.concat(), rest.as_bytes().to_vec()].concat();
    let (outer, inner) = (&b"outer..."[..], &b"inner..."[..]);
    let doomed = [name(&[outer, inner], "one"), name(&[outer, inner], "two")];
    let added =
        [name(&[outer], "a"), name(&[outer, inner], "a"), name(&[outer], "later and longer"), name(&[], "a")];
    for seed in 0..6_000u64 {
        let (index, collector) = (Masstree::new(), Collector::new());
        let setup = collector.register();
        for (key, word) in doomed.iter().zip(1..) {
            index.upsert(&setup.pin(), key, word).expect("room");
        }
        assert_eq!(index.stats().layers, 2);
        let remover = || {
            let (participant, index, doomed) = (collector.register(), &index, &doomed);
            move || {
                doomed
                    .iter()
                    .for_each(|key| assert!(index.take(&participant.pin(), key).expect("sound").is_some()))
            }
        };
        let mut tasks: Vec<Box<dyn FnOnce() + '_>> = vec![Box::new(remover())];
        // Which of the others come depends on the seed.
        let comes = |number: &usize| ((seed / 8) >> number).is_multiple_of(2);
        for number in (0..added.len()).filter(comes) {
            let (participant, index, key) = (collector.register(), &index, &added[number]);
            tasks.push(Box::new(move || {
                let guard = participant.pin();
                index.upsert(&guard, key, 10 + number as u64).expect("room");
                assert_eq!(index.get(&guard, key).expect("sound"), Some(10 + number as u64), "seed {seed}");
            }));
        }
        sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let guard = setup.pin();
        for (number, key) in added.iter().enumerate() {
            let expected = comes(&number).then_some(10 + number as u64);
            assert_eq!(index.get(&guard, key).expect("sound"), expected, "seed {seed} {number}");
        }
        added.iter().for_each(|key| _ = index.take(&guard, key).expect("sound"));
        assert_eq!((index.keys(), index.stats().layers), (0, 0), "seed {seed}");
    }
}
