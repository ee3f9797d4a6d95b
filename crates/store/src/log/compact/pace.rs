//! The pace of compaction: for writers that find little room or none, and on request.

use super::{Demand, Worker};
use crate::background::Progress;
use crate::log::Spine;
use crate::points::Points;
use crate::types::error::Error;
use crate::walk::patience::Patience;
use quipu_medium::MediumError;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Index;
use quipu_parts::sync::SpinGuard;
use quipu_parts::twin;

/// The least gain that a writer demands of cleaning a segment, as a share of it. It bounds write
/// amplification: each written record is copied at most this often.
const LEAST_DIVISOR: u64 = 64;

/// Records that a step of a writer takes at most, so that it waits for microseconds.
const PIECE_OF_WRITER: usize = 32;

/// Share of the low water, as a divisor, below which writers help the cleaner.
const HELPERS_SHARE: u32 = 2;

/// Share of all record bytes, as a divisor, that tombstones may take before the oldest segments are cleaned
/// because of them: by a writer, and by a compaction on request.
const TOMBSTONE_SHARE: u64 = 16;
const ASKED_TOMBSTONE_SHARE: u64 = 256;

impl<I: Index> Spine<I> {
    /// Makes some room ahead of a write, if little is left. The caller holds no lock.
    #[inline(always)]
    pub(in crate::log) fn relieve(&self) -> Result<(), Error> {
        self.admit_write()?;
        let left = self.heap.zones_left(Use::Put);
        if left < self.compactor.low_water { self.relieve_some(left) } else { Ok(()) }
    }

    #[cold]
    fn relieve_some(&self, left: u32) -> Result<(), Error> {
        let has_cleaner = self.compactor.bell.ring();
        if let Some(hot) = self.hot.as_ref().filter(|_| !has_cleaner) {
            hot.tend();
        }
        if !has_cleaner || left < self.compactor.low_water.div_ceil(HELPERS_SHARE) {
            self.compactor.stalls.note_help();
            self.step_of_writer(&self.demand(u64::MAX, self.worthwhile()))?;
        }
        Ok(())
    }

    /// An error if writes are refused: see [`Admission::admit`](crate::background::Admission::admit).
    #[inline]
    pub(in crate::log) fn admit_write(&self) -> Result<(), Error> {
        self.admission.admit()
    }

    /// A piece of the cleaner's work.
    pub(crate) fn clean_ahead(&self) -> Progress {
        assert!(!twin!(CleanerPanics), "a twin of this store");
        if let Some(hot) = &self.hot {
            hot.tend();
        }
        if self.heap.zones_left(Use::Put) >= self.compactor.low_water && self.heap.unsurveyed().is_none() {
            return Progress::Enough;
        }
        let demand = Demand { piece: self.compactor.piece, ..self.demand(u64::MAX, self.worthwhile()) };
        match self.step_of_writer(&demand) {
            Ok(true) => Progress::More,
            // A writer that takes a step meets the same error, and can report it.
            Ok(false) | Err(_) => Progress::Stuck,
        }
    }

