//! Atomic batches: all of their writes or none, whatever happens.

use super::contents::{Contents, value_of, verify, verify_kept};
use super::fixture::{Ending, Fixture, Outcome};
use quipu::{Error, WriteBatch};

/// Puts and deletes of keys that were there and that were not, some keys twice; kept by compaction and over
/// both endings.
pub(super) fn a_batch_writes_all_and_the_last_of_a_key_counts(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    for round in 0..fixture.scaled(40, 12) as u64 {
        let mut client = store.client();
        let mut batch = WriteBatch::new();
        for number in 0..round * 3 % 70 {
            let key = (number * 11 % 50).to_le_bytes();
            if (number + round).is_multiple_of(3) {
                batch.delete(&key);
                expected.remove(&key[..]);
            } else {
                let value = value_of(&key, round * 100 + number, (number * 13 % 300) as usize);
                batch.put(&key, &value);
                expected.insert(key.to_vec(), value);
            }
        }
        client.write(&batch)?;
        drop(client);
        verify(&mut store, &expected);
        if round % 5 == 4 {
            store.compact()?;
            verify(&mut store, &expected);
        }
        store = fixture.reopen(store, Ending::ALL[round as usize % 2])?;
        verify(&mut store, &expected);
    }
    Ok(())
}

/// As large as a segment holds, one byte more, and with something wrong in the midst.
pub(super) fn a_batch_that_cannot_be_written_whole_writes_nothing(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let mut expected = Contents::new();
    let mut client = store.client();
    let value = vec![7; 13_000];
    let fill = |last: usize| {
        let mut batch = WriteBatch::new();
        for number in 0..4u64 {
            batch.put(&number.to_le_bytes(), &value);
        }
        batch.put(b"the last", &vec![8; last]);
        batch
    };
    let limit = match client.write(&fill(value.len() + 1000)) {
        Err(Error::BatchTooLarge { len, limit }) => value.len() + 1000 - (len - limit) as usize,
        other => return Err(format!("a batch of more than a segment: {other:?}").into()),
    };
    assert_eq!(store.stats().records, 0);
    assert!(matches!(client.write(&fill(limit + 1)), Err(Error::BatchTooLarge { .. })));
    client.write(&fill(limit))?;
    for number in 0..4u64 {
        expected.insert(number.to_le_bytes().to_vec(), value.clone());
    }
    expected.insert(b"the last".to_vec(), vec![8; limit]);

    let mut empty_key = fill(5);
    empty_key.put(b"", b"no key");
    assert!(matches!(client.write(&empty_key), Err(Error::KeyEmpty { .. })));
    let mut long_key = WriteBatch::new();
    long_key.put(b"fine", b"").delete(&vec![1; 1 << 17]);
    assert!(matches!(client.write(&long_key), Err(Error::KeyTooLarge { .. })));
    client.write(&WriteBatch::new())?;
    drop(client);
    verify_kept(fixture, store, &expected)
}

/// A full pool takes batches of deletions, and refuses others whole.
pub(super) fn a_full_pool_takes_batches_that_delete(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut expected = Contents::new();
    let mut client = store.client();
    for number in 0u64.. {
        let (one, two) = ((2 * number).to_le_bytes(), (2 * number + 1).to_le_bytes());
        let value = value_of(&one, number, 700);
        match client.write(WriteBatch::new().put(&one, &value).put(&two, &value)) {
            Ok(()) => {
                expected.insert(one.to_vec(), value.clone());
                expected.insert(two.to_vec(), value);
            }
            Err(Error::PoolFull { .. }) => {
                assert_eq!(client.get(&one)?, None);
                assert_eq!(client.get(&two)?, None);
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let keys: Vec<_> = expected.keys().cloned().collect();
    for pair in keys.chunks(2) {
        let mut batch = WriteBatch::new();
        for key in pair {
            batch.delete(key);
        }
        client.write(&batch)?;
    }
    client.write(WriteBatch::new().put(b"room", b"again"))?;
    drop(client);
    verify(&mut store, &Contents::from([(b"room".to_vec(), b"again".to_vec())]));
    Ok(())
}

/// Batches of several clients over the same keys: at the end all keys are from one batch, for their stripes
/// are locked together.
pub(super) fn batches_do_not_mix(fixture: &Fixture) -> Outcome {
    const KEYS: u64 = 9;
    let store = fixture.create()?;
    for round in 0..fixture.scaled(60, 8) as u64 {
        fixture.in_parallel(3, |thread| {
            let mut client = store.client();
            for turn in 0..5u64 {
                let mut batch = WriteBatch::new();
                let name = [round, thread as u64, turn].map(u64::to_le_bytes).concat();
                for number in 0..KEYS {
                    // In different orders.
                    let key = (number * (thread as u64 * 2 + 1) % KEYS).to_le_bytes();
                    batch.put(&key, &name);
                }
                for number in 0..KEYS {
                    batch.put(&number.to_le_bytes(), &name);
                }
                client.write(&batch)?;
            }
            Ok(())
        })?;
        let client = store.client();
        let first = client.get(&0u64.to_le_bytes())?;
        for number in 0..KEYS {
            assert_eq!(client.get(&number.to_le_bytes())?, first, "key {number} is of another batch");
        }
    }
    Ok(())
}
