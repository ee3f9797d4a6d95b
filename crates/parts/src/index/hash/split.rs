//! Growth: a segment that is full gives half of its keys to a sibling, while all others go on.

use super::probe::SLOTS;
use super::segment::{EntryWord, Segment, State};
use super::slot::{EMPTY, TAG_BITS, tag_of_word};
use super::table::HashIndex;
use crate::index::directory::{deepest, prefix, split_bit};
use crate::sync::point;
use std::sync::atomic::Ordering;

/// Tag bits that must be left to tell the keys of a segment apart; at eight, one lookup in twenty or so tests a
/// key that is not the one.
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
    pub(super) fn split(&self, hash: u64, entry: EntryWord, state: &mut State, rehash: &dyn Fn(u64) -> u64) {
        self.splitting.fetch_add(1, Ordering::Relaxed);
        let segment = self.slabs.segment(entry);
        if segment.base + WINDOW_LAG > state.depth {
            self.split_by_tags(hash, entry, &segment, state);
        } else {
            self.split_by_hashes(hash, entry, &segment, state, rehash);
        }
        state.depth += 1;
        self.segments.fetch_add(1, Ordering::Relaxed);
        self.splits.fetch_add(1, Ordering::Relaxed);
        self.splitting.fetch_sub(1, Ordering::Relaxed);
    }

    /// The tags hold the bit that decides: words are copied to the same places of the sibling.
    fn split_by_tags(&self, hash: u64, entry: EntryWord, segment: &Segment<'_>, state: &mut State) {
        let depth = state.depth;
        let bit = TAG_BITS - 1 - (depth - segment.base);
        let moves = |word: u64| (tag_of_word(word) >> bit) & 1 != 0;
        let sibling_entry = self.slabs.allocate(depth + 1, segment.base);
        let sibling = self.slabs.segment(sibling_entry);
        let mut moved = 0;
        for (from, to) in segment.buckets.iter().zip(sibling.buckets) {
            for slot in 0..SLOTS {
                let word = from.load(slot);
                if moves(word) {
                    to.slots[slot].store(word, Ordering::Relaxed);
                    moved += 1;
                }
            }
        }
        sibling.meta.set_keys(moved);
        let overflowing = if state.overflowing == 0 { Vec::new() } else { hashes_in_overflow(segment) };
        let moving_keys = overflowing.iter().copied().filter(|&(hash, _)| split_bit(hash, depth));
        sibling.meta.state.lock().overflowing = add_all(&sibling, moving_keys);
        point();

        let moving = segment.meta.moving();
        self.directory.publish_split(hash, depth, entry, sibling_entry);
        point();
        for bucket in segment.buckets {
            for slot in &bucket.slots {
                if moves(slot.load(Ordering::Relaxed)) {
                    slot.store(EMPTY, Ordering::Release);
                }
            }
        }
        segment.meta.set_keys(segment.meta.keys() - state.overflowing - moved);
        clear_overflow(segment, state);
        let staying = overflowing.into_iter().filter(|&(hash, _)| !split_bit(hash, depth));
        state.overflowing = add_all(segment, staying);
        drop(moving);
    }

    /// The tags have run out: the hashes come from the records, and both halves get a new window.
    fn split_by_hashes(
        &self,
        hash: u64,
        entry: EntryWord,
        segment: &Segment<'_>,
        state: &mut State,
        rehash: &dyn Fn(u64) -> u64,
    ) {
        let depth = state.depth;
        let references = segment.references_in_buckets();
        let read = references.len() as u64;
        let mut keys: Vec<(u64, u64)> =
            references.into_iter().map(|reference| (rehash(reference), reference)).collect();
        self.records_read.fetch_add(read, Ordering::Relaxed);
        // A record whose hash leads elsewhere is damaged: no lookup finds it any more, so nothing is lost by letting it go.
        keys.retain(|&(of_key, _)| prefix(of_key, depth) == prefix(hash, depth));
        self.strays.fetch_add(read - keys.len() as u64, Ordering::Relaxed);
        keys.extend(hashes_in_overflow(segment));
        let base = depth + 1;
        let sibling_entry = self.slabs.allocate(depth + 1, base);
        let sibling = self.slabs.segment(sibling_entry);
        let moving_keys = keys.iter().copied().filter(|&(hash, _)| split_bit(hash, depth));
        sibling.meta.state.lock().overflowing = add_all(&sibling, moving_keys);
        point();

        let moving = segment.meta.moving();
        self.directory.publish_split(hash, depth, entry.with_base(base), sibling_entry);
        point();
        for bucket in segment.buckets {
            for slot in &bucket.slots {
                slot.store(EMPTY, Ordering::Release);
            }
        }
        clear_overflow(segment, state);
        segment.meta.set_keys(0);
        let rebased = Segment { base, ..*segment };
        let staying = keys.into_iter().filter(|&(hash, _)| !split_bit(hash, depth));
        state.overflowing = add_all(&rebased, staying);
        drop(moving);
    }
}

fn hashes_in_overflow(segment: &Segment<'_>) -> Vec<(u64, u64)> {
    segment.meta.overflow_entries().filter_map(|entry| entry.load()).collect()
}

fn clear_overflow(segment: &Segment<'_>, state: &mut State) {
    if state.overflowing != 0 {
        segment.meta.overflow_entries().for_each(|entry| entry.clear());
        state.overflowing = 0;
    }
}

/// Adds keys to a segment and returns how many of them went to its overflow chain.
#[must_use]
fn add_all(segment: &Segment<'_>, keys: impl Iterator<Item = (u64, u64)>) -> u32 {
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
