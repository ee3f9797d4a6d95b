//! Transactions: what they read and write, and when they fail.

use quipu::{Client, Conditions, Design, Error, ErrorKind, Isolation, Options, Store, Table, WriteBatch};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::time::Duration;

const LEVELS: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];

pub struct World {
    pub store: Store,
    _folder: tempfile::TempDir,
}

pub fn world(options: Options) -> World {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("pool"), &options).unwrap();
    World { store, _folder: folder }
}

fn options() -> Options {
    Options::new().design(Design::XP).size(16 << 20)
}

fn is_conflict(done: Result<(), Error>, with: &[u8]) -> bool {
    match done {
        Err(error @ Error::Conflict { .. }) => {
            assert_eq!(error.kind(), ErrorKind::Again);
            matches!(error, Error::Conflict { key: Some(key) } if *key == *with)
        }
        _ => false,
    }
}

fn pairs(client: &Client) -> Vec<(Vec<u8>, Vec<u8>)> {
    let guard = client.pin();
    let pair = |pair: Result<quipu::KeyValue<'_>, Error>| {
        let (key, value) = pair.unwrap();
        (key.into_owned(), value.into_owned())
    };
    guard.range(Unbounded, Unbounded).unwrap().map(pair).collect()
}

#[test]
fn its_own_writes_are_seen_by_itself_and_by_others_when_it_has_committed() {
    let world = world(options());
    let (mut client, other) = (world.store.client(), world.store.client());
    client.put_many(&[("a", "1"), ("b", "2"), ("c", "3")]).unwrap();
    for isolation in LEVELS {
        let mut own = client.begin(isolation).unwrap();
        own.put(b"b", b"two").unwrap();
        own.delete(b"c").unwrap();
        own.put(b"d", b"4").unwrap();
        own.put_until(b"e", b"gone", 1).unwrap();
        assert_eq!(own.get(b"b").unwrap().as_deref(), Some(&b"two"[..]));
        assert_eq!((own.get(b"c").unwrap(), own.get(b"e").unwrap()), (None, None));
        let seen: Vec<_> = own.range(Unbounded, Unbounded).map(|pair| pair.unwrap().0.into_owned()).collect();
        assert_eq!(seen, [b"a", b"b", b"d"]);
        let back: Vec<_> = own.range(Unbounded, Excluded(b"d")).rev().map(|pair| pair.unwrap().0).collect();
        assert_eq!(back, [&b"b"[..], b"a"]);
        let mut values = Vec::new();
        own.get_many(&["a", "b", "c"], |_, value| values.push(value.map(<[u8]>::to_vec))).unwrap();
        assert_eq!(values, [Some(b"1".to_vec()), Some(b"two".to_vec()), None]);
        assert_eq!(other.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
        drop(own);
        assert_eq!(pairs(&other).len(), 3, "it was rolled back");
    }
    let mut own = client.begin(Isolation::default()).unwrap();
    own.put(b"b", b"two").unwrap();
    own.delete(b"a").unwrap();
    own.commit().unwrap();
    assert_eq!(pairs(&other), [(b"b".to_vec(), b"two".to_vec()), (b"c".to_vec(), b"3".to_vec())]);
}

/// The merged walk against a model, from both ends, with many keys of both kinds.
#[test]
fn ranges_lay_its_writes_over_the_state_whichever_end_advances() {
    let world = world(options());
    let mut client = world.store.client();
    let key = |number: u32| format!("{number:05}").into_bytes();
    (0..2000).step_by(2).for_each(|number| client.put(&key(number), b"old").unwrap());
    for seed in 0..30u64 {
        let mut chance = SmallRng::seed_from_u64(seed);
        let mut model: std::collections::BTreeMap<_, _> =
            (0..2000).step_by(2).map(|number| (key(number), b"old".to_vec())).collect();
        let mut own = client.begin(Isolation::Serializable).unwrap();
        for _ in 0..chance.random_range(0..800) {
            let key = key(chance.random_range(0..2000));
            if chance.random::<bool>() {
                own.put(&key, b"new").unwrap();
                model.insert(key, b"new".to_vec());
            } else {
                own.delete(&key).unwrap();
                model.remove(&key);
            }
        }
        let (from, to) = (key(chance.random_range(0..1000)), key(chance.random_range(900..2000)));
        let wanted: Vec<_> = match from < to {
            true => model
                .range(from.clone()..to.clone())
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            false => Vec::new(),
        };
        let mut walk = own.range(Included(&from), Excluded(&to));
        let (mut front, mut back) = (Vec::new(), Vec::new());
        loop {
            let from_back = chance.random_range(0..4u8) == 0;
            let Some(pair) = (if from_back { walk.next_back() } else { walk.next() }) else { break };
            let (key, value) = pair.unwrap();
            if from_back { &mut back } else { &mut front }.push((key.into_owned(), value.into_owned()));
        }
        assert!(walk.next().is_none() && walk.next_back().is_none());
        front.extend(back.into_iter().rev());
        assert_eq!(front, wanted, "seed {seed}");
    }
}

#[test]
fn tables_commit_together() {
    let world = world(options());
    let [accounts, log] = ["accounts", "log"].map(|name| world.store.create_table(name).unwrap());
    let mut client = world.store.client();
    let done = client.transact(Isolation::Serializable, |own| {
        own.on(&accounts)?.put(b"llama", b"90")?;
        own.on(&log)?.put(b"llama", b"10 spent")?;
        assert_eq!(own.get(b"llama")?, None, "another table");
        assert_eq!(own.on(&accounts)?.get(b"llama")?.as_deref(), Some(&b"90"[..]));
        let logged = own.on(&log)?.prefix(b"l").count();
        Ok(logged)
    });
    assert_eq!(done.unwrap(), 1);
    let read = |table: &Table| world.store.client().on(table).unwrap().get(b"llama").unwrap();
    assert_eq!((read(&accounts).unwrap(), read(&log).unwrap()), (b"90".to_vec(), b"10 spent".to_vec()));
    // A transaction of a client of a table, which names its own.
    let mut own = client.on(&accounts).unwrap();
    let mut transaction = own.begin(Isolation::Snapshot).unwrap();
    transaction.put(b"llama", b"80").unwrap();
    assert_eq!(transaction.on(&accounts).unwrap().get(b"llama").unwrap().as_deref(), Some(&b"80"[..]));
    transaction.commit().unwrap();
    // One that is dropped meanwhile takes the commit with it.
    let mut transaction = client.begin(Isolation::Snapshot).unwrap();
    transaction.put(b"here", b"1").unwrap();
    transaction.on(&log).unwrap().put(b"there", b"1").unwrap();
    world.store.drop_table(&log).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::TableDropped)));
    assert_eq!(client.get(b"here").unwrap(), None);
}

