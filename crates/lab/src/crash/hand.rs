//! The hand of a task: its clients, one for each table, and its snapshot. It creates and drops tables too.

use super::history::Recorder;
use super::ledger::Held;
use super::levels::is_room;
use super::oracle::{Action, Outcome};
use super::records::Records;
use super::verdict::read_table;
use quipu::{Client, Error, Snapshot, Store};
use std::cell::RefCell;

/// The name of the table of a slot. The first has the keys of clients that name none.
pub(super) fn table_name(slot: usize) -> String {
    if slot == 0 { "default".to_owned() } else { format!("table-{slot}") }
}

/// See the module's documentation.
pub(super) struct Hand<'s> {
    pub(super) store: &'s Store,
    pub(super) records: Records,
    pub(super) recorder: &'s RefCell<Recorder>,
    client: Client,
    /// Clients of further tables, with the numbers of these.
    others: Vec<Option<(usize, Client)>>,
    snapshot: Option<(Snapshot, Held)>,
}

impl<'s> Hand<'s> {
    /// A hand with one client.
    pub(super) fn new(store: &'s Store, records: Records, recorder: &'s RefCell<Recorder>) -> Hand<'s> {
        let others = (1..records.tables).map(|_| None).collect();
        Hand { store, records, recorder, client: store.client(), others, snapshot: None }
    }

    /// Takes new clients in place of the old ones.
    pub(super) fn renew(&mut self) {
        self.client = self.store.client();
        self.others.fill_with(|| None);
    }

    /// The client of a table, unless that is not there. The caller uses it at once.
    pub(super) fn client(&mut self, slot: usize) -> Result<Option<&mut Client>, String> {
        if slot == 0 {
            return Ok(Some(&mut self.client));
        }
        let table = || self.recorder.borrow_mut().ledger().and_then(|ledger| ledger.table(slot));
        let Some((number, handle)) = table() else { return Ok(None) };
        let client = &mut self.others[slot - 1];
        if client.as_ref().is_none_or(|(of, _)| *of != number) {
            *client = match self.client.on(&handle) {
                Ok(new) => Some((number, new)),
                Err(Error::TableDropped) => None,
                Err(error) => return Err(error.to_string()),
            };
            // Another task may have dropped it meanwhile.
            if table().is_none_or(|(now, _)| now != number) {
                return Ok(None);
            }
        }
        Ok(client.as_mut().map(|(_, client)| client))
    }

    /// Takes a snapshot.
    pub(super) fn hold(&mut self) -> Result<(), String> {
        if self.snapshot.is_none() {
            let since = self.recorder.borrow_mut().ledger().map(|ledger| ledger.least());
            let Some(since) = since else { return Ok(()) };
            let snapshot = self.store.snapshot().map_err(|error| error.to_string())?;
            let held = self.recorder.borrow_mut().ledger().map(|ledger| ledger.hold(since));
            self.snapshot = held.map(|held| (snapshot, held));
        }
        Ok(())
    }

    /// Reads all tables at the snapshot.
    pub(super) fn look(&mut self) -> Result<(), String> {
        let Some((snapshot, mut held)) = self.snapshot.take() else { return Ok(()) };
        for slot in 0..self.records.tables {
            let (records, recorder) = (self.records, self.recorder);
            let Some(client) = self.client(slot)? else { continue };
            let table = recorder.borrow_mut().ledger().and_then(|ledger| ledger.table(slot));
            let Some((number, _)) = table else { continue };
            let since = recorder.borrow().now();
            let pinned = client.pin_at(&snapshot).map_err(|error| error.to_string())?;
            let Some(mut seen) = read_table(&pinned, records, (slot, 0))? else { continue };
            for (key, state) in &mut seen {
                match pinned.get(&records.key(*key)) {
                    Ok(value) if *state == records.parse_value(value.as_deref())? => {}
                    Err(Error::TableDropped) => {}
                    Ok(value) if recorder.borrow().now() > since && value.is_none() => *state = None,
                    other => {
                        return Err(format!(
                            "at a snapshot, iteration shows {state:x?} of key {key}, a read {other:x?}"
                        ));
                    }
                }
            }
            recorder.borrow_mut().look(&mut held, number, &seen, since);
        }
        self.snapshot = Some((snapshot, held));
        Ok(())
    }

    /// Gives the snapshot back.
    pub(super) fn leave(&mut self) {
        if let Some((snapshot, held)) = self.snapshot.take() {
            drop(snapshot);
            let mut recorder = self.recorder.borrow_mut();
            recorder.ledger().expect("it took the snapshot").leave(held);
        }
    }

    /// Creates a table, if it is not there.
    pub(super) fn create(&mut self, slot: usize) -> Result<(), String> {
        let begins = self.recorder.borrow_mut().ledger().is_some_and(|ledger| ledger.creates(slot));
        if begins {
            let table = self.store.create_table(&table_name(slot)).map_err(|error| error.to_string())?;
            self.recorder.borrow_mut().created(slot, table);
        }
        Ok(())
    }

    /// Drops a table, if it is there. Its clients are refused from then on.
    pub(super) fn drop_table(&mut self, slot: usize) -> Result<(), String> {
        let recorder = self.recorder;
        self.client(slot)?;
        let table = recorder.borrow_mut().ledger().and_then(|ledger| ledger.table(slot));
        let Some((_, table)) = table else { return Ok(()) };
        let keys: Vec<_> = (0..self.records.keys).filter(|key| self.records.table(*key) == slot).collect();
        let actions: Vec<_> = keys.iter().map(|key| (*key, Action::Delete)).collect();
        let running = recorder.borrow_mut().drop_begins(slot, &actions);
        self.store.drop_table(&table).map_err(|error| error.to_string())?;
        recorder.borrow_mut().drop_ends(slot, running, &vec![Outcome::Done; keys.len()]);
        let Some((_, client)) = &mut self.others[slot - 1] else { return Ok(()) };
        let key = self.records.key(slot);
        let answers = [
            client.get(&key).map(drop),
            client.put(&key, b"value"),
            client.remove(&key).map(drop),
            client.update(&key, |_| None::<Vec<u8>>),
        ];
        for (answer, call) in answers.into_iter().zip(["get", "put", "remove", "update"]) {
            let is_right =
                answer.as_ref().is_err_and(|error| matches!(error, Error::TableDropped) || is_room(error));
            if !is_right {
                return Err(format!("{call} on a table that has been dropped: {answer:?}"));
            }
        }
        Ok(())
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        // A run that fails unwinds its tasks, perhaps while the recorder is in use.
        if !std::thread::panicking() {
            self.leave();
        }
    }
}
