//! The rest of a damaged tree, file by file.
//!
//! A tree that can be opened has its files in a list, damaged ones too. Of one that cannot, all files are
//! read that can be. Some of these may be left from before a compaction, or from a dump without a name.
//! Their records are true, but the deletions of them may be gone.

use super::entry::{self, BIAS, DATA, RANGE};
use super::files;
use super::read_only::ReadRuns;
use crate::record::shown_key;
use crate::runs::{LevelRecord, Remains, RunsError};
use crate::versions::RangeTombstone;
use lsm_tree::{Cache, Checksum, InternalValue, Table, UserKey};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Bytes of the cache of files that are read without their tree.
const CACHE: u64 = 16 << 20;

/// The files of a tree that can be read.
pub(super) struct LsmRemains {
    tables: Vec<Table>,
    place: Arc<Path>,
    _tree: Option<ReadRuns>,
}

type Entries<'t> = Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>> + 't>;

/// A way through a file.
struct Cursor<'t> {
    table: &'t Table,
    entries: Entries<'t>,
    /// The key of the entry before, for reports.
    before: Option<UserKey>,
    /// Errors that are met before it is given up, since its index may be damaged.
    patience: u64,
}

impl LsmRemains {
    /// The files of a tree that is open.
    pub fn of(tree: ReadRuns, place: &Path) -> LsmRemains {
        let tables = tree.tables();
        LsmRemains { tables, place: place.into(), _tree: Some(tree) }
    }

    /// All files in the folder of a tree.
    pub fn of_files(place: &Path, wrong: &mut dyn FnMut(RunsError)) -> LsmRemains {
        let (mut tables, cache) = (Vec::new(), Arc::new(Cache::with_capacity_bytes(CACHE)));
        let found = files::tables(place).unwrap_or_else(|error| {
            wrong(files::device(place, error));
            Vec::new()
        });
        for (number, path) in found {
            let checksum = Checksum::from_raw(0);
            // The library has assertions about the bytes of files.
            let found = catch_unwind(AssertUnwindSafe(|| {
                Table::recover(path, checksum, 0, 0, cache.clone(), None, false, false)
            }));
            match found {
                Ok(Ok(table)) => tables.push(table),
                _ => wrong(files::damaged(place, format!("file {number} cannot be read"))),
            }
        }
        LsmRemains { tables, place: place.into(), _tree: None }
    }

    fn cursor<'t>(&self, table: &'t Table, entries: Entries<'t>) -> Cursor<'t> {
        Cursor { table, entries, before: None, patience: table.metadata.data_block_count }
    }
}

impl Cursor<'_> {
    /// The next entry that can be read.
    fn next(&mut self, place: &Path, wrong: &mut dyn FnMut(RunsError)) -> Option<InternalValue> {
        loop {
            match self.entries.next()? {
                Ok(entry) => {
                    self.before = Some(entry.key.user_key.clone());
                    return Some(entry);
                }
                Err(_) => wrong(self.fault("a block", place)),
            }
            self.patience = self.patience.checked_sub(1)?;
        }
    }

    fn fault(&self, what: &str, place: &Path) -> RunsError {
        let behind = match self.before.as_deref() {
            Some([DATA, key @ ..]) => format!("behind the key {}", shown_key(key)),
            _ => "before its first key".to_owned(),
        };
        files::damaged(place, format!("{what} in file {}, {behind}", self.table.id()))
    }
}

impl Remains for LsmRemains {
    fn ranges(&self, wrong: &mut dyn FnMut(RunsError)) -> Vec<RangeTombstone> {
        let mut ranges = BTreeMap::new();
        for table in self.tables.iter().filter(|table| table.metadata.key_range.min().first() == Some(&RANGE))
        {
            let entries = Box::new(table.range(..UserKey::from(&[DATA][..])));
            let mut cursor = self.cursor(table, entries);
            while let Some(entry) = cursor.next(&self.place, wrong) {
                match entry::decode_range(&entry.value) {
                    Ok(range) => _ = ranges.insert(range.number, range),
                    Err(fault) => wrong(cursor.fault(fault, &self.place)),
                }
            }
        }
        ranges.into_values().collect()
    }

    fn records(&self, each: &mut dyn FnMut(LevelRecord) -> bool, wrong: &mut dyn FnMut(RunsError)) {
        let first = UserKey::from(&[DATA][..]);
        let cursor = |table| self.cursor(table, Box::new(table.range(first.clone()..)));
        let mut cursors: Vec<Cursor<'_>> = self.tables.iter().map(cursor).collect();
        let place =
            |entry: &InternalValue, at| Reverse((entry.key.user_key.clone(), Reverse(entry.key.seqno), at));
        let mut heads: Vec<Option<InternalValue>> = Vec::new();
        let mut order = BinaryHeap::new();
        for (at, cursor) in cursors.iter_mut().enumerate() {
            let head = cursor.next(&self.place, wrong);
            order.extend(head.iter().map(|head| place(head, at)));
            heads.push(head);
        }
        let mut told: Option<UserKey> = None;
        while let Some(Reverse((key, _, at))) = order.pop() {
            let next = cursors[at].next(&self.place, wrong);
            order.extend(next.iter().map(|next| place(next, at)));
            let Some(entry) = std::mem::replace(&mut heads[at], next) else { continue };
            if told.as_ref() == Some(&key) {
                continue;
            }
            match entry::decode(&entry.value) {
                Ok((head, value)) if head.number + BIAS == entry.key.seqno => {
                    let record = LevelRecord { key: key[1..].to_vec(), head, value: value.to_vec() };
                    told = Some(key);
                    if !each(record) {
                        return;
                    }
                }
                Ok(_) => wrong(cursors[at].fault("a number that is not that of its record", &self.place)),
                Err(fault) => wrong(cursors[at].fault(fault, &self.place)),
            }
        }
    }
}