#[test]
fn a_commit_that_met_a_write_fails_and_names_the_key() {
    let world = world(options());
    let (mut client, mut other) = (world.store.client(), world.store.client());
    client.put_many(&[("a", "1"), ("b", "2")]).unwrap();
    type Interfere = fn(&mut Client);
    let writes: [(&str, Interfere); 5] = [
        ("a put", |other| other.put(b"b", b"other").unwrap()),
        ("a deletion", |other| assert!(other.remove(b"b").unwrap())),
        ("a put and a deletion", |other| {
            other.put(b"b", b"other").unwrap();
            other.delete(b"b").unwrap();
        }),
        ("a range delete", |other| other.delete_range(Included(b"b"), Unbounded).unwrap()),
        ("an update", |other| other.update(b"b", |_| Some(b"other")).unwrap()),
    ];
    for (name, write) in writes {
        for isolation in [Isolation::Snapshot, Isolation::Serializable] {
            client.put(b"b", b"2").unwrap();
            let mut own = client.begin(isolation).unwrap();
            write(&mut other);
            own.put(b"b", b"own").unwrap();
            assert!(is_conflict(own.commit(), b"b"), "{name}, {isolation:?}");
            // The first one after it succeeds.
            let mut own = client.begin(isolation).unwrap();
            own.put(b"b", b"own").unwrap();
            own.commit().unwrap();
        }
    }
    // Nobody looks with read committed, but for keys that were asked for.
    let mut own = client.begin(Isolation::ReadCommitted).unwrap();
    own.put(b"b", b"own").unwrap();
    other.put(b"b", b"other").unwrap();
    own.commit().unwrap();
    for present in [true, false] {
        let mut own = client.begin(Isolation::ReadCommitted).unwrap();
        let key = if present { &b"b"[..] } else { b"absent" };
        assert_eq!(own.get_for_update(key).unwrap().is_some(), present);
        own.put(b"a", b"own").unwrap();
        other.put(key, b"other").unwrap();
        assert!(is_conflict(own.commit(), key));
    }
}

