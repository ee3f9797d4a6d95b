//! The levels of one table.

use super::access::TreeFolders;
use super::config::config;
use super::entry::{self, BIAS, KEY_MAX};
use super::files;
use super::levels::LsmLevels;
use super::purge::{Factory, Slot};
use super::{LsmSettings, Shared};
use crate::runs::{
    Compact, Compacted, Levels, NameError, Notice, Part, Purge, RunStats, Runs, RunsError, Source,
};
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::versions::RangeTombstone;
use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, InternalValue, SequenceNumberCounter, Table, Tree, ValueType};
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
    folders: TreeFolders,
    /// Counts the changes of names that begin, as the library draws its own numbers.
    changes: SequenceNumberCounter,
    strategy: Arc<Leveled>,
    pub(super) slot: Arc<SpinLock<Slot>>,
    levels: SpinLock<Arc<LsmLevels>>,
    /// Lists of before that somebody may read. The last one to drop a list removes files.
    grave: SpinLock<Vec<Arc<LsmLevels>>>,
    writers: SpinLock<Writers>,
    /// Whether its files tell what the library thinks they do.
    state: AtomicU32,
    /// Files that a publication may have named before it failed, as long as this is unsure.
    unsure: SpinLock<Vec<Table>>,
    opening: Opening,
}

/// States of a tree. Its names are those that the library knows; or they may be others, since a change has
/// failed half way, and the next change names them again first; or nothing may be changed any more.
const SURE: u32 = 0;
const UNSURE: u32 = 1;
const POISONED: u32 = 2;

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
        let before = shared.open.lock().insert(table, 0);
        assert!(before.is_none(), "the tree of table {table} is open already");
        Opening { shared, table }
    }

    /// The forest.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The table.
    pub fn table(&self) -> u64 {
        self.table
    }

    /// The files of the tree name this version. They never name a lower one again.
    fn has_named(&self, version: u64) {
        let mut open = self.shared.open.lock();
        open.entry(self.table).and_modify(|least| *least = version.max(*least));
    }

    /// Bytes of the first level.
    pub fn base(&self) -> u64 {
        let settings = self.shared.settings;
        settings.file.saturating_mul(settings.first_level.into())
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.shared.open.lock().remove(&self.table);
    }
}

impl LsmRuns {
    /// Opens the tree in a folder, or makes it.
    pub fn open(opening: Opening, folder: &Path, folders: TreeFolders) -> Result<LsmRuns, RunsError> {
        let slot = Arc::new(SpinLock::new(Slot::default()));
        let tables = folder.join(files::TABLES);
        let factory = Factory { slot: AssertUnwindSafe(slot.clone()), tables: tables.clone() };
        let changes = SequenceNumberCounter::default();
        let config =
            config(&opening.shared, folder, &changes).with_compaction_filter_factory(Some(Arc::new(factory)));
        // The library has assertions about the bytes of files.
        let opened = catch_unwind(AssertUnwindSafe(|| config.open()));
        let opened = opened.map_err(|_| files::damaged(folder, "the files of a tree are damaged"))?;
        let AnyTree::Standard(tree) = opened.map_err(|error| files::of_library(folder, error))? else {
            return Err(files::damaged(folder, "a tree of another kind"));
        };
        let settings = opening.shared.settings;
        let strategy = Leveled::default().with_l0_threshold(settings.first_level);
        let folder: Arc<Path> = folder.into();
        folders.give_all().map_err(|error| files::device(&folder, error))?;
        opening.has_named(tree.current_version().id());
        Ok(LsmRuns {
            levels: SpinLock::new(Arc::new(LsmLevels::of(&tree, folder.clone()))),
            tree,
            changes,
            folder,
            tables,
            folders,
            strategy: Arc::new(strategy.with_table_target_size(settings.file)),
            slot,
            grave: SpinLock::default(),
            writers: SpinLock::default(),
            state: AtomicU32::new(SURE),
            unsure: SpinLock::default(),
            opening,
        })
    }

    fn list(&self) -> Arc<LsmLevels> {
        self.levels.lock().clone()
    }

