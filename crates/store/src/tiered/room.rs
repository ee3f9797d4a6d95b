//! Room for writes: the pace of rewriting and of dumps, for writers that find little room or none, and on
//! request.

use super::choose::{Demand, Worth};
use super::write::Purpose;
use super::{Session, Tiers, Writer};
use crate::background::Progress;
use crate::engine::common::Common;
use crate::options::Merging;
use crate::types::error::{Error, ErrorKind};
use crate::walk::room::{self, Cleans, Room, Step};
use quipu_medium::MediumError;
use quipu_parts::epoch::Holder;
use quipu_parts::heap::chain::Memtable;
use quipu_parts::index::InOrder;
use quipu_parts::runs::Compact;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A writer that finds no room rewrites a memtable that gives back one part in so many.
const LEAST: u64 = 32;
/// Ahead of need, one that gives back one part in so many.
const LEAST_AHEAD: u64 = 4;
/// In both cases, if there are levels and dumps do not fail: a dump gives all back, and writes each record
/// once more, to a slower place.
const LEAST_BEFORE_DUMPS: u64 = 2;

/// The search of a write that found no room.
pub(crate) struct Search {
    purpose: Purpose,
    /// Whether the write lacks a zone. Otherwise its memtable may have room, and the reserve was used.
    lacks_zone: bool,
    /// Memtables that are younger than the search are not rewritten: its own copies give nothing back.
    older_than: u64,
    /// The number of [takes](Cleans::takes) when it began.
    takes: u64,
    has_sealed: bool,
    /// Whether its write has tried again though no zone had come.
    has_tried_again: bool,
    /// The disk of the levels is full, as this dump or that of another thread has found.
    dump_failed: Option<Error>,
    /// On a full disk: the free zones when this began, and whether a step was taken since. One that is given
    /// back keeps its storage, and the copies leave room behind them.
    storage: Option<Storage>,
}

struct Storage {
    free: u32,
    has_stepped: bool,
}

/// The outcome of a step of dumps.
pub(super) enum Dumped {
    /// Something was dumped, or rewritten.
    Some,
    /// There is nothing to dump.
    Nothing,
    /// Another thread is at it.
    ByAnother,
}

impl<I: InOrder> Cleans for Tiers<I> {
    type Search = Search;

