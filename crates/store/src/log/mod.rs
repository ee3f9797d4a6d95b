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
//! is held, so their order is the order of the writes. A reader takes no lock; if a write of the same hash is
//! parked, the reader publishes it first. A pinned epoch keeps every record that a reader can reach from
//! reuse, and published records never change.

mod append;
mod batch;
mod build;
mod check;
pub(crate) mod checkpoint;
mod clear;
mod client;
mod compact;
mod durable;
mod eliminate;
mod engine;
mod frame;
mod large;
mod modify;
mod proved;
mod publish;
mod put;
mod read;
mod recovery;
mod rooted;
mod salvage;
mod scan;
mod writers;

pub(crate) use build::LogParts;
use build::SaveOf;
use compact::{Compactor, workers_of};
pub(crate) use publish::{TOMBSTONE, tagged};
pub(crate) use read::Batch;
pub(crate) use rooted::Rooted;

use crate::background::Admission;
use crate::options::Twin;
use crate::types::error::Error;
use crate::walk::hot::Hot;
use client::RangeOf;
use eliminate::Elimination;
use publish::Lag;
use quipu_medium::{Node, Region};
use quipu_parts::commit::{Parked, Roster, StripeGuard, Stripes};
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::{Reference, SizedReference};
use quipu_parts::index::{Index, Key, Records};
use quipu_parts::record::{Content, EXPIRY_FIELD, HEADER, HINT_FIELD, Kind, RecordView};
use std::sync::Arc;
use writers::{Writer, Writers};

/// The parts of one open store.
pub(crate) struct Spine<I: Index> {
    pub(crate) heap: LogHeap,
    pub(crate) index: I,
    pub(crate) stripes: Stripes,
    pub(crate) epochs: Collector,
    pub(crate) compactor: Compactor,
    pub(crate) admission: Arc<Admission>,
    /// Whether blind writes publish late (see [`publish`]): only if the index never fails.
    pub(crate) publishes_late: bool,
    /// The writes that may be parked, where walks in order look for them.
    roster: Roster,
    /// Whether garbage is counted by record. Words then tell the length of a record, if the index has room
    /// for it, and bits in DRAM tell which records are dead (PACMAN section 3.2).
    pub(crate) sizes_in_words: bool,
    /// The hot keys, if their records are kept apart.
    pub(crate) hot: Option<Hot>,
    /// Whether records have hints to their entries, if the index can give them.
    pub(crate) gives_hints: bool,
    elimination: Elimination,
    /// Whether reads prove the records that they return (see [`proved`]).
    pub(crate) verifies: bool,
    /// The ordered walk over its keys, if the index keeps an order.
    in_order: Option<RangeOf<I>>,
    /// The function that leaves a checkpoint, if one is to be left.
    save: Option<SaveOf<I>>,
    pub(crate) twin: Option<Twin>,
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

/// A record that the index names, with the word that names it.
#[derive(Clone, Copy)]
pub(crate) struct Located<'g> {
    pub(crate) word: u64,
    pub(crate) record: RecordView<'g>,
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

impl Located<'_> {
    /// Whether the word names a tombstone, which exists in the index only during recovery.
    pub(crate) fn is_tombstone(&self) -> bool {
        reference_of(self.word).tag() == TOMBSTONE
    }
}

/// The record that a word names, whether it tells the length or not.
#[inline]
pub(crate) fn reference_of(word: u64) -> Reference {
    SizedReference::from_word(word).reference()
}

/// Longest key that any record can hold: its length takes 16 bits.
const KEY_MAX: u64 = u16::MAX as u64;

impl<I: Index> Spine<I> {
    pub(crate) fn region(&self) -> &Region {
        self.heap.region()
    }

    pub(crate) fn own_session(&self, node: Option<Node>) -> Session {
        let is_told = self.publishes_late && self.in_order.is_some();
        let lag = if is_told { Lag::told(self.roster.register()) } else { Lag::default() };
        Session { participant: self.epochs.register(), writers: self.writers(node), lag }
    }

    /// Ends a session; its segments go on with another client.
    pub(crate) fn end(&self, session: &mut Session) {
        self.catch_up(session);
        self.leave(&mut session.writers);
    }

    /// Longest key of this pool: it must fit a segment beside the longest value that stands in a record, a
    /// time of expiry and a hint.
    pub(crate) fn key_limit(&self) -> u64 {
        KEY_MAX.min(self.heap.longest_record() - HEADER - EXPIRY_FIELD - HINT_FIELD - self.inline_limit())
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let len = key.len() as u64;
        if len == 0 {
            return Err(Error::KeyEmpty { limit: self.key_limit() });
        }
        if len > self.key_limit() {
            return Err(Error::KeyTooLarge { len, limit: self.key_limit() });
        }
        Ok(())
    }

    #[inline]
    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        let len = value.len() as u64;
        if len > self.value_limit() {
            return Err(Error::ValueTooLarge { len, limit: self.value_limit() });
        }
        Ok(())
    }

    /// Refuses values that only zones of their own could hold.
    fn check_inline(&self, value: &[u8]) -> Result<(), Error> {
        let (len, limit) = (value.len() as u64, self.inline_limit());
        if len > limit { Err(Error::ValueTooLarge { len, limit }) } else { Ok(()) }
    }

    /// Locks the stripe of a hash.
    #[inline]
    pub(crate) fn lock(&self, guard: &Guard<'_>, hash: u64) -> StripeGuard<'_> {
        self.stripes.lock(self.stripes.of(hash), |parked| self.publish_parked(guard, parked))
    }

    /// The word by which the index names a record of this kind and length. It holds the length if it has
    /// room. The word of a large value omits it, since the head must be read when it is superseded.
    #[inline]
    pub(crate) fn word(&self, reference: Reference, kind: Kind, len: u64) -> u64 {
        let reference = tagged(reference, kind);
        if I::WORD_BITS >= SizedReference::BITS && self.sizes_in_words && kind != Kind::Large {
            SizedReference::new(reference, len).word()
        } else {
            reference.word()
        }
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
        Placed {
            key,
            word,
            tombstone: is_one.then_some(sequence),
            near: (content.hint != 0).then_some(content.hint),
        }
    }

    /// The key as its index looks for it.
    #[inline(always)]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key { bytes, hash: self.hash(bytes) }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        I::key_hash(self.heap.certifier(), key)
    }

    /// The key in a record; nothing if a damaged word names none. The caller of an operation of the index is
    /// pinned.
    fn key_in_record(&self, word: u64) -> Option<&[u8]> {
        let offset = self.place_of(word)?;
        // SAFETY: as in `named`.
        let record = unsafe { RecordView::published_key(self.region(), offset) };
        Some(record?.key)
    }
}

impl<I: Index> Records for Spine<I> {
    fn hash_of(&self, word: u64) -> u64 {
        self.key_in_record(word).map_or(0, |key| self.hash(key))
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key_in_record(word).unwrap_or_default());
    }
}
