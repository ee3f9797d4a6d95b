//! Values that live in zones of their own: whole at every size, gone without a trace when they are
//! superseded.

use super::contents::{Contents, put, put_until_full, value_of, verify, verify_kept};
use super::fixture::{Ending, Fixture, Outcome};
use super::limits::longest_in_a_record;
use quipu::{Client, Error, Store};
use std::collections::BTreeMap;

/// Bytes at the start of a zone that are not the value's.
const ZONE_HEADER: u64 = 64;

/// Bytes that one zone holds of a value.
fn capacity(store: &Store) -> usize {
    (store.stats().zone_bytes - ZONE_HEADER) as usize
}

/// Zones that large values take, none of which may be left over.
fn zones_of_values(store: &Store) -> u64 {
    let stats = store.stats();
    stats.value_bytes / stats.zone_bytes
}

/// Around the step from records to zones, around full zones, and the very limit.
pub(super) fn sizes_from_one_zone_to_the_limit_are_kept(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let capacity = capacity(&store);
    let (inline, limit) = (longest_in_a_record(&store) as usize, store.limits().1 as usize);
    assert!(limit > 100 * capacity, "values of {limit} bytes are not large in a pool of two megabytes");
    let sizes = [inline, inline + 1, capacity - 1, capacity, capacity + 1, 2 * capacity, 3 * capacity + 7];
    let mut expected = Contents::new();
    for len in sizes {
        let key = format!("key of {len}").into_bytes();
        put(&mut store.client(), &mut expected, key, 0, len)?;
    }
    assert_eq!(zones_of_values(&store), 1 + 1 + 1 + 2 + 2 + 4);
    verify_kept(fixture, store, &expected)?;
    let store = fixture.open()?;
    // The largest has room only for itself.
    for key in expected.keys() {
        store.client().delete(key)?;
    }
    store.compact()?;
    store.compact()?;
    let key = b"the largest".to_vec();
    let value = value_of(&key, 1, limit);
    store.client().put(&key, &value)?;
    verify_kept(fixture, store, &Contents::from([(key, value)]))
}

/// Every call that writes, over small and large values and absent keys, and every call that reads.
pub(super) fn every_call_takes_and_shows_large_values(fixture: &Fixture) -> Outcome {
    type Call = fn(&mut Client, &[u8], Option<&[u8]>, &[u8]) -> Result<(), Error>;
    let calls: [Call; 5] = [
        |client, key, _, value| client.put(key, value),
        |client, key, _, value| client.put_many(&[(key, &b"first"[..]), (key, value), (b"other", b"o")]),
        |client, key, old, value| {
            client.update(key, |seen| {
                assert_eq!(seen, old, "update shows the old value");
                Some(value)
            })
        },
        |client, key, old, value| {
            assert!(!client.compare_and_swap(key, Some(b"something else"), Some(value))?);
            assert!(client.compare_and_swap(key, old, Some(value))?);
            Ok(())
        },
        |client, key, _, value| {
            client.remove(key)?;
            assert!(client.put_if_absent(key, value)?);
            assert!(!client.put_if_absent(key, b"another")?);
            Ok(())
        },
    ];
    let mut store = fixture.create()?;
    let capacity = capacity(&store);
    let lens = [3 * capacity, 100, capacity / 3, 0, 2 * capacity + 1, 2 * capacity + 1];
    for (number, call) in calls.into_iter().enumerate() {
        let mut client = store.client();
        let key = format!("key {number}").into_bytes();
        let mut old: Option<Vec<u8>> = None;
        for (version, len) in lens.into_iter().enumerate() {
            let value = value_of(&key, version as u64, len);
            call(&mut client, &key, old.as_deref(), &value)?;
            assert_eq!(client.get(&key)?.as_ref(), Some(&value), "call {number}, {len} bytes");
            let mut out = b"from before".to_vec();
            assert!(client.get_into(&key, &mut out)? && out == value, "call {number}, {len} bytes");
            let guard = client.pin();
            assert_eq!(guard.get(&key)?.as_deref(), Some(&value[..]));
            let shown: Vec<_> = guard.iter().filter(|(name, _)| *name == key).collect();
            assert!(shown.len() == 1 && *shown[0].1 == value[..], "call {number}, {len} bytes");
            drop(guard);
            old = Some(value);
        }
        assert!(if number % 2 == 0 { client.remove(&key)? } else { client.delete(&key).is_ok() });
        assert_eq!(client.get(&key)?, None);
        client.delete(b"other")?;
    }
    verify(&mut store, &Contents::new());
    assert_eq!(zones_of_values(&store), 0, "nothing is left of a deleted value");
    Ok(())
}

