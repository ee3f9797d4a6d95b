//! [`Table`]: a table of a pool, and its size.

/// A table of a pool, whose keys are its own. See [`Store::create_table`](crate::Store::create_table).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    pub(crate) name: String,
    /// The number that it was created with.
    pub(crate) id: u64,
}

impl Table {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The size of a table, exact when nobody is writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// Keys present. Those of a deleted range count until they have been swept, which snapshots delay.
    pub records: u64,
    /// Bytes of their records, about.
    pub live_bytes: u64,
    /// Bytes of the zones that it takes.
    pub bytes: u64,
}
