//! The threads of a writer that moves amounts between accounts.

use super::config::WriterConfig;
use super::frame::Acknowledgement;
use super::plan::Extent;
use super::transfers::{ACCOUNTS, FIRST, Parts, Plan, Transfer, journal, name};
use crate::action::{Outcome, Value};
use crate::linear::{Broken, Lie, decode, encode, key_bytes};
use quipu::{Client, Conditions, Error, Isolation, Store, Table, Transaction, WriteBatch};

/// A thread's access to the accounts.
struct Mover<'s> {
    client: Client,
    /// The tables of a design with transactions.
    tables: Vec<Table>,
    extent: Extent,
    store: &'s Store,
}

/// A transfer with all that it writes besides.
#[derive(Clone, Copy)]
struct Task {
    transfer: Transfer,
    /// The journal of its thread, and its name there.
    journal: [u64; 2],
    name: Value,
}

/// Puts the first amounts into the accounts, unless there are any.
pub(super) fn deposit(store: &Store, extent: Extent) -> Result<(), Error> {
    let mut mover = Mover::new(store, extent)?;
    let clients = extent.clients(store)?;
    for account in 0..ACCOUNTS {
        if clients[extent.table_of(account)].contains_key(&key_bytes(account))? {
            return Ok(());
        }
    }
    drop(clients);
    let mut batch = WriteBatch::new();
    (0..ACCOUNTS).for_each(|account| mover.add(&mut batch, account, FIRST));
    mover.client.write(&batch)
}

/// Carries out one transfer after another, and tells `acknowledge` of each. That one ends the thread by
/// `false`.
pub(super) fn move_amounts(
    config: &WriterConfig,
    store: &Store,
    thread: u64,
    mut acknowledge: impl FnMut(Acknowledgement) -> bool,
) -> Result<(), Error> {
    let mut mover = Mover::new(store, Extent::of_transfers(store.design()))?;
    let lie = config.twin.and_then(Broken::lie);
    for (number, transfer) in (0..).zip(Plan::new(config.seed, config.round, thread)) {
        let task = Task { transfer, journal: journal(thread), name: name(config.round, number) };
        let mut told = |moved: Option<Parts>| {
            let outcome = moved.map(|moved| Outcome::Saw(Some(moved.packed())));
            acknowledge(Acknowledgement { thread, number, invoked: 0, returned: 0, outcome })
        };
        let goes_on = match lie {
            Some(Lie::LatePut) => {
                let goes_on = told(Some(transfer.parts(mover.amount(transfer.from)?)));
                mover.carry_out(task)?;
                goes_on
            }
            Some(Lie::SplitUpdate) => told(Some(mover.carry_out_in_pieces(task)?)),
            _ => match mover.carry_out(task) {
                Ok(moved) => told(Some(moved)),
                // It had no effect.
                Err(error) if error.kind() == quipu::ErrorKind::Room => told(None),
                Err(error) => return Err(error),
            },
        };
        if !goes_on {
            return Ok(());
        }
    }
    Ok(())
}

impl<'s> Mover<'s> {
    fn new(store: &'s Store, extent: Extent) -> Result<Mover<'s>, Error> {
        let tables = match store.design().can().transactions {
            true => extent.tables.iter().map(|name| store.table(name)).collect::<Result<_, _>>()?,
            false => Vec::new(),
        };
        Ok(Mover { client: store.client(), tables, extent, store })
    }

    /// Adds a write to a batch: an empty account is deleted.
    fn add(&self, batch: &mut WriteBatch, key: u64, value: Value) {
        if let Some(table) = self.tables.get(self.extent.table_of(key)) {
            batch.on(table);
        }
        match value {
            0 if key < ACCOUNTS => batch.delete(&key_bytes(key)),
            value => batch.put(&key_bytes(key), &encode(key, value)),
        };
    }

    /// The amount of an account.
    fn amount(&self, account: u64) -> Result<Value, Error> {
        let clients = self.extent.clients(self.store)?;
        let value = clients[self.extent.table_of(account)].get(&key_bytes(account))?;
        Ok(value.map_or(0, |value| decode(account, &value)))
    }

    fn carry_out(&mut self, task: Task) -> Result<Parts, Error> {
        if self.tables.is_empty() { self.by_conditions(task) } else { self.by_transaction(task) }
    }

    fn by_transaction(&mut self, Task { transfer, journal, name }: Task) -> Result<Parts, Error> {
        let levels = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
        let isolation = levels[name as usize % levels.len()];
        let Mover { client, tables, extent, .. } = self;
        let table = |key| &tables[extent.table_of(key)];
        client.transact(isolation, |transaction| {
            // Of two that read the newest state the later one counts, unless they say what decides.
            let for_update = isolation == Isolation::ReadCommitted;
            let read = |transaction: &mut Transaction<'_>, account| {
                let mut on = transaction.on(table(account))?;
                let key = key_bytes(account);
                let value = if for_update { on.get_for_update(&key)? } else { on.get(&key)? };
                Ok::<_, Error>(value.map_or(0, |value| decode(account, &value)))
            };
            let has = read(transaction, transfer.from)?;
            let [first, second] = transfer.to;
            let to = [read(transaction, first)?, read(transaction, second)?];
            let parts = transfer.parts(has);
            let written = [(journal[0], name), (journal[1], parts.packed())];
            for (key, value) in transfer.after(has, to, parts).into_iter().chain(written) {
                let mut on = transaction.on(table(key))?;
                match value {
                    0 if key < ACCOUNTS => on.delete(&key_bytes(key))?,
                    value => on.put(&key_bytes(key), &encode(key, value))?,
                }
            }
            Ok(parts)
        })
    }

    fn by_conditions(&mut self, Task { transfer, journal, name }: Task) -> Result<Parts, Error> {
        loop {
            let (mut conditions, mut batch) = (Conditions::new(), WriteBatch::new());
            let guard = self.client.pin();
            let mut read = |account| {
                let key = key_bytes(account);
                // The version first: a value that is newer than it fails the condition.
                let version = guard.version(&key)?;
                conditions.version(&key, version);
                // Without a version the account is empty: what comes now may be gone again when it counts.
                let value = if version.is_some() { guard.get(&key)? } else { None };
                Ok::<_, Error>(value.map_or(0, |value| decode(account, &value)))
            };
            let has = read(transfer.from)?;
            let to = [read(transfer.to[0])?, read(transfer.to[1])?];
            drop(guard);
            let parts = transfer.parts(has);
            transfer.after(has, to, parts).iter().for_each(|(key, value)| self.add(&mut batch, *key, *value));
            self.add(&mut batch, journal[0], name);
            self.add(&mut batch, journal[1], parts.packed());
            if self.client.write_if(&conditions, &batch)? {
                return Ok(parts);
            }
        }
    }

    /// As a program that knows of no transactions does it: each account by a write of its own.
    fn carry_out_in_pieces(&mut self, Task { transfer, journal, name }: Task) -> Result<Parts, Error> {
        let has = self.amount(transfer.from)?;
        let to = [self.amount(transfer.to[0])?, self.amount(transfer.to[1])?];
        let parts = transfer.parts(has);
        let written = [(journal[0], name), (journal[1], parts.packed())];
        for (key, value) in transfer.after(has, to, parts).into_iter().chain(written) {
            let mut batch = WriteBatch::new();
            self.add(&mut batch, key, value);
            self.client.write(&batch)?;
        }
        Ok(parts)
    }
}
