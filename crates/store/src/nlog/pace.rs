//! The pace of cleaning: for writers that find little room or none, ahead of them, and on request.

use super::NlogSpine;
use super::clean::Demand;
use crate::background::Progress;
use crate::engine::common::Common;
use crate::types::error::Error;
use crate::walk::room::{self, Cleans, Room, Step};
use quipu_medium::MediumError;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Index;
use std::sync::atomic::Ordering;

/// The least gain that a writer demands of cleaning a file, as a share of it.
const LEAST_DIVISOR: u64 = 64;

/// The search of a write that found no room.
pub(crate) struct Search {
    len: u64,
    purpose: Use,
    /// It cleans no file that was opened since, or it would move the same records for ever.
    demand: Demand,
    has_closed: bool,
    /// On a full disk: the files that had been freed when this began. One that is freed keeps the storage
    /// behind it; others may have taken that, and get on.
    freed: Option<u64>,
}

impl<I: Index> Cleans for NlogSpine<I> {
    type Search = Search;

    fn room(&self) -> &Room {
        &self.cleaning.room
    }

    fn common(&self) -> &Common {
        &self.core.common
    }

    fn left(&self) -> u64 {
        self.heap.zones_left(Use::Put).into()
    }

    fn call(&self) -> bool {
        self.cleaning.call()
    }

    fn step_ahead(&self, _left: u64) -> Result<Step, Error> {
        self.step_of_writer(&self.demand())
    }

    fn has_room(&self, search: &Search) -> bool {
        match search.freed {
            None => self.nlog().offers(search.len, search.purpose),
            Some(before) => self.freed() != before,
        }
    }

    fn step(&self, search: &mut Search) -> Result<Step, Error> {
        self.step_of_writer(&search.demand)
    }

    fn widen(&self, search: &mut Search) -> Result<bool, Error> {
        // Files whose readers leave give room, and so do tails that copies have gone to.
        if self.has_retired() {
            return Ok(false);
        }
        // All dead records may be in files that places are given away in.
        if !search.has_closed && self.close_files(|| !self.has_retired() && !self.has_room(search)) {
            search.has_closed = true;
            return Ok(true);
        }
        let is_for_storage = search.freed.is_some();
        let demand = &mut search.demand;
        if demand.least > 1 && !is_for_storage {
            demand.least = 1;
        } else if demand.place == u64::MAX && !is_for_storage {
            demand.place = search.len;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn renew(&self, search: &mut Search) -> Result<(), Error> {
        search.demand.born_before = self.heap.draw();
        search.has_closed = false;
        Ok(())
    }

    fn takes(&self) -> u64 {
        self.heap.takes()
    }

    fn has_retired(&self) -> bool {
        self.cleaning.waiting() > 0
    }

    fn has_work_waiting(&self) -> bool {
        self.has_retired()
    }

    fn freed(&self) -> u64 {
        self.cleaning.freed.load(Ordering::Relaxed)
    }

    fn others_work(&self, _search: &Search) -> bool {
        self.nlog().is_closing()
    }

    fn shortage(&self, search: &mut Search) -> Error {
        self.heap.shortage(search.len, search.purpose).into()
    }
}

impl<I: Index> NlogSpine<I> {
    /// An error if writes are refused. Makes some room ahead of a write, if little is left. The caller holds
    /// no lock.
    #[inline(always)]
    pub(super) fn relieve(&self) -> Result<(), Error> {
        self.common.admission.admit()?;
        let left = u64::from(self.heap.zones_left(Use::Put));
        if left < self.cleaning.room.low_water { room::help(self, left) } else { Ok(()) }
    }

    /// A piece of a cleaner's work, for which it takes this step.
    pub(super) fn ahead_of_writers(&self, step: impl FnOnce(&Demand) -> Result<Step, Error>) -> Progress {
        if !self.cleaning.is_called() {
            return Progress::Enough;
        }
        let is_due = self.left() < self.cleaning.room.low_water;
        let demand = Demand { by_threshold: !is_due, ..self.demand() };
        room::clean_ahead(self, || self.tolerated(step(&demand)))
    }

    /// Makes room for so many bytes after a write met this error.
    ///
    /// # Errors
    /// As for [`room::make_room`].
    #[cold]
    pub(super) fn make_space_or(&self, error: Error, len: u64, purpose: Use) -> Result<(), Error> {
        let gives_storage = match error {
            Error::PoolFull { .. } => false,
            Error::Medium(MediumError::DiskFull { .. }) => true,
            error => return Err(error),
        };
        let takes = self.takes();
        let freed = gives_storage.then(|| self.freed());
        let mut demand = Demand { born_before: self.heap.draw(), gives_storage, ..self.demand() };
        if gives_storage && purpose != Use::Put {
            demand.least = 1;
        }
        let mut search = Search { len, purpose, demand, has_closed: false, freed };
        room::make_room(self, &mut search, takes, error)
    }

    fn step_of_writer(&self, demand: &Demand) -> Result<Step, Error> {
        self.tolerated(self.clean_step(demand))
    }

    /// The outcome of a step for a write that may not need it.
    fn tolerated(&self, stepped: Result<Step, Error>) -> Result<Step, Error> {
        match stepped {
            // A damaged victim counts as cleaned, and an error of the medium as nothing found: neither
            // refuses a write that has room.
            Err(Error::Damaged(_)) => Ok(Step::Taken),
            Err(Error::Medium(_)) => Ok(Step::Nothing),
            stepped => stepped,
        }
    }

    fn demand(&self) -> Demand {
        let least = self.heap.longest_record() / LEAST_DIVISOR;
        Demand { born_before: u64::MAX, least, place: u64::MAX, gives_storage: false, by_threshold: false }
    }

    /// Cleans every file that has something to give back. Returns the files freed, and the bytes moved.
    pub(super) fn clean_all(&self) -> Result<(u64, u64), Error> {
        self.common.admission.admit()?;
        let counts = || (self.freed(), self.cleaning.moved.load(Ordering::Relaxed));
        let before = counts();
        self.close_files(|| true);
        // Files that are opened from here on are full of copies.
        let demand = Demand { least: 1, born_before: self.heap.draw(), ..self.demand() };
        let cleaned = room::clean_all(self, || self.clean_step(&demand));
        self.give_back();
        cleaned?;
        let after = counts();
        Ok((after.0 - before.0, after.1 - before.1))
    }
}
