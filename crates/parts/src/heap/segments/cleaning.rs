//! What compaction asks of the heap and does to it: which segments may be cleaned, which tombstones may go, and giving zones
//! back. Deciding is `reclaim`'s, moving records the store's.

use super::append::OpenSegment;
use super::log::LogHeap;
use super::scan::SegmentInfo;
use super::usage::{Candidate, RecordBytes};
use crate::space::ZoneId;
use std::sync::atomic::Ordering;

impl LogHeap {
    /// Registers a segment that recovery found; nobody appends to it.
    pub fn register(&self, info: &SegmentInfo) {
        self.lives.begin(info.zone, info.life_number);
        self.lives.seal(info.zone);
    }

    /// The segments that nobody appends to, for the choice of a victim, and the lowest life of all others.
    pub fn candidates(&self) -> (Vec<Candidate>, u64) {
        let idle: Vec<ZoneId> = self.idle.lock().iter().map(|segment| segment.zone).collect();
        let now = self.region().now();
        let candidate = |(zone, life), is_sealed: bool| {
            let RecordBytes { written, garbage, tombstones } = self.usage.of_zone(zone);
            // A record that expires may be superseded as well, and counted twice then.
            let expired = self.expiries.expired(zone, now).min(written - garbage.min(written));
            let unused = if is_sealed { self.longest_record().saturating_sub(written) } else { 0 };
            Candidate { zone, life, written, garbage, expired, tombstones, unused }
        };
        let mut candidates: Vec<_> = self.lives.sealed().map(|sealed| candidate(sealed, true)).collect();
        let mut oldest = u64::MAX;
        for (zone, life) in self.lives.others() {
            if idle.contains(&zone) {
                candidates.push(candidate((zone, life), false));
            } else {
                oldest = oldest.min(life);
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

    /// Whether every segment that was opened before this number was drawn is durably gone, but for one.
    pub fn outlived(&self, sequence: u64, but: ZoneId) -> bool {
        let _gone_durably = self.ending.lock();
        self.lives.oldest_but(but).is_none_or(|life| life > sequence)
    }

    /// Takes a segment out of the choice: it is being given up, or cannot be read.
    pub fn withdraw(&self, zone: ZoneId) {
        self.lives.withdraw(zone);
    }

    /// Gives the zone of a cleaned segment back, durably when this returns. Nobody can reach its records any more.
    pub fn free(&self, zone: ZoneId) {
        let _ends = self.ending.lock();
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
}
