//! Carries out the transfers of a run, and records them.
//!
//! A commit is one atomic call of the recorder: an update of each account that it writes, which has seen what
//! the transaction has read there. So a commit that overlooks a write of another has no explanation, whether
//! the machine crashes or not. Keys that a serializable transaction has only read are part of this call too.
//! Reads of the state at the beginning are held against the prefixes of all writes, as those of a snapshot
//! are.

use super::bank::{MOST, amount, sum};
use super::hand::Hand;
use super::history::{Recorder, Running};
use super::ledger::Held;
use super::levels::is_room;
use super::oracle::{Action, Outcome, State};
use super::records::Records;
use super::transfers::{End, TABLES, Transfer};
use quipu::{Error, ErrorKind, Isolation, Table, Transaction};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The accounts that a transaction has read and those that it has written, and its state.
struct Work<'w> {
    recorder: &'w RefCell<Recorder>,
    records: Records,
    tables: &'w [(usize, Table)],
    isolation: Isolation,
    held: Option<Held>,
    read: BTreeMap<usize, State>,
    written: BTreeMap<usize, State>,
    /// A wrong answer.
    fault: Option<String>,
}

/// A commit in flight.
struct Commit {
    running: Running,
    outcomes: Vec<Outcome>,
}

/// The tables of all accounts; nothing if one of them is not there.
fn tables(hand: &Hand<'_>) -> Option<Vec<(usize, Table)>> {
    let mut recorder = hand.recorder.borrow_mut();
    let ledger = recorder.ledger()?;
    (0..TABLES).map(|slot| ledger.table(slot)).collect()
}

/// Creates the tables that are missing, and puts the first amounts into all accounts at once.
pub(super) fn deposit(hand: &mut Hand<'_>) -> Result<(), String> {
    (1..TABLES).try_for_each(|slot| hand.create(slot))?;
    let (recorder, records) = (hand.recorder, hand.records);
    let first = recorder.borrow_mut().bank().deposits();
    let (Some(tables), Some(first)) = (tables(hand), first) else { return Ok(()) };
    recorder.borrow_mut().bank().deposit_begins();
    let client = hand.client(0)?.expect("the default table");
    let since = least(recorder);
    let transaction = client.begin(Isolation::Snapshot).map_err(|error| error.to_string())?;
    let mut work = Work::new((recorder, records), &tables, Isolation::Snapshot, since);
    let mut transaction = transaction;
    let done = (0..records.keys).try_for_each(|account| {
        work.read(&mut transaction, account, false)?;
        work.write(&mut transaction, account, first)
    });
    let commit = work.end();
    let done = done.and_then(|()| transaction.commit());
    recorder.borrow_mut().bank().deposit_ends(done.is_ok());
    conclude(recorder, commit, done)
}

/// Sums up all accounts at one state.
pub(super) fn sum_up(hand: &mut Hand<'_>) -> Result<(), String> {
    let Some(tables) = tables(hand) else { return Ok(()) };
    let (recorder, records) = (hand.recorder, hand.records);
    let client = hand.client(0)?.expect("the default table");
    let since = least(recorder);
    let mut transaction = client.begin(Isolation::Snapshot).map_err(|error| error.to_string())?;
    let mut work = Work::new((recorder, records), &tables, Isolation::Snapshot, since);
    let done = work.sum_up(&mut transaction);
    let fault = work.fault.take();
    work.leave();
    match fault {
        Some(fault) => Err(fault),
        None => conclude(recorder, None, done),
    }
}