    /// Compacts until there is a place for so many bytes and so many zones beside it. Returns `false` if that
    /// is hopeless, or if others have taken all room that was made until its [`Patience`] ended. The caller
    /// holds no lock.
    #[cold]
    pub(in crate::log) fn make_space(&self, (len, zones): (u64, u32), purpose: Use) -> Result<bool, Error> {
        // Read before anything about the segments: if this has changed, that knowledge is out of date.
        let mut turnover = self.heap.turnover();
        // Superseded large values are freed without copying.
        let participant = self.epochs.register();
        self.settle_all(&participant.pin())?;
        self.free_all_ripe();
        let least = self.least_for(purpose);
        let mut demand = self.demand(self.heap.draw(), least);
        let mut patience = Patience::new(self.region());
        let mut revoked = false;
        // Otherwise each refused large value would have all segments cleaned again, for the records deleted
        // since the last one.
        if purpose == Use::Put && zones > 0 && self.is_out_of_reach(len, zones, turnover) {
            return Ok(false);
        }
        while !self.heap.offers(len, purpose, zones) {
            if self.step_of_writer(&demand)? {
                continue;
            }
            let mut workers = self.all_workers();
            if self.leave_segments(&mut workers) {
                continue;
            }
            if !revoked && self.heap.held_back() >= self.heap.longest_record() && self.revoke(&workers) {
                revoked = true;
                continue;
            }
            // Before a write is refused, tombstones go that writers leave at other times.
            if demand.tombstone_share < ASKED_TOMBSTONE_SHARE {
                demand.tombstone_share = ASKED_TOMBSTONE_SHARE;
                continue;
            }
            // Room becomes a place that nobody can use: the end of a run seals open segments, and tombstones
            // of absent keys may leave nothing else to clean.
            if demand.place == u64::MAX {
                demand.place = len.max(least);
                continue;
            }
            // Readers that were here when the last segments were cleaned will soon have left, unless a guard
            // is kept for long. Read while nobody can free those segments: a zone that is not seen here is
            // offered below, or was taken.
            let is_retired = self.compactor.retired() > 0;
            drop(workers);
            if self.heap.offers(len, purpose, zones) {
                break;
            }
            // A client that deletes at this moment has the segment that is kept for deletes. A client that
            // continues in another segment has two. Others clean as well.
            let someone_leaves = is_retired || self.heap.lends() || self.compactor.has_begun();
            // While this writer looked, or did not run, others may have had two segments, or taken all room
            // that was made and opened every segment anew. Read last: a client that is no longer seen to have
            // two has been counted.
            let turned_over = self.heap.turnover();
            let has_turned_over = turned_over != turnover;
            if has_turned_over {
                turnover = turned_over;
                // Records that others have superseded since may be garbage that only those clients know of,
                // in a segment that they have passed on.
                self.settle_all(&participant.pin())?;
                demand.born_before = self.heap.draw();
                revoked = false;
            }
            if !((someone_leaves || has_turned_over) && patience.lasts()) {
                return Ok(self.heap.offers(len, purpose, zones));
            }
        }
        Ok(true)
    }

    /// Whether the wanted place is out of reach even if every segment held live records alone and every
    /// reader had left. It is not out of reach if others have zones at this moment that they give back, or
    /// have had some since this turnover.
    fn is_out_of_reach(&self, len: u64, zones: u32, turnover: u64) -> bool {
        // Records lose their hints when they are moved, so compaction gives more than that.
        if self.gives_hints {
            return false;
        }
        // While the workers are held, nobody frees retired segments or values, which would then be counted
        // nowhere.
        let _workers = self.all_workers();
        let Some(most) = self.heap.most_zones_for_puts(len) else { return false };
        let lacks = most + u64::from(self.compactor.retired_zones()) < u64::from(zones);
        lacks && !self.heap.lends() && self.heap.turnover() == turnover
    }

    /// On a full disk, compacts until a zone was given back, which keeps the storage behind it, or until
    /// zones have changed hands: then a segment of the reserve may have been returned. Others may have taken
    /// either, and get on. When nobody cleans, the rest of the compactor's own segments is left to the write.
    /// Returns `false` if nothing can be cleaned. The caller holds no lock.
    #[cold]
    pub(in crate::log) fn win_storage_back(&self, purpose: Use) -> Result<bool, Error> {
        let participant = self.epochs.register();
        self.settle_all(&participant.pin())?;
        let mut demand =
            Demand { gives_storage: true, ..self.demand(self.heap.draw(), self.least_for(purpose)) };
        let (given_back, turnover) = (self.compactor.given_back(), self.heap.turnover());
        let has_changed = || self.compactor.given_back() != given_back || self.heap.turnover() != turnover;
        let mut patience = Patience::new(self.region());
        loop {
            self.free_all_ripe();
            if has_changed() {
                return Ok(true);
            }
            if self.step_of_writer(&demand)? {
                continue;
            }
            // A cleaned zone is free when the readers of that time have left; others clean too.
            let others_clean = self.compactor.retired() > 0 || self.compactor.has_begun();
            if others_clean && patience.lasts() {
                continue;
            }
            // Somebody, or the step, may have given a zone back since the look at it.
            if has_changed() || self.leave_segments(&mut self.all_workers()) {
                return Ok(true);
            }
            // Nobody waits for what the compactor itself has: it has left that.
            if self.heap.lends() && patience.lasts() {
                continue;
            }
            // A deletion needs little, and short segments that are put together leave that.
            if purpose == Use::Put || !demand.gives_storage {
                return Ok(false);
            }
            demand.gives_storage = false;
        }
    }

