//! Carries out the steps of a run, and records them.

use super::hand::Hand;
use super::history::{Recorder, Running};
use super::levels::is_room;
use super::oracle::{Action, Outcome, State, changed, expiry, milliseconds};
use super::records::Records;
use super::transact::{deposit, sum_up, transfer};
use super::verdict::read_table;
use super::workload::Step;
use quipu::{Client, Error, WriteBatch};
use quipu_medium::sim::START_OF_TIME;
use std::cell::RefCell;
use std::ops::Bound;

/// Turns for which a reader idles while it is pinned: enough for others to rewrite memtables.
const IDLES: u32 = 400;

/// Carries out one step and records it. An error that a full pool or a dropped table explains is no
/// violation; any other is returned.
pub(super) fn perform(hand: &mut Hand<'_>, step: &Step) -> Result<(), String> {
    let (store, records, recorder) = (hand.store, hand.records, hand.recorder);
    match step {
        Step::Tick => {
            let now = recorder.borrow_mut().advance();
            let sim = store.region().simulator().expect("a simulated region");
            sim.set_now(milliseconds(now));
            Ok(())
        }
        Step::Compact => {
            hand.renew();
            match store.compact() {
                Err(error) if !is_room(&error) => Err(error.to_string()),
                _ => Ok(()),
            }
        }
        Step::One(key, action) => {
            let has_expiry = store.design().can().expiry;
            let Some(client) = hand.client(records.table(*key))? else { return Ok(()) };
            one(client, (*key, *action), records, has_expiry, recorder)
        }
        Step::PutMany(pairs) => {
            let table = pairs.first().map_or(0, |(key, _)| records.table(*key));
            // One call puts to one table.
            let of_table = |key: usize| key - records.table(key) + table;
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (of_table(*key), *value)).collect();
            let actions: Vec<_> = pairs.iter().map(|(key, value)| (*key, Action::Put(*value))).collect();
            let bytes: Vec<_> =
                pairs.iter().map(|(key, value)| (records.key(*key), records.value(*value))).collect();
            let Some(client) = hand.client(table)? else { return Ok(()) };
            let running = recorder.borrow_mut().invoke(&actions);
            match client.put_many(&bytes) {
                // Some pairs may be written.
                Err(error) if matches!(error, Error::TableDropped) || is_room(&error) => {
                    recorder.borrow_mut().break_off(running);
                    Ok(())
                }
                done => finish(running, done.map(|()| vec![Outcome::Done; actions.len()]), recorder),
            }
        }
        Step::Write(actions) => write(hand, actions),
        Step::DeleteRange(first, behind) => delete_range(hand, *first, *behind),
        Step::GetMany(keys) => get_many(hand, keys),
        Step::Scan(table) => scan(hand, *table),
        Step::Hold => hand.hold(),
        Step::Look => hand.look(),
        Step::Leave => {
            hand.leave();
            Ok(())
        }
        Step::Create(table) => hand.create(*table),
        Step::Drop(table) => hand.drop_table(*table),
        Step::Deposit => deposit(hand),
        Step::Transfer(what) => transfer(hand, what),
        Step::SumUp => sum_up(hand),
    }
}

fn write(hand: &mut Hand<'_>, actions: &[(usize, Action)]) -> Result<(), String> {
    let (records, recorder) = (hand.records, hand.recorder);
    let mut batch = WriteBatch::new();
    let mut there = Vec::with_capacity(actions.len());
    for (key, action) in actions {
        if records.tables > 1 {
            let table = recorder.borrow_mut().ledger().and_then(|ledger| ledger.table(records.table(*key)));
            let Some((_, table)) = table else { continue };
            batch.on(&table);
        }
        there.push((*key, *action));
        let key = records.key(*key);
        match action {
            Action::Put(value) => match expiry(*value) {
                Some(time) => batch.put_until(&key, &records.value(*value), milliseconds(time)),
                None => batch.put(&key, &records.value(*value)),
            },
            Action::Expire(value) => batch.put_until(&key, &records.value(*value), START_OF_TIME),
            Action::Delete => batch.delete(&key),
            other => unreachable!("no batch has {other:?}"),
        };
    }
    if there.is_empty() && !actions.is_empty() {
        return Ok(());
    }
    let Some(client) = hand.client(0)? else { return Ok(()) };
    let running = recorder.borrow_mut().invoke_atomic(&there);
    finish(running, client.write(&batch).map(|()| vec![Outcome::Done; there.len()]), recorder)
}

