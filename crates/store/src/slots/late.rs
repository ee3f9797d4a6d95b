//! Publishing a put with later writes of its client.
//!
//! Of what a put waits for, the index's line and the line with the old record's mark come from memory one after the other, and the
//! fence behind the mark's clearing is a third. None of them is needed for the put to be durable. So it is parked at the stripe
//! of its key (see [`quipu_parts::stripes`]) and returns; two writes later the client publishes it, all lines at hand, and the
//! mark is cleared under the first fence of that write's own record:
//!
//! ```text
//! put n      page held | publish n - 2 | place n | fence | mark n | look for n - 1 and its old record | fence | park n | page free
//!                        +--- stripe and page of the old record held ------------------------------------------------------------+
//! ```
//!
//! Until the second fence nobody else gets at the key of `n - 2`, who could delete the new record durably while the old one is
//! still marked, and nobody gets the page, who could write to the place. Beside the fences and the lock of the index's segment,
//! whose holder waits for nothing, only one thing is waited for while these are held: if the page of the old record cannot be had
//! at once, that release comes behind the fences, with one of its own, and waits for the page; who has it waits for no stripe.
//! Whoever else comes for the key publishes it before ([`SlotSpine::publish_parked`]), with a fence of its own too.
//!
//! If the page could be had at once, the clearing of the mark is durable behind the first fence, and key and
//! page could be let go there. They are held until the put ends: between the fences nothing is unlocked that
//! can wait, since no measurement says yet that it would gain anything.
//!
//! A crash finds both records marked, and the higher sequence number tells which counts. The tie break of the paper does not tell
//! it, so there every put publishes before it returns; and so it does where the index is in the pool and may refuse, and where
//! bits in DRAM tell what is dead: then the old record is not even looked at. A record whose value fills blocks of its own is
//! published at once too, since others would have to read all of it to learn its key.
//!
//! A record that is parked is marked and not named by the index. Reclamation leaves such a record alone, and its block is not
//! freed, since it looks like one that its client is about to let go; and the record that it has replaced, which the index
//! still names, moves like any other. So who finds that a block cannot be freed has all that is parked published.

use super::{SlotSession, SlotSpine};
use crate::options::Twin;
use crate::walk::lag;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Claim, Offset, Releasing, SlotHeap, TieBreak};
use quipu_parts::index::cceh::{NodeMemory, Sighting};
use quipu_parts::stripes::{Failed, Parked, StripeGuard, Taken};
use quipu_parts::sync::Waiter;

/// A client's puts that may be parked.
pub(super) type Lag = lag::Lag<Seen>;

/// What its client knows of a put that is parked.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// The sequence number of its record.
    pub(super) sequence: u64,
    /// What the index had for its key after it was parked.
    pub(super) sighting: Sighting,
}

/// An earlier put that the index has learned of. Its key and the page of its old record are held until this drops, behind the
/// fences of the put that publishes it and behind that put's page.
#[derive(Default)]
pub(super) struct Earlier<'s> {
    /// The record that it has replaced, if it is to be released behind the fences.
    old: Option<Offset>,
    releasing: Option<Releasing<'s>>,
    taken: Option<Taken<'s>>,
}

impl<'s> Earlier<'s> {
    /// Begins to release the record that the put has replaced, and holds its key.
    #[inline]
    fn hold(&mut self, heap: &'s SlotHeap, taken: Taken<'s>, old: Option<Offset>) {
        self.taken = Some(taken);
        if let Some(old) = old {
            self.releasing = heap.begin_release(old);
            self.old = self.releasing.is_none().then_some(old);
        }
    }

    /// Clears the mark of the old record, if its page could be had at once. Durable with the next fence.
    #[inline]
    pub(super) fn clear(&self) {
        if let Some(releasing) = &self.releasing {
            releasing.clear();
        }
    }

    /// Releases the old record durably, if its page could not be had at once. The caller has this claim.
    #[inline]
    pub(super) fn release_rest(&self, claim: &Claim<'_, '_>) {
        if let Some(old) = self.old {
            // A damaged record cannot be cleared; the next reader of its page reports it.
            let _ = claim.release_old(old);
        }
    }
}

