//! Space: it comes back, whatever was written, and nothing comes back with it.

use super::contents::{Contents, put, value_of, verify, verify_kept};
use super::fixture::{Ending, Fixture, Outcome};

/// Many times what the pool holds, over keys that fill three quarters of it.
pub(super) fn a_pool_is_written_to_for_ever(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut expected = Contents::new();
    let mut client = store.client();
    let keys = 2_700u64;
    let rounds = fixture.scaled(30_000, 6_000) as u64;
    for round in 0..rounds {
        let key = (round * round % keys).to_le_bytes();
        put(&mut client, &mut expected, key.to_vec(), round, 900 + (round % 200) as usize)?;
    }
    drop(client);
    verify_kept(fixture, store, &expected)
}

/// Keys come and go, in a pool that is opened and closed, and compacted.
pub(super) fn deleted_keys_stay_away_and_their_space_comes_back(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    let empty = store.stats().free_zones;
    for round in 0..fixture.scaled(18, 6) as u64 {
        let mut client = store.client();
        for number in 0..400u64 {
            let key = (number % 40).to_le_bytes();
            if (number + round).is_multiple_of(2) {
                put(&mut client, &mut expected, key.to_vec(), round * 1000 + number, 300)?;
            } else {
                client.delete(&key)?;
                expected.remove(&key[..]);
            }
        }
        drop(client);
        if round % 3 == 0 {
            store.compact()?;
        }
        verify(&mut store, &expected);
        store = fixture.reopen(store, Ending::ALL[round as usize % 2])?;
        verify(&mut store, &expected);
    }
    let mut client = store.client();
    for key in expected.keys() {
        client.delete(key)?;
    }
    drop(client);
    // The first pass drops the records, the second the tombstones that had to outlive them.
    for _ in 0..3 {
        store.compact()?;
    }
    let stats = store.stats();
    assert_eq!(stats.records, 0);
    assert!(stats.free_zones + 2 >= empty, "{} zones of {empty} are free again", stats.free_zones);
    verify(&mut store, &Contents::new());
    Ok(())
}

/// Writers that all have to make room for themselves.
pub(super) fn threads_share_a_pool_that_is_nearly_full(fixture: &Fixture) -> Outcome {
    const THREADS: usize = 3;
    let mut store = fixture.create()?;
    let rounds = fixture.scaled(6_000, 1_000) as u64;
    let key_of = |thread: usize, round: u64| [thread as u64, round * 7 % 800].map(u64::to_le_bytes).concat();
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        for round in 0..rounds {
            let key = key_of(thread, round);
            let value = value_of(&key, round, 1000);
            client.put(&key, &value)?;
            assert_eq!(client.get(&key)?, Some(value), "thread {thread}, round {round}");
        }
        Ok(())
    })?;
    let mut expected = Contents::new();
    for (thread, round) in (0..THREADS).flat_map(|thread| (0..rounds).map(move |round| (thread, round))) {
        let key = key_of(thread, round);
        let value = value_of(&key, round, 1000);
        expected.insert(key, value);
    }
    verify(&mut store, &expected);
    Ok(())
}