    fn room(&self) -> &Room {
        &self.room
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn left(&self) -> u64 {
        self.log.heap().space().free_zones().into()
    }

    fn tend(&self) {
        // Its error fails no write.
        let _ = self.merge_some();
    }

    fn has_work_waiting(&self) -> bool {
        self.rewriter.waits() || !self.gone.forget()
    }

    fn step_ahead(&self, left: u64) -> Result<Step, Error> {
        // The search for a memtable looks at all of them: in vain, until zones have come or gone.
        if self.rewriter.nothing_at.load(Ordering::Relaxed) == left && !self.rewriter.is_held() {
            return Ok(Step::Nothing);
        }
        let stepped = self.rewrite_some(&self.demand(self.least_ahead()));
        let nothing_at = if matches!(stepped, Ok(Step::Taken)) { u64::MAX } else { left };
        self.rewriter.nothing_at.store(nothing_at, Ordering::Relaxed);
        stepped
    }

    fn has_room(&self, search: &Search) -> bool {
        let free = self.log.heap().space().free_zones();
        match &search.storage {
            None => free >= self.leaves(search.purpose) + u32::from(search.lacks_zone),
            Some(before) => before.has_stepped || free > before.free,
        }
    }

    fn step(&self, search: &mut Search) -> Result<Step, Error> {
        let stepped = self.rewrite_for(search)?;
        if stepped == Step::Taken {
            search.storage.iter_mut().for_each(|before| before.has_stepped = true);
            return Ok(stepped);
        }
        if !search.has_sealed || search.storage.is_some() || search.dump_failed.is_some() {
            return Ok(Step::Nothing);
        }
        let failure = match self.dump_step() {
            Ok(Dumped::Some) => return Ok(Step::Taken),
            Ok(Dumped::Nothing) => return Ok(Step::Nothing),
            // A dump takes long: a writer looks at it now and then, and does not wait for its lock. Nor does
            // it wait for one in vain.
            Ok(Dumped::ByAnother) => match self.dumper.failure(self.region().ticks()) {
                None => return Ok(Step::ByAnother),
                Some(failure) => failure.into(),
            },
            Err(error) => error,
        };
        if failure.kind() != ErrorKind::Room {
            return Err(failure);
        }
        search.dump_failed = Some(failure);
        self.rewrite_for(search)
    }

    fn widen(&self, search: &mut Search) -> Result<bool, Error> {
        if std::mem::replace(&mut search.has_sealed, true) {
            return Ok(false);
        }
        self.seal_superseded()?;
        Ok(true)
    }

    fn renew(&self, search: &mut Search) -> Result<(), Error> {
        // Others have rewritten memtables and used what that freed, so those up to now may be rewritten.
        search.older_than = self.log.heap().clock().draw(self.log.heap().space());
        (search.takes, search.has_sealed) = (self.takes(), false);
        Ok(())
    }

    fn takes(&self) -> u64 {
        self.log.heap().takes()
    }

    fn has_retired(&self) -> bool {
        self.release_all_ripe();
        self.rewriter.waits() || self.rewriter.is_held()
    }

    fn freed(&self) -> u64 {
        self.rewriter.done().zones
    }

    fn others_work(&self, _search: &Search) -> bool {
        // Steps share one lock, so nobody else is inside one.
        false
    }

    fn holder(&self) -> Option<Holder> {
        let of_snapshots = || self.snapshots.oldest_holder();
        if self.rewriter.waits() { self.common.epochs.oldest_holder(self.thread()) } else { of_snapshots() }
    }

    fn oldest_holder(&self) -> Option<Holder> {
        let pinned = self.common.epochs.oldest_holder(self.thread());
        pinned.into_iter().chain(self.snapshots.oldest_holder()).min_by_key(|holder| holder.since)
    }

    fn progress(&self) -> u64 {
        self.freed() + self.dumper.pace.written()
    }

    fn shortage(&self, search: &mut Search) -> Error {
        search.dump_failed.take().unwrap_or_else(|| self.full())
    }
}

impl<I: InOrder> Tiers<I> {
    fn thread(&self) -> u32 {
        self.region().thread_number()
    }

    /// A step of rewriting for a search. One that lacks room itself finds nothing.
    fn rewrite_for(&self, search: &Search) -> Result<Step, Error> {
        let is_before_dumps =
            self.dumper.is_there() && search.storage.is_none() && search.dump_failed.is_none();
        let least = if is_before_dumps { LEAST_BEFORE_DUMPS } else { LEAST };
        room::tolerated(self.rewrite_some(&Demand::part(least, 0..search.older_than)))
    }

    fn rewrite_some(&self, demand: &Demand) -> Result<Step, Error> {
        Ok(if self.rewrite_step(demand)? { Step::Taken } else { Step::Nothing })
    }

    /// For every memtable that gives back one part in so many.
    fn demand(&self, least: u64) -> Demand {
        Demand::part(least, 0..u64::MAX)
    }

    /// Zones that a write leaves free.
    #[inline]
    pub(super) fn leaves(&self, purpose: Purpose) -> u32 {
        match purpose {
            Purpose::Put => self.reserve,
            Purpose::Delete => self.reserve_of_moves,
            Purpose::Move => 0,
        }
    }

    /// Whether the room that is left is that of deletions and of rewriting.
    #[inline]
    pub(super) fn is_full_for(&self, purpose: Purpose) -> bool {
        purpose == Purpose::Put && self.log.heap().space().free_zones() < self.reserve
    }

    /// The error of a put that finds no room.
    #[cold]
    pub(super) fn full(&self) -> Error {
        let space = self.log.heap().space();
        space.shortage(space.zone_size(), self.reserve).into()
    }

    /// An error if writes are refused. Makes some room ahead of a write, if little is left. The caller holds
    /// no lock.
    #[inline(always)]
    pub(super) fn relieve(&self, session: &mut Session<I>) -> Result<(), Error> {
        self.common.admission.admit()?;
        let left = self.log.heap().space().free_zones();
        if u64::from(left) < self.room.low_water {
            self.relieve_some(left, &mut session.writer);
        }
        Ok(())
    }

