//! Keys in their order, of designs that keep them so.

use super::contents::value_of;
use super::fixture::{Fixture, Outcome};
use quipu::{Client, Error};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every range is that of a sorted map, whatever its bounds, with keys that begin alike, are of any length, and are deleted again.
pub(super) fn ranges_are_those_of_a_sorted_map(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    let mut expected = BTreeMap::new();
    for number in 0..fixture.scaled(3_000, 150) as u64 {
        let key = key(number);
        let value = value_of(&key, number, 30);
        client.put(&key, &value)?;
        expected.insert(key, value);
        if number % 5 == 4 {
            let gone = self::key(number / 2);
            client.delete(&gone)?;
            expected.remove(&gone);
        }
    }
    assert_eq!(
        range(&client, Bound::Unbounded, Bound::Unbounded)?,
        expected.clone().into_iter().collect::<Vec<_>>()
    );
    for number in 0..40 {
        let (one, other) = (key(number * 31), key(number * 57 + 1));
        let (low, high) = (one.as_slice().min(&other), one.as_slice().max(&other));
        for (from, to) in [
            (Bound::Included(low), Bound::Excluded(high)),
            (Bound::Excluded(low), Bound::Included(high)),
            (Bound::Unbounded, Bound::Excluded(low)),
            (Bound::Included(high), Bound::Unbounded),
        ] {
            let wanted = expected.range::<[u8], _>((from, to));
            let wanted: Vec<_> = wanted.map(|(key, value)| (key.clone(), value.clone())).collect();
            assert_eq!(range(&client, from, to)?, wanted, "from {from:?} to {to:?}");
        }
        // Bounds that leave nothing in between, the wrong way round too.
        assert_eq!(range(&client, Bound::Excluded(low), Bound::Excluded(low))?, []);
        assert_eq!(range(&client, Bound::Excluded(high), Bound::Excluded(low))?, []);
    }
    Ok(())
}

/// Keys that nobody touches are told exactly once and in order, while writers split and empty what lies between them.
pub(super) fn a_range_is_exact_under_writers(fixture: &Fixture) -> Outcome {
    const THREADS: usize = 3;
    let store = fixture.create()?;
    let stable = fixture.scaled(1_000, 60) as u64;
    let mut client = store.client();
    for number in 0..stable {
        client.put(format!("{number:06} stable").as_bytes(), b"as it was")?;
    }
    drop(client);
    let writing = AtomicUsize::new(THREADS - 1);
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        if thread == 0 {
            loop {
                let last = writing.load(Ordering::Acquire) == 0;
                let found = range(&client, Bound::Unbounded, Bound::Unbounded)?;
                assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "not in order, or twice");
                let kept = found.iter().filter(|(key, _)| key.ends_with(b"stable")).count();
                assert_eq!(kept as u64, stable, "a key that was there all the time is missing");
                if last {
                    return Ok(());
                }
            }
        }
        for number in 0..fixture.scaled(4_000, 80) as u64 {
            let place = number * 7 % stable;
            let key = format!("{place:06} moving {thread} {}", number % 3).into_bytes();
            match number % 4 {
                3 => client.delete(&key)?,
                _ => client.put(&key, &value_of(&key, number, 20))?,
            }
        }
        writing.fetch_sub(1, Ordering::Release);
        Ok(())
    })
}

/// A design without order says so.
pub(super) fn without_order_a_range_is_refused(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let client = store.client();
    let refused = client.pin().range(Bound::Unbounded, Bound::Unbounded).err();
    assert!(matches!(refused, Some(Error::Unsupported { what: "range scans" })), "{refused:?}");
    Ok(())
}

/// Keys of eight bytes and of others, some the beginning of others.
fn key(number: u64) -> Vec<u8> {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    match number % 4 {
        0 => scattered.to_be_bytes().to_vec(),
        1 => format!("{}", scattered % 1000).into_bytes(),
        2 => format!("a common beginning {}", scattered % 500).into_bytes(),
        _ => [&scattered.to_be_bytes()[..], b"\0and more"].concat(),
    }
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn range(client: &Client, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<Pairs, Error> {
    let guard = client.pin();
    let pairs = guard.range(from, to)?;
    pairs.map(|pair| pair.map(|(key, value)| (key.into_owned(), value.into_owned()))).collect()
}