#[test]
fn what_was_read_counts_where_it_is_serializable_and_no_more_than_that() {
    let world = world(options());
    let (mut client, mut other) = (world.store.client(), world.store.client());
    let key = |number: u32| format!("{number:03}").into_bytes();
    (0..100).step_by(2).for_each(|number| client.put(&key(number), b"old").unwrap());
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let is_serializable = isolation == Isolation::Serializable;
        // A key that was read, and one that was absent.
        for read in [key(10), key(11)] {
            let mut own = client.begin(isolation).unwrap();
            own.get(&read).unwrap();
            own.put(b"own", b"new").unwrap();
            other.put(&read, b"other").unwrap();
            assert_eq!(is_conflict(own.commit(), &read), is_serializable);
            other.delete(&key(11)).unwrap();
        }
        // Ten keys of a range from the front and two from the back: up to 018, and from 096.
        for (written, counts) in
            [(9, true), (17, true), (18, true), (19, false), (95, false), (96, true), (99, true)]
        {
            let mut own = client.begin(isolation).unwrap();
            let mut walk = own.range(Unbounded, Excluded(b"1"));
            assert_eq!((walk.by_ref().take(10).count(), walk.rev().take(2).count()), (10, 2));
            own.put(b"own", b"new").unwrap();
            other.put(&key(written), b"other").unwrap();
            let conflicts = is_conflict(own.commit(), &key(written));
            assert_eq!(conflicts, is_serializable && counts, "{written}, {isolation:?}");
            if written % 2 == 1 {
                other.delete(&key(written)).unwrap();
            }
        }
        // A range to its end, and a range delete of nothing.
        let mut own = client.begin(isolation).unwrap();
        assert_eq!(own.prefix(b"09").count(), 5);
        own.put(b"own", b"new").unwrap();
        other.delete_range(Included(b"0991"), Excluded(b"0992")).unwrap();
        assert_eq!(matches!(own.commit(), Err(Error::Conflict { key: None })), is_serializable);
    }
    // Without writes it has seen one state, and nothing is asked.
    let own = client.begin(Isolation::Serializable).unwrap();
    own.get(&key(10)).unwrap();
    other.put(&key(10), b"other").unwrap();
    assert_eq!(own.get(&key(10)).unwrap(), own.get(&key(10)).unwrap());
    own.commit().unwrap();
}

/// No rewriting between the beginning and the commit makes a commit fail, and none hides a write from it.
#[test]
fn a_check_knows_copies_from_writes() {
    let world = world(Options::new().design(Design::XP).size(4 << 20).zone_size(64 << 10));
    let (mut client, mut other) = (world.store.client(), world.store.client());
    let key = |number: u32| format!("{number:03}").into_bytes();
    for round in 0..20u32 {
        (0..100).for_each(|number| client.put(&key(number), &[round as u8; 300]).unwrap());
        let mut own = client.begin(Isolation::Serializable).unwrap();
        assert_eq!(own.range(Unbounded, Excluded(b"05")).count(), 50);
        own.get(&key(70)).unwrap();
        own.put(&key(80), b"own").unwrap();
        // Others churn elsewhere; in every second round they also put and delete a key that was absent.
        for _ in 0..30 {
            (90..100).for_each(|number| other.put(&key(number), &[1; 300]).unwrap());
        }
        if round % 2 == 1 {
            other.put(b"0101", b"").unwrap();
            other.delete(b"0101").unwrap();
        }
        world.store.compact().unwrap();
        let done = own.commit();
        match round % 2 {
            0 => done.unwrap(),
            _ => assert!(is_conflict(done, b"0101"), "round {round}"),
        }
    }
}

#[test]
fn savepoints_roll_back_a_part() {
    let world = world(options());
    let mut client = world.store.client();
    let mut own = client.begin(Isolation::Snapshot).unwrap();
    own.put(b"a", b"1").unwrap();
    let savepoint = own.savepoint();
    own.put(b"a", b"2").unwrap();
    own.put(b"b", b"2").unwrap();
    own.rollback_to(&savepoint).unwrap();
    assert_eq!((own.get(b"a").unwrap().as_deref(), own.get(b"b").unwrap()), (Some(&b"1"[..]), None));
    own.commit().unwrap();
    assert_eq!(pairs(&client), [(b"a".to_vec(), b"1".to_vec())]);
    let mut own = client.begin(Isolation::Snapshot).unwrap();
    assert!(matches!(own.rollback_to(&savepoint), Err(Error::Option(_))));
}

