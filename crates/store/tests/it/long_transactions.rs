//! Transactions that stay open for long: what they hold, what they cost, and how they end.

use crate::transactions::world;
use quipu::{Design, Error, ErrorKind, Isolation, Levels, Options};
use std::ops::Bound::{Excluded, Included};
use std::time::Duration;

/// It ends when somebody needs room.
#[test]
fn an_old_transaction_ends_and_holds_nothing() {
    let pool = Options::new().design(Design::XP).size(4 << 20).zone_size(64 << 10);
    let world =
        world(pool.transaction_age(Duration::from_millis(200)).wait_for_room(Duration::from_secs(30)));
    let (mut client, mut other) = (world.store.client(), world.store.client());
    client.put(b"old", b"1").unwrap();
    let mut own = client.begin(Isolation::Serializable).unwrap();
    own.get(b"old").unwrap();
    own.put(b"new", b"1").unwrap();
    // Many times what the pool holds, behind its end.
    std::thread::sleep(Duration::from_millis(250));
    for round in 0..200u32 {
        (0..100u8).for_each(|key| other.put(&[key], &[round as u8; 1000]).unwrap());
    }
    assert!(matches!(own.get(b"old"), Err(Error::TransactionTooOld)));
    let refused = own.commit().unwrap_err();
    assert!(matches!(refused, Error::TransactionTooOld) && refused.kind() == ErrorKind::Again);
    assert_eq!(other.get(b"new").unwrap(), None);
}

/// While it looks again at what it has read, nobody else writes. The median tells of the engine, not of a
/// busy machine.
#[test]
fn a_commit_behind_a_long_scan_is_short() {
    let world = world(Options::new().design(Design::XP).size(64 << 20));
    let (mut client, mut other) = (world.store.client(), world.store.client());
    (0..20_000u32).for_each(|key| client.put(&key.to_be_bytes(), &[1; 100]).unwrap());
    let mut times: Vec<Duration> = (0..21)
        .map(|round| {
            let mut own = client.begin(Isolation::Serializable).unwrap();
            let (from, to) = (5_000u32.to_be_bytes(), 15_000u32.to_be_bytes());
            assert_eq!(own.range(Included(&from), Excluded(&to)).count(), 10_000);
            own.put(&[0; 8], &[round]).unwrap();
            other.put(&20_000u32.to_be_bytes(), &[round]).unwrap();
            let begin = std::time::Instant::now();
            own.commit().unwrap();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    assert!(times[10] <= Duration::from_millis(5), "{:?}", times[10]);
    println!("a serializable commit behind a scan of 10,000 keys: {:?} in the median", times[10]);
}

#[test]
fn a_transaction_that_holds_room_back_is_named() {
    let pool = Options::new().design(Design::XP).size(4 << 20).zone_size(64 << 10);
    let world = world(pool.levels(Levels::Off).wait_for_room(Duration::from_millis(300)));
    let (mut client, mut other) = (world.store.client(), world.store.client());
    // More than half of the pool, so that it cannot be written anew beside what the transaction sees.
    (0..2000u32).for_each(|key| client.put(&key.to_be_bytes(), &[1; 1000]).unwrap());
    let own = client.begin(Isolation::Snapshot).unwrap();
    std::thread::scope(|scope| {
        // Of its own thread it does not wait.
        let refused = scope.spawn(|| {
            (0..20_000u32).find_map(|round| other.put(&(round % 2000).to_be_bytes(), &[2; 1000]).err())
        });
        let refused = refused.join().unwrap().expect("there is no room");
        let Error::RoomHeld { holder, .. } = &refused else { panic!("{refused}") };
        assert_eq!(holder.what, quipu::Holding::Transaction, "{refused}");
        assert!(refused.to_string().contains("a transaction of thread"), "{refused}");
    });
    assert!(world.store.stats().oldest_hold_ms > 0);
    assert_eq!(own.get(&1999u32.to_be_bytes()).unwrap().as_deref(), Some(&[1; 1000][..]));
    drop(own);
    other.put(b"key", b"value").unwrap();
}

/// Its own state holds what others have overwritten meanwhile. A later one does not.
#[test]
fn a_transaction_that_holds_its_own_room_back_is_repeated() {
    let pool = Options::new().design(Design::XP).size(4 << 20).zone_size(64 << 10).levels(Levels::Off);
    let world = world(pool);
    let (mut client, mut other) = (world.store.client(), world.store.client());
    (0..2000u32).for_each(|key| client.put(&key.to_be_bytes(), &[1; 1000]).unwrap());
    let mut tries = 0;
    let done = client.transact(Isolation::Snapshot, |own| {
        tries += 1;
        let mut rounds = (0..20_000u32).take_while(|_| tries == 1);
        let refused = rounds.find_map(|round| other.put(&(round % 2000).to_be_bytes(), &[2; 1000]).err());
        assert!(tries > 1 || matches!(refused, Some(Error::RoomHeld { .. })), "{refused:?}");
        (3000..3040u32).try_for_each(|key| own.put(&key.to_be_bytes(), &[3; 1000]))
    });
    done.unwrap();
    assert_eq!((tries, other.get(&3000u32.to_be_bytes()).unwrap()), (2, Some(vec![3; 1000])));
}

/// Values that have expired, but not for an open transaction, are no garbage yet: to write them anew would
/// give nothing back, again and again.
#[test]
fn values_that_a_transaction_still_sees_are_not_moved_for_ever() {
    let pool = Options::new().design(Design::XP).size(4 << 20).zone_size(64 << 10).levels(Levels::Off);
    let world = world(pool);
    let (mut client, mut other) = (world.store.client(), world.store.client());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    (0..1000u32).for_each(|key| client.put_until(&key.to_be_bytes(), &[1; 1000], now + 400).unwrap());
    let own = client.begin(Isolation::Snapshot).unwrap();
    assert!(own.get(&0u32.to_be_bytes()).unwrap().is_some());
    while other.contains_key(&999u32.to_be_bytes()).unwrap() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = world.store.stats().moved_records;
    for round in 0..1000u32 {
        (0..100u8).for_each(|key| other.put(&[key], &[round as u8; 1000]).unwrap());
    }
    let moved = world.store.stats().moved_records - before;
    assert!(moved < 4000, "{moved} records were moved, of 1100");
    assert_eq!(own.prefix(&[0]).take(300).filter(Result::is_ok).count(), 300);
    drop(own);
    world.store.compact().unwrap();
    assert_eq!(other.pin().keys().count(), 100);
}