/// Many times what the pool holds, two thirds of it at once.
pub(super) fn a_key_is_overwritten_for_ever_in_a_small_pool(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let len = capacity(&store) * (store.stats().zones as usize / 3);
    let mut client = store.client();
    let mut expected = Contents::new();
    for version in 0..fixture.scaled(60, 12) as u64 {
        let (key, value) = (b"always the same".to_vec(), value_of(b"large", version, len));
        match version % 3 {
            0 => client.update(&key, |_| Some(&value))?,
            _ => client.put(&key, &value)?,
        }
        assert_eq!(client.get(&key)?.as_ref(), Some(&value));
        expected.insert(key, value);
    }
    drop(client);
    verify_kept(fixture, store, &expected)
}

fn key_of(number: u64) -> Vec<u8> {
    format!("large {number}").into_bytes()
}

pub(super) fn a_deleted_value_makes_room_in_a_full_pool(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let len = 3 * capacity(&store) + 1;
    let mut expected = Contents::new();
    let mut client = store.client();
    put_until_full(&mut client, &mut expected, len, key_of)?;
    assert!(expected.len() >= 10, "{} values of four zones", expected.len());
    for round in 0..20u64 {
        let gone = expected.keys().next().cloned().ok_or("the pool holds something")?;
        client.delete(&gone)?;
        expected.remove(&gone);
        let key = format!("large again {round}").into_bytes();
        put(&mut client, &mut expected, key, 0, len)?;
    }
    // Small values find the same room.
    for key in expected.keys() {
        client.remove(key)?;
    }
    expected.clear();
    for number in 0..200u64 {
        let key = number.to_le_bytes().to_vec();
        put(&mut client, &mut expected, key, 1, 3000)?;
    }
    drop(client);
    verify(&mut store, &expected);
    Ok(())
}

pub(super) fn a_put_that_finds_no_room_leaves_everything_as_it_was(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let len = 3 * capacity(&store) + 1;
    let mut expected = Contents::new();
    let mut client = store.client();
    put_until_full(&mut client, &mut expected, len, key_of)?;
    let old = expected.keys().next().cloned().ok_or("the pool holds something")?;
    let too_much = value_of(b"too much", 0, 14 * len);
    let full =
        |outcome: Result<(), Error>| assert!(matches!(outcome, Err(Error::PoolFull { .. })), "{outcome:?}");
    let taken = zones_of_values(&store);
    for key in [&old[..], b"a new key"] {
        full(client.put(key, &too_much));
        full(client.update(key, |_| Some(&too_much)));
        full(client.put_many(&[(key, &too_much)]));
    }
    full(client.compare_and_swap(&old, expected.get(&old).map(Vec::as_slice), Some(&too_much)).map(drop));
    full(client.put_if_absent(b"a new key", &too_much).map(drop));
    assert_eq!(zones_of_values(&store), taken, "what was taken is given back");
    drop(client);
    verify_kept(fixture, store, &expected)
}

/// Large values among small ones that are rewritten until every segment has been cleaned.
pub(super) fn compaction_moves_the_heads_alone(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let capacity = capacity(&store);
    let mut expected = Contents::new();
    let mut client = store.client();
    for number in 0..600u64 {
        let key = format!("key {}", number % 90).into_bytes();
        let len = if number % 90 < 15 { capacity + number as usize } else { 700 };
        put(&mut client, &mut expected, key, number, len)?;
    }
    drop(client);
    for round in 0..3u64 {
        // Every segment has garbage again, so every head moves.
        let mut client = store.client();
        for number in 15..90u64 {
            let key = format!("key {number}").into_bytes();
            put(&mut client, &mut expected, key, 1000 + round, 700)?;
        }
        drop(client);
        let (_, moved) = store.compact()?;
        let large = 15 * capacity as u64;
        assert!((moved > 0 || round > 0) && moved < large, "{moved} bytes moved, of which no large value is");
        verify(&mut store, &expected);
        store = fixture.reopen(store, Ending::ALL[round as usize % 2])?;
        verify(&mut store, &expected);
    }
    assert_eq!(zones_of_values(&store), 15 * 2);
    Ok(())
}

