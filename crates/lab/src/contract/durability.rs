//! Contents outlive a store, and a full pool stays usable.

use super::contents::{Contents, put, put_until_full, verify, verify_kept};
use super::fixture::{Ending, Fixture, Outcome};
use quipu::{Error, ErrorKind, Store};

/// Values, empty ones, deletes and reinserts outlive closing and dropping, again and again.
pub(super) fn reopening_keeps_everything(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    for round in 0..6u64 {
        let mut client = store.client();
        // In one round nothing is written: opening alone must lose nothing either.
        for number in (0..200u64).filter(|_| round != 3) {
            let key = number.to_le_bytes();
            match (number + round) % 4 {
                0 => {
                    assert_eq!(client.remove(&key)?, expected.remove(&key[..]).is_some());
                }
                1 => {
                    client.put(&key, b"")?;
                    expected.insert(key.to_vec(), Vec::new());
                }
                _ => {
                    put(&mut client, &mut expected, key.to_vec(), round, (number % 150) as usize)?;
                }
            }
        }
        drop(client);
        verify(&mut store, &expected);
        let ending = Ending::ALL[round as usize / 2 % 2];
        store = fixture.reopen(store, ending)?;
        assert!(store.recovery().lost.is_empty());
        if ending == Ending::Closed {
            assert!(store.recovery().was_clean, "round {round}");
        }
        verify(&mut store, &expected);
    }
    Ok(())
}

/// Closing and checking refuse while a client is open; the client works on, and nothing is lost.
pub(super) fn a_store_with_clients_does_not_close(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut client = store.client();
    client.put(b"key", b"value")?;
    for error in [store.check(&|_, _| {}).err(), store.close().err()] {
        assert!(matches!(error, Some(Error::ClientsOpen { clients: 1 })), "{error:?}");
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::InUse));
    }
    client.put(b"later", b"value")?;
    drop(client);
    let expected = [b"key".to_vec(), b"later".to_vec()].map(|key| (key, b"value".to_vec()));
    verify(&mut fixture.open()?, &Contents::from(expected));
    Ok(())
}

/// A pool that has a path has one handle at a time.
pub(super) fn a_second_handle_is_refused(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    if fixture.path().is_some() {
        store.client().put(b"key", b"value")?;
        let error = fixture.open().err();
        assert_eq!(error.as_ref().map(Error::kind), Some(ErrorKind::InUse), "{error:?}");
        assert!(fixture.create().is_err(), "nor is a pool created over another");
        verify(&mut store, &Contents::from([(b"key".to_vec(), b"value".to_vec())]));
    }
    Ok(())
}

/// Puts new keys until the pool is full, which the refusal describes.
fn fill(store: &Store, value_len: usize, expected: &mut Contents) -> Outcome {
    let mut client = store.client();
    let full = put_until_full(&mut client, expected, value_len, |key| key.to_be_bytes().to_vec())?;
    let stats = store.stats();
    let Error::PoolFull { zones, wanted, free } = full else { return Err(full.into()) };
    assert_eq!((u64::from(zones), free), (stats.zones, stats.free_bytes));
    assert!(wanted > free, "{wanted} bytes are wanted and {free} are free");
    Ok(())
}

/// Overwrites keys until that is refused as well: an index in the pool may have no room for one more key, and
/// the log still some.
fn overwrite_until_full(store: &Store, value: &[u8], expected: &mut Contents) -> Outcome {
    let mut client = store.client();
    for number in (0..expected.len() as u64).rev() {
        let key = number.to_be_bytes();
        match client.put(&key, value) {
            Ok(()) => drop(expected.insert(key.to_vec(), value.to_vec())),
            Err(Error::PoolFull { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Err("every key was overwritten by a larger value".into())
}

/// Everything acknowledged is readable, a refused write leaves the old value, deletes still work, and a
/// reopened pool is the same and as full.
pub(super) fn a_full_pool_keeps_what_it_has(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    fill(&store, 700, &mut expected)?;
    assert!(expected.len() > 1000, "the pool is full with {} records", expected.len());
    let larger = vec![1; 4000];
    overwrite_until_full(&store, &larger, &mut expected)?;
    verify(&mut store, &expected);
    let key = 7u64.to_be_bytes();
    for ending in Ending::ALL {
        let mut client = store.client();
        let writes = [
            client.put(&key, &larger),
            client.put_many(&[(key, &larger)]),
            client.update(&key, |_| Some(&larger)),
            client.compare_and_swap(&key, Some(&expected[&key[..]]), Some(&larger)).map(drop),
        ];
        for error in writes.into_iter().map(|write| write.expect_err("the pool is full")) {
            assert_eq!(error.kind(), ErrorKind::Room, "{error}");
        }
        drop(client);
        verify(&mut store, &expected);
        store = fixture.reopen(store, ending)?;
        verify(&mut store, &expected);
    }
    for number in (0..300u64).step_by(3) {
        assert!(store.client().remove(&number.to_be_bytes())?, "there is a reserve for deletes");
        expected.remove(&number.to_be_bytes()[..]);
    }
    verify_kept(fixture, store, &expected)
}

/// Puts between the deletes of a full pool do not use up what deletes are to live on.
pub(super) fn deletes_keep_their_reserve(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    fill(&store, 700, &mut expected)?;
    let mut client = store.client();
    for number in 0..100u64 {
        let key = number.to_be_bytes();
        assert!(client.remove(&key)?, "delete {number} of a full pool");
        expected.remove(&key[..]);
        // A put may still find room at the end of a segment, but never the room of the deletes.
        for larger in (0..4u64).map(|copy| (1000 + number * 4 + copy, vec![2; 3000])) {
            match client.put(&larger.0.to_le_bytes(), &larger.1) {
                Ok(()) => drop(expected.insert(larger.0.to_le_bytes().to_vec(), larger.1)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Room, "{error}"),
            }
        }
    }
    drop(client);
    verify(&mut store, &expected);
    Ok(())
}

/// Deleting all records of a full pool leaves an empty one, which stays empty.
pub(super) fn everything_can_be_deleted(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut expected = Contents::new();
    fill(&store, 3000, &mut expected)?;
    let mut client = store.client();
    for key in expected.keys() {
        client.delete(key)?;
    }
    drop(client);
    verify_kept(fixture, store, &Contents::new())
}
