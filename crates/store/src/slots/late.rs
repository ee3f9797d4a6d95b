//! Publishing a put with later writes of its client.
//!
//! A put that publishes waits for the index's line, then for the line with the old record's mark, and for the
//! fence behind the clearing of that mark. It is durable without any of them. So a late put is parked at the
//! stripe of its key (see [`quipu_parts::commit`]) and returns. Two late puts later the client publishes it,
//! with all lines at hand, and clears the mark under the first fence of the new record:
//!
//! ```text
//! put n  page held | publish n - 2 | write n, clear old of n - 2 | fence | mark n, find old of n - 1 |
//!                    +-- key of n - 2 and page of its old record held ------------------------------
//!
//!        fence | (if its page was not free: clear old of n - 2 | fence) | park n | pages and key free
//!        ------------------------------------------------------------------------------------------+
//! ```
//!
//! *Locks.* Before the first fence ends, another client could delete the new record of `n - 2` durably while
//! the old one is still marked, or write to the old slot. So key and page are held. They are held until the
//! put ends: an earlier unlock gained nothing measurable. Meanwhile the put waits for fences and for the
//! index's segment, whose holder waits for no page and no stripe. If the page of the old record cannot be
//! locked at once, that record is released behind the fences, with one of its own; the holder of its page
//! waits for no stripe.
//!
//! *Readers.* A reader or writer of the key first publishes the put ([`SlotSpine::publish_parked`]), with a
//! fence of its own. A put is parked while its page is still held. Otherwise a reader with an older offset of
//! its slot could find the key there, and a later reader could miss it.
//!
//! *Crashes.* A crash finds both records marked, and the higher sequence number counts. Puts are published
//! before they return (`now`) where the index is in the pool, which may refuse, and with `REDUCED`, which
//! does not even read the old record. So is a value in blocks of its own: another publisher would have to
//! read it to learn the key.
//!
//! *Reclamation.* A parked record is marked and not named by the index. So it stays in place, and its block
//! is not freed. The index still names the replaced record, which moves like any other. A cleaner that finds
//! a block that it cannot free has all parked puts published.

use super::{SlotSession, SlotSpine};
use crate::walk::let_others_on;
use quipu_parts::commit::{self, Failed, Parked, StripeGuard, Taken};
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Claim, Offset, Releasing, SlotHeap};
use quipu_parts::index::cceh::{NodeMemory, Sighting};
use quipu_parts::twin;

/// A client's puts that may be parked.
pub(super) type Lag = commit::Lag<Seen>;

/// The client's notes on its parked put.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// The sequence number of its record.
    pub(super) sequence: u64,
    /// The index's entry for its key after it was parked, if any was seen.
    pub(super) sighting: Sighting,
}

/// An earlier put that the index now names. Its key and the page of its old record are held until this drops,
/// behind the fences of the put that publishes it and behind that put's page.
#[derive(Default)]
pub(super) struct Earlier<'s> {
    /// The replaced record, if it is to be released behind the fences.
    old: Option<Offset>,
    releasing: Option<Releasing<'s>>,
    taken: Option<Taken<'s>>,
}

impl<'s> Earlier<'s> {
    /// Begins to release the replaced record, and holds the key.
    #[inline]
    fn hold(&mut self, heap: &'s SlotHeap, taken: Taken<'s>, old: Option<Offset>) {
        self.taken = Some(taken);
        if let Some(old) = old {
            self.releasing = heap.begin_release(old);
            self.old = self.releasing.is_none().then_some(old);
        }
    }

    /// Clears the mark of the old record, if its page was locked at once. Durable with the next fence.
    #[inline]
    pub(super) fn clear(&self) {
        if let Some(releasing) = &self.releasing {
            releasing.clear();
        }
    }

    /// Releases the old record durably, if its page was not locked at once. The caller has this claim.
    #[inline]
    pub(super) fn release_rest(&self, claim: &Claim<'_, '_>) {
        if let Some(old) = self.old {
            // A damaged record cannot be cleared; a check or the next recovery reports it.
            let _ = claim.release_old(old);
        }
    }
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Whether a store of this kind ever parks a put.
    const MAY_LAG: bool = !REDUCED && M::MARK == 0;

    /// Whether a store publishes late if that is `wanted`.
    pub(super) fn may_publish_late(wanted: bool) -> bool {
        wanted && Self::MAY_LAG && !twin!(TiesByBlock)
    }

    /// Whether puts are published by later writes of their client.
    #[inline]
    pub(crate) fn publishes_late(&self) -> bool {
        Self::MAY_LAG && self.publishes_late
    }

