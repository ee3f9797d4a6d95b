//! Writing many keys under one fence.

use super::{Session, Spine};
use crate::error::Error;
use quipu_parts::heap::Reference;
use quipu_parts::record::Kind;

/// Records that share a fence, and stripes locked at once.
const BATCH: usize = 32;

impl Spine {
    /// Puts every pair; each is durable when this returns. Not atomic: after a crash each record is there whole or not
    /// at all. On an error the pairs before the one that failed are written.
    pub(crate) fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        session: &mut Session,
        pairs: &[(K, V)],
    ) -> Result<(), Error> {
        for (key, value) in pairs {
            self.check_key(key.as_ref())?;
            self.check_value(value.as_ref())?;
        }
        pairs.chunks(BATCH).try_for_each(|pairs| {
            // Asked for once and checked again, before anything is locked: what a caller's `as_ref` returns may change,
            // and it may panic.
            let mut resolved = [(&[][..], &[][..]); BATCH];
            for (place, (key, value)) in resolved.iter_mut().zip(pairs) {
                *place = (key.as_ref(), value.as_ref());
                self.check_key(place.0)?;
                self.check_value(place.1)?;
            }
            self.put_batch(session, &resolved[..pairs.len()])
        })
    }

    fn put_batch(&self, session: &mut Session, pairs: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let Session { participant, writer, .. } = session;
        let guard = participant.pin();
        let mut hashes = [0; BATCH];
        // Each stripe is locked once, in rising order: by the first pair of those that share it.
        let mut by_stripe = [(usize::MAX, usize::MAX); BATCH];
        for (i, (key, _)) in pairs.iter().enumerate() {
            hashes[i] = self.hash(key);
            by_stripe[i] = (self.stripes.of(hashes[i]), i);
            self.index.prefetch_to_write(hashes[i]);
        }
        by_stripe[..pairs.len()].sort_unstable();
        let mut locks = [const { None }; BATCH];
        let mut lock_of = [0; BATCH];
        let mut last = None;
        for (stripe, i) in by_stripe[..pairs.len()].iter().copied() {
            if last.is_none_or(|(locked, _)| locked != stripe) {
                let publish = |parked| self.publish_parked(&guard, parked);
                locks[i] = Some(self.stripes.lock(stripe, publish));
                last = Some((stripe, i));
            }
            lock_of[i] = last.map_or(i, |(_, holder)| holder);
        }

        let mut written = [const { None::<Reference> }; BATCH];
        let mut failure = None;
        for (i, (key, value)) in pairs.iter().enumerate() {
            match self.prepare(writer, Kind::Value, key, value) {
                Ok(()) => {
                    let stripe = locks[lock_of[i]].as_ref().expect("the stripe of every pair is locked");
                    let sequence = self.draw(writer, stripe, Kind::Value);
                    let open = writer.segment.as_mut().expect("room was made when the record was prepared");
                    written[i] =
                        Some(self.heap.append_whole_lines(writer.shard, open, &mut writer.encoder, sequence));
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        if let Some(open) = &mut writer.segment {
            self.heap.complete(open);
        }
        self.region().fence();
        for (i, new) in written.iter().enumerate() {
            if let Some(new) = new {
                let old = self.locate::<false>(&guard, hashes[i], pairs[i].0);
                self.publish(&guard, writer.shard, hashes[i], old, *new, Kind::Value);
            }
        }
        failure.map_or(Ok(()), Err)
    }
}
