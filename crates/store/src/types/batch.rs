//! [`WriteBatch`]: writes that take effect together.

use crate::types::table::{Table, TableId};
use quipu_parts::record::{Content, Kind};
use std::ops::Range;

/// Writes to carry out together with [`Client::write`](crate::Client::write), in order. Of several writes to
/// one key the last one counts, and no reader sees the earlier ones. A batch can be used again, also after an
/// error; [`clear`](WriteBatch::clear) keeps its memory.
///
/// It knows nothing of reads before it: a program whose writes follow from what it has read uses
/// [`Client::write_if`](crate::Client::write_if) or [`Client::transact`](crate::Client::transact).
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The table of the writes to come.
    table: Option<TableId>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Its table; `None` for the client's.
    table: Option<TableId>,
    kind: Kind,
    expires: u64,
    key: Range<usize>,
    value: Range<usize>,
}

impl WriteBatch {
    /// A batch of nothing.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Adds a [put](crate::Client::put).
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> &mut WriteBatch {
        self.add(Kind::Value, key, value, 0)
    }

    /// Adds a [put until a time](crate::Client::put_until), in milliseconds since 1970.
    pub fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> &mut WriteBatch {
        self.add(Kind::Value, key, value, time.max(1))
    }

    /// Adds a [deletion](crate::Client::delete).
    pub fn delete(&mut self, key: &[u8]) -> &mut WriteBatch {
        self.add(Kind::Tombstone, key, &[], 0)
    }

    /// Names the table of the following writes, until the next call. Before the first call, writes go to the
    /// table of the client that carries the batch out. All writes of a batch happen together, in all tables.
    ///
    /// ```
    /// # use quipu::{Design, Options, Store, WriteBatch};
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// let (accounts, log) = (store.create_table("accounts")?, store.create_table("log")?);
    /// let mut batch = WriteBatch::new();
    /// batch.on(&accounts).put(b"llama", b"90").put(b"alpaca", b"110");
    /// batch.on(&log).put(b"1", b"10 from llama to alpaca");
    /// store.client().write(&batch)?;
    /// assert_eq!(store.client().on(&log)?.pin().keys().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on(&mut self, table: &Table) -> &mut WriteBatch {
        self.table = Some(table.id);
        self
    }

    /// Writes in the batch.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the batch has no writes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all writes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.table = None;
    }

    /// Adds a put in this table, until a time; 0 for never.
    pub(crate) fn put_in(&mut self, table: TableId, key: &[u8], value: &[u8], expires: u64) {
        self.table = Some(table);
        self.add(Kind::Value, key, value, expires);
    }

    /// Adds a deletion in this table.
    pub(crate) fn delete_in(&mut self, table: TableId, key: &[u8]) {
        self.table = Some(table);
        self.add(Kind::Tombstone, key, &[], 0);
    }

    fn add(&mut self, kind: Kind, key: &[u8], value: &[u8], expires: u64) -> &mut WriteBatch {
        let key = self.keep(key);
        let value = self.keep(value);
        self.entries.push(Entry { table: self.table, kind, expires, key, value });
        self
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Whether a write is of a table that was named.
    pub(crate) fn names_tables(&self) -> bool {
        self.entries.iter().any(|entry| entry.table.is_some())
    }

    /// The writes with their tables, in order.
    pub(crate) fn writes(&self) -> impl ExactSizeIterator<Item = (Option<TableId>, Content<'_>)> + Clone {
        self.entries.iter().map(|entry| entry.table).zip(self.contents())
    }

    /// The writes, in order.
    pub(crate) fn contents(&self) -> impl ExactSizeIterator<Item = Content<'_>> + Clone {
        self.entries.iter().map(|entry| Content {
            kind: entry.kind,
            expires: entry.expires,
            ..Content::value(&self.bytes[entry.key.clone()], &self.bytes[entry.value.clone()])
        })
    }
}