#[test]
fn a_transaction_that_becomes_too_large_says_so_at_the_write_and_goes_on() {
    let world = world(Options::new().design(Design::XP).size(4 << 20).zone_size(64 << 10));
    let mut client = world.store.client();
    let mut own = client.begin(Isolation::Snapshot).unwrap();
    let mut written = 0;
    let refused = loop {
        match own.put(&[written], &[0; 1000]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    let Error::TransactionTooLarge { len, limit } = refused else { panic!("{refused}") };
    assert!(len > limit && limit > 60_000 && written > 60, "{len} {limit} {written}");
    // A smaller one may still fit, and a deletion of the same keys needs less.
    own.put(b"more", b"1").unwrap();
    own.commit().unwrap();
    assert_eq!(client.pin().keys().count(), usize::from(written) + 1);
    let batch = &mut WriteBatch::new();
    for key in 0..=written {
        batch.put(&[key], &[0; 1000]);
    }
    assert!(matches!(client.write(batch), Err(Error::BatchTooLarge { .. })), "the limit is the batch's");
}

#[test]
fn misuse_is_refused() {
    let xp = world(options());
    let mut client = xp.store.client();
    let mut own = client.begin(Isolation::Snapshot).unwrap();
    assert!(matches!(own.put(b"", b"1"), Err(Error::KeyEmpty { .. })));
    assert!(matches!(own.put(&vec![0; 1 << 20], b"1"), Err(Error::KeyTooLarge { .. })));
    assert!(matches!(own.put(b"a", &vec![0; 1 << 20]), Err(Error::ValueTooLarge { .. })));
    drop(own);
    let elsewhere = world(options());
    let foreign = elsewhere.store.create_table("foreign").unwrap();
    assert!(matches!(client.begin(Isolation::Snapshot).unwrap().on(&foreign), Err(Error::Option(_))));
    // Inside of a closure of an update.
    let mut other = xp.store.client();
    client
        .update(b"a", |_| {
            assert!(matches!(other.begin(Isolation::Snapshot), Err(Error::InsideUpdate)));
            assert!(matches!(
                other.write_if(&Conditions::new(), &WriteBatch::new()),
                Err(Error::InsideUpdate)
            ));
            Some(b"1")
        })
        .unwrap();
    for design in Design::ALL.iter().copied() {
        let world = world(Options::new().design(design).size(16 << 20));
        let mut client = world.store.client();
        if !design.description().can.transactions {
            let refused = client.begin(Isolation::Snapshot).map(drop);
            assert!(matches!(refused, Err(Error::Unsupported { what: "transactions" })), "{design:?}");
        }
    }
}

#[test]
fn a_batch_counts_if_its_conditions_hold() {
    for design in Design::ALL.iter().copied().filter(|design| design.description().can.versions) {
        let world = world(Options::new().design(design).size(16 << 20));
        let mut client = world.store.client();
        let (mut conditions, mut batch) = (Conditions::new(), WriteBatch::new());
        client.put(b"a", b"1").unwrap();
        conditions.version(b"a", client.version(b"a").unwrap()).absent(b"b");
        batch.put(b"b", b"2").delete(b"c");
        if !design.description().can.batches {
            let refused = client.write_if(&conditions, &batch);
            assert!(matches!(refused, Err(Error::Unsupported { what: "atomic batches" })), "{design:?}");
            continue;
        }
        assert!(client.write_if(&conditions, &batch).unwrap());
        assert_eq!(client.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
        assert!(!client.write_if(&conditions, &batch).unwrap(), "{design:?}: b is there now");
        conditions.clear();
        conditions.version(b"a", client.version(b"a").unwrap());
        client.put(b"a", b"1").unwrap();
        batch.put(b"d", b"4");
        assert!(!client.write_if(&conditions, &batch).unwrap(), "the same value, and another version");
        assert_eq!(client.get(b"d").unwrap(), None);
        // A batch of nothing proves the conditions; none always hold.
        assert!(!client.write_if(&conditions, &WriteBatch::new()).unwrap());
        assert!(client.write_if(&Conditions::new(), &batch).unwrap());
        client.put_until(b"a", b"1", 1).unwrap();
        conditions.clear();
        assert!(client.write_if(conditions.absent(b"a"), &batch).unwrap(), "it has expired");
        conditions.clear();
        assert!(matches!(client.write_if(conditions.absent(b""), &batch), Err(Error::KeyEmpty { .. })));
    }
}

#[test]
fn a_transaction_sees_values_expire_by_its_beginning() {
    let world = world(options());
    let (mut client, mut other) = (world.store.client(), world.store.client());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    client.put_until(b"a", b"1", now + 300).unwrap();
    let mut own = client.begin(Isolation::Serializable).unwrap();
    assert!(own.get(b"a").unwrap().is_some());
    while other.contains_key(b"a").unwrap() {
        std::thread::sleep(Duration::from_millis(10));
    }
    world.store.compact().unwrap();
    assert!(own.get(b"a").unwrap().is_some() && own.prefix(b"a").count() == 1);
    own.put(b"b", b"2").unwrap();
    own.commit().unwrap();
    assert_eq!(other.pin().keys().count(), 1);
    other.put(b"a", b"3").unwrap();
}
