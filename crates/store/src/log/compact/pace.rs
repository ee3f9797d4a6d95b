//! The pace of compaction: for writers that find little room, for writers that find none, and when asked for.

use super::{Compacted, Demand, Worker};
use crate::background::Progress;
use crate::log::Spine;
use crate::options::Twin;
use crate::types::error::Error;
use crate::walk::patience::Patience;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Index;
use quipu_parts::sync::SpinGuard;

/// What a writer demands that cleaning a segment gives back, as a share of it: records are copied this often
/// at most for each time that they are written.
const LEAST_DIVISOR: u64 = 64;

/// Records that a step of a writer takes at most, so that it waits for microseconds.
const PIECE_OF_WRITER: usize = 32;

/// Share of the low water, as a divisor, below which writers help the cleaner.
const HELPERS_SHARE: u32 = 2;

/// Share of all record bytes, as a divisor, that tombstones may take before the oldest segments are cleaned
/// for their sake: by a writer, and when compaction was asked for.
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
            self.compactor.stalls().note_help();
            self.step_of_writer(&self.demand(u64::MAX, self.worthwhile()))?;
        }
        Ok(())
    }

    /// An error if nobody may write: see [`Admission::admit`](crate::background::Admission::admit).
    #[inline]
    pub(in crate::log) fn admit_write(&self) -> Result<(), Error> {
        self.admission.admit()
    }

    /// A piece of the cleaner's work.
    pub(crate) fn clean_ahead(&self) -> Progress {
        assert!(self.twin != Some(Twin::CleanerPanics), "a twin of this store");
        if let Some(hot) = &self.hot {
            hot.tend();
        }
        if self.heap.zones_left(Use::Put) >= self.compactor.low_water && self.heap.unsurveyed().is_none() {
            return Progress::Enough;
        }
        let demand = Demand { piece: self.compactor.piece, ..self.demand(u64::MAX, self.worthwhile()) };
        match self.step_of_writer(&demand) {
            Ok(true) => Progress::More,
            // Whatever the error is, a writer that takes a step comes upon it as well, and can tell somebody.
            Ok(false) | Err(_) => Progress::Stuck,
        }
    }

    /// Compacts until there is a place for so many bytes and so many zones beside it; `false` if that is
    /// hopeless, or if others have taken all room that was made for as long as its [`Patience`] lasts. The
    /// caller holds no lock.
    #[cold]
    pub(in crate::log) fn make_space(&self, (len, zones): (u64, u32), purpose: Use) -> Result<bool, Error> {
        // Asked before all that is learnt about segments, which is out of date when this has changed.
        let mut turnover = self.heap.turnover();
        // Large values that were superseded take no copying to come back.
        let participant = self.epochs.register();
        self.settle_all(&participant.pin())?;
        self.free_all_ripe();
        let least = if purpose == Use::Put { self.worthwhile() } else { 1 };
        let mut demand = self.demand(self.heap.draw(), least);
        let mut patience = Patience::new(self.region());
        let mut revoked = false;
        // Or each large value that is refused would have all segments cleaned once more, for what was deleted
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
            // Before anyone is refused, tombstones go that writers leave at other times.
            if demand.tombstone_share < ASKED_TOMBSTONE_SHARE {
                demand.tombstone_share = ASKED_TOMBSTONE_SHARE;
                continue;
            }
            // And room becomes a place that nobody can use: the end of a run seals what is open, and
            // tombstones of keys that were not there may leave nothing else to clean.
            if demand.place == u64::MAX {
                demand.place = len.max(least);
                continue;
            }
            // Readers that were here when the last segments were cleaned will soon have left, unless someone
            // keeps a guard for long. Asked while nobody can free those: a zone that is not seen here is
            // offered below, or was taken.
            let is_retired = self.compactor.retired() > 0;
            drop(workers);
            if self.heap.offers(len, purpose, zones) {
                break;
            }
            // A client that deletes at this moment has the segment that is kept for that; one that goes on in
            // another segment has two; and others clean as well.
            let someone_leaves = is_retired || self.heap.lends() || self.compactor.has_begun();
            // While this writer looked, or did not run, others may have had two, or taken all room that was
            // made and opened every segment anew. Asked last: a client that is no longer seen to have two
            // has been counted.
            let turned_over = self.heap.turnover();
            let has_turned_over = turned_over != turnover;
            if has_turned_over {
                turnover = turned_over;
                // Records that others superseded since may be garbage that only they know of, in a segment
                // that they have passed on.
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

    /// Whether the place that is wanted is not to be had, if every segment held live records alone and every
    /// reader had left: unless others have zones at this moment that they give back, or have had some since
    /// this turnover.
    fn is_out_of_reach(&self, len: u64, zones: u32, turnover: u64) -> bool {
        // Records lose their hints when they are moved, so compaction gives more than that.
        if self.gives_hints {
            return false;
        }
        // Nobody frees segments or values that are no longer needed meanwhile, which would be counted
        // nowhere.
        let _workers = self.all_workers();
        let Some(most) = self.heap.most_zones_for_puts(len) else { return false };
        let lacks = most + u64::from(self.compactor.retired_zones()) < u64::from(zones);
        lacks && !self.heap.lends() && self.heap.turnover() == turnover
    }

    /// On a full disk, compacts until one more zone is free, which has the storage that it was written with;
    /// `false` if nothing can be cleaned. The caller holds no lock.
    #[cold]
    pub(in crate::log) fn win_storage_back(&self) -> Result<bool, Error> {
        let participant = self.epochs.register();
        self.settle_all(&participant.pin())?;
        let demand = self.demand(self.heap.draw(), 1);
        let free = self.heap.space().free_zones();
        let mut patience = Patience::new(self.region());
        loop {
            self.free_all_ripe();
            if self.heap.space().free_zones() > free {
                return Ok(true);
            }
            // A zone that was cleaned is free when the readers have left that were here, and others clean
            // too.
            if !self.step_of_writer(&demand)?
                && !((self.compactor.retired() > 0 || self.compactor.has_begun()) && patience.lasts())
            {
                return Ok(false);
            }
        }
    }

    /// Takes their segments away from all clients, which may rest; `false` if the compactor has one, since it
    /// does not look for that. It takes none meanwhile: the caller has all its workers.
    fn revoke(&self, workers: &[SpinGuard<'_, Worker>]) -> bool {
        if workers.iter().any(|worker| worker.writer.segment.is_some()) {
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
            // A victim that cannot be read, or moved now, is no reason to refuse a write that has room.
            Err(Error::Damaged(_)) => Ok(true),
            Err(Error::PoolFull { .. } | Error::Medium(_)) => Ok(false),
            stepped => stepped,
        }
    }

    pub(super) fn demand(&self, born_before: u64, least: u64) -> Demand {
        let piece = self.compactor.piece.min(PIECE_OF_WRITER);
        Demand { born_before, least, tombstone_share: TOMBSTONE_SHARE, place: u64::MAX, piece }
    }

    /// Bytes that cleaning a segment must give back for a writer to do it.
    fn worthwhile(&self) -> u64 {
        self.heap.longest_record() / LEAST_DIVISOR
    }

    /// Cleans every segment that was opened before this call and has something to give back.
    pub(crate) fn clean_all(&self) -> Result<Compacted, Error> {
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
        // Who asks for it waits for the whole, so it takes the cleaner's pieces: one fence for many records.
        let piece = self.compactor.piece;
        let demand = Demand { tombstone_share, piece, ..self.demand(born_before, 1) };
        let mut patience = Patience::new(self.region());
        loop {
            let stepped = self.compact_step(&demand);
            match stepped {
                Ok(true) => {}
                // What was cleaned is free when the readers have left that were here then. That makes room,
                // and lets tombstones go that had to outlive it.
                Ok(false) | Err(Error::PoolFull { .. })
                    if self.compactor.retired() > 0 && patience.lasts() => {}
                Ok(false) => break,
                Err(error) => return Err(error),
            }
        }
        self.give_back();
        let done = self.compactor.done();
        Ok(done.since(before))
    }
}
