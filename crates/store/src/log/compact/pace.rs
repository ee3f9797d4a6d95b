//! The pace of compaction: for writers that find little room or none, and on request.

use super::{Demand, Worker};
use crate::background::Progress;
use crate::engine::common::Common;
use crate::log::Spine;
use crate::points::Points;
use crate::types::error::Error;
use crate::walk::hot::Hot;
use crate::walk::room::{self, Cleans, Room, Step};
use quipu_medium::MediumError;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Index;
use quipu_parts::sync::SpinGuard;

/// The least gain that a writer demands of cleaning a segment, as a share of it. It bounds write
/// amplification: for each byte that is gained, at most so many are copied.
const LEAST_DIVISOR: u64 = 64;

/// Records that a step of a writer takes at most, so that it delays the writer by microseconds only.
const PIECE_OF_WRITER: usize = 32;

/// Share of all record bytes, as a divisor, that tombstones may take before the oldest segments are cleaned
/// because of them; and before a write is refused, or by a compaction on request.
const TOMBSTONE_SHARE: u64 = 16;
const ASKED_TOMBSTONE_SHARE: u64 = 256;

/// On a full disk: after so many looks the compactor's own segments are left to the write even if others
/// still clean.
const LOOKS: u32 = 256;

/// The search of a write that found no room.
pub(crate) struct Search {
    /// Bytes of a record, and zones beside it.
    len: u64,
    zones: u32,
    purpose: Use,
    demand: Demand,
    /// Whether the segments of all clients were revoked.
    revoked: bool,
    /// No cleaning gives a large value the zones that it wants.
    is_out_of_reach: bool,
    /// On a full disk: what had been given back when this began.
    storage: Option<Storage>,
}

/// On a full disk a zone that is given back keeps the storage behind it. So any zone that was freed or taken
/// is a reason to try again: who took it may have returned a segment of the reserve.
struct Storage {
    given_back: u64,
    turnover: u64,
    /// Whether the compactor has left the rest of its own segments to the write.
    is_left: bool,
    /// Looks at others that clean, and at readers.
    looks: u32,
}

impl<I: Index> Cleans for Spine<I> {
    type Search = Search;

    fn room(&self) -> &Room {
        &self.compactor.room
    }

    fn common(&self) -> &Common {
        &self.core.common
    }

    fn left(&self) -> u64 {
        self.heap.zones_left(Use::Put).into()
    }

    fn tend(&self) {
        self.hot.iter().for_each(Hot::tend);
    }

    fn step_ahead(&self, _left: u64) -> Result<Step, Error> {
        self.step_of_writer(&self.demand(u64::MAX, self.worthwhile()))
    }

    fn has_room(&self, search: &Search) -> bool {
        match &search.storage {
            None => self.heap.offers(search.len, search.purpose, search.zones),
            Some(before) => {
                before.is_left
                    || self.compactor.given_back() != before.given_back
                    || self.heap.turnover() != before.turnover
            }
        }
    }

    fn step(&self, search: &mut Search) -> Result<Step, Error> {
        if search.is_out_of_reach { Ok(Step::Nothing) } else { self.step_of_writer(&search.demand) }
    }

    fn widen(&self, search: &mut Search) -> Result<bool, Error> {
        if search.is_out_of_reach {
            return Ok(false);
        }
        if search.storage.is_some() {
            return Ok(self.widen_for_storage(search));
        }
        let mut workers = self.all_workers();
        if self.leave_segments(&mut workers) {
            return Ok(true);
        }
        if !search.revoked && self.heap.held_back() >= self.heap.longest_record() && self.revoke(&workers) {
            search.revoked = true;
            return Ok(true);
        }
        let demand = &mut search.demand;
        // Before a write is refused, fewer tombstones are tolerated.
        if demand.tombstone_share < ASKED_TOMBSTONE_SHARE {
            demand.tombstone_share = ASKED_TOMBSTONE_SHARE;
            return Ok(true);
        }
        // Unused room may lie behind the records of sealed segments: the end of a run seals open ones, and
        // tombstones of absent keys may leave nothing else to clean. Moving those records makes it usable.
        if demand.place == u64::MAX {
            demand.place = search.len.max(demand.least);
            return Ok(true);
        }
        Ok(false)
    }

    fn renew(&self, search: &mut Search) -> Result<(), Error> {
        // Others may have parked writes since. Records that these supersede count as garbage once they are
        // published.
        self.publish_all_parked()?;
        search.demand.born_before = self.heap.draw();
        search.revoked = false;
        search.is_out_of_reach = self.is_out_of_reach(search, self.heap.turnover());
        Ok(())
    }

    fn takes(&self) -> u64 {
        self.heap.takes()
    }

    fn has_retired(&self) -> bool {
        // While the workers are held, nobody can free those segments: one that is not seen here is free, or
        // was taken.
        let _workers = self.all_workers();
        self.compactor.retired() > 0
    }

    fn waits_for_readers(&self, search: &Search) -> bool {
        !search.is_out_of_reach && self.has_retired()
    }

    fn freed(&self) -> u64 {
        self.compactor.given_back()
    }

    fn others_work(&self, search: &Search) -> bool {
        // A client that deletes at this moment has the segment that is kept for deletes. A client that
        // continues in another segment has two.
        !search.is_out_of_reach && (self.heap.lends() || self.compactor.has_begun())
    }

    fn shortage(&self, search: &mut Search) -> Error {
        let bytes = search.len + u64::from(search.zones) * self.heap.space().zone_size();
        self.heap.shortage(bytes, search.purpose).into()
    }
}

