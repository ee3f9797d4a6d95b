//! pmemkv as the runner sees it.

use super::database::{Database, Error};
use crate::engines::Setup;
use quipu_lab::bench::{BenchError, Engine, EngineClient, OpenEngine};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a pool for each byte of its records, at most: the allocator rounds up, and entries of the map are
/// of their own.
const ROOM: u64 = 3;

/// Bytes of a record in the pool besides its key and value, at most.
const OVERHEAD: u64 = 256;

/// Bytes of a pool beside its records: what libpmemobj keeps for itself, and the map's first buckets.
const FIXED: u64 = 64 << 20;

/// pmemkv with its settings.
pub struct Pmemkv(Setup);

impl Pmemkv {
    /// pmemkv as `setup` says.
    pub fn new(setup: Setup) -> Pmemkv {
        Pmemkv(setup)
    }
}

/// pmemkv at work.
pub struct Opened {
    database: Arc<Database>,
    setup: Setup,
}

/// One thread's hands.
pub struct Client(Arc<Database>);

impl Engine for Pmemkv {
    type Opened = Opened;

    fn name(&self) -> &str {
        &self.0.name
    }

    fn create(&self, _records: u64) -> Result<Opened, BenchError> {
        let refused = BenchError::refused(self.name(), "create");
        let bytes = FIXED + self.0.most_records * (self.0.record_bytes * ROOM + OVERHEAD);
        let made =
            |folder: &Path| Database::create(&folder.join("records.pmemkv"), bytes, &self.0).map_err(refused);
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

    fn records(&self) -> Option<u64> {
        self.database.count().ok()
    }

    /// The whole pool: how much of it is in use, pmemkv does not say.
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
        self.0.get_into(key, out)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.0.remove(key).map(drop)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.0.remove(key)
    }
}
