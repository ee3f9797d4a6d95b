//! A list of runs for readers.
//!
//! The library's own reads take a lock under which it syncs files, and wait for tens of milliseconds. So
//! readers go over this list, whose tables keep their files.

use super::entry::{self, BIAS, DATA, Fault, KEY_MAX, RANGE};
use super::files;
use super::scan::{Order, Scan};
use crate::runs::{Head, LevelScan, Levels, RunStats, RunsError};
use crate::versions::RangeTombstone;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{AbstractTree, InternalValue, Table, Tree};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use twox_hash::XxHash3_128;

/// The lists of the runs of a tree at one moment.
pub(super) struct LsmLevels {
    /// The id of the library's version.
    pub id: u64,
    /// Newest first.
    pub runs: Vec<Run>,
    pub place: Arc<Path>,
}

/// Tables that follow on each other in the order of keys.
pub(super) struct Run {
    /// Its level, from 0.
    pub level: usize,
    /// By their keys.
    pub tables: Vec<Table>,
}

/// Reads up to this number find a number, as the library's numbers: it looks below.
pub(super) fn bound(up_to: u64) -> u64 {
    up_to.saturating_add(BIAS + 1)
}

impl Run {
    /// The table that may have a key.
    fn table(&self, key: &[u8]) -> Option<&Table> {
        let at = self.tables.partition_point(|table| **table.metadata.key_range.max() < *key);
        self.tables.get(at).filter(|table| **table.metadata.key_range.min() <= *key)
    }
}

impl LsmLevels {
    /// The runs of now.
    pub fn of(tree: &Tree, place: Arc<Path>) -> LsmLevels {
        let version = tree.current_version();
        let mut runs = Vec::new();
        for (level, of_level) in version.iter_levels().enumerate() {
            runs.extend(of_level.iter().map(|run| Run { level, tables: run.to_vec() }));
        }
        LsmLevels { id: version.id(), runs, place }
    }

    /// All tables.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.runs.iter().flat_map(|run| &run.tables)
    }

    fn fault(&self, table: &Table, fault: Fault) -> RunsError {
        files::damaged(&self.place, format!("{fault} in file {}", table.id()))
    }

    fn scan_in(&self, order: Order<'_>, up_to: u64) -> LevelScan<'_> {
        Box::new(Scan::new(&self.runs, order, bound(up_to), &self.place))
    }

    /// The size, with the debt of levels that should grow tenfold from these bytes on.
    pub fn stats(&self, base: u64) -> RunStats {
        let mut stats = RunStats::default();
        let mut levels: BTreeMap<usize, u64> = BTreeMap::new();
        for run in &self.runs {
            stats.first_level += u64::from(run.level == 0);
            for table in &run.tables {
                stats.tables += 1;
                stats.bytes += table.metadata.file_size;
                stats.records += table.metadata.item_count;
                stats.pinned += (table.pinned_filter_size() + table.pinned_block_index_size()) as u64;
                *levels.entry(run.level).or_default() += table.metadata.file_size;
            }
        }
        let first = levels.keys().copied().find(|level| *level > 0).unwrap_or(LAST);
        let over = levels.iter().filter(|(level, _)| **level < LAST).map(|(level, bytes)| {
            let growth = 10u64.saturating_pow(level.saturating_sub(first) as u32);
            bytes.saturating_sub(base.saturating_mul(growth))
        });
        stats.debt = over.sum();
        stats
    }

    /// Proves the bytes of a file, and then its entries.
    fn prove(&self, table: &Table, each: &mut dyn FnMut(&[u8], &Head)) -> Result<(), RunsError> {
        let whole = hash_of(&table.path).map_err(|error| files::device(&self.place, error))?;
        if whole != table.checksum().into_u128() {
            return Err(self.fault(table, "wrong bytes"));
        }
        let of_library = |error| files::of_library(&self.place, error);
        let mut before: Option<InternalValue> = None;
        for item in table.scan().map_err(of_library)? {
            let item = item.map_err(of_library)?;
            let number = match *item.key.user_key {
                [DATA, ref key @ ..] => {
                    let (head, _) = entry::decode(&item.value).map_err(|fault| self.fault(table, fault))?;
                    each(key, &head);
                    head.number
                }
                [RANGE, ..] => {
                    let range = entry::decode_range(&item.value);
                    range.map_err(|fault| self.fault(table, fault))?.number
                }
                _ => return Err(self.fault(table, "a key without its prefix")),
            };
            if item.key.seqno != number + BIAS {
                return Err(self.fault(table, "a number that is not that of its record"));
            }
            let place = |item: &InternalValue| (item.key.user_key.clone(), Reverse(item.key.seqno));
            if before.is_some_and(|before| place(&before) >= place(&item)) {
                return Err(self.fault(table, "records out of order"));
            }
            before = Some(item);
        }
        Ok(())
    }
}

