//! Writing one key.

use super::hot::owner_for;
use super::late::{Finishing, Late};
use super::reclaim::LEAST_PERCENT;
use super::{EXACT, Misses, SlotSession, SlotSpine, exact};
use crate::engine::{Decide, Decision};
use crate::options::Twin;
use crate::types::change::{Entry, Expiry};
use crate::types::error::Error;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Numbers;
use quipu_parts::heap::slots::{Fence, Offset, Placed, Record, SizedOffset, SlotError, Steps};
use quipu_parts::index::IndexError;
use quipu_parts::index::cceh::{LockedSegment, NodeMemory};
use quipu_parts::space::Shortage;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Gives a key this value, whatever it was (section 4.2 of the paper).
    #[inline]
    pub(crate) fn put(&self, session: &mut SlotSession, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.check_sizes(key, value)?;
        let hash = self.hash(key);
        if !self.publishes_late() {
            self.index.prefetch_to_write(hash);
        }
        self.stripes.prefetch(hash);
        self.relieve()?;
        let stripe = self.lock(&session.participant, hash);
        self.write(session, stripe, hash, key, value)
    }

    /// Deletes a key, and tells whether it was there (section 4.5).
    #[inline]
    pub(crate) fn remove(&self, session: &mut SlotSession, key: &[u8]) -> Result<bool, Error> {
        let hash = self.ask(key);
        self.stripes.prefetch(hash);
        self.check_key(key)?;
        self.admit_write()?;
        let stripe = self.lock(&session.participant, hash);
        self.delete(session, &stripe, hash, key)
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
        self.stripes.prefetch(hash);
        self.relieve()?;
        let stripe = self.lock(&session.participant, hash);
        let SlotSession { participant, buffer, .. } = &mut *session;
        let existed = self.read(&participant.pin(), hash, key, buffer)?;
        let entry = Entry { value: buffer, expiry: Expiry::Never, version: None };
        match decide.decide(existed.then_some(entry)) {
            Decision::Put(_, Expiry::At(_)) => Err(Error::Unsupported { what: "expiry" }),
            Decision::Put(value, Expiry::Never) => {
                self.check_sizes(key, value)?;
                self.write(session, stripe, hash, key, value)
            }
            Decision::Delete if existed => self.delete(session, &stripe, hash, key).map(drop),
            Decision::Keep | Decision::Delete => Ok(()),
        }
    }

    /// Changes eight bytes of a value in place (section 4.4): `at` bytes into it, a little-endian number. Returns what stood
    /// there; `None` if there is no such key.
    #[inline]
    pub(crate) fn update_in_place(
        &self,
        session: &mut SlotSession,
        key: &[u8],
        at: u64,
        change: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        let hash = self.ask(key);
        self.stripes.prefetch(hash);
        self.admit_write()?;
        let _stripe = self.lock(&session.participant, hash);
        let guard = session.participant.pin();
        // A whole hash is hardly ever that of another key; so the key is compared only where the record is changed. One that is empty or
        // too long is none of those there, and is refused below.
        if let Some(word) = self.index.candidate(&guard, hash)
            && self.has_begun()
            && let Some(old) = self.heap.update_in_place(Self::offset_of(word), key, at, change)?
        {
            return Ok(Some(old));
        }
        self.find_and_update(&guard, hash, key, at, change)
    }

    /// The same, comparing keys, as often as the record moves meanwhile; also the first of a run, and what is refused.
    #[cold]
    fn find_and_update(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        key: &[u8],
        at: u64,
        change: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>, Error> {
        self.check_key(key)?;
        let mut misses = Misses::default();
        loop {
            let Some(offset) = self.find(guard, hash, key) else { return Ok(None) };
            self.begin_run();
            if let Some(old) = self.heap.update_in_place(offset, key, at, change)? {
                return Ok(Some(old));
            }
            misses.note(&self.heap, offset)?;
        }
    }

    /// Where the record of a key is, for who has not found it by the first answer of the index, or has not asked. There was none; or
    /// the record has moved since; or it was another key's, because the slot had been filled again, or, which is next to impossible, of
    /// the same hash.
    ///
    /// Under the lock of the segment, so that no record leaves its slot before it has been looked at. Without it, the slot of a
    /// record that moves again could be another key's whenever it is looked at, and the key, which was always there, seem absent.
    #[cold]
    pub(super) fn find(&self, guard: &Guard<'_>, hash: u64, key: &[u8]) -> Option<Offset> {
        if self.twin == Some(Twin::SecondLookUnlocked) {
            return self.index.get(guard, hash, |word| self.is_record_of(word, key)).map(Self::offset_of);
        }
        self.index.lock(hash).named(|word| self.is_record_of(word, key)).map(Self::offset_of)
    }

    /// Whether a word names a record of this key, which is about to be changed then.
    #[inline]
    pub(super) fn is_record_of(&self, word: u64, key: &[u8]) -> bool {
        if REDUCED {
            let exact = exact(key);
            self.heap.prefetch_dead(Self::offset_of(word));
            return word & EXACT == exact && (exact != 0 || self.heap.key_is(Self::offset_of(word), key));
        }
        self.heap.prefetch_to_change(Self::offset_of(word));
        self.heap.key_is(Self::offset_of(word), key)
    }

    /// Replaces or inserts a record; if there is no room, as soon as there is. The key's stripe is held until then.
    #[inline]
    fn write<'s>(
        &'s self,
        session: &mut SlotSession,
        stripe: StripeGuard<'s>,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        if self.twin == Some(Twin::ReleasedBeforePersist) {
            self.unmark(&session.participant.pin(), hash, key)?;
        }
        let blocks = || self.heap.blocks_for(key.len() as u64, value.len() as u64);
        if self.publishes_late() && blocks() <= 1 {
            while let Err(failure) = self.place_late(session, &stripe, hash, key, value) {
                self.make_room(failure, session, blocks())?;
            }
            return Ok(());
        }
        while let Err(failure) = self.replace(session, &stripe, hash, key, value) {
            self.make_room(failure, session, blocks())?;
        }
        Ok(())
    }

    /// Makes room for a put that has found none.
    ///
    /// # Errors
    /// What it has failed of, if that is something else, or if no room can be made.
    #[cold]
    fn make_room(&self, failure: Failure, session: &mut SlotSession, blocks: u64) -> Result<(), Error> {
        match failure {
            // Who waits for this key is not pinned, so the readers that keep blocks from reuse are not among them.
            Failure::Error(error @ Error::PoolFull { .. }) => {
                self.make_space_or(error, session, blocks, LEAST_PERCENT)
            }
            Failure::NoRoomInIndex(shortage) => self.make_index_space(session, shortage),
            Failure::Error(error) => Err(error),
        }
    }

    /// A sequence number above all that a record of a key has whose stripe is held.
    #[inline]
    pub(super) fn draw(&self, numbers: &mut Numbers, stripe: &StripeGuard<'_>) -> u64 {
        let sequence = self.heap.clock().draw_above(self.heap.space(), numbers, stripe.newest());
        stripe.note_newest(sequence);
        sequence
    }

    /// Places a record, durably, and parks it at its key's stripe, which is let go so.
    #[inline]
    fn place_late<'s>(
        &'s self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'s>,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failure> {
        let SlotSession { participant, owner, numbers, lag, .. } = session;
        let guard = participant.pin();
        let sequence = self.draw(numbers, stripe);
        let record = Record { key, value, sequence };
        let finishing = Finishing::default();
        let mut late = Late { spine: self, guard: &guard, stripe, lag, record, hash, finishing };
        Ok(self.heap.place_with(owner, record, &mut late)?)
    }

    /// Places a record, durably, lets the index name it, and releases the one before it. The key's stripe is held.
    #[inline]
    fn replace(
        &self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'_>,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failure> {
        let SlotSession { participant, owner, hot, numbers, .. } = session;
        let owner = owner_for(self.is_hot(hot, participant, hash), owner, hot);
        let guard = participant.pin();
        let sequence = self.draw(numbers, stripe);
        let record = Record { key, value, sequence };
        let mut steps = AtOnce { spine: self, guard: &guard, record, hash, segment: None, failure: None };
        self.heap.place_with(owner, record, &mut steps)?;
        match steps.failure {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    /// Lets the record go that another has replaced.
    #[inline]
    fn release(&self, placed: Placed<'_>, old: Offset) -> Result<(), Error> {
        match self.twin {
            Some(Twin::OldNotReleased) => {}
            Some(Twin::PageFreeBeforeRelease) => {
                drop(placed);
                drop(self.heap.delete(old)?);
            }
            _ => placed.release_old(old)?,
        }
        Ok(())
    }

    /// Deletes a key whose stripe is held, and tells whether it was there.
    fn delete(
        &self,
        session: &mut SlotSession,
        stripe: &StripeGuard<'_>,
        hash: u64,
        key: &[u8],
    ) -> Result<bool, Error> {
        if REDUCED {
            return self.delete_by_tombstone(session, stripe, hash, key);
        }
        self.unmark(&session.participant.pin(), hash, key)
    }

    /// The same, where a record is deleted by its mark.
    #[inline]
    fn unmark(&self, guard: &Guard<'_>, hash: u64, key: &[u8]) -> Result<bool, Error> {
        // As for an update in place.
        if let Some(word) = self.index.candidate(guard, hash)
            && self.has_begun()
            && self.unmark_if_named(guard, hash, key, word)?
        {
            return Ok(true);
        }
        self.find_and_unmark(guard, hash, key)
    }

    /// The same, comparing keys, as often as the record moves meanwhile; also the first of a run.
    #[cold]
    fn find_and_unmark(&self, guard: &Guard<'_>, hash: u64, key: &[u8]) -> Result<bool, Error> {
        let mut misses = Misses::default();
        loop {
            let Some(offset) = self.find(guard, hash, key) else { return Ok(false) };
            self.begin_run();
            let word = Self::word_of(SizedOffset::new(offset, 0), key);
            if self.unmark_if_named(guard, hash, key, word)? {
                return Ok(true);
            }
            misses.note(&self.heap, offset)?;
        }
    }

    /// Deletes the record of a key if it is the one of this word, and has not moved since the index said so.
    #[inline(always)]
    fn unmark_if_named(&self, guard: &Guard<'_>, hash: u64, key: &[u8], word: u64) -> Result<bool, Error> {
        let Some(held) = self.heap.hold(Self::offset_of(word)) else { return Ok(false) };
        // Locked, and searched, before the fence, as for a put, and while the record is still on its way from memory.
        let Some(entry) = self.index.lock(hash).entry_of(word) else { return Ok(false) };
        let is_gone = held.key_is(key) && held.delete()?;
        if is_gone {
            entry.remove(guard);
        }
        Ok(is_gone)
    }
}

/// The steps of a put that is published before it returns.
struct AtOnce<'s, 'g, M: NodeMemory, const REDUCED: bool> {
    spine: &'s SlotSpine<M, REDUCED>,
    guard: &'g Guard<'g>,
    record: Record<'g>,
    hash: u64,
    /// Locked before the fences, so that nothing waits for them before the next key.
    segment: Option<LockedSegment<'s, M>>,
    /// What fails goes this way and not as an answer, which would be moved whether it is one or not.
    failure: Option<Failure>,
}

impl<'s, M: NodeMemory, const REDUCED: bool> Steps<'s> for AtOnce<'s, '_, M, REDUCED> {
    type Outcome = ();

    #[inline]
    fn lock(&mut self) {
        self.segment = Some(self.spine.index.lock(self.hash));
    }

    #[inline]
    fn ahead(&mut self, _fence: Fence, _placed: SizedOffset) {}

    #[inline]
    fn publish(&mut self, placed: Placed<'s>) {
        let AtOnce { spine, guard, record: Record { key, sequence, .. }, .. } = *self;
        let segment = self.segment.take().expect("it was locked before");
        let word = SlotSpine::<M, REDUCED>::word_of(placed.sized(), key);
        let old = segment.upsert(guard, word, |word| spine.is_record_of(word, key));
        let released = match old.map(|old| old.map(|old| (old, SlotSpine::<M, REDUCED>::offset_of(old)))) {
            Ok(Some((old, _))) if REDUCED => spine.bury(placed, old, sequence),
            // If it is the new one, the index named a place that was free: the mark there had been lost.
            Ok(Some((_, old))) if old != placed.offset() => spine.release(placed, old),
            Ok(_) => return,
            Err(refused) => {
                let withdrawn = placed.withdraw();
                self.failure = Some(withdrawn.map_or_else(Failure::from, |()| Failure::of_index(refused)));
                return;
            }
        };
        if let Err(error) = released {
            self.failure = Some(error.into());
        }
    }
}

/// Why a record was not written.
enum Failure {
    Error(Error),
    /// Nothing has been changed: no zone is left for the index.
    NoRoomInIndex(Shortage),
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
    /// Why the index did not take a record that was withdrawn.
    fn of_index(refused: IndexError) -> Failure {
        match refused {
            IndexError::Full(shortage) => Failure::NoRoomInIndex(shortage),
            refused => Failure::Error(refused.into()),
        }
    }
}

impl From<SlotError> for Error {
    fn from(error: SlotError) -> Error {
        match error {
            SlotError::Full(shortage) => shortage.into(),
            SlotError::WrongSize { key, value } => Error::RecordSize { key, value },
            SlotError::Damaged { what, offset } => Error::damaged(what, offset, 0),
            SlotError::Space(error) => error.into(),
            SlotError::NotInPlace => Error::NotInPlace,
            other => Error::Option(other.to_string()),
        }
    }
}
