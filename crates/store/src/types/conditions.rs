//! [`Conditions`]: a batch is written if they still hold.

use crate::types::table::{Table, TableId};
use std::ops::Range;

/// Conditions under which a batch counts; see [`Client::write_if`](crate::Client::write_if). They can be
/// used again; [`clear`](Conditions::clear) keeps their memory.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The table of the keys to come.
    table: Option<TableId>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Its table; `None` for the client's.
    table: Option<TableId>,
    key: Range<usize>,
    must: Must,
}

/// A condition of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Must {
    /// Its value has this version, or it has none.
    Have(Option<u64>),
    /// Nobody has written it since this number, not even a deletion.
    RestSince(u64),
}

/// A key and its condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'c> {
    /// Its table; `None` for the client's.
    pub(crate) table: Option<TableId>,
    pub(crate) key: &'c [u8],
    pub(crate) must: Must,
}

impl Conditions {
    /// No conditions.
    pub fn new() -> Conditions {
        Conditions::default()
    }

    /// `key` still has the value of this [version](crate::Client::version); `None` stands for "absent".
    pub fn version(&mut self, key: &[u8], version: Option<u64>) -> &mut Conditions {
        self.add(self.table, key, Must::Have(version));
        self
    }

    /// `key` has no value.
    pub fn absent(&mut self, key: &[u8]) -> &mut Conditions {
        self.version(key, None)
    }

    /// Names the table of the following keys, until the next call, as
    /// [`WriteBatch::on`](crate::WriteBatch::on) does.
    pub fn on(&mut self, table: &Table) -> &mut Conditions {
        self.table = Some(table.id);
        self
    }

    /// Conditions that there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all conditions.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.table = None;
    }

    pub(crate) fn add(&mut self, table: Option<TableId>, key: &[u8], must: Must) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.entries.push(Entry { table, key: start..self.bytes.len(), must });
    }

    /// Whether a key is of a table that was named.
    pub(crate) fn names_tables(&self) -> bool {
        self.entries.iter().any(|entry| entry.table.is_some())
    }

    /// The conditions, in the order in which they were given.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = Condition<'_>> + Clone {
        self.entries.iter().map(|entry| Condition {
            table: entry.table,
            key: &self.bytes[entry.key.clone()],
            must: entry.must,
        })
    }
}
