//! The tables of a pool, each with an index of its own.

use super::Tiers;
use super::ranges::Ranges;
use crate::types::error::Error;
use crate::types::table::{Table as Handle, TableStats};
use quipu_parts::epoch::Collector;
use quipu_parts::heap::chain::{ChainHeap, Subtable};
use quipu_parts::index::BothWays;
use quipu_parts::sync::SpinLock;
use quipu_parts::versions::Versions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The table of a client that names none.
pub(super) const DEFAULT: &str = "default";

/// A table.
pub(super) struct Table<I: BothWays> {
    /// Its number in this run, which no other has.
    pub(super) number: usize,
    pub(super) subtable: Subtable,
    pub(super) versions: Versions<I>,
    /// Range tombstones whose keys are not swept.
    pub(super) ranges: Ranges,
    is_dropped: AtomicBool,
}

/// All tables.
pub(super) struct Tables<I: BothWays> {
    index: fn() -> I,
    epochs: Collector,
    all: SpinLock<All<I>>,
    /// Held by the thread that creates or drops a table.
    changing: SpinLock<()>,
}

struct All<I: BothWays> {
    tables: Vec<Arc<Table<I>>>,
    next: usize,
}

impl<I: BothWays> Table<I> {
    /// Refuses a table that has been dropped. A caller who is pinned may read its memtables otherwise.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_dropped.load(Ordering::Acquire) { Err(Error::TableDropped) } else { Ok(()) }
    }

    fn handle(&self) -> Handle {
        Handle { name: self.subtable.name.clone(), id: self.subtable.created }
    }
}

impl<I: BothWays> Tables<I> {
    /// The tables of a pool, with empty indexes.
    pub(super) fn new(heap: &ChainHeap, index: fn() -> I, epochs: &Collector) -> Result<Tables<I>, Error> {
        let all = SpinLock::new(All { tables: Vec::new(), next: 0 });
        let tables = Tables { index, epochs: epochs.clone(), all, changing: SpinLock::default() };
        heap.subtables()?.into_iter().for_each(|subtable| drop(tables.add(subtable)));
        match tables.named(DEFAULT) {
            Some(_) => Ok(tables),
            None => Err(Error::damaged("the object of the default table", 0, 0)),
        }
    }

    fn add(&self, subtable: Subtable) -> Arc<Table<I>> {
        let versions = Versions::new((self.index)(), self.epochs.clone());
        let mut all = self.all.lock();
        let table = Table {
            number: all.next,
            subtable,
            versions,
            ranges: Ranges::default(),
            is_dropped: AtomicBool::new(false),
        };
        let table = Arc::new(table);
        all.next += 1;
        all.tables.push(table.clone());
        table
    }

    /// All of them, in the order in which they were created.
    pub(super) fn all(&self) -> Vec<Arc<Table<I>>> {
        self.all.lock().tables.clone()
    }

    fn named(&self, name: &str) -> Option<Arc<Table<I>>> {
        self.all.lock().tables.iter().find(|table| table.subtable.name == name).cloned()
    }

    /// The table of a handle.
    pub(super) fn of(&self, id: u64) -> Result<Arc<Table<I>>, Error> {
        let all = self.all.lock();
        all.tables.iter().find(|table| table.subtable.created == id).cloned().ok_or(Error::TableDropped)
    }

    /// The default table.
    pub(super) fn default_table(&self) -> Arc<Table<I>> {
        self.named(DEFAULT).expect("every pool has one, and it is never dropped")
    }
}

impl<I: BothWays> Tiers<I> {
    /// Creates a table. Durable when this returns.
    pub(super) fn create_table(&self, name: &str) -> Result<Handle, Error> {
        self.admission.admit()?;
        let _alone = self.tables.changing.lock();
        if self.tables.named(name).is_some() {
            return Err(Error::TableExists { name: name.into() });
        }
        let subtable = self.log.heap().create_subtable(name)?;
        let table = self.tables.add(subtable);
        self.log.open(table.number, table.subtable.created)?;
        Ok(table.handle())
    }

    /// The handles of all tables.
    pub(super) fn handles(&self) -> Vec<Handle> {
        self.tables.all().iter().map(|table| table.handle()).collect()
    }

    /// Drops a table, with all that it holds: durably when this returns, and a crash before leaves all of it
    /// or nothing.
    pub(super) fn drop_table(&self, id: u64) -> Result<(), Error> {
        self.admission.admit()?;
        let _alone = self.tables.changing.lock();
        let table = self.tables.of(id)?;
        if table.subtable.name == DEFAULT {
            return Err(Error::Option("the default table cannot be dropped; delete its keys".into()));
        }
        // No memtable of it is rewritten meanwhile.
        let mut worker = self.rewriter.worker();
        worker.leave(id);
        // The run begins, durably, before anything changes.
        self.log.heap().clock().begin(self.log.heap().space());
        let dropped = self.log.drop_subtable(table.number, &table.subtable, &self.anchor)?;
        table.is_dropped.store(true, Ordering::Release);
        self.tables.all.lock().tables.retain(|other| !Arc::ptr_eq(other, &table));
        self.retire_all(&mut worker, dropped.memtables);
        Ok(())
    }

    /// The size of a table.
    pub(super) fn table_stats(&self, id: u64) -> Result<TableStats, Error> {
        self.tables.of(id)?;
        let memtables = self.log.memtables();
        let own = memtables.iter().filter(|memtable| memtable.subtable() == id);
        let zones: Vec<_> = own.flat_map(|memtable| memtable.zones()).collect();
        let held = self.log.heap().usage().of_all(zones.iter().copied(), 0);
        let zone_size = self.log.heap().space().zone_size();
        let records = held.live().saturating_sub(held.tombstones);
        Ok(TableStats { records, live_bytes: held.bytes_of(records), bytes: zones.len() as u64 * zone_size })
    }
}
