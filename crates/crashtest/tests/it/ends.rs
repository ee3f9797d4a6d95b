//! Programs that do something as they drop, or that do not end as they should; long histories.

use quipu_crashtest::{After, CrashTest, FailureKind, Task, ensure};
use std::sync::Arc;

type Store = Arc<quipu::Store>;

/// Keeps a count in memory, and writes it down as it drops: behind a mark that it has, or before.
struct Counter {
    store: Store,
    marks_first: bool,
}

impl Drop for Counter {
    fn drop(&mut self) {
        let mut client = self.store.client();
        let keys = if self.marks_first { [b"clean", b"count"] } else { [b"count", b"clean"] };
        for key in keys {
            client.put(key, b"1").expect("there is room");
        }
    }
}

fn counter(marks_first: bool) -> CrashTest<Counter, ()> {
    CrashTest::new(move |store| Ok(Counter { store, marks_first }))
        .tasks(1, |counter: &Counter, _| Ok(counter.store.client().put(b"begun", b"1")?))
        .invariant(|counter, _| {
            let client = counter.store.client();
            let [clean, count] = [client.contains_key(b"clean")?, client.contains_key(b"count")?];
            ensure!(count || !clean, "a clean end without a count");
            Ok(())
        })
}

#[test]
fn a_program_is_cut_as_it_drops() {
    let failure = counter(true).explore().unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Invariant, "{failure}");
    assert!(failure.history().last().unwrap().starts_with("end     put(\"clean\""), "{failure}");
    let again = counter(true).replay(failure.seed().unwrap()).explore().unwrap_err();
    assert_eq!((again.history(), again.what()), (failure.history(), failure.what()));
    counter(false).check();
}

struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("a fragile end");
    }
}

#[test]
fn a_panic_as_the_program_drops_is_told() {
    let test = CrashTest::<Fragile, ()>::new(|_| Ok(Fragile)).tasks(1, |_, _| Ok(()));
    let failure = test.explore().unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Task, "{failure}");
    assert!(failure.what().contains("as the program drops, it panicked: a fragile end, at "), "{failure}");
}

#[test]
fn a_failed_task_ends_a_history_in_which_another_one_waits_for_it() {
    let test = CrashTest::<Store, ()>::new(Ok).tasks(2, |store: &Store, task: &Task<()>| {
        ensure!(task.id() == 2, "the first one fails");
        while store.client().get(b"ready")?.is_none() {}
        Ok(())
    });
    let failure = test.explore().unwrap_err();
    assert_eq!(failure.what(), "task 1 failed: the first one fails", "{failure}");
}

#[test]
fn the_panic_of_the_task_is_told_and_not_one_that_it_has_caught() {
    let test = CrashTest::<Store, ()>::new(Ok).tasks(1, |_, _| {
        std::panic::catch_unwind(|| panic!("caught")).expect_err("it panics");
        std::panic::resume_unwind(Box::new("the reason"))
    });
    let failure = test.explore().unwrap_err();
    assert_eq!(failure.what(), "it panicked: the reason", "{failure}");
}

#[test]
fn a_program_that_keeps_its_store_is_refused() {
    let test = CrashTest::<Store, ()>::new(|store| {
        std::mem::forget(store.clone());
        Ok(store)
    });
    let failure =
        test.tasks(1, |store: &Store, _| Ok(store.client().put(b"a", b"1")?)).explore().unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Refused, "{failure}");
    assert!(failure.what().contains("a cycle of Arc, a static"), "{failure}");
}

#[test]
fn a_history_may_have_thousands_of_calls() {
    let test = CrashTest::<Store, ()>::new(Ok).pool(4 << 20).cuts(50).tasks(1, |store: &Store, _| {
        let mut client = store.client();
        (0..3_000u64).try_for_each(|key| client.put(&key.to_le_bytes(), b"wool"))?;
        Ok(())
    });
    assert!(test.check().cuts >= 50);
}

#[test]
fn a_race_that_needs_one_key_of_many_is_found_at_the_default() {
    for seed in 1..6 {
        let test = CrashTest::<Store, u64>::new(Ok).tasks(2, |store: &Store, task: &Task<u64>| {
            let mut client = store.client();
            for _ in 0..task.draw(1..=6) {
                let key = task.draw(0..40);
                let count = client.get(&key.to_le_bytes())?.map_or(0, |count| count[0]);
                task.began(&key);
                client.put(&key.to_le_bytes(), &[count + 1])?;
                task.done(&key);
            }
            Ok(())
        });
        let test = test.invariant(|store, after: &After<u64>| {
            for key in 0..40u64 {
                let count = store.client().get(&key.to_le_bytes())?.map_or(0, |count| count[0]);
                let done = after.done().filter(|done| **done == key).count();
                ensure!(usize::from(count) >= done, "key {key} has {count} of {done}");
            }
            Ok(())
        });
        let failure = test.seed(seed * 1000).explore().unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Invariant, "{failure}");
    }
}
