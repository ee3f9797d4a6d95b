//! Growth: a segment that is full gives half of its keys to a sibling, while all others go on.

use super::overflow::OverflowEntry;
use super::probe::SLOTS;
use super::segment::{Segment, State};
use super::slot::{EMPTY, TAG_BITS, tag_of_word};
use super::table::HashIndex;
use crate::index::directory::{EntryWord, deepest, prefix, split_bit};
use crate::sync::point;
use std::sync::atomic::Ordering;

/// Tag bits that must be left to tell the keys of a segment apart; at eight, one lookup in twenty or so tests
/// a key that is not the one.
const FRESH_BITS_MIN: u32 = 8;

/// How far behind a segment's depth its tag window may begin: beyond, too few bits of a tag would be left.
pub(super) const WINDOW_LAG: u32 = TAG_BITS - FRESH_BITS_MIN;

impl HashIndex {
    /// Whether splitting this segment would help a key that found no place in it.
    ///
    /// It would not if the segment is far from full (keys collide in more bits than a split looks at), unless
    /// such keys become many. Nor if the segment is far deeper than the others.
    pub(super) fn should_split(&self, segment: &Segment<'_>, state: &State) -> bool {
        let deepest = deepest(self.segments.load(Ordering::Relaxed));
        let slots = segment.slot_count();
        let in_buckets = (segment.meta.keys() - state.overflowing) as usize;
        state.depth < deepest && (in_buckets >= slots / 2 || state.overflowing as usize >= slots / 4)
    }

    /// Splits the segment that `entry` names and `hash` belongs to. The caller holds its lock.
    ///
    /// While tags hold the bit that decides, words are copied to the same places of the sibling. When tags
    /// have run out, the hashes come from the records, and both halves get a new window.
    pub(super) fn split(&self, hash: u64, entry: EntryWord, state: &mut State, rehash: &dyn Fn(u64) -> u64) {
        self.splitting.fetch_add(1, Ordering::Relaxed);
        let (segment, depth) = (self.slabs.segment(entry), state.depth);
        let by_tags = segment.base + WINDOW_LAG > depth;
        let base = if by_tags { segment.base } else { depth + 1 };
        // Keys that are placed anew, by their hashes.
        let mut keys = if by_tags { Vec::new() } else { self.hashes_of(&segment, hash, depth, rehash) };
        if state.overflowing != 0 {
            keys.extend(segment.meta.overflowing());
        }
        let sibling_entry = self.slabs.allocate(depth + 1, base);
        let sibling = self.slabs.segment(sibling_entry);
        let mut moved = 0;
        let bit = if by_tags { TAG_BITS - 1 - (depth - base) } else { 0 };
        let moves = |word: u64| (tag_of_word(word) >> bit) & 1 != 0;
        if by_tags {
            for (from, to) in segment.buckets.iter().zip(sibling.buckets) {
                for slot in 0..SLOTS {
                    let word = from.load(slot);
                    if moves(word) {
                        to.slots[slot].store(word, Ordering::Relaxed);
                        moved += 1;
                    }
                }
            }
        }
        sibling.meta.set_keys(moved);
        let (moving_keys, staying_keys): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|(hash, _)| split_bit(*hash, depth));
        sibling.meta.state.lock().overflowing = add_all(&sibling, moving_keys);
        point();

        let moving = segment.meta.moving();
        self.directory.publish_split(hash, depth, EntryWord::new(entry.place(), base), sibling_entry);
        point();
        for slot in segment.buckets.iter().flat_map(|bucket| &bucket.slots) {
            if !by_tags || moves(slot.load(Ordering::Relaxed)) {
                slot.store(EMPTY, Ordering::Release);
            }
        }
        segment.meta.set_keys(if by_tags { segment.meta.keys() - state.overflowing - moved } else { 0 });
        if state.overflowing != 0 {
            segment.meta.overflow_entries().for_each(OverflowEntry::clear);
        }
        state.overflowing = add_all(&Segment { base, ..segment }, staying_keys);
        drop(moving);
        state.depth += 1;
        self.segments.fetch_add(1, Ordering::Relaxed);
        self.splits.fetch_add(1, Ordering::Relaxed);
        self.splitting.fetch_sub(1, Ordering::Relaxed);
    }

    /// The keys in the buckets with the hashes of their records.
    fn hashes_of(
        &self,
        segment: &Segment<'_>,
        hash: u64,
        depth: u32,
        rehash: &dyn Fn(u64) -> u64,
    ) -> Vec<(u64, u64)> {
        let references = segment.references_in_buckets();
        let mut keys: Vec<_> = references.map(|reference| (rehash(reference), reference)).collect();
        let read = keys.len() as u64;
        // A record whose hash leads elsewhere is damaged: no lookup finds it, so nothing is lost by dropping
        // it.
        keys.retain(|(of_key, _)| prefix(*of_key, depth) == prefix(hash, depth));
        self.records_read.fetch_add(read, Ordering::Relaxed);
        self.strays.fetch_add(read - keys.len() as u64, Ordering::Relaxed);
        keys
    }
}

/// Adds keys to a segment and returns how many of them went to its overflow chain.
#[must_use]
fn add_all(segment: &Segment<'_>, keys: Vec<(u64, u64)>) -> u32 {
    let mut added = 0;
    let mut overflowing = 0;
    for (hash, reference) in keys {
        if !segment.place(hash, reference) {
            segment.meta.push_overflow(hash, reference);
            overflowing += 1;
        }
        added += 1;
    }
    segment.meta.set_keys(segment.meta.keys() + added);
    overflowing
}
