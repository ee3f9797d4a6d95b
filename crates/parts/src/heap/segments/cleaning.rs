//! What compaction asks of the heap and does to it: which segments may be cleaned, which tombstones may go, and giving zones
//! back. Deciding is `reclaim`'s, moving records the store's.

use super::append::OpenSegment;
use super::log::{LogHeap, Use};
use super::scan::SegmentInfo;
use super::usage::{Candidate, RecordBytes};
use crate::heap::Reference;
use crate::space::{Shortage, ZoneId};
use std::sync::atomic::Ordering;

impl LogHeap {
    /// Registers a segment that recovery found; nobody appends to it.
    pub fn register(&self, info: &SegmentInfo) {
        self.lives.begin(info.zone, info.life_number);
        self.lives.seal(info.zone);
    }

    /// The segments that nobody appends to, for the choice of a victim, and the number from which on others hold tombstones.
    pub fn candidates(&self) -> (Vec<Candidate>, u64) {
        let idle: Vec<ZoneId> = self.idle.lock().iter().map(|segment| segment.zone).collect();
        let now = self.region().now();
        let candidate = |(zone, life), is_sealed: bool| {
            let RecordBytes { written, garbage, tombstones } = self.usage.of_zone(zone);
            // A record that expires may be superseded as well, and counted twice then.
            let expired = self.expiries.expired(zone, now).min(written - garbage.min(written));
            let unused = if is_sealed { self.longest_record().saturating_sub(written) } else { 0 };
            let oldest = self.lives.oldest((zone, life));
            Candidate { zone, life, oldest, written, garbage, expired, tombstones, unused }
        };
        let mut candidates: Vec<_> = self.lives.sealed().map(|sealed| candidate(sealed, true)).collect();
        let mut oldest = u64::MAX;
        for (zone, life) in self.lives.others() {
            if idle.contains(&zone) {
                candidates.push(candidate((zone, life), false));
            } else {
                oldest = oldest.min(self.lives.oldest((zone, life)));
            }
        }
        (candidates, oldest)
    }

    /// Takes a candidate away from whoever might still append to it. `false` if someone does already, or has since it was
    /// one: then it may be worth nothing any more.
    pub fn claim(&self, candidate: &Candidate) -> bool {
        let zone = candidate.zone;
        let left = {
            let mut idle = self.idle.lock();
            let left = idle.iter().position(|segment| segment.zone == zone);
            left.map(|i| idle.swap_remove(i))
        };
        if let Some(mut left) = left {
            self.seal(&mut left);
            self.region().fence();
        }
        self.lives.is_sealed(zone) && self.usage.of_zone(zone).written == candidate.written
    }

    /// The figures of an error: so many bytes are wanted for this use and not to be had.
    pub fn shortage(&self, wanted: u64, purpose: Use) -> Shortage {
        self.space.shortage(wanted, self.leave_free(purpose))
    }

    /// Zones that would be free for puts, beside a record of so many bytes, if every segment held live records alone: no compaction
    /// gives more. `None` if that is not known, since records have expired, or what is dead is not known of all segments.
    pub fn most_zones_for_puts(&self, len: u64) -> Option<u64> {
        let now = self.region().now();
        let mut segments = self.lives.sealed().chain(self.lives.others());
        if self.unsurveyed().is_some() || segments.any(|(zone, _)| self.expiries.expired(zone, now) > 0) {
            return None;
        }
        let RecordBytes { written, garbage, tombstones } = self.usage.total();
        let live = written.saturating_sub(garbage).saturating_sub(tombstones);
        let needed = (live + len).div_ceil(self.longest_record()) + u64::from(self.reserve());
        Some((self.lives.count() as u64 + u64::from(self.space.free_zones())).saturating_sub(needed))
    }

    /// Bytes that clients hold back by keeping segments open: what no longer matters in these, and all tombstones, which may
    /// have to stay for their sake.
    pub fn held_back(&self) -> u64 {
        let open: u64 = self.lives.open().map(|(zone, _)| self.usage.of_zone(zone).garbage).sum();
        open + self.usage.total().tombstones
    }

    /// Takes all segments away from the clients that have them open, and seals them: a client that rests for long would
    /// keep its segment from being cleaned, and younger tombstones from going.
    ///
    /// Clients append only while they hold the lock of a key, and look first whether their segment [is
    /// revoked](LogHeap::is_revoked). `pass` takes and gives back every such lock, so that whoever appended without seeing
    /// the revocation has ended, fences included, when it returns.
    pub fn revoke(&self, pass: impl FnOnce()) {
        let before = {
            let mut idle = self.idle.lock();
            let before = self.draw();
            self.revoked.store(before, Ordering::Release);
            for mut segment in idle.drain(..) {
                self.seal(&mut segment);
            }
            before
        };
        pass();
        let open: Vec<_> = self.lives.open().filter(|(_, life)| *life < before).collect();
        for (zone, life) in open {
            let _ends = self.idle.lock();
            if self.lives.is_open(zone, life) {
                self.seal_found(zone);
            }
        }
        self.region().fence();
    }

    /// Seals a segment of which nobody remembers the end.
    fn seal_found(&self, zone: ZoneId) {
        // SAFETY: its client has not appended since the revocation passed, and nobody frees what is open.
        let Ok(mut scan) = (unsafe { self.scan(zone) }) else { return };
        while let Ok(Some(_)) = scan.advance() {}
        self.seal_at(self.space.zone_offset(zone), scan.info().life, scan.offset());
        self.lives.seal(zone);
    }

