//! The Masstree under a model of memory: a reader without a lock and a writer see each other's stores in
//! every order that the language allows. If a fence of the versions is left out, the model finds it.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_masstree --release
//! ```

#![cfg(loom)]

use Keys::{Plain, Short};
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{BothWays, InOrder, Index, Key};
use quipu_parts::sync::atomic::checked::LEFT_OUT;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How a number is a key. The keys are in the order of their numbers.
#[derive(Clone, Copy)]
enum Keys {
    /// Eight bytes.
    Plain,
    /// A slice that a hundred numbers share, and a short suffix of three bytes or eight.
    Short,
}

impl Keys {
    fn key(self, number: u64) -> Vec<u8> {
        match (self, number / 100, (number % 100) as u8) {
            (Plain, ..) => number.to_be_bytes().to_vec(),
            (Short, slice, 0) => [slice.to_be_bytes(), [0, 1, 2, 3, 4, 5, 6, 7]].concat(),
            (Short, slice, suffix) => [&slice.to_be_bytes()[..], &[suffix; 3]].concat(),
        }
    }
}

/// The work of the reader.
#[derive(Clone, Copy)]
enum Reads {
    /// Looks for a key, by the way from the root and by a hint.
    Get(u64),
    /// Tells so many words at a time, in order.
    Words(usize),
    /// Tells so many words at a time, against the order.
    WordsBack(usize),
    /// Tells so many keys at a time, in order.
    Keys(usize),
}

/// What happens to an index of the keys 100, 200, .. while it is read. The word of a key is its number.
struct Case {
    shape: Keys,
    keys: u64,
    /// Keys that are removed again before the reader comes.
    removed: std::ops::Range<u64>,
    takes: Option<u64>,
    puts: Option<u64>,
    reads: Reads,
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key { bytes, hash: 0 }
}

fn put(index: &Masstree, guard: &Guard<'_>, bytes: &[u8], word: u64, near: Option<u64>) {
    let never = |_| unreachable!("it has the keys");
    let rehash = |_| unreachable!("it has the keys");
    index.upsert(guard, key(bytes), word, near, never, &rehash).expect("room");
}

fn take(index: &Masstree, guard: &Guard<'_>, bytes: &[u8], near: Option<u64>) -> Option<u64> {
    index.take(guard, key(bytes), near, |_| unreachable!("it has the keys")).expect("sound")
}

impl Case {
    /// Whether any order goes wrong.
    fn fails(&'static self) -> bool {
        self.fails_by(false) || matches!(self.reads, Reads::Get(_)) && self.fails_by(true)
    }

    fn fails_by(&'static self, has_hint: bool) -> bool {
        let mut model = loom::model::Builder::new();
        // Walks and removals have so many more words to read that two switches would take hours.
        let is_small =
            matches!(self.reads, Reads::Get(_)) && (matches!(self.shape, Plain) || self.takes.is_none());
        model.preemption_bound = Some(if is_small { 2 } else { 1 });
        model.max_branches = 20_000;
        catch_unwind(AssertUnwindSafe(|| model.check(move || self.run(has_hint)))).is_err()
    }

    fn run(&'static self, has_hint: bool) {
        let (index, collector) = (Arc::new(Masstree::new()), Collector::new());
        let (reader, writer) = (collector.register(), collector.register());
        let bytes = |number| self.shape.key(number);
        {
            let guard = writer.pin();
            for number in (1..=self.keys).map(|number| number * 100) {
                put(&index, &guard, &bytes(number), number, None);
            }
            for number in self.removed.clone().map(|number| number * 100) {
                take(&index, &guard, &bytes(number), None);
            }
        }
        let hint = |number| has_hint.then(|| index.prefetch(&writer, key(&bytes(number)))).flatten();
        let (seen, near) =
            (Arc::clone(&index), if let Reads::Get(number) = self.reads { hint(number) } else { None });
        let thread = loom::thread::spawn(move || {
            self.read(&seen, &reader.pin(), near);
            drop(reader);
        });
        let guard = writer.pin();
        if let Some(number) = self.takes {
            assert_eq!(take(&index, &guard, &bytes(number), hint(number)), Some(number));
        }
        if let Some(number) = self.puts {
            put(&index, &guard, &bytes(number), number, hint(number));
        }
        drop(guard);
        thread.join().unwrap();
    }

