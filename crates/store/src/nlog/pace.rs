//! The pace of cleaning: for writers that find little room or none, ahead of them, and on request.

use super::NlogSpine;
use super::clean::Demand;
use super::cleaners::Step;
use crate::background::Progress;
use crate::types::error::Error;
use crate::walk::patience::Patience;
use quipu_medium::MediumError;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Index;
use quipu_parts::twin;
use std::sync::atomic::Ordering;

/// The least gain that a writer demands of cleaning a file, as a share of it.
const LEAST_DIVISOR: u64 = 64;

/// Share of the low water, as a divisor, below which writers help the cleaner.
const HELPERS_SHARE: u32 = 2;

impl<I: Index> NlogSpine<I> {
    /// Makes some room ahead of a write, if little is left. The caller holds no lock.
    #[inline(always)]
    pub(super) fn relieve(&self) -> Result<(), Error> {
        self.admission.admit()?;
        let left = self.heap.zones_left(Use::Put);
        if left < self.cleaning.low_water { self.relieve_some(left) } else { Ok(()) }
    }

    #[cold]
    fn relieve_some(&self, left: u32) -> Result<(), Error> {
        let has_cleaner = self.cleaning.call();
        if !has_cleaner || left < self.cleaning.low_water.div_ceil(HELPERS_SHARE) {
            self.cleaning.stalls.note_help();
            self.step_of_writer(&self.demand())?;
        }
        Ok(())
    }

    /// A piece of a cleaner's work, for which it takes this step.
    pub(super) fn ahead_of_writers(&self, step: impl FnOnce(&Demand) -> Result<Step, Error>) -> Progress {
        assert!(!twin!(CleanerPanics), "a twin of this store");
        if !self.cleaning.is_called() {
            return Progress::Enough;
        }
        let is_due = self.heap.zones_left(Use::Put) < self.cleaning.low_water;
        let demand = Demand { by_threshold: !is_due, ..self.demand() };
        match self.tolerated(step(&demand)) {
            Ok(Step::Taken) => Progress::More,
            Ok(Step::NothingToDo) if !is_due => Progress::Enough,
            // A writer that takes a step meets the same error, and can report it.
            _ => Progress::Stuck,
        }
    }

    /// Makes room for so many bytes after a write found none. Returns the write's error if no room can be
    /// made.
    #[cold]
    pub(super) fn make_space_or(&self, error: Error, len: u64, purpose: Use) -> Result<(), Error> {
        let made = match error {
            Error::PoolFull { .. } => {
                let make_space = || self.make_space(len, purpose);
                self.cleaning.stalls.waiting(self.region(), make_space)?
            }
            Error::Medium(MediumError::DiskFull { .. }) => self.win_storage_back(purpose)?,
            _ => false,
        };
        match error {
            _ if made => Ok(()),
            // The figures in the error are out of date: room has been made since.
            Error::PoolFull { .. } => Err(self.heap.shortage(len, purpose).into()),
            error => Err(error),
        }
    }

    /// Cleans until there is a place for so many bytes. Returns `false` if that is hopeless, or if others
    /// have taken all room that was made until its [`Patience`] ended. The caller holds no lock.
    fn make_space(&self, len: u64, purpose: Use) -> Result<bool, Error> {
        // It cleans no file that was opened since, or it would move the same records for ever.
        let mut demand = Demand { born_before: self.heap.draw(), ..self.demand() };
        let mut patience = Patience::new(self.region());
        let (mut has_closed, mut expected) = (false, self.cleaning.cleaned());
        // Files whose readers leave give room, and so do tails that copies have gone to.
        let is_in_need = || self.cleaning.waiting() == 0 && !self.nlog().offers(len, purpose);
        while !self.nlog().offers(len, purpose) {
            match self.step_of_writer(&demand)? {
                Step::Taken => {
                    expected += 1;
                    continue;
                }
                Step::Waits if patience.lasts() => continue,
                Step::Waits => return Ok(self.nlog().offers(len, purpose)),
                Step::NothingToDo => {}
            }
            // All dead records may be in files that places are given away in.
            if !has_closed && self.close_files(is_in_need) {
                has_closed = true;
            } else if demand.least > 1 {
                demand.least = 1;
            } else if demand.place == u64::MAX {
                demand.place = len;
            } else {
                // Others may have moved all records to files that were opened since, and have taken the room
                // that was made.
                let has_turned_over = self.cleaning.cleaned() != expected;
                if has_turned_over {
                    expected = self.cleaning.cleaned();
                    demand.born_before = self.heap.draw();
                    has_closed = false;
                }
                // Readers or writers of this moment may hold files back that can be cleaned soon.
                let is_held_back = self.cleaning.waiting() > 0 || self.nlog().is_closing();
                if !((is_held_back || has_turned_over) && patience.lasts()) {
                    return Ok(self.nlog().offers(len, purpose));
                }
            }
        }
        Ok(true)
    }