    /// Whether a segment is no longer its client's. Asked under the lock of a key, and valid as long as that is held.
    #[inline]
    pub fn is_revoked(&self, segment: &OpenSegment) -> bool {
        segment.life_number < self.revoked.load(Ordering::Acquire)
    }

    /// Lets the segment of a record hold all tombstones that are numbered `from` or above: it may have a record that is older
    /// than these and that a cleaner copied there after they were drawn.
    ///
    /// For cleaners, of a copy that was placed and that the index will not name, with the number of the copy; before its
    /// original can be freed. For recovery, of each record that another one of its key supersedes, with the number of that, the
    /// same or higher; the segment need not be [registered](LogHeap::register) yet. The argument is in the documentation of
    /// `lives.rs`.
    pub fn hold_tombstones(&self, reference: Reference, from: u64) {
        self.lives.hold(reference.zone(self.zone_shift()), from);
    }

    /// Whether a tombstone of this number may go, with the segment `but` that it is in: no other segment holds it, since every
    /// one that was opened before this number was drawn, or in which an older record may stand as a copy, is durably gone.
    /// Asked when it is decided, of all records of `but`, whether the index names their copies, and what lost was
    /// [noted](LogHeap::hold_tombstones): an older record of the key may be among them.
    pub fn outlived(&self, sequence: u64, but: ZoneId) -> bool {
        let _gone_durably = self.ending.lock();
        self.lives.oldest_but(but).is_none_or(|oldest| oldest > sequence)
    }

    /// Takes a segment out of the choice: it is being given up, or cannot be read.
    pub fn withdraw(&self, zone: ZoneId) {
        self.lives.withdraw(zone);
    }

    /// Gives the zone of a cleaned segment back, durably when this returns. Nobody can reach its records any more.
    pub fn free(&self, zone: ZoneId) {
        let _ends = self.ending.lock();
        self.give_up(zone);
        self.forget(zone);
        self.space.release_zone(zone);
    }

    /// The part of [`free`](LogHeap::free) that is in DRAM.
    #[doc(hidden)]
    pub fn forget(&self, zone: ZoneId) {
        self.usage.forget(zone);
        self.expiries.forget(zone);
        if let Some(dead) = &self.dead {
            dead.forget(zone);
        }
        self.lives.end(zone);
    }
}

#[cfg(test)]
mod tests {
    use crate::heap::Reference;
    use crate::heap::segments::test_heap::heap;
    use crate::heap::segments::{Shard, Use};

    /// Many victims are chosen at a time. One that a client filled before its turn came would be copied for nothing.
    #[test]
    fn a_candidate_that_was_written_to_since_is_none() {
        let heap = heap();
        let write = |len| {
            let mut segment = None;
            heap.make_room(&mut segment, len, None, Use::Put).expect("room");
            let segment = segment.expect("a segment was made");
            heap.note_written(Shard::default(), segment.zone, len);
            segment
        };
        heap.leave(write(1000));
        let [stale] = heap.candidates().0[..] else { panic!("one was left") };
        let open = write(1000);
        assert_eq!((open.zone, heap.claim(&stale)), (stale.zone, false), "someone writes to it");
        heap.leave(open);
        assert!(!heap.claim(&stale));
        let [fresh] = heap.candidates().0[..] else { panic!("it was sealed") };
        assert!(heap.claim(&fresh));
    }

    /// On a full disk the others may get none.
    #[test]
    fn of_segments_that_were_left_one_with_storage_is_taken_first() {
        let heap = heap();
        let take = || {
            let mut segment = None;
            heap.make_room(&mut segment, 100, None, Use::Put).expect("room");
            segment.expect("a segment was made")
        };
        let (mut without, with) = (take(), take());
        without.limit = without.next;
        let zone = with.zone;
        heap.leave(without);
        heap.leave(with);
        assert_eq!(take().zone, zone);
    }

    /// A copy that lost against a deletion is older than its segment. The tombstone has to outlive it.
    #[test]
    fn a_copy_that_lost_holds_the_tombstone_that_is_older_than_its_segment() {
        let heap = heap();
        let open = || {
            let mut segment = None;
            heap.make_room(&mut segment, 100, None, Use::Put).expect("room");
            segment.expect("a segment was made")
        };
        let (victim, copied, tombstone) = (open(), heap.draw(), heap.draw());
        let (target, other) = (open(), open());
        let copy = Reference::new(target.zone, 64, heap.zone_shift());
        assert!(!heap.outlived(tombstone, other.zone), "its original is there");
        heap.hold_tombstones(copy, copied);
        heap.free(victim.zone);
        assert!(!heap.outlived(tombstone, other.zone));
        assert!(heap.outlived(tombstone, target.zone), "both go");
        assert!(heap.outlived(copied - 1, other.zone), "that was drawn before");
        // While someone may append to it, it holds them against the choice of a victim as well.
        assert_eq!(heap.candidates(), (vec![], copied));
        let (zone, life) = (target.zone, target.life_number);
        heap.leave(target);
        heap.leave(other);
        heap.seal_idle();
        let states = heap.states().expect("all are sealed");
        let oldest = heap.candidates().0.iter().map(|candidate| candidate.oldest).collect::<Vec<_>>();
        assert_eq!(oldest, states.iter().map(|state| state.oldest).collect::<Vec<_>>());
        heap.free(zone);
        assert!(heap.outlived(tombstone, victim.zone));
        // The next run of a pool that was closed.
        let state = states.into_iter().find(|state| state.zone == zone).expect("it was one of them");
        assert_eq!((state.life, state.oldest), (life, copied));
        heap.restore(&state);
        assert!(!heap.outlived(tombstone, victim.zone));
    }
}
