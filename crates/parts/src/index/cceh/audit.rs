//! Proving an index in PM: for `check`, and for tests.

use super::entry::{BUCKET, EMPTY, ENTRIES, ENTRY, VALUE, home};
use super::memory::NodeMemory;
use super::segment::damaged;
use super::table::CcehIndex;
use crate::index::directory::{following, prefix};
use crate::space::SpaceError;

impl<M: NodeMemory> CcehIndex<M> {
    /// Walks over all segments, and proves that a run has made every entry. An unused entry has the mark, so
    /// zeros hold none. An entry in use, also one that a split has left behind, stands where its hash may
    /// stand, and `is_value` says yes to its value. Returns the keys. Nobody writes meanwhile, and nothing is
    /// changed. (That the segments divide all hashes among them was proved when the index was opened.)
    ///
    /// # Errors
    /// [`SpaceError::Damaged`] where it is not so.
    pub fn audit(&self, is_value: impl Fn(u64) -> bool) -> Result<u64, SpaceError> {
        let (mut keys, mut next) = (0, Some(0));
        while let Some(start) = next {
            let entry = self.directory.entry(start);
            let places =
                (0..=self.bucket_mask).flat_map(|bucket| (0..ENTRIES).map(move |slot| (bucket, slot)));
            for (bucket, slot) in places {
                let place = entry.place() + bucket * BUCKET + slot * ENTRY;
                let (word, value) = (self.memory.load(place), self.memory.load(place + VALUE));
                let distance = bucket.wrapping_sub(home(word, self.bucket_mask)) & self.bucket_mask;
                let is_sound = match value {
                    EMPTY => !self.is_blank(place),
                    _ => distance < self.probe && is_value(value),
                };
                if !is_sound {
                    return damaged(place);
                }
                let is_own = prefix(word, entry.number()) == prefix(start, entry.number());
                keys += u64::from(value != EMPTY && is_own);
            }
            next = following(start, entry.number());
        }
        Ok(keys)
    }

    /// The place of an entry that stands where this hash may stand, has this value, and differs from the hash
    /// in one bit, as after a flip of that bit. If it is one of those by which segments are told apart, the
    /// entry looks like one that a split has left behind, and no check would miss it.
    pub fn nearly_names(&self, hash: u64, value: u64) -> Option<u64> {
        let segment = self.directory.entry(hash).place();
        let mut places =
            self.window(segment, hash).flat_map(|bucket| (0..ENTRIES).map(move |slot| bucket + slot * ENTRY));
        let differs = |place| (self.memory.load(place) ^ hash) & !M::MARK;
        places.find(|place| self.memory.load(*place + VALUE) == value && differs(*place).count_ones() == 1)
    }
}