/// Carries out a transfer.
pub(super) fn transfer(hand: &mut Hand<'_>, transfer: &Transfer) -> Result<(), String> {
    let Some(tables) = tables(hand) else { return Ok(()) };
    let (recorder, records) = (hand.recorder, hand.records);
    let client = hand.client(0)?.expect("the default table");
    let mut since = least(recorder);
    let (mut commit, mut fault): (Option<Commit>, _) = (None, None);
    let mut attempt = |transaction: &mut Transaction<'_>| {
        // It is a further one: the commit of the one before met others, and has certainly done nothing.
        if let Some(Commit { running, .. }) = commit.take() {
            recorder.borrow_mut().withdraw(running);
        }
        let mut work = Work::new((recorder, records), &tables, transfer.isolation, since);
        let done = work.transfer(transaction, transfer);
        fault = work.fault.take();
        let ends = done.is_ok() && transfer.end != End::RollBack;
        match ends {
            true => commit = work.end(),
            false => work.leave(),
        }
        since = least(recorder);
        done
    };
    let done = match transfer.end {
        End::Transact => client.transact(transfer.isolation, attempt),
        end => {
            let mut transaction = client.begin(transfer.isolation).map_err(|error| error.to_string())?;
            attempt(&mut transaction).and_then(|()| match end {
                End::RollBack => {
                    transaction.rollback();
                    Ok(())
                }
                _ => transaction.commit(),
            })
        }
    };
    conclude(recorder, commit, done)?;
    fault.map_or(Ok(()), Err)
}

/// The number from which on the state of a transaction may be that begins now.
fn least(recorder: &RefCell<Recorder>) -> u64 {
    recorder.borrow_mut().ledger().expect("transactions have an order").least()
}

/// Records the end of a transaction. One that met another, or found no room, has done nothing.
fn conclude(
    recorder: &RefCell<Recorder>,
    commit: Option<Commit>,
    done: Result<(), Error>,
) -> Result<(), String> {
    let mut recorder = recorder.borrow_mut();
    match (done, commit) {
        (Ok(()), Some(Commit { running, outcomes })) => {
            recorder.respond(running, &outcomes);
            recorder.bank().committed();
            Ok(())
        }
        (Ok(()), None) => Ok(()),
        (Err(error), commit) => {
            commit.into_iter().for_each(|commit| recorder.withdraw(commit.running));
            let is_large = matches!(error, Error::TransactionTooLarge { .. } | Error::BatchTooLarge { .. });
            if is_large || is_room(&error) || error.kind() == ErrorKind::Again {
                Ok(())
            } else {
                Err(error.to_string())
            }
        }
    }
}

impl<'w> Work<'w> {
    /// That of a transaction which has just begun; its state is one from a number on.
    fn new(
        (recorder, records): (&'w RefCell<Recorder>, Records),
        tables: &'w [(usize, Table)],
        isolation: Isolation,
        since: u64,
    ) -> Work<'w> {
        let has_state = isolation != Isolation::ReadCommitted;
        let held = has_state.then(|| recorder.borrow_mut().ledger().expect("it has an order").hold(since));
        let (read, written) = (BTreeMap::new(), BTreeMap::new());
        Work { recorder, records, tables, isolation, held, read, written, fault: None }
    }