impl<I: Index> Spine<I> {
    /// An error if writes are refused. Makes some room ahead of a write, if little is left. The caller holds
    /// no lock.
    #[inline(always)]
    pub(in crate::log) fn relieve(&self) -> Result<(), Error> {
        self.common.admission.admit()?;
        let left = u64::from(self.heap.zones_left(Use::Put));
        if left < self.compactor.room.low_water { room::help(self, left) } else { Ok(()) }
    }

    /// A piece of the cleaner's work.
    pub(crate) fn clean_ahead(&self) -> Progress {
        room::clean_ahead(self, || {
            if self.left() >= self.compactor.room.low_water && self.heap.unsurveyed().is_none() {
                return Ok(Step::Nothing);
            }
            let piece = self.compactor.piece;
            self.step_of_writer(&Demand { piece, ..self.demand(u64::MAX, self.worthwhile()) })
        })
    }

    /// Makes room for so many bytes, and for so many zones beside them, after a write met this error. The
    /// caller holds no lock.
    ///
    /// # Errors
    /// As for [`room::make_room`].
    #[cold]
    pub(in crate::log) fn make_space(
        &self,
        error: Error,
        (len, zones): (u64, u32),
        purpose: Use,
    ) -> Result<(), Error> {
        // Read before anything about the segments: if it has changed, that knowledge is out of date.
        let takes = self.takes();
        let (turnover, given_back) = (self.heap.turnover(), self.compactor.given_back());
        let storage = match error {
            Error::PoolFull { .. } => None,
            Error::Medium(MediumError::DiskFull { .. }) => {
                Some(Storage { given_back, turnover, is_left: false, looks: 0 })
            }
            error => return Err(error),
        };
        self.publish_all_parked()?;
        // Superseded large values are freed without copying.
        self.free_all_ripe();
        let demand = Demand {
            gives_storage: storage.is_some(),
            ..self.demand(self.heap.draw(), self.least_for(purpose))
        };
        let mut search =
            Search { len, zones, purpose, demand, revoked: false, is_out_of_reach: false, storage };
        search.is_out_of_reach = self.is_out_of_reach(&search, turnover);
        room::make_room(self, &mut search, takes, error)
    }

    fn publish_all_parked(&self) -> Result<(), Error> {
        Ok(self.settle_all(&self.common.epochs.register().pin())?)
    }

    /// Whether the zones that a large value wants are out of reach even if every segment held live records
    /// alone and every reader had left. They are not if others have zones at this moment that they give back,
    /// or have had some since this turnover.
    ///
    /// Without this look, each refused large value would have all segments cleaned again, for the records
    /// deleted since the last one.
    fn is_out_of_reach(&self, search: &Search, turnover: u64) -> bool {
        let Search { len, zones, purpose, storage, .. } = search;
        // Records lose their hints when they are moved, so they shrink, and this estimate would be too low.
        if *purpose != Use::Put || *zones == 0 || storage.is_some() || self.gives_hints {
            return false;
        }
        // While the workers are held, nobody frees retired segments or values, which would then be counted
        // nowhere.
        let _workers = self.all_workers();
        let Some(most) = self.heap.most_zones_for_puts(*len) else { return false };
        let lacks = most + u64::from(self.compactor.retired_zones()) < u64::from(*zones);
        lacks && !self.heap.lends() && self.heap.turnover() == turnover
    }

    /// On a full disk: when nobody cleans, the rest of the compactor's own segments is left to the write.
    fn widen_for_storage(&self, search: &mut Search) -> bool {
        let before = search.storage.as_mut().expect("the search is for storage");
        before.looks += 1;
        // A cleaned zone is free when the readers of that time have left; others clean too.
        let is_last = before.looks > LOOKS;
        if !is_last && (self.compactor.retired() > 0 || self.compactor.has_begun()) {
            return false;
        }
        before.is_left = self.leave_segments(&mut self.all_workers());
        if before.is_left {
            return true;
        }
        // A deletion needs little, and short segments that are put together leave that.
        let goes_on =
            search.purpose != Use::Put && search.demand.gives_storage && (is_last || !self.heap.lends());
        search.demand.gives_storage &= !goes_on;
        goes_on
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
            for stripe in 0..self.common.stripes.count() {
                drop(self.common.stripes.lock(stripe, |parked| self.publish_parked(&guard, parked)));
            }
        });
        true
    }

    fn step_of_writer(&self, demand: &Demand) -> Result<Step, Error> {
        match self.compact_step(demand) {
            Ok(true) => Ok(Step::Taken),
            // A damaged victim counts as cleaned, and an error of the medium as nothing found: neither
            // refuses a write that has room.
            Err(Error::Damaged(_)) => Ok(Step::Taken),
            Ok(false) | Err(Error::Medium(_)) => Ok(Step::Nothing),
            Err(error) => Err(error),
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
        self.common.admission.admit()?;
        self.tend();
        let before = {
            let mut workers = self.all_workers();
            self.leave_segments(&mut workers);
            self.revoke(&workers);
            self.compactor.done()
        };
        // The caller waits for the whole, so it takes the cleaner's pieces: one fence for many records.
        let (tombstone_share, piece) = (ASKED_TOMBSTONE_SHARE, self.compactor.piece);
        let demand = Demand { tombstone_share, piece, ..self.demand(self.heap.draw(), 1) };
        let cleaned = room::clean_all(self, || {
            Ok(if self.compact_step(&demand)? { Step::Taken } else { Step::Nothing })
        });
        self.give_back();
        cleaned?;
        let done = self.compactor.done();
        Ok((done.segments - before.segments, done.moved - before.moved))
    }
}
