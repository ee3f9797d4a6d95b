//! The tables of a pool, each with an index of its own.

use super::Tiers;
use super::front::Front;
use super::ranges::Ranges;
use super::view::{Layer, View, Views};
use crate::types::error::Error;
use crate::types::table::{Table as Handle, TableId, TableStats};
use quipu_parts::epoch::Collector;
use quipu_parts::heap::chain::{ChainHeap, Held, Memtable, Subtable};
use quipu_parts::index::InOrder;
use quipu_parts::sync::SpinLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The table of a client that names none.
pub(super) const DEFAULT: &str = "default";

/// A table.
pub(super) struct Table<I: InOrder> {
    /// Its number in this run, which no other has.
    pub(super) number: usize,
    pub(super) id: TableId,
    pub(super) subtable: Subtable,
    pub(super) views: Views<I>,
    /// Held for a dump's publication, for other levels, and while the table is dropped.
    pub(super) changing: SpinLock<()>,
    /// Range tombstones whose keys are not swept.
    pub(super) ranges: Ranges,
    pub(super) front: Front,
    is_dropped: AtomicBool,
}

/// All tables.
pub(super) struct Tables<I: InOrder> {
    pub(super) index: fn() -> I,
    epochs: Collector,
    /// Of the pool, in the handles of its tables.
    pool: u64,
    all: SpinLock<All<I>>,
    /// Held by the thread that creates or drops a table.
    changing: SpinLock<()>,
}

struct All<I: InOrder> {
    tables: Vec<Arc<Table<I>>>,
    next: usize,
}

impl<I: InOrder> Table<I> {
    /// Refuses a table that has been dropped. A caller who is pinned may read its memtables otherwise. It
    /// asks behind its look at the view, from which a drop takes the levels.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_dropped.load(Ordering::Acquire) { Err(Error::TableDropped) } else { Ok(()) }
    }

    fn handle(&self) -> Handle {
        Handle { name: self.subtable.name.clone(), id: self.id }
    }
}

impl<I: InOrder> Tables<I> {
    /// The tables of a pool. Those whose indexes are not among `loaded` have empty ones.
    pub(super) fn new(
        heap: &ChainHeap,
        index: fn() -> I,
        loaded: Vec<(u64, I)>,
        epochs: &Collector,
    ) -> Result<Tables<I>, Error> {
        let tables = Tables::from_subtables(heap.subtables()?, heap, index, loaded, epochs);
        match tables.named(DEFAULT) {
            Some(_) => Ok(tables),
            None => Err(Error::damaged("the object of the default table", 0, 0)),
        }
    }

    /// The tables of a damaged pool, with empty indexes. One whose name is lost gets another.
    /// Those of these numbers have levels.
    pub(super) fn of_damaged(
        heap: &ChainHeap,
        index: fn() -> I,
        epochs: &Collector,
        trees: &[u64],
    ) -> Tables<I> {
        // The default table is the first one of a pool.
        let named = |known: &[Subtable], number: u64| match known.iter().all(|table| table.created > number) {
            true => DEFAULT.into(),
            false => {
                let mut names = (0..).map(|further| format!("unnamed {number}{}", "'".repeat(further)));
                names.find(|name| known.iter().all(|table| table.name != *name)).expect("one of them")
            }
        };
        Tables::from_subtables(heap.legible_subtables(trees, named), heap, index, Vec::new(), epochs)
    }

    fn from_subtables(
        subtables: impl IntoIterator<Item = Subtable>,
        heap: &ChainHeap,
        index: fn() -> I,
        loaded: Vec<(u64, I)>,
        epochs: &Collector,
    ) -> Tables<I> {
        let mut loaded: HashMap<u64, I> = loaded.into_iter().collect();
        let all = SpinLock::new(All { tables: Vec::new(), next: 0 });
        let pool = heap.certifier().key_hash(b"tables");
        let tables = Tables { index, epochs: epochs.clone(), pool, all, changing: SpinLock::default() };
        for subtable in subtables {
            let index = loaded.remove(&subtable.created).unwrap_or_else(index);
            let table = tables.table(subtable, index);
            tables.add(table);
        }
        tables
    }

    /// A table with a number of its own.
    fn table(&self, subtable: Subtable, index: I) -> Arc<Table<I>> {
        let number = {
            let mut all = self.all.lock();
            all.next += 1;
            all.next - 1
        };
        let first = View::of(Layer::new(0, index, &self.epochs));
        Arc::new(Table {
            number,
            id: TableId { pool: self.pool, created: subtable.created },
            subtable,
            views: Views::new(first, &self.epochs.register().pin()),
            changing: SpinLock::default(),
            ranges: Ranges::default(),
            front: Front::default(),
            is_dropped: AtomicBool::new(false),
        })
    }

