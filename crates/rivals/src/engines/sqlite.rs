//! SQLite: a B-tree of pages with a write-ahead log, through its own crate and compiled with it.
//!
//! A put is a statement and so a transaction of its own. Writers take turns: each begins by taking the log's
//! one lock, and sleeps for longer and longer while another has it. Readers see the last commit and wait for
//! no one. Each thread has a connection with a cache of its own, which is as large as the one that threads
//! share in other engines.

use super::{Handle, Setup};
use crate::level::Level;
use quipu_bench::EngineClient;
use rusqlite::{CachedStatement, Connection, Error, ErrorCode, OptionalExtension};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a writer waits for its turn before it is refused, and begins again.
const PATIENCE: Duration = Duration::from_secs(10);

const TABLE: &str = "CREATE TABLE records (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
const GET: &str = "SELECT value FROM records WHERE key = ?1";
const PUT: &str = "INSERT OR REPLACE INTO records VALUES (?1, ?2)";
const DELETE: &str = "DELETE FROM records WHERE key = ?1";
const SCAN: &str = "SELECT key, value FROM records WHERE key >= ?1 ORDER BY key LIMIT ?2";
const COUNT: &str = "SELECT count(*) FROM records";

/// SQLite's handle of one thread.
pub struct Sqlite {
    file: PathBuf,
    synchronous: &'static str,
    cache: u64,
    /// None before the first operation. Operations need no lock of it, since they have the handle alone; it
    /// lets other threads look at the handle while no clock runs.
    connection: Mutex<Option<Connection>>,
}

/// Each thread has a connection of its own, which is made when it is needed.
impl Clone for Sqlite {
    fn clone(&self) -> Sqlite {
        let Sqlite { file, synchronous, cache, .. } = self;
        Sqlite { file: file.clone(), synchronous, cache: *cache, connection: Mutex::new(None) }
    }
}

impl Handle for Sqlite {
    const ORDERED: bool = true;

    fn create(folder: &Path, setup: &Setup) -> Result<Sqlite, Error> {
        let synchronous = match setup.level {
            Level::Memory => "OFF",
            Level::Process => "NORMAL",
            Level::Power => "FULL",
        };
        let (file, cache) = (folder.join("records.sqlite"), setup.cache);
        let mut made = Sqlite { file, synchronous, cache, connection: Mutex::new(None) };
        let connection = made.connection()?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.execute(TABLE, [])?;
        Ok(made)
    }

    fn records(&self) -> Option<u64> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let count: i64 = connection.as_ref()?.query_row(COUNT, [], |row| row.get(0)).ok()?;
        u64::try_from(count).ok()
    }
}

impl Sqlite {
    /// The connection of this thread.
    fn connection(&mut self) -> Result<&Connection, Error> {
        let Sqlite { file, synchronous, cache, connection } = self;
        Ok(match connection.get_mut().unwrap_or_else(PoisonError::into_inner) {
            Some(connection) => connection,
            none => {
                let opened = Connection::open(file)?;
                opened.busy_timeout(PATIENCE)?;
                opened.pragma_update(None, "synchronous", *synchronous)?;
                // A negative number is of kibibytes.
                let kibibytes = i64::try_from(cache.div_ceil(1024)).unwrap_or(i64::MAX);
                opened.pragma_update(None, "cache_size", -kibibytes)?;
                none.insert(opened)
            }
        })
    }
}

fn put(connection: &Connection, key: &[u8], value: &[u8]) -> Result<(), Error> {
    connection.prepare_cached(PUT)?.execute((key, value)).map(drop)
}

/// Replaces the content of `out` by a value, and tells whether there is one.
fn read(statement: &mut CachedStatement<'_>, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
    out.clear();
    let found = statement.query_row([key], |row| {
        out.extend_from_slice(row.get_ref(0)?.as_blob()?);
        Ok(())
    });
    found.optional().map(|found| found.is_some())
}

/// Runs a statement that gives and takes nothing.
fn run(connection: &Connection, statement: &str) -> Result<(), Error> {
    connection.prepare_cached(statement)?.execute([]).map(drop)
}

/// Does all that `work` does in one transaction, which begins with the lock of writers.
fn at_once(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<(), Error>,
) -> Result<(), Error> {
    run(connection, "BEGIN IMMEDIATE")?;
    let done = work(connection).and_then(|()| run(connection, "COMMIT"));
    if done.is_err() && !connection.is_autocommit() {
        run(connection, "ROLLBACK")?;
    }
    done
}

impl EngineClient for Sqlite {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        put(self.connection()?, key, value)
    }

    /// One transaction for all.
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        at_once(self.connection()?, |connection| {
            pairs.iter().try_for_each(|(key, value)| put(connection, key, value))
        })
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        read(&mut self.connection()?.prepare_cached(GET)?, key, out)
    }

    fn transfer(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<u64, Error> {
        let connection = self.connection()?;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut tries = 0;
        loop {
            tries += 1;
            let done = at_once(connection, |connection| {
                let mut get = connection.prepare_cached(GET)?;
                read(&mut get, from, &mut left)?;
                read(&mut get, to, &mut right)?;
                change(&mut left, &mut right);
                put(connection, from, &left)?;
                put(connection, to, &right)
            });
            match done {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => (),
                done => return done.map(|()| tries),
            }
        }
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let mut statement = self.connection()?.prepare_cached(SCAN)?;
        let mut rows = statement.query((from, i64::try_from(count).unwrap_or(i64::MAX)))?;
        let mut found = 0;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
            found += 1;
        }
        Ok(found)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.connection()?.prepare_cached(DELETE)?.execute([key]).map(drop)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.connection()?.prepare_cached(DELETE)?.execute([key]).map(|deleted| deleted > 0)
    }
}
