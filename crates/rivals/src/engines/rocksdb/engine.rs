//! RocksDB as the runner sees it.

use super::database::{Database, Error};
use crate::engines::{Handle, Setup};
use quipu_bench::EngineClient;
use std::path::Path;
use std::sync::Arc;

/// RocksDB's handle of one thread.
#[derive(Clone)]
pub struct RocksDb(Arc<Database>);

impl Handle for RocksDb {
    const ORDERED: bool = true;

    fn create(folder: &Path, setup: &Setup) -> Result<RocksDb, Error> {
        Database::create(folder, setup).map(|database| RocksDb(Arc::new(database)))
    }

    /// RocksDB only estimates.
    fn records(&self) -> Option<u64> {
        None
    }
}

impl EngineClient for RocksDb {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.0.put(key, value)
    }

    /// RocksDB's own batch of writes.
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        self.0.put_many(pairs)
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

    fn scan(&mut self, from: &[u8], count: usize, each: impl FnMut(&[u8], &[u8])) -> Result<usize, Error> {
        self.0.scan(from, count, each)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.0.delete(key)
    }
}
