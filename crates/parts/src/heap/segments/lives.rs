//! Which zones are segments, how old they are, and whether they may be cleaned: in DRAM, rebuilt by recovery.
//!
//! A segment is registered before its first record and removed after its zone is durably free. So the segment
//! of any record that a thread has read is registered, and the numbers here decide which tombstones may be
//! dropped. A segment *holds* the tombstones that are numbered from its life on, or from a lower number that
//! was noted for it. A tombstone that no segment holds may be dropped.
//!
//! # Why no tombstone is dropped too early
//!
//! A tombstone may be dropped when no older record of its key can be anywhere (rule 4.6 of the design). Let
//! its number be `t`. A record whose number was drawn before `t` is in a segment that was opened before `t`
//! was drawn: the segment's life is below `t`, so it holds `t`. Copies keep the numbers of their originals. A
//! cleaner copies live records without locking keys, and makes no copy void (PACMAN section 3.3). So a copy
//! that is older than `t` may come to stand in a segment that was opened after `t` was drawn.
//! - *The copy loses* if the index names another record when it should be repointed to the copy. The cleaner
//!   then notes the number of the copy for the copy's segment, which holds `t` from then on.
//! - *The copy wins* under the lock of the key, under which writers draw and publish. Numbers drawn before
//!   had been published, so the copy would have lost. Hence `t` is drawn later, when the copy's segment was
//!   open. This does not hold for a cleaner that takes no lock, nor for a writer that publishes after it has
//!   released the lock. There, the thread that publishes `t` notes it for the segment of the record that it
//!   supersedes, before it unpins.
//! - *It is not decided yet.* Then the original is still in the victim, which holds `t` for one of these
//!   reasons (the original may be a copy too), and is freed only after the last of its copies is decided. A
//!   cleaner that asks about a tombstone of a victim leaves that victim out, since both are freed together.
//!   So it must ask after the last of the victim's copies is decided.
//! - *A crash loses the notes.* Recovery finds all records. For each one that another record supersedes, it
//!   notes the number of the other for its segment. Of an original and its copy, which have the same number,
//!   one supersedes the other. A clean close writes the notes into the checkpoint.
//!
//! Notes end with their segment, which is among the first to be cleaned when tombstones are many.

use crate::space::ZoneId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The word of a zone that is no segment. No life comes near it.
const NONE: u64 = u64::MAX;
/// Set in the word of a segment that is sealed: nobody appends to it.
const SEALED: u64 = 1 << 63;
/// Set in the word of a sealed segment that must not be cleaned: it has been, or it cannot be read.
const WITHDRAWN: u64 = 1 << 62;
/// Set in the word of a sealed segment that must not be cleaned before a survey has found its dead records,
/// and its end, if a crash has left it without an end mark.
const UNSURVEYED: u64 = 1 << 61;
const FLAGS: u64 = SEALED | WITHDRAWN | UNSURVEYED;

pub(super) struct Lives {
    words: Box<[AtomicU64]>,
    /// The number from which on a segment holds tombstones, if that is below its life.
    holds: Box<[AtomicU64]>,
    /// Segments marked [`UNSURVEYED`].
    unsurveyed: AtomicU32,
}

impl Lives {
    pub(super) fn new(zones: u32) -> Lives {
        let none = || (0..zones).map(|_| AtomicU64::new(NONE)).collect();
        Lives { words: none(), holds: none(), unsurveyed: AtomicU32::new(0) }
    }

    fn word(&self, zone: ZoneId) -> &AtomicU64 {
        &self.words[zone.0 as usize]
    }

    /// Registers an open segment.
    pub(super) fn begin(&self, zone: ZoneId, life: u64) {
        self.word(zone).store(life, Ordering::Release);
    }

    /// Notes that a segment, which need not be registered, holds tombstones from this number on.
    pub(super) fn hold(&self, zone: ZoneId, from: u64) {
        // Most numbers are above its life, which implies them; then nothing is locked.
        let (_, life) = life_of((zone, self.word(zone).load(Ordering::Acquire)));
        if from < life {
            self.holds[zone.0 as usize].fetch_min(from, Ordering::AcqRel);
        }
    }

    /// The life number of a segment.
    pub(super) fn life(&self, zone: ZoneId) -> u64 {
        life_of((zone, self.word(zone).load(Ordering::Acquire))).1
    }

    /// The number from which on a segment of this life holds tombstones.
    pub(super) fn oldest(&self, (zone, life): (ZoneId, u64)) -> u64 {
        life.min(self.holds[zone.0 as usize].load(Ordering::Acquire))
    }

    pub(super) fn seal(&self, zone: ZoneId) {
        self.word(zone).fetch_or(SEALED, Ordering::Release);
    }

    /// Excludes a sealed segment from cleaning.
    pub(super) fn withdraw(&self, zone: ZoneId) {
        self.word(zone).fetch_or(WITHDRAWN, Ordering::Release);
    }