    /// On a full disk, cleans until a file was freed, which keeps the storage behind it; others may have
    /// taken that, and get on. Returns `false` if nothing can be cleaned. The caller holds no lock.
    fn win_storage_back(&self, purpose: Use) -> Result<bool, Error> {
        let mut demand = Demand { born_before: self.heap.draw(), gives_storage: true, ..self.demand() };
        if purpose != Use::Put {
            demand.least = 1;
        }
        let freed = || self.cleaning.freed.load(Ordering::Relaxed);
        let before = freed();
        let mut patience = Patience::new(self.region());
        let (mut has_closed, mut expected) = (false, self.cleaning.cleaned());
        while freed() == before {
            match self.step_of_writer(&demand)? {
                Step::Taken => expected += 1,
                Step::Waits if patience.lasts() => {}
                Step::NothingToDo if !has_closed && self.close_files(|| freed() == before) => {
                    has_closed = true;
                }
                // Others have moved records to files that were opened since, and have taken the room.
                Step::NothingToDo if self.cleaning.cleaned() != expected && patience.lasts() => {
                    expected = self.cleaning.cleaned();
                    demand.born_before = self.heap.draw();
                    has_closed = false;
                }
                _ => break,
            }
        }
        Ok(freed() != before)
    }

    fn step_of_writer(&self, demand: &Demand) -> Result<Step, Error> {
        self.tolerated(self.clean_step(demand))
    }

    /// The outcome of a step for a write that may not need it.
    fn tolerated(&self, stepped: Result<Step, Error>) -> Result<Step, Error> {
        match stepped {
            // A victim that cannot be read, or moved now, does not refuse a write that has room.
            Err(Error::Damaged(_)) => Ok(Step::Taken),
            Err(Error::PoolFull { .. } | Error::Medium(MediumError::DiskFull { .. }))
                if self.cleaning.waiting() > 0 =>
            {
                Ok(Step::Waits)
            }
            Err(Error::PoolFull { .. } | Error::Medium(_)) => Ok(Step::NothingToDo),
            stepped => stepped,
        }
    }

    fn demand(&self) -> Demand {
        let least = self.heap.longest_record() / LEAST_DIVISOR;
        Demand { born_before: u64::MAX, least, place: u64::MAX, gives_storage: false, by_threshold: false }
    }

    /// Cleans every file that has something to give back. Returns the files freed, and the bytes moved.
    pub(super) fn clean_all(&self) -> Result<(u64, u64), Error> {
        self.admission.admit()?;
        let counts = || {
            let load = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
            (load(&self.cleaning.freed), load(&self.cleaning.moved))
        };
        let before = counts();
        self.close_files(|| true);
        // Files that are opened from here on are full of copies.
        let demand = Demand { least: 1, born_before: self.heap.draw(), ..self.demand() };
        let mut patience = Patience::new(self.region());
        let outcome = loop {
            match self.clean_step(&demand) {
                Ok(Step::Taken) => patience.renew(),
                Ok(Step::Waits)
                | Err(Error::PoolFull { .. } | Error::Medium(MediumError::DiskFull { .. }))
                    if self.cleaning.waiting() > 0 && patience.lasts() => {}
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.give_back();
        outcome?;
        let after = counts();
        Ok((after.0 - before.0, after.1 - before.1))
    }
}
