//! RocksDB as the runner sees it.

use super::database::{Database, Error};
use crate::engines::Setup;
use quipu_lab::bench::{BenchError, Engine, EngineClient, OpenEngine};
use std::path::Path;
use std::sync::Arc;

/// RocksDB with its settings.
pub struct RocksDb(Setup);

impl RocksDb {
    /// RocksDB as `setup` says.
    pub fn new(setup: Setup) -> RocksDb {
        RocksDb(setup)
    }
}

/// RocksDB at work.
pub struct Opened {
    database: Arc<Database>,
    setup: Setup,
}

/// One thread's hands.
pub struct Client(Arc<Database>);

impl Engine for RocksDb {
    type Opened = Opened;

    fn name(&self) -> &str {
        &self.0.name
    }

    fn create(&self, _records: u64) -> Result<Opened, BenchError> {
        let refused = BenchError::refused(self.name(), "create");
        let made = |folder: &Path| Database::create(folder, &self.0).map_err(refused);
        let database = self.0.place.make(made)?;
        Ok(Opened { database: Arc::new(database), setup: self.0.clone() })
    }

    fn remove(&self) -> Result<(), BenchError> {
        self.0.place.remove()
    }
}

impl OpenEngine for Opened {
    type Client = Client;

    fn client(&self) -> Client {
        Client(self.database.clone())
    }

    /// RocksDB only estimates.
    fn records(&self) -> Option<u64> {
        None
    }

    fn pool_bytes(&self) -> u64 {
        self.setup.place.bytes()
    }
}

impl EngineClient for Client {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.0.put(key, value)
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        self.0.get(key, |value| {
            out.extend_from_slice(value.unwrap_or_default());
            value.is_some()
        })
    }

    /// RocksDB's own batched read.
    fn get_many(&mut self, keys: &[Vec<u8>], each: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        self.0.get_many(keys, each)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.0.delete(key)
    }
}
