//! Everything that a store holds, in the numbers that histories speak of.

use super::values::{decode, key_bytes, key_number};
use crate::action::{State, Value};
use quipu::Client;
use std::collections::BTreeMap;

/// All keys with their values; absent ones are not in it.
pub(crate) type Contents = BTreeMap<u64, Value>;

/// Reads these keys, which ascend, by iteration and by key, and insists that both agree and that nothing is
/// foreign.
pub(crate) fn contents(client: &Client, keys: &[u64]) -> Result<Contents, String> {
    let guard = client.pin();
    let mut found = Contents::new();
    for (name, value) in &guard {
        let foreign = || format!("key {} appeared, which nobody wrote", name.escape_ascii());
        let key = key_number(&name).filter(|key| keys.binary_search(key).is_ok()).ok_or_else(foreign)?;
        if found.insert(key, decode(key, &value)).is_some() {
            return Err(format!("iteration returned key {key} twice"));
        }
    }
    for key in keys.iter().copied() {
        let value = guard.get(&key_bytes(key));
        let value = value.map_err(|error| format!("key {key} cannot be read: {error}"))?;
        let by_key: State = value.map(|value| decode(key, &value));
        let iterated = found.get(&key).copied();
        if by_key != iterated {
            return Err(format!("key {key}: get returned {by_key:?}, iteration {iterated:?}"));
        }
    }
    Ok(found)
}
