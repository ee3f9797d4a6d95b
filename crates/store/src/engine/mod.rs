//! The façade's view of a design: an [`Engine`] that all clients share, and a [`Session`] for each client.
//!
//! A walk implements both, and its types end here: everything below is compiled for its parts. A method that
//! only some walks have refuses by default.

pub(crate) mod bounds;
pub(crate) mod checks;
pub(crate) mod common;
mod decide;
pub(crate) mod heard;
pub(crate) mod holder;
pub(crate) mod moment;
pub(crate) mod site;
#[cfg(test)]
pub(crate) mod toy;

use self::checks::Checks;
use self::common::Common;
use self::decide::Putting;
use self::moment::Moment;
use crate::background::Job;
use crate::types::batch::WriteBatch;
use crate::types::change::Expiry;
use crate::types::error::Error;
use crate::types::iter::{KeyItem, Pair, Versioned};
use crate::types::reports::{CheckReport, SalvageReport};
use crate::types::stats::{Activity, Stats};
use crate::types::table::{Table, TableId, TableStats};
#[cfg(doc)]
use crate::{Client, Guard};
use quipu_medium::{MediumKind, Node, Region};
use quipu_parts::epoch::{self, Held, What};
use quipu_parts::heap::Clock;
use quipu_parts::record::Content;
use quipu_parts::space::{CheckpointEntry, Space, SpaceError};
use quipu_parts::versions::Snapshot;
use smallbox::SmallBox;
use std::any::Any;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

pub(crate) use self::decide::{Decide, Decision, Removal};

/// An open store. Each session has a share of it, and so has each thread of its jobs.
pub(crate) trait Engine: Send + Sync {
    /// A new client's session. Its data go to this node, or to where its thread runs.
    fn session(self: Arc<Self>, node: Option<Node>) -> InPlace;

    /// The parts that every engine has.
    fn common(&self) -> &Common;

    /// The source of its numbers.
    fn clock(&self) -> &Clock;

    /// The work that runs beside its clients. Each start of the threads asks again; the bells are the same
    /// each time.
    fn jobs(self: Arc<Self>) -> Vec<Job>;

    /// Longest key and longest value, in bytes.
    fn limits(&self) -> (u64, u64);

    /// As [`Store::create_table`](crate::Store::create_table).
    fn create_table(&self, _name: &str) -> Result<Table, Error> {
        Err(Error::Unsupported { what: NO_TABLES })
    }

    /// As [`Store::tables`](crate::Store::tables).
    fn tables(&self) -> Result<Vec<Table>, Error> {
        Err(Error::Unsupported { what: NO_TABLES })
    }

    /// As [`Store::drop_table`](crate::Store::drop_table).
    fn drop_table(&self, _id: TableId) -> Result<(), Error> {
        Err(Error::Unsupported { what: NO_TABLES })
    }

    /// As [`Store::table_stats`](crate::Store::table_stats).
    fn table_stats(&self, _id: TableId) -> Result<TableStats, Error> {
        Err(Error::Unsupported { what: NO_TABLES })
    }

    /// The state that is visible now.
    fn snapshot(&self) -> Result<Snapshot, Error> {
        Err(Error::Unsupported { what: NO_SNAPSHOTS })
    }

    /// The state that is visible now, for a transaction.
    fn moment(&self) -> Result<(Snapshot, Moment), Error> {
        Err(Error::Unsupported { what: NO_TRANSACTIONS })
    }

    /// The options of this handle that are in force.
    fn in_force(&self) -> InForce {
        InForce::default()
    }

    /// Sizes and counts.
    fn stats(&self) -> Stats;

    /// The activity of the store at this moment.
    fn activity(&self) -> Activity {
        Activity::default()
    }

    /// Reclaims all space that it can. Returns the segments or blocks freed, and the bytes moved.
    fn compact(&self) -> Result<(u64, u64), Error> {
        Ok((0, 0))
    }

