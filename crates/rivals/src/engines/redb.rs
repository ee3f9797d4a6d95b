//! redb: a copy-on-write B-tree in one file. A put is a transaction of its own.
//!
//! Writers take turns, whatever keys they write; readers see the last commit and wait for no one. redb has no
//! level between memory and a sync.

use super::Setup;
use crate::level::Level;
use ::redb::{Database, Durability, Error, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use quipu_lab::bench::{BenchError, Engine, EngineClient, OpenEngine};
use std::path::Path;
use std::sync::Arc;

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");

/// redb with its settings.
pub struct Redb(Setup);

impl Redb {
    /// redb as `setup` says.
    pub fn new(setup: Setup) -> Redb {
        Redb(setup)
    }
}

/// redb at work.
pub struct Opened {
    database: Arc<Database>,
    setup: Setup,
}

/// One thread's hands.
pub struct Client {
    database: Arc<Database>,
    durability: Durability,
}

impl Engine for Redb {
    type Opened = Opened;

    fn name(&self) -> &str {
        &self.0.name
    }

    fn create(&self, _records: u64) -> Result<Opened, BenchError> {
        let made = |folder: &Path| {
            let cache = usize::try_from(self.0.cache).unwrap_or(usize::MAX);
            let database = Database::builder().set_cache_size(cache).create(folder.join("records.redb"))?;
            let transaction = database.begin_write()?;
            transaction.open_table(TABLE)?;
            transaction.commit()?;
            Ok(database)
        };
        let refused = BenchError::refused::<Error>(self.name(), "create");
        let database = self.0.place.make(|folder| made(folder).map_err(refused))?;
        Ok(Opened { database: Arc::new(database), setup: self.0.clone() })
    }

    fn remove(&self) -> Result<(), BenchError> {
        self.0.place.remove()
    }
}

impl OpenEngine for Opened {
    type Client = Client;

    fn client(&self) -> Client {
        let durability = match self.setup.level {
            Level::Power => Durability::Immediate,
            Level::Memory | Level::Process => Durability::None,
        };
        Client { database: self.database.clone(), durability }
    }

    fn records(&self) -> Option<u64> {
        let count = || Ok::<u64, Error>(self.database.begin_read()?.open_table(TABLE)?.len()?);
        count().ok()
    }

    fn pool_bytes(&self) -> u64 {
        self.setup.place.bytes()
    }
}

impl EngineClient for Client {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        transaction.open_table(TABLE)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        let found = self.database.begin_read()?.open_table(TABLE)?.get(key)?;
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
