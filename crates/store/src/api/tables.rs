//! Tables and snapshots, for designs that have them.

use crate::api::store::Store;
use crate::types::error::Error;
use crate::types::table::{Table, TableStats};
use quipu_parts::versions;

/// The state of a store at a moment; see [`Store::snapshot`].
pub struct Snapshot(pub(crate) versions::Snapshot);

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Snapshot").field(&self.0.number()).finish()
    }
}

impl Store {
    /// Creates a table, whose keys are its own; its name has 1 to 128 bytes. It is durable when this returns.
    /// [`Client::on`](crate::Client::on) works with it.
    ///
    /// Every pool of such a design has a table `default`, which other clients use.
    ///
    /// # Errors
    /// [`Error::TableExists`]; [`Error::Unsupported`] for a design without tables; [`Error::Option`] for a
    /// name that is empty or too long, or if the pool has no room for another table.
    ///
    /// ```
    /// # use quipu::{Design, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// let options = Options::new().design(Design::XP).size(16 << 20);
    /// let store = Store::create(dir.path().join("pool"), &options)?;
    /// let herd = store.create_table("herd")?;
    /// let mut client = store.client().on(&herd)?;
    /// client.put(b"llama", b"wool")?;
    /// assert_eq!(store.client().get(b"llama")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_table(&self, name: &str) -> Result<Table, Error> {
        self.admit()?;
        self.engine.create_table(name)
    }

    /// The table of this name.
    ///
    /// # Errors
    /// [`Error::NoTable`]; [`Error::Unsupported`] for a design without tables.
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        let found = self.tables()?.into_iter().find(|table| table.name() == name);
        found.ok_or_else(|| Error::NoTable { name: name.into() })
    }

    /// All tables, in the order in which they were created.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a design without tables.
    pub fn tables(&self) -> Result<Vec<Table>, Error> {
        self.engine.tables()
    }

    /// Drops a table with all that it holds, at once, however much that is. Its clients get
    /// [`Error::TableDropped`] from then on.
    ///
    /// # Errors
    /// [`Error::TableDropped`] if it is gone already; [`Error::Option`] for the table `default`;
    /// [`Error::Unsupported`] for a design without tables.
    ///
    /// ```
    /// # use quipu::{Design, Error, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// let herd = store.create_table("herd")?;
    /// let client = store.client().on(&herd)?;
    /// store.drop_table(&herd)?;
    /// assert!(matches!(client.get(b"llama"), Err(Error::TableDropped)));
    /// assert!(store.table("herd").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drop_table(&self, table: &Table) -> Result<(), Error> {
        self.admit()?;
        self.engine.drop_table(table.id)
    }

    /// The size of a table.
    ///
    /// # Errors
    /// [`Error::TableDropped`]; [`Error::Unsupported`] for a design without tables.
    pub fn table_stats(&self, table: &Table) -> Result<TableStats, Error> {
        self.engine.table_stats(table.id)
    }

    /// The state of all tables now, to read with [`Client::pin_at`](crate::Client::pin_at). While it lives,
    /// no space that it shows is freed, except that of dropped tables.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a design without snapshots.
    ///
    /// ```
    /// # use quipu::{Design, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let options = Options::new().design(Design::XP).size(16 << 20);
    /// # let store = Store::create(dir.path().join("pool"), &options)?;
    /// let mut client = store.client();
    /// client.put(b"llama", b"wool")?;
    /// let before = store.snapshot()?;
    /// client.delete(b"llama")?;
    /// assert_eq!(client.get(b"llama")?, None);
    /// let then = client.pin_at(&before)?;
    /// assert_eq!(then.get(b"llama")?.as_deref(), Some(&b"wool"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.engine.snapshot().map(Snapshot)
    }
}