/// Deletes the keys of a table from one on and below another, or those that share the beginning of a name.
fn delete_range(hand: &mut Hand<'_>, first: usize, behind: Option<usize>) -> Result<(), String> {
    let (records, recorder) = (hand.records, hand.recorder);
    let table = records.table(first);
    let Some(client) = hand.client(table)? else { return Ok(()) };
    let (from, prefix) = (records.key(first), records.prefix(first));
    let is_in_it = |key: &usize| match behind {
        Some(behind) => (first..behind).contains(key),
        None => records.key(*key).starts_with(&prefix),
    };
    let keys = (0..records.keys).filter(|key| records.table(*key) == table).filter(is_in_it);
    let actions: Vec<_> = keys.map(|key| (key, Action::Delete)).collect();
    let running = recorder.borrow_mut().invoke_range(&actions);
    let done = match behind {
        Some(behind) if behind < records.keys => {
            client.delete_range(Bound::Included(&from), Bound::Excluded(&records.key(behind)))
        }
        Some(_) => client.delete_range(Bound::Included(&from), Bound::Unbounded),
        None => client.delete_prefix(&prefix),
    };
    finish(running, done.map(|()| vec![Outcome::Done; actions.len()]), recorder)
}

fn get_many(hand: &mut Hand<'_>, keys: &[usize]) -> Result<(), String> {
    let (records, recorder) = (hand.records, hand.recorder);
    for table in 0..records.tables {
        let keys: Vec<_> = keys.iter().copied().filter(|key| records.table(*key) == table).collect();
        if keys.is_empty() && records.tables > 1 {
            continue;
        }
        let Some(client) = hand.client(table)? else { continue };
        let actions: Vec<_> = keys.iter().map(|key| (*key, Action::Get)).collect();
        let bytes: Vec<_> = keys.iter().map(|key| records.key(*key)).collect();
        let running = recorder.borrow_mut().invoke(&actions);
        let mut outcomes = vec![Err("get_many skipped a key".to_string()); keys.len()];
        let done =
            client.get_many(&bytes, |i, value| outcomes[i] = records.parse_value(value).map(Outcome::Saw));
        let done = match done {
            Ok(()) => Ok(outcomes.into_iter().collect::<Result<Vec<_>, _>>()?),
            Err(error) => Err(error),
        };
        finish(running, done, recorder)?;
    }
    Ok(())
}

/// Reads all of a table by iteration, which sees one moment.
fn scan(hand: &mut Hand<'_>, table: usize) -> Result<(), String> {
    let (records, recorder) = (hand.records, hand.recorder);
    if recorder.borrow_mut().ledger().is_none() {
        return scan_unordered(hand);
    }
    let Some(client) = hand.client(table)? else { return Ok(()) };
    let keys: Vec<_> = (0..records.keys).filter(|key| records.table(*key) == table).collect();
    let actions: Vec<_> = keys.iter().map(|key| (*key, Action::Get)).collect();
    let running = recorder.borrow_mut().invoke(&actions);
    match read_table(&client.pin(), records, (table, IDLES))? {
        None => recorder.borrow_mut().withdraw(running),
        Some(seen) => {
            let outcomes: Vec<_> = seen.into_iter().map(|(_, state)| Outcome::Saw(state)).collect();
            recorder.borrow_mut().respond_at_once(running, &outcomes);
        }
    }
    Ok(())
}

