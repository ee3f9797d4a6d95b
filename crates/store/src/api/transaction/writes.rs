//! [`Writes`]: what a transaction has written and not committed.

use crate::types::error::Error;
use crate::types::table::TableId;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// A write of a transaction.
pub(super) enum Write {
    Put {
        value: Box<[u8]>,
        /// 0 for never.
        expires: u64,
    },
    Delete,
}

/// A write, and the bytes that it takes in the commit.
struct Kept {
    write: Write,
    len: u64,
}

/// A place in the writes of a transaction; see
/// [`Transaction::savepoint`](crate::Transaction::savepoint).
#[derive(Debug)]
pub struct Savepoint {
    /// No other has it.
    number: u64,
}

/// The writes of a transaction: of each key the last.
#[derive(Default)]
pub(super) struct Writes {
    tables: Vec<(TableId, OfTable)>,
    /// Savepoints, and how many writes had been replaced then.
    savepoints: Vec<(u64, usize)>,
    /// Since the first savepoint: what was there before each write.
    replaced: Vec<(TableId, Box<[u8]>, Option<Kept>)>,
}

#[derive(Default)]
struct OfTable {
    writes: BTreeMap<Box<[u8]>, Kept>,
    len: u64,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.tables.iter().all(|(_, own)| own.writes.is_empty())
    }

    fn of(&self, table: TableId) -> Option<&OfTable> {
        self.tables.iter().find(|(id, _)| *id == table).map(|(_, own)| own)
    }

    fn of_mut(&mut self, table: TableId) -> &mut OfTable {
        let at = self.tables.iter().position(|(id, _)| *id == table).unwrap_or_else(|| {
            self.tables.push((table, OfTable::default()));
            self.tables.len() - 1
        });
        &mut self.tables[at].1
    }

    /// The write of a key.
    pub(super) fn get(&self, table: TableId, key: &[u8]) -> Option<&Write> {
        self.of(table)?.writes.get(key).map(|kept| &kept.write)
    }

    /// The writes of a table within these bounds, in order of keys.
    pub(super) fn range<'w>(
        &'w self,
        table: TableId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = (&'w [u8], &'w Write)> {
        let is_empty = match (from, to) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
                from >= to
            }
        };
        let own = self.of(table).filter(|_| !is_empty);
        let writes = own.into_iter().flat_map(move |own| own.writes.range::<[u8], _>((from, to)));
        writes.map(|(key, kept)| (&**key, &kept.write))
    }

    /// Shows all writes.
    pub(super) fn each(&self, mut show: impl FnMut(TableId, &[u8], &Write)) {
        for (table, own) in &self.tables {
            own.writes.iter().for_each(|(key, kept)| show(*table, key, &kept.write));
        }
    }

    /// Adds a write, which takes so many bytes in the commit; these are the most for a table.
    ///
    /// # Errors
    /// [`Error::TransactionTooLarge`]; it is not added then.
    pub(super) fn add(
        &mut self,
        table: TableId,
        key: &[u8],
        write: Write,
        (len, limit): (u64, u64),
    ) -> Result<(), Error> {
        let own = self.of_mut(table);
        let before = own.writes.get(key).map_or(0, |kept| kept.len);
        let all = own.len - before + len;
        if all > limit {
            return Err(Error::TransactionTooLarge { len: all, limit });
        }
        own.len = all;
        let replaced = own.writes.insert(key.into(), Kept { write, len });
        if !self.savepoints.is_empty() {
            self.replaced.push((table, key.into(), replaced));
        }
        Ok(())
    }

    pub(super) fn savepoint(&mut self) -> Savepoint {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.savepoints.push((number, self.replaced.len()));
        Savepoint { number }
    }

    pub(super) fn rollback_to(&mut self, to: &Savepoint) -> Result<(), Error> {
        let Some(at) = self.savepoints.iter().position(|(number, _)| *number == to.number) else {
            return Err(Error::Option(
                "the savepoint is of another transaction, or was taken after one that was rolled back to"
                    .into(),
            ));
        };
        self.savepoints.truncate(at + 1);
        for (table, key, before) in self.replaced.split_off(self.savepoints[at].1).into_iter().rev() {
            let own = self.of_mut(table);
            own.len += before.as_ref().map_or(0, |kept| kept.len);
            let gone = match before {
                Some(kept) => own.writes.insert(key, kept),
                None => own.writes.remove(&key),
            };
            own.len -= gone.map_or(0, |kept| kept.len);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId { pool: 1, created: 1 };

    fn put(writes: &mut Writes, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let write = Write::Put { value: value.into(), expires: 0 };
        writes.add(TABLE, key, write, (value.len() as u64, 10))
    }

    fn all(writes: &Writes) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        writes.each(|_, key, write| {
            let value = match write {
                Write::Put { value, .. } => Some(value.to_vec()),
                Write::Delete => None,
            };
            all.push((key.to_vec(), value));
        });
        all
    }

    #[test]
    fn savepoints_bring_back_what_was_there() {
        let mut writes = Writes::default();
        put(&mut writes, b"a", b"1").unwrap();
        let first = writes.savepoint();
        put(&mut writes, b"a", b"22").unwrap();
        put(&mut writes, b"b", b"333").unwrap();
        let second = writes.savepoint();
        writes.add(TABLE, b"a", Write::Delete, (1, 10)).unwrap();
        writes.rollback_to(&second).unwrap();
        assert_eq!(all(&writes), [(b"a".into(), Some(b"22".into())), (b"b".into(), Some(b"333".into()))]);
        writes.rollback_to(&first).unwrap();
        assert_eq!(all(&writes), [(b"a".into(), Some(b"1".into()))]);
        put(&mut writes, b"c", b"4").unwrap();
        // It is gone, also when as much has been written again.
        assert!(writes.rollback_to(&second).is_err());
        writes.rollback_to(&first).unwrap();
        assert_eq!((all(&writes).len(), writes.of(TABLE).unwrap().len), (1, 1));
        assert!(Writes::default().rollback_to(&first).is_err(), "of another transaction");
    }

    #[test]
    fn a_write_that_is_too_much_is_not_added() {
        let mut writes = Writes::default();
        put(&mut writes, b"a", b"123456").unwrap();
        let refused = put(&mut writes, b"b", b"12345");
        assert!(matches!(refused, Err(Error::TransactionTooLarge { len: 11, limit: 10 })));
        put(&mut writes, b"a", b"1234567890").unwrap();
        assert_eq!(all(&writes).len(), 1);
    }
}
