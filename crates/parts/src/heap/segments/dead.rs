//! Bits in DRAM that tell which records are dead, so that a cleaner need not ask the index about each record.
//!
//! PACMAN section 3.2. A zone has one bit for every 32 bytes. No record is shorter, so no two records begin
//! in the same unit. When a record dies, the bits are set from its first unit up to the unit in which the
//! next record begins. So the first bit says that the record is dead, and the run of bits says how far it
//! reaches.
//!
//! The run lets a cleaner skip dead records by their lengths, without proof of their bytes. A damaged length
//! may lead anywhere. But a walk that goes on only where all bits are set cannot skip the beginning of a live
//! record, since the first unit of a live record is in no dead record's run. At worst the walk arrives
//! elsewhere in that unit, finds its bit clear, and reports bytes that it cannot prove: damage.
//!
//! This rests on the lengths with which bits are set. A length from the word that named the record, or from
//! its header, is reliable if the record was written or proved in this run. Nothing proves it in a segment
//! that was taken over from a checkpoint, or by its header alone, and not read since. A flipped bit in such a
//! length would declare the neighbours dead. There, only the first bit of a record is set
//! ([`LogHeap::note_superseded`]). The walk then stops at that record, proves it, and skips it.
//!
//! The head of a frame is shorter than a unit. It is noted like a record, dead from the start. If the frame's
//! first record begins in the same unit, the head has no bit and needs none.
//!
//! A set bit is final until the zone is freed. A clear bit is reliable only if the segment was written or
//! scanned in this run: bits are missing for a segment that was taken over from a checkpoint, or by its
//! header alone.

use super::log::{LogHeap, SHORTEST_RECORD};
use super::scan::Scan;
use super::usage::Shard;
use crate::heap::Reference;
use crate::record::{Header, RecordView};
use crate::space::ZoneId;
use crate::twin;
use quipu_medium::arch::prefetch_to_write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zerocopy::FromZeros;

/// Bytes of a unit, which has one bit.
const UNIT: u64 = 32;

const _: () = assert!(SHORTEST_RECORD >= UNIT, "two records may not begin in one unit");

pub(super) struct DeadBits {
    words: Box<[AtomicU64]>,
    /// Words of each zone.
    words_per_zone: u64,
    /// Zones of which bits are missing.
    unknown: Box<[AtomicBool]>,
    /// Zones with records of an earlier run that no scan has proved since.
    unproved: Box<[AtomicBool]>,
}

impl DeadBits {
    pub(super) fn new(zones: u32, zone_size: u64) -> DeadBits {
        let words_per_zone = (zone_size / UNIT).div_ceil(64);
        let len = (u64::from(zones) * words_per_zone) as usize;
        // Memory that the system zeroes at the first touch, so an open costs the same for any size of pool.
        // If there is too little memory, the second way fails as allocations do.
        let words = <[AtomicU64]>::new_box_zeroed_with_elems(len)
            .unwrap_or_else(|_| (0..len).map(|_| AtomicU64::new(0)).collect());
        let flags = || (0..zones).map(|_| AtomicBool::new(false)).collect();
        DeadBits { words, words_per_zone, unknown: flags(), unproved: flags() }
    }

    fn of_zone(&self, zone: ZoneId) -> &[AtomicU64] {
        let first = (u64::from(zone.0) * self.words_per_zone) as usize;
        &self.words[first..first + self.words_per_zone as usize]
    }

