//! The Masstree under a model of memory: a reader without a lock and a writer see each other's stores in
//! every order that the language allows. If a fence of the versions is left out, the model finds it.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_masstree --release
//! ```

#![cfg(loom)]

use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{Index, Key};
use quipu_parts::sync::atomic::checked::LEFT_OUT;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What happens to an index of the keys 100, 200, .. while it is read. The word of a key is the key.
struct Case {
    keys: u64,
    /// Keys that are removed again before the reader comes.
    removed: std::ops::Range<u64>,
    takes: Option<u64>,
    puts: Option<u64>,
    reads: u64,
}

fn bytes(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key { bytes, hash: 0 }
}

fn put(index: &Masstree, guard: &Guard<'_>, number: u64, near: Option<u64>) {
    let never = |_| unreachable!("it has the keys");
    let rehash = |_| unreachable!("it has the keys");
    index.upsert(guard, key(&bytes(number)), number, near, never, &rehash).expect("room");
}

fn take(index: &Masstree, guard: &Guard<'_>, number: u64, near: Option<u64>) -> Option<u64> {
    index.take(guard, key(&bytes(number)), near, |_| unreachable!("it has the keys")).expect("sound")
}

/// Whether any order goes wrong, by the way from the root or by a hint.
fn fails(case: &'static Case) -> bool {
    fails_by(case, false) || fails_by(case, true)
}

fn fails_by(case: &'static Case, has_hint: bool) -> bool {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 20_000;
    let run = move || {
        let (index, collector) = (Arc::new(Masstree::new()), Collector::new());
        let (reader, writer) = (collector.register(), collector.register());
        {
            let guard = writer.pin();
            (1..=case.keys).for_each(|number| put(&index, &guard, number * 100, None));
            case.removed.clone().for_each(|number| _ = take(&index, &guard, number * 100, None));
        }
        let hint = |number| has_hint.then(|| index.prefetch(&writer, key(&bytes(number)))).flatten();
        let (seen, near) = (Arc::clone(&index), hint(case.reads));
        let thread = loom::thread::spawn(move || {
            let sought = bytes(case.reads);
            let never = |_| unreachable!("it has the keys");
            let found = seen.get_near(&reader.pin(), key(&sought), near, never).expect("sound");
            let may_be_absent = case.takes == Some(case.reads);
            assert!(found == Some(case.reads) || found.is_none() && may_be_absent, "found {found:?}");
            drop(reader);
        });
        let guard = writer.pin();
        if let Some(number) = case.takes {
            assert_eq!(take(&index, &guard, number, hint(number)), Some(number));
        }
        if let Some(number) = case.puts {
            put(&index, &guard, number, hint(number));
        }
        drop(guard);
        thread.join().unwrap();
    };
    catch_unwind(AssertUnwindSafe(|| model.check(run))).is_err()
}

const NONE: std::ops::Range<u64> = 0..0;

static CASES: [Case; 4] = [
    // A slot is used again for another key.
    Case { keys: 15, removed: NONE, takes: Some(700), puts: Some(750), reads: 700 },
    // A border node splits.
    Case { keys: 15, removed: NONE, takes: None, puts: Some(150), reads: 1500 },
    // Another border node splits, and children move in the node above.
    Case { keys: 31, removed: NONE, takes: None, puts: Some(150), reads: 3100 },
    // A border node goes, and children move in the node above.
    Case { keys: 31, removed: 2..16, takes: Some(100), puts: None, reads: 3100 },
];

#[test]
fn readers_see_what_is_there_and_every_fence_counts() {
    assert!(!CASES.iter().any(fails));
    let version = include_str!("../src/index/masstree/version.rs");
    let is_fence = |line: &str| line.trim_start().starts_with("fence(");
    let fences: Vec<u32> =
        version.lines().zip(1..).filter(|(line, _)| is_fence(line)).map(|(_, at)| at).collect();
    assert_eq!(fences.len(), 2);
    for line in fences {
        LEFT_OUT.store(line, std::sync::atomic::Ordering::Relaxed);
        assert!(CASES.iter().any(fails), "the fence at line {line} can be left out");
    }
}
