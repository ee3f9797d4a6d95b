//! Which zones are segments, how old they are, and whether they may be cleaned: in DRAM, rebuilt by recovery.
//!
//! A segment is registered before its first record and forgotten after its zone is durably free. So whoever has read a
//! record knows that its segment is registered, and the lowest life of all tells which tombstones may go.

use crate::space::ZoneId;
use std::sync::atomic::{AtomicU64, Ordering};

/// A zone that is no segment. No life comes near it.
const NONE: u64 = u64::MAX;
/// Set in the word of a segment that nobody appends to any more.
const SEALED: u64 = 1 << 63;
/// Set in the word of a sealed segment that is not to be cleaned: it was, or it cannot be read.
const WITHDRAWN: u64 = 1 << 62;

/// See the module's documentation.
pub(super) struct Lives {
    words: Box<[AtomicU64]>,
}

impl Lives {
    pub(super) fn new(zones: u32) -> Lives {
        Lives { words: (0..zones).map(|_| AtomicU64::new(NONE)).collect() }
    }

    fn word(&self, zone: ZoneId) -> &AtomicU64 {
        &self.words[zone.0 as usize]
    }

    /// A segment begins, open.
    pub(super) fn begin(&self, zone: ZoneId, life: u64) {
        self.word(zone).store(life, Ordering::Release);
    }

    /// Nobody appends to it any more.
    pub(super) fn seal(&self, zone: ZoneId) {
        self.word(zone).fetch_or(SEALED, Ordering::Release);
    }

    /// It is not to be cleaned, although nobody appends to it.
    pub(super) fn withdraw(&self, zone: ZoneId) {
        self.word(zone).fetch_or(WITHDRAWN, Ordering::Release);
    }

    /// Whether nobody appends to it any more and it may be cleaned.
    pub(super) fn is_sealed(&self, zone: ZoneId) -> bool {
        let word = self.word(zone).load(Ordering::Acquire);
        word != NONE && is_candidate(word)
    }

    /// Whether it is the segment of this life and nobody has sealed it.
    pub(super) fn is_open(&self, zone: ZoneId, life: u64) -> bool {
        self.word(zone).load(Ordering::Acquire) == life
    }

    /// The zone is no segment any more.
    pub(super) fn end(&self, zone: ZoneId) {
        self.word(zone).store(NONE, Ordering::Release);
    }

    /// The sealed segments with their lives, but for those that are not to be cleaned.
    pub(super) fn sealed(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.all().filter(|(_, word)| is_candidate(*word)).map(life_of)
    }

    /// All others.
    pub(super) fn others(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.all().filter(|(_, word)| !is_candidate(*word)).map(life_of)
    }

    /// The segments that someone may append to.
    pub(super) fn open(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.all().filter(|(_, word)| word & SEALED == 0)
    }

    /// The lowest life of all segments but one.
    pub(super) fn oldest_but(&self, but: ZoneId) -> Option<u64> {
        self.all().filter(|(zone, _)| *zone != but).map(|segment| life_of(segment).1).min()
    }

    /// How many segments there are.
    pub(super) fn count(&self) -> usize {
        self.all().count()
    }

    fn all(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        let numbered = self.words.iter().enumerate();
        numbered
            .map(|(i, word)| (ZoneId(i as u32), word.load(Ordering::Acquire)))
            .filter(|(_, word)| *word != NONE)
    }
}

fn is_candidate(word: u64) -> bool {
    word & (SEALED | WITHDRAWN) == SEALED
}

fn life_of((zone, word): (ZoneId, u64)) -> (ZoneId, u64) {
    (zone, word & !(SEALED | WITHDRAWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first life of a pool is zero; taken for "no segment", it let tombstones go that had to outlive its records.
    #[test]
    fn the_first_life_is_a_life() {
        let lives = Lives::new(4);
        assert_eq!(lives.oldest_but(ZoneId(0)), None);
        lives.begin(ZoneId(2), 0);
        lives.begin(ZoneId(1), 7);
        assert_eq!(lives.oldest_but(ZoneId(1)), Some(0));
        assert_eq!(lives.oldest_but(ZoneId(2)), Some(7));
        assert_eq!(lives.sealed().count(), 0);
        lives.seal(ZoneId(2));
        assert_eq!(lives.sealed().collect::<Vec<_>>(), [(ZoneId(2), 0)]);
        lives.withdraw(ZoneId(2));
        assert_eq!((lives.sealed().count(), lives.oldest_but(ZoneId(1))), (0, Some(0)));
        lives.end(ZoneId(2));
        assert_eq!(lives.oldest_but(ZoneId(1)), None);
    }
}