    /// Proves everything. The caller has the store for itself.
    fn check(&self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error>;

    /// Publishes parked writes of departed clients, and frees what waited for readers. The caller has the
    /// store for itself.
    fn quiesce(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Prepares a pool that this run has changed for a quick open. Returns the name of the checkpoint, or of
    /// none. The caller has the store for itself, and it is quiet.
    fn retire(&self) -> Result<CheckpointEntry, Error> {
        Ok(CheckpointEntry::default())
    }

    /// Copies records that prove themselves out of a pool that was [not
    /// recovered](crate::engine::site::How::Unrecovered). `wrong` is the known damage of its metadata.
    fn salvage(
        &self,
        _wrong: &[SpaceError],
        _threads: usize,
        _into: &Arc<dyn Engine>,
        _progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<SalvageReport, Error> {
        Err(Error::Unsupported { what: NO_SALVAGE })
    }
}

/// The missing capabilities of designs without an order over all writes.
pub(crate) const NO_TABLES: &str = "tables";
pub(crate) const NO_SNAPSHOTS: &str = "snapshots";
pub(crate) const NO_TRANSACTIONS: &str = "transactions";

/// The missing capability of designs whose records have no numbers that last.
pub(crate) const NO_VERSIONS: &str = "versions";

/// The missing capability of a design whose pools cannot be salvaged, for the error.
pub(crate) const NO_SALVAGE: &str =
    "records that prove themselves and tell which of them count, so nothing can be salvaged";

/// See [`Engine::in_force`].
#[derive(Clone, Copy, Default)]
pub(crate) struct InForce {
    /// One of two puts that meet at a key may return for the other.
    pub(crate) eliminate: bool,
    /// Later writes of a client may publish its puts.
    pub(crate) late: bool,
}

/// The part that is the same for all engines.
impl dyn Engine + '_ {
    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.common().space
    }

    pub(crate) fn region(&self) -> &Region {
        self.space().region()
    }

    /// An error if a thread has panicked at its work: DRAM may be wrong then.
    fn fail_with_background(&self) -> Result<(), Error> {
        if self.common().admission.has_failed() { Err(Error::BackgroundFailed) } else { Ok(()) }
    }

    /// Proves everything. The caller has the store for itself.
    pub(crate) fn prove(&self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        self.fail_with_background()?;
        self.check(progress)
    }

    /// Gives the storage of free zones back to the file system. The caller has the store for itself.
    pub(crate) fn trim(&self) -> Result<u64, Error> {
        self.common().admission.admit()?;
        // The checkpoint of the last close lies in such zones. A run that has begun leaves a new one when it
        // ends.
        self.clock().draw(self.space());
        // A crash of the system must not lose the zone table that shows them free, since their headers are
        // lost.
        self.sync()?;
        Ok(self.space().discard_free_zones()?)
    }

    /// Closes the pool so that the next open knows that nothing is missing, unless it was only read. The
    /// caller has the store for itself.
    pub(crate) fn close(&self) -> Result<(), Error> {
        self.fail_with_background()?;
        if self.region().is_read_only() {
            return Ok(());
        }
        self.quiesce()?;
        if !self.space().superblock().is_clean() {
            let keys = self.stats().records;
            let checkpoint = self.retire()?;
            self.sync()?;
            self.space().update_superblock(|superblock| {
                superblock.set_clean(true);
                superblock.keys.set(keys);
                superblock.note_place(self.region());
                superblock.checkpoint = checkpoint;
            });
        }
        self.sync()
    }

    /// Writes a file back to its device. On a persistent module and on the simulator, a fence makes data
    /// durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        if self.region().kind() == MediumKind::File { Ok(self.region().sync()?) } else { Ok(()) }
    }
}

/// The most keys or pairs that a session takes in one call: so many cache misses overlap, and records share a
/// fence.
pub(crate) const AT_ONCE: usize = 32;

/// A session in the memory of its client (1 KiB; a longer one would be on the heap). In a box of its own
/// every put took 14 ns longer, of 230.
pub(crate) type InPlace = SmallBox<dyn Session, [u64; 128]>;

/// One client's access to an engine. When it drops, it leaves its open segment or block to the next client.
///
/// The methods are those of [`Client`] and [`Guard`], which say what they promise.
pub(crate) trait Session: Send + Any {
    /// The engine that it shares.
    fn engine(&self) -> &dyn Engine;

