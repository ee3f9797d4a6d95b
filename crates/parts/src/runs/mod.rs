//! Levels of sorted runs on an SSD, below the memtables of a table.
//!
//! A *dump* writes the records of memtables to files, in order of keys, and then gives them their names at
//! one point. *Compaction* merges runs, and takes away records that nobody reads. Readers look at an
//! immutable list of runs, [`Levels`], which lives as long as somebody has it.
//!
//! The files are those of a library, behind the seam [`Runs`]. So they are not written through the medium,
//! and the simulator neither sees nor tears them. In their place stand levels in memory, whose runs change at
//! points that the crash explorer knows (`lab/src/sim_levels.rs`).
//!
//! Source: section 3.3 of the paper on an LSM engine for transactions on persistent memory (VLDB 2021).

pub mod filter;
#[cfg(feature = "levels")]
pub mod lsm;

pub use crate::heap::chain::anchor::LevelsState;

use crate::record::Kind;
use crate::versions::{Horizon, RangeList, RangeTombstone};
use std::any::Any;
use std::io;
use std::ops::Bound;
use std::sync::Arc;

/// A record of a level, without its key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number: of a key, the highest is the newest.
    pub number: u64,
    /// The number that it was first written with.
    pub version: u64,
    /// [`Kind::Value`] or [`Kind::Tombstone`].
    pub kind: Kind,
    /// When it expires, in milliseconds since 1970; 0 for never.
    pub expires: u64,
}

/// A record of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRecord {
    /// Its key.
    pub key: Vec<u8>,
    /// All but key and value.
    pub head: Head,
    /// Its value; empty of a tombstone.
    pub value: Vec<u8>,
}

/// The records of a dump in order: keys rising, and of each key the numbers falling. One that fails ends, and
/// its owner [discards](Runs::discard) the part.
pub trait Source {
    /// The next record: key, head, value.
    fn next(&mut self) -> Option<(&[u8], Head, &[u8])>;
}

/// Records that stand in files without names.
pub struct Part {
    /// Records, and range tombstones.
    pub records: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// The files, as the implementation knows them.
    pub files: Box<dyn Any + Send>,
}

/// A choice of runs to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compact {
    /// The next step that is due, if one is.
    Due,
    /// All, into the last level.
    All,
}

/// A step of compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Whether anything was merged, or moved down.
    pub has_worked: bool,
    /// Bytes of the runs that were merged.
    pub read: u64,
    /// Bytes of the runs that they became.
    pub written: u64,
}

/// The limits of a purge by a compaction. Read before it begins: a later list would only take away more.
#[derive(Clone, Debug, Default)]
pub struct Purge {
    /// The numbers at which somebody may read.
    pub horizon: Horizon,
    /// Range tombstones that may delete something in the levels. One that is visible and not among them
    /// deletes nothing any more.
    pub ranges: RangeList,
    /// The time, in milliseconds since 1970.
    pub now: u64,
}

/// Is asked before levels get other contents, from no lock of theirs. If it fails, nothing changes.
pub type Notice = Arc<dyn Fn() -> Result<(), RunsError> + Send + Sync>;

/// The size of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Files.
    pub tables: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Records, superseded ones included, and range tombstones.
    pub records: u64,
    /// Runs of the first level, which every get looks at.
    pub first_level: u64,
    /// Bytes of DRAM of indexes and filters that are not in a cache.
    pub pinned: u64,
    /// Bytes by which levels are larger than they should be.
    pub debt: u64,
}

/// Errors of levels.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunsError {
    /// No room on the disk.
    #[error("the disk of the levels at {place} is full; free some space there, or move the levels")]
    Full {
        /// The folder.
        place: String,
    },
    /// The system refused.
    #[error("the levels at {place}: {error}")]
    Device {
        /// The folder.
        place: String,
        /// The answer of the system.
        error: Arc<io::Error>,
    },
    /// Bytes that prove to be wrong, or a folder that is not the pool's.
    #[error("the levels at {place}: {what}")]
    Damaged {
        /// The folder.
        place: String,
        /// The finding.
        what: String,
    },
}

/// Errors of a change of names.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Nothing has changed.
    #[error(transparent)]
    NotNamed(RunsError),
    /// It may have changed or not, and the tree must not be changed any more in this run. Reads go on.
    #[error("the levels can take no more changes until the store is opened again: {0}")]
    Poisoned(RunsError),
}

/// The trees of a pool, one for each table that has been dumped.
pub trait Forest: Send + Sync {
    /// The place of the trees, for errors.
    fn place(&self) -> String;

    /// The tables that have trees, by the numbers that they were created with, ascending.
    ///
    /// # Errors
    /// Those of the system, and damage.
    fn trees(&self) -> Result<Vec<u64>, RunsError>;

    /// The state that was [noted](Forest::note) last. The default where nothing was.
    ///
    /// # Errors
    /// Those of the system, and damage.
    fn state(&self) -> Result<LevelsState, RunsError>;

    /// Notes beside the levels a state of them, and how far each open tree has come. Durable when this
    /// returns; after an error it may be noted or not.
    ///
    /// # Errors
    /// Those of the system.
    fn note(&self, state: LevelsState) -> Result<(), RunsError>;

