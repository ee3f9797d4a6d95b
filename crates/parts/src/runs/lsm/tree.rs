//! The levels of one table.

use super::Shared;
use super::entry::{self, BIAS, KEY_MAX};
use super::files;
use super::levels::LsmLevels;
use super::purge::{Factory, Slot};
use crate::runs::{Compact, Compacted, Levels, NameError, Part, Purge, RunStats, Runs, RunsError, Source};
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::versions::RangeTombstone;
use lsm_tree::compaction::Leveled;
use lsm_tree::config::{
    BlockSizePolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy, PinningPolicy,
};
use lsm_tree::table::filter::BloomConstructionPolicy;
use lsm_tree::{
    AbstractTree, AnyTree, CompressionType, Config, InternalValue, SequenceNumberCounter, Table, Tree,
    ValueType,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

/// Runs of the first level from which on publications are refused. The library counts them by a byte.
const RUNS_MAX: usize = 200;

/// The levels of a table, in a folder.
pub(super) struct LsmRuns {
    tree: Tree,
    folder: Arc<Path>,
    tables: PathBuf,
    strategy: Arc<Leveled>,
    slot: Arc<SpinLock<Slot>>,
    levels: SpinLock<Arc<LsmLevels>>,
    /// Lists of before that somebody may read. The last one to drop a list removes files.
    grave: SpinLock<Vec<Arc<LsmLevels>>>,
    writers: SpinLock<Writers>,
    /// 1 when it must not be changed any more.
    poisoned: AtomicU32,
    opening: Opening,
}

/// The claim of a tree that is open.
pub(super) struct Opening {
    shared: Arc<Shared>,
    table: u64,
}

/// Writes and compactions that run, for the removal of files that a failure leaves.
#[derive(Default)]
struct Writers {
    running: u32,
    /// The number of the next file when the first of these began.
    first: u64,
    /// Files since then that are whole.
    whole: BTreeSet<u64>,
    /// Whether one of these failed.
    has_failed: bool,
}

/// A write or compaction, which fails unless it is told otherwise.
struct Writing<'w> {
    runs: &'w LsmRuns,
    whole: Option<Vec<u64>>,
}

impl Opening {
    /// Claims a tree.
    pub fn new(shared: Arc<Shared>, table: u64) -> Opening {
        assert!(shared.open.lock().insert(table), "the tree of table {table} is open already");
        Opening { shared, table }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.shared.open.lock().remove(&self.table);
    }
}

impl LsmRuns {
    /// Opens the tree in a folder, or makes it.
    pub fn open(opening: Opening, folder: &Path) -> Result<LsmRuns, RunsError> {
        let slot = Arc::new(SpinLock::new(Slot::default()));
        let tables = folder.join(files::TABLES);
        let factory = Factory { slot: AssertUnwindSafe(slot.clone()), tables: tables.clone() };
        let config = config(&opening.shared, folder).with_compaction_filter_factory(Some(Arc::new(factory)));
        // The library has assertions about the bytes of files.
        let opened = catch_unwind(AssertUnwindSafe(|| config.open()));
        let opened = opened.map_err(|_| files::damaged(folder, "the files of a tree are damaged"))?;
        let AnyTree::Standard(tree) = opened.map_err(|error| files::of_library(folder, error))? else {
            return Err(files::damaged(folder, "a tree of another kind"));
        };
        let settings = opening.shared.settings;
        let strategy = Leveled::default().with_l0_threshold(settings.first_level);
        let folder: Arc<Path> = folder.into();
        Ok(LsmRuns {
            levels: SpinLock::new(Arc::new(LsmLevels::of(&tree, folder.clone()))),
            tree,
            folder,
            tables,
            strategy: Arc::new(strategy.with_table_target_size(settings.file)),
            slot,
            grave: SpinLock::default(),
            writers: SpinLock::default(),
            poisoned: AtomicU32::new(0),
            opening,
        })
    }

    /// The tables of now.
    pub fn tables(&self) -> Vec<Table> {
        self.list().tables().cloned().collect()
    }

    fn list(&self) -> Arc<LsmLevels> {
        self.levels.lock().clone()
    }

    /// Takes the list of now for the readers to come.
    fn renew(&self) -> Arc<LsmLevels> {
        let new = Arc::new(LsmLevels::of(&self.tree, self.folder.clone()));
        let mut levels = self.levels.lock();
        // Another thread may have taken a newer one meanwhile.
        let old = match levels.id < new.id {
            true => std::mem::replace(&mut *levels, new),
            false => new,
        };
        let now = levels.clone();
        drop(levels);
        self.grave.lock().push(old);
        now
    }

    /// Drops the lists that nobody else has any more, and with them their files.
    fn empty_grave(&self) {
        let mut grave = self.grave.lock();
        let (held, free): (Vec<_>, Vec<_>) = grave.drain(..).partition(|list| Arc::strong_count(list) > 1);
        *grave = held;
        drop(grave);
        drop(free);
    }

    fn refuse_if_poisoned(&self) -> Result<(), NameError> {
        if self.poisoned.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let error = io::Error::other("an earlier change of names failed");
        Err(NameError::Poisoned(files::device(&self.folder, error)))
    }

