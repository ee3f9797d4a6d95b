//! A safe skin around transactions: one thread's, one after another in the same object.
//!
//! Each reads for update, under a snapshot: it is in conflict if another has written a key that it reads
//! since it began. An optimistic transaction is told so when it commits. A locking one waits for the lock of
//! the key and is told then, or when the wait would never end: it is set to look for deadlocks.

use super::database::{Database, Error, Pinned, check};
use super::form::Form;
use super::functions::{Transaction, TransactionOptions};
use std::ptr;
use std::sync::Arc;

/// The beginnings of refusals after which a transaction is to begin again: it is in conflict, has waited too
/// long, or its snapshot is older than what is kept to check it.
const AGAIN: [&str; 3] = ["Resource busy", "Operation timed out", "Operation failed. Try again"];

/// Of those that read a key for update, only one at a time.
const EXCLUSIVELY: u8 = 1;

/// The transactions of one thread.
pub struct Transactions {
    database: Arc<Database>,
    settings: *mut TransactionOptions,
    /// None before the first one.
    current: *mut Transaction,
}

// SAFETY: settings and transaction belong to this value, and RocksDB ties neither to a thread.
unsafe impl Send for Transactions {}
// SAFETY: everything needs an exclusive reference; a shared one can do nothing.
unsafe impl Sync for Transactions {}

impl Transactions {
    /// Of a database that has them.
    pub fn new(database: Arc<Database>) -> Result<Transactions, Error> {
        if database.form() == Form::Plain {
            return Err(Error::Refused("the database was opened without transactions".to_owned()));
        }
        let functions = database.functions();
        // SAFETY: the settings have just been made, and no one else knows them.
        let settings = unsafe {
            if database.form() == Form::Optimistic {
                let settings = (functions.optimistictransaction_options_create)();
                (functions.optimistictransaction_options_set_set_snapshot)(settings, 1);
                settings
            } else {
                let settings = (functions.transaction_options_create)();
                (functions.transaction_options_set_set_snapshot)(settings, 1);
                (functions.transaction_options_set_deadlock_detect)(settings, 1);
                settings
            }
        };
        Ok(Transactions { database, settings, current: ptr::null_mut() })
    }

    /// Reads two values, lets `change` change them, and writes both, as often as it takes; tells how often.
    pub fn transfer(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<u64, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.begin();
            let tried = self.attempt(from, to, change);
            let Err(error) = tried else { return Ok(tries) };
            self.roll_back()?;
            if !is_in_conflict(&error) {
                return Err(error);
            }
        }
    }

    /// Begins one in the place of the one that has ended.
    fn begin(&mut self) {
        let (functions, owner, write) =
            (self.database.functions(), self.database.owner(), self.database.write_options());
        let begin = match self.database.form() {
            Form::Optimistic => functions.optimistictransaction_begin,
            Form::Plain | Form::Locking => functions.transaction_begin,
        };
        // SAFETY: the database is open as long as it is shared, and the old transaction, if there is one, is
        // of this database and given up here.
        self.current = unsafe { begin(owner, write, self.settings, self.current) };
    }

    fn attempt(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<(), Error> {
        let (mut left, mut right) = (self.get(from)?, self.get(to)?);
        change(&mut left, &mut right);
        self.put(from, &left)?;
        self.put(to, &right)?;
        let mut error = ptr::null_mut();
        // SAFETY: the transaction was begun and has not ended.
        unsafe { (self.database.functions().transaction_commit)(self.current, &mut error) }
        check(self.database.functions(), error)
    }

    /// Reads a value that is going to be written; nothing if there is none.
    fn get(&mut self, key: &[u8]) -> Result<Vec<u8>, Error> {
        let (functions, read) = (self.database.functions(), self.database.read_options());
        let (bytes, mut error) = (key.as_ptr().cast(), ptr::null_mut());
        // SAFETY: the transaction was begun and has not ended, and the slice is copied during the call.
        let found = unsafe {
            (functions.transaction_get_pinned_for_update)(
                self.current,
                read,
                bytes,
                key.len(),
                EXCLUSIVELY,
                &mut error,
            )
        };
        let found = Pinned::new(functions, found);
        check(functions, error)?;
        Ok(found.bytes().unwrap_or_default().to_vec())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let (key_bytes, value_bytes) = (key.as_ptr().cast(), value.as_ptr().cast());
        let (functions, mut error) = (self.database.functions(), ptr::null_mut());
        // SAFETY: as in `get`.
        unsafe {
            let put = functions.transaction_put;
            put(self.current, key_bytes, key.len(), value_bytes, value.len(), &mut error);
        }
        check(functions, error)
    }

    /// Ends the transaction without its writes, and gives its locks back.
    fn roll_back(&mut self) -> Result<(), Error> {
        let mut error = ptr::null_mut();
        // SAFETY: the transaction was begun and has not been committed.
        unsafe { (self.database.functions().transaction_rollback)(self.current, &mut error) }
        check(self.database.functions(), error)
    }
}

fn is_in_conflict(error: &Error) -> bool {
    matches!(error, Error::Refused(text) if AGAIN.iter().any(|beginning| text.starts_with(beginning)))
}

impl Drop for Transactions {
    fn drop(&mut self) {
        let functions = self.database.functions();
        // SAFETY: all were made by this value and are destroyed once, before the database is closed.
        unsafe {
            if !self.current.is_null() {
                (functions.transaction_destroy)(self.current);
            }
            match self.database.form() {
                Form::Optimistic => (functions.optimistictransaction_options_destroy)(self.settings),
                Form::Plain | Form::Locking => (functions.transaction_options_destroy)(self.settings),
            }
        }
    }
}
