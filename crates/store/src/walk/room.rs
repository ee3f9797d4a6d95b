//! Room for writes, in every walk: who cleans and when, what a full disk means, and when a pool is full.
//!
//! A walk says how it takes one step of cleaning, and what a step may still look for ([`Cleans`]). The rest
//! is decided here, once. One exception is `xp` with levels: ahead of need its writers are paced by dumps.
//!
//! - *Ahead of need.* A write that finds few zones left calls the cleaner ([`help`]). If there is none, or it
//!   is behind, the write takes a step itself. A cleaner takes steps until enough is free ([`clean_ahead`]).
//! - *In need.* A write that finds no room cleans until there is a place for it ([`make_room`]), with terms
//!   that widen until nothing is left to clean.
//! - *Full is a fact.* The pool is full for a write if three things are so. No step finds anything under the
//!   widest terms. No other thread has taken room meanwhile, or is at work. No reader keeps what was cleaned
//!   from reuse. Otherwise the write waits, for as long as
//!   [`Options::wait_for_room`](crate::Options::wait_for_room) says, and then its error names the holder.
//! - *A full disk* is a lack of storage, not of zones. The same search asks for what gives storage back.
//!
//! The order of the looks matters: what was cleaned waits for readers, is free, and is taken by others, one
//! after the other. They are looked at in this order, so room that moves on between two looks is seen by the
//! later one.

use super::patience::Patience;
use crate::background::Progress;
use crate::engine::common::Common;
use crate::engine::holder;
use crate::types::error::{Error, ErrorKind};
use crate::types::holder::{Holder, Holding};
use crate::types::stats::{StallCounts, Stats};
use quipu_medium::{MediumError, Region};
use quipu_parts::{epoch, twin};
use std::cell::Cell;
use std::time::Duration;

/// Share of the zones, as a divisor, that cleaners leave free before they rest. It is just large enough that
/// writers do not wait. A free zone could hold garbage instead, and the more garbage there is, the fewer
/// bytes must be copied.
const LOW_WATER_DIVISOR: u32 = 256;

/// Share of the low water, as a divisor, below which writers help the cleaner.
const HELPERS_SHARE: u64 = 2;

/// Milliseconds that a compaction on request waits for readers.
const COMPACTION_WAITS: u64 = 100;

/// The outcome of a step of cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was cleaned, or a piece of it.
    Taken,
    /// Nothing meets the terms.
    Nothing,
    /// Another thread is at the only work that there is.
    ByAnother,
}

/// A walk's share of the driver's state.
pub(crate) struct Room {
    /// Counts of delayed writers since the store was opened.
    pub(crate) stalls: StallCounts,
    /// With fewer zones or blocks than this for puts, cleaning is due.
    pub(crate) low_water: u64,
    /// With fewer than this, writers help the cleaner.
    helpers_water: u64,
    /// Milliseconds that a write waits for others.
    wait: u64,
}

impl Room {
    pub(crate) fn new(low_water: u64, wait: u32) -> Room {
        let helpers_water = low_water.div_ceil(HELPERS_SHARE);
        Room { stalls: StallCounts::default(), low_water, helpers_water, wait: wait.into() }
    }

    /// This, where writers help the cleaner with fewer zones than so many.
    pub(crate) fn helped_below(self, helpers_water: u64) -> Room {
        Room { helpers_water, ..self }
    }

    /// For a pool of so many zones.
    pub(crate) fn of_zones(zones: u32, wait: u32) -> Room {
        Room::new((zones / LOW_WATER_DIVISOR).max(2).into(), wait)
    }
}

/// How a walk cleans.
pub(crate) trait Cleans {
    /// A write's wish, the terms of the victims that count, and the means that were tried already.
    type Search;

    fn room(&self) -> &Room;

    fn common(&self) -> &Common;

    /// Zones or blocks that puts may take.
    fn left(&self) -> u64;

    /// Calls the cleaners; whether one hears it.
    fn call(&self) -> bool {
        self.common().bell.ring()
    }

    /// The work of a cleaner beside cleaning, for a writer where there is none.
    fn tend(&self) {}

    /// Whether the cleaner has work that waits for readers, though there is room. Nobody calls it when the
    /// last of them leaves.
    fn has_work_waiting(&self) -> bool {
        false
    }

    /// A step of a writer ahead of need, while so much is left.
    fn step_ahead(&self, left: u64) -> Result<Step, Error>;

    /// Whether there is room for what is wanted.
    fn has_room(&self, search: &Self::Search) -> bool;

