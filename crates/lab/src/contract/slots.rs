//! The promises of designs with records of one size: they are kept, their space comes back, and a word of a
//! value can be changed in place.

use super::contents::{Contents, put, put_until_full, value_of, verify};
use super::fixture::{Ending, Fixture, Outcome};
use quipu::Error;
use quipu::internals::RecordForm;

const KEY: usize = 12;
const VALUE: usize = 100;

/// Records of one size, none of a multiple of 8.
pub(super) const FORM: RecordForm = RecordForm::Fixed { key: KEY as u16, value: VALUE as u32 };

/// A word of the value that can be changed in place: at a multiple of 8 of key and value together.
const WORD: u64 = 4;

const THREADS: usize = 4;

fn key_of(number: usize) -> Vec<u8> {
    value_of(b"key", number as u64, KEY)
}

fn add(value: &mut [u8], number: u64) {
    let word = value[WORD as usize..].first_chunk_mut().expect("the value has the word");
    *word = u64::from_le_bytes(*word).wrapping_add(number).to_le_bytes();
}

/// Records that were put, replaced, changed in place and deleted survive both endings; other sizes are
/// refused.
pub(super) fn records_of_one_size_are_kept(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    assert_eq!(store.limits(), (KEY as u64, VALUE as u64));
    let mut expected = Contents::new();
    for (round, ending) in Ending::ALL.into_iter().cycle().take(4).enumerate() {
        let mut client = store.client();
        for number in 0..fixture.scaled(2_000, 200) {
            let key = key_of(number);
            match (number + round) % 4 {
                0 => {
                    client.delete(&key)?;
                    expected.remove(&key);
                }
                1 => {
                    let changed = client.update_in_place(&key, WORD, |old| old.wrapping_add(round as u64))?;
                    let value = expected.get_mut(&key);
                    assert_eq!(changed.is_some(), value.is_some(), "a key is changed if it is there");
                    value.into_iter().for_each(|value| add(value, round as u64));
                }
                _ => {
                    put(&mut client, &mut expected, key, round as u64, VALUE)?;
                }
            }
        }
        for (key, value) in [(KEY - 1, VALUE), (KEY, VALUE - 1), (KEY, 0)] {
            let refused = client.put(&vec![1; key], &vec![1; value]);
            assert!(matches!(refused, Err(Error::RecordSize { .. })), "{key} and {value} bytes: {refused:?}");
        }
        drop(client);
        store = fixture.reopen(store, ending)?;
        verify(&mut store, &expected);
    }
    Ok(())
}

/// A full pool takes many times its size of overwrites, and of new records in place of deleted ones.
pub(super) fn a_full_pool_of_slots_is_written_to_for_ever(fixture: &Fixture) -> Outcome {
    let mut store = fixture.create()?;
    let mut client = store.client();
    let mut expected = Contents::new();
    put_until_full(&mut client, &mut expected, VALUE, |number| key_of(number as usize))?;
    let full = expected.len();
    for number in (0..full).step_by(3) {
        client.delete(&key_of(number))?;
        expected.remove(&key_of(number));
    }
    let rounds = fixture.scaled(10 * full, full / 2);
    for round in 1..rounds {
        // Two of three keys are there all the time; the third comes and goes.
        let number = round * 7 % full;
        let key = key_of(number);
        if number.is_multiple_of(3) {
            client.delete(&key)?;
            expected.remove(&key);
        } else {
            put(&mut client, &mut expected, key, round as u64, VALUE)?;
        }
    }
    drop(client);
    verify(&mut store, &expected);
    Ok(())
}

/// The closure of an update in place reads the very page, and cannot write.
pub(super) fn an_update_in_place_reads_its_page(fixture: &Fixture) -> Outcome {
    let store = fixture.create()?;
    let (mut client, inner) = (store.client(), store.client());
    let value = |number| value_of(&key_of(number), 1, VALUE);
    for number in 0..20 {
        client.put(&key_of(number), &value(number))?;
    }
    let inner = std::cell::RefCell::new(inner);
    for number in 0..20 {
        let changed = client.update_in_place(&key_of(number), WORD, |old| {
            let mut inner = inner.borrow_mut();
            for other in number..20 {
                assert_eq!(inner.get(&key_of(other)).ok().flatten(), Some(value(other)));
            }
            assert_eq!(inner.pin().iter().count(), 20);
            for refused in [inner.put(&key_of(number), &value(0)), inner.delete(&key_of(0)), store.sync()] {
                assert!(matches!(refused, Err(quipu::Error::InsideUpdate)), "{refused:?}");
            }
            old.wrapping_add(1)
        })?;
        assert!(changed.is_some());
        let mut expected = value(number);
        add(&mut expected, 1);
        assert_eq!(client.get(&key_of(number))?, Some(expected));
    }
    Ok(())
}

/// No change in place is lost, whatever moves the records or shows them meanwhile, and the rest of the value
/// stays.
pub(super) fn updates_in_place_are_atomic(fixture: &Fixture) -> Outcome {
    const COUNTERS: usize = 3;
    let mut store = fixture.create()?;
    let rounds = fixture.scaled(4_000, 60);
    let mut expected: Contents =
        (0..COUNTERS).map(|number| (key_of(number), value_of(&key_of(number), 1, VALUE))).collect();
    let mut client = store.client();
    for (key, value) in &expected {
        client.put(key, value)?;
    }
    drop(client);
    fixture.in_parallel(THREADS, |thread| {
        let mut client = store.client();
        for round in 0..rounds {
            let key = key_of(round % COUNTERS);
            if (round + thread).is_multiple_of(4) {
                // The same by copy.
                client.update(&key, |old| {
                    old.map(<[u8]>::to_vec).map(|mut value| {
                        add(&mut value, 1);
                        value
                    })
                })?;
            } else {
                assert!(client.update_in_place(&key, WORD, |old| old.wrapping_add(1))?.is_some());
            }
            if round.is_multiple_of(rounds / 3) {
                store.compact()?;
            }
        }
        Ok(())
    })?;
    for number in 0..COUNTERS {
        let changes = THREADS * (number..rounds).step_by(COUNTERS).count();
        add(expected.get_mut(&key_of(number)).expect("a counter"), changes as u64);
    }
    verify(&mut store, &expected);
    Ok(())
}
