//! Room for writes: the pace of rewriting and of dumps, for writers that find little room or none, and on
//! request.

use super::rewrite::Demand;
use super::write::Purpose;
use super::{Session, Tiers, Writer};
use crate::background::Progress;
use crate::options::Merging;
use crate::types::error::{Error, ErrorKind};
use crate::walk::patience::Patience;
use quipu_medium::MediumError;
use quipu_parts::heap::chain::Memtable;
use quipu_parts::index::InOrder;
use quipu_parts::runs::Compact;
use quipu_parts::twin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A writer that finds no room rewrites a memtable that gives back one part in so many.
const LEAST: u64 = 32;
/// Ahead of need, one that gives back one part in so many.
const LEAST_AHEAD: u64 = 4;
/// If there are levels: a dump gives all back, and writes each record once more, to a slower place.
const LEAST_BEFORE_DUMPS: u64 = 2;

/// Microseconds between two looks at room that another thread makes by a dump.
const BY_ANOTHER: u64 = 500;

/// The search of a deletion that found the disk full, for memtables to rewrite.
pub(super) struct StorageSearch<'s> {
    /// Memtables with lower numbers.
    older_than: u64,
    has_sealed: bool,
    /// Zones that anybody had freed by rewriting when this began.
    freed: u64,
    patience: Patience<'s>,
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

