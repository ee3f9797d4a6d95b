//! The effect of each call of a client, as one thread sees it.

use super::contents::{Contents, put, value_of, verify};
use super::fixture::{Ending, Fixture, Outcome};
use quipu::{Change, Client, Error, Store, WriteBatch};
use std::collections::BTreeSet;

/// Puts, gets and deletes.
pub(super) fn the_last_write_of_a_key_counts(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    verify(&mut store, &expected);
    let mut client = store.client();
    for version in 0..5u64 {
        for number in 0..100u64 {
            let key = number.to_le_bytes();
            // Lengths change from version to version, and every value is empty once.
            let len = (number * 7 + version * 60) % 300 * u64::from(!(number + version).is_multiple_of(5));
            let value = value_of(&key, version, len as usize);
            client.put(&key, &value)?;
            assert_eq!(client.get(&key)?, Some(value.clone()), "a client reads what it wrote");
            expected.insert(key.to_vec(), value);
        }
        for number in (version..100).step_by(7) {
            let key = number.to_le_bytes();
            assert!(client.remove(&key)?, "the key was there");
            assert!(!client.remove(&key)?, "it no longer is");
            assert_eq!(client.get(&key)?, None);
            expected.remove(&key[..]);
        }
        assert_eq!(store.stats().records, expected.len() as u64);
    }
    assert!(!client.remove(b"never there")?);
    client.delete(b"never there")?;
    drop(client);
    verify(&mut store, &expected);
    Ok(())
}

/// All pairs of absent and present, before and after.
pub(super) fn update_sees_the_value_and_decides(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    let states = [None, Some(&b""[..]), Some(b"a"), Some(b"another value")];
    for (old, new) in pairs(&states) {
        set(&mut client, b"key", old)?;
        client.update(b"key", |seen| {
            assert_eq!(seen, old, "update shows the value");
            new
        })?;
        assert_eq!(client.get(b"key")?.as_deref(), new, "from {old:?}");
        assert_eq!(store.stats().records, u64::from(new.is_some()));
    }
    Ok(())
}

/// Absent, present, deleted, empty.
pub(super) fn put_if_absent_puts_once(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    for first in [&b"one"[..], b""] {
        assert!(client.put_if_absent(b"key", first)?);
        assert!(!client.put_if_absent(b"key", b"two")?, "an empty value is a value");
        assert_eq!(client.get(b"key")?.as_deref(), Some(first));
        client.delete(b"key")?;
    }
    Ok(())
}

/// Every combination of found, expected and new.
pub(super) fn compare_and_swap_swaps_only_what_it_expects(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    let states = [None, Some(&b""[..]), Some(b"a"), Some(b"b"), Some(b"aa")];
    for (found, expected) in pairs(&states) {
        for new in states {
            set(&mut client, b"key", found)?;
            let swapped = client.compare_and_swap(b"key", expected, new)?;
            assert_eq!(swapped, found == expected, "{found:?}, expected {expected:?}");
            let now = if swapped { new } else { found };
            assert_eq!(client.get(b"key")?.as_deref(), now, "{found:?}, expected {expected:?}, new {new:?}");
            assert_eq!(store.stats().records, u64::from(now.is_some()));
        }
    }
    Ok(())
}

fn pairs<T: Copy>(all: &[T]) -> impl Iterator<Item = (T, T)> + '_ {
    all.iter().flat_map(|first| all.iter().map(|second| (*first, *second)))
}

fn set(client: &mut Client, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
    match value {
        Some(value) => client.put(key, value),
        None => client.delete(key),
    }
}

/// An update decides over a key, and may give a part of its old value.
pub(super) fn update_with_keeps_puts_or_deletes(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    client.update_with(b"key", |old| {
        assert_eq!(old, None);
        Change::put(b"value".to_vec())
    })?;
    client.update_with(b"key", |old| Change::put(&old.expect("it was put").value[1..]))?;
    assert_eq!(client.get(b"key")?.as_deref(), Some(&b"alue"[..]));
    client.update_with(b"key", |_| Change::Keep)?;
    assert_eq!(client.get(b"key")?.as_deref(), Some(&b"alue"[..]));
    client.update_with(b"key", |_| Change::Delete)?;
    assert_eq!(client.get(b"key")?, None);
    client.update_with(b"key", |_| Change::Delete)?;
    assert_eq!(store.stats().records, 0);
    Ok(())
}

