//! Closures of updates: they read their store, and no other call of theirs can wait for themselves.

use super::contents::value_of;
use super::fixture::{Fixture, Outcome};
use quipu::{Change, Client, Error, Store, WriteBatch};
use std::cell::Cell;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keys beside the one that is updated: some of them share its lock, whatever the pool's locks are.
const OTHERS: u32 = 40;

fn assert_refused<T>(what: &str, result: Result<T, Error>) {
    match result {
        Err(Error::InsideUpdate) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what} was not refused"),
    }
}

/// Every call that changes the store or waits for its writers.
fn assert_all_refused(store: &Store, client: &mut Client) {
    let can = store.design().can();
    for key in [&b"key"[..], b"other"] {
        assert_refused("put", client.put(key, b"inside"));
        assert_refused("put_many", client.put_many(&[(key, b"inside")]));
        assert_refused("delete", client.delete(key));
        assert_refused("remove", client.remove(key));
        assert_refused("update", client.update(key, |_| Some(b"inside")));
        assert_refused("update_with", client.update_with(key, |_| Change::Delete));
        assert_refused("put_if_absent", client.put_if_absent(key, b"inside"));
        assert_refused("compare_and_swap", client.compare_and_swap(key, None, Some(b"inside")));
        if can.expiry {
            assert_refused("put_until", client.put_until(key, b"inside", u64::MAX));
            assert_refused("put_for", client.put_for(key, b"inside", std::time::Duration::MAX));
        }
        if can.versions {
            assert_refused("put_if_version", client.put_if_version(key, None, b"inside"));
        }
        if can.updates_in_place {
            assert_refused("update_in_place", client.update_in_place(key, 0, |number| number + 1));
        }
        if can.batches {
            assert_refused("write", client.write(WriteBatch::new().put(key, b"inside")));
        }
    }
    assert_refused("clear", client.clear());
    assert_refused("compact", store.compact());
    assert_refused("sync", store.sync());
    if can.tables {
        assert_refused("delete_range", client.delete_range(Bound::Unbounded, Bound::Unbounded));
        assert_refused("delete_prefix", client.delete_prefix(b"k"));
        assert_refused("create_table", store.create_table("inside"));
        let table = store.table("outside").expect("it is there");
        assert_refused("drop_table", store.drop_table(&table));
        assert_refused("put into a table", client.on(&table).expect("it is there").put(b"key", b"inside"));
    }
}

fn other(number: u32) -> Vec<u8> {
    value_of(b"other", u64::from(number), 8)
}

/// Every way to read, of the key that is updated and of others, whose puts may be parked.
fn assert_readable(store: &Store, client: &Client, old: &[u8]) {
    assert_eq!(client.get(b"key").expect("a read").as_deref(), Some(old));
    assert!(client.contains_key(b"key").expect("a read") && !client.contains_key(b"absent").expect("a read"));
    for number in (0..OTHERS).rev() {
        assert_eq!(client.get(&other(number)).expect("a read"), Some(other(number)));
    }
    let mut keys: Vec<_> = (0..OTHERS).map(other).collect();
    keys.push(b"key".to_vec());
    let mut found = 0;
    client.get_many(&keys, |_, value| found += usize::from(value.is_some())).expect("a read");
    assert_eq!(found, keys.len());
    let guard = client.pin();
    assert_eq!(guard.get(b"key").expect("a read").as_deref(), Some(old));
    assert_eq!((guard.iter().count(), guard.keys().count()), (keys.len(), keys.len()));
    if store.design().can().ordered {
        assert_eq!(guard.range(Bound::Unbounded, Bound::Unbounded).expect("a read").count(), keys.len());
    }
    if store.design().can().tables {
        let snapshot = store.snapshot().expect("a read");
        assert_eq!(
            client.pin_at(&snapshot).expect("a read").get(b"key").expect("a read").as_deref(),
            Some(old)
        );
    }
    assert!(!store.settings().is_empty() && store.stats().pool_bytes > 0);
}