    /// Revokes the segments of all clients, which may be idle. Returns `false` if the compactor has one,
    /// since it does not check for that, or on a full disk, where they may have the last storage. It takes
    /// none meanwhile: the caller holds all its workers.
    fn revoke(&self, workers: &[SpinGuard<'_, Worker>]) -> bool {
        let has_segment = workers.iter().any(|worker| worker.writer.segment.is_some());
        if has_segment || self.heap.lacks_storage_for_copies() {
            return false;
        }
        let guard = workers[0].participant.pin();
        self.heap.revoke(|| {
            for stripe in 0..self.stripes.count() {
                drop(self.stripes.lock(stripe, |parked| self.publish_parked(&guard, parked)));
            }
        });
        true
    }

    fn step_of_writer(&self, demand: &Demand) -> Result<bool, Error> {
        match self.compact_step(demand) {
            // A victim that cannot be read, or moved now, does not refuse a write that has room.
            Err(Error::Damaged(_)) => Ok(true),
            Err(Error::PoolFull { .. } | Error::Medium(_)) => Ok(false),
            stepped => stepped,
        }
    }

    pub(super) fn demand(&self, born_before: u64, least: u64) -> Demand {
        let piece = self.compactor.piece.min(PIECE_OF_WRITER);
        let (tombstone_share, place) = (TOMBSTONE_SHARE, u64::MAX);
        Demand { born_before, least, tombstone_share, place, gives_storage: false, piece }
    }

    /// Bytes that cleaning a segment must give back for a write without room to do it.
    fn least_for(&self, purpose: Use) -> u64 {
        if purpose == Use::Put { self.worthwhile() } else { 1 }
    }

    /// Bytes that cleaning a segment must give back for a writer to do it.
    fn worthwhile(&self) -> u64 {
        self.heap.longest_record() / LEAST_DIVISOR
    }

    /// Cleans every segment that was opened before this call and has something to give back, except open ones
    /// where the [revocation](Spine::revoke) spares them. Returns the segments freed, and the bytes moved.
    pub(crate) fn clean_all(&self) -> Result<(u64, u64), Error> {
        self.admit_write()?;
        if let Some(hot) = &self.hot {
            hot.tend();
        }
        let before = {
            let mut workers = self.all_workers();
            self.leave_segments(&mut workers);
            self.revoke(&workers);
            self.compactor.done()
        };
        let (born_before, tombstone_share) = (self.heap.draw(), ASKED_TOMBSTONE_SHARE);
        // The caller waits for the whole, so it takes the cleaner's pieces: one fence for many records.
        let piece = self.compactor.piece;
        let demand = Demand { tombstone_share, piece, ..self.demand(born_before, 1) };
        let mut patience = Patience::new(self.region());
        let outcome = loop {
            let given_back = self.compactor.given_back();
            match self.compact_step(&demand) {
                Ok(true) => patience.renew(),
                // A cleaned segment is free when the readers of that time have left. That makes room, and
                // frees tombstones that had to outlive it. Others may have seen it free since the step.
                Ok(false) | Err(Error::PoolFull { .. } | Error::Medium(MediumError::DiskFull { .. }))
                    if self.compactor.given_back() != given_back
                        || self.compactor.retired() > 0 && patience.lasts() => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.give_back();
        outcome?;
        let done = self.compactor.done();
        Ok((done.segments - before.segments, done.moved - before.moved))
    }
}
