//! The last beats of a write: made durable, and published now or late (the protocols:
//! [`quipu_parts::commit`]).

use super::{Placed, Session, Spine};
use crate::points::{Located, Points, TOMBSTONE, reference_of};
use crate::types::error::Error;
use crate::walk::let_others_on;
use quipu_parts::commit::{self, Entry, Failed, Parked, StripeGuard};
use quipu_parts::epoch::Guard;
use quipu_parts::heap::segments::Shard;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{HEADER, Kind, RecordView};
use quipu_parts::twin;

/// A client's writes that may be parked.
pub(crate) type Lag = commit::Lag<Noted>;

/// The client's notes on its parked write.
#[derive(Clone, Copy, Default)]
pub(crate) struct Noted {
    /// The sequence number of its record.
    sequence: u64,
    /// The record is a tombstone or may become as good as one.
    is_tombstone: bool,
}

impl Noted {
    /// The note for a record with this number, that was placed.
    pub(super) fn of(sequence: u64, placed: &Placed<'_>) -> Noted {
        Noted { sequence, is_tombstone: placed.tombstone.is_some() }
    }
}

impl<I: Index> Spine<I> {
    /// Commits a placed record late: parks it at its stripe, durable. Before the fence it prefetches the old
    /// record of the put before, which arrives during the fence. Parking ends an [offer](StripeGuard::offer)
    /// and unlocks the key.
    #[inline(always)]
    pub(super) fn park(
        &self,
        guard: &Guard<'_>,
        stripe: &StripeGuard<'_>,
        lag: &mut Lag,
        placed: &Placed<'_>,
        sequence: u64,
    ) {
        let parked = placed.parked();
        self.prefetch_old(guard, lag);
        lag.note(parked, placed.key.bytes, Noted::of(sequence, placed));
        if twin!(PublishBeforePersist) {
            stripe.park(parked, || ());
            self.region().fence();
        } else {
            stripe.park(parked, || self.region().fence());
        }
    }

    /// Commits a placed record now: makes it durable, then lets readers see it. The key's stripe is held.
    #[inline]
    pub(super) fn persist_and_publish(
        &self,
        guard: &Guard<'_>,
        stripe: &StripeGuard<'_>,
        shard: Shard,
        placed: &Placed<'_>,
        old: Option<&Located<'_>>,
    ) -> Result<(), Error> {
        if twin!(PublishBeforePersist) {
            self.publish(guard, shard, placed, old)?;
            self.region().fence();
            return Ok(());
        }
        self.region().fence();
        if !twin!(SeenWhileOnOffer) {
            stripe.withdraw();
        }
        self.publish(guard, shard, placed, old)
    }

    /// Publishes the client's write before last, if it is still parked.
    #[inline]
    pub(super) fn publish_oldest(
        &self,
        guard: &Guard<'_>,
        shard: Shard,
        lag: &mut Lag,
    ) -> Result<(), Failed> {
        self.publish_own(guard, shard, lag.oldest())
    }

    /// Publishes a write of this client that is still parked, or the later one that is parked in its place.
    #[inline]
    fn publish_own(&self, guard: &Guard<'_>, shard: Shard, entry: &mut Entry<Noted>) -> Result<(), Failed> {
        let Entry { parked, more: Noted { sequence, is_tombstone }, key } = entry;
        let Some(own) = parked.take() else { return Ok(()) };
        let was_parked = self.common.stripes.finish(own.hash, |parked, newest| {
            // The number decides, not the place: another thread may have published the write since. Another
            // write of the key, with an expiry or without, may stand in its place by now.
            let is_own = newest == *sequence || (twin!(OwnByPlace) && parked == own);
            if is_own {
                debug_assert!(parked == own, "a number is one write's");
                let (key, tombstone) =
                    (Key { bytes: key, hash: own.hash }, is_tombstone.then_some(*sequence));
                self.publish_late(guard, shard, Placed { key, word: own.word, tombstone, near: None });
            } else {
                self.publish_parked(guard, parked);
            }
        });
        // Another thread may be publishing it: a walk would not wait for that, once the hash is written over.
        if !was_parked && self.in_order.is_some() && !twin!(PublisherNotAwaited) {
            return self.settle(guard, own.hash).inspect_err(|_| entry.parked = Some(own));
        }
        Ok(())
    }