/// A guard shows whole values however often they are superseded meanwhile.
pub(super) fn what_a_guard_may_still_read_is_not_reused(fixture: &Fixture) -> Outcome {
    const KEYS: u64 = 8;
    let store = fixture.create()?;
    let len = capacity(&store) + 1;
    let (reader, mut writer) = (store.client(), store.client());
    let key = |number: u64| number.to_le_bytes();
    for number in 0..KEYS {
        writer.put(&key(number), &value_of(&key(number), 0, len))?;
    }
    let guard = reader.pin();
    let mut iteration = guard.iter();
    let mut seen: Vec<_> = iteration.next().into_iter().collect();
    // More than the pool has room for: the last writes find it full, since the guard keeps what they need.
    let mut full = 0;
    let mut versions = [0; KEYS as usize];
    for version in 1..80 {
        let number = version % KEYS;
        match writer.put(&key(number), &value_of(&key(number), version, len)) {
            Ok(()) => versions[number as usize] = version,
            Err(Error::RoomHeld { .. }) => full += 1,
            Err(error) => return Err(error.into()),
        }
        // A put is refused only when it has waited for the guard: more of them show nothing new.
        if full == KEYS {
            break;
        }
    }
    assert!(full == KEYS, "nothing that a guard may read is given away");
    seen.extend(iteration);
    assert_eq!(seen.len() as u64, KEYS);
    for (key, value) in seen {
        let number = u64::from_le_bytes(key[..].try_into()?);
        let is_one =
            [0, versions[number as usize]].into_iter().any(|version| *value == value_of(&key, version, len));
        assert!(is_one, "key {number} is shown with neither its first nor its last value");
    }
    drop(guard);
    for number in 0..KEYS {
        writer.put(&key(number), &value_of(&key(number), 99, len))?;
        assert_eq!(reader.get(&key(number))?, Some(value_of(&key(number), 99, len)));
    }
    Ok(())
}

/// Readers never see a piece of one value in another.
pub(super) fn threads_overwrite_and_read_large_values(fixture: &Fixture) -> Outcome {
    const THREADS: usize = 3;
    let mut store = fixture.create()?;
    let capacity = capacity(&store);
    let value =
        |key: &[u8], version: u64| value_of(key, version, capacity + version as usize % 3 * capacity / 2);
    let rounds = fixture.scaled(400, 30) as u64;
    // Of which version a value is: those of all, whole, would take most of the test's time to make.
    let versions = (0..3u64).flat_map(|key| (0..rounds * THREADS as u64).map(move |version| (key, version)));
    let begins: BTreeMap<_, _> = versions
        .map(|(key, version)| (key.to_le_bytes(), version))
        .map(|(key, version)| ((key, value_of(&key, version, 8)), version))
        .collect();
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        for round in 0..rounds {
            let key = (round % 3).to_le_bytes();
            let version = round * THREADS as u64 + thread as u64;
            match round % 5 {
                0 => client.delete(&key)?,
                1 => client.update(&key, |_| Some(value(&key, version)))?,
                _ => client.put(&key, &value(&key, version))?,
            }
            if let Some(found) = client.get(&key)? {
                let wrote = |version: &u64| value(&key, *version) == found;
                let version = begins.get(&(key, found[..8].to_vec()));
                assert!(version.is_some_and(wrote), "a value that nobody wrote");
            }
        }
        Ok(())
    })?;
    let client = store.client();
    let keys = (0..3u64).map(u64::to_le_bytes);
    let found = keys.filter_map(|key| Some((key.to_vec(), client.get(&key).ok()??)));
    let expected: Contents = found.collect();
    drop(client);
    verify(&mut store, &expected);
    Ok(())
}
