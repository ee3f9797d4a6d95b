//! Growing by one bucket: the words of one chain that belong to the new bucket move there (linear hashing;
//! the paper has no growth).
//!
//! The table grows, by the bucket whose turn it is, when a key has to be put behind the first bucket of its
//! chain. One thread at a time splits, and others do not wait for it. If there is no room for a further
//! bucket, the table stays as it is and its chains get longer.
//!
//! | step | durable before |
//! |---|---|
//! | the words that move are written to the new chain, with their marks | the size of the table says so |
//! | the size of the table | the words that moved leave the old chain |
//! | they have left it | the locks of both chains are given back |
//!
//! So a crash leaves no more than words in one old chain that stand in the new one too; nothing in either has
//! changed meanwhile. They must go before any change, since a record that such a word names may be freed and
//! its place used by another key. Opening compares the two chains, and needs no hash for that
//! ([`finish_split`](BucketIndex::finish_split)).
//!
//! The new bucket may have been begun before, in vain. Its slots are overwritten. Links stay, and the buckets
//! behind them are filled again, once it is proved that they belong to no other chain
//! ([`prove_begun`](BucketIndex::prove_begun)).

use super::lock::Locking;
use super::numbers::Size;
use super::slot::{FREE, PERSIST, is_key, is_own, is_unsettled, linked, reference};
use super::table::BucketIndex;
use crate::index::chain::damaged;
use crate::index::words::{LINE_WORDS, Words};
use crate::space::SpaceError;
use quipu_medium::{LINE, WORD};
use std::sync::atomic::Ordering;

/// Keys behind first buckets that are added before a split is tried again that damage has prevented: it reads
/// the records of a chain, and most likely in vain.
const PAUSE: u32 = 4096;

impl<W: Words, L: Locking> BucketIndex<W, L> {
    /// Splits the bucket whose turn it is, if nobody is splitting and there is room.
    #[cold]
    #[inline(never)]
    pub(super) fn split_next(&self, rehash: &dyn Fn(u64) -> u64) {
        let Some(mut pause) = self.growth.try_lock() else { return };
        if *pause > 0 {
            *pause -= 1;
            return;
        }
        let Some((grown, parent)) = self.size().next() else { return };
        if self.zones.extend_table(grown.buckets).is_err() {
            return;
        }
        self.growing.store(true, Ordering::Relaxed);
        // A damaged chain is not split, and every lookup in it is told of the damage.
        if self.split(grown, parent, rehash).is_err() {
            *pause = PAUSE;
        }
        self.growing.store(false, Ordering::Relaxed);
    }

