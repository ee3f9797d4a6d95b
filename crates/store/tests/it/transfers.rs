//! Amounts that threads move between accounts, by transactions and by batches with conditions: none is lost.

use crate::transactions::world;
use quipu::{Client, Conditions, Design, Error, Isolation, KeyValue, Options, WriteBatch};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound::Unbounded;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The amount of an account.
fn amount(value: Option<Vec<u8>>) -> u64 {
    u64::from_le_bytes(value.unwrap().try_into().unwrap())
}

/// Moves one unit from an account to another, by a transaction or by a batch with conditions.
fn transfer(client: &mut Client, from: u8, to: u8, by_transaction: bool) {
    if by_transaction {
        let moved = client.transact(Isolation::Snapshot, |own| {
            let (left, there) = (amount(own.get(&[from])?), amount(own.get(&[to])?));
            if left > 0 && from != to {
                own.put(&[from], &(left - 1).to_le_bytes())?;
                own.put(&[to], &(there + 1).to_le_bytes())?;
            }
            Ok(())
        });
        return moved.unwrap();
    }
    loop {
        let (mut conditions, mut batch) = (Conditions::new(), WriteBatch::new());
        let [(left, of_left), (there, of_there)] =
            [from, to].map(|key| client.get_versioned(&[key]).unwrap().unzip());
        conditions.version(&[from], of_left).version(&[to], of_there);
        let (left, there) = (amount(left), amount(there));
        if left > 0 && from != to {
            batch.put(&[from], &(left - 1).to_le_bytes()).put(&[to], &(there + 1).to_le_bytes());
        }
        if client.write_if(&conditions, &batch).unwrap() {
            return;
        }
    }
}

/// Three threads move amounts between a hundred accounts; where there are transactions, another one sums
/// them meanwhile. Returns the transfers and the sums.
fn moves_amounts(design: Design, time: Duration) -> (u64, u64) {
    const SUM: u64 = 100 * 1000;
    let world = world(Options::new().design(design).size(32 << 20));
    let by_transaction = design.description().can.transactions;
    let mut client = world.store.client();
    (0..100u8).for_each(|account| client.put(&[account], &1000u64.to_le_bytes()).unwrap());
    let (has_ended, store) = (&AtomicBool::new(false), &world.store);
    let (moves, sums) = std::thread::scope(|scope| {
        let movers = [0, 1, 2].map(|seed| {
            scope.spawn(move || {
                let (mut client, mut chance) = (store.client(), SmallRng::seed_from_u64(seed));
                let mut moves = 0;
                while !has_ended.load(Ordering::Relaxed) {
                    let (from, to) = (chance.random_range(0..100), chance.random_range(0..100));
                    transfer(&mut client, from, to, by_transaction);
                    moves += 1;
                }
                moves
            })
        });
        let reader = scope.spawn(move || {
            let (mut client, mut sums) = (store.client(), 0);
            while by_transaction && !has_ended.load(Ordering::Relaxed) {
                let own = client.begin(Isolation::Snapshot).unwrap();
                let of = |pair: Result<KeyValue<'_>, Error>| amount(Some(pair.unwrap().1.into_owned()));
                assert_eq!(own.range(Unbounded, Unbounded).map(of).sum::<u64>(), SUM);
                sums += 1;
            }
            sums
        });
        std::thread::sleep(time);
        has_ended.store(true, Ordering::Relaxed);
        (movers.map(|mover| mover.join().unwrap()).iter().sum(), reader.join().unwrap())
    });
    let sum: u64 = (0..100).map(|account| amount(client.get(&[account]).unwrap())).sum();
    assert_eq!(sum, SUM, "{}", design.name());
    (moves, sums)
}

fn with_batches() -> impl Iterator<Item = Design> {
    Design::ALL.iter().copied().filter(|design| design.description().can.batches)
}

#[test]
fn amounts_are_moved_and_none_is_lost() {
    for design in with_batches() {
        let (moves, sums) = moves_amounts(design, Duration::from_millis(300));
        let has_sums = !design.description().can.transactions || sums > 10;
        assert!(moves > 100 && has_sums, "{}: {moves}, {sums}", design.name());
    }
}

#[test]
#[ignore = "four minutes: cargo test --release -p quipu --test it -- --ignored --nocapture amounts_are_moved"]
fn amounts_are_moved_for_a_minute() {
    for design in with_batches() {
        let (moves, sums) = moves_amounts(design, Duration::from_secs(60));
        println!("{}: {moves} transfers, {sums} sums beside them", design.name());
    }
}
