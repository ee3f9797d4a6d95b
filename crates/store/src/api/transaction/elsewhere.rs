//! [`TransactionOn`]: a transaction in another table than its client's.

use super::Transaction;
use crate::types::error::Error;
use crate::types::iter::Range;
use crate::types::table::TableId;
use std::ops::Bound;

/// A transaction in another table than its client's; see [`Transaction::on`].
#[derive(Debug)]
pub struct TransactionOn<'t, 'c> {
    pub(super) transaction: &'t mut Transaction<'c>,
    pub(super) table: TableId,
}

impl TransactionOn<'_, '_> {
    /// As [`Transaction::get`].
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.transaction.get_in(self.table, key)
    }

    /// As [`Transaction::get_many`].
    ///
    /// # Errors
    /// As there.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        self.transaction.get_many_in(self.table, keys, each)
    }

    /// As [`Transaction::get_for_update`].
    ///
    /// # Errors
    /// As there.
    pub fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.transaction.get_for_update_in(self.table, key)
    }

    /// As [`Transaction::put`].
    ///
    /// # Errors
    /// As there.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.transaction.put_in(self.table, key, value, 0)
    }

    /// As [`Transaction::put_until`].
    ///
    /// # Errors
    /// As there.
    pub fn put_until(&mut self, key: &[u8], value: &[u8], time: u64) -> Result<(), Error> {
        self.transaction.put_in(self.table, key, value, time.max(1))
    }

    /// As [`Transaction::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.transaction.delete_in(self.table, key)
    }

    /// As [`Transaction::range`].
    pub fn range<'r>(&'r self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Range<'r> {
        self.transaction.range_in(self.table, from, to)
    }

    /// As [`Transaction::prefix`].
    pub fn prefix<'r>(&'r self, prefix: &[u8]) -> Range<'r> {
        self.transaction.prefix_in(self.table, prefix)
    }
}
