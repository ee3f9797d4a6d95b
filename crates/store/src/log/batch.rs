//! Writing many keys under one fence.

use super::{Placed, Session, Spine};
use crate::engine::AT_ONCE;
use crate::types::error::{Error, ErrorKind};
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::segments::{LastLine, Use};
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind};

/// The stripes of up to [`AT_ONCE`] keys, each locked once.
pub(super) struct Locks<'s> {
    guards: [Option<StripeGuard<'s>>; AT_ONCE],
    /// For each key, the index of the guard that holds its stripe.
    holders: [usize; AT_ONCE],
}

impl Locks<'_> {
    /// The stripe of the key at this position.
    pub(super) fn of(&self, position: usize) -> &StripeGuard<'_> {
        self.guards[self.holders[position]].as_ref().expect("the stripe of every key is locked")
    }
}

impl<I: Index> Spine<I> {
    /// Locks the stripes of up to [`AT_ONCE`] hashes, in rising order, each by the first of the keys that
    /// share it.
    pub(super) fn lock_all(&self, guard: &Guard<'_>, hashes: &[u64]) -> Locks<'_> {
        let mut by_stripe = [0; AT_ONCE];
        let mut locks = Locks { guards: [const { None }; AT_ONCE], holders: [0; AT_ONCE] };
        self.lock_in_order(
            guard,
            hashes,
            &mut by_stripe[..hashes.len()],
            &mut locks.guards,
            &mut locks.holders,
        );
        locks
    }

    /// Locks the stripes of these hashes in rising order, and tells for each where its guard is. The other
    /// slices are as long or longer.
    pub(super) fn lock_in_order<'s>(
        &'s self,
        guard: &Guard<'_>,
        hashes: &[u64],
        by_stripe: &mut [u64],
        guards: &mut [Option<StripeGuard<'s>>],
        holders: &mut [usize],
    ) {
        for (position, hash) in hashes.iter().enumerate() {
            by_stripe[position] = (self.common.stripes.of(*hash) as u64) << u32::BITS | position as u64;
        }
        by_stripe.sort_unstable();
        let mut last = None;
        for pair in by_stripe.iter() {
            let (stripe, position) = ((pair >> u32::BITS) as usize, *pair as u32 as usize);
            let holder = match last {
                Some((locked, holder)) if locked == stripe => holder,
                _ => {
                    let publish = |parked| self.publish_parked(guard, parked);
                    guards[position] = Some(self.common.stripes.lock(stripe, publish));
                    last = Some((stripe, position));
                    position
                }
            };
            holders[position] = holder;
        }
        hashes.iter().for_each(|hash| self.forget(guard, *hash));
    }

    /// Puts up to [`AT_ONCE`] pairs; each is durable when this returns. Not atomic: after a crash each record
    /// is there whole or not at all. On an error the pairs before the one that failed are written.
    pub(crate) fn put_many(&self, session: &mut Session, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        self.relieve()?;
        // Pairs that share a fence go together; a large one goes alone.
        let both_small =
            |(_, one): &(_, &[u8]), (_, next): &(_, &[u8])| !self.is_large(one) && !self.is_large(next);
        pairs.chunk_by(both_small).try_for_each(|run| match run {
            [(key, value)] if self.is_large(value) => self.put_large(session, &Content::value(key, value)),
            small => self.put_small(session, small),
        })
    }

    /// Puts up to [`AT_ONCE`] pairs, making room on the way.
    fn put_small(&self, session: &mut Session, mut rest: &[(&[u8], &[u8])]) -> Result<(), Error> {
        while !rest.is_empty() {
            match self.put_batch(session, rest) {
                Ok(written) => rest = &rest[written..],
                Err((written, error)) if error.kind() == ErrorKind::Room => {
                    // A put of one pair makes room, in the pool or on the disk, and knows what needs none.
                    let (key, value) = rest[written];
                    self.leave(&mut session.writers);
                    self.write_record(session, &Content::value(key, value))?;
                    rest = &rest[written + 1..];
                }
                Err((_, error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Puts up to [`AT_ONCE`] pairs, as many as fit one segment, or one for hot pairs and one for the others.
    /// Returns how many; if there is no room for more, how many of them are written, and the error.
    ///
    /// Each kind stays in one segment, since a segment that its client has left may be cleaned at once. A
    /// cleaner takes unnamed records for dead, and does not wait for a writer that is about to publish them.
    fn put_batch(&self, session: &mut Session, pairs: &[(&[u8], &[u8])]) -> Result<usize, (usize, Error)> {
        let Session { participant, writers, .. } = session;
        let guard = participant.pin();
        let (mut hashes, mut near) = ([0; AT_ONCE], [None; AT_ONCE]);
        for ((hash, near), (key, _)) in hashes.iter_mut().zip(&mut near).zip(pairs) {
            *hash = self.hash(key);
            if !self.takes_hint(Kind::Value) {
                *near = self.index.prefetch_to_write(participant, Key { bytes: key, hash: *hash });
            }
        }
        let key_len = pairs.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
        self.index_room(&guard, pairs.len(), key_len).map_err(|error| (0, error))?;
        let locks = self.lock_all(&guard, &hashes[..pairs.len()]);
        for writer in writers.each() {
            self.drop_revoked(writer);
        }

        let mut written = [const { None::<Placed<'_>> }; AT_ONCE];
        let (mut count, mut failure) = (pairs.len(), None);
        // Whether records of this batch stand in the segment for cold records, and in that for hot ones.
        let mut stands_in = [false; 2];
        for (i, (key, value)) in pairs.iter().enumerate() {
            let key = Key { bytes: key, hash: hashes[i] };
            let is_hot = self.is_hot(writers, participant, Kind::Value, key.hash);
            let writer = writers.of(is_hot);
            let prepared = self.hint(Kind::Value, key, participant, is_hot).and_then(|hint| {
                let content = Content::value(key.bytes, value).hinted(hint);
                let stands = &mut stands_in[usize::from(is_hot)];
                if *stands && !self.has_room(Use::Put, &writer.segment, content.record_len()) {
                    return Ok(None);
                }
                self.prepare(Use::Put, writer, &content)?;
                *stands = true;
                Ok(Some(content))
            });
            match prepared {
                Ok(Some(content)) => {
                    let sequence = self.draw(writer, locks.of(i), &content);
                    let new = self.append(writer, sequence, &content, LastLine::Left);
                    written[i] = Some(self.placed(key, new, sequence, &content).near(near[i]));
                }
                Ok(None) => {
                    count = i;
                    break;
                }
                Err(error) => {
                    failure = Some((i, error));
                    break;
                }
            }
        }
        for is_hot in [false, true] {
            let open = writers.of(is_hot).segment.as_mut();
            if let Some(open) = open.filter(|_| stands_in[usize::from(is_hot)]) {
                self.heap.complete(open);
            }
        }
        self.region().fence();
        let mut placed = written.iter().flatten().enumerate();
        for (i, new) in placed.by_ref() {
            if let Err(error) = self.publish(&guard, writers.cold.shard, new, None) {
                failure = Some((i, error));
                break;
            }
        }
        // Records behind the one that the index refused are written again.
        placed.for_each(|(_, new)| self.release(&guard, writers.cold.shard, new.word, None));
        failure.map_or(Ok(count), Err)
    }
}