    /// Refuses the tree of a table that has not come as far as it had when the last state was noted: it was
    /// copied at an earlier moment than the note.
    ///
    /// # Errors
    /// Those of the system, and damage.
    fn refuse_torn(&self, table: u64) -> Result<(), RunsError>;

    /// Opens the tree of a table, or creates it: durably when this returns. One tree is opened once at a
    /// time.
    ///
    /// # Errors
    /// Those of the system, and damage.
    fn open(&self, table: u64) -> Result<Arc<dyn Runs>, RunsError>;

    /// The rest of the tree of a table, which may be damaged and is not open. `wrong` is told the damage.
    fn salvage(&self, table: u64, wrong: &mut dyn FnMut(RunsError)) -> Box<dyn Remains>;

    /// Whether the tree of a table is open: somebody has its [`Runs`].
    fn is_open(&self, table: u64) -> bool;

    /// Removes the tree of a table, which is not open.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, table: u64) -> Result<(), RunsError>;
}

/// The levels of a table. At any time one thread publishes, and one compacts; all others may read and write
/// parts.
pub trait Runs: Send + Sync {
    /// The runs of now. They stay readable as long as somebody has the list. The files of runs that are in no
    /// list any more are removed by [`compact`](Runs::compact), since that takes long.
    fn levels(&self) -> Arc<dyn Levels>;

    /// Writes these records and range tombstones to files, durably, without names. An error leaves no files,
    /// at the latest when no other write and no compaction runs.
    ///
    /// # Errors
    /// Those of the system.
    ///
    /// # Panics
    /// If the records are not in order, or are no values and tombstones.
    fn write(&self, ranges: &[RangeTombstone], from: &mut dyn Source) -> Result<Part, RunsError>;

    /// Removes the files of a part.
    fn discard(&self, part: Part);

    /// Names parts, in order of their keys: all at once, durably when this returns, and a crash before leaves
    /// all or none. They are newer than all that was named before, or the same. Range tombstones are in the
    /// first part that has anything. After an error the parts are gone, unless they may be named.
    ///
    /// # Errors
    /// Those of the system.
    ///
    /// # Panics
    /// If parts are out of order.
    fn publish(&self, parts: Vec<Part>) -> Result<(), NameError>;

    /// Merges runs. `before` is asked before records are taken away.
    ///
    /// # Errors
    /// Those of the system, and that of `before`.
    fn compact(&self, how: Compact, purge: Purge, before: &Notice) -> Result<Compacted, NameError>;

    /// Drops the files that lie wholly between two keys (`to` is empty for no end), if all of their numbers
    /// are below this one, and none if one is not. Nobody publishes or compacts meanwhile. Returns their
    /// bytes. `before` is asked before any file is dropped.
    ///
    /// # Errors
    /// Those of the system, and that of `before`.
    fn drop_range(&self, from: &[u8], to: &[u8], below: u64, before: &Notice) -> Result<u64, NameError>;

    /// The id of the next run. All runs of now have lower ones.
    fn next_id(&self) -> u64;

    /// The size of the tree.
    fn stats(&self) -> RunStats;
}

/// An immutable list of runs.
pub trait Levels: Send + Sync {
    /// The newest record of a key up to a number; its value is put behind the bytes of `out`. Deletions are
    /// answers.
    ///
    /// # Errors
    /// Those of the system, and damage.
    fn get(&self, key: &[u8], up_to: u64, out: &mut Vec<u8>) -> Result<Option<Head>, RunsError>;

    /// From a key on, in order: of each key the newest record up to a number, deletions too.
    fn scan<'l>(&'l self, from: &[u8], up_to: u64) -> LevelScan<'l>;

    /// Against the order, from the last key below this bound, or at it.
    fn scan_back<'l>(&'l self, to: Bound<&[u8]>, up_to: u64) -> LevelScan<'l>;

    /// The range tombstones.
    ///
    /// # Errors
    /// Those of the system, and damage.
    fn ranges(&self) -> Result<Vec<RangeTombstone>, RunsError>;

    /// Proves all runs; `each` is told the records, superseded ones too.
    ///
    /// # Errors
    /// Those of the system, and damage.
    fn check(&self, each: &mut dyn FnMut(&[u8], &Head)) -> Result<(), RunsError>;

    /// The highest number of its records.
    fn highest(&self) -> Option<u64>;

    /// The lowest id of a run that may have keys of this range.
    fn lowest_id(&self, range: &RangeTombstone) -> Option<u64>;
}

/// The rest of a damaged tree. `wrong` is told all that does not prove itself, once or several times.
pub trait Remains {
    /// The range tombstones.
    fn ranges(&self, wrong: &mut dyn FnMut(RunsError)) -> Vec<RangeTombstone>;

    /// Of each key the newest record, deletions too, in order. `each` returns whether to go on.
    fn records(&self, each: &mut dyn FnMut(LevelRecord) -> bool, wrong: &mut dyn FnMut(RunsError));
}

/// The records of a list of runs, one of each key.
pub type LevelScan<'l> = Box<dyn Iterator<Item = Result<LevelRecord, RunsError>> + 'l>;