    fn add(&self, table: Arc<Table<I>>) {
        self.all.lock().tables.push(table);
    }

    /// All of them, in the order in which they were created.
    pub(super) fn all(&self) -> Vec<Arc<Table<I>>> {
        self.all.lock().tables.clone()
    }

    fn named(&self, name: &str) -> Option<Arc<Table<I>>> {
        self.all.lock().tables.iter().find(|table| table.subtable.name == name).cloned()
    }

    /// The table of a handle.
    pub(super) fn of(&self, id: TableId) -> Result<Arc<Table<I>>, Error> {
        if id.pool != self.pool {
            return Err(Error::Option("the table is of another store".into()));
        }
        self.created(id.created)
    }

    /// The table that was created with this number.
    pub(super) fn created(&self, created: u64) -> Result<Arc<Table<I>>, Error> {
        let all = self.all.lock();
        let found = all.tables.iter().find(|table| table.subtable.created == created);
        found.cloned().ok_or(Error::TableDropped)
    }

    /// The default table.
    pub(super) fn default_table(&self) -> Arc<Table<I>> {
        self.named(DEFAULT).expect("every pool has one, and it is never dropped")
    }
}

impl<I: InOrder> Tiers<I> {
    /// Creates a table. Durable when this returns.
    pub(super) fn create_table(&self, name: &str) -> Result<Handle, Error> {
        self.common.admission.admit()?;
        let _alone = self.tables.changing.lock();
        if self.tables.named(name).is_some() {
            return Err(Error::TableExists { name: name.into() });
        }
        let subtable = self.log.heap().create_subtable(name)?;
        let table = self.tables.table(subtable, (self.tables.index)());
        self.log.open(table.number, table.subtable.created)?;
        self.tables.add(table.clone());
        Ok(table.handle())
    }

    /// The handles of all tables.
    pub(super) fn handles(&self) -> Vec<Handle> {
        self.tables.all().iter().map(|table| table.handle()).collect()
    }

    /// Drops a table, with all that it holds: durably when this returns, and a crash before leaves all of it
    /// or nothing.
    pub(super) fn drop_table(&self, id: TableId) -> Result<(), Error> {
        self.common.admission.admit()?;
        let _alone = self.tables.changing.lock();
        let table = self.tables.of(id)?;
        if table.subtable.name == DEFAULT {
            return Err(Error::Option("the default table cannot be dropped; delete its keys".into()));
        }
        // No memtable of it is rewritten meanwhile.
        let mut worker = self.rewriter.worker();
        worker.leave(id.created);
        // Nothing of it is published meanwhile.
        let changing = table.changing.lock();
        // The run begins, durably, before anything changes.
        self.log.heap().clock().begin(self.log.heap().space());
        let dropped = self.log.drop_subtable(table.number, &table.subtable, &self.anchor)?;
        table.is_dropped.store(true, Ordering::Release);
        self.tables.all.lock().tables.retain(|other| !Arc::ptr_eq(other, &table));
        let guard = worker.participant.pin();
        self.retire_all(&guard, dropped.memtables);
        drop(changing);
        self.leave_levels(&guard, &table);
        Ok(())
    }

    /// The size of a table.
    pub(super) fn table_stats(&self, id: TableId) -> Result<TableStats, Error> {
        self.tables.of(id)?;
        let mut zones = 0;
        let held = self.held_by(|memtable| {
            let is_own = memtable.subtable() == id.created;
            zones += if is_own { memtable.zones().len() as u64 } else { 0 };
            is_own
        });
        let records = held.live().saturating_sub(held.tombstones);
        let zone_size = self.log.heap().space().zone_size();
        Ok(TableStats { records, live_bytes: held.bytes_of(records), bytes: zones * zone_size })
    }

    /// The contents of some memtables. Records that are written anew count once: nothing is between the copy
    /// and its original meanwhile.
    pub(super) fn held_by(&self, mut counts: impl FnMut(&Memtable) -> bool) -> Held {
        let _alone = self.rewriter.worker();
        let memtables = self.log.memtables();
        let counted = memtables.iter().filter(|memtable| counts(memtable));
        self.log.heap().usage().of_all(counted.flat_map(|memtable| memtable.zones()), 0)
    }
}