    /// A step that meets the terms. It frees what waited for readers that have left.
    fn step(&self, search: &mut Self::Search) -> Result<Step, Error>;

    /// Widens the terms, or ends what others have open; `false` if all of that was done, or has to wait.
    fn widen(&self, search: &mut Self::Search) -> Result<bool, Error>;

    /// Goes on with the search over what has become garbage since it began: others have taken room that was
    /// made. The terms stay as wide as they are.
    fn renew(&self, search: &mut Self::Search) -> Result<(), Error>;

    /// A count that changes when a writer has taken zones or blocks. Those for records that move do not
    /// count: they leave more room behind, and the steps of the search itself take such.
    fn takes(&self) -> u64;

    /// Whether something that was cleaned waits for readers.
    fn has_retired(&self) -> bool;

    /// As [`has_retired`](Cleans::has_retired), for a search: `false` if it could not use that even when
    /// free.
    fn waits_for_readers(&self, _search: &Self::Search) -> bool {
        self.has_retired()
    }

    /// A count of all that was freed since the store was opened.
    fn freed(&self) -> u64;

    /// Whether others clean at this moment, or hold what they give back soon.
    fn others_work(&self, search: &Self::Search) -> bool;

    /// The holder that keeps what was cleaned from being free.
    fn holder(&self) -> Option<epoch::Holder> {
        let common = self.common();
        common.epochs.oldest_holder(common.region().thread_number())
    }

    /// The holder that has held anything for the longest time.
    fn oldest_holder(&self) -> Option<epoch::Holder> {
        self.holder()
    }

    /// A count that changes while another thread gets on with the [only work](Step::ByAnother) that there is.
    fn progress(&self) -> u64 {
        self.freed()
    }

    /// The error of a write that finds no room.
    fn shortage(&self, search: &mut Self::Search) -> Error;
}

/// Calls the cleaner for a write that finds little room, and helps it where that is due.
#[cold]
pub(crate) fn help<W: Cleans>(walk: &W, left: u64) -> Result<(), Error> {
    let (room, has_cleaner) = (walk.room(), walk.call());
    if !has_cleaner {
        walk.tend();
    }
    let is_due = !has_cleaner || left < room.helpers_water;
    if is_due && tolerated(walk.step_ahead(left))? == Step::Taken {
        room.stalls.note_help();
    }
    Ok(())
}

/// A piece of a cleaner's work, for which it takes this step.
pub(crate) fn clean_ahead<W: Cleans>(walk: &W, step: impl FnOnce() -> Result<Step, Error>) -> Progress {
    assert!(!twin!(CleanerPanics), "a twin of this store");
    walk.tend();
    match tolerated(step()) {
        Ok(Step::Taken) => Progress::More,
        Ok(Step::Nothing) if walk.left() >= walk.room().low_water && !walk.has_work_waiting() => {
            Progress::Enough
        }
        // A writer in need takes the same step, and meets the same error.
        _ => Progress::Stuck,
    }
}

/// Cleans until there is room for a write that met `error`: in the pool, or on a full disk. The caller holds
/// no lock that a step needs, and is not pinned. It has read the number of [takes](Cleans::takes) before it
/// looked for victims: if it has changed, what was seen since is out of date.
///
/// # Errors
/// The [shortage](Cleans::shortage), if there is no room to be made; [`Error::RoomHeld`] if somebody held it
/// back until the wait ended. On a full disk the write's own in both cases.
#[cold]
pub(crate) fn make_room<W: Cleans>(
    walk: &W,
    search: &mut W::Search,
    takes: u64,
    error: Error,
) -> Result<(), Error> {
    walk.room().stalls.waiting(walk.common().region(), || search_for_room(walk, search, takes, error))
}

