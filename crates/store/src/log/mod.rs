//! The walk over logs: the path of every store whose records stand in segments.
//!
//! A write **places** its record in the heap, makes it **persist**, **publishes** it in the index, and
//! **releases** the old record that it found there. Nothing is acknowledged or published before it persists;
//! nothing is released before it is replaced in the index; nothing is reused before the epoch has passed.
//!
//! If the store publishes late, a blind write ([`put`]) parks its record and leaves publish and release to a
//! later one. So their misses overlap with its way to the medium ([`publish`]; the protocol is
//! [`quipu_parts::commit`]'s). A write that looks at the old record first ([`modify`]) does everything before
//! it returns.
//!
//! Writers of one key exclude each other by the stripe of the key's hash. Sequence numbers are drawn while it
//! is held, so their order is the order of the writes. A reader takes no lock, except to fill a cache, and
//! then only one that is free. If a write of the same hash is parked, the reader publishes it first. A pinned
//! epoch keeps every record that a reader can reach from reuse, and published records never change.

mod append;
mod batch;
mod build;
mod check;
mod client;
mod compact;
mod durable;
mod eliminate;
mod engine;
mod frame;
mod large;
mod modify;
mod publish;
mod put;
mod recovery;
mod rooted;
mod salvage;
mod writers;

pub(crate) use build::LogParts;
use build::{IndexOfClose, SaveOf};
use compact::{Compactor, workers_of};
pub(crate) use rooted::Rooted;

use crate::points::{Core, Points};
use crate::types::error::Error;
use crate::walk::hot::Hot;
use eliminate::Elimination;
use publish::Lag;
use quipu_medium::Node;
use quipu_parts::commit::{Failed, Parked, Roster, StripeGuard};
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::heap::Reference;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind};
use std::ops::Deref;
use writers::{Writer, Writers};

/// The parts of one open store.
pub(crate) struct Spine<I: Index> {
    pub(super) core: Core<I>,
    pub(crate) compactor: Compactor,
    /// Whether blind writes publish late (see [`publish`]): only if the index never fails.
    pub(crate) publishes_late: bool,
    /// The writes that may be parked, where walks in order look for them.
    roster: Roster,
    /// The hot keys, if their records are kept apart.
    pub(crate) hot: Option<Hot>,
    /// Whether records have hints to their entries, if the index can give them.
    pub(crate) gives_hints: bool,
    elimination: Elimination,
    /// The function that leaves a checkpoint, if one is to be left.
    save: Option<SaveOf<I>>,
    /// How a salvage reads the index of the last close, if there are checkpoints.
    index_of_close: Option<IndexOfClose<I>>,
}

impl<I: Index> Deref for Spine<I> {
    type Target = Core<I>;

    #[inline(always)]
    fn deref(&self) -> &Core<I> {
        &self.core
    }
}

impl<I: Index> Points for Spine<I> {
    type Index = I;

    #[inline(always)]
    fn core(&self) -> &Core<I> {
        &self.core
    }

    #[inline(always)]
    fn settle(&self, guard: &Guard<'_>, hash: u64) -> Result<(), Failed> {
        self.publish_waiting(guard, hash)
    }

    fn settle_known(&self, guard: &Guard<'_>) -> Result<(), Failed> {
        self.publish_known(guard)
    }

    fn settle_all(&self, guard: &Guard<'_>) -> Result<(), Failed> {
        self.common.stripes.settle_all(|parked| self.publish_parked(guard, parked))
    }
}

/// A client's own: its epoch slot, its writers, and its parked writes.
pub(crate) struct Session {
    participant: Participant,
    writers: Writers,
    lag: Lag,
}

impl Session {
    pub(crate) fn pin(&self) -> Guard<'_> {
        self.participant.pin_to_read()
    }
}

/// A placed record, durable after the next fence, that the index does not name yet.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'k> {
    pub(crate) key: Key<'k>,
    /// The word by which the index is to name it; a tombstone's word never enters the index.
    pub(crate) word: u64,
    /// Its number, if it is a tombstone or may expire and become one.
    pub(crate) tombstone: Option<u64>,
    /// The place of the key in the index, if the index has told it.
    pub(crate) near: Option<u64>,
}

impl Placed<'_> {
    /// The same record, with the place of its key in the index.
    #[inline]
    fn near(self, near: Option<u64>) -> Self {
        Placed { near: self.near.or(near), ..self }
    }

    fn parked(&self) -> Parked {
        Parked { hash: self.key.hash, word: self.word }
    }
}

impl<I: Index> Spine<I> {
    pub(crate) fn own_session(&self, node: Option<Node>) -> Session {
        let is_told = self.publishes_late && self.in_order.is_some();
        let lag = if is_told { Lag::told(self.roster.register()) } else { Lag::default() };
        Session { participant: self.common.epochs.register(), writers: self.writers(node), lag }
    }

    /// Ends a session; its segments go on with another client.
    pub(crate) fn end(&self, session: &mut Session) {
        self.catch_up(session);
        self.leave(&mut session.writers);
    }

    #[inline]
    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        let len = value.len() as u64;
        if len > self.value_limit() {
            return Err(Error::ValueTooLarge { len, limit: self.value_limit() });
        }
        Ok(())
    }

    /// Locks the stripe of a hash. A write of the key then takes it [out of the cache](Core::forget).
    #[inline]
    pub(crate) fn lock(&self, guard: &Guard<'_>, hash: u64) -> StripeGuard<'_> {
        self.common.stripes.lock(self.common.stripes.of(hash), |parked| self.publish_parked(guard, parked))
    }

    /// The record that was placed, for its publication.
    #[inline]
    fn placed<'k>(
        &self,
        key: Key<'k>,
        reference: Reference,
        sequence: u64,
        content: &Content<'_>,
    ) -> Placed<'k> {
        let is_one = content.kind == Kind::Tombstone || content.expires != 0;
        let word = self.word(reference, content.kind, content.record_len());
        Placed { key, word, tombstone: is_one.then_some(sequence), near: content.hint() }
    }
}