    fn split(&self, grown: Size, parent: u64, rehash: &dyn Fn(u64) -> u64) -> Result<(), SpaceError> {
        let new = grown.buckets - 1;
        let heads = [self.zones.place(parent)?, self.zones.place(new)?];
        let _locks = self.locks.lock_both(self.words(), heads);
        let mut words = Vec::with_capacity(LINE_WORDS * 2);
        self.each_slot::<true>(heads[0], |slot, word| {
            // Above all a deletion's mark: the word must not come back when its key is looked for elsewhere.
            if is_unsettled(word) {
                self.words().flush(slot, WORD);
            }
            words.extend(is_key(word).then_some((slot, word)));
        })?;
        self.records_read.fetch_add(words.len() as u64, Ordering::Relaxed);
        let size = self.size();
        let mut moving = Vec::with_capacity(words.len());
        for (slot, word) in words {
            let hash = rehash(reference(word));
            // Moved by a wrong hash, or left, its key would seem absent, and no lookup would notice.
            if !is_own(word, hash) || size.bucket(hash) != parent {
                return damaged("a word of the index whose record is of another chain,", slot);
            }
            moving.extend((grown.bucket(hash) == new).then_some((slot, word | PERSIST)));
        }
        let (left, moving): (Vec<u64>, Vec<u64>) = moving.into_iter().unzip();
        self.prove_begun(heads[1], rehash)?;
        if !self.fill(heads[1], new, &moving)? {
            return Ok(());
        }
        self.words().fence();
        let state = self.zones.state_place();
        self.words().store(state, self.zones.seal.state(grown.buckets, state));
        self.words().persist(state, WORD);
        self.size.store(grown.pack(), Ordering::Release);
        self.free(left.into_iter());
        self.splits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Refuses a chain that no hash leads to yet if a link in it, by damage, leads to a bucket that was not
    /// handed out, or into a chain in use. That chain is the one to which the words there belong. If there
    /// are none, all are looked at: a split that was begun in vain leaves such a bucket only if a crash cut
    /// off another one in the middle.
    fn prove_begun(&self, head: u64, rehash: &dyn Fn(u64) -> u64) -> Result<(), SpaceError> {
        let mut slots = Vec::new();
        self.each_slot::<false>(head, |slot, word| slots.push((slot, word)))?;
        let is_somebodys = |word| linked(word).is_none_or(|link| self.zones.is_in_use(link));
        let mut is_own = slots.iter().all(|(_, word)| is_somebodys(*word));
        let buckets = slots.chunk_by(|(one, _), (other, _)| one / LINE == other / LINE);
        for behind in buckets.skip(1) {
            let words = behind.iter().map(|(_, word)| *word).filter(|word| is_key(*word));
            let of_words: Vec<u64> = words.map(|word| self.size().bucket(rehash(reference(word)))).collect();
            let of_all = if of_words.is_empty() { 0..self.size().buckets } else { 0..0 };
            let place = behind[0].0 / LINE;
            for bucket in of_words.into_iter().chain(of_all) {
                self.each_slot::<false>(self.zones.place(bucket)?, |slot, _| is_own &= slot / LINE != place)?;
            }
        }
        if is_own { Ok(()) } else { damaged("a link between buckets of the index", head) }
    }

    /// Fills a chain that no hash leads to yet; a fence follows. False if there is no room for all words.
    fn fill(&self, head: u64, bucket: u64, words: &[u64]) -> Result<bool, SpaceError> {
        let mut rest = words.iter().copied();
        let mut fill = |slot, word| {
            if linked(word).is_none() {
                self.words().store(slot, rest.next().unwrap_or(FREE));
            }
            if (slot + WORD).is_multiple_of(LINE) {
                self.words().flush(slot + WORD - LINE, LINE);
            }
        };
        let mut tail = self.each_slot::<true>(head, &mut fill)?;
        let rest: Vec<u64> = rest.collect();
        // A further bucket takes the last word of the one before it too.
        let room = LINE_WORDS - L::SLOTS - 1;
        if self.zones.make_room_for_split(rest.len().div_ceil(room) as u64).is_err() {
            return Ok(false);
        }
        for part in rest.chunks(room) {
            let Ok(appended) = self.zones.append(tail, bucket, part) else { return Ok(false) };
            tail = appended;
        }
        Ok(true)
    }

    /// Frees slots, durably when this returns. The caller holds the chain.
    fn free(&self, slots: impl Iterator<Item = u64>) {
        for slot in slots {
            self.words().store(slot, FREE);
            self.words().flush(slot, WORD);
        }
        self.words().fence();
    }

    /// The slots in which a split has left words that it had moved.
    pub(super) fn left_by_split(&self) -> Result<Vec<u64>, SpaceError> {
        let Some((new, parent)) = self.size().last_split() else { return Ok(Vec::new()) };
        let (mut moved, mut left) = (Vec::new(), Vec::new());
        self.each_slot::<false>(self.zones.place(new)?, |_, word| {
            moved.extend(is_key(word).then_some(word | PERSIST));
        })?;
        self.each_slot::<false>(self.zones.place(parent)?, |slot, word| {
            left.extend((is_key(word) && moved.contains(&(word | PERSIST))).then_some(slot));
        })?;
        Ok(left)
    }

    /// Ends a split that a crash interrupted, durably. `begin` is called before the first change.
    ///
    /// # Errors
    /// As for [`get`](BucketIndex::get); nothing is changed then.
    pub(super) fn finish_split(&self, begin: &mut impl FnMut()) -> Result<(), SpaceError> {
        let Some((_, parent)) = self.size().last_split() else { return Ok(()) };
        let left = self.left_by_split()?;
        if !left.is_empty() {
            begin();
        }
        left.into_iter().for_each(|slot| self.words().store(slot, FREE));
        // If the process alone has died, words that had left before may be gone from the cache and not from
        // the medium, in any bucket of the chain.
        self.each_slot::<false>(self.zones.place(parent)?, |slot, _| self.words().flush(slot, WORD))?;
        self.words().fence();
        Ok(())
    }
}