/// Reads all keys by an iteration that shows each at a moment of its own. A key that is written meanwhile may
/// be left out. One iteration is judged at a time: each multiplies the ways in which things may have
/// happened.
fn scan_unordered(hand: &mut Hand<'_>) -> Result<(), String> {
    let (records, recorder) = (hand.records, hand.recorder);
    let Some(client) = hand.client(0)? else { return Ok(()) };
    let is_judged = recorder.borrow_mut().begin_scan();
    let keys = 0..if is_judged { records.keys } else { 0 };
    let calls: Vec<_> = keys.map(|key| recorder.borrow_mut().invoke(&[(key, Action::Get)])).collect();
    let seen = read_table(&client.pin(), records, (0, IDLES))?.expect("its only table stays");
    if is_judged {
        recorder.borrow_mut().end_scan();
    }
    for (call, (_, state)) in calls.into_iter().zip(seen) {
        match state {
            None => recorder.borrow_mut().withdraw(call),
            Some(_) => recorder.borrow_mut().respond(call, &[Outcome::Saw(state)]),
        }
    }
    Ok(())
}

fn one(
    client: &mut Client,
    (key, action): (usize, Action),
    records: Records,
    has_expiry: bool,
    recorder: &RefCell<Recorder>,
) -> Result<(), String> {
    let bytes = records.key(key);
    let running = recorder.borrow_mut().invoke(&[(key, action)]);
    let state_bytes = |state: State| state.map(|value| records.value(value));
    let result = match action {
        Action::Get => match client.get(&bytes) {
            Ok(value) => Ok(Outcome::Saw(records.parse_value(value.as_deref())?)),
            Err(error) => Err(error),
        },
        Action::Put(value) => {
            // Some have a time of expiry that never comes.
            let never = (has_expiry && value % 16 == 7).then_some(u64::MAX);
            let done = match expiry(value).map(milliseconds).or(never) {
                Some(time) => client.put_until(&bytes, &records.value(value), time),
                None => client.put(&bytes, &records.value(value)),
            };
            done.map(|()| Outcome::Done)
        }
        Action::Expire(value) => {
            client.put_until(&bytes, &records.value(value), START_OF_TIME).map(|()| Outcome::Done)
        }
        Action::Delete => client.delete(&bytes).map(|()| Outcome::Done),
        Action::Remove => client.remove(&bytes).map(Outcome::Did),
        Action::Update(new) => {
            let mut seen = Ok(None);
            client
                .update(&bytes, |old| {
                    seen = records.parse_value(old);
                    state_bytes(new)
                })
                .and(Ok(Outcome::Saw(seen?)))
        }
        Action::PutIfAbsent(value) => client.put_if_absent(&bytes, &records.value(value)).map(Outcome::Did),
        Action::Swap(expected, new) => client
            .compare_and_swap(&bytes, state_bytes(expected).as_deref(), state_bytes(new).as_deref())
            .map(Outcome::Did),
        Action::Change(change) => {
            let at = records.word().expect("only records of one size are changed in place");
            client.update_in_place(&bytes, at, |word| changed(word, change)).map(Outcome::Saw)
        }
    };
    finish(running, result.map(|outcome| vec![outcome]), recorder)
}

/// Records the end of a call that has no effect if the pool is full, or the table has been dropped.
fn finish(
    running: Running,
    outcomes: Result<Vec<Outcome>, Error>,
    recorder: &RefCell<Recorder>,
) -> Result<(), String> {
    match outcomes {
        Ok(outcomes) => recorder.borrow_mut().respond(running, &outcomes),
        Err(Error::TableDropped) => recorder.borrow_mut().withdraw(running),
        Err(error) if is_room(&error) => recorder.borrow_mut().withdraw(running),
        Err(error) => return Err(error.to_string()),
    }
    Ok(())
}
