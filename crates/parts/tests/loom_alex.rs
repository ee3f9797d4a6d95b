//! c-ALEX under a model of memory: threads without locks beside one that moves words see each other's stores
//! in every order that the language allows. If a fence of the versions is left out, or a rule of words is
//! broken, the model finds it.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_alex --release
//! ```

#![cfg(loom)]

use Act::{First, Get, Put, Replace, Take, Walk};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::{BothWays, Index, Key, Records};
use quipu_parts::sync::atomic::checked::LEFT_OUT;
use quipu_parts::twin::{Twin, leave_out};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// A key: the numbers that are its first and its second slice; without a second one if that is 0.
type Id = (u64, u64);

/// Stands for the highest slice of all.
const LAST: u64 = 999;

/// One step of a thread. Versions tell the words of a key apart, and 0 is none.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Finds one of these versions.
    Get(Id, &'static [u64]),
    Put(Id, u64),
    /// Lets a key have the second version in place of the first, which it has.
    Replace(Id, u64, u64),
    /// Removes a key that is there.
    Take(Id),
    /// Tells all keys in order, so many at a time, and these among them.
    Walk(usize, &'static [Id]),
    /// Tells so many of the first keys in order, at once.
    First(usize),
}

/// The keys of an index, in the order in which they were put, and what threads do with it beside each other.
struct Case {
    name: &'static str,
    /// Switches from threads that could go on.
    preemptions: usize,
    before: &'static [Id],
    /// Those of them that are removed again before the threads begin.
    gone: &'static [Id],
    threads: &'static [&'static [Act]],
    /// The versions that are left of some keys.
    after: &'static [(Id, u64)],
}

fn bytes((first, second): Id) -> Vec<u8> {
    let slices = [if first == LAST { u64::MAX } else { first }, second];
    slices[..1 + usize::from(second != 0)].iter().flat_map(|slice| slice.to_be_bytes()).collect()
}

fn word((first, second): Id, version: u64) -> u64 {
    first * 10_000 + second * 10 + version
}

fn id_of(word: u64) -> Id {
    (word / 10_000, word / 10 % 1_000)
}

struct Named;

impl Records for Named {
    fn hash_of(&self, _word: u64) -> u64 {
        unreachable!("it asks for keys")
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend(bytes(id_of(word)));
    }
}

fn get(index: &Alex, guard: &Guard<'_>, id: Id) -> u64 {
    let bytes = bytes(id);
    let found = index.get(guard, Key { bytes: &bytes, hash: 0 }, |word| id_of(word) == id).expect("sound");
    assert!(found.is_none_or(|word| id_of(word) == id), "{id:?} has the word of {found:?}");
    found.map_or(0, |word| word % 10)
}

/// Words that keys had, as those were told who gave them others or none.
type Gone = Mutex<Vec<u64>>;

impl Act {
    /// The word that it gives to a key.
    fn given(self) -> Option<(Id, u64)> {
        match self {
            Put(id, version) | Replace(id, _, version) => Some((id, version)),
            Get(..) | Take(..) | Walk(..) | First(..) => None,
        }
    }

    fn run(self, index: &Alex, guard: &Guard<'_>, gone: &Gone) {
        let leaves = |word: u64| gone.lock().expect("no panic").push(word);
        match self {
            Get(id, versions) => {
                let found = get(index, guard, id);
                assert!(versions.contains(&found), "{self:?} finds {found}");
            }
            Put(id, version) => {
                let (bytes, matches) = (bytes(id), |found| id_of(found) == id);
                let key = Key { bytes: &bytes, hash: 0 };
                let had = index.upsert(guard, key, word(id, version), None, matches, &Named).expect("room");
                had.into_iter().for_each(leaves);
            }
            Replace(id, old, new) => {
                let bytes = bytes(id);
                let key = Key { bytes: &bytes, hash: 0 };
                let done = index.replace(guard, key, word(id, old), word(id, new)).expect("sound");
                assert!(done, "{self:?} is refused");
                leaves(word(id, old));
            }
            Take(id) => {
                let bytes = bytes(id);
                let key = Key { bytes: &bytes, hash: 0 };
                let had = index.take(guard, key, None, |found| id_of(found) == id).expect("sound");
                leaves(had.unwrap_or_else(|| panic!("{self:?} finds nothing")));
            }
            First(most) => {
                let (mut walk, mut told) = (index.scan_from(&[]), Vec::new());
                index.next_words(guard, &mut walk, most, |word| told.push(id_of(word))).expect("sound");
                assert!(told.is_sorted_by(|one, next| one < next), "{self:?} tells {told:?}");
            }
            Walk(at_once, present) => {
                let (mut walk, mut told) = (index.scan_from(&[]), Vec::new());
                while index
                    .next_words(guard, &mut walk, at_once, |word| told.push(id_of(word)))
                    .expect("sound")
                {}
                let is_whole = told.is_sorted_by(|one, next| one < next);
                assert!(is_whole && present.iter().all(|id| told.contains(id)), "{self:?} tells {told:?}");
            }
        }
    }
}