fn search_for_room<W: Cleans>(
    walk: &W,
    search: &mut W::Search,
    mut takes: u64,
    error: Error,
) -> Result<(), Error> {
    let mut patience = Patience::new(walk.common().region(), walk.room().wait);
    let mut progress = walk.progress();
    loop {
        walk.common().admission.admit()?;
        if walk.has_room(search) {
            return Ok(());
        }
        let others_work = match tolerated(walk.step(search))? {
            // Others may take all that this search frees.
            Step::Taken if patience.is_over() => {
                return refuse(walk, search, error, &patience, HeldBy::Writers);
            }
            Step::Taken => continue,
            Step::Nothing if walk.widen(search)? => continue,
            Step::Nothing => false,
            Step::ByAnother => {
                // The thread at work gets the processor.
                walk.common().region().pause(BY_ANOTHER);
                let before = std::mem::replace(&mut progress, walk.progress());
                if progress != before {
                    patience.renew();
                }
                true
            }
        };
        let waits = walk.waits_for_readers(search) && !twin!(ReadersForgotten);
        if walk.has_room(search) {
            return Ok(());
        }
        let others_work = others_work || walk.others_work(search) && !twin!(OthersForgotten);
        // Read last: a thread counts what it takes before it ceases to be seen at work.
        let before = std::mem::replace(&mut takes, walk.takes());
        let has_changed = takes != before && !twin!(TakesForgotten);
        if has_changed {
            walk.renew(search)?;
        }
        if !(waits || others_work || has_changed) {
            return refuse(walk, search, error, &patience, HeldBy::Nobody);
        }
        // Waiting for what this thread itself holds is useless. Others had their turns to end a step.
        let is_own = waits && patience.is_long() && holder::is_own(walk.common().region(), walk.holder());
        if is_own || !patience.lasts() {
            let held = if waits { HeldBy::Readers } else { HeldBy::Writers };
            return refuse(walk, search, error, &patience, held);
        }
    }
}

/// Microseconds between two looks at what another thread is at work on.
const BY_ANOTHER: u64 = 500;

/// By whom room is held back.
#[derive(PartialEq, Eq)]
enum HeldBy {
    Nobody,
    Readers,
    Writers,
}

/// The error of a write, unless another thread has made room since the look at it.
fn refuse<W: Cleans>(
    walk: &W,
    search: &mut W::Search,
    error: Error,
    patience: &Patience<'_>,
    held: HeldBy,
) -> Result<(), Error> {
    if walk.has_room(search) {
        return Ok(());
    }
    // On a full disk the write's own error says more. Otherwise its figures are out of date.
    let Error::PoolFull { .. } = error else { return Err(error) };
    let (holder, what) = match held {
        HeldBy::Nobody => return Err(walk.shortage(search)),
        HeldBy::Readers => (walk.holder(), Holding::Call),
        HeldBy::Writers => (None, Holding::Writers),
    };
    Err(match walk.shortage(search) {
        Error::PoolFull { wanted, free, .. } => {
            let holder = Box::new(Holder::seen(walk.common().region(), holder, what));
            Error::RoomHeld { wanted, free, waited: Duration::from_millis(patience.waited()), holder }
        }
        error => error,
    })
}

/// Takes these steps until none finds anything, for a compaction on request. Waits a moment for readers that
/// keep from reuse what was cleaned: their departure makes room for more.
pub(crate) fn clean_all<W: Cleans>(
    walk: &W,
    mut step: impl FnMut() -> Result<Step, Error>,
) -> Result<(), Error> {
    let mut patience = Patience::new(walk.common().region(), COMPACTION_WAITS);
    loop {
        let freed = walk.freed();
        match step() {
            Ok(Step::Taken) => patience.renew(),
            Ok(_) | Err(Error::PoolFull { .. } | Error::Medium(MediumError::DiskFull { .. }))
                // Something was freed during the step, by anyone.
                if walk.freed() != freed || walk.has_retired() && patience.lasts() => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A step of cleaning has begun, and holds what it takes to clean: for a test that lets it stand still there.
#[inline]
pub(crate) fn begins_step(region: &Region) {
    if twin!(StepStandsStill) {
        stand_still(region);
    }
}

#[cold]
fn stand_still(region: &Region) {
    thread_local! {
        static HAS_STOOD: Cell<bool> = const { Cell::new(false) };
    }
    if !HAS_STOOD.replace(true) {
        region.pause(3_000_000);
    }
}

/// These statistics, with the delays of writers, and with those who keep room back.
pub(crate) fn counted_in<W: Cleans>(walk: &W, stats: Stats) -> Stats {
    let held = |holder: epoch::Holder| walk.common().region().ticks().saturating_sub(holder.since);
    let oldest_hold_ms = walk.oldest_holder().map_or(0, held);
    Stats { oldest_hold_ms, ..walk.room().stalls.counted_in(stats) }
}

/// A step that lacks room itself finds nothing: that is no error of the write.
pub(crate) fn tolerated(stepped: Result<Step, Error>) -> Result<Step, Error> {
    match stepped {
        Err(error) if error.kind() == ErrorKind::Room => Ok(Step::Nothing),
        stepped => stepped,
    }
}