    /// As [`Client::put`].
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.modify(key, &mut Putting(value))
    }

    /// Refuses a key or a value that is too long.
    fn check(&self, _key: &[u8], _value: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    /// Puts up to [`AT_ONCE`] pairs; those before one that fails are written.
    fn put_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        pairs.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// As [`Client::delete`].
    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.remove(key).map(drop)
    }

    /// As [`Client::remove`].
    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let mut removal = Removal::default();
        self.modify(key, &mut removal)?;
        Ok(removal.was_there)
    }

    /// As [`Client::clear`].
    fn clear(&mut self) -> Result<(), Error> {
        let keys: Vec<_> =
            self.keys(&self.pin())?.map(|key| key.map(Cow::into_owned)).collect::<Result<_, _>>()?;
        keys.iter().try_for_each(|key| self.delete(key))
    }

    /// Locks a key, shows its value, and carries out the decision.
    fn modify(&mut self, key: &[u8], decide: &mut dyn Decide) -> Result<(), Error>;

    /// As [`Client::get_into`].
    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        let pinned = self.pin();
        let value = self.get(&pinned, key)?;
        value.iter().for_each(|value| out.extend_from_slice(value));
        Ok(value.is_some())
    }

    /// Shows the values of up to [`AT_ONCE`] keys, in order. A walk that copies values uses `copy` for each.
    fn get_many(
        &self,
        keys: &[&[u8]],
        copy: &mut Vec<u8>,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        for (position, key) in keys.iter().enumerate() {
            let found = self.get_into(key, copy)?;
            each(position, found.then_some(&copy[..]));
        }
        Ok(())
    }

    /// As [`Client::pin`].
    fn pin(&self) -> Pinned<'_>;

    /// As [`Client::pin_at`], at a time; 0 for that of each look.
    fn pin_at(&self, _snapshot: &Snapshot, _time: u64) -> Result<Pinned<'_>, Error> {
        Err(Error::Unsupported { what: NO_SNAPSHOTS })
    }

    /// As [`Client::on`].
    fn on(&self, _table: TableId) -> Result<InPlace, Error> {
        Err(Error::Unsupported { what: NO_TABLES })
    }

    /// The value of a key, in place where it can be.
    fn get<'g>(&'g self, pinned: &'g Pinned<'_>, key: &[u8]) -> Result<Option<Cow<'g, [u8]>>, Error>;

    /// The value of a key and its version, both of one record.
    fn get_versioned<'g>(
        &'g self,
        _pinned: &'g Pinned<'_>,
        _key: &[u8],
    ) -> Result<Option<Versioned<'g>>, Error> {
        Err(Error::Unsupported { what: NO_VERSIONS })
    }

    /// The metadata of a key, without its value.
    fn head(&self, pinned: &Pinned<'_>, key: &[u8]) -> Result<Option<Head>, Error> {
        Ok(self.get(pinned, key)?.map(|_| Head { expiry: Expiry::Never, version: None }))
    }

    /// Every key with its value, in no order.
    fn pairs<'g>(&'g self, pinned: &'g Pinned<'g>) -> Result<Box<dyn Iterator<Item = Pair<'g>> + 'g>, Error>;

    /// Every key, in no order.
    fn keys<'g>(
        &'g self,
        pinned: &'g Pinned<'g>,
    ) -> Result<Box<dyn Iterator<Item = KeyItem<'g>> + 'g>, Error> {
        Ok(Box::new(self.pairs(pinned)?.map(|pair| pair.map(|(key, _)| key))))
    }

    /// Whether a key has a [version](Head::version).
    fn has_versions(&self) -> bool {
        false
    }

    /// As [`Client::put_until`]; the time is not zero.
    fn put_until(&mut self, _key: &[u8], _value: &[u8], _time: u64) -> Result<(), Error> {
        Err(Error::Unsupported { what: "expiry" })
    }

    /// As [`Client::delete_range`], from a key on and below another, which is empty for none.
    fn delete_range(&mut self, _from: &[u8], _to: &[u8]) -> Result<(), Error> {
        Err(Error::Unsupported { what: "range deletes" })
    }

    /// As [`Client::write`].
    fn write(&mut self, _batch: &WriteBatch) -> Result<(), Error> {
        Err(Error::Unsupported { what: "atomic batches" })
    }

    /// As [`write`](Session::write), if the checks hold; otherwise [`Error::Conflict`].
    fn commit(&mut self, _batch: &WriteBatch, _checks: &Checks<'_>) -> Result<(), Error> {
        Err(Error::Unsupported { what: "atomic batches" })
    }

    /// Bytes that a write takes in a commit, and the most that a commit may have in one table.
    fn takes(&self, _content: &Content<'_>) -> (u64, u64) {
        (0, u64::MAX)
    }

    /// The table that it reads and writes.
    fn table(&self) -> Option<TableId> {
        None
    }

    /// As [`Client::update_in_place`].
    fn update_in_place(
        &mut self,
        _key: &[u8],
        _at: u64,
        _change: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        Err(Error::Unsupported { what: "updates in place" })
    }

    /// The keys within these bounds with their values, in order, from both ends.
    fn range<'g>(
        &'g self,
        _pinned: &'g Pinned<'g>,
        _stretch: Stretch<'g>,
    ) -> Result<Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>, Error> {
        Err(Error::Unsupported { what: "range scans" })
    }
}

