//! Keys in their order, of designs that keep them so.

use super::contents::{put, value_of};
use super::fixture::{Fixture, Outcome};
use quipu::{Client, Error};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Every range is that of a sorted map, whatever its bounds, with keys that begin alike, are of any length,
/// and are deleted again.
pub(super) fn ranges_are_those_of_a_sorted_map(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    let mut expected = BTreeMap::new();
    for number in 0..fixture.scaled(3_000, 150) as u64 {
        let key = key(number);
        put(&mut client, &mut expected, key, number, 30)?;
        if number % 5 == 4 {
            let gone = self::key(number / 2);
            client.delete(&gone)?;
            expected.remove(&gone);
        }
    }
    let all: Vec<_> = expected.clone().into_iter().collect();
    for pattern in [!0, 0, 0b10, 0b0111] {
        assert_eq!(from_both_ends(&client, Bound::Unbounded, Bound::Unbounded, pattern)?, all);
    }
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
            for pattern in [!0, 0, 0b110 << (number % 8)] {
                let found = from_both_ends(&client, from, to, pattern)?;
                assert_eq!(found, wanted, "from {from:?} to {to:?}, ends {pattern:b}");
            }
        }
        // Bounds that leave nothing in between, the wrong way round too.
        for (from, pattern) in [(low, !0), (high, !0), (low, 0), (high, 0)] {
            let found = from_both_ends(&client, Bound::Excluded(from), Bound::Excluded(low), pattern)?;
            assert_eq!(found, [], "from {from:?} to {low:?}, ends {pattern:b}");
        }
    }
    Ok(())
}

/// Keys that nobody touches are told exactly once and in order, while writers split and empty what lies
/// between them.
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
                // In order, against it, and from both ends.
                for pattern in [!0, 0, 0b01101] {
                    let found = from_both_ends(&client, Bound::Unbounded, Bound::Unbounded, pattern)?;
                    let in_order = found.windows(2).all(|pair| pair[0].0 < pair[1].0);
                    assert!(in_order, "not in order, or twice, ends {pattern:b}");
                    let kept = found.iter().filter(|(key, _)| key.ends_with(b"stable")).count();
                    assert_eq!(
                        kept as u64, stable,
                        "a key is missing that was there all the time, ends {pattern:b}"
                    );
                }
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