/// A closure reads all that there is, and gets an error for any other call, which has done nothing.
pub(super) fn a_closure_reads_its_store_and_does_nothing_else(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let (mut client, mut inner) = (store.client(), store.client());
    if store.design().can().tables {
        store.create_table("outside")?;
    }
    client.put(b"key", b"0")?;
    for number in 0..OTHERS {
        inner.put(&other(number), &other(number))?;
    }
    for round in 1..4u8 {
        inner.put(b"key", &[round])?;
        let mut calls = 0;
        let mut act = |old: Option<&[u8]>| {
            calls += 1;
            assert_eq!(old, Some(&[round][..]));
            assert_readable(&store, &inner, &[round]);
            assert_all_refused(&store, &mut inner);
            // One that leaves inside has its puts published, and more.
            let _ = store.client().get(b"key");
        };
        match round {
            1 => client.update(b"key", |old| {
                act(old);
                Some([round + 10])
            })?,
            2 => client.update_with(b"key", |old| {
                act(old.map(|old| old.value));
                Change::put(vec![round + 10])
            })?,
            _ => {
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    client.update(b"key", |old| {
                        act(old);
                        if true {
                            panic!("a closure that fails");
                        }
                        Some([0])
                    })
                }));
                assert!(panicked.is_err());
            }
        }
        assert_eq!(calls, 1);
        let expected = if round == 3 { round } else { round + 10 };
        assert_eq!(inner.get(b"key")?, Some(vec![expected]));
        inner.put(b"key", b"after")?;
        client.update(b"key", |old| old.map(<[u8]>::to_vec))?;
        store.compact()?;
    }
    assert_readable(&store, &client, b"after");
    Ok(())
}

/// A store that is closed or dropped inside of a closure waits for nobody.
pub(super) fn a_store_may_end_inside_of_a_closure(fixture: &Fixture) -> Outcome {
    for closes in [true, false] {
        let store = if closes { fixture.create()? } else { fixture.open()? };
        let (mut client, leaving) = (store.client(), Cell::new(Some(store.client())));
        for number in 0..OTHERS {
            client.put(&other(number), &other(number))?;
        }
        let store = Cell::new(Some(store));
        client.update(b"key", |_| {
            drop(leaving.take());
            match store.take() {
                Some(store) if closes => assert_refused("close", store.close()),
                store => drop(store),
            }
            Some(b"value")
        })?;
        assert_eq!(client.get(b"key")?.as_deref(), Some(&b"value"[..]));
        client.put(b"key", b"later")?;
        drop(client);
        // Its jobs end by themselves.
        while matches!(fixture.open(), Err(error) if error.kind() == quipu::ErrorKind::InUse) {
            std::thread::yield_now();
        }
    }
    let store = fixture.open()?;
    assert_eq!(store.client().get(b"key")?.as_deref(), Some(&b"later"[..]));
    Ok(())
}

/// Closures that write to each other's key are all refused and end, and others write meanwhile.
pub(super) fn closures_do_not_wait_for_each_other(fixture: &Fixture) -> Outcome {
    const THREADS: usize = 3;
    let store = fixture.create()?;
    let rounds = fixture.scaled(500, 12);
    let (writing, elsewhere) = (AtomicUsize::new(0), fixture_of_its_own(fixture)?);
    let key = |thread: usize| [thread as u8; 3];
    fixture.in_parallel(THREADS, |thread| {
        let (mut client, mut inner) = (store.client(), store.client());
        let mut foreign = elsewhere.client();
        for round in 0..rounds {
            if thread == 0 {
                // Never refused, although closures of the others run.
                inner.put(&key(0), &round.to_le_bytes())?;
                continue;
            }
            client.update(&key(thread), |_| {
                writing.fetch_add(1, Ordering::Relaxed);
                assert!(inner.get(&key(thread % 2 + 1)).is_ok());
                assert_refused("a put of another's key", inner.put(&key(thread % 2 + 1), b"inside"));
                // A closure may write to another store, but not inside of that one's own closure.
                foreign.put(&key(thread), b"foreign").expect("room");
                foreign
                    .update(&key(thread), |_| {
                        assert_refused("a put inside of two", inner.put(&key(0), b"inside"));
                        Some(b"foreign")
                    })
                    .expect("room");
                Some(round.to_le_bytes())
            })?;
        }
        Ok(())
    })?;
    assert!(writing.into_inner() >= 2 * rounds);
    for thread in 0..THREADS {
        assert_eq!(store.client().get(&key(thread))?, Some((rounds - 1).to_le_bytes().to_vec()));
    }
    Ok(())
}

/// Another store, of the same design.
fn fixture_of_its_own(fixture: &Fixture) -> Result<Store, Error> {
    let region = quipu_medium::Region::dram(4 << 20, quipu_medium::Pages::Ordinary)?;
    Store::create_on(region, &fixture.options)
}