impl Case {
    /// The words that keys were given.
    fn given(&self) -> impl Iterator<Item = (Id, u64)> {
        let acts = self.threads.iter().copied().flatten();
        self.before.iter().map(|id| (*id, 1)).chain(acts.filter_map(|act| act.given()))
    }
}

/// Whether any order of the threads goes wrong. Each word that a key was given is there in the end, or was
/// told once to who took it away.
fn fails(case: &'static Case) -> bool {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(case.preemptions);
    model.max_branches = 20_000;
    let run = move || {
        let (index, collector) = (Arc::new(Alex::tiny()), Collector::new());
        let (main, gone) = (collector.register(), Arc::new(Gone::default()));
        case.before.iter().for_each(|id| Put(*id, 1).run(&index, &main.pin(), &gone));
        // Four keys fill the first leaf, and seven the next: so eight are in several.
        assert!(case.before.len() < SEVERAL.len() || index.stats().splits > 1, "{}", case.name);
        case.gone.iter().for_each(|id| Take(*id).run(&index, &main.pin(), &gone));
        let (own, others) = case.threads.split_last().expect("a thread");
        let spawned: Vec<_> = (others.iter())
            .map(|acts| {
                let (index, participant) = (Arc::clone(&index), collector.register());
                let gone = Arc::clone(&gone);
                loom::thread::spawn(move || {
                    acts.iter().for_each(|act| act.run(&index, &participant.pin(), &gone));
                    drop(participant);
                })
            })
            .collect();
        own.iter().for_each(|act| act.run(&index, &main.pin(), &gone));
        spawned.into_iter().for_each(|thread| thread.join().unwrap());
        let guard = main.pin();
        case.after.iter().for_each(|(id, version)| assert_eq!(get(&index, &guard, *id), *version, "{id:?}"));
        let gone = gone.lock().expect("no panic");
        for (id, version) in case.given() {
            let left = gone.iter().filter(|gone| **gone == word(id, version)).count();
            let is_there = get(&index, &guard, id) == version;
            assert_eq!(left + usize::from(is_there), 1, "version {version} of {id:?}");
        }
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| model.check(run)));
    outcome.inspect_err(|_| println!("{} goes wrong", case.name)).is_err()
}

const fn key(first: u64) -> Id {
    (first, 0)
}

/// Their leaf has been cut, and two of the new ones are full. The first one is as large as leaves become,
/// and where it is cut the parent has no other child yet.
const CUT: &[Id] = &[
    key(200),
    key(190),
    key(350),
    key(210),
    key(370),
    key(20),
    key(230),
    key(40),
    key(110),
    key(10),
    key(80),
    key(160),
    key(270),
    key(240),
];

/// Their leaf has become several, of which one is left for each of two keys.
const SEVERAL: &[Id] = &[key(100), key(200), key(300), key(400), key(500), key(600), key(350), key(250)];
const ALL_BUT_TWO: &[Id] = &[key(200), key(250), key(300), key(350), key(400), key(500)];