    fn table(&self, account: usize) -> &'w (usize, Table) {
        &self.tables[self.records.table(account)]
    }

    fn parse(&mut self, account: usize, value: Option<&[u8]>) -> State {
        self.records.parse_value(value).unwrap_or_else(|what| {
            self.fault.get_or_insert(format!("account {account}: {what}"));
            None
        })
    }

    /// Reads these accounts of one table by `how`, and records what it shows of those that are not written.
    fn look(
        &mut self,
        accounts: &[usize],
        how: impl FnOnce(&mut Work<'_>) -> Result<Vec<State>, Error>,
    ) -> Result<Vec<State>, Error> {
        let since = self.recorder.borrow().now();
        let others: Vec<_> =
            accounts.iter().copied().filter(|account| !self.written.contains_key(account)).collect();
        let calls: Vec<_> = match &self.held {
            Some(_) => Vec::new(),
            None => {
                let mut recorder = self.recorder.borrow_mut();
                others.iter().map(|account| recorder.invoke(&[(*account, Action::Get)])).collect()
            }
        };
        let states = match how(self) {
            Ok(states) => states,
            Err(error) => {
                calls.into_iter().for_each(|call| self.recorder.borrow_mut().withdraw(call));
                return Err(error);
            }
        };
        let all: BTreeMap<_, _> = accounts.iter().copied().zip(states.iter().copied()).collect();
        for (account, state) in &all {
            if let Some(own) = self.written.get(account)
                && own != state
            {
                self.fault.get_or_insert(format!("wrote {own:x?} to account {account}, and read {state:x?}"));
            }
        }
        let seen: Vec<_> = others.iter().map(|account| (*account, all[account])).collect();
        if let Some(held) = &mut self.held
            && let Some((first, _)) = seen.first()
        {
            let (number, _) = &self.tables[self.records.table(*first)];
            self.recorder.borrow_mut().look(held, *number, &seen, since);
        }
        for (call, (_, state)) in calls.into_iter().zip(&seen) {
            self.recorder.borrow_mut().respond(call, &[Outcome::Saw(*state)]);
        }
        self.read.extend(seen);
        Ok(states)
    }

    /// The amount of an account.
    fn read(
        &mut self,
        transaction: &mut Transaction<'_>,
        account: usize,
        for_update: bool,
    ) -> Result<u64, Error> {
        let (key, (_, table)) = (self.records.key(account), self.table(account));
        let states = self.look(&[account], |work| {
            let mut on = transaction.on(table)?;
            let value = if for_update { on.get_for_update(&key)? } else { on.get(&key)? };
            Ok(vec![work.parse(account, value.as_deref())])
        })?;
        Ok(amount(states[0]))
    }

    /// The states of a stretch of accounts of one table, by iteration; even ones are walked backwards.
    fn walk(&mut self, transaction: &mut Transaction<'_>, accounts: &[usize]) -> Result<Vec<State>, Error> {
        let (Some(first), Some(last)) = (accounts.first(), accounts.last()) else { return Ok(Vec::new()) };
        let (from, to, (_, table)) = (self.records.key(*first), self.records.key(*last), self.table(*first));
        let slot = self.records.table(*first);
        self.look(accounts, |work| {
            let on = transaction.on(table)?;
            let range = on.range(Bound::Included(&from), Bound::Included(&to));
            let pairs: Result<Vec<_>, Error> =
                if first % 2 == 0 { range.rev().collect() } else { range.collect() };
            let mut seen: BTreeMap<usize, State> = accounts.iter().map(|account| (*account, None)).collect();
            for (key, value) in pairs? {
                let account = work.records.parse_key(slot, &key).filter(|account| seen.contains_key(account));
                match account {
                    Some(account) => {
                        let state = work.parse(account, Some(&value));
                        if seen.insert(account, state) != Some(None) {
                            work.fault.get_or_insert(format!("a range shows account {account} twice"));
                        }
                    }
                    None => _ = work.fault.get_or_insert("a range shows a key that is not in it".into()),
                }
            }
            Ok(seen.into_values().collect())
        })
    }

    /// The accounts of a table, in order of their keys.
    fn accounts(&self, slot: usize) -> Vec<usize> {
        (0..self.records.keys).filter(|account| self.records.table(*account) == slot).collect()
    }

    /// All amounts of one state must have their sum, with those written here.
    fn sum_up(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Error> {
        let mut states = Vec::new();
        for slot in 0..TABLES {
            let accounts = self.accounts(slot);
            states.extend(self.walk(transaction, &accounts)?);
        }
        let (found, allowed) = (sum(&states), self.recorder.borrow_mut().bank().sums());
        if !allowed.contains(&found) {
            self.fault
                .get_or_insert(format!("a transaction finds the sum {found}, possible are {allowed:?}"));
        }
        Ok(())
    }

    /// Gives an account this amount.
    fn write(&mut self, transaction: &mut Transaction<'_>, account: usize, amount: u64) -> Result<(), Error> {
        let state = self.put(transaction, account, amount)?;
        self.written.insert(account, state);
        Ok(())
    }

    fn put(
        &mut self,
        transaction: &mut Transaction<'_>,
        account: usize,
        amount: u64,
    ) -> Result<State, Error> {
        let (key, (_, table)) = (self.records.key(account), self.table(account));
        let state = self.recorder.borrow_mut().bank().state(amount);
        let mut on = transaction.on(table)?;
        match state {
            Some(value) => on.put(&key, &self.records.value(value))?,
            None => on.delete(&key)?,
        }
        Ok(state)
    }

    /// Writes that are rolled back to a savepoint, and those to a later one before.
    fn stray(&mut self, transaction: &mut Transaction<'_>, accounts: &[usize]) -> Result<(), Error> {
        let first = transaction.savepoint();
        for account in accounts {
            self.put(transaction, *account, 1 + *account as u64 % MOST)?;
        }
        let second = transaction.savepoint();
        for account in accounts {
            self.put(transaction, *account, 0)?;
        }
        transaction.rollback_to(&second)?;
        transaction.rollback_to(&first)
    }

    /// The reads and writes of a transfer.
    fn transfer(&mut self, transaction: &mut Transaction<'_>, transfer: &Transfer) -> Result<(), Error> {
        let mut from = transfer.from;
        if let Some((first, count)) = transfer.range {
            let table = self.accounts(self.records.table(first));
            let accounts: Vec<_> =
                table.into_iter().filter(|account| *account >= first).take(count).collect();
            let states = self.walk(transaction, &accounts)?;
            let richest = accounts.into_iter().zip(states).max_by_key(|(_, state)| amount(*state));
            from = richest.filter(|(_, state)| state.is_some()).map_or(from, |(account, _)| account);
        }
        let to: Vec<_> = transfer.to.iter().copied().filter(|account| *account != from).collect();
        let all: Vec<_> = std::iter::once(from).chain(to.iter().copied()).collect();
        if transfer.has_savepoints {
            self.stray(transaction, &all)?;
        }
        // Of two that read the newest state the later one counts, unless they say what decides.
        let for_update = transfer.for_update || self.isolation == Isolation::ReadCommitted;
        let has = self.read(transaction, from, for_update)?;
        let mut left = has.min(transfer.amount);
        let mut moved = 0;
        for (at, account) in to.iter().enumerate() {
            let amount = self.read(transaction, *account, for_update)?;
            let part = left.div_ceil((to.len() - at) as u64).min(MOST - amount);
            if part > 0 {
                self.write(transaction, *account, amount + part)?;
                (left, moved) = (left - part, moved + part);
            }
        }
        if moved > 0 {
            self.write(transaction, from, has - moved)?;
        }
        if transfer.has_savepoints {
            self.stray(transaction, &all)?;
            if let Some(account) = self.written.keys().next().copied() {
                self.read(transaction, account, false)?;
            }
        }
        if transfer.sums_up {
            self.sum_up(transaction)?;
        }
        Ok(())
    }

    /// Gives its state back.
    fn leave(self) {
        if let Some(held) = self.held {
            self.recorder.borrow_mut().ledger().expect("it has an order").leave(held);
        }
    }

    /// The transaction is about to commit; nothing is recorded of one that has written nothing.
    fn end(self) -> Option<Commit> {
        let Work { recorder, isolation, read, written, .. } = &self;
        let all = read.iter().filter_map(|(account, state)| {
            let action = match written.get(account) {
                Some(new) => Action::Update(*new),
                None if *isolation == Isolation::Serializable => Action::Get,
                None => return None,
            };
            Some(((*account, action), Outcome::Saw(*state)))
        });
        let (actions, outcomes): (Vec<_>, Vec<_>) = all.unzip();
        let commit = (!written.is_empty())
            .then(|| Commit { running: recorder.borrow_mut().invoke_atomic(&actions), outcomes });
        self.leave();
        commit
    }
}