/// A key alone is asked for and told like its pair.
pub(super) fn keys_alone_are_those_of_the_pairs(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    let mut expected = BTreeSet::new();
    let key = |number: usize| format!("key {number}").into_bytes();
    for number in 0..fixture.scaled(600, 60) {
        client.put(&key(number), b"")?;
        assert!(client.contains_key(&key(number))?);
        expected.insert(key(number));
        if number % 3 == 2 {
            client.delete(&key(number / 2))?;
            assert!(!client.contains_key(&key(number / 2))?);
            expected.remove(&key(number / 2));
        }
    }
    let guard = client.pin();
    assert!(guard.contains_key(&key(1))? == expected.contains(&key(1)) && !guard.contains_key(b"missing")?);
    let mut keys = guard.keys();
    let found: Vec<Vec<u8>> = keys.by_ref().map(|key| key.into_owned()).collect();
    keys.ended()?;
    assert_eq!(found.len(), expected.len(), "a key was told twice, or not");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    Ok(())
}

/// A store that was cleared has no key, and takes as many again, as often as one likes.
pub(super) fn clear_deletes_every_key(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    for round in 0..3 {
        let mut client = store.client();
        // Half a pool of them.
        for number in 0..fixture.scaled(8_000, 200) as u64 {
            client.put(&number.to_be_bytes(), &value_of(&number.to_be_bytes(), round, 200))?;
        }
        client.clear()?;
        assert_eq!((store.stats().records, client.pin().iter().count()), (0, 0), "round {round}");
        client.clear()?;
        drop(client);
        store = fixture.reopen(store, Ending::ALL[round as usize % 2])?;
        assert_eq!(store.stats().records, 0, "round {round}");
    }
    Ok(())
}

/// The version of a key rises with every write of it, whatever happens between, and nobody else puts where it
/// is compared.
pub(super) fn versions_rise_and_are_compared(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut last = 0;
    for round in 0..4 {
        let mut client = store.client();
        let mut rises = |client: &Client, what: &str| -> Outcome {
            let version = client.version(b"key")?.expect("a version");
            assert!(version > last, "{what}: {version} after {last}");
            assert_eq!(client.pin().version(b"key")?, Some(version));
            last = version;
            Ok(())
        };
        assert_eq!(client.version(b"missing")?, None);
        assert!(client.put_if_version(b"key", None, b"first")?);
        rises(&client, "put_if_version")?;
        assert!(!client.put_if_version(b"key", None, b"again")?);
        client.put(b"key", b"second")?;
        rises(&client, "put")?;
        client.put_many(&[(b"key", b"third")])?;
        rises(&client, "put_many")?;
        if store.design().can().batches {
            client.write(WriteBatch::new().put(b"key", b"no").put(b"other", b"").put(b"key", b"fourth"))?;
            rises(&client, "write")?;
        }
        let seen = client.version(b"key")?;
        client.update_with(b"key", |old| {
            assert_eq!(old.expect("it was put").version, seen);
            Change::Keep
        })?;
        assert!(!client.put_if_version(b"key", seen.map(|seen| seen - 1), b"no")?);
        assert!(!client.put_if_version(b"missing", seen, b"no")? && !client.contains_key(b"missing")?);
        assert!(client.put_if_version(b"key", seen, b"last")?);
        assert!(!client.put_if_version(b"key", seen, b"no")?);
        assert_eq!(client.get(b"key")?.as_deref(), Some(&b"last"[..]));
        rises(&client, "put_if_version")?;
        // Compaction and opening again leave it as it is.
        let before = client.version(b"key")?;
        drop(client);
        store.compact()?;
        store = fixture.reopen(store, Ending::ALL[round % 2])?;
        let mut client = store.client();
        assert_eq!(client.version(b"key")?, before);
        client.delete(b"key")?;
        assert_eq!(client.version(b"key")?, None);
    }
    Ok(())
}

