//! Writes that look at the old record under the key's lock, and decide on it.

use super::put::purpose_of;
use super::{Session, Spine};
use crate::engine::Decide;
use crate::points::reference_of;
use crate::types::error::Error;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Index;
use quipu_parts::record::Kind;

/// A decision that was not carried out: the error, and the wanted room in bytes and zones.
struct Refusal {
    error: Error,
    wanted: (u64, u32),
    purpose: Use,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, wanted: (0, 0), purpose: Use::Put }
    }
}

impl<I: Index> Spine<I> {
    /// Locks `key`, shows its value to `decide`, and carries out the decision durably.
    ///
    /// If there is no room for the decision, the key is unlocked while room is made, and `decide` is called
    /// again. So no write is refused while room can be made, even if others take the room before the key is
    /// locked.
    #[inline]
    pub(crate) fn modify<D: Decide + ?Sized>(
        &self,
        session: &mut Session,
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
            let Err(Refusal { error, wanted, purpose }) = decided else { return Ok(()) };
            self.make_space_or(error, &mut session.writers, wanted, purpose)?;
        }
    }

    /// Does this without a look at the room that is left. Without `WHOLE` the value is shown empty.
    #[inline]
    fn decide<const WHOLE: bool, D: Decide + ?Sized>(
        &self,
        session: &mut Session,
        key: &[u8],
        decide: &mut D,
    ) -> Result<(), Refusal> {
        let Session { participant, writers, .. } = session;
        let key = self.key(key);
        let near = self.index.prefetch_to_write(participant, key);
        let guard = participant.pin();
        let stripe = self.lock(&guard, key.hash);
        self.forget(&guard, key.hash);
        let old = self.locate_near::<WHOLE>(&guard, key, near)?;
        if let Some(old) = &old {
            self.heap.prefetch_dead(reference_of(old.word));
        }
        let Some(content) = self.ask::<WHOLE, D>(&guard, key, old.as_ref(), decide)? else { return Ok(()) };
        if I::DURABLE && content.kind == Kind::Tombstone {
            return Ok(self.erase(&guard, &mut writers.cold, key)?);
        }
        let (kind, purpose) = (content.kind, purpose_of(content.kind));
        let is_hot = self.is_hot(writers, participant, kind, key.hash);
        let writer = writers.of(is_hot);
        self.drop_revoked(writer);
        if self.is_large(content.value) {
            let refused = |error| Refusal { error, wanted: self.wanted(&content), purpose };
            let replaced = self.replace_by_large(&guard, writer, &stripe, key, old.as_ref(), &content);
            return replaced.map_err(refused);
        }
        let content = content.hinted(self.hint(kind, key, participant, is_hot)?);
        let refused = |zones| move |error| Refusal { error, wanted: (content.record_len(), zones), purpose };
        if old.is_none() {
            self.index_room(&guard, 1, key.bytes.len()).map_err(refused(1))?;
        }
        self.prepare(purpose, writer, &content).map_err(refused(0))?;
        let placed = self.place(writer, &stripe, key, &content).near(near);
        self.persist_and_publish(&guard, &stripe, writer.shard, &placed, old.as_ref())?;
        if kind == Kind::Tombstone {
            self.heap.share_reserve(&mut writer.segment);
        }
        Ok(())
    }
}
