//! RocksDB as the runner sees it.

use super::database::{Database, Error};
use super::transactions::Transactions;
use crate::engines::{Handle, Setup};
use quipu_bench::EngineClient;
use std::path::Path;
use std::sync::Arc;

/// RocksDB's handle of one thread, of any form.
pub struct RocksDb {
    database: Arc<Database>,
    /// None before the first one.
    transactions: Option<Transactions>,
}

/// Each thread has transactions of its own.
impl Clone for RocksDb {
    fn clone(&self) -> RocksDb {
        RocksDb { database: self.database.clone(), transactions: None }
    }
}

impl Handle for RocksDb {
    const ORDERED: bool = true;

    fn create(folder: &Path, setup: &Setup) -> Result<RocksDb, Error> {
        let database = Arc::new(Database::create(folder, setup)?);
        Ok(RocksDb { database, transactions: None })
    }

    /// RocksDB only estimates.
    fn records(&self) -> Option<u64> {
        None
    }
}

impl EngineClient for RocksDb {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.database.put(key, value)
    }

    /// RocksDB's own batch of writes.
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        self.database.put_many(pairs)
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        self.database.get(key, |value| {
            out.extend_from_slice(value.unwrap_or_default());
            value.is_some()
        })
    }

    /// RocksDB's own batched read.
    fn get_many(&mut self, keys: &[Vec<u8>], each: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        self.database.get_many(keys, each)
    }

    fn scan(&mut self, from: &[u8], count: usize, each: impl FnMut(&[u8], &[u8])) -> Result<usize, Error> {
        self.database.scan(from, count, each)
    }

    fn transfer(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<u64, Error> {
        let transactions = match &mut self.transactions {
            Some(transactions) => transactions,
            none => none.insert(Transactions::new(self.database.clone())?),
        };
        transactions.transfer(from, to, change)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.database.delete(key)
    }
}