/// A leaf of a tiny index has four slots here at first, and eight at most; an array of a layer has three
/// keys.
static CASES: [Case; 29] = [
    Case {
        name: "a get beside a slot that another key takes, and that its own key has again",
        preemptions: 2,
        before: &[key(200), key(300)],
        gone: &[],
        threads: &[
            &[Get(key(200), &[0, 1, 2])],
            &[Take(key(200)), Put(key(150), 1), Take(key(150)), Put(key(200), 2)],
        ],
        after: &[],
    },
    Case {
        name: "a get of an absent lowest slice beside a gap at the left that is filled",
        preemptions: 2,
        before: &[key(100), key(200), key(300), key(50), key(40)],
        gone: &[],
        threads: &[&[Get(key(0), &[0])], &[Put(key(30), 1)]],
        after: &[],
    },
    Case {
        name: "a get of an absent highest slice beside a gap at the right that is filled",
        preemptions: 2,
        before: &[key(100)],
        gone: &[],
        threads: &[&[Get(key(LAST), &[0])], &[Put(key(200), 1)]],
        after: &[],
    },
    Case {
        name: "a slot that is emptied and used again",
        preemptions: 2,
        before: &[key(100), key(200)],
        gone: &[],
        threads: &[&[Put(key(250), 1)], &[Get(key(250), &[0, 1])], &[Take(key(200))]],
        after: &[(key(250), 1), (key(200), 0)],
    },
    Case {
        name: "a get beside a shift",
        preemptions: 2,
        before: &[key(100), key(200)],
        gone: &[],
        threads: &[&[Get(key(200), &[1])], &[Put(key(50), 1)]],
        after: &[(key(50), 1)],
    },
    Case {
        name: "a new word beside a shift",
        preemptions: 2,
        before: &[key(100), key(200)],
        gone: &[],
        threads: &[&[Replace(key(200), 1, 2)], &[Put(key(50), 1)]],
        after: &[(key(200), 2), (key(50), 1)],
    },
    Case {
        name: "a removal beside a shift",
        preemptions: 2,
        before: &[key(100), key(200)],
        gone: &[],
        threads: &[&[Take(key(200))], &[Put(key(50), 1)]],
        after: &[(key(200), 0), (key(50), 1)],
    },
    Case {
        name: "a get beside a leaf that is built anew",
        preemptions: 2,
        before: &[key(100), key(200), key(300)],
        gone: &[],
        threads: &[&[Get(key(200), &[1])], &[Put(key(50), 1)]],
        after: &[(key(50), 1)],
    },
    Case {
        name: "a removal beside a leaf that is built anew",
        preemptions: 2,
        before: &[key(100), key(200), key(300)],
        gone: &[],
        threads: &[&[Take(key(200))], &[Put(key(50), 1)]],
        after: &[(key(200), 0), (key(300), 1), (key(50), 1)],
    },
    Case {
        name: "two that find a leaf full",
        preemptions: 2,
        before: &[key(100), key(200), key(300)],
        gone: &[],
        threads: &[&[Put(key(250), 1)], &[Put(key(50), 1)]],
        after: &[(key(250), 1), (key(50), 1)],
    },
    Case {
        name: "a new word beside a leaf that becomes several",
        preemptions: 2,
        before: &[key(100), key(200), key(300), key(400), key(500), key(600), key(350)],
        gone: &[],
        threads: &[&[Replace(key(600), 1, 2)], &[Put(key(250), 1)]],
        after: &[(key(600), 2), (key(250), 1)],
    },
    Case {
        name: "a get and a walk beside the removal of a neighbour",
        preemptions: 2,
        before: &[key(100), key(200), key(300)],
        gone: &[],
        threads: &[&[Get(key(300), &[1]), Walk(1, &[key(100), key(300)])], &[Take(key(200))]],
        after: &[(key(200), 0)],
    },
    Case {
        name: "a removal of a key that is given another word",
        preemptions: 2,
        before: &[key(100), key(200)],
        gone: &[],
        threads: &[&[Take(key(200))], &[Put(key(200), 2)]],
        after: &[(key(100), 1)],
    },
    Case {
        name: "a walk over several keys at once beside a shift",
        preemptions: 2,
        before: &[key(100), key(200)],
        gone: &[],
        threads: &[&[Walk(8, &[key(100), key(200)])], &[Put(key(50), 1)]],
        after: &[(key(50), 1)],
    },
    Case {
        name: "a leaf that grows beside one that is cut, whose parent gets more children",
        preemptions: 2,
        before: CUT,
        gone: &[],
        threads: &[&[Put(key(235), 1)], &[Put(key(5), 1)]],
        after: &[(key(235), 1), (key(5), 1)],
    },
    Case {
        name: "a new word beside a slot that becomes a layer",
        preemptions: 2,
        before: &[(1, 1)],
        gone: &[],
        threads: &[&[Replace((1, 1), 1, 2), Get((1, 1), &[2])], &[Put((1, 2), 1)]],
        after: &[((1, 1), 2), ((1, 2), 1)],
    },
    Case {
        name: "a get beside both",
        preemptions: 2,
        before: &[(1, 1)],
        gone: &[],
        threads: &[&[Replace((1, 1), 1, 2)], &[Get((1, 1), &[1, 2])], &[Put((1, 2), 1)]],
        after: &[((1, 1), 2), ((1, 2), 1)],
    },
    Case {
        name: "two keys that make a layer for a third",
        preemptions: 2,
        before: &[(1, 1)],
        gone: &[],
        threads: &[&[Put((1, 3), 1)], &[Put((1, 2), 1)]],
        after: &[((1, 1), 1), ((1, 2), 1), ((1, 3), 1)],
    },
    Case {
        name: "a new word beside an array that is copied",
        preemptions: 2,
        before: &[(1, 1), (1, 2)],
        gone: &[],
        threads: &[&[Replace((1, 1), 1, 2)], &[Get((1, 1), &[1, 2]), Get((1, 2), &[1])], &[Put((1, 3), 1)]],
        after: &[((1, 1), 2), ((1, 2), 1), ((1, 3), 1)],
    },
    Case {
        name: "a walk beside an array that becomes a tree",
        preemptions: 2,
        before: &[(1, 1), (1, 2), (1, 0)],
        gone: &[],
        threads: &[&[Walk(1, &[(1, 0), (1, 1), (1, 2)])], &[Put((1, 3), 1)]],
        after: &[((1, 3), 1)],
    },
    Case {
        name: "a new word beside an array that becomes a tree",
        preemptions: 2,
        before: &[(1, 1), (1, 2), (1, 0)],
        gone: &[],
        threads: &[&[Replace((1, 0), 1, 2), Get((1, 0), &[2])], &[Put((1, 3), 1)]],
        after: &[((1, 0), 2), ((1, 3), 1)],
    },
    Case {
        name: "a walk beside a slot that another key takes, and whose key comes back behind it",
        preemptions: 2,
        before: &[key(200)],
        gone: &[],
        threads: &[&[First(2)], &[Take(key(200)), Put(key(150), 1), Put(key(200), 2)]],
        after: &[],
    },
    Case {
        name: "a put into a leaf that becomes one with its empty neighbour",
        preemptions: 2,
        before: SEVERAL,
        gone: ALL_BUT_TWO,
        threads: &[&[Put(key(700), 1)], &[Take(key(100))]],
        after: &[(key(100), 0), (key(600), 1), (key(700), 1)],
    },
    Case {
        name: "a put into a leaf whose last key goes",
        preemptions: 2,
        before: SEVERAL,
        gone: ALL_BUT_TWO,
        threads: &[&[Put(key(150), 1)], &[Take(key(100))]],
        after: &[(key(100), 0), (key(600), 1), (key(150), 1)],
    },
    Case {
        name: "a get and a walk beside leaves that become one",
        preemptions: 1,
        before: SEVERAL,
        gone: ALL_BUT_TWO,
        threads: &[&[Get(key(600), &[1]), Walk(1, &[key(600)])], &[Take(key(100))]],
        after: &[(key(100), 0), (key(600), 1)],
    },
    Case {
        name: "two that empty neighbours",
        preemptions: 2,
        before: SEVERAL,
        gone: ALL_BUT_TWO,
        threads: &[&[Take(key(600)), Put(key(620), 1)], &[Take(key(100))]],
        after: &[(key(100), 0), (key(600), 0), (key(620), 1)],
    },
    Case {
        name: "a put into a layer whose last key goes",
        preemptions: 2,
        before: &[(1, 1), (1, 2)],
        gone: &[(1, 1)],
        threads: &[&[Put((1, 3), 1), Get((1, 3), &[1])], &[Take((1, 2))]],
        after: &[((1, 2), 0), ((1, 3), 1)],
    },
    Case {
        name: "a walk beside a layer that goes",
        preemptions: 2,
        before: &[(1, 1), (1, 2), (2, 0)],
        gone: &[(1, 1)],
        threads: &[&[Walk(1, &[(2, 0)])], &[Take((1, 2))]],
        after: &[((1, 2), 0), ((2, 0), 1)],
    },
    Case {
        name: "a new word and a walk beside a tree that becomes an array",
        preemptions: 2,
        before: &[(1, 1), (1, 2), (1, 0), (1, 3)],
        gone: &[(1, 0), (1, 1)],
        threads: &[&[Replace((1, 3), 1, 2), Walk(1, &[(1, 3)])], &[Take((1, 2))]],
        after: &[((1, 2), 0), ((1, 3), 2)],
    },
];

