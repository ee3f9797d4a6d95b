//! pmemkv as the runner sees it.

use super::database::{Database, Error};
use crate::engines::{Handle, Setup};
use quipu_bench::EngineClient;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a pool for each byte of its records, at most: the allocator rounds up, and entries of the map are
/// of their own.
const ROOM: u64 = 3;

/// Bytes of a record in the pool besides its key and value, at most.
const OVERHEAD: u64 = 256;

/// Bytes of a pool beside its records: what libpmemobj keeps for itself, and the map's first buckets.
const FIXED: u64 = 64 << 20;

/// pmemkv's handle of one thread.
#[derive(Clone)]
pub struct Pmemkv(Arc<Database>);

impl Handle for Pmemkv {
    const ORDERED: bool = false;

    fn create(folder: &Path, setup: &Setup) -> Result<Pmemkv, Error> {
        let bytes = FIXED + setup.most_records * (setup.record_bytes * ROOM + OVERHEAD);
        let database = Database::create(&folder.join("records.pmemkv"), bytes, setup)?;
        Ok(Pmemkv(Arc::new(database)))
    }

    fn records(&self) -> Option<u64> {
        self.0.count().ok()
    }
}

impl EngineClient for Pmemkv {
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
