//! Space reclamation (section 4.6 of the paper): when it runs, and on which thread.
//!
//! The heap moves the records of a block and frees it. Here the index is repointed, and the block is reused
//! when all readers have left that could look into it. The cleaner works ahead of the writers; without a
//! cleaner they reclaim themselves.
//!
//! Free bytes of a block may be useless: the records of another block may not fit its pages better. So
//! reclamation counts the blocks that it frees less those that it fills, and gives up when the sum stays at
//! zero or below.
//!
//! No step waits for the lock of a key, except for a key whose put another thread publishes; that thread
//! waits for pages at most. A writer holds no key while it makes room.

use super::{SlotSession, SlotSpine};
use crate::background::Progress;
use crate::engine::common::Common;
use crate::types::error::{Error, ErrorKind};
use crate::walk::hot::Hot;
use crate::walk::room::{self, Cleans, Room, Step};
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::heap::slots::{
    Batch, FreedBlock, Moved, Owner, Reclaimed, SizedOffset, SlotError, SlotHeap,
};
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::sync::SpinLock;
use quipu_parts::twin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of reclamation, one for a store.
pub(super) struct Reclaimer {
    work: SpinLock<Work>,
    /// Blocks that no reader can look into any more.
    ripe: Arc<SpinLock<Vec<FreedBlock>>>,
    /// Blocks that are free and wait for readers.
    retired: AtomicU64,
    /// The number of free blocks when nothing could be gained. Until it changes, nobody tries ahead of need.
    fruitless: AtomicU64,
    pub(super) room: Room,
    freed: AtomicU64,
    pub(super) moved: AtomicU64,
    /// Steps being taken; the crash explorer sorts its states by it.
    pub(super) busy: AtomicU64,
}

/// The state of the thread that reclaims.
struct Work {
    participant: Participant,
    cleaner: Owner,
    /// Records that move together.
    batch: Batch,
    /// Of the steps ahead of need.
    account: Account,
}

/// The gain of steps: blocks freed less blocks filled, since the last gain, and the steps since then.
struct Account {
    /// Steps without a gain that are allowed, as [`ALLOWANCE`].
    allowance: u32,
    gain: i64,
    steps: u32,
}

/// The outcome of a reclamation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// A block was tried, and another may be worth it too.
    Done,
    /// There is nothing to gain.
    Fruitless,
    /// Records have no room to move to until readers have left freed blocks.
    NoRoom,
}

/// The search of a write that found no room.
pub(crate) struct Search {
    wanted: Wanted,
    /// Percent of a block that must be free for it to be reclaimed.
    percent: u8,
    /// Its own: what others have gained or not tells nothing of what it may gain.
    account: Account,
    /// Whether nothing can be gained.
    hopeless: bool,
    /// Steps that it may take: a zone for the index may never come, whatever is gained.
    steps: u64,
    participant: Participant,
}

/// The room that a write wants.
pub(crate) enum Wanted {
    /// So many free blocks.
    Blocks(u64),
    /// A zone for the index, of an unused chunk at the end.
    IndexZone,
}

/// With fewer free blocks than this, reclamation is due.
const LOW_WATER: u64 = 8;

/// Percent of a block that must be free before a writer without any room reclaims it.
pub(super) const LEAST_PERCENT: u8 = 5;

/// Steps without a gain that are allowed ahead of need, as a multiple of those whose free shares add up to a
/// whole block.
const ALLOWANCE: u32 = 3;

/// So many where a write has no room. With those ahead of need, about one refusal in a thousand was wrong:
/// the same write had room when tried again. A test of the lab allows one in two thousand.
const ALLOWANCE_IN_NEED: u32 = 10;