/// Lets other threads of a simulation get far enough to meet what a broken store has left open.
fn let_others_on() {
    let mut others = Waiter::default();
    (0..40).for_each(|_| others.wait());
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Whether anything is ever parked in a store of this kind.
    const MAY_LAG: bool = !REDUCED && M::MARK == 0;

    /// Whether a store publishes late of which `wanted` says whether it is to.
    pub(super) fn may_publish_late(wanted: bool, tie_break: TieBreak) -> bool {
        wanted && Self::MAY_LAG && tie_break == TieBreak::Sequence
    }

    /// Whether puts are published by later writes of their client.
    #[inline]
    pub(crate) fn publishes_late(&self) -> bool {
        Self::MAY_LAG && self.publishes_late
    }

    /// Lets the index learn of the put before the last, if it is still parked, and begins to release the record that it has replaced.
    #[inline]
    pub(super) fn publish_oldest<'s>(&'s self, guard: &Guard<'_>, lag: &mut Lag, earlier: &mut Earlier<'s>) {
        let entry = lag.oldest();
        let Some(own) = entry.parked.take() else { return };
        // Another thread that has taken it publishes it, and may have parked another put, which is its own.
        let Some(taken) = self.stripes.take(own) else { return };
        // A later write of this key has a higher number. So if the number is still ours, this put has been parked all the time, and
        // a key that the index did not have then is not there now: reclamation replaces, and adds nothing.
        let Seen { sequence, sighting } = entry.more;
        let sighting = if taken.newest() == sequence { sighting } else { Sighting::Nothing };
        let mourner = self.admission.mourner();
        let old = self.name(guard, own, Some(&entry.key), sighting);
        mourner.dismiss();
        match self.twin {
            None => earlier.hold(&self.heap, taken, old),
            Some(twin) => self.hold_as(twin, taken, old, earlier),
        }
    }

    /// Holds an earlier put in a store that may be broken on purpose.
    #[cold]
    fn hold_as<'s>(&'s self, twin: Twin, taken: Taken<'s>, old: Option<Offset>, earlier: &mut Earlier<'s>) {
        match twin {
            Twin::OldNotReleased => earlier.hold(&self.heap, taken, None),
            Twin::KeyFreeBeforeRelease => {
                drop(taken);
                // Another client has to delete the key meanwhile.
                let_others_on();
                earlier.old = old;
            }
            Twin::OldPageFreeBeforeFence => {
                earlier.hold(&self.heap, taken, old);
                if let Some(releasing) = earlier.releasing.take() {
                    releasing.clear();
                    drop(releasing);
                    // Another client has to write to the place meanwhile.
                    let_others_on();
                }
            }
            _ => earlier.hold(&self.heap, taken, old),
        }
    }

    /// Looks for the old record of the last put, whose index line has arrived by now, and asks for it.
    #[inline]
    pub(super) fn look_for_old(&self, guard: &Guard<'_>, lag: &mut Lag) {
        let last = lag.youngest_mut();
        let Some(parked) = last.parked else { return };
        last.more.sighting = self.index.sight(guard, parked.hash);
        if let Sighting::Key { reference } = last.more.sighting {
            self.heap.prefetch_to_change(Self::offset_of(reference));
        }
    }

    /// Parks a record in a store that is broken on purpose: its page is let go before.
    #[cold]
    pub(super) fn park_behind_page(&self, stripe: &StripeGuard<'_>, parked: Parked, claim: Claim<'_, '_>) {
        drop(claim);
        let_others_on();
        stripe.park(parked, || ());
    }

    /// Publishes what anyone has parked for this hash: everyone who reads comes here first.
    #[inline]
    pub(super) fn settle(&self, guard: &Guard<'_>, hash: u64) -> Result<(), Failed> {
        if !self.publishes_late() {
            return Ok(());
        }
        self.stripes.settle(hash, |parked| self.publish_parked(guard, parked))
    }

    /// Publishes all that anyone has parked.
    pub(crate) fn settle_all(&self, guard: &Guard<'_>) -> Result<(), Failed> {
        if !self.publishes_late() {
            return Ok(());
        }
        self.stripes.settle_all(|parked| self.publish_parked(guard, parked))
    }

    /// Publishes all that a client has parked. It holds no page.
    pub(super) fn catch_up(&self, session: &mut SlotSession) {
        let SlotSession { participant, lag, .. } = session;
        let guard = participant.pin();
        lag.catch_up(|entry| {
            if let Some(own) = entry.parked.take() {
                self.stripes.finish(own.hash, |parked, _| self.publish_parked(&guard, parked));
            }
        });
    }

    /// Publishes what a client has parked, and releases what it has replaced, durably when this returns. Its record tells the
    /// key. The caller holds no page, and may hold another key.
    #[cold]
    pub(super) fn publish_parked(&self, guard: &Guard<'_>, parked: Parked) {
        let mourner = self.admission.mourner();
        let mut record = Vec::new();
        let found = self.heap.read(Self::offset_of(parked.word), &mut record);
        // Where the record has become unreadable its hash is all there is, and whoever reads it next is told.
        let key = found.ok().flatten().map(|found| found.key);
        if let Some(old) = self.name(guard, parked, key, Sighting::Nothing)
            && self.twin != Some(Twin::OldNotReleased)
        {
            // As when its own client publishes it.
            let _ = self.heap.delete(old);
        }
        mourner.dismiss();
    }

    /// Lets the index name a record of this key. Returns the one that it named before, if that is to be released.
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
        // If it is the new one, the index named a place that was free: the mark there had been lost.
        old.map(Self::offset_of).filter(|old| *old != Self::offset_of(word))
    }
}
