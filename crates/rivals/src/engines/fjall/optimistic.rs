//! fjall's database with optimistic transactions. A put is a transaction of its own there, which reads
//! nothing and so conflicts with none.
//!
//! Transactions begin and commit under one lock, and a commit is refused if another has changed since the
//! beginning what this one has read: so they are serializable.

use super::plain::of_keys;
use crate::engines::{Handle, Setup};
use crate::level::Level;
use ::fjall::{CompressionType, Error, OptimisticTxDatabase, OptimisticTxKeyspace, PersistMode, Readable};
use quipu_bench::EngineClient;
use std::path::Path;

/// fjall's handle of one thread, with transactions.
#[derive(Clone)]
pub struct FjallOptimistic {
    database: OptimisticTxDatabase,
    records: OptimisticTxKeyspace,
    sync: bool,
}

impl Handle for FjallOptimistic {
    const ORDERED: bool = true;

    fn create(folder: &Path, setup: &Setup) -> Result<FjallOptimistic, Error> {
        let buffered = setup.level == Level::Memory;
        let database = OptimisticTxDatabase::builder(folder)
            .cache_size(setup.cache)
            .journal_compression(CompressionType::None)
            .manual_journal_persist(buffered)
            .open()?;
        let records = database.keyspace("records", || of_keys(buffered))?;
        Ok(FjallOptimistic { database, records, sync: setup.level == Level::Power })
    }

    fn records(&self) -> Option<u64> {
        self.database.read_tx().len(&self.records).ok().map(|records| records as u64)
    }
}

impl FjallOptimistic {
    fn acknowledge(&self) -> Result<(), Error> {
        if self.sync { self.database.persist(PersistMode::SyncAll) } else { Ok(()) }
    }
}

impl EngineClient for FjallOptimistic {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.records.insert(key, value)?;
        self.acknowledge()
    }

    /// One transaction for all.
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        loop {
            let mut transaction = self.database.write_tx()?;
            for (key, value) in pairs {
                transaction.insert(&self.records, key.as_slice(), value.as_slice());
            }
            if transaction.commit()?.is_ok() {
                return self.acknowledge();
            }
        }
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        let found = self.records.get(key)?;
        if let Some(value) = &found {
            out.extend_from_slice(value);
        }
        Ok(found.is_some())
    }

    fn transfer(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<u64, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut transaction = self.database.write_tx()?;
            let value = |key: &[u8]| {
                let found = transaction.get(&self.records, key)?;
                Ok::<_, Error>(found.map(|value| value.to_vec()).unwrap_or_default())
            };
            let (mut left, mut right) = (value(from)?, value(to)?);
            change(&mut left, &mut right);
            transaction.insert(&self.records, from, left);
            transaction.insert(&self.records, to, right);
            if transaction.commit()?.is_ok() {
                self.acknowledge()?;
                return Ok(tries);
            }
        }
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let mut found = 0;
        for pair in self.database.read_tx().range(&self.records, from..).take(count) {
            let (key, value) = pair.into_inner()?;
            each(&key, &value);
            found += 1;
        }
        Ok(found)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.records.remove(key)?;
        self.acknowledge()
    }
}
