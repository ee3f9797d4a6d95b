//! The guarantees of several clients that work at once.

use super::contents::{Contents, value_of, verify};
use super::fixture::{Fixture, Outcome};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Threads of a check.
const THREADS: usize = 4;

/// Each key's final value is the last one of the thread that owns it, whatever the neighbours write.
pub(super) fn threads_do_not_disturb_each_other(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let rounds = fixture.scaled(4_000, 60);
    let key_of = |thread: usize, number: usize| format!("{}/{thread}", number % 37).into_bytes();
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        for round in 0..rounds {
            let key = key_of(thread, round);
            let value = value_of(&key, round as u64, round % 200);
            match round % 5 {
                0 => client.put_many(&[(&key[..], &b"first"[..]), (&key, &value)])?,
                1 => client.delete(&key)?,
                _ => client.put(&key, &value)?,
            }
            assert_eq!(
                client.get(&key)?,
                (round % 5 != 1).then_some(value),
                "thread {thread}, round {round}"
            );
        }
        Ok(())
    })?;
    let mut expected = Contents::new();
    for (thread, round) in (0..THREADS).flat_map(|thread| (0..rounds).map(move |round| (thread, round))) {
        let key = key_of(thread, round);
        match round % 5 {
            1 => drop(expected.remove(&key)),
            _ => drop(expected.insert(key.clone(), value_of(&key, round as u64, round % 200))),
        }
    }
    verify(&mut store, &expected);
    Ok(())
}

/// No increment of a counter is lost, by updates and by compare-and-swap.
pub(super) fn updates_are_atomic(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let rounds = fixture.scaled(4_000, 60);
    let number = |value: &[u8]| value.try_into().map_or(u64::MAX, u64::from_le_bytes);
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        for round in 0..rounds {
            let key = [(round % 3) as u8];
            if (round + thread).is_multiple_of(4) {
                loop {
                    let old = client.get(&key)?;
                    let new = old.as_deref().map_or(0, number) + 1;
                    if client.compare_and_swap(&key, old.as_deref(), Some(&new.to_le_bytes()))? {
                        break;
                    }
                }
            } else {
                client.update(&key, |old| Some((old.map_or(0, number) + 1).to_le_bytes()))?;
            }
        }
        Ok(())
    })?;
    let client = store.client();
    for counter in 0..3u8 {
        let sum = THREADS * (0..rounds).filter(|round| round % 3 == usize::from(counter)).count();
        assert_eq!(client.get(&[counter])?.as_deref().map(number), Some(sum as u64), "counter {counter}");
    }
    Ok(())
}

/// Of all threads that put an absent key, one is told that it did, and its value is there.
pub(super) fn one_put_if_absent_wins(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let rounds = fixture.scaled(2_000, 40);
    let winners: Vec<_> = (0..rounds).map(|_| AtomicUsize::new(usize::MAX)).collect();
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        for (round, winner) in winners.iter().enumerate() {
            if client.put_if_absent(&round.to_le_bytes(), &thread.to_le_bytes())? {
                let before = winner.swap(thread, Ordering::Relaxed);
                assert_eq!(before, usize::MAX, "threads {before} and {thread} both won round {round}");
            }
        }
        Ok(())
    })?;
    let client = store.client();
    for (round, winner) in winners.iter().enumerate() {
        let expected = winner.load(Ordering::Relaxed).to_le_bytes();
        assert_eq!(client.get(&round.to_le_bytes())?.as_deref(), Some(&expected[..]), "round {round}");
    }
    Ok(())
}

/// Batches of the same keys in other orders, updates and deletes end, and leave one whole value of each key.
pub(super) fn batches_and_single_writes_exclude_each_other(fixture: &Fixture) -> Outcome {
    const KEYS: usize = 80;
    let mut store = fixture.create()?;
    let rounds = fixture.scaled(300, 4);
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        for round in 0..rounds {
            let version = (round * THREADS + thread) as u64;
            let pairs: Vec<_> = (0..KEYS)
                .map(|number| (number * (2 * thread + 1) + round) % KEYS)
                .map(|number| (number.to_le_bytes(), value_of(&number.to_le_bytes(), version, 48)))
                .collect();
            client.put_many(&pairs)?;
            for (key, value) in pairs.iter().take(8) {
                client.delete(key)?;
                client.update(key, |_| Some(value))?;
            }
        }
        Ok(())
    })?;
    let mut expected = Contents::new();
    let client = store.client();
    for number in 0..KEYS {
        let key = number.to_le_bytes();
        let value = client.get(&key)?.expect("every key was put last by somebody");
        let whole = (0..(rounds * THREADS) as u64).any(|version| value == value_of(&key, version, 48));
        assert!(whole, "key {number} has a value that nobody wrote");
        expected.insert(key.to_vec(), value);
    }
    drop(client);
    verify(&mut store, &expected);
    Ok(())
}

/// Keys that nobody touches appear exactly once in every iteration, others at most once and whole, while
/// writers grow the index, rewrite and delete.
pub(super) fn iteration_is_exact_under_writers(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let stable = fixture.scaled(2_000, 200);
    let mut client = store.client();
    for number in 0..stable {
        client.put(format!("stable {number}").as_bytes(), b"as it was")?;
    }
    drop(client);
    let writing = AtomicUsize::new(THREADS - 1);
    let iterated = AtomicBool::new(false);
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        if thread == 0 {
            loop {
                // Asked first, so that one iteration follows the last write.
                let last = writing.load(Ordering::Acquire) == 0;
                let guard = client.pin();
                let mut seen = BTreeSet::new();
                let mut stable_seen = 0;
                for (key, value) in &guard {
                    assert!(seen.insert(key.clone()), "{} appears twice", key.escape_ascii());
                    if key.starts_with(b"stable") {
                        assert_eq!(*value, *b"as it was");
                        stable_seen += 1;
                    } else {
                        let version = value.first().copied().map_or(0, u64::from);
                        assert_eq!(value[1..], value_of(&key, version, 20), "a value that was never written");
                    }
                }
                assert_eq!(stable_seen, stable, "an iteration missed a key that was there all the time");
                iterated.store(true, Ordering::Release);
                if last {
                    return Ok(());
                }
            }
        }
        for number in 0..fixture.scaled(6_000, 100) {
            let key = format!("moving {thread} {number}").into_bytes();
            let mut value = vec![number as u8];
            value.extend(value_of(&key, u64::from(number as u8), 20));
            client.put(&key, &value)?;
            if number % 3 == 1 {
                client.delete(format!("moving {thread} {}", number / 2).as_bytes())?;
            }
        }
        writing.fetch_sub(1, Ordering::Release);
        Ok(())
    })?;
    assert!(iterated.load(Ordering::Acquire));
    Ok(())
}