impl<I: InOrder> Tiers<I> {
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
        self.admission.admit()?;
        let left = self.log.heap().space().free_zones();
        if left < self.low_water {
            self.relieve_some(left, &mut session.writer);
        }
        Ok(())
    }

    /// Takes a step of the cleaner's work. Its error fails no write: the write meets its own errors.
    #[cold]
    fn relieve_some(&self, left: u32, writer: &mut Writer) {
        let has_cleaner = self.rewriter.bell.ring();
        if !has_cleaner {
            let _ = self.merge_some();
        }
        if self.dumper.is_there() {
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
            return;
        }
        let is_due = !has_cleaner || left <= self.reserve;
        // The search for a memtable looks at all of them: in vain, until zones have come or gone.
        if !is_due || self.rewriter.nothing_at.load(Ordering::Relaxed) == left {
            return;
        }
        self.rewriter.stalls.note_help();
        let has_worked = self.rewrite_step(&Demand { least: self.least_ahead(), numbers: 0..u64::MAX });
        let nothing_at = if matches!(has_worked, Ok(true)) { u32::MAX } else { left };
        self.rewriter.nothing_at.store(nothing_at, Ordering::Relaxed);
    }

    /// The part, as a divisor, that a memtable gives back which is rewritten ahead of need.
    fn least_ahead(&self) -> u64 {
        if self.dumper.is_there() { LEAST_BEFORE_DUMPS } else { LEAST_AHEAD }
    }

    /// Dumps a table, if that is due, and if no memtable gives back half of itself.
    pub(super) fn dump_step(&self) -> Result<Dumped, Error> {
        let left = self.log.heap().space().free_zones();
        if !self.dumper.is_there() || left >= self.low_water {
            return Ok(Dumped::Nothing);
        }
        let Some(dumping) = self.dumper.try_lock() else { return Ok(Dumped::ByAnother) };
        if self.rewriter.waits() {
            // Readers who keep memtables keep those of a further dump as well.
            self.release_all_ripe();
            if self.log.heap().space().free_zones() + self.zones_to_come() >= self.low_water {
                return Ok(Dumped::Nothing);
            }
        }
        let demand = Demand { least: LEAST_BEFORE_DUMPS, numbers: 0..u64::MAX };
        // A dump needs no room.
        if self.rewrite_step(&demand).or_else(|error| room(error).map(|()| false))? {
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

    /// Lets a write that met this error go on, or returns it. The caller holds no lock.
    #[cold]
    pub(super) fn find_room<'s>(
        &'s self,
        session: &mut Session<I>,
        purpose: Purpose,
        search: &mut Option<StorageSearch<'s>>,
        error: Error,
    ) -> Result<(), Error> {
        match error {
            Error::PoolFull { .. } => self.make_room(session, purpose, error),
            // A put that made room on a full disk would take what deletions need.
            Error::Medium(MediumError::DiskFull { .. }) if purpose == Purpose::Delete => {
                self.win_storage_back(session, search, error)
            }
            error => Err(error),
        }
    }

    /// Makes room for a write that met this error, or returns it. The caller holds no lock.
    ///
    /// No memtable is rewritten that is younger than the call: copies of this call give nothing back.
    #[cold]
    fn make_room(&self, session: &mut Session<I>, purpose: Purpose, error: Error) -> Result<(), Error> {
        self.rewriter.stalls.waiting(self.region(), || {
            self.end(session);
            let space = self.log.heap().space();
            let least = if self.dumper.is_there() { LEAST_BEFORE_DUMPS } else { LEAST };
            let demand = Demand { least, numbers: 0..self.log.heap().clock().draw(space) };
            let (mut patience, mut has_sealed) = (Patience::new(self.region()), false);
            loop {
                self.release_all_ripe();
                if space.free_zones() > self.leaves(purpose) {
                    return Ok(());
                }
                let has_worked = self.rewrite_step(&demand).or_else(|error| room(error).map(|()| false))?;
                if !has_worked && !has_sealed {
                    has_sealed = true;
                    self.seal_superseded()?;
                    continue;
                }
                match if has_worked { Dumped::Nothing } else { self.dump_step()? } {
                    Dumped::Nothing => {}
                    dumped => {
                        patience.renew();
                        if let Dumped::ByAnother = dumped {
                            // It takes long, and needs the processor.
                            self.region().pause(BY_ANOTHER);
                        }
                        continue;
                    }
                }
                // Readers that were here when the last memtable was rewritten will soon have left.
                let goes_on = has_worked || self.rewriter.waits() && patience.lasts();
                if !goes_on {
                    // Another thread may have made room since the look at it.
                    self.release_all_ripe();
                    return if space.free_zones() > self.leaves(purpose) { Ok(()) } else { Err(error) };
                }
            }
        })
    }

    /// On a full disk, takes a step of rewriting memtables that are older than a deletion that met this.
    /// One that is given back keeps its storage, and the copies leave room behind them. Returns the error if
    /// no memtable gives anything back. The caller holds no lock.
    #[cold]
    fn win_storage_back<'s>(
        &'s self,
        session: &mut Session<I>,
        search: &mut Option<StorageSearch<'s>>,
        error: Error,
    ) -> Result<(), Error> {
        self.rewriter.stalls.waiting(self.region(), || {
            self.end(session);
            let space = self.log.heap().space();
            let begin = || StorageSearch {
                older_than: self.log.heap().clock().draw(space),
                has_sealed: false,
                freed: self.rewriter.done().zones,
                patience: Patience::new(self.region()),
            };
            let search = search.get_or_insert_with(begin);
            let free = space.free_zones();
            loop {
                let demand = Demand { least: LEAST, numbers: 0..search.older_than };
                if self.rewrite_step(&demand).or_else(|error| room(error).map(|()| false))? {
                    break;
                }
                self.release_all_ripe();
                if space.free_zones() > free {
                    break;
                }
                if !search.has_sealed {
                    search.has_sealed = true;
                    self.seal_superseded()?;
                } else if !search.patience.lasts() {
                    return Err(error);
                } else if self.rewriter.done().zones != search.freed {
                    // Others have moved records to younger memtables, and have taken the room.
                    search.older_than = self.log.heap().clock().draw(space);
                    (search.has_sealed, search.freed) = (false, self.rewriter.done().zones);
                } else if !self.rewriter.waits() {
                    return Err(error);
                }
                // Readers that were here when the last memtable was rewritten will soon have left.
            }
            self.release_all_ripe();
            Ok(())
        })
    }

    /// A piece of the cleaner's work.
    pub(super) fn clean_ahead(&self) -> Progress {
        assert!(!twin!(CleanerPanics), "a twin of this store");
        self.release_all_ripe();
        let sweep =
            |has_merged| if has_merged { Ok(true) } else { self.sweep_step(&mut self.rewriter.worker()) };
        match self.merge_some().and_then(sweep) {
            Ok(true) => return Progress::More,
            Ok(false) => {}
            Err(_) => return Progress::Stuck,
        }
        if self.log.heap().space().free_zones() >= self.low_water {
            return if self.gone.forget() { Progress::Enough } else { Progress::Stuck };
        }
        match self.rewrite_step(&Demand { least: self.least_ahead(), numbers: 0..u64::MAX }) {
            Ok(true) => Progress::More,
            Ok(false) | Err(_) => Progress::Stuck,
        }
    }

    /// Rewrites every memtable of now that gives anything back. Returns the zones freed, and the bytes
    /// moved.
    pub(super) fn rewrite_all(&self) -> Result<(u64, u64), Error> {
        self.admission.admit()?;
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
        let demand = Demand { least: LEAST, numbers: 0..self.log.heap().clock().draw(space) };
        let mut patience = Patience::new(self.region());
        loop {
            match self.rewrite_step(&demand) {
                Ok(true) => patience.renew(),
                Ok(false) => break,
                // Memtables that were rewritten are free when the readers of that time have left.
                Err(error)
                    if error.kind() == ErrorKind::Room && self.rewriter.waits() && patience.lasts() =>
                {
                    self.release_all_ripe();
                }
                Err(error) => return Err(error),
            }
        }
        while self.rewriter.waits() && patience.lasts() {
            self.release_all_ripe();
        }
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
        let (memtables, now) = (self.log.memtables(), self.expiry_time());
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

/// A lack of room is not the error of a writer that helps.
fn room(error: Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::Room { Ok(()) } else { Err(error) }
}
