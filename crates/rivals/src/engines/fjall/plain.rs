//! fjall's database without transactions.

use crate::engines::{Handle, Setup};
use crate::level::Level;
use ::fjall::config::CompressionPolicy;
use ::fjall::{CompressionType, Database, Error, Keyspace, KeyspaceCreateOptions, PersistMode};
use quipu_bench::EngineClient;
use std::path::Path;

/// fjall's handle of one thread.
#[derive(Clone)]
pub struct Fjall {
    database: Database,
    records: Keyspace,
    sync: bool,
}

/// The settings of a keyspace that is read by keys which it has. Its journal is buffered in the process, or
/// handed to the system at every write.
pub fn of_keys(buffered: bool) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .manual_journal_persist(buffered)
        .data_block_compression_policy(CompressionPolicy::disabled())
        .expect_point_read_hits(true)
}

impl Handle for Fjall {
    const ORDERED: bool = true;

    fn create(folder: &Path, setup: &Setup) -> Result<Fjall, Error> {
        let buffered = setup.level == Level::Memory;
        let database = Database::builder(folder)
            .cache_size(setup.cache)
            .journal_compression(CompressionType::None)
            .manual_journal_persist(buffered)
            .open()?;
        let records = database.keyspace("records", || of_keys(buffered))?;
        Ok(Fjall { database, records, sync: setup.level == Level::Power })
    }

    fn records(&self) -> Option<u64> {
        self.records.len().ok().map(|records| records as u64)
    }
}

impl Fjall {
    fn acknowledge(&self) -> Result<(), Error> {
        if self.sync { self.database.persist(PersistMode::SyncAll) } else { Ok(()) }
    }
}

impl EngineClient for Fjall {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.records.insert(key, value)?;
        self.acknowledge()
    }

    /// fjall's own batch of writes.
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let mut batch = self.database.batch();
        for (key, value) in pairs {
            batch.insert(&self.records, key.as_slice(), value.as_slice());
        }
        batch.commit()?;
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

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let mut found = 0;
        for pair in self.records.range(from..).take(count) {
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