    /// Takes a step of the cleaner's work. Its error fails no write: the write meets its own errors.
    #[cold]
    fn relieve_some(&self, left: u32, writer: &mut Writer) {
        if !self.dumper.is_there() {
            let _ = room::help(self, left.into());
            return;
        }
        if !self.call() {
            self.tend();
        }
        if self.dumper.bell.ring() {
            let all = self.log.heap().space().zone_count() - self.reserve;
            let used = all.saturating_sub(left.saturating_sub(self.reserve));
            // Of the last write.
            writer.unpaced += writer.item.len();
            return self.dumper.pace.keep(self.region(), &mut writer.unpaced, used, all);
        }
        if !self.dumper.has_failed(self.region().ticks()) {
            let _ = self.dump_step();
        }
        let _ = self.compact_step(Compact::Due);
    }

    /// The part, as a divisor, that a memtable gives back which is rewritten ahead of need.
    fn least_ahead(&self) -> u64 {
        if self.dumper.is_there() { LEAST_BEFORE_DUMPS } else { LEAST_AHEAD }
    }

    /// Dumps a table, if that is due, and if no memtable gives back half of itself.
    pub(super) fn dump_step(&self) -> Result<Dumped, Error> {
        if !self.dumper.is_there() || self.left() >= self.room.low_water {
            return Ok(Dumped::Nothing);
        }
        let Some(dumping) = self.dumper.try_lock() else { return Ok(Dumped::ByAnother) };
        if self.rewriter.waits() {
            // Readers who keep memtables keep those of a further dump as well.
            self.release_all_ripe();
            if self.left() + u64::from(self.zones_to_come()) >= self.room.low_water {
                return Ok(Dumped::Nothing);
            }
        }
        let demand = self.demand(LEAST_BEFORE_DUMPS);
        // A dump needs no room.
        if room::tolerated(self.rewrite_some(&demand))? == Step::Taken {
            return Ok(Dumped::Some);
        }
        let Some(table) = self.to_dump(&dumping) else { return Ok(Dumped::Nothing) };
        self.dump(&dumping, &table)?;
        drop(dumping);
        self.release_all_ripe();
        self.dumper.pace.unmerged(self.most_unmerged());
        self.compactor.bell.ring();
        Ok(Dumped::Some)
    }

    /// Dumps the tables that have something on levels, and compacts these.
    fn dump_further(&self) -> Result<(), Error> {
        for table in self.tables.all() {
            let dumping = self.dumper.lock();
            // Something of it is on the levels, or on its way there.
            if !table.view(&dumping.pin()).is_alone() {
                self.dump(&dumping, &table)?;
            }
        }
        self.compact_step(Compact::All).map(drop)
    }

    /// A piece of the work of the thread that dumps.
    pub(super) fn dump_ahead(&self) -> Progress {
        match self.dump_step() {
            Ok(Dumped::Some) => Progress::More,
            Ok(Dumped::Nothing)
                if self.dumper.try_lock().is_some_and(|dumping| self.forget_layers(&dumping)) =>
            {
                Progress::Enough
            }
            // A full disk, perhaps, or readers of a layer that was dumped.
            _ => Progress::Stuck,
        }
    }

