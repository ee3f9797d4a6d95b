//! Putting one key (section 4.2 of the paper): the beats of a put, in their order.
//!
//! [`late`](super::late) has the argument for puts that a later write publishes, [`now`](super::now) the one
//! for the others.

use super::late::{Earlier, Seen};
use super::reclaim::{LEAST_PERCENT, Wanted};
use super::{SlotSession, SlotSpine};
use crate::engine::{Decide, Decision};
use crate::types::change::{Entry, Expiry};
use crate::types::error::{Error, ErrorKind};
use quipu_parts::commit::{Parked, StripeGuard};
use quipu_parts::heap::Numbers;
use quipu_parts::heap::slots::{Claim, Record, SlotError};
use quipu_parts::index::IndexError;
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::twin;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Gives a key this value, without a look at the old one.
    #[inline]
    pub(crate) fn put(&self, session: &mut SlotSession, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.check_sizes(key, value)?;
        let hash = self.hash(key);
        if !self.publishes_late() {
            self.index.prefetch_to_write(hash);
        }
        self.common.stripes.prefetch(hash);
        self.with_room(session, |session| {
            let stripe = self.lock(&session.participant, hash);
            self.write(session, &stripe, hash, key, value)
        })
    }

    /// Writes, and makes room if there is none. No key is held meanwhile.
    #[inline]
    pub(super) fn with_room<T>(
        &self,
        session: &mut SlotSession,
        mut write: impl FnMut(&mut SlotSession) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        self.relieve()?;
        loop {
            match write(session) {
                Ok(done) => return Ok(done),
                Err(refusal) => self.make_room(refusal, session)?,
            }
        }
    }

    /// Locks `key`, shows its value to `decide`, and carries out the decision durably.
    pub(crate) fn modify(
        &self,
        session: &mut SlotSession,
        key: &[u8],
        decide: &mut dyn Decide,
    ) -> Result<(), Error> {
        self.check_key(key)?;
        let hash = self.hash(key);
        self.index.prefetch_to_write(hash);
        self.common.stripes.prefetch(hash);
        self.with_room(session, |session| {
            let stripe = self.lock(&session.participant, hash);
            let SlotSession { participant, buffer, .. } = &mut *session;
            let existed = self.look_up::<true>(&participant.pin(), hash, key, buffer)?;
            let entry = Entry { value: buffer, expiry: Expiry::Never, version: None };
            match decide.decide(existed.then_some(entry)) {
                Decision::Put(_, Expiry::At(_)) => Err(Error::Unsupported { what: "expiry" }.into()),
                Decision::Put(value, Expiry::Never) => {
                    self.check_sizes(key, value)?;
                    self.write(session, &stripe, hash, key, value)
                }
                Decision::Delete if existed => self.delete(session, &stripe, hash, key).map(drop),
                Decision::Keep | Decision::Delete => Ok(()),
            }
        })
    }

    /// Replaces or inserts a record. The key's stripe is held.
    #[inline]
    fn write<'s>(
        &'s self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'s>,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Refusal> {
        if twin!(ReleasedBeforePersist) {
            self.unmark(&session.participant.pin(), hash, key)?;
        }
        let blocks = || self.heap.blocks_for(key.len() as u64, value.len() as u64);
        let written = if self.publishes_late() && blocks() <= 1 {
            self.put_late(session, stripe, hash, key, value)
        } else {
            self.put_now(session, stripe, hash, key, value)
        };
        written.map_err(|failure| Refusal { failure, blocks: blocks(), percent: LEAST_PERCENT })
    }

    /// A put that a later write of the client publishes. It publishes the put before the last on its way.
    #[inline]
    fn put_late<'s>(
        &'s self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'s>,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failure> {
        let SlotSession { participant, owner, numbers, lag, .. } = session;
        let guard = participant.pin();
        let record = Record { key, value, sequence: self.draw(numbers, stripe) };
        // Dropped behind the claim: the page of the new record is unlocked first, then the old record's, then
        // the earlier key.
        let mut earlier = Earlier::default();

        // Without room the claim fails, and the caller publishes all parked puts to make some. So it comes
        // before the earlier put's key is held.
        let mut claim = self.heap.claim(owner, record)?;
        let mourner = self.common.admission.mourner();
        self.publish_oldest(&guard, lag, &mut earlier);

        // One fence covers the record and the mark of the earlier put's old record. The index line is for the
        // next two puts, which look there.
        claim.write(record);
        earlier.clear();
        self.index.prefetch_to_write(hash);
        if !twin!(MarkedUnwritten) {
            self.region().fence();
        }

        // The last put's line of the index has arrived; its old record is on its way during the fence.
        claim.mark();
        self.look_for_old(&guard, lag);
        let parked = Parked { hash, word: Self::word_of(claim.sized(), key) };
        lag.note(parked, key, Seen { sequence: record.sequence, ..Seen::default() });
        if !twin!(MarkUnfenced) {
            self.region().fence();
        }

        earlier.release_rest(&claim);
        if twin!(PageFreeBeforeParked) {
            self.park_behind_page(stripe, parked, claim);
            return Ok(());
        }
        stripe.park(parked, || ());
        mourner.dismiss();
        Ok(())
    }

    /// A put that is published before it returns.
    #[inline]
    fn put_now(
        &self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'_>,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failure> {
        let SlotSession { participant, owner, hot, numbers, .. } = session;
        let owner = self.owner_for(owner, hot, participant, hash);
        let guard = participant.pin();
        let record = Record { key, value, sequence: self.draw(numbers, stripe) };

        // The segment is locked before the fences: a locked instruction behind one would wait for it.
        let mut claim = self.heap.claim(owner, record)?;
        let segment = self.index.lock(hash);

        claim.write(record);
        if !twin!(MarkedUnwritten) {
            self.region().fence();
        }

        claim.mark();
        if !twin!(MarkUnfenced) {
            self.region().fence();
        }

        // Few locked instructions from here to the release of the old record; then the page is unlocked.
        let word = Self::word_of(claim.sized(), key);
        let old = match segment.upsert(&guard, word, |old| self.is_record_of(old, key)) {
            Ok(Some(old)) => old,
            Ok(None) => return Ok(()),
            Err(refused) => return Err(Failure::of_index(&claim, refused)),
        };
        if !REDUCED && (twin!(OldNotReleased) || twin!(PageFreeBeforeRelease) || twin!(TiesByBlock)) {
            return Ok(self.release_as_twin(claim, old)?);
        }
        // The new record is in force. A damaged old one cannot be released; a check or the next recovery
        // reports it.
        let _ = self.release(&claim, old, record.sequence);
        Ok(())
    }

    /// Makes room for a write that has found none.
    ///
    /// # Errors
    /// The write's error, if it has another cause; otherwise as for [`make_space_or`](Self::make_space_or).
    #[cold]
    pub(super) fn make_room(&self, refusal: Refusal, session: &mut SlotSession) -> Result<(), Error> {
        let Refusal { failure, blocks, percent } = refusal;
        match failure {
            // A writer that waits is not pinned, so it does not keep blocks from reuse as a reader does.
            Failure::Error(error) if error.kind() == ErrorKind::Room => {
                self.make_space_or(error, session, Wanted::Blocks(blocks), percent)
            }
            Failure::NoRoomInIndex(error) => self.make_space_or(error, session, Wanted::IndexZone, percent),
            Failure::Error(error) => Err(error),
        }
    }

    /// A sequence number above those of all records of a key whose stripe is held.
    #[inline]
    pub(super) fn draw(&self, numbers: &mut Numbers, stripe: &StripeGuard<'_>) -> u64 {
        let newest = if twin!(NewestIgnored) { 0 } else { stripe.newest() };
        let sequence = self.heap.clock().draw_above(self.heap.space(), numbers, newest);
        stripe.note_newest(sequence);
        sequence
    }
}

/// A write that has changed nothing, and the room that it wants.
pub(super) struct Refusal {
    pub(super) failure: Failure,
    /// Free blocks.
    pub(super) blocks: u64,
    /// Percent of a block that must be free for it to be reclaimed for this.
    pub(super) percent: u8,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { failure: Failure::Error(error), blocks: 1, percent: LEAST_PERCENT }
    }
}

/// Why a record was not written.
pub(super) enum Failure {
    Error(Error),
    /// No zone is to be had for the index, and the record has been withdrawn.
    NoRoomInIndex(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl From<SlotError> for Failure {
    fn from(error: SlotError) -> Failure {
        Failure::Error(error.into())
    }
}

impl Failure {
    /// Takes back a record that the index has refused.
    #[cold]
    fn of_index(claim: &Claim<'_, '_>, refused: IndexError) -> Failure {
        match (claim.withdraw(), Error::from(refused)) {
            (Err(error), _) => error.into(),
            (Ok(()), refused) if refused.kind() == ErrorKind::Room => Failure::NoRoomInIndex(refused),
            (Ok(()), refused) => Failure::Error(refused),
        }
    }
}