/// No client may notice the work that a store leaves to later. So every kind of access comes first after
/// every kind of blind write, of a present key and of an absent one.
pub(super) fn a_write_is_seen_by_all_at_once(fixture: &Fixture) -> Outcome {
    type Look = fn(&Store, &mut Client, &[u8]) -> Result<Option<Vec<u8>>, Error>;
    let looks: [Look; 9] = [
        |_, client, key| client.get(key),
        |_, client, key| {
            let mut found = None;
            client.get_many(&[key], |_, value| found = value.map(<[u8]>::to_vec))?;
            Ok(found)
        },
        |_, client, key| {
            let guard = client.pin();
            Ok(guard.iter().find(|(other, _)| *other == key).map(|(_, value)| value.to_vec()))
        },
        |store, client, key| {
            let before = store.stats().records;
            let found = client.get(key)?;
            assert_eq!(before == 1, found.is_some(), "the count of records");
            Ok(found)
        },
        |_, client, key| {
            let mut seen = None;
            client.update(key, |old| {
                seen = old.map(<[u8]>::to_vec);
                old.map(<[u8]>::to_vec)
            })?;
            Ok(seen)
        },
        |_, client, key| {
            let found = client.get(key)?;
            assert_eq!(client.remove(key)?, found.is_some());
            assert!(!client.remove(key)?);
            Ok(found)
        },
        |_, client, key| {
            let was_absent = client.put_if_absent(key, b"another")?;
            let found = client.get(key)?;
            Ok(if was_absent { None } else { found })
        },
        |_, client, key| {
            let is_absent = client.compare_and_swap(key, None, None)?;
            let found = client.get(key)?;
            assert_eq!(is_absent, found.is_none());
            Ok(found)
        },
        |_, client, key| {
            // Over it with a batch, which must not be undone by what was left to later.
            let found = client.get(key)?;
            client.put_many(&[(key, b"batch")])?;
            assert_eq!(client.get(key)?.as_deref(), Some(&b"batch"[..]));
            Ok(found)
        },
    ];
    let store = fixture.create()?;
    let mut reader = store.client();
    for look in looks {
        for (old, new) in pairs(&[None, Some(&b"a value"[..]), Some(b"")]) {
            for reader_is_writer in [false, true] {
                let mut writer = store.client();
                if old.is_some() {
                    set(&mut writer, b"key", old)?;
                    assert_eq!(reader.get(b"key")?.as_deref(), old);
                }
                set(&mut writer, b"key", new)?;
                let looking = if reader_is_writer { &mut writer } else { &mut reader };
                assert_eq!(look(&store, looking, b"key")?.as_deref(), new, "{old:?} then {new:?}");
                // The writer does its deferred work here, and must not undo later writes.
                set(&mut reader, b"key", Some(b"last"))?;
                drop(writer);
                assert_eq!(reader.get(b"key")?.as_deref(), Some(&b"last"[..]));
                assert!(reader.remove(b"key")?);
            }
        }
    }
    Ok(())
}

/// A client that is never dropped takes nothing with it that it was told is written.
pub(super) fn a_leaked_client_leaves_nothing_unseen(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut leaked = store.client();
    leaked.put(b"kept", b"first")?;
    leaked.put(b"kept", b"second")?;
    leaked.put(b"gone", b"value")?;
    leaked.delete(b"gone")?;
    std::mem::forget(leaked);
    let client = store.client();
    assert_eq!(client.get(b"kept")?.as_deref(), Some(&b"second"[..]));
    assert_eq!(client.get(b"gone")?, None);
    assert_eq!(client.pin().iter().count(), 1);
    assert_eq!(store.stats().records, 1);
    drop(client);
    let error = store.close().expect_err("a client is alive, as far as the store knows");
    assert!(matches!(error, Error::ClientsOpen { clients: 1 }), "{error}");
    Ok(())
}

/// The buffer keeps its memory, and nothing of an earlier value.
pub(super) fn get_into_reuses_its_buffer(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    let values = [value_of(b"v", 1, 1000), Vec::new(), value_of(b"v", 2, 10)];
    let mut out = Vec::with_capacity(1000);
    let memory = out.as_ptr();
    for value in &values {
        client.put(b"key", value)?;
        assert!(client.get_into(b"key", &mut out)?);
        assert_eq!(&out, value);
        assert!(!client.get_into(b"missing", &mut out)?);
        assert!(out.is_empty(), "nothing of the earlier value stays");
        assert_eq!(out.as_ptr(), memory, "the buffer is reused");
    }
    Ok(())
}

