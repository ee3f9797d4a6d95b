//! [`Table`]: a table of a pool, and its size.

/// A table of a pool, whose keys are its own. See [`Store::create_table`](crate::Store::create_table).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    pub(crate) name: String,
    pub(crate) id: TableId,
}

/// Which table of which pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableId {
    /// A number that pools do not share.
    pub(crate) pool: u64,
    /// The number that the table was created with.
    pub(crate) created: u64,
}

impl Table {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The size of a table, exact while no thread writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// Keys present. Those of a deleted range count until they have been swept, which snapshots delay.
    pub records: u64,
    /// Bytes of their records, approximately.
    pub live_bytes: u64,
    /// Bytes of the zones that it takes.
    pub bytes: u64,
}
