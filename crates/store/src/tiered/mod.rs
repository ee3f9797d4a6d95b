//! The walk over memtables: one order over all writes of a pool, many tables, snapshots.
//!
//! A write becomes a record of an *item*. The item is **granted** its numbers and its places. Its chunks are
//! **written** and fenced, and its records **published** in the index of their table. It is **visible** when
//! all items before it are, too ([`quipu_parts::commit::ring`]). Only then its call returns. So a crash
//! leaves a prefix of all writes of the pool, in whatever tables they are, and a reader never sees more than
//! that prefix.
//!
//! - Writers of one key exclude each other by the stripe of its hash, from the look at the old record to the
//!   publication. No stripe is locked between a grant and its end, so nobody who waits for the ring waits for
//!   a writer that waits for a stripe.
//! - Readers lock nothing. They find the versions of a key first and read the visible number then: the newest
//!   version up to it is the key's. Iterators and snapshots announce a number, and see the state at it.
//! - A memtable that is mostly superseded is *rewritten*: its live records are written anew as any write, and
//!   when nobody reads it any more it is released ([`rewrite`]). When half of a pool is used otherwise, a
//!   table is dumped into levels on an SSD ([`dump`]).
//!
//! Source: Yan et al., "Revisiting the Design of LSM-tree Based OLTP Storage Engine with Persistent Memory",
//! VLDB 2021, sections 3.1 and 3.2. [`crate::designs::xp`] names its parts.

mod below;
mod build;
mod check;
mod checkpoint;
mod choose;
mod client;
mod commit;
mod compact;
mod dump;
mod engine;
mod error;
mod front;
mod global;
mod levels;
mod merge;
mod moment;
mod pace;
mod pairing;
mod ranges;
mod read;
mod recovery;
mod remains;
mod rewrite;
mod room;
mod salvage;
mod scan;
mod source;
mod table;
mod view;
mod write;

pub(crate) use build::{TieredParts, capabilities, object_pools, settings};
pub use checkpoint::checkpoint_tables;

use crate::engine::common::Common;
use crate::options::{Granted, Merging};
use crate::types::error::Error;
use crate::walk::room::Room;
use compact::Compactor;
use dump::Dumper;
use pairing::Pairing;
use quipu_medium::{Node, Region};
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{CHUNK_HEADER, ChainLog, Item, RECORD_HEADER};
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::EXPIRY_FIELD;
use quipu_parts::versions::{Horizon, Retired, Snapshots};
use rewrite::Rewriter;
use std::sync::Arc;
use std::time::Duration;
use table::{Table, Tables};
use view::Gone;

/// The parts of one open store of memtables.
pub(crate) struct Tiers<I: InOrder> {
    log: ChainLog,
    tables: Tables<I>,
    anchor: Arc<Anchor>,
    /// `None` in a store without levels.
    pairing: Option<Arc<Pairing>>,
    common: Common,
    snapshots: Snapshots,
    rewriter: Rewriter,
    dumper: Dumper,
    gone: Gone<I>,
    merging: Merging,
    compactor: Compactor,
    /// Zones that puts leave free.
    reserve: u32,
    room: Room,
    /// Zones that deletions leave free: a memtable can be rewritten in them.
    reserve_of_moves: u32,
    verify_reads: bool,
    /// How old a transaction may become.
    transaction_age: Option<Duration>,
    granted: Option<Granted>,
}

/// The state of a client: its epoch slot, its table, and buffers.
pub(crate) struct Session<I: InOrder> {
    participant: Participant,
    table: Arc<Table<I>>,
    writer: Writer,
    node: Option<Node>,
}

/// The buffers of a thread that writes items. They are reused, so that a write allocates nothing once they
/// have grown.
#[derive(Default)]
struct Writer {
    /// The item that is being written, or the last one.
    item: Item,
    horizon: Horizon,
    retired: Retired,
    /// Bytes since its last pause.
    unpaced: u64,
}

impl<I: InOrder> Drop for Tiers<I> {
    fn drop(&mut self) {
        // Views wait there for readers to leave. They hold layers, and these the collector.
        self.common.epochs.register().collect();
    }
}

/// Longest key of all: a range may begin or end just behind it.
const LONGEST_KEY: u64 = u16::MAX as u64 - 8;

impl<I: InOrder> Tiers<I> {
    pub(crate) fn region(&self) -> &Region {
        self.log.heap().region()
    }

    fn own_session(&self, table: Arc<Table<I>>, node: Option<Node>) -> Session<I> {
        Session { participant: self.common.epochs.register(), table, writer: Writer::default(), node }
    }

    /// Ends a session.
    fn end(&self, session: &mut Session<I>) {
        let Session { participant, writer, .. } = session;
        writer.retired.defer(&participant.pin());
    }

    /// Longest value of this pool.
    fn value_limit(&self) -> u64 {
        self.log.heap().space().zone_size() / 4
    }

    /// Longest key: a chunk holds it beside the longest value.
    fn key_limit(&self) -> u64 {
        let beside = CHUNK_HEADER + RECORD_HEADER + EXPIRY_FIELD + self.value_limit();
        LONGEST_KEY.min(self.log.heap().longest_chunk() - beside - 8)
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        match key.len() as u64 {
            0 => Err(Error::KeyEmpty { limit: self.key_limit() }),
            len if len > self.key_limit() => Err(Error::KeyTooLarge { len, limit: self.key_limit() }),
            _ => Ok(()),
        }
    }

    #[inline]
    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        let (len, limit) = (value.len() as u64, self.value_limit());
        if len > limit { Err(Error::ValueTooLarge { len, limit }) } else { Ok(()) }
    }

    /// The key as its stripe and its index look for it.
    #[inline(always)]
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key { bytes, hash: I::key_hash(self.log.heap().certifier(), bytes) }
    }

    /// Locks the stripe of a hash.
    #[inline]
    fn lock(&self, hash: u64) -> StripeGuard<'_> {
        self.lock_stripe(self.common.stripes.of(hash))
    }

    #[inline]
    fn lock_stripe(&self, stripe: usize) -> StripeGuard<'_> {
        self.common.stripes.lock(stripe, |_| unreachable!("this walk parks nothing"))
    }

    /// Locks the stripes of these hashes, in rising order, each once.
    fn lock_all(&self, hashes: impl Iterator<Item = u64>) -> Vec<StripeGuard<'_>> {
        let mut stripes: Vec<usize> = hashes.map(|hash| self.common.stripes.of(hash)).collect();
        stripes.sort_unstable();
        stripes.dedup();
        stripes.into_iter().map(|stripe| self.lock_stripe(stripe)).collect()
    }

    /// The number of a record that an index names; 0, so that everybody sees it, if it is to prove itself and
    /// does not.
    #[inline]
    fn number_of(&self, guard: &Guard<'_>, reference: Reference) -> u64 {
        if self.verify_reads && !self.proves(guard, reference) {
            return 0;
        }
        self.told_number(guard, reference)
    }

    /// The number that a record tells, without a proof.
    #[inline]
    fn told_number(&self, _guard: &Guard<'_>, reference: Reference) -> u64 {
        // SAFETY: the index names published records; a memtable is released when all guards have dropped
        // under which one of its records could be found.
        unsafe { self.log.heap().number(reference) }
    }

    #[cold]
    fn proves(&self, _guard: &Guard<'_>, reference: Reference) -> bool {
        self.log.heap().proves(reference)
    }
}