    /// Whether a change of names that failed has happened all the same.
    fn after_failure(&self, error: lsm_tree::Error) -> NameError {
        let fault = self.slot.lock().fault.take();
        let error = match fault {
            Some(fault) => files::damaged(&self.folder, fault),
            None => files::of_library(&self.folder, error),
        };
        // In this order: another thread may change names meanwhile. It writes the name first, and this one
        // waits for the version until it has both.
        let named = files::named_version(&self.folder);
        if named.is_some_and(|named| named <= self.tree.current_version().id()) {
            return NameError::NotNamed(error);
        }
        self.poisoned.store(1, Ordering::Release);
        NameError::Poisoned(error)
    }

    fn begin(&self) -> Writing<'_> {
        let mut writers = self.writers.lock();
        if writers.running == 0 {
            *writers = Writers { first: self.tree.next_table_id(), ..Writers::default() };
        }
        writers.running += 1;
        Writing { runs: self, whole: None }
    }
}

impl Writing<'_> {
    /// It has not failed, and these files are whole.
    fn end(mut self, whole: Vec<u64>) {
        self.whole = Some(whole);
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut writers = self.runs.writers.lock();
        writers.running -= 1;
        match self.whole.take() {
            Some(whole) => writers.whole.extend(whole),
            None => writers.has_failed = true,
        }
        // Files of a change that may have happened stay.
        let is_poisoned = self.runs.poisoned.load(Ordering::Acquire) != 0;
        if writers.running > 0 || !writers.has_failed || is_poisoned {
            return;
        }
        // Those that begin from now on have higher numbers.
        let (numbers, whole) =
            (writers.first..self.runs.tree.next_table_id(), std::mem::take(&mut writers.whole));
        drop(writers);
        files::sweep(&self.runs.tables, numbers, &whole);
    }
}

/// The settings of a tree. Filters stay in memory, with 1.3 bytes a key. Indexes do not: they are cut into
/// blocks in the cache, of which a get needs one. A whole index in memory has 4.4 bytes a key more, with
/// values of 508 bytes, and saves a get no time that could be measured. Without filters in the last level,
/// gets of absent keys would take 50 times as long.
fn config(shared: &Shared, folder: &Path) -> Config {
    let counter = SequenceNumberCounter::default();
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
    Config::new(folder, counter.clone(), counter)
        .use_cache(shared.cache.clone())
        .use_descriptor_table(Some(shared.descriptors.clone()))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_partitioning_policy(PinningPolicy::all(true))
        .filter_block_partitioning_policy(PinningPolicy::all(false))
        .filter_policy(FilterPolicy::all(filter))
        .data_block_size_policy(BlockSizePolicy::all(4 << 10))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]))
}

/// The entries of a part, in order.
struct Entries<'e> {
    ranges: std::slice::Iter<'e, RangeTombstone>,
    from: &'e mut dyn Source,
    /// The key of the record before, and its number.
    before: Option<(Vec<u8>, u64)>,
    key: Vec<u8>,
    value: Vec<u8>,
    count: u64,
}

impl Iterator for Entries<'_> {
    type Item = lsm_tree::Result<InternalValue>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(range) = self.ranges.next() {
            let (key, value) = entry::encode_range(range);
            self.count += 1;
            return Some(Ok(InternalValue::from_components(
                key,
                value,
                range.number + BIAS,
                ValueType::Value,
            )));
        }
        let (key, head, value) = self.from.next()?;
        assert!(key.len() <= KEY_MAX, "a key of {} bytes", key.len());
        let before = self.before.get_or_insert_with(|| (Vec::new(), u64::MAX));
        let order = (&*before.0, Reverse(before.1)) < (key, Reverse(head.number));
        assert!(order, "keys rise, and numbers of a key fall");
        before.0.clear();
        before.0.extend_from_slice(key);
        before.1 = head.number;
        self.key.clear();
        self.key.push(entry::DATA);
        self.key.extend_from_slice(key);
        entry::encode(&head, value, &mut self.value);
        self.count += 1;
        let (key, value) = (&*self.key, &*self.value);
        Some(Ok(InternalValue::from_components(key, value, head.number + BIAS, ValueType::Value)))
    }
}

/// The tables of a part.
fn tables_of(part: Part) -> Vec<Table> {
    *part.files.downcast().expect("a part of levels in files")
}

/// Removes files that have no names: each when its table drops.
fn remove(tables: Vec<Table>) {
    tables.iter().for_each(|table| table.is_deleted.store(true, Release));
}

impl Runs for LsmRuns {
    fn levels(&self) -> Arc<dyn Levels> {
        self.list()
    }

