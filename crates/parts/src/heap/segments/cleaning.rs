//! The heap's side of compaction: which segments may be cleaned, which tombstones may be dropped, and freeing
//! zones. `reclaim` chooses victims, and the store moves records.

use super::append::OpenSegment;
use super::log::{LogHeap, Use};
use super::scan::SegmentInfo;
use super::usage::{Candidate, RecordBytes};
use crate::heap::Reference;
use crate::space::{Shortage, Space, ZoneId};
use std::sync::atomic::Ordering;

impl Use {
    /// Whether records move.
    pub(super) fn moves(self) -> bool {
        matches!(self, Use::Move | Use::MoveBeside)
    }
}

impl LogHeap {
    /// Registers a sealed segment that recovery found.
    pub fn register(&self, info: &SegmentInfo) {
        self.lives.begin(info.zone, info.life_number);
        self.lives.seal(info.zone);
    }

    /// The segments that no client appends to, for the choice of a victim, and the number from which on all
    /// others hold tombstones.
    pub fn candidates(&self) -> (Vec<Candidate>, u64) {
        let idle: Vec<ZoneId> = self.idle.lock().iter().map(|segment| segment.zone).collect();
        let now = self.space.expiry_time();
        let candidate = |(zone, life), is_sealed: bool| {
            let RecordBytes { written, garbage, tombstones } = self.usage.of_zone(zone);
            // A record that expires may be superseded as well, and would then be counted twice.
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

    /// Takes a candidate away from clients that could append to it. `false` if a client has it open or has
    /// written to it meanwhile: then cleaning it may no longer be worthwhile.
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

    /// The figures of an error: so many bytes are wanted for this use, and not available.
    pub fn shortage(&self, wanted: u64, purpose: Use) -> Shortage {
        self.space.shortage(wanted, self.leave_free(purpose))
    }

    /// The zones that would be free for puts, beside a record of so many bytes, if every segment held live
    /// records alone. No compaction frees more. `None` if that is unknown, since records have expired, or a
    /// segment is not surveyed.
    pub fn most_zones_for_puts(&self, len: u64) -> Option<u64> {
        let now = self.space.expiry_time();
        let mut segments = self.lives.sealed().chain(self.lives.others());
        if self.unsurveyed().is_some() || segments.any(|(zone, _)| self.expiries.expired(zone, now) > 0) {
            return None;
        }
        let RecordBytes { written, garbage, tombstones } = self.usage.total();
        let live = written.saturating_sub(garbage).saturating_sub(tombstones);
        let needed = (live + len).div_ceil(self.longest_record()) + u64::from(self.reserve());
        Some((self.lives.count() as u64 + u64::from(self.space.free_zones())).saturating_sub(needed))
    }

    /// Bytes that clients hold back by keeping segments open: the garbage in these, and all tombstones, which
    /// may have to stay for their sake.
    pub fn held_back(&self) -> u64 {
        let open: u64 = self.lives.open().map(|(zone, _)| self.usage.of_zone(zone).garbage).sum();
        open + self.usage.total().tombstones
    }

    /// As [`turnover`](LogHeap::turnover), without zones for records that move: these leave more room behind.
    pub fn takes(&self) -> u64 {
        self.takes.load(Ordering::Acquire)
    }

    /// Counts a zone that was taken for this use.
    pub(in crate::heap) fn count_take(&self, purpose: Use) {
        self.takes.fetch_add(u64::from(!purpose.moves()), Ordering::AcqRel);
    }

    /// Segments that may be appended to.
    pub fn open_segments(&self) -> u64 {
        self.lives.open().count() as u64
    }

    /// Takes open segments away from all clients, and seals them. A client that rests for long would keep its
    /// segment from being cleaned, and younger tombstones from being dropped.
    ///
    /// Clients append only while they hold the lock of a key, and first check whether their segment [is
    /// revoked](LogHeap::is_revoked). `pass` acquires and releases every such lock. So when it returns, every
    /// client that appended without seeing the revocation has finished, fences included.
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

    /// Seals a segment whose end no thread remembers.
    fn seal_found(&self, zone: ZoneId) {
        // SAFETY: its client has not appended since the revocation passed, and nobody frees an open segment.
        let Ok(mut scan) = (unsafe { self.scan(zone) }) else { return };
        while let Ok(Some(_)) = scan.advance() {}
        self.seal_at(self.space.zone_offset(zone), scan.info().life, scan.offset());
        self.lives.seal(zone);
    }

    /// Whether a segment no longer belongs to its client. Valid while the lock of a key is held, from before
    /// the call on.
    #[inline]
    pub fn is_revoked(&self, segment: &OpenSegment) -> bool {
        segment.life_number < self.revoked.load(Ordering::Acquire)
    }

    /// Makes the segment of a record hold all tombstones numbered `from` or above. A cleaner may have copied
    /// a record there that is older than these tombstones, after they were drawn.
    ///
    /// A cleaner calls this for a copy that it placed and the index will not name, with the number of the
    /// copy, before the original can be freed. Recovery calls it for each record that another record of its
    /// key supersedes, with that record's number, which is the same or higher; the segment need not be
    /// [registered](LogHeap::register) yet. `lives.rs` has the argument.
    pub fn hold_tombstones(&self, reference: Reference, from: u64) {
        self.lives.hold(reference.zone(self.zone_shift()), from);
    }

    /// Whether a tombstone of this number, in the segment `but`, may be dropped: no other segment holds it.
    /// Every segment that was opened before the number was drawn, or that may have an older record as a copy,
    /// is durably freed then. Ask only when it is decided for all records of `but` whether the index names
    /// their copies, and the losers are [noted](LogHeap::hold_tombstones): an older record of the key may be
    /// among them.
    pub fn outlived(&self, sequence: u64, but: ZoneId) -> bool {
        let _gone_durably = self.ending.lock();
        self.lives.oldest_but(but).is_none_or(|oldest| oldest > sequence)
    }

    /// Removes a segment from the candidates: it is being freed, or cannot be read.
    pub fn withdraw(&self, zone: ZoneId) {
        self.lives.withdraw(zone);
    }

    /// Frees the zone of a cleaned segment, durably when this returns. No thread can reach its records any
    /// more.
    pub fn free(&self, zone: ZoneId) {
        self.free_and(zone, |space| space.release_zone(zone));
    }

    /// As [`free`](LogHeap::free), if no thread reads even the header of the zone from now on.
    pub fn free_unread(&self, zone: ZoneId) {
        // A search for storage is long, so `ending` is free by then.
        if self.free_and(zone, |space| space.release_unread_zone(zone)) {
            self.space.renew_storage(1);
        }
    }

    fn free_and<R>(&self, zone: ZoneId, release: impl FnOnce(&Space) -> R) -> R {
        let _ends = self.ending.lock();
        self.give_up(zone);
        self.forget(zone);
        release(&self.space)
    }

    /// The part of [`free`](LogHeap::free) that is in DRAM.
    #[doc(hidden)]
    pub fn forget(&self, zone: ZoneId) {
        self.usage.restore(zone, RecordBytes::default());
        self.expiries.restore(zone, &Default::default());
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

    /// Many victims are chosen at a time. A victim that a client has filled meanwhile would be copied for
    /// nothing.
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

    /// On a full disk the other segments may get no storage.
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
        // While a client may append to it, it holds them against the choice of a victim as well.
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