/// Duplicates, missing keys, no key at all, and more keys than any batch has.
pub(super) fn get_many_answers_every_position(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    for number in (0..50u64).step_by(2) {
        client.put(&number.to_le_bytes(), &value_of(&number.to_le_bytes(), 0, number as usize))?;
    }
    for count in [0, 1, 31, 32, 33, 64, 257] {
        let keys: Vec<_> = (0..count).map(|position: u64| (position * position % 50).to_le_bytes()).collect();
        let mut next = 0;
        client.get_many(&keys, |position, value| {
            assert_eq!(position, next, "positions come in order");
            next += 1;
            let number = u64::from_le_bytes(keys[position]);
            let expected = number.is_multiple_of(2).then(|| value_of(&keys[position], 0, number as usize));
            assert_eq!(value, expected.as_deref(), "position {position} of {count}");
        })?;
        assert_eq!(next, keys.len());
    }
    Ok(())
}

/// Duplicates within a batch and across batches, over old values, no pair at all, and more pairs than any
/// batch has.
pub(super) fn put_many_puts_all_and_the_last_of_a_key_wins(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    for (version, (count, keys)) in
        [(0, 1), (1, 1), (32, 1), (32, 32), (31, 7), (33, 33), (100, 10), (300, 300)].into_iter().enumerate()
    {
        let pairs: Vec<_> = (0..count)
            .map(|number: u64| {
                let key = (number % keys).to_be_bytes().to_vec();
                let value = value_of(&key, number << 8 | version as u64, (number % 90) as usize);
                (key, value)
            })
            .collect();
        store.client().put_many(&pairs)?;
        expected.extend(pairs);
        verify(&mut store, &expected);
    }
    Ok(())
}

/// Keys and values are checked before anything is written.
pub(super) fn a_refused_batch_writes_nothing(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let (keys, values) = store.limits();
    let long_key = vec![1; keys as usize + 1];
    let long_value = vec![1; values as usize + 1];
    let refused: [(&[u8], &[u8]); 3] = [(b"", b"v"), (&long_key, b"v"), (b"k", &long_value)];
    for bad in refused {
        let mut pairs: Vec<(&[u8], &[u8])> = vec![(b"good", b"v"); 40];
        pairs.push(bad);
        assert!(store.client().put_many(&pairs).is_err());
        verify(&mut store, &Contents::new());
    }
    Ok(())
}

/// After puts that grow the index, deletes and reinserts.
pub(super) fn iteration_shows_every_key_once(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    let mut client = store.client();
    for number in 0..fixture.scaled(30_000, 6_000) {
        let key = format!("key {number}").into_bytes();
        put(&mut client, &mut expected, key, 1, number % 64)?;
        if number % 3 == 0 {
            let gone = format!("key {}", number / 2).into_bytes();
            assert_eq!(client.remove(&gone)?, expected.remove(&gone).is_some());
        }
    }
    drop(client);
    verify(&mut store, &expected);
    Ok(())
}

/// A guard's values stay valid and the same while other clients rewrite and delete their keys.
pub(super) fn lent_values_do_not_change(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let (reader, mut writer) = (store.client(), store.client());
    let old = value_of(b"key", 0, 700);
    writer.put(b"key", &old)?;
    writer.put(b"gone", &old)?;
    let guard = reader.pin();
    let lent = [guard.get(b"key")?, guard.get(b"gone")?];
    for version in 1..1000 {
        writer.put(b"key", &value_of(b"key", version, 700))?;
        if version == 500 {
            writer.delete(b"gone")?;
        }
    }
    let lent = lent.each_ref().map(|value| value.as_deref());
    assert_eq!(lent, [Some(&old[..]); 2], "lent values stay as they were");
    drop(guard);
    assert_eq!(reader.get(b"key")?, Some(value_of(b"key", 999, 700)));
    assert_eq!(reader.get(b"gone")?, None);
    Ok(())
}
