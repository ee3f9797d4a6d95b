//! Worlds with a clock that moves, and with a pool that becomes full; every design; and replays.

use quipu::{Design, Error};
use quipu_crashtest::{After, CrashTest, FailureKind, Outcome, Task, ensure};
use std::sync::Arc;
use std::time::Duration;

type Store = Arc<quipu::Store>;

/// A visitor logs in and looks at a page; whether the program thinks of the end of its session.
fn visit(minds_expiry: bool) -> CrashTest<Store, u64> {
    CrashTest::new(Ok)
        .tasks(1, move |store: &Store, task: &Task<u64>| {
            let mut client = store.client();
            client.put_for(b"session", b"llama", Duration::from_secs(3600))?;
            for _ in 0..task.draw(1..=5) {
                match client.get(b"session")? {
                    Some(name) => ensure!(name == b"llama", "another visitor"),
                    None if minds_expiry => return Ok(()),
                    None => return Err("the visitor has no session".into()),
                }
            }
            Ok(())
        })
        .moves_clock()
}

#[test]
fn a_session_that_expires_is_found() {
    let failure = visit(false).explore().unwrap_err();
    println!("{failure}");
    assert_eq!((failure.kind(), failure.calls()), (FailureKind::Task, 2), "{failure}");
    assert!(failure.history().iter().any(|line| line.starts_with("clock   moves by")), "{failure}");
    visit(true).check();
}

#[test]
fn a_session_ends_in_time_after_a_cut_too() {
    const LASTS: u64 = 3_600_000;
    let test = CrashTest::new(Ok)
        .tasks(2, |store: &Store, task: &Task<(u64, u64)>| {
            let visitor = (task.id(), task.now() + LASTS);
            task.began(&visitor);
            store.client().put_until(&[task.id() as u8], b"session", visitor.1)?;
            task.done(&visitor);
            Ok(())
        })
        .invariant(|store, after: &After<(u64, u64)>| {
            for visitor in after.began() {
                let is_there = store.client().contains_key(&[visitor.0 as u8])?;
                ensure!(!is_there || after.now() < visitor.1, "{visitor:?} is there at {}", after.now());
                ensure!(
                    is_there || !after.is_done(visitor) || after.now() >= visitor.1,
                    "{visitor:?} is gone"
                );
            }
            Ok(())
        });
    test.moves_clock().check();
}

/// Takes a note; whether the program minds the answer.
fn note(minds_answer: bool) -> CrashTest<Store, u64> {
    CrashTest::new(Ok)
        .tasks(1, move |store: &Store, task: &Task<u64>| {
            let mut client = store.client();
            for note in 1..=task.draw(1..=20) {
                task.began(&note);
                match client.put(&note.to_le_bytes(), b"a note") {
                    Err(error) if minds_answer => return Err(error.into()),
                    _ => task.done(&note),
                }
            }
            Ok(())
        })
        .invariant(|store, after: &After<u64>| {
            let client = store.client();
            for note in after.done() {
                ensure!(client.contains_key(&note.to_le_bytes())?, "note {note} was taken, and is gone");
            }
            Ok(())
        })
        .fills_pool()
}

#[test]
fn an_answer_that_nobody_minds_is_found_in_a_full_pool() {
    let failure = note(false).explore().unwrap_err();
    println!("{failure}");
    assert_eq!((failure.kind(), failure.calls()), (FailureKind::Invariant, 1), "{failure}");
    assert!(failure.history().iter().any(|line| line.ends_with("-> the pool is full")), "{failure}");
    note(true).check();
}

/// Moves a coin from one purse to the other, in two calls.
fn two_purses(design: Design) -> CrashTest<Store, ()> {
    CrashTest::new(Ok)
        .tasks(1, |store: &Store, task: &Task<()>| {
            let mut client = store.client();
            task.began(&());
            client.put(b"purse-2", b"one coin")?;
            client.delete(b"purse-1")?;
            task.done(&());
            Ok(())
        })
        .invariant(|store, after: &After<()>| {
            let client = store.client();
            let purses = [client.contains_key(b"purse-1")?, client.contains_key(b"purse-2")?];
            ensure!(after.began().is_empty() || purses != [false, false], "the coin is gone");
            Ok(())
        })
        .design(design)
}

#[test]
fn every_design_is_tested() {
    for design in Design::ALL.iter().copied() {
        // The coin is there once the second put has arrived: before it, of a task that has begun, it is not.
        let failure = two_purses(design).cuts(300).explore().unwrap_err();
        assert_eq!((failure.kind(), failure.calls()), (FailureKind::Invariant, 1), "{design}: {failure}");
        let seed = failure.seed().expect("a history has one").to_owned();
        assert!(seed.starts_with(&format!("{design}:")), "{seed}");
        let again = two_purses(design).replay(&seed).explore().unwrap_err();
        assert_eq!((again.history(), again.what()), (failure.history(), failure.what()), "{design}");
    }
}

#[test]
fn a_seed_of_another_design_is_of_another_test() {
    let summary = two_purses(Design::QUIPU).replay("xp:1:/::1").check();
    assert_eq!(summary.cuts, 0);
}

#[test]
fn a_table_of_xp_is_named_in_the_history() {
    let test = CrashTest::new(|store: Store| {
        match store.create_table("herd") {
            Err(Error::TableExists { .. }) => {}
            created => drop(created?),
        }
        Ok(store)
    })
    .tasks(1, |store: &Store, _: &Task<()>| {
        store.client().on(&store.table("herd")?)?.put(b"llama", b"wool")?;
        Outcome::Err("stop here".into())
    });
    let failure = test.design(Design::XP).explore().unwrap_err();
    assert!(
        failure.history().iter().any(|line| line.contains("put on herd(\"llama\", \"wool\")")),
        "{failure}"
    );
}