    fn write(&self, ranges: &[RangeTombstone], from: &mut dyn Source) -> Result<Part, RunsError> {
        let mut ranges = ranges.to_vec();
        ranges.sort_unstable_by_key(|range| range.number);
        let (key, value) = (Vec::new(), Vec::new());
        let mut entries = Entries { ranges: ranges.iter(), from, before: None, key, value, count: 0 };
        let writing = self.begin();
        let written = self.tree.flush_to_tables(&mut entries);
        let written = written.map_err(|error| files::of_library(&self.folder, error))?;
        let tables = written.map_or_else(Vec::new, |(tables, _)| tables);
        writing.end(tables.iter().map(Table::id).collect());
        let bytes = tables.iter().map(|table| table.metadata.file_size).sum();
        Ok(Part { records: entries.count, bytes, files: Box::new(tables) })
    }

    fn discard(&self, part: Part) {
        remove(tables_of(part));
    }

    fn publish(&self, parts: Vec<Part>) -> Result<(), NameError> {
        let tables: Vec<Table> = parts.into_iter().flat_map(tables_of).collect();
        for pair in tables.windows(2) {
            let (last, next) = (pair[0].metadata.key_range.max(), pair[1].metadata.key_range.min());
            assert!(last < next, "parts in the order of their keys");
        }
        let refused = self.refuse_if_poisoned().and_then(|()| {
            let is_full = self.tree.l0_run_count() >= RUNS_MAX;
            let error = io::Error::other(format!(
                "{RUNS_MAX} runs wait for a compaction; no more can be named until there was one"
            ));
            if is_full { Err(NameError::NotNamed(files::device(&self.folder, error))) } else { Ok(()) }
        });
        if refused.is_err() || tables.is_empty() {
            remove(tables);
            return refused;
        }
        let registered = self.tree.register_tables(&tables, None, None, &[], BIAS);
        let result = registered.map_err(|error| self.after_failure(error));
        if matches!(result, Err(NameError::NotNamed(_))) {
            remove(tables);
        }
        self.renew();
        result
    }

    fn compact(&self, how: Compact, purge: Purge) -> Result<Compacted, NameError> {
        self.empty_grave();
        self.refuse_if_poisoned()?;
        let before = self.list();
        if before.runs.is_empty() {
            return Ok(Compacted::default());
        }
        *self.slot.lock() = Slot { purge: Some(purge), fault: None };
        let writing = self.begin();
        let result = match how {
            Compact::Due => self.tree.compact(self.strategy.clone(), BIAS),
            Compact::All => self.tree.major_compact(self.opening.shared.settings.file, BIAS),
        };
        let after = self.renew();
        result.map_err(|error| self.after_failure(error))?;
        writing.end(after.tables().map(Table::id).collect());
        let compacted = difference(&before, &after);
        drop((before, after));
        self.empty_grave();
        Ok(compacted)
    }

    fn drop_range(&self, from: &[u8], to: &[u8], below: u64) -> Result<u64, NameError> {
        self.refuse_if_poisoned()?;
        let from = entry::long_key(from);
        let to = if to.is_empty() { vec![entry::DATA + 1] } else { entry::long_key(to) };
        let list = self.list();
        let is_inside = |table: &&Table| {
            let keys = &table.metadata.key_range;
            *from <= **keys.min() && **keys.max() < *to
        };
        let inside: Vec<&Table> = list.tables().filter(is_inside).collect();
        if inside.is_empty() || inside.iter().any(|table| table.get_highest_seqno() >= below + BIAS) {
            return Ok(0);
        }
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        self.tree.drop_range::<&[u8], _>(bounds).map_err(|error| self.after_failure(error))?;
        // The library lets go of the files of this change only with the next one. If that fails, they stay
        // for a while.
        let next = self.tree.register_tables(&[], None, None, &[], BIAS);
        let next = next.map_err(|error| self.after_failure(error));
        self.renew();
        if let Err(error @ NameError::Poisoned(_)) = next {
            return Err(error);
        }
        Ok(inside.iter().map(|table| table.metadata.file_size).sum())
    }

    fn next_id(&self) -> u64 {
        self.tree.next_table_id()
    }

    fn stats(&self) -> RunStats {
        let settings = self.opening.shared.settings;
        self.list().stats(settings.file.saturating_mul(settings.first_level.into()))
    }
}

/// The work of a compaction between two lists. New runs of the first level were published meanwhile.
fn difference(before: &LsmLevels, after: &LsmLevels) -> Compacted {
    let of = |list: &LsmLevels| -> Vec<(u64, usize, u64)> {
        let of_run = |run: &super::levels::Run| {
            let level = run.level;
            run.tables
                .iter()
                .map(move |table| (table.id(), level, table.metadata.file_size))
                .collect::<Vec<_>>()
        };
        list.runs.iter().flat_map(of_run).collect()
    };
    let (old, new) = (of(before), of(after));
    let is_in = |list: &[(u64, usize, u64)], id: u64| list.iter().any(|(other, _, _)| *other == id);
    let read = old.iter().filter(|(id, _, _)| !is_in(&new, *id)).map(|(_, _, bytes)| bytes).sum();
    let written = new.iter().filter(|(id, level, _)| *level > 0 && !is_in(&old, *id));
    Compacted {
        has_worked: old.iter().any(|table| !new.contains(table)),
        read,
        written: written.map(|(_, _, bytes)| bytes).sum(),
    }
}
