//! fjall: an LSM tree with a journal, after RocksDB's manner, in Rust.
//!
//! A put goes to the journal under its lock and to a memtable; threads of its own flush and merge.

use super::Setup;
use crate::level::Level;
use ::fjall::config::CompressionPolicy;
use ::fjall::{CompressionType, Database, Error, Keyspace, KeyspaceCreateOptions, PersistMode};
use quipu_lab::bench::{BenchError, Engine, EngineClient, OpenEngine};
use std::path::Path;

/// fjall with its settings.
pub struct Fjall(Setup);

impl Fjall {
    /// fjall as `setup` says.
    pub fn new(setup: Setup) -> Fjall {
        Fjall(setup)
    }
}

/// fjall at work.
pub struct Opened {
    hands: Client,
    setup: Setup,
}

/// One thread's hands: fjall's own handles, which may be copied.
#[derive(Clone)]
pub struct Client {
    database: Database,
    records: Keyspace,
    sync: bool,
}

impl Engine for Fjall {
    type Opened = Opened;

    fn name(&self) -> &str {
        &self.0.name
    }

    fn create(&self, _records: u64) -> Result<Opened, BenchError> {
        let Setup { place, level, cache, .. } = &self.0;
        let buffered = *level == Level::Memory;
        let made = |folder: &Path| {
            let database = Database::builder(folder)
                .cache_size(*cache)
                .journal_compression(CompressionType::None)
                .manual_journal_persist(buffered)
                .open()?;
            let records = database.keyspace("records", || {
                KeyspaceCreateOptions::default()
                    .manual_journal_persist(buffered)
                    .data_block_compression_policy(CompressionPolicy::disabled())
                    .expect_point_read_hits(true)
            })?;
            Ok(Client { database, records, sync: *level == Level::Power })
        };
        let refused = BenchError::refused::<Error>(self.name(), "create");
        let hands = place.make(|folder| made(folder).map_err(refused))?;
        Ok(Opened { hands, setup: self.0.clone() })
    }

    fn remove(&self) -> Result<(), BenchError> {
        self.0.place.remove()
    }
}

impl OpenEngine for Opened {
    type Client = Client;

    fn client(&self) -> Client {
        self.hands.clone()
    }

    fn records(&self) -> Option<u64> {
        self.hands.records.len().ok().map(|records| records as u64)
    }

    fn pool_bytes(&self) -> u64 {
        self.setup.place.bytes()
    }
}

impl Client {
    fn acknowledge(&self) -> Result<(), Error> {
        if self.sync { self.database.persist(PersistMode::SyncAll) } else { Ok(()) }
    }
}

impl EngineClient for Client {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.records.insert(key, value)?;
        self.acknowledge()
    }

    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        let found = self.records.get(key)?;
        if let Some(value) = &found {
            out.extend_from_slice(value);
        }
        Ok(found.is_some())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.records.remove(key)?;
        self.acknowledge()
    }
}
