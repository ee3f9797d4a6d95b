//! A transfer from the current account to the savings, which are in two tables: in two puts a cut may leave
//! one of them, and another task may come between; in a transaction neither can.

use quipu::{Client, Design, Error, Isolation, Table, Transaction};
use quipu_crashtest::{After, CrashTest, FailureKind, Outcome, Summary, Task, ensure};
use std::sync::Arc;

type Store = Arc<quipu::Store>;

/// The amount that is there at first.
const ALL: u8 = 100;

/// An amount that a task moves.
#[derive(Clone, Debug, PartialEq)]
struct Moved(u8);

fn table(store: &Store, name: &str) -> Result<Table, Error> {
    match store.create_table(name) {
        Err(Error::TableExists { .. }) => store.table(name),
        created => created,
    }
}

fn number(value: Option<Vec<u8>>) -> u8 {
    value.map_or(0, |value| value[0])
}

/// Both tables, and the first amount, are there before any task works.
fn open(store: Store) -> Outcome<Store> {
    let (current, savings) = (table(&store, "current")?, table(&store, "savings")?);
    store.transact(Isolation::Snapshot, |transaction| {
        let is_new = transaction.on(&savings)?.get(b"llama")?.is_none();
        if is_new && transaction.on(&current)?.get(b"llama")?.is_none() {
            transaction.on(&current)?.put(b"llama", &[ALL])?;
        }
        Ok(())
    })?;
    Ok(store)
}

fn in_two_puts(client: &mut Client, [current, savings]: &[Table; 2], amount: u8) -> Outcome {
    let (mut current, mut savings) = (client.on(current)?, client.on(savings)?);
    let (has, saved) = (number(current.get(b"llama")?), number(savings.get(b"llama")?));
    current.put(b"llama", &[has - amount])?;
    savings.put(b"llama", &[saved + amount])?;
    Ok(())
}

fn in_a_transaction(isolation: Isolation) -> impl Fn(&mut Client, &[Table; 2], u8) -> Outcome {
    move |client, [current, savings], amount| {
        client.transact(isolation, |transaction: &mut Transaction<'_>| {
            let has = number(transaction.on(current)?.get_for_update(b"llama")?);
            let saved = number(transaction.on(savings)?.get_for_update(b"llama")?);
            transaction.on(current)?.put(b"llama", &[has - amount])?;
            transaction.on(savings)?.put(b"llama", &[saved + amount])
        })?;
        Ok(())
    }
}

fn test(
    tasks: usize,
    transfer: impl Fn(&mut Client, &[Table; 2], u8) -> Outcome + 'static,
) -> CrashTest<Store, Moved> {
    CrashTest::new(open)
        .design(Design::XP)
        .tasks(tasks, move |store: &Store, task: &Task<Moved>| {
            let tables = [store.table("current")?, store.table("savings")?];
            let mut client = store.client();
            for _ in 0..task.draw(1..=6) {
                let amount = Moved(task.draw(1..=5) as u8);
                task.began(&amount);
                transfer(&mut client, &tables, amount.0)?;
                task.done(&amount);
            }
            Ok(())
        })
        .invariant(|store, after: &After<Moved>| {
            store
                .transact(Isolation::Snapshot, |transaction| {
                    let has = number(transaction.on(&store.table("current")?)?.get(b"llama")?);
                    let saved = number(transaction.on(&store.table("savings")?)?.get(b"llama")?);
                    Ok((has, saved))
                })
                .map_err(Into::into)
                .and_then(|(has, saved)| {
                    ensure!(has.wrapping_add(saved) == ALL, "{has} and {saved} are not {ALL}");
                    let sum =
                        |moved: &mut dyn Iterator<Item = &Moved>| moved.map(|moved| moved.0).sum::<u8>();
                    let (least, most) = (sum(&mut after.done()), sum(&mut after.began().iter()));
                    ensure!(
                        (least..=most).contains(&saved),
                        "{saved} are saved, {least} were moved for sure"
                    );
                    Ok(())
                })
        })
}

#[test]
fn a_transfer_in_two_puts_loses_an_amount() {
    let failure = test(1, in_two_puts).explore().unwrap_err();
    println!("{failure}");
    assert_eq!(failure.kind(), FailureKind::Invariant);
    assert!(failure.what().contains("are not 100"), "{failure}");
    assert!(failure.history().iter().any(|line| line.contains("put on current(\"llama\"")), "{failure}");
}

#[test]
fn a_transfer_in_a_transaction_holds() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let Summary { cuts, histories, .. } = test(2, in_a_transaction(isolation)).cuts(3000).check();
        assert!(cuts >= 3000 && histories > 10, "{isolation:?}: {cuts} cuts of {histories} histories");
    }
}
