//! Indexes alone, on sets of keys that are easy and hard for indexes that learn.
//!
//! An index stands beside a table of records in DRAM, which here are keys and nothing else. All keys of a set
//! have one length. A word of the index names a record of the table. An index that knows the hash of a key,
//! or a part of it, reads the record's key before it answers, as it would in a store. So every answer is
//! proved, and the cost of the proof is the index's.
//!
//! All records are inserted into an empty index, read one by one and in batches, scanned, and removed. Then
//! an index that can be loaded in one go is loaded, and read again. Each answer must be the word that was
//! inserted. Keys to look for come from a list in the order of their use, so that finding out what to ask for
//! takes no miss of a cache.
//!
//! - `load`: the arguments.
//! - `keys`: sets of keys.
//! - `records`: the table, and the order of lookups.
//! - `house`: the indexes of this house, by name.
//! - `ours`: one of them behind [`Contender`].
//! - `image`: loading one in one go.
//! - `run`: the phases.
//! - `table`: the rows side by side.

mod house;
mod image;
mod keys;
mod load;
mod ours;
mod records;
mod run;
mod table;

pub use house::HouseIndex;
pub use keys::IndexKeys;
pub use load::{IndexLoad, IndexOrder};
pub use run::{IndexRun, indexes};
pub use table::index_table;

use quipu_bench::error::BenchError;
use quipu_bench::report::Sink;
use std::convert::Infallible;

/// Keys of a batch.
const BATCH: usize = 32;
/// Keys of a scan.
pub const SCANNED: usize = 100;

/// A kind of index, by its name: it knows how to make one.
pub trait IndexKind {
    /// Measures an index of this kind on the records of a run.
    ///
    /// # Errors
    /// The index's own, and a wrong answer.
    fn measure(&self, run: &IndexRun<'_>, sink: Sink<'_>) -> Result<(), BenchError>;
}

/// An index under measurement.
pub trait Contender: Sync + Sized {
    /// Whether it keeps keys in order, so that it can be scanned.
    const ORDERED: bool;
    /// Whether its keys are numbers of eight bytes, and no text.
    const ONLY_NUMBERS: bool = false;

    /// The use of it by one thread.
    type Access<'c>: Access
    where
        Self: 'c;
    /// Its records in a form from which it can be made again in one go.
    type Bulk;

    /// The access of a thread for a phase.
    fn access(&self) -> Self::Access<'_>;

    /// Bytes of the pool that it has.
    fn pm_bytes(&self) -> u64 {
        0
    }

    /// Its records for [`load`](Contender::load); nothing if it cannot be loaded so.
    fn bulk(&self) -> Option<Self::Bulk>;

    /// An index of these records, made in one go.
    ///
    /// # Errors
    /// The index's own.
    fn load(bulk: &Self::Bulk) -> Result<Self, BenchError>;
}

/// The [`Contender::Bulk`] of an index that cannot be loaded in one go.
pub type NoBulk = Infallible;

/// The use of an index by one thread. Words are not zero.
pub trait Access {
    /// Inserts a key with its word, and returns the word that it had.
    ///
    /// # Errors
    /// The index's own.
    fn insert(&mut self, key: &[u8], word: u64) -> Result<Option<u64>, BenchError>;

    /// The word of a key.
    ///
    /// # Errors
    /// The index's own.
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError>;

    /// The words of several keys, in their order, added to `words`. Their cache misses may overlap.
    ///
    /// # Errors
    /// The index's own.
    fn get_many(&mut self, keys: &[&[u8]], words: &mut Vec<Option<u64>>) -> Result<(), BenchError> {
        for key in keys {
            words.push(self.get(key)?);
        }
        Ok(())
    }

    /// Adds the words of the keys from this one on to `words`, in order: [`SCANNED`] unless the keys end
    /// before. Called of an index in [order](Contender::ORDERED) alone.
    ///
    /// # Errors
    /// The index's own.
    fn scan(&mut self, from: &[u8], words: &mut Vec<u64>) -> Result<(), BenchError>;

    /// Removes a key, and returns its word.
    ///
    /// # Errors
    /// The index's own.
    fn remove(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError>;
}