    /// Makes room for a write that met this error. The search is that of the write, from its first error on.
    /// The caller holds no lock.
    ///
    /// # Errors
    /// As for [`room::make_room`].
    #[cold]
    pub(super) fn find_room(
        &self,
        session: &mut Session<I>,
        purpose: Purpose,
        search: &mut Option<Search>,
        error: Error,
    ) -> Result<(), Error> {
        let space = self.log.heap().space();
        let storage = match error {
            Error::PoolFull { .. } => None,
            // A put that made room on a full disk would take what deletions need.
            Error::Medium(MediumError::DiskFull { .. }) if purpose == Purpose::Delete => {
                Some(Storage { free: space.free_zones(), has_stepped: false })
            }
            error => return Err(error),
        };
        let takes = self.takes();
        self.end(session);
        // On a full disk each step lets the write try again, and these steps come to an end.
        let goes_on = |search: &Search| search.takes == takes && storage.is_some();
        if !search.as_ref().is_some_and(goes_on) {
            let older_than = self.log.heap().clock().draw(space);
            *search = Some(Search {
                purpose,
                lacks_zone: true,
                older_than,
                takes,
                has_sealed: false,
                has_tried_again: search.as_ref().is_some_and(|before| before.has_tried_again),
                dump_failed: None,
                storage: None,
            });
        }
        let search = search.as_mut().expect("there is one");
        (search.storage, search.lacks_zone) = (storage, !self.is_full_for(purpose));
        let zones = self.rewriter.done().zones;
        match room::make_room(self, search, takes, error) {
            // A rewrite may have left a place in a memtable, if no zone.
            Err(Error::PoolFull { .. }) if zones != self.rewriter.done().zones && !search.has_tried_again => {
                search.has_tried_again = true;
                Ok(())
            }
            made => made,
        }
    }

    /// A piece of the cleaner's work.
    pub(super) fn clean_ahead(&self) -> Progress {
        self.release_all_ripe();
        let is_due = || self.left() < self.room.low_water;
        room::clean_ahead(self, || {
            if self.merge_some()? || self.sweep_step(&mut self.rewriter.worker())? {
                return Ok(Step::Taken);
            }
            if is_due() {
                return self.rewrite_some(&self.demand(self.least_ahead()));
            }
            self.let_tombstones_go()
        })
    }

    /// A step towards the oldest memtables of tables with tombstones, if a memtable has ended since there was
    /// none: a handle that changes nothing leaves the pool as it is.
    fn let_tombstones_go(&self) -> Result<Step, Error> {
        let has_ended = &self.rewriter.has_ended;
        if !has_ended.swap(false, Ordering::Acquire) {
            return Ok(Step::Nothing);
        }
        let stepped = self.rewrite_some(&Demand { worth: Worth::Tombstones, numbers: 0..u64::MAX });
        if !matches!(stepped, Ok(Step::Nothing)) || self.rewriter.waits() {
            // The next one is the oldest once this has gone.
            has_ended.store(true, Ordering::Release);
        }
        stepped
    }

    /// Rewrites every memtable of now that gives anything back. Returns the zones freed, and the bytes
    /// moved.
    pub(super) fn rewrite_all(&self) -> Result<(u64, u64), Error> {
        self.common.admission.admit()?;
        let before = self.rewriter.done();
        // Where the levels have no room, rewriting makes some in the pool all the same.
        let full = match self.dump_further() {
            Err(error) if is_of_a_full_disk(&error) => Some(error),
            done => done.map(|()| None)?,
        };
        self.release_all_ripe();
        let space = self.log.heap().space();
        self.sweep_all()?;
        self.seal_superseded()?;
        let demand = Demand::part(LEAST, 0..self.log.heap().clock().draw(space));
        room::clean_all(self, || self.rewrite_some(&demand))?;
        let done = self.rewriter.done();
        full.map_or(Ok((done.zones - before.zones, done.bytes - before.bytes)), Err)
    }
}

impl<I: InOrder> Tiers<I> {
    /// Ends the memtables that are written to and hold something that is superseded, so that they can be
    /// rewritten.
    fn seal_superseded(&self) -> Result<(), Error> {
        if self.merging != Merging::Direct {
            return Ok(());
        }
        let (memtables, now) = (self.log.memtables(), self.time_of_all());
        for table in self.tables.all() {
            let own = |memtable: &&Arc<Memtable>| memtable.subtable() == table.subtable.created;
            let open = memtables.iter().filter(own).filter(|memtable| memtable.end().is_none());
            let zones = open.flat_map(|memtable| memtable.zones());
            let held = self.log.heap().usage().of_all(zones, now);
            if held.dead + held.expired + held.tombstones > 0 {
                self.log.seal(table.number)?;
            }
        }
        Ok(())
    }
}

fn is_of_a_full_disk(error: &Error) -> bool {
    error.kind() == ErrorKind::Room && !matches!(error, Error::PoolFull { .. })
}