    /// Excludes a sealed segment of this life from the choices of others; `false` if it is excluded already,
    /// or gone.
    pub(super) fn take(&self, zone: ZoneId, life: u64) -> bool {
        let (free, taken) = (life | SEALED, life | SEALED | WITHDRAWN);
        self.word(zone).compare_exchange(free, taken, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Takes that back.
    pub(super) fn leave(&self, zone: ZoneId) {
        self.word(zone).fetch_and(!WITHDRAWN, Ordering::Release);
    }

    /// Registers a segment that nobody appends to and that is not surveyed.
    pub(super) fn begin_unsurveyed(&self, zone: ZoneId, life: u64) {
        self.word(zone).store(life | SEALED | UNSURVEYED, Ordering::Release);
        self.unsurveyed.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the segment is surveyed, or never will be.
    pub(super) fn note_surveyed(&self, zone: ZoneId) {
        if self.word(zone).fetch_and(!UNSURVEYED, Ordering::AcqRel) & UNSURVEYED != 0 {
            self.unsurveyed.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Any segment that is not surveyed.
    pub(super) fn unsurveyed(&self) -> Option<ZoneId> {
        if self.unsurveyed.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.all().find(|(_, word)| word & UNSURVEYED != 0).map(|(zone, _)| zone)
    }

    /// Whether the segment is sealed and may be cleaned.
    pub(super) fn is_sealed(&self, zone: ZoneId) -> bool {
        let word = self.word(zone).load(Ordering::Acquire);
        word != NONE && is_candidate(word)
    }

    /// Whether this is the segment of this life, and open.
    pub(super) fn is_open(&self, zone: ZoneId, life: u64) -> bool {
        self.word(zone).load(Ordering::Acquire) == life
    }

    pub(super) fn end(&self, zone: ZoneId) {
        self.word(zone).store(NONE, Ordering::Release);
        self.holds[zone.0 as usize].store(NONE, Ordering::Release);
    }

    /// The sealed segments that may be cleaned, with their lives.
    pub(super) fn sealed(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.all().filter(|(_, word)| is_candidate(*word)).map(life_of)
    }

    /// All other segments.
    pub(super) fn others(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.all().filter(|(_, word)| !is_candidate(*word)).map(life_of)
    }

    /// The segments that someone may append to.
    pub(super) fn open(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.all().filter(|(_, word)| word & SEALED == 0)
    }

    /// The number from which on any segment except one holds tombstones.
    pub(super) fn oldest_but(&self, but: ZoneId) -> Option<u64> {
        self.all().filter(|(zone, _)| *zone != but).map(|segment| self.oldest(life_of(segment))).min()
    }

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
    word & FLAGS == SEALED
}

fn life_of((zone, word): (ZoneId, u64)) -> (ZoneId, u64) {
    (zone, word & !FLAGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first life of a pool is zero. A release that took it for "no segment" dropped tombstones too
    /// early.
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

    /// The zone may be a segment of another life since a cleaner looked.
    #[test]
    fn a_segment_is_taken_once_and_in_the_life_that_was_meant() {
        let (lives, zone) = (Lives::new(2), ZoneId(1));
        lives.begin(zone, 7);
        assert!(!lives.take(zone, 7), "someone appends to it");
        lives.seal(zone);
        assert!(!lives.take(zone, 5));
        assert!(lives.take(zone, 7) && !lives.take(zone, 7));
        lives.leave(zone);
        assert!(lives.take(zone, 7));
    }

    #[test]
    fn what_nobody_has_surveyed_is_no_candidate() {
        let lives = Lives::new(4);
        assert_eq!(lives.unsurveyed(), None);
        lives.begin_unsurveyed(ZoneId(1), 5);
        lives.begin_unsurveyed(ZoneId(3), 9);
        assert_eq!((lives.sealed().count(), lives.open().count()), (0, 0));
        assert_eq!(lives.others().collect::<Vec<_>>(), [(ZoneId(1), 5), (ZoneId(3), 9)]);
        assert_eq!(lives.unsurveyed(), Some(ZoneId(1)));
        lives.note_surveyed(ZoneId(1));
        lives.note_surveyed(ZoneId(1));
        assert_eq!((lives.sealed().next(), lives.unsurveyed()), (Some((ZoneId(1), 5)), Some(ZoneId(3))));
        // A segment that cannot be read.
        lives.withdraw(ZoneId(3));
        lives.note_surveyed(ZoneId(3));
        assert_eq!((lives.sealed().count(), lives.unsurveyed()), (1, None));
    }

    #[test]
    fn what_is_noted_counts_until_the_segment_ends_and_is_not_its_life() {
        let (lives, zone) = (Lives::new(4), ZoneId(2));
        // Recovery notes before it registers.
        lives.hold(zone, 30);
        lives.begin(zone, 100);
        lives.begin(ZoneId(1), 50);
        lives.hold(zone, 20);
        lives.hold(zone, 40);
        assert_eq!((lives.oldest_but(ZoneId(0)), lives.oldest_but(zone)), (Some(20), Some(50)));
        assert_eq!((lives.oldest((zone, 100)), lives.oldest((ZoneId(1), 50))), (20, 50));
        assert!(lives.is_open(zone, 100));
        lives.seal(zone);
        assert_eq!(lives.sealed().collect::<Vec<_>>(), [(zone, 100)]);
        lives.hold(ZoneId(1), 60);
        assert_eq!(lives.oldest((ZoneId(1), 50)), 50, "it holds that already");
        lives.end(zone);
        assert_eq!(lives.oldest_but(ZoneId(0)), Some(50));
        lives.begin(zone, 200);
        assert_eq!(lives.oldest_but(ZoneId(1)), Some(200));
    }
}
