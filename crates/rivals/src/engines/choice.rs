//! A choice: an engine and, of an engine that has several, a durability level.

use super::{Fjall, FjallOptimistic, Handle, Pmemkv, Redb, RocksDb, Sqlite, pmemkv, rocksdb};
use crate::level::Level;
use crate::place::Place;
use quipu::{Design, MediumKind};
use quipu_bench::{BenchError, Config};
use std::fmt;
use std::str::FromStr;

/// Least bytes of a block cache.
const LEAST_CACHE: u64 = 64 << 20;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of our own designs.
    Quipu(Design),
    /// RocksDB, as the system has it.
    RocksDb,
    /// RocksDB with transactions that are checked when they commit.
    RocksDbOptimistic,
    /// RocksDB with transactions that lock their keys.
    RocksDbLocking,
    /// redb.
    Redb,
    /// fjall.
    Fjall,
    /// fjall with transactions that are checked when they commit.
    FjallOptimistic,
    /// SQLite.
    Sqlite,
    /// pmemkv, as the system has it.
    Pmemkv,
}

/// An engine at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The engine.
    pub kind: Kind,
    /// The promise of its acknowledgements.
    pub level: Level,
}

/// The settings of every rival.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its name in results.
    pub name: String,
    /// The engine.
    pub kind: Kind,
    /// Where its files are.
    pub place: Place,
    /// The promise of its acknowledgements.
    pub level: Level,
    /// The medium of its place.
    pub medium: MediumKind,
    /// Bytes of its block cache.
    pub cache: u64,
    /// Records that it may come to hold.
    pub most_records: u64,
    /// Bytes of a key and its value.
    pub record_bytes: u64,
    /// Threads that use it.
    pub threads: usize,
}

impl Kind {
    /// The engines that are not ours.
    pub const RIVALS: [Kind; 8] = [
        Kind::RocksDb,
        Kind::RocksDbOptimistic,
        Kind::RocksDbLocking,
        Kind::Redb,
        Kind::Fjall,
        Kind::FjallOptimistic,
        Kind::Sqlite,
        Kind::Pmemkv,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Quipu(design) => design.name(),
            Kind::RocksDb => "rocksdb",
            Kind::RocksDbOptimistic => "rocksdb-optimistic",
            Kind::RocksDbLocking => "rocksdb-locking",
            Kind::Redb => "redb",
            Kind::Fjall => "fjall",
            Kind::FjallOptimistic => "fjall-optimistic",
            Kind::Sqlite => "sqlite",
            Kind::Pmemkv => "pmemkv",
        }
    }

    /// Whether it keeps its keys in order, so that they can be scanned.
    pub fn is_ordered(self) -> bool {
        match self {
            Kind::Quipu(design) => design.can().ordered,
            Kind::RocksDb | Kind::RocksDbOptimistic | Kind::RocksDbLocking => RocksDb::ORDERED,
            Kind::Redb => Redb::ORDERED,
            Kind::Fjall => Fjall::ORDERED,
            Kind::FjallOptimistic => FjallOptimistic::ORDERED,
            Kind::Sqlite => Sqlite::ORDERED,
            Kind::Pmemkv => Pmemkv::ORDERED,
        }
    }

    /// Whether it has transactions.
    pub fn has_transactions(self) -> bool {
        match self {
            Kind::Quipu(design) => design.can().transactions,
            Kind::RocksDbOptimistic | Kind::RocksDbLocking => true,
            Kind::Redb | Kind::FjallOptimistic | Kind::Sqlite => true,
            Kind::RocksDb | Kind::Fjall | Kind::Pmemkv => false,
        }
    }

    /// Whether it is RocksDB, with transactions or without.
    pub fn is_rocksdb(self) -> bool {
        matches!(self, Kind::RocksDb | Kind::RocksDbOptimistic | Kind::RocksDbLocking)
    }

    /// How it is set for a level; nothing if it has no such setting.
    pub fn setting(self, level: Level) -> Option<&'static str> {
        Some(match (self, level) {
            (Kind::Quipu(_), Level::Process) => "durability process: no system call on the write path",
            (kind, Level::Memory) if kind.is_rocksdb() => {
                "write-ahead log off: lost until the next flush of a memtable"
            }
            (kind, Level::Process) if kind.is_rocksdb() => {
                "write-ahead log on, not synced: a write(2) for every put"
            }
            (kind, Level::Power) if kind.is_rocksdb() => {
                "write-ahead log on, sync=true: an fdatasync for every group of puts"
            }
            (Kind::Redb, Level::Memory) => "Durability::None: lost until a commit with Durability::Immediate",
            (Kind::Redb, Level::Power) => "Durability::Immediate: a commit with a sync for every put",
            (Kind::Fjall | Kind::FjallOptimistic, Level::Memory) => {
                "manual journal persist: lost while in a buffer of the process"
            }
            (Kind::Fjall | Kind::FjallOptimistic, Level::Process) => {
                "PersistMode::Buffer: a write(2) for every put"
            }
            (Kind::Fjall | Kind::FjallOptimistic, Level::Power) => "PersistMode::SyncAll after every put",
            (Kind::Sqlite, Level::Memory) => {
                "WAL, synchronous=OFF: a write(2) for every put, which a crash of the process survives; no sync at all"
            }
            (Kind::Sqlite, Level::Process) => {
                "WAL, synchronous=NORMAL: a write(2) for every put, syncs at checkpoints"
            }
            (Kind::Sqlite, Level::Power) => "WAL, synchronous=FULL: an fdatasync for every put",
            (Kind::Pmemkv, Level::Process) => {
                "PMEM_IS_PMEM_FORCE=1: no system call on the write path; on file, PMEM_NO_FLUSH=1 too"
            }
            (Kind::Pmemkv, Level::Power) => {
                "libpmem as it finds the file: an msync for every step of a put, but on DAX"
            }
            _ => return None,
        })
    }

    /// Whether it can be measured here: a library of the system may be missing.
    ///
    /// # Errors
    /// [`BenchError::Store`] with what to install or to run.
    pub fn present(self) -> Result<(), BenchError> {
        match self {
            kind if kind.is_rocksdb() => rocksdb::present().map_err(BenchError::refused(self.name(), "load")),
            Kind::Pmemkv => pmemkv::present().map_err(BenchError::refused(self.name(), "load")),
            _ => Ok(()),
        }
    }

    /// The level that is nearest to ours, and taken where none is named: a crash of the process, or the next
    /// level above it.
    fn usual(self) -> Level {
        if self.setting(Level::Process).is_some() { Level::Process } else { Level::Power }
    }
}