impl Reclaimer {
    pub(super) fn new(heap: &SlotHeap, epochs: &Collector, wait: u32) -> Reclaimer {
        let (participant, cleaner) = (epochs.register(), heap.cleaner(0));
        let work = Work { participant, cleaner, batch: Batch::default(), account: Account::new(ALLOWANCE) };
        Reclaimer {
            work: SpinLock::new(work),
            ripe: Arc::default(),
            retired: AtomicU64::new(0),
            fruitless: AtomicU64::new(u64::MAX),
            room: Room::new(LOW_WATER, wait),
            freed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    /// Blocks that became free, and bytes that had to move, since the store was opened.
    pub(super) fn done(&self) -> (u64, u64) {
        (self.freed.load(Ordering::Relaxed), self.moved.load(Ordering::Relaxed))
    }
}

impl Account {
    fn new(allowance: u32) -> Account {
        Account { allowance, gain: 0, steps: 0 }
    }

    /// Adds a step to the account. `Fruitless` if so many steps have gained nothing.
    fn note(&mut self, gain: i64, percent: u8) -> Outcome {
        self.gain += gain;
        self.steps += 1;
        if self.gain <= 0 && self.steps <= 100 * self.allowance / u32::from(percent) {
            return Outcome::Done;
        }
        let outcome = if self.gain > 0 { Outcome::Done } else { Outcome::Fruitless };
        (self.gain, self.steps) = (0, 0);
        outcome
    }
}

impl Outcome {
    fn step(self) -> Step {
        if self == Outcome::Done { Step::Taken } else { Step::Nothing }
    }
}

impl<M: NodeMemory, const REDUCED: bool> Cleans for SlotSpine<M, REDUCED> {
    type Search = Search;

    fn room(&self) -> &Room {
        &self.reclaimer.room
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn left(&self) -> u64 {
        self.heap.free_blocks()
    }

    fn tend(&self) {
        self.hot.iter().for_each(Hot::tend);
    }

    fn step_ahead(&self, left: u64) -> Result<Step, Error> {
        if self.is_fruitless(left) {
            return Ok(Step::Nothing);
        }
        let outcome = self.reclaim_some(self.heap.settings().reclaim_percent, None)?;
        if outcome == Outcome::Fruitless {
            self.reclaimer.fruitless.store(left, Ordering::Relaxed);
        }
        Ok(outcome.step())
    }

    fn has_room(&self, search: &Search) -> bool {
        match search.wanted {
            Wanted::Blocks(blocks) => self.heap.free_blocks() >= blocks,
            Wanted::IndexZone => {
                self.heap.release_tail();
                self.index.make_room(1).is_ok()
            }
        }
    }

    fn step(&self, search: &mut Search) -> Result<Step, Error> {
        self.settle_all(&search.participant.pin())?;
        if search.hopeless {
            self.recycle_all();
            return Ok(Step::Nothing);
        }
        let outcome = self.reclaim_some(search.percent, Some(&mut search.account))?;
        search.steps = search.steps.saturating_sub(1);
        search.hopeless = outcome == Outcome::Fruitless || search.steps == 0;
        Ok(outcome.step())
    }

    fn widen(&self, _search: &mut Search) -> Result<bool, Error> {
        Ok(false)
    }

    fn renew(&self, search: &mut Search) -> Result<(), Error> {
        search.hopeless = search.steps == 0;
        Ok(())
    }

    fn takes(&self) -> u64 {
        self.heap.takes()
    }

    fn has_retired(&self) -> bool {
        self.reclaimer.retired.load(Ordering::Acquire) > 0
    }

    fn freed(&self) -> u64 {
        self.reclaimer.freed.load(Ordering::Relaxed)
    }

    fn waits_for_readers(&self, search: &Search) -> bool {
        search.steps > 0 && self.has_retired()
    }

    fn others_work(&self, _search: &Search) -> bool {
        // Steps share one lock, so nobody else is inside one.
        false
    }

    fn shortage(&self, search: &mut Search) -> Error {
        match search.wanted {
            Wanted::Blocks(blocks) => self.heap.shortage(blocks).into(),
            Wanted::IndexZone => {
                let space = self.heap.space();
                space.shortage(space.zone_size(), 0).into()
            }
        }
    }
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// An error if writes are refused. Makes some room ahead of a write, if little is left.
    #[inline]
    pub(super) fn relieve(&self) -> Result<(), Error> {
        self.common.admission.admit()?;
        if self.index.wants_memory() {
            self.common.bell.ring();
        }
        let left = self.heap.free_blocks();
        if left < LOW_WATER { room::help(self, left) } else { Ok(()) }
    }

    /// A piece of the cleaner's work.
    pub(crate) fn clean_ahead(&self) -> Progress {
        self.index.prepare_memory();
        room::clean_ahead(self, || {
            let left = self.heap.free_blocks();
            if left >= LOW_WATER {
                return Ok(Step::Nothing);
            }
            if self.is_fruitless(left) {
                self.recycle_all();
            }
            self.step_ahead(left)
        })
    }

    /// Whether nothing could be gained when so many blocks were free.
    fn is_fruitless(&self, left: u64) -> bool {
        left == self.reclaimer.fruitless.load(Ordering::Relaxed)
    }

    /// Reclaims one block of which at least `percent` is free, if there is one. It is noted in this account,
    /// or in that of the steps ahead of need.
    fn reclaim_some(&self, percent: u8, account: Option<&mut Account>) -> Result<Outcome, Error> {
        let work = &mut *self.reclaimer.work.lock();
        let account = account.unwrap_or(&mut work.account);
        room::begins_step(self.heap.region());
        self.recycle(&work.participant);
        // Clearing marks may make a victim available.
        self.reclaimer.busy.fetch_add(1, Ordering::Relaxed);
        let Some(block) = self.heap.victim(percent) else {
            self.reclaimer.busy.fetch_sub(1, Ordering::Relaxed);
            return Ok(Outcome::Fruitless);
        };
        self.begin_run();
        self.heap.move_near(&mut work.cleaner, self.heap.node_of(block));
        let taken = work.cleaner.taken();
        let guard = work.participant.pin();
        let reclaimed = if REDUCED {
            self.evacuate(&mut work.cleaner, &mut work.batch, &guard, block)
        } else {
            self.heap.reclaim(&mut work.cleaner, block, |moved| self.moved_alone(&guard, moved))
        };
        let reclaimed = match reclaimed {
            Ok(Reclaimed::Kept) if twin!(KeptBlockFreed) => {
                self.heap.free_victim(&self.heap.evacuate(block), &mut work.cleaner, |_| true)
            }
            reclaimed => reclaimed,
        };
        self.reclaimer.busy.fetch_sub(1, Ordering::Relaxed);
        let filled = (work.cleaner.taken() - taken) as i64;
        match reclaimed {
            Ok(Reclaimed::Freed(block)) => {
                let ripe = self.reclaimer.ripe.clone();
                self.reclaimer.retired.fetch_add(1, Ordering::AcqRel);
                self.reclaimer.freed.fetch_add(1, Ordering::Relaxed);
                if twin!(RecycledEarly) {
                    ripe.lock().push(block);
                } else {
                    guard.defer_to_anyone(Box::new(move || ripe.lock().push(block)));
                }
                drop(guard);
                Ok(account.note(1 - filled, percent))
            }
            // A block that cannot be read stays as it is; a write that has room continues.
            Ok(Reclaimed::Kept) | Err(SlotError::Damaged { .. }) => {
                // The block may have a parked record of a client that writes no more.
                self.settle_all(&guard)?;
                drop(guard);
                Ok(account.note(-filled, percent))
            }
            Err(error) => match Error::from(error) {
                error if error.kind() == ErrorKind::Room => Ok(Outcome::NoRoom),
                error => Err(error),
            },
        }
    }

    /// Repoints the index to the copy of one record, if it still names the original.
    pub(super) fn moved_alone(&self, guard: &Guard<'_>, moved: Moved<'_>) -> bool {
        let word = |offset| Self::word_of(SizedOffset::new(offset, 0), moved.key);
        self.reclaimer.moved.fetch_add(moved.len, Ordering::Relaxed);
        self.index.replace(guard, self.hash(moved.key), word(moved.from), word(moved.to))
    }

    /// Recycles the blocks that no reader can look into.
    fn recycle(&self, participant: &Participant) {
        participant.collect();
        let ripe = std::mem::take(&mut *self.reclaimer.ripe.lock());
        for block in ripe {
            self.heap.recycle(block);
            self.reclaimer.retired.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(super) fn recycle_all(&self) {
        self.recycle(&self.reclaimer.work.lock().participant);
    }

    /// Makes room for a client's write that met this error, from blocks with `percent` free. The caller is
    /// not pinned.
    ///
    /// # Errors
    /// As for [`room::make_room`].
    #[cold]
    pub(super) fn make_space_or(
        &self,
        error: Error,
        session: &mut SlotSession,
        wanted: Wanted,
        percent: u8,
    ) -> Result<(), Error> {
        let takes = self.takes();
        // The reclaimable block may be this client's own.
        self.end(session);
        let participant = self.common.epochs.register();
        let steps = match wanted {
            Wanted::Blocks(_) => u64::MAX,
            Wanted::IndexZone => self.heap.blocks(),
        };
        let account = Account::new(ALLOWANCE_IN_NEED);
        let mut search = Search { wanted, percent, account, hopeless: false, steps, participant };
        room::make_room(self, &mut search, takes, error)
    }

    /// Reclaims every block that is worth it, once. Returns how many became free, and how many bytes had to
    /// move.
    pub(super) fn reclaim_all(&self) -> Result<(u64, u64), Error> {
        self.common.admission.admit()?;
        let before = self.reclaimer.done();
        self.settle_all(&self.common.epochs.register().pin())?;
        // Each freed block has moved its records to another; so this ends.
        for _ in 0..self.heap.blocks() {
            if self.reclaim_some(self.heap.settings().reclaim_percent, None)? != Outcome::Done {
                break;
            }
        }
        self.recycle_all();
        self.begin_run();
        self.heap.release_tail();
        let done = self.reclaimer.done();
        Ok((done.0 - before.0, done.1 - before.1))
    }

    /// Frees the blocks that hold no record, so that the next open finds nothing to do. Nobody else uses the
    /// store.
    pub(super) fn free_empty(&self) -> Result<(), Error> {
        self.settle_all(&self.common.epochs.register().pin())?;
        let mut work = self.reclaimer.work.lock();
        self.heap.leave(std::mem::replace(&mut work.cleaner, self.heap.cleaner(0)));
        self.heap.leave_last_resort();
        drop(work);
        while self.reclaim_some(100, None)? == Outcome::Done {}
        self.heap.settle_unused();
        Ok(())
    }
}
