//! redb: a copy-on-write B-tree in one file. A put is a transaction of its own, and so is a batch of them.
//!
//! Writers take turns, whatever keys they write; readers see the last commit and wait for no one. redb has no
//! level between memory and a sync.

use super::{Handle, Setup};
use crate::level::Level;
use ::redb::{
    Database, Durability, Error, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
};
use quipu_bench::EngineClient;
use std::path::Path;
use std::sync::Arc;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");

/// redb's handle of one thread.
#[derive(Clone)]
pub struct Redb {
    database: Arc<Database>,
    durability: Durability,
}

impl Handle for Redb {
    const ORDERED: bool = true;

    fn create(folder: &Path, setup: &Setup) -> Result<Redb, Error> {
        let cache = usize::try_from(setup.cache).unwrap_or(usize::MAX);
        let database = Database::builder().set_cache_size(cache).create(folder.join("records.redb"))?;
        let transaction = database.begin_write()?;
        transaction.open_table(TABLE)?;
        transaction.commit()?;
        let durability = match setup.level {
            Level::Power => Durability::Immediate,
            Level::Memory | Level::Process => Durability::None,
        };
        Ok(Redb { database: Arc::new(database), durability })
    }

    fn records(&self) -> Option<u64> {
        let count = || Ok::<u64, Error>(self.database.begin_read()?.open_table(TABLE)?.len()?);
        count().ok()
    }
}

impl EngineClient for Redb {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        transaction.open_table(TABLE)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }

    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in pairs {
            table.insert(key.as_slice(), value.as_slice())?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        // The table keeps its transaction, and so the pages that are read, until the value is copied.
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let found = table.get(key)?;
        if let Some(value) = &found {
            out.extend_from_slice(value.value());
        }
        Ok(found.is_some())
    }

    /// One transaction for all: redb's own way to save on beginning them.
    fn get_many(
        &mut self,
        keys: &[Vec<u8>],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        for (position, key) in keys.iter().enumerate() {
            each(position, table.get(key.as_slice())?.as_ref().map(|value| value.value()));
        }
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let mut found = 0;
        for pair in table.range(from..)?.take(count) {
            let (key, value) = pair?;
            each(key.value(), value.value());
            found += 1;
        }
        Ok(found)
    }

    /// Writers take turns, so that it is done at the first try.
    fn transfer(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<u64, Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        let mut table = transaction.open_table(TABLE)?;
        let value = |key: &[u8]| {
            let found = table.get(key)?;
            Ok::<_, Error>(found.map(|value| value.value().to_vec()).unwrap_or_default())
        };
        let (mut left, mut right) = (value(from)?, value(to)?);
        change(&mut left, &mut right);
        table.insert(from, left.as_slice())?;
        table.insert(to, right.as_slice())?;
        drop(table);
        transaction.commit()?;
        Ok(1)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        EngineClient::remove(self, key).map(drop)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        let found = transaction.open_table(TABLE)?.remove(key)?.is_some();
        transaction.commit()?;
        Ok(found)
    }
}