    /// Publishes the put before the last in the index, if it is still parked, and begins to release the
    /// record that it has replaced. The caller has a [mourner](crate::background::Admission::mourner) until
    /// `earlier` drops.
    #[inline]
    pub(super) fn publish_oldest<'s>(&'s self, guard: &Guard<'_>, lag: &mut Lag, earlier: &mut Earlier<'s>) {
        let entry = lag.oldest();
        let Some(own) = entry.parked.take() else { return };
        // Another thread has published it or is about to, and may have parked a put of its own since.
        let Some(taken) = self.common.stripes.take(own) else { return };
        // A put that is parked here later has a higher number. So if the number is still ours, this put has
        // been parked all the time. A key that the index lacked then is still absent: reclamation only
        // replaces entries.
        let Seen { sequence, sighting } = entry.more;
        let sighting = if taken.newest() == sequence { sighting } else { Sighting::Nothing };
        let old = self.name(guard, own, Some(&entry.key), sighting);
        self.hold(taken, old, earlier);
    }

    /// Holds an earlier put.
    #[inline(always)]
    fn hold<'s>(&'s self, taken: Taken<'s>, old: Option<Offset>, earlier: &mut Earlier<'s>) {
        if twin!(OldNotReleased) {
            return earlier.hold(&self.heap, taken, None);
        }
        if twin!(KeyFreeBeforeRelease) {
            drop(taken);
            // Another client has to delete the key meanwhile.
            let_others_on();
            earlier.old = old;
            return;
        }
        earlier.hold(&self.heap, taken, old);
        if twin!(OldPageFreeBeforeFence)
            && let Some(releasing) = earlier.releasing.take()
        {
            releasing.clear();
            drop(releasing);
            // Another client has to write to the place meanwhile.
            let_others_on();
        }
    }

    /// Finds the old record of the last put, whose index line has arrived by now, and prefetches it.
    #[inline]
    pub(super) fn look_for_old(&self, guard: &Guard<'_>, lag: &mut Lag) {
        let last = lag.youngest_mut();
        let Some(parked) = last.parked else { return };
        last.more.sighting = self.index.sight(guard, parked.hash);
        if let Sighting::Key { reference } = last.more.sighting {
            self.heap.prefetch_to_change(Self::offset_of(reference));
        }
    }

    /// Parks a record in a store that is broken on purpose: its page is unlocked before.
    #[cold]
    pub(super) fn park_behind_page(&self, stripe: &StripeGuard<'_>, parked: Parked, claim: Claim<'_, '_>) {
        drop(claim);
        let_others_on();
        stripe.park(parked, || ());
    }

    /// Publishes the put that is parked for this hash, of any client. Every reader comes here first.
    #[inline]
    pub(super) fn settle(&self, guard: &Guard<'_>, hash: u64) -> Result<(), Failed> {
        if !self.publishes_late() {
            return Ok(());
        }
        self.common.stripes.settle(hash, |parked| self.publish_parked(guard, parked))
    }

    /// Publishes all parked puts.
    pub(crate) fn settle_all(&self, guard: &Guard<'_>) -> Result<(), Failed> {
        if !self.publishes_late() {
            return Ok(());
        }
        self.common.stripes.settle_all(|parked| self.publish_parked(guard, parked))
    }

    /// Publishes all parked puts of a client. It holds no page.
    pub(super) fn catch_up(&self, session: &mut SlotSession) {
        let SlotSession { participant, lag, .. } = session;
        let guard = participant.pin();
        lag.catch_up(|entry| {
            if let Some(own) = entry.parked.take() {
                self.common.stripes.finish(own.hash, |parked, _| self.publish_parked(&guard, parked));
            }
        });
    }

    /// Publishes a parked put, and releases the record that it has replaced, durably. The new record tells
    /// the key. The caller holds no page, and may hold another key.
    #[cold]
    pub(super) fn publish_parked(&self, guard: &Guard<'_>, parked: Parked) {
        let mourner = self.common.admission.mourner();
        let mut record = Vec::new();
        let found = self.heap.read(Self::offset_of(parked.word), &mut record);
        // Without a legible key the search uses the hash alone; the next reader reports the damage.
        let key = found.ok().flatten().map(|found| found.key);
        if let Some(old) = self.name(guard, parked, key, Sighting::Nothing)
            && !twin!(OldNotReleased)
        {
            // As when its own client publishes it.
            let _ = self.heap.delete(old);
        }
        mourner.dismiss();
    }

    /// Repoints the index to a record of this key. Returns the record that it named before, if that is to be
    /// released.
    #[inline]
    fn name(&self, guard: &Guard<'_>, own: Parked, key: Option<&[u8]>, sighting: Sighting) -> Option<Offset> {
        let Parked { hash, word } = own;
        let mut segment = self.index.lock(hash);
        if segment.add_where(sighting, word) {
            return None;
        }
        let is_old = |old| key.is_none_or(|key| self.is_record_of(old, key));
        let named = segment.upsert(guard, word, is_old);
        let old = named.expect("no index in DRAM is crowded by hashes that are keyed");
        // If it is the new record, the index named a free slot: its mark had been lost.
        old.map(Self::offset_of).filter(|old| *old != Self::offset_of(word))
    }
}
