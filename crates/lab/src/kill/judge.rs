//! The pool of a dead writer, held against its acknowledgements.

use super::plan::Extent;
use crate::action::{Action, Outcome};
use crate::calls::prove;
use crate::linear::{BUDGET, Caller, Contents, History, Operation, Verdict, check, contents};
use quipu::Store;

/// Reads an open pool whose structures are sound.
pub(super) fn read(store: &mut Store, extent: Extent) -> Result<Contents, String> {
    if let Some(lost) = store.recovery().lost.first() {
        return Err(format!("recovery lost {} at byte {}", lost.what, lost.offset));
    }
    prove(store)?;
    let clients = extent.clients(store).map_err(|error| format!("a table is lost: {error}"))?;
    let mut found = Contents::new();
    for (table, client) in clients.iter().enumerate() {
        found.extend(contents(client, &extent.keys_of(table))?);
    }
    Ok(found)
}

/// Judges an open pool: the contents, if nothing is wrong.
pub(super) fn judge(
    store: &mut Store,
    extent: Extent,
    before: &Contents,
    mut operations: Vec<Operation>,
) -> Result<Contents, String> {
    let found = read(store, extent)?;
    let stamps =
        operations.iter().map(|operation| operation.returned.map_or(operation.invoked, |(end, _)| end));
    let last = stamps.max().unwrap_or_default();
    for key in 0..extent.keys {
        let seen = found.get(&key).copied();
        operations.push(Operation {
            caller: Caller::Afterwards,
            key,
            action: Action::Get,
            invoked: last + 1,
            returned: Some((last + 2, Outcome::Saw(seen))),
        });
    }
    match check(&History { initial: before.clone(), operations }, BUDGET) {
        Verdict::Linearizable => Ok(found),
        Verdict::Violation(violation) => Err(violation.to_string()),
        Verdict::Undecided { key, operations } => {
            Err(format!("the checker could not decide on the {operations} calls on key {key}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Value;
    use crate::linear::{encode, key_bytes};
    use quipu::{Design, Options};
    use quipu_medium::{Pages, Region};

    fn put(value: Value, returned: bool) -> Operation {
        Operation {
            caller: Caller::Thread(0),
            key: 1,
            action: Action::Put(value),
            invoked: value * 2,
            returned: returned.then_some((value * 2 + 1, Outcome::Done)),
        }
    }

    fn verdict(contents: &[(&[u8], Vec<u8>)], operations: &[Operation]) -> Result<Contents, String> {
        let region = Region::dram(4 << 20, Pages::Ordinary).unwrap();
        let mut store = Store::create_on(region, &Options::default()).unwrap();
        let mut client = store.client();
        for (key, value) in contents {
            client.put(key, value).unwrap();
        }
        drop(client);
        judge(&mut store, Extent::of(Design::default()), &Contents::new(), operations.to_vec())
    }

    #[test]
    fn the_last_acknowledged_write_or_one_in_flight_is_right_and_nothing_else() {
        let calls = [put(1, true), put(2, true), put(3, false)];
        let key = &key_bytes(1)[..];
        for right in [2, 3] {
            assert_eq!(verdict(&[(key, encode(1, right))], &calls), Ok([(1, right)].into()));
        }
        for wrong in [vec![(key, encode(1, 1))], vec![], vec![(key, encode(1, 4))], vec![(key, encode(2, 2))]]
        {
            assert!(verdict(&wrong, &calls).unwrap_err().contains("no order explains"), "{wrong:?}");
        }
        let stranger = verdict(&[(key, encode(1, 2)), (b"llama", b"wool".to_vec())], &calls);
        assert!(stranger.unwrap_err().contains("key llama appeared"));
        let elsewhere = &key_bytes(2)[..];
        let twice = [(key, encode(1, 2)), (elsewhere, encode(2, 2))];
        assert!(verdict(&twice, &calls).unwrap_err().contains("key 2: no order explains"));
    }
}
