//! The spine over a heap of slots: the walk of a store whose records stay where they are written until they
//! are deleted.
//!
//! The beats are those of every point store (see [`crate::log`]), with other owners. The page of a new record
//! is claimed first. It is held until the old record is **released**, durably, or left to a later put;
//! `write` has the beats in order. There are no tombstones, since a record is deleted by its mark. So a crash
//! finds at most an old record of a key, a copy of it and a new one, and the highest sequence number tells
//! which counts.
//!
//! - Writers of one key exclude each other by the stripe of its hash, from the lookup in the index to the
//!   release. A later put of the same client may do the release ([`late`]); [`now`] has the other way.
//! - Readers copy, and then check whether the page has changed; they hold nothing in place.
//! - The index names a record by the word of its [`Offset`] plus one, since zero is no reference.
//! - The index lies in DRAM or in the pool. In the pool every change of it is durable before the next beat;
//!   `recovery` has the argument for the state that a crash leaves.
//!
//! Viper (Benson, Makait and Rabl, VLDB'21) uses this walk; [`crate::designs::viper`] names its parts. So
//! does Viper with PACMAN's techniques ([`pacman`], [`crate::designs::viper_pacman`]). With `REDUCED`, bits
//! in DRAM tell which records are dead: a released record is not written to, a deletion is a tombstone, and
//! the words of the index tell lengths. The walk is compiled for both.

mod build;
mod change;
mod client;
mod engine;
mod error;
mod iterate;
mod late;
mod now;
mod pacman;
mod read;
mod reclaim;
mod recovery;
mod write;

pub(crate) use build::SlotParts;

use crate::engine::common::Common;
use crate::types::error::Error;
use crate::walk::hot::Hot;
use late::Lag;
use pacman::HotSide;
use quipu_medium::{Node, Region};
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::heap::Numbers;
use quipu_parts::heap::slots::{Offset, Owner, SizedOffset, SlotHeap};
use quipu_parts::index::cceh::{CcehIndex, NodeMemory};
use quipu_parts::reclaim::hot::HotSetSettings;
use reclaim::Reclaimer;
use std::sync::atomic::{AtomicBool, Ordering};

/// The parts of one open store of slots. With `REDUCED`, bits in DRAM tell which records are dead, not marks
/// in the pool.
pub(crate) struct SlotSpine<M, const REDUCED: bool> {
    heap: SlotHeap,
    index: CcehIndex<M>,
    common: Common,
    reclaimer: Reclaimer,
    /// The hot keys, if their records are kept apart.
    hot: Option<Hot>,
    has_begun: AtomicBool,
    publishes_late: bool,
    /// Whether reads try [one look](SlotHeap::read_at_once) first. An index in the pool has to be asked
    /// anyway which of its entries are durable.
    reads_at_once: bool,
}

/// The state of a client: its epoch slot, its block, and buffers.
pub(crate) struct SlotSession {
    participant: Participant,
    /// For all records but hot ones.
    owner: Owner,
    hot: Option<Box<HotSide>>,
    numbers: Numbers,
    /// The old value that a modification reads.
    buffer: Vec<u8>,
    lag: Lag,
}