/// Keys with a prefix are those that begin with it, whatever its bytes; and the first and the last key are at
/// the ends.
pub(super) fn prefixes_and_ends_are_those_of_a_sorted_map(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut client = store.client();
    assert!(client.pin().first()?.is_none() && client.pin().last()?.is_none());
    let bytes = [0, 1, b'a', 0xFE, 0xFF];
    let keys = (1..=4u32).flat_map(|len| (0..5usize.pow(len)).map(move |number| (len, number)));
    let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (len, number) in keys.step_by(fixture.scaled(1, 7)) {
        let key: Vec<u8> = (0..len).map(|place| bytes[number / 5usize.pow(place) % 5]).collect();
        // All beginnings at all places of the eight bytes that an index may look at together.
        for front in [&b""[..], &[0xFF; 7], &[0xFF; 8], b"sixteen bytes ..", b"1234567"] {
            let key = [front, &key].concat();
            client.put(&key, &key)?;
            expected.insert(key.clone(), key);
        }
    }
    let guard = client.pin();
    let owned = |(key, value): (Cow<'_, [u8]>, Cow<'_, [u8]>)| (key.into_owned(), value.into_owned());
    assert_eq!(guard.first()?.map(owned), expected.clone().into_iter().next());
    assert_eq!(guard.last()?.map(owned), expected.clone().into_iter().next_back());
    for front in [&b""[..], &[0xFF; 6], &[0xFF; 8], &[0xFF; 13], b"sixteen bytes ..", b"1234567", b"2"] {
        for rest in [&[][..], &[0], &[0xFF], &[0xFE, 0xFF], &[b'a', 0xFF, 0xFF], &[0xFF; 4], &[1, 2]] {
            let prefix = [front, rest].concat();
            let mut wanted: Vec<_> = expected.keys().filter(|key| key.starts_with(&prefix)).collect();
            let keys = |pair: Result<(Cow<'_, [u8]>, _), Error>| pair.map(|(key, _)| key.into_owned());
            let found: Vec<Vec<u8>> = guard.prefix(&prefix)?.map(keys).collect::<Result<_, _>>()?;
            assert!(found.iter().eq(wanted.iter().copied()), "{prefix:?}: {} keys", found.len());
            let found: Vec<Vec<u8>> = guard.prefix(&prefix)?.rev().map(keys).collect::<Result<_, _>>()?;
            wanted.reverse();
            assert!(found.iter().eq(wanted), "{prefix:?} back: {} keys", found.len());
        }
    }
    Ok(())
}

/// Keys are put at the end of a queue and taken from its front: each is taken once, and in order. So are runs
/// of them by one deletion, and keys that several threads take.
pub(super) fn a_queue_gives_each_key_once(fixture: &Fixture) -> Outcome {
    const THREADS: usize = 2;
    const RUN: u64 = 20;
    let store = fixture.create()?;
    let mut client = store.client();
    let (held, puts) = (fixture.scaled(100, 10) as u64, fixture.scaled(10_000, 200) as u64);
    for number in 0..held + puts {
        put_at_end(&mut client, number)?;
        if let Some(first) = number.checked_sub(held) {
            assert_eq!(take_first(&mut client)?, Some(first));
        }
    }
    let mut first = puts;
    for number in held + puts..held + 2 * puts {
        put_at_end(&mut client, number)?;
        if number + 1 - first == held + RUN {
            let (from, to) = (first.to_be_bytes(), (first + RUN).to_be_bytes());
            match client.delete_range(Bound::Included(&from), Bound::Excluded(&to)) {
                Err(Error::Unsupported { .. }) => {
                    (first..first + RUN).try_for_each(|gone| client.delete(&gone.to_be_bytes()))?;
                }
                done => done?,
            }
            first += RUN;
        }
    }
    let (next, taken) = (AtomicU64::new(held + 2 * puts), Mutex::new(Vec::new()));
    drop(client);
    fixture.in_parallel(THREADS, |_| {
        let mut client = store.client();
        for _ in 0..puts {
            put_at_end(&mut client, next.fetch_add(1, Ordering::Relaxed))?;
            let number = take_first(&mut client)?.expect("all threads put before they take");
            taken.lock().expect("nobody has failed").push(number);
        }
        Ok(())
    })?;
    let mut client = store.client();
    let mut taken = taken.into_inner().expect("nobody has failed");
    while let Some(number) = take_first(&mut client)? {
        taken.push(number);
    }
    taken.sort_unstable();
    assert!(taken.into_iter().eq(first..next.into_inner()), "a key was taken twice, or never");
    Ok(())
}

fn put_at_end(client: &mut Client, number: u64) -> Result<(), Error> {
    let key = number.to_be_bytes();
    client.put(&key, &value_of(&key, number, 20))
}

/// Takes the first key of a queue, unless there is none.
fn take_first(client: &mut Client) -> Result<Option<u64>, Error> {
    loop {
        let first = client.pin().first()?.map(|(key, value)| (key.into_owned(), value.into_owned()));
        let Some((key, value)) = first else { return Ok(None) };
        let number = u64::from_be_bytes(key[..].try_into().expect("eight bytes"));
        assert_eq!(value, value_of(&key, number, 20));
        if client.remove(&key)? {
            return Ok(Some(number));
        }
    }
}

/// A design without order says so.
pub(super) fn without_order_a_range_is_refused(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let client = store.client();
    let guard = client.pin();
    let range = guard.range(Bound::Unbounded, Bound::Unbounded).err();
    for refused in [range, guard.prefix(b"key").err(), guard.first().err(), guard.last().err()] {
        assert!(matches!(refused, Some(Error::Unsupported { what: "range scans" })), "{refused:?}");
    }
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

/// The pairs of a range, put in order. The next bit of a pattern says from which end each comes: from the
/// front for one, from the back for zero. When one end has no more, the other has none either.
fn from_both_ends(
    client: &Client,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    mut pattern: u32,
) -> Result<Pairs, Error> {
    let guard = client.pin();
    let mut pairs = guard.range(from, to)?;
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let is_front = pattern & 1 == 1;
        pattern = pattern.rotate_right(1);
        let pair = if is_front { pairs.next() } else { pairs.next_back() };
        let Some((key, value)) = pair.transpose()? else { break };
        let told = if is_front { &mut front } else { &mut back };
        told.push((key.into_owned(), value.into_owned()));
    }
    assert!(pairs.next().is_none() && pairs.next_back().is_none(), "it goes on behind the end");
    back.reverse();
    front.append(&mut back);
    Ok(front)
}
