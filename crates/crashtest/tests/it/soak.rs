//! A long search over every design in every world, with a program that holds: what it finds is a fault of the
//! store, or of the search.

use quipu::{Client, Design, Error};
use quipu_crashtest::{After, CrashTest, FailureKind, Outcome, Task, ensure};
use quipu_medium::sim::Fault;
use std::sync::Arc;

/// Keys that all tasks write to.
const KEYS: u64 = 5;

type Store = Arc<quipu::Store>;

/// A write of a value to a key: none for a deletion.
#[derive(Clone, Debug, PartialEq)]
struct Write {
    key: u64,
    value: Option<u64>,
}

fn parsed(value: Option<Vec<u8>>) -> Outcome<Option<u64>> {
    Ok(match value {
        None => None,
        Some(value) => {
            ensure!(value.len() >= 8 && value[8..].iter().all(|byte| *byte == value[0]), "a value in part");
            Some(u64::from_le_bytes(value[..8].try_into()?))
        }
    })
}

/// One of the writes to a key, which may find no room.
fn write(client: &mut Client, Write { key, value }: &Write, task: &Task<Write>) -> Result<(), Error> {
    let Some(value) = value else { return client.delete(&[*key as u8 + 1]) };
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(8 + task.draw(0..300) as usize, bytes[0]);
    match task.draw(0..3) {
        0 => client.put(&[*key as u8 + 1], &bytes),
        1 => client.update(&[*key as u8 + 1], |_| Some(&bytes[..])),
        _ => client.put_many(&[([*key as u8 + 1], &bytes[..])]),
    }
}

fn test(design: Design) -> CrashTest<Store, Write> {
    CrashTest::new(Ok)
        .design(design)
        .tasks(3, |store: &Store, task: &Task<Write>| {
            let mut client = store.client();
            for n in 1..=task.draw(1..=10) {
                // Each task has keys of its own, so that the last write is known.
                let key = (task.id() - 1) * KEYS + task.draw(0..KEYS);
                let value = (task.draw(0..4) < 3).then_some(task.id() << 32 | n);
                let event = Write { key, value };
                task.began(&event);
                write(&mut client, &event, task)?;
                task.done(&event);
                let seen = parsed(client.get(&[key as u8 + 1])?)?;
                ensure!(seen == value, "wrote {value:?} to {key}, and read {seen:?}");
            }
            Ok(())
        })
        .invariant(|store, after: &After<Write>| {
            let client = store.client();
            for key in 0..3 * KEYS {
                let seen = parsed(client.get(&[key as u8 + 1])?)?;
                let events = || after.began().iter().filter(|event| event.key == key);
                let done = events().rfind(|event| after.is_done(event)).and_then(|event| event.value);
                let begun = events().next_back().and_then(|event| event.value);
                ensure!(seen == done || seen == begun, "key {key}: {seen:?}, done {done:?}, begun {begun:?}");
            }
            Ok(())
        })
        .recoveries(3)
}

fn explored(cuts: u64, seed: u64) {
    for design in Design::ALL.iter().copied() {
        let worlds = [test(design), test(design).moves_clock(), test(design).fills_pool()];
        for (number, test) in worlds.into_iter().enumerate() {
            let summary = test.cuts(cuts).seed(seed).check();
            assert!(summary.cuts >= cuts, "{design} in world {number}: {summary:?}");
        }
    }
}

/// Fences do nothing from this write on: the pool does not open any more, or only what follows is lost.
fn without_fences(from: u64) -> CrashTest<Store, u64> {
    CrashTest::new(Ok)
        .tasks(1, move |store: &Store, task: &Task<u64>| {
            let sim = store.region().simulator().expect("a simulated region");
            let mut client = store.client();
            for key in 0..4 {
                sim.set_fault((key >= from).then_some(Fault::FenceOmitted { every: 1 }));
                task.began(&key);
                client.put(&[key as u8], b"here")?;
                task.done(&key);
            }
            Ok(())
        })
        .invariant(|store, after: &After<u64>| {
            let client = store.client();
            for key in after.done() {
                ensure!(client.contains_key(&[*key as u8])?, "{key} is lost");
            }
            Ok(())
        })
}

#[test]
fn a_medium_that_omits_fences_is_convicted() {
    let failure = without_fences(0).explore().unwrap_err();
    assert_eq!((failure.kind(), failure.calls()), (FailureKind::Store, 1), "{failure}");
    // The first write that a cut takes away is the one before.
    let failure = without_fences(1).explore().unwrap_err();
    assert_eq!((failure.kind(), failure.what()), (FailureKind::Invariant, "1 is lost"), "{failure}");
    // Nothing follows this one but the end.
    let failure = without_fences(3).explore().unwrap_err();
    assert_eq!((failure.kind(), failure.what()), (FailureKind::Invariant, "3 is lost"), "{failure}");
    assert!(failure.to_string().contains("when all tasks had ended"), "{failure}");
    without_fences(4).check();
}

#[test]
fn every_design_holds_in_every_world() {
    explored(150, 1);
}

#[test]
#[ignore = "a long search: cargo test --release -p quipu-crashtest --test it soak:: -- --ignored"]
fn every_design_holds_for_long() {
    let from = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    explored(from("QUIPU_STATES", 20_000), from("QUIPU_SEED", 1));
}