impl SlotSession {
    pub(crate) fn pin(&self) -> Guard<'_> {
        self.participant.pin_to_read()
    }
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    pub(crate) fn new(
        common: Common,
        heap: SlotHeap,
        index: CcehIndex<M>,
        hot_set: HotSetSettings,
        (publishes_late, wait_for_room): (bool, u32),
    ) -> SlotSpine<M, REDUCED> {
        let reclaimer = Reclaimer::new(&heap, &common.epochs, wait_for_room);
        let hot = heap.settings().techniques.separate.then(|| Hot::new(hot_set, common.epochs.register()));
        let has_begun = AtomicBool::new(false);
        let publishes_late = Self::may_publish_late(publishes_late);
        let reads_at_once = M::MARK == 0 && heap.reads_at_once();
        SlotSpine { heap, index, common, reclaimer, hot, has_begun, publishes_late, reads_at_once }
    }

    pub(crate) fn region(&self) -> &Region {
        self.heap.region()
    }

    fn own_session(&self, node: Option<Node>) -> SlotSession {
        SlotSession {
            participant: self.common.epochs.register(),
            owner: self.owner().near(node),
            hot: self.hot_side(node),
            numbers: Numbers::default(),
            buffer: Vec::new(),
            lag: Lag::default(),
        }
    }

    /// A place to write, which begins blocks at pages of its own choice.
    fn owner(&self) -> Owner {
        self.heap.owner(self.seed())
    }

    fn seed(&self) -> u64 {
        let mut seed = [0; 8];
        self.region().entropy(&mut seed);
        u64::from_le_bytes(seed)
    }

    /// Ends a session; its block goes on with another client.
    pub(crate) fn end(&self, session: &mut SlotSession) {
        self.catch_up(session);
        self.heap.leave(std::mem::replace(&mut session.owner, self.owner()));
        self.leave_hot(session);
    }

    /// Makes sure that the run has durably begun, ahead of a change that draws no number.
    #[inline]
    fn begin_run(&self) {
        if !self.has_begun() {
            self.heap.draw();
            self.has_begun.store(true, Ordering::Release);
        }
    }

    /// Whether [`begin_run`](SlotSpine::begin_run) has been through.
    #[inline]
    fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Refuses keys and values that no page can hold.
    #[inline]
    fn check_sizes(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.check_key(key)?;
        let (len, (_, limit)) = (value.len() as u64, self.heap.limits());
        if len > limit {
            return Err(Error::ValueTooLarge { len, limit });
        }
        Ok(self.heap.check_size(key.len() as u64, len)?)
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let (limit, _) = self.heap.limits();
        match key.len() as u64 {
            0 => Err(Error::KeyEmpty { limit }),
            len if len > limit => Err(Error::KeyTooLarge { len, limit }),
            _ => Ok(()),
        }
    }

    /// The hash of a key. That of an index in a pool stays what it was in all pools there are.
    #[inline(always)]
    fn hash(&self, key: &[u8]) -> u64 {
        let certifier = self.heap.certifier();
        match key.try_into() {
            Ok(number) if REDUCED || M::MARK == 0 => certifier.permuted(u64::from_le_bytes(number)),
            // Without the bit that an index in PM uses as its mark.
            _ => certifier.key_hash(key) & !M::MARK,
        }
    }

    /// The word by which the index names a record of this key.
    #[inline]
    fn word_of(place: SizedOffset, key: &[u8]) -> u64 {
        if REDUCED { place.word() | exact(key) } else { place.offset.word() + 1 }
    }

    /// The offset that a word of the index names.
    #[inline]
    fn offset_of(word: u64) -> Offset {
        if REDUCED { SizedOffset::from_word(word).offset } else { Offset::from_word(word - 1) }
    }

    /// Locks the stripe of a hash. A waiting writer is not pinned, so that the holder can wait for all pinned
    /// readers.
    #[inline]
    fn lock(&self, participant: &Participant, hash: u64) -> StripeGuard<'_> {
        self.common
            .stripes
            .lock(self.common.stripes.of(hash), |parked| self.publish_parked(&participant.pin(), parked))
    }
}

/// Tells a record that has moved from one that is damaged.
///
/// The index forgets a place before any client can find its mark cleared or another key's record there. So a
/// reader that meets the same place again and again, without the key's record, does not race with a writer.
#[derive(Default)]
struct Misses {
    place: Option<Offset>,
    times: u32,
}

impl Misses {
    /// There was no record of the key at this offset, which the index had named.
    #[cold]
    fn note(&mut self, heap: &SlotHeap, offset: Offset) -> Result<(), Error> {
        if self.place != Some(offset) {
            *self = Misses { place: Some(offset), times: 0 };
        }
        self.times += 1;
        if self.times < MOST_MISSES {
            return Ok(());
        }
        Err(Error::damaged("a page without the record that the index names", heap.page_start(offset), 0))
    }
}

/// Misses of one place that cannot be chance: for each, the same key would have to be written there and be
/// gone again.
const MOST_MISSES: u32 = 1000;

/// The bit of a word by which the index says that its key has eight bytes. Then its hash is one-to-one, so
/// that the key need not be compared, as in the systems that PACMAN is made for
/// (`parts/src/index/cceh/offer.rs`).
const EXACT: u64 = 1 << SizedOffset::BITS;

#[inline]
fn exact(key: &[u8]) -> u64 {
    if key.len() == size_of::<u64>() { EXACT } else { 0 }
}