impl Choice {
    /// One of our own designs.
    pub fn ours(design: Design) -> Choice {
        let kind = Kind::Quipu(design);
        Choice { kind, level: kind.usual() }
    }

    /// Everything that can be chosen, our own first.
    pub fn all() -> Vec<Choice> {
        let ours = Design::ALL.iter().map(|design| Kind::Quipu(*design));
        let kinds = ours.chain(Kind::RIVALS);
        let levels = |kind: Kind| Level::ALL.map(|level| Choice { kind, level });
        kinds.flat_map(levels).filter(|choice| choice.kind.setting(choice.level).is_some()).collect()
    }

    /// Everything that one process can measure: pmemkv's libraries take on one level only, and it is the
    /// usual one.
    pub fn together() -> Vec<Choice> {
        let alone = |choice: &Choice| choice.kind == Kind::Pmemkv && choice.level != choice.kind.usual();
        Choice::all().into_iter().filter(|choice| !alone(choice)).collect()
    }

    /// How the engine is set for this level.
    pub fn setting(&self) -> &'static str {
        self.kind.setting(self.level).unwrap_or_default()
    }

    /// The settings of the engine for a benchmark, in `place`. Its cache has room for all records, unless the
    /// place limits it, or the size of the pools that stand beside it is given: then it has as much.
    pub fn setup(&self, config: &Config, place: Place) -> Setup {
        let all = (config.records * config.record_bytes() * 2).max(LEAST_CACHE);
        let cache = place.cache().or(config.pool_size).unwrap_or(all);
        Setup {
            name: self.to_string(),
            kind: self.kind,
            place,
            level: self.level,
            medium: config.medium,
            cache,
            most_records: config.records + config.operations,
            record_bytes: config.record_bytes(),
            threads: config.threads,
        }
    }
}

/// The name that [`FromStr`] reads back; ours have one level and do not name it.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Quipu(design) => write!(f, "{design}"),
            kind => write!(f, "{}:{}", kind.name(), self.level),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
        let mut of_that_name = Choice::all().into_iter().filter(|choice| choice.kind.name() == name);
        let found = match level {
            Some(level) => of_that_name.find(|choice| choice.level.name() == level),
            None => of_that_name.find(|choice| choice.level == choice.kind.usual()),
        };
        found.ok_or_else(|| {
            let known: Vec<String> = Choice::all().iter().map(Choice::to_string).collect();
            format!("choose from {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_the_level_has_a_default() {
        for choice in Choice::all() {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let level = |name: &str| name.parse::<Choice>().map(|choice| choice.level);
        assert_eq!(level("rocksdb"), Ok(Level::Process));
        assert_eq!(level("redb"), Ok(Level::Power));
        assert_eq!(level("sqlite"), Ok(Level::Process));
        assert!(level("redb:process").unwrap_err().contains("redb:memory, redb:power"));
        assert!(level("leveldb").is_err());
    }
}
