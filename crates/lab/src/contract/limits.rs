//! Which keys and values are accepted, and that those which are come back whole.

use super::contents::{Contents, put, verify, verify_kept};
use super::fixture::{Fixture, Outcome};
use quipu::{Error, ErrorKind, Store};

/// Sizes at and around the limits, with each other.
pub(super) fn sizes_up_to_the_limits_are_kept(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let ((longest_key, _), longest_value) = (store.limits(), longest_in_a_record(&store));
    assert!(longest_key >= 1024, "keys of {longest_key} bytes are not enough for anyone");
    assert!(longest_value >= 4096, "nor are values of {longest_value} bytes");
    let sizes = |limit: u64, least: u64| [least, 7, 8, 9, 63, 64, 65, 255, 256, 1000, limit - 1, limit];
    let mut expected = Contents::new();
    for (first, key_len) in sizes(longest_key, 1).into_iter().enumerate() {
        for (second, value_len) in sizes(longest_value, 0).into_iter().enumerate() {
            // Long keys with every value would fill the pool.
            let is_edge = |len, limit| len + 1 >= limit;
            if is_edge(key_len, longest_key) && !is_edge(value_len, longest_value) && second != 0 {
                continue;
            }
            let mut key = vec![first as u8; key_len as usize];
            if let Some(last) = key.last_mut() {
                *last = second as u8 ^ 0x80;
            }
            put(&mut store.client(), &mut expected, key, 0, value_len as usize)?;
        }
    }
    refuses_what_is_beyond(&store)?;
    verify_kept(fixture, store, &expected)
}

/// The longest value that stands in its record; larger ones take zones of their own.
pub(super) fn longest_in_a_record(store: &Store) -> u64 {
    store.stats().zone_bytes / 4
}

/// The same on a pool whose zones decide the limits otherwise.
pub(super) fn sizes_up_to_the_limits_are_kept_with_small_zones(fixture: &Fixture) -> Outcome {
    sizes_up_to_the_limits_are_kept(fixture)
}

/// The same where a key's length reaches what its field can say.
pub(super) fn sizes_up_to_the_limits_are_kept_with_large_zones(fixture: &Fixture) -> Outcome {
    sizes_up_to_the_limits_are_kept(fixture)
}

/// Sizes beyond the limits are refused by every call that writes, with the numbers.
fn refuses_what_is_beyond(store: &Store) -> Outcome {
    let (longest_key, longest_value) = store.limits();
    let records = store.stats().records;
    let long_key = vec![7; longest_key as usize + 1];
    let long_value = vec![7; longest_value as usize + 1];
    type Call = fn(&mut quipu::Client, &[u8], &[u8]) -> Result<(), Error>;
    let calls: [Call; 5] = [
        |client, key, value| client.put(key, value),
        |client, key, value| client.put_many(&[(key, value)]),
        |client, key, value| client.put_if_absent(key, value).map(drop),
        |client, key, value| client.compare_and_swap(key, None, Some(value)).map(drop),
        |client, key, value| client.update(key, |_| Some(value)),
    ];
    let mut client = store.client();
    for (number, call) in calls.into_iter().enumerate() {
        let empty = call(&mut client, b"", b"value").expect_err("an empty key");
        assert!(matches!(empty, Error::KeyEmpty { limit } if limit == longest_key), "call {number}: {empty}");
        let key = call(&mut client, &long_key, b"value").expect_err("a long key");
        let numbers = (longest_key + 1, longest_key);
        assert!(
            matches!(key, Error::KeyTooLarge { len, limit } if (len, limit) == numbers),
            "call {number}: {key}"
        );
        let value = call(&mut client, b"key of a long value", &long_value).expect_err("a long value");
        let numbers = (longest_value + 1, longest_value);
        assert!(
            matches!(value, Error::ValueTooLarge { len, limit } if (len, limit) == numbers),
            "{number}: {value}"
        );
        for error in [empty, key, value] {
            assert_eq!(error.kind(), ErrorKind::Argument);
        }
    }
    for key in [&b""[..], &long_key] {
        assert!(client.delete(key).is_err_and(|error| error.kind() == ErrorKind::Argument));
        assert!(client.remove(key).is_err_and(|error| error.kind() == ErrorKind::Argument));
        let in_place = client.update_in_place(key, 0, |number| number).expect_err("no key, or no such call");
        assert_eq!(in_place.kind(), ErrorKind::Argument, "{in_place}");
        assert_eq!(client.get(key)?, None, "nothing can be there");
    }
    assert_eq!(store.stats().records, records, "a refused call changes nothing");
    Ok(())
}

/// Zero bytes, prefixes of each other, and every single byte are keys of their own.
pub(super) fn keys_are_bytes(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut keys: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    keys.extend((2..40).map(|len| vec![0; len]));
    keys.extend((1..40).map(|len| b"a long common prefix, of which every prefix is a key"[..len].to_vec()));
    keys.extend(
        [&b"\0a"[..], b"a\0", b"a\0b", b"\xff\xff", b"\xff\0\xff", b"caf\xc3\xa9", b"\r\n"]
            .map(<[u8]>::to_vec),
    );
    let mut expected = Contents::new();
    for (number, key) in keys.into_iter().enumerate() {
        put(&mut store.client(), &mut expected, key, number as u64, number % 50)?;
    }
    verify(&mut store, &expected);
    let half: Vec<_> = expected.keys().step_by(2).cloned().collect();
    for key in half {
        assert!(store.client().remove(&key)?);
        expected.remove(&key);
    }
    verify(&mut store, &expected);
    Ok(())
}