/// The last level, which may be of any size.
const LAST: usize = 6;

fn hash_of(path: &Path) -> io::Result<u128> {
    let (mut file, mut hasher, mut buffer) = (File::open(path)?, XxHash3_128::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish_128()),
            len => hasher.write(&buffer[..len]),
        }
    }
}

impl Levels for LsmLevels {
    fn get(&self, key: &[u8], up_to: u64, out: &mut Vec<u8>) -> Result<Option<Head>, RunsError> {
        if key.len() > KEY_MAX {
            return Ok(None);
        }
        entry::with_key(key, |key| {
            let hash = Builder::get_hash(key);
            for table in self.runs.iter().filter_map(|run| run.table(key)) {
                let found = table.get(key, bound(up_to), hash);
                if let Some(item) = found.map_err(|error| files::of_library(&self.place, error))? {
                    let (head, value) =
                        entry::decode(&item.value).map_err(|fault| self.fault(table, fault))?;
                    out.extend_from_slice(value);
                    return Ok(Some(head));
                }
            }
            Ok(None)
        })
    }

    fn scan<'l>(&'l self, from: &[u8], up_to: u64) -> LevelScan<'l> {
        self.scan_in(Order::Rising { from }, up_to)
    }

    fn scan_back<'l>(&'l self, to: Bound<&[u8]>, up_to: u64) -> LevelScan<'l> {
        let to = match to {
            Bound::Included(key) => Some((key, true)),
            Bound::Excluded(key) => Some((key, false)),
            Bound::Unbounded => None,
        };
        self.scan_in(Order::Falling { to }, up_to)
    }

    fn ranges(&self) -> Result<Vec<RangeTombstone>, RunsError> {
        let mut ranges = BTreeMap::new();
        for table in self.tables().filter(|table| table.metadata.key_range.min().first() == Some(&RANGE)) {
            for item in table.range(..lsm_tree::UserKey::from(&[DATA][..])) {
                let item = item.map_err(|error| files::of_library(&self.place, error))?;
                let range = entry::decode_range(&item.value).map_err(|fault| self.fault(table, fault))?;
                ranges.insert(range.number, range);
            }
        }
        Ok(ranges.into_values().collect())
    }

    fn check(&self, each: &mut dyn FnMut(&[u8], &Head)) -> Result<(), RunsError> {
        self.tables().try_for_each(|table| self.prove(table, each))
    }

    fn highest(&self) -> Option<u64> {
        self.tables().map(|table| table.get_highest_seqno() - BIAS).max()
    }

    fn lowest_id(&self, range: &RangeTombstone) -> Option<u64> {
        let may_have = |table: &&Table| {
            let keys = &table.metadata.key_range;
            // The last one is a key, or all are range tombstones.
            let is_above = keys.max().strip_prefix(&[DATA]).is_some_and(|last| *last >= *range.from);
            let is_below = range.to.is_empty()
                || keys.min().strip_prefix(&[DATA]).is_none_or(|first| *first < *range.to);
            is_above && is_below
        };
        self.tables().filter(may_have).map(|table| table.id()).min()
    }
}