    /// Prefetches the old record of the client's last parked write, whose index lines have arrived.
    #[inline]
    pub(super) fn prefetch_old(&self, guard: &Guard<'_>, lag: &Lag) {
        let youngest = lag.youngest();
        let Some(parked) = youngest.parked else { return };
        let key = Key { bytes: &youngest.key, hash: parked.hash };
        if let Some(word) = self.index.candidate(guard, key, None) {
            self.heap.prefetch_dead(reference_of(word));
            let offset = self.heap.resolve(reference_of(word));
            self.region().prefetch(offset);
            self.region().prefetch(offset + HEADER + youngest.key.len() as u64 - 1);
        }
    }

    /// Publishes every parked write of a client.
    pub(super) fn catch_up(&self, session: &mut Session) {
        let Session { participant, writers, lag } = session;
        let guard = participant.pin();
        // A failure stays with the stripe, and is told by whoever looks for the key.
        lag.catch_up(|entry| _ = self.publish_own(&guard, writers.cold.shard, entry));
    }

    /// Publishes the write that is parked for this hash, if there is one.
    #[inline(always)]
    pub(super) fn publish_waiting(&self, guard: &Guard<'_>, hash: u64) -> Result<(), Failed> {
        if !I::NEVER_FAILS {
            // Then no write is parked.
            return Ok(());
        }
        self.common.stripes.settle(hash, |parked| self.publish_parked(guard, parked))
    }

    /// Publishes every write that was parked before the call, for a walk in order.
    pub(super) fn publish_known(&self, guard: &Guard<'_>) -> Result<(), Failed> {
        if !self.publishes_late {
            return Ok(());
        }
        self.roster.hashes().try_for_each(|hash| self.settle(guard, hash))
    }

    /// Publishes a write that another client parked; its record tells the key.
    #[cold]
    pub(super) fn publish_parked(&self, guard: &Guard<'_>, parked: Parked) {
        let mourner = self.common.admission.mourner();
        assert!(!twin!(PublicationPanics), "a twin of this store");
        if twin!(PublisherNotAwaited) {
            // The owner of the write and a walk have to come meanwhile.
            let_others_on();
        }
        let offset = self.heap.resolve(reference_of(parked.word));
        // SAFETY: parked records are whole and never change. Their segment is not reused before they are
        // published: compaction publishes the write that is parked for a record's key before it takes that
        // record for dead (`compact/relocate.rs`, `repoint_all`; `compact/careful.rs` locks the key).
        let record = unsafe { RecordView::published_key(self.region(), offset) };
        let record = record.expect("a client parked a record of this pool");
        let is_one = record.kind() == Kind::Tombstone || record.expires != 0;
        let tombstone = is_one.then(|| record.header.sequence.get());
        let key = Key { bytes: record.key, hash: parked.hash };
        self.publish_late(guard, Shard::default(), Placed { key, word: parked.word, tombstone, near: None });
        mourner.dismiss();
    }

    #[inline]
    fn publish_late(&self, guard: &Guard<'_>, shard: Shard, placed: Placed<'_>) {
        let mourner = self.common.admission.mourner();
        let published = self.publish(guard, shard, &placed, None);
        published.expect("only a store whose index never fails publishes late");
        mourner.dismiss();
    }

    /// Shows readers a durable record, and releases the one before it, most likely `known`. The key's stripe
    /// is held, or its publication is under way.
    #[inline]
    pub(super) fn publish(
        &self,
        guard: &Guard<'_>,
        shard: Shard,
        placed: &Placed<'_>,
        known: Option<&Located<'_>>,
    ) -> Result<(), Error> {
        let Placed { key, word, tombstone, near } = *placed;
        let mut header = None;
        let matches = |word| {
            header = match known.filter(|known| known.word == word) {
                Some(known) => Some(known.record.header),
                None => self.named::<false>(guard, word, key.bytes).map(|named| named.record.header),
            };
            header.is_some()
        };
        let changed = if reference_of(word).tag() == TOMBSTONE {
            self.index.take(guard, key, near, matches)
        } else {
            self.index.upsert(guard, key, word, near, matches, &self.core)
        };
        let old = changed.inspect_err(|_| self.release(guard, shard, word, None))?;
        if let Some(old) = old {
            if let Some(number) = tombstone.filter(|_| !twin!(ReplacedHoldsNothing)) {
                // A cleaner may have copied it to a segment that was opened since that number was drawn.
                self.heap.hold_tombstones(reference_of(old), number);
            }
            self.release(guard, shard, old, header);
        }
        Ok(())
    }
}
