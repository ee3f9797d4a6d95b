//! The state that every key must have, and the calls that keep it so.

use crate::action::{State, Value};
use crate::linear::{Contents, decode, encode, key_bytes};
use quipu::{Client, Error};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of every key, which a caller holds while it calls with that key: so it is known exactly, at any
/// moment. Clients still meet at the stripes of keys, and with compaction.
pub(super) struct Model {
    keys: Vec<Mutex<State>>,
    next_value: AtomicU64,
    puts: AtomicU64,
    deletes: AtomicU64,
}

impl Model {
    /// All of so many keys are absent.
    pub(super) fn new(keys: u64) -> Model {
        let keys = (0..keys).map(|_| Mutex::new(None)).collect();
        Model { keys, next_value: 1.into(), puts: 0.into(), deletes: 0.into() }
    }

    fn key(&self, key: u64) -> MutexGuard<'_, State> {
        self.keys[key as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to one of the first `keys` keys: half of the calls that write delete.
    pub(super) fn call(&self, client: &mut Client, keys: u64, random: &mut SmallRng) -> Result<(), String> {
        let key = random.random_range(0..keys);
        let name = key_bytes(key);
        let mut state = self.key(key);
        let before = *state;
        let refused = |call: &str, error: Error| format!("key {key}: the store refuses a {call}: {error}");
        let wrong =
            |call: &str, answer: String| format!("key {key} was {before:?}, but {call} answered {answer}");
        match random.random_range(0..9) {
            0..4 => {
                let value: Value = self.next_value.fetch_add(1, Ordering::Relaxed);
                self.puts.fetch_add(1, Ordering::Relaxed);
                client.put(&name, &encode(key, value)).map_err(|error| refused("put", error))?;
                *state = Some(value);
            }
            roll @ 4..8 => {
                self.deletes.fetch_add(1, Ordering::Relaxed);
                if roll < 6 {
                    client.delete(&name).map_err(|error| refused("delete", error))?;
                } else {
                    let was_there = client.remove(&name).map_err(|error| refused("remove", error))?;
                    if was_there != before.is_some() {
                        return Err(wrong("remove", was_there.to_string()));
                    }
                }
                *state = None;
            }
            _ => {
                let found = client
                    .get(&name)
                    .map_err(|error| refused("get", error))?
                    .map(|value| decode(key, &value));
                if found != before {
                    return Err(wrong("get", format!("{found:?}")));
                }
            }
        }
        Ok(())
    }

    /// Compares what a store holds with what it must hold.
    pub(super) fn compare(&self, found: &Contents) -> Result<(), String> {
        let mut lines = Vec::new();
        for key in 0..self.keys.len() as u64 {
            let (expected, found) = (*self.key(key), found.get(&key).copied());
            if expected != found {
                let what = match (expected, found) {
                    (None, Some(_)) => "returned after it was deleted",
                    (Some(_), None) => "is lost",
                    _ => "has another value",
                };
                lines.push(format!("key {key} {what}: it must be {expected:?} and is {found:?}"));
            }
        }
        let differences = lines.len();
        if differences == 0 {
            return Ok(());
        }
        lines.truncate(5);
        Err(format!("{differences} of {} keys are wrong:\n{}", self.keys.len(), lines.join("\n")))
    }

    /// Calls that inserted or overwrote, and calls that deleted.
    pub(super) fn calls(&self) -> (u64, u64) {
        (self.puts.load(Ordering::Relaxed), self.deletes.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named() {
        let model = Model::new(4);
        *model.key(0) = Some(7);
        *model.key(1) = Some(8);
        assert_eq!(model.compare(&Contents::from([(0, 7), (1, 8)])), Ok(()));
        let text = model.compare(&Contents::from([(0, 6), (3, 1)])).unwrap_err();
        for part in
            ["3 of 4 keys", "key 0 has another value", "key 1 is lost", "key 3 returned after it was deleted"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