    /// The words and masks of the units from that of the first offset up to that of the last, which is
    /// excluded.
    fn run(&self, zone: ZoneId, bytes: Range<u64>) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let words = self.of_zone(zone);
        let (mut unit, end) = (bytes.start / UNIT, (bytes.end / UNIT).min(words.len() as u64 * 64));
        std::iter::from_fn(move || {
            let (word, bit) = (words.get((unit / 64) as usize).filter(|_| unit < end)?, unit % 64);
            let count = (end - unit).min(64 - bit);
            unit += count;
            Some((word, (u64::MAX >> (64 - count)) << bit))
        })
    }

    /// Sets the bits of a record. Returns whether its first bit was clear; `true` if it has none.
    fn set(&self, zone: ZoneId, bytes: Range<u64>) -> bool {
        let first = 1 << (bytes.start / UNIT % 64);
        let mut words = self.run(zone, bytes);
        // A thread that sees the bit also sees the change that made the record dead: the index no longer
        // names it.
        let Some((word, mask)) = words.next() else { return true };
        let is_new = word.fetch_or(mask, Ordering::AcqRel) & first == 0;
        words.for_each(|(word, mask)| {
            word.fetch_or(mask, Ordering::AcqRel);
        });
        is_new
    }

    /// Whether all bits between these two offsets are set.
    fn all_set(&self, zone: ZoneId, bytes: Range<u64>) -> bool {
        self.run(zone, bytes).all(|(word, mask)| word.load(Ordering::Acquire) & mask == mask)
    }

    fn is_set(&self, zone: ZoneId, offset: u64) -> bool {
        let unit = offset / UNIT;
        self.of_zone(zone)[(unit / 64) as usize].load(Ordering::Acquire) >> (unit % 64) & 1 != 0
    }

    /// Notes that a segment is taken over: its dead records are unknown, and its records are unproved.
    pub(super) fn restore(&self, zone: ZoneId) {
        self.unknown[zone.0 as usize].store(true, Ordering::Release);
        self.unproved[zone.0 as usize].store(true, Ordering::Release);
    }

    /// Whether the lengths of a segment's records are those that they were written with.
    fn proves_lengths(&self, zone: ZoneId) -> bool {
        twin!(LengthBelieved) || !self.unproved[zone.0 as usize].load(Ordering::Acquire)
    }

    pub(super) fn knows(&self, zone: ZoneId) -> bool {
        !self.unknown[zone.0 as usize].load(Ordering::Acquire)
    }

    /// All dead records of a segment have been noted.
    pub(super) fn know(&self, zone: ZoneId) {
        self.unknown[zone.0 as usize].store(false, Ordering::Release);
    }

    /// Forgets a freed zone. No thread reads or notes any of it.
    pub(super) fn forget(&self, zone: ZoneId) {
        self.know(zone);
        self.unproved[zone.0 as usize].store(false, Ordering::Release);
        self.of_zone(zone).iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

impl LogHeap {
    /// Adds a bit for every 32 bytes of the heap's zones, which tells dead records.
    pub fn with_dead_bits(mut self) -> LogHeap {
        self.dead = Some(DeadBits::new(self.space().zone_count(), self.space().zone_size()));
        self
    }

    /// Whether all dead records of the segment that holds this record are noted. They are not without dead
    /// bits, nor in a [restored](LogHeap::restore) segment, of which only the number of garbage bytes is
    /// known. There a cleaner must ask the index before it copies a record. To find out when it repoints the
    /// index would be too late: [`outlived`](LogHeap::outlived) may have let the cleaner drop a younger
    /// tombstone of the key before that.
    #[inline]
    pub fn knows_dead(&self, reference: Reference) -> bool {
        let zone = reference.zone(self.zone_shift());
        self.dead.as_ref().is_some_and(|dead| dead.knows(zone))
    }

    /// Notes that a record of `len` bytes is dead for good, and counts it as garbage. `false` if it was noted
    /// before; then nothing is counted. Without dead bits every call counts.
    ///
    /// The caller's guard is older than the moment at which the index last named the record, so the segment
    /// is not freed meanwhile. `len` is the record's length when it was written: the caller has proved the
    /// record or written it.
    #[inline]
    pub fn note_dead(&self, shard: Shard, reference: Reference, len: u64) -> bool {
        self.note(shard, reference, len, |_, _| true)
    }

    /// Notes that a record is dead whose length only the word that named it, or its header, tells. In a
    /// segment of an earlier run that nobody has proved, this declares no other record dead.
    #[inline]
    pub fn note_superseded(&self, shard: Shard, reference: Reference, len: u64) -> bool {
        self.note(shard, reference, len, DeadBits::proves_lengths)
    }

    #[inline]
    fn note(
        &self,
        shard: Shard,
        reference: Reference,
        len: u64,
        is_proved: impl FnOnce(&DeadBits, ZoneId) -> bool,
    ) -> bool {
        let is_new = self.dead.as_ref().is_none_or(|dead| {
            let (zone, offset) = (reference.zone(self.zone_shift()), reference.offset(self.zone_shift()));
            let run = if is_proved(dead, zone) { len } else { UNIT };
            dead.set(zone, offset..offset.saturating_add(run))
        });
        if is_new {
            self.note_garbage(shard, reference, len);
        }
        is_new
    }

    /// Prefetches the bits of a record that will soon be [noted](LogHeap::note_dead). A locked instruction
    /// that waits for its line delays everything behind it.
    #[inline]
    pub fn prefetch_dead(&self, reference: Reference) {
        if let Some(dead) = &self.dead {
            let unit = reference.offset(self.zone_shift()) / UNIT;
            let words = dead.of_zone(reference.zone(self.zone_shift()));
            prefetch_to_write(&raw const words[(unit / 64) as usize]);
        }
    }

    /// Whether a record is known to be dead. It is not the head of a frame.
    #[inline]
    pub fn is_dead(&self, reference: Reference) -> bool {
        let (zone, offset) = (reference.zone(self.zone_shift()), reference.offset(self.zone_shift()));
        self.dead.as_ref().is_some_and(|dead| dead.is_set(zone, offset))
    }
}

impl Scan<'_> {
    /// Skips the dead records here, frames included, by lengths that only the bits confirm.
    #[inline]
    pub(super) fn skip_dead(&mut self) {
        let Some(dead) = &self.heap.dead else { return };
        // Each record is at least as long as a header, so this ends.
        while let Some(len) = self.ahead().and_then(RecordView::claimed).map(Header::record_len)
            && dead.all_set(self.info.zone, self.offset()..self.offset() + len)
        {
            self.pass_over(len);
        }
    }
}

#[cfg(test)]
#[path = "dead_tests.rs"]
mod tests;
