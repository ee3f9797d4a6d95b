//! Which zones are segments, how old they are, and whether they may be cleaned: in DRAM, rebuilt by recovery.
//!
//! A segment is registered before its first record and forgotten after its zone is durably free. So whoever has read a
//! record knows that its segment is registered, and the numbers here tell which tombstones may go. A segment *holds* the
//! tombstones that are numbered from its life on, or from a lower number that was noted for it; one that no segment holds may go.
//!
//! # Why no tombstone goes early
//!
//! It may go when no older record of its key can be anywhere (rule 4.6 of the design). Let its number be `t`. A record that
//! drew its number before `t` was drawn was written to a segment that had been opened before: its life is below `t`, so it
//! holds `t`. There are copies as well, which keep the numbers of their originals. A cleaner copies what it takes for live; it
//! locks no key meanwhile and makes no copy void (PACMAN section 3.3), so a copy that is older than `t` may come to stand in
//! a segment that was opened after `t` was drawn.
//! - *It loses*, if the index names something else by the time at which it is to name the copy. The cleaner then notes the
//!   number of the copy for the copy's segment, which holds `t` from then on.
//! - *It wins* under the lock of the key, under which writers draw their numbers and publish. Whatever was drawn before had been
//!   published, so the copy would have lost; so `t` is drawn after, when the copy's segment had been opened. A cleaner that
//!   takes no lock, or a writer that publishes after it let go of it, cannot count on this: there, whoever publishes `t` notes it
//!   for the segment of the record that it supersedes, before it unpins its guard.
//! - *It is not decided yet:* then its original is in the victim still, which holds `t` for one of these reasons (it may be a
//!   copy too), and is not freed before the last of its copies is decided. But who asks for a tombstone of a victim leaves that
//!   victim out, since both would go together. So it has to ask after the last of the victim's copies is decided.
//! - *A crash forgets what was noted:* recovery finds all records, and notes for each that another one supersedes, in
//!   its segment, the number of the other. Of two with one number, an original and its copy, one supersedes the other.
//!   A clean close writes what was noted into the checkpoint.
//!
//! What was noted goes with the segment, and that is among the first to be cleaned when tombstones are many.

use crate::space::ZoneId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A zone that is no segment. No life comes near it.
const NONE: u64 = u64::MAX;
/// Set in the word of a segment that nobody appends to any more.
const SEALED: u64 = 1 << 63;
/// Set in the word of a sealed segment that is not to be cleaned: it was, or it cannot be read.
const WITHDRAWN: u64 = 1 << 62;
/// Set in the word of a sealed segment that is not to be cleaned before somebody has found out what is dead in it, and, if a crash
/// has left it without an end mark, where it ends.
const UNSURVEYED: u64 = 1 << 61;
const FLAGS: u64 = SEALED | WITHDRAWN | UNSURVEYED;

/// See the module's documentation.
pub(super) struct Lives {
    words: Box<[AtomicU64]>,
    /// From which number on a segment holds tombstones, if that is below its life.
    holds: Box<[AtomicU64]>,
    /// Segments that are marked so.
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

    /// A segment begins, open.
    pub(super) fn begin(&self, zone: ZoneId, life: u64) {
        self.word(zone).store(life, Ordering::Release);
    }

    /// Notes that a segment, which need not have begun, holds tombstones from this number on.
    pub(super) fn hold(&self, zone: ZoneId, from: u64) {
        // Most are above its life, which says the same; then nothing is locked.
        let (_, life) = life_of((zone, self.word(zone).load(Ordering::Acquire)));
        if from < life {
            self.holds[zone.0 as usize].fetch_min(from, Ordering::AcqRel);
        }
    }

    /// From which number on a segment of this life holds tombstones.
    pub(super) fn oldest(&self, (zone, life): (ZoneId, u64)) -> u64 {
        life.min(self.holds[zone.0 as usize].load(Ordering::Acquire))
    }

    /// Nobody appends to it any more.
    pub(super) fn seal(&self, zone: ZoneId) {
        self.word(zone).fetch_or(SEALED, Ordering::Release);
    }

    /// It is not to be cleaned, although nobody appends to it.
    pub(super) fn withdraw(&self, zone: ZoneId) {
        self.word(zone).fetch_or(WITHDRAWN, Ordering::Release);
    }

    /// A segment begins that nobody appends to, and of which it is not known yet what is dead in it.
    pub(super) fn begin_unsurveyed(&self, zone: ZoneId, life: u64) {
        self.word(zone).store(life | SEALED | UNSURVEYED, Ordering::Release);
        self.unsurveyed.fetch_add(1, Ordering::AcqRel);
    }

    /// Now it is known, or never will be.
    pub(super) fn note_surveyed(&self, zone: ZoneId) {
        if self.word(zone).fetch_and(!UNSURVEYED, Ordering::AcqRel) & UNSURVEYED != 0 {
            self.unsurveyed.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// A segment of which that is not known.
    pub(super) fn unsurveyed(&self) -> Option<ZoneId> {
        if self.unsurveyed.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.all().find(|(_, word)| word & UNSURVEYED != 0).map(|(zone, _)| zone)
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
        self.holds[zone.0 as usize].store(NONE, Ordering::Release);
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

    /// From which number on any segment but one holds tombstones.
    pub(super) fn oldest_but(&self, but: ZoneId) -> Option<u64> {
        self.all().filter(|(zone, _)| *zone != but).map(|segment| self.oldest(life_of(segment))).min()
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
    word & FLAGS == SEALED
}

fn life_of((zone, word): (ZoneId, u64)) -> (ZoneId, u64) {
    (zone, word & !FLAGS)
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
        // One that cannot be read.
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