    /// Takes the list of now for the readers to come.
    fn renew(&self) -> Arc<LsmLevels> {
        let new = Arc::new(LsmLevels::of(&self.tree, self.folder.clone()));
        self.opening.has_named(new.id);
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

    /// Ensures that names may be changed: names them again if an earlier change has failed half way.
    fn ready(&self) -> Result<(), NameError> {
        match self.state.load(Ordering::Acquire) {
            SURE => Ok(()),
            UNSURE => {
                self.name_again().map_err(|error| NameError::NotNamed(files::device(&self.folder, error)))
            }
            _ => {
                let error = io::Error::other("an earlier change of names failed");
                Err(NameError::Poisoned(files::device(&self.folder, error)))
            }
        }
    }

    /// Names the version that the library knows, if the files may name another one.
    fn name_again(&self) -> io::Result<()> {
        // Nobody else changes names as long as this is held, and each change counts first.
        let (known, _alone) = loop {
            let (changes, known) = (self.changes.get(), self.tree.current_version().id());
            let alone = self.tree.get_version_history_lock();
            if self.changes.get() == changes {
                break (known, alone);
            }
        };
        if files::named_version(&self.folder).ok() != Some(known) {
            files::name_version(&self.folder, known)?;
            self.folders.give_names(known)?;
        }
        self.state.store(SURE, Ordering::Release);
        remove(std::mem::take(&mut *self.unsure.lock()));
        Ok(())
    }

    /// The error of a change of names that the library could not end. The names become those of before, if
    /// they can.
    fn after_failure(&self, error: RunsError) -> NameError {
        let Err(again) = self.name_again() else { return NameError::NotNamed(error) };
        // Without descriptors, memory or room nothing can be named now. With them it can.
        let is_passing = files::is_passing(&again);
        self.state.store(if is_passing { UNSURE } else { POISONED }, Ordering::Release);
        if is_passing { NameError::NotNamed(error) } else { NameError::Poisoned(error) }
    }

    /// The error of a compaction, or what its filter has met.
    fn after_failed_compaction(&self, error: lsm_tree::Error) -> NameError {
        let Slot { fault, refused, .. } = std::mem::take(&mut *self.slot.lock());
        match (refused, fault) {
            (Some(refused), _) => NameError::NotNamed(refused),
            (None, Some(fault)) => self.after_failure(files::damaged(&self.folder, fault)),
            (None, None) => self.after_failure(self.of_library(error)),
        }
    }

    fn of_library(&self, error: lsm_tree::Error) -> RunsError {
        files::of_library(&self.folder, error)
    }

    /// Whether files with these numbers are in the list that the library knows.
    fn has_named(&self, tables: &[Table]) -> bool {
        let version = self.tree.current_version();
        tables.iter().all(|table| version.iter_tables().any(|named| named.id() == table.id()))
    }

    fn settings(&self) -> &LsmSettings {
        &self.opening.shared.settings
    }

    /// Gives files that have names now the access of the pool. Until then the folder keeps others out, and a
    /// file that is left out is given it by the next opening.
    fn give_access<'t>(&self, tables: impl Iterator<Item = &'t Table>) {
        tables.for_each(|table| drop(self.folders.give_table(table.id())));
        drop(self.folders.give_names(self.tree.current_version().id()));
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
        let is_sure = self.runs.state.load(Ordering::Acquire) == SURE;
        if writers.running > 0 || !writers.has_failed || !is_sure {
            return;
        }
        // Those that begin from now on have higher numbers.
        let (numbers, mut whole) =
            (writers.first..self.runs.tree.next_table_id(), std::mem::take(&mut writers.whole));
        drop(writers);
        // A change may have happened whose end has failed.
        whole.extend(self.runs.tree.current_version().iter_tables().map(Table::id));
        files::sweep(&self.runs.tables, numbers, &whole);
    }
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
        let given = tables.iter().try_for_each(|table| self.folders.ensure_table(table.id()));
        if let Err(error) = given {
            remove(tables);
            return Err(files::device(&self.folder, error));
        }
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
        let refused = self.ready().and_then(|()| {
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
        let result = match registered {
            Err(error) if !self.has_named(&tables) => Err(self.after_failure(self.of_library(error))),
            _ => Ok(()),
        };
        match (&result, self.state.load(Ordering::Acquire)) {
            (Ok(()), _) => self.give_access([].into_iter()),
            (Err(_), SURE) => remove(tables),
            (Err(_), UNSURE) => self.unsure.lock().extend(tables),
            (Err(_), _) => {}
        }
        self.renew();
        result
    }

    fn compact(&self, how: Compact, purge: Purge, notice: &Notice) -> Result<Compacted, NameError> {
        self.empty_grave();
        self.ready()?;
        let before = self.list();
        if before.runs.is_empty() {
            return Ok(Compacted::default());
        }
        let (purge, notice) = (Some(purge), Some(notice.clone()));
        *self.slot.lock() = Slot { purge, notice, ..Slot::default() };
        let writing = self.begin();
        let result = match how {
            Compact::Due => self.tree.compact(self.strategy.clone(), BIAS),
            Compact::All => self.tree.major_compact(self.settings().file, BIAS),
        };
        let after = self.renew();
        let compacted = difference(&before, &after);
        if let Err(error) = result
            && !compacted.has_worked
        {
            return Err(self.after_failed_compaction(error));
        }
        let is_old = |table: &&Table| before.tables().any(|old| old.id() == table.id());
        self.give_access(after.tables().filter(|table| !is_old(table)));
        writing.end(after.tables().map(Table::id).collect());
        drop((before, after));
        self.empty_grave();
        Ok(compacted)
    }

    fn drop_range(&self, from: &[u8], to: &[u8], below: u64, before: &Notice) -> Result<u64, NameError> {
        self.ready()?;
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
        before().map_err(NameError::NotNamed)?;
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let failed = |error| self.after_failure(self.of_library(error));
        self.tree.drop_range::<&[u8], _>(bounds).map_err(failed)?;
        // The library lets go of the files of this change only with the next one. If that fails, they stay
        // for a while.
        let next = self.tree.register_tables(&[], None, None, &[], BIAS);
        let next = next.map_err(failed);
        self.give_access([].into_iter());
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
        self.list().stats(self.opening.base())
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
