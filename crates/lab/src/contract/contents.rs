//! The contents that a store should hold, checked by every way of asking.

use super::fixture::{Ending, Fixture, Outcome};
use quipu::{Client, Error, Store};
use std::collections::BTreeMap;

/// Keys and their values.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A value of `len` bytes that follows from its key and version, so that a torn, stale or foreign one is
/// noticed.
pub fn value_of(key: &[u8], version: u64, len: usize) -> Vec<u8> {
    let seed = key.iter().fold(version.wrapping_mul(0x9e37_79b9_7f4a_7c15), |seed, byte| {
        (seed ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // Word by word: values of megabytes are made often.
    let mut value = Vec::with_capacity(len + 8);
    for word in 0..len.div_ceil(8) as u64 {
        value.extend_from_slice(&quipu_bench::workload::mix(seed.wrapping_add(word)).to_le_bytes());
    }
    value.truncate(len);
    value
}

/// Puts a value of a version and length, in the store and in what it should hold.
pub(super) fn put(
    client: &mut Client,
    expected: &mut Contents,
    key: Vec<u8>,
    version: u64,
    len: usize,
) -> Result<(), Error> {
    let value = value_of(&key, version, len);
    client.put(&key, &value)?;
    expected.insert(key, value);
    Ok(())
}

/// Puts values of this length under new keys, until one is refused; returns the refusal.
pub(super) fn put_until_full(
    client: &mut Client,
    expected: &mut Contents,
    len: usize,
    key: impl Fn(u64) -> Vec<u8>,
) -> Result<Error, Error> {
    for number in 0.. {
        match put(client, expected, key(number), 0, len) {
            Err(full @ Error::PoolFull { .. }) => return Ok(full),
            done => done?,
        }
    }
    unreachable!("no pool takes every key")
}

/// Asserts that the store holds exactly this, and that its pool still does after a close and after a drop.
pub(super) fn verify_kept(fixture: &Fixture, mut store: Store, expected: &Contents) -> Outcome {
    verify(&mut store, expected);
    let limits = store.limits();
    for ending in Ending::ALL {
        store = fixture.reopen(store, ending)?;
        assert_eq!(store.limits(), limits, "the limits belong to the pool");
        verify(&mut store, expected);
    }
    Ok(())
}

/// Asserts that the store holds exactly this: by single and batched gets, by iteration, by its count, and by
/// its own check.
///
/// # Panics
/// If it does not.
pub fn verify(store: &mut Store, expected: &Contents) {
    let client = store.client();
    for (key, value) in expected {
        let found = client.get(key).expect("a get succeeds");
        assert_eq!(found.as_ref(), Some(value), "the value of {}", key.escape_ascii());
    }
    let keys: Vec<_> = expected.keys().collect();
    let mut asked = 0;
    let each = |number: usize, value: Option<&[u8]>| {
        assert_eq!(number, asked, "values come in the order of the keys");
        asked += 1;
        assert_eq!(value, Some(&expected[keys[number]][..]), "get_many of {}", keys[number].escape_ascii());
    };
    client.get_many(&keys, each).expect("get_many succeeds");
    assert_eq!(asked, keys.len(), "get_many reports every key");
    let mut seen = Contents::new();
    for (key, value) in &client.pin() {
        let twice = seen.insert(key.to_vec(), value.to_vec());
        assert!(twice.is_none(), "iteration shows {} twice", key.escape_ascii());
    }
    assert!(&seen == expected, "iteration shows {} keys instead of {}", seen.len(), expected.len());
    drop(client);
    assert_eq!(store.stats().records, expected.len() as u64, "the count of records");
    let report = store.check(&|_, _| {}).expect("no client is left");
    assert!(report.is_sound(), "check finds damage: {:?}", report.damage);
    assert_eq!(report.keys, expected.len() as u64, "the keys that check found");
}
