//! The life of a write, from top to bottom (section III-E, "Write").

use super::{NlogSession, NlogSpine, Writer};
use crate::engine::Decide;
use crate::points::reference_of;
use crate::types::error::Error;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::SizedReference;
use quipu_parts::heap::nlog::taken;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind};
use quipu_parts::sync::between_looks;
use quipu_parts::twin;

/// A write that was not carried out: the error, and the room that it wanted.
struct Refusal {
    error: Error,
    len: u64,
    purpose: Use,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, len: 0, purpose: Use::Put }
    }
}

/// A key that its writer has locked, and the word that the index has for it.
struct Held<'s> {
    key: Key<'s>,
    /// The answer of the index to a prefetch.
    near: Option<u64>,
    stripe: usize,
    guard: StripeGuard<'s>,
    old: Option<u64>,
}

impl<I: Index> NlogSpine<I> {
    /// Gives a key this value, or deletes it with [`Kind::Tombstone`], whatever its old value is.
    #[inline]
    pub(super) fn write_blind(&self, session: &mut NlogSession, content: &Content<'_>) -> Result<(), Error> {
        self.check_key(content.key)?;
        self.check_inline(content.value)?;
        loop {
            self.relieve()?;
            let Err(refusal) = self.try_blind(session, content) else { return Ok(()) };
            self.make_space_or(refusal.error, refusal.len, refusal.purpose)?;
        }
    }

    fn try_blind(&self, session: &mut NlogSession, content: &Content<'_>) -> Result<(), Refusal> {
        let NlogSession { participant, writer } = session;
        let key = self.key(content.key);
        let near = self.index.prefetch_to_write(participant, key);
        let stripe = self.common.stripes.of(key.hash);
        self.common.stripes.prefetch(key.hash);
        let pinned = participant.pin();
        let guard = self.lock(stripe);
        let is_own = |word| self.named::<false>(&pinned, word, key.bytes).is_some();
        let old = self.index.get_near(&pinned, key, near, is_own).map_err(Error::from)?;
        if old.is_none() && content.kind == Kind::Tombstone {
            return Ok(());
        }
        self.write(&pinned, writer, Held { key, near, stripe, guard, old }, content)
    }

    /// Locks `key`, shows its value to `decide`, and carries out the decision durably.
    #[inline]
    pub(super) fn modify<D: Decide + ?Sized>(
        &self,
        session: &mut NlogSession,
        key: &[u8],
        decide: &mut D,
    ) -> Result<(), Error> {
        self.check_key(key)?;
        loop {
            self.relieve()?;
            let decided = match decide.needs_value() {
                true => self.decide::<true, D>(session, key, decide),
                false => self.decide::<false, D>(session, key, decide),
            };
            let Err(refusal) = decided else { return Ok(()) };
            self.make_space_or(refusal.error, refusal.len, refusal.purpose)?;
        }
    }

    /// Does this without a look at the room that is left. Without `WHOLE` the value is shown empty.
    #[inline]
    fn decide<const WHOLE: bool, D: Decide + ?Sized>(
        &self,
        session: &mut NlogSession,
        key: &[u8],
        decide: &mut D,
    ) -> Result<(), Refusal> {
        let NlogSession { participant, writer } = session;
        let key = self.key(key);
        let near = self.index.prefetch_to_write(participant, key);
        let stripe = self.common.stripes.of(key.hash);
        self.common.stripes.prefetch(key.hash);
        let pinned = participant.pin();
        let guard = self.lock(stripe);
        let old = self.locate_near::<WHOLE>(&pinned, key, near)?;
        let Some(content) = self.ask::<WHOLE, D>(&pinned, key, old.as_ref(), decide)? else { return Ok(()) };
        self.check_inline(content.value)?;
        let old = old.map(|located| located.word);
        self.write(&pinned, writer, Held { key, near, stripe, guard, old }, &content)
    }

    /// Writes the record of a key that is held, and lets the index name it.
    #[inline]
    fn write(
        &self,
        pinned: &Guard<'_>,
        writer: &mut Writer,
        held: Held<'_>,
        content: &Content<'_>,
    ) -> Result<(), Refusal> {
        let Held { key, near, stripe, guard, old } = held;
        if !twin!(CacheToldLate) {
            self.forget(pinned, key.hash);
        }
        let parent = old.map_or(0, |word| self.nlog().parent_word(reference_of(word)));
        let content = content.after(parent);
        let (len, is_tombstone) = (content.record_len(), content.kind == Kind::Tombstone);
        let purpose = if is_tombstone { Use::Delete } else { Use::Put };

        let spot = self
            .nlog()
            .reserve(self.nlog().home(writer.node, stripe), len, purpose)
            .map_err(|error| Refusal { error: error.into(), len, purpose })?;
        let newest = if twin!(NewestIgnored) { 0 } else { guard.newest() };
        let sequence = spot.draw_above(&mut writer.numbers, newest);
        guard.note_newest(sequence);
        let held_back = spot.write(&mut writer.encoder, &content, sequence);
        self.nlog().put_held_back(held_back.as_slice());
        if !twin!(PublishBeforePersist) {
            self.region().fence();
        }

        let (new, bytes, begins_file) = (spot.reference(), spot.taken(), spot.begins_file());
        let is_old = |word| Some(word) == old;
        let mourner = self.common.admission.mourner();
        let published = if is_tombstone {
            self.index.take(pinned, key, near, is_old)
        } else {
            let word = SizedReference::new(new, len).word();
            self.index.upsert(pinned, key, word, near, is_old, &self.core)
        };
        published.map_err(Error::from)?;
        mourner.dismiss();
        between_looks();
        if twin!(CacheToldLate) {
            self.forget(pinned, key.hash);
        }
        spot.published();
        if begins_file {
            // Another file may be full of dead records.
            self.cleaning.call();
        }

        if twin!(PublishBeforePersist) {
            self.region().fence();
        }
        if is_tombstone {
            // It serves recovery alone, until its parent is gone.
            self.heap.note_garbage(writer.shard, new, bytes);
        } else if content.expires != 0 {
            self.heap.note_expiring(new, bytes, content.expires);
        }
        if let Some(word) = old {
            self.heap.note_garbage(writer.shard, reference_of(word), self.place_len(pinned, word));
        }
        Ok(())
    }

    /// Bytes of the place of a record that a word of the index names, or did a moment ago.
    #[inline]
    pub(super) fn place_len(&self, pinned: &Guard<'_>, word: u64) -> u64 {
        let stated = SizedReference::from_word(word).record_len();
        let len = stated.or_else(|| Some(self.record_of(pinned, word)?.header.record_len()));
        taken(len.unwrap_or_default())
    }
}
