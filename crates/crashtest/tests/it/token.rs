//! A token that one task puts down and picks up again, while another takes it if it sees it: by a transaction
//! that says what decides, or by a batch with a condition. Nobody may have a token that another one has.

use quipu::{Client, Conditions, Design, Isolation, WriteBatch};
use quipu_crashtest::{CrashTest, Outcome, Task, ensure};
use std::sync::Arc;

type Store = Arc<quipu::Store>;

fn by_a_transaction(client: &mut Client) -> Outcome<bool> {
    Ok(client.transact(Isolation::ReadCommitted, |transaction| {
        let is_there = transaction.get_for_update(b"token")?.is_some();
        if is_there {
            transaction.delete(b"token")?;
            transaction.put(b"taken", b"1")?;
        }
        Ok(is_there)
    })?)
}

fn by_a_condition(client: &mut Client) -> Outcome<bool> {
    let (mut conditions, mut batch) = (Conditions::new(), WriteBatch::new());
    let version = client.version(b"token")?;
    // A key without a version was absent, whatever a later read shows.
    let is_there = version.is_some() && client.contains_key(b"token")?;
    conditions.version(b"token", version);
    batch.delete(b"token").put(b"taken", b"1");
    Ok(is_there && client.write_if(&conditions, &batch)?)
}

fn test(design: Design, take: fn(&mut Client) -> Outcome<bool>) -> CrashTest<Store, ()> {
    CrashTest::new(Ok)
        .design(design)
        .tasks(1, |store: &Store, task: &Task<()>| {
            let mut client = store.client();
            for _ in 0..task.draw(1..=4) {
                client.put(b"token", b"here")?;
                // Nobody else removes it without taking it.
                let is_back = client.remove(b"token")?;
                let is_taken = client.remove(b"taken")?;
                ensure!(is_back != is_taken, "picked up: {is_back}, taken: {is_taken}");
            }
            Ok(())
        })
        .tasks(1, move |store: &Store, task: &Task<()>| {
            let mut client = store.client();
            for _ in 0..task.draw(1..=8) {
                take(&mut client)?;
            }
            Ok(())
        })
}

#[test]
fn a_transaction_takes_no_token_that_has_been_picked_up() {
    test(Design::XP, by_a_transaction).cuts(2000).check();
}

#[test]
fn a_batch_with_a_condition_takes_no_token_that_has_been_picked_up() {
    for design in [Design::XP, Design::QUIPU] {
        test(design, by_a_condition).cuts(1000).check();
    }
}