    fn read(&self, index: &Masstree, guard: &Guard<'_>, near: Option<u64>) {
        let mut told = Vec::new();
        match self.reads {
            Reads::Get(number) => {
                let never = |_| unreachable!("it has the keys");
                let found = index.get_near(guard, key(&self.shape.key(number)), near, never).expect("sound");
                let may_be_absent = self.takes == Some(number) || self.puts == Some(number);
                assert!(found == Some(number) || found.is_none() && may_be_absent, "found {found:?}");
                return;
            }
            Reads::Words(at_once) => {
                let mut scan = index.scan_from(&[]);
                while index.next_words(guard, &mut scan, at_once, |word| told.push(word)).expect("sound") {}
            }
            Reads::WordsBack(at_once) => {
                let mut scan = index.scan_back_from(Bound::Unbounded);
                while index.prev_words(guard, &mut scan, at_once, |word| told.push(word)).expect("sound") {}
                told.reverse();
            }
            Reads::Keys(at_once) => {
                let mut scan = index.scan_from(&[]);
                let mut each = |key: &[u8], word| {
                    assert_eq!(key, self.shape.key(word));
                    told.push(word);
                };
                while index.next_in_order(guard, &mut scan, at_once, &mut each).expect("sound") {}
            }
        }
        assert!(told.is_sorted_by(|one, next| one < next), "{told:?}");
        let changes = |word: &u64| self.takes == Some(*word) || self.puts == Some(*word);
        told.retain(|word| !changes(word));
        let all = (1..=self.keys).filter(|number| !self.removed.contains(number)).map(|number| number * 100);
        assert_eq!(told, all.filter(|word| !changes(word)).collect::<Vec<_>>());
    }
}

const NONE: std::ops::Range<u64> = 0..0;

static CASES: [Case; 4] = [
    // A slot is used again for another key.
    Case { shape: Plain, keys: 15, removed: NONE, takes: Some(700), puts: Some(750), reads: Reads::Get(700) },
    // A border node splits.
    Case { shape: Plain, keys: 15, removed: NONE, takes: None, puts: Some(150), reads: Reads::Get(1500) },
    // Another border node splits, and children move in the node above.
    Case { shape: Plain, keys: 31, removed: NONE, takes: None, puts: Some(150), reads: Reads::Get(3100) },
    // A border node goes, and children move in the node above.
    Case { shape: Plain, keys: 31, removed: 2..16, takes: Some(100), puts: None, reads: Reads::Get(3100) },
];

/// With short suffixes, which are read where they may be overwritten.
static SHORT_CASES: [Case; 6] = [
    // A slot is used again for a key of the same slice. The reader looks for the new key, then for the old.
    Case { shape: Short, keys: 15, removed: NONE, takes: Some(700), puts: Some(750), reads: Reads::Get(750) },
    Case { shape: Short, keys: 15, removed: NONE, takes: Some(700), puts: Some(750), reads: Reads::Get(700) },
    // A slot that no key has had yet.
    Case { shape: Short, keys: 2, removed: NONE, takes: None, puts: Some(300), reads: Reads::Get(300) },
    // Two keys go on in a layer, and one of them was there before.
    Case { shape: Short, keys: 2, removed: NONE, takes: None, puts: Some(250), reads: Reads::Get(200) },
    // A border node splits, and short suffixes move.
    Case { shape: Short, keys: 15, removed: NONE, takes: None, puts: Some(150), reads: Reads::Get(1500) },
    // A border node goes.
    Case { shape: Short, keys: 31, removed: 2..16, takes: Some(100), puts: None, reads: Reads::Get(3100) },
];

static WALKS: [Case; 5] = [
    // A key goes on in a layer while a walk comes to its slot.
    Case { shape: Short, keys: 3, removed: NONE, takes: None, puts: Some(250), reads: Reads::Words(2) },
    Case { shape: Short, keys: 3, removed: NONE, takes: None, puts: Some(250), reads: Reads::WordsBack(2) },
    Case { shape: Short, keys: 3, removed: NONE, takes: None, puts: Some(250), reads: Reads::Keys(2) },
    // A border node splits.
    Case { shape: Short, keys: 15, removed: NONE, takes: None, puts: Some(150), reads: Reads::Words(20) },
    Case { shape: Short, keys: 15, removed: NONE, takes: None, puts: Some(150), reads: Reads::WordsBack(20) },
];

#[test]
fn readers_see_what_is_there_and_every_fence_counts() {
    assert!(!CASES.iter().any(Case::fails));
    let version = include_str!("../src/index/masstree/version.rs");
    let is_fence = |line: &str| line.trim_start().starts_with("fence(");
    let fences: Vec<u32> =
        version.lines().zip(1..).filter(|(line, _)| is_fence(line)).map(|(_, at)| at).collect();
    assert_eq!(fences.len(), 2);
    for line in fences {
        LEFT_OUT.store(line, std::sync::atomic::Ordering::Relaxed);
        assert!(CASES.iter().any(Case::fails), "the fence at line {line} can be left out");
        let is_needed = SHORT_CASES.iter().any(Case::fails);
        assert!(is_needed, "the fence at line {line} can be left out for short suffixes");
    }
    LEFT_OUT.store(0, std::sync::atomic::Ordering::Relaxed);
    assert!(!SHORT_CASES.iter().any(Case::fails));
    assert!(!WALKS.iter().any(Case::fails));
}
