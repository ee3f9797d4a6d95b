//! Everything that a store holds, asked in every way.

use super::call::{Act, Call, Look, Span};
use super::codec::Key;
use super::hand::Hand;
use super::model::Model;
use quipu::Store;
use std::ops::Bound;

/// Keys that are asked for one by one.
const SINGLE: Key = 64;

/// Proves every structure of a store.
///
/// # Errors
/// The damage.
pub(crate) fn prove(store: &mut Store) -> Result<(), String> {
    let checked = store.check(&|_, _| {}).map_err(|error| format!("the pool cannot be checked: {error}"))?;
    if checked.is_sound() { Ok(()) } else { Err(format!("the pool is unsound: {}", checked.damage)) }
}

/// Proves every structure of a store that nobody uses, and lets each model judge what it finds of its own
/// keys, of which there are so many, in the tables with these names.
///
/// # Errors
/// The first fault.
pub fn verify<'m>(
    store: &mut Store,
    models: impl Iterator<Item = (&'m mut Model, &'m [String])>,
    keys: Key,
) -> Result<(), String> {
    prove(store)?;
    for (model, names) in models {
        let mut hand = Hand::new(store, names).map_err(|error| error.to_string())?;
        for table in 0..names.len() {
            let mut ask = |call: &Call| hand.perform(store, model, table, call);
            let everything = Span { from: Bound::Unbounded, to: Bound::Unbounded };
            ask(&Call::Look(Look::All(0)))?;
            ask(&Call::Look(Look::Range(everything, usize::MAX, 0b0110)))?;
            ask(&Call::GetMany((0..keys).collect()))?;
            (0..keys.min(SINGLE)).try_for_each(|key| ask(&Call::One(key, Act::Get)))?;
        }
    }
    Ok(())
}