/// The keys that a walk in order is asked for.
pub(crate) struct Stretch<'g> {
    pub(crate) from: Bound<Cow<'g, [u8]>>,
    pub(crate) to: Bound<Cow<'g, [u8]>>,
    pub(crate) wanted: Wanted,
}

impl Stretch<'_> {
    /// All keys.
    pub(crate) const ALL: Stretch<'static> =
        Stretch { from: Bound::Unbounded, to: Bound::Unbounded, wanted: Wanted::ALL };
}

/// How many keys the caller of a walk wants, as far as it knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted(pub(crate) usize);

impl Wanted {
    /// Nobody knows.
    pub(crate) const ALL: Wanted = Wanted(usize::MAX);

    /// How many keys to look up together now: none that is not wanted, and so many, or half as many more if
    /// none is left then. Some may turn out to be absent, so a walk may want more in the end.
    #[inline]
    pub(crate) fn at_once(&mut self, many: usize) -> usize {
        let count = match self.0 {
            0 => many,
            left if left <= many + many / 2 => left,
            _ => many,
        };
        self.0 = self.0.saturating_sub(count);
        count
    }
}

/// Protects the records that a session shows from reuse. Holds the state that it sees, if its walk has
/// versions.
pub(crate) struct Pinned<'s> {
    epoch: Option<epoch::Guard<'s>>,
    pub(crate) at: Moment,
}

impl<'s> Pinned<'s> {
    /// For a walk whose records an epoch protects.
    pub(crate) fn by_epoch(epoch: epoch::Guard<'s>) -> Pinned<'s> {
        Pinned { epoch: Some(epoch), at: Moment::NOW }
    }

    /// For such a walk, to see the state of a moment.
    pub(crate) fn by_epoch_at(epoch: epoch::Guard<'s>, at: Moment) -> Pinned<'s> {
        Pinned { epoch: Some(epoch), at }
    }

    /// For a walk that sees the state at a number.
    #[cfg_attr(not(test), expect(dead_code, reason = "for walks without epochs"))]
    pub(crate) fn at(number: u64) -> Pinned<'s> {
        Pinned { epoch: None, at: Moment { number, time: 0 } }
    }

    /// Tells who keeps it pinned, while the result lives.
    #[inline]
    pub(crate) fn hold(&self, region: &Region) -> Option<Held<'s>> {
        let epoch = self.epoch.as_ref()?;
        Some(epoch.participant().hold(holder::here(region, What::Guard)))
    }

    /// The epoch, for a read that follows all writes of its thread. The walk has pinned one.
    #[inline]
    pub(crate) fn to_read(&self) -> &epoch::Guard<'s> {
        let epoch = self.epoch.as_ref().expect("the walk has pinned an epoch");
        epoch.see_own_writes();
        epoch
    }
}

/// The metadata of a key.
pub(crate) struct Head {
    pub(crate) expiry: Expiry,
    /// See [`Client::version`].
    pub(crate) version: Option<u64>,
}