/// Rules of which some case convicts each.
const TWINS: &[Twin] = &[
    Twin::WordCopied,
    Twin::WordNotCompared,
    Twin::CopyNotProved,
    Twin::PairNotProved,
    Twin::ReplacedUntold,
    Twin::AnyWordRemoved,
    Twin::MergedUntold,
    Twin::NeighbourNotLocked,
    Twin::EmptiedLayerFilled,
];

#[test]
fn no_word_is_lost_and_every_fence_and_rule_counts() {
    assert!(!CASES.iter().any(fails));
    let version = include_str!("../src/index/alex/version.rs");
    let is_fence = |line: &str| line.trim_start().starts_with("fence(");
    let fences: Vec<u32> =
        version.lines().zip(1..).filter(|(line, _)| is_fence(line)).map(|(_, at)| at).collect();
    assert_eq!(fences.len(), 2);
    for line in fences {
        LEFT_OUT.store(line, std::sync::atomic::Ordering::Relaxed);
        assert!(CASES.iter().any(fails), "the fence at line {line} can be left out");
    }
    LEFT_OUT.store(0, std::sync::atomic::Ordering::Relaxed);
    for rule in TWINS {
        let _left_out = leave_out(Some(*rule));
        assert!(CASES.iter().any(fails), "{rule:?}: nobody noticed");
    }
}
