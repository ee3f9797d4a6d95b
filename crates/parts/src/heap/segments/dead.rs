//! Which records no longer matter: bits in DRAM, so that a cleaner need not ask the index about each record.
//!
//! PACMAN section 3.2. A zone has one bit for every 32 bytes, and no record is shorter, so no two begin in the same unit. When a
//! record no longer matters, the bits are set from the unit that it begins in up to the one that the next record begins in. So
//! the first of them says that the record is dead, and all of them together how far it reaches.
//!
//! The second is what lets a cleaner pass over dead records by their lengths, without proof of their bytes. A damaged length may
//! lead anywhere; but whatever lies between here and there is dead only if all bits in between are set, and the unit that a live
//! record begins in is in no dead record's run. So a walk that goes on only where all bits are set cannot pass over the
//! beginning of a live record. At worst it arrives elsewhere in that record's first unit, whose bit is not set, and finds
//! there what cannot be proved: damage.
//!
//! This rests on the lengths that the bits are set with. One that comes from the word that named the record, or from its
//! header when it is superseded, can be trusted if the record was written or proved in this run. In a segment of an earlier
//! run that nobody has read since (it was taken over from a checkpoint, or by its header alone) nothing proves it: a length
//! with a flipped bit would declare the neighbours dead. There, only the first bit of a record is set
//! ([`LogHeap::note_superseded`]). The walk then stops at that record, proves it, and passes over it for what it is.
//!
//! The head of a frame is shorter than a unit. It is noted like a record, dead from the start; if its first record begins in the
//! same unit it has no bit, and none is needed.
//!
//! A bit that is set is final until the zone is given back. One that is not set says something only if the segment was
//! written or scanned in this run: of one that was taken over from a checkpoint, or by its header alone, bits are missing.

use super::log::{LogHeap, SHORTEST_RECORD};
use super::scan::Scan;
use super::usage::Shard;
use crate::heap::Reference;
use crate::record::{Header, RecordView};
use crate::space::ZoneId;
use quipu_medium::arch::prefetch_to_write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zerocopy::FromZeros;

/// Bytes for which there is a bit.
const UNIT: u64 = 32;

const _: () = assert!(SHORTEST_RECORD >= UNIT, "two records may not begin in one unit");

/// See the module's documentation.
pub(super) struct DeadBits {
    words: Box<[AtomicU64]>,
    /// Of each zone.
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
        // Memory that is zeroed when it is first touched: an open costs the same however large the pool is. If there is too little
        // of it, the other way fails as allocations do.
        let words = <[AtomicU64]>::new_box_zeroed_with_elems(len)
            .unwrap_or_else(|_| (0..len).map(|_| AtomicU64::new(0)).collect());
        let flags = || (0..zones).map(|_| AtomicBool::new(false)).collect();
        DeadBits { words, words_per_zone, unknown: flags(), unproved: flags() }
    }

    fn of_zone(&self, zone: ZoneId) -> &[AtomicU64] {
        let first = (u64::from(zone.0) * self.words_per_zone) as usize;
        &self.words[first..first + self.words_per_zone as usize]
    }

    /// The words and masks of the units from that of one offset up to that of another, which is left out; both within the zone.
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

    /// Sets the bits of a record, and tells whether its first was not set; `true` if it has none.
    fn set(&self, zone: ZoneId, bytes: Range<u64>) -> bool {
        let first = 1 << (bytes.start / UNIT % 64);
        let mut words = self.run(zone, bytes);
        // Whoever sees it set also sees what made the record not matter any more: the index no longer names it.
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

    /// A segment is taken over, of which it is not known what is dead, and whose records nobody has proved.
    pub(super) fn restore(&self, zone: ZoneId) {
        self.unknown[zone.0 as usize].store(true, Ordering::Release);
        self.unproved[zone.0 as usize].store(true, Ordering::Release);
    }

    /// Whether the lengths of a segment's records are those that they were written with.
    fn proves_lengths(&self, zone: ZoneId) -> bool {
        !self.unproved[zone.0 as usize].load(Ordering::Acquire)
    }

    /// Believes all lengths: a broken twin.
    fn believe_lengths(&self) {
        self.unproved.iter().for_each(|flag| flag.store(false, Ordering::Release));
    }

    pub(super) fn knows(&self, zone: ZoneId) -> bool {
        !self.unknown[zone.0 as usize].load(Ordering::Acquire)
    }

    /// Everything that is dead in a segment has been noted.
    pub(super) fn know(&self, zone: ZoneId) {
        self.unknown[zone.0 as usize].store(false, Ordering::Release);
    }

    /// Forgets a zone whose records are gone. Nobody reads or notes any of it.
    pub(super) fn forget(&self, zone: ZoneId) {
        self.know(zone);
        self.unproved[zone.0 as usize].store(false, Ordering::Release);
        self.of_zone(zone).iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&*self.words) + size_of_val(&*self.unknown) + size_of_val(&*self.unproved)) as u64
    }
}

impl LogHeap {
    /// The same heap, which keeps a bit for every 32 bytes of its zones to tell which records are dead.
    pub fn with_dead_bits(mut self) -> LogHeap {
        self.dead = Some(DeadBits::new(self.space().zone_count(), self.space().zone_size()));
        self
    }

    /// Whether all records of this one's segment that do not matter any more are noted as dead: they are not without dead bits,
    /// nor in a segment that was [restored](LogHeap::restore), of which no more is known than how many bytes are garbage. There
    /// a cleaner has to ask the index before it copies a record. That it finds out when it repoints is not enough:
    /// [`outlived`](LogHeap::outlived) may have let a younger tombstone of the key go by then, in an earlier part of the segment.
    #[inline]
    pub fn knows_dead(&self, reference: Reference) -> bool {
        let zone = reference.zone(self.zone_shift());
        self.dead.as_ref().is_some_and(|dead| dead.knows(zone))
    }

    /// Notes that a record of `len` bytes no longer matters, for good, and counts it as garbage; `false` if that was noted
    /// before, and nothing is counted. Without dead bits every call counts.
    ///
    /// The caller's guard is older than the moment at which the index named the record last, so its segment is not given back
    /// meanwhile. `len` is that of the record when it was written: the caller has proved the record or written it.
    #[inline]
    pub fn note_dead(&self, shard: Shard, reference: Reference, len: u64) -> bool {
        let is_new = self.dead.as_ref().is_none_or(|dead| {
            let offset = reference.offset(self.zone_shift());
            dead.set(reference.zone(self.zone_shift()), offset..offset.saturating_add(len))
        });
        if is_new {
            self.note_garbage(shard, reference, len);
        }
        is_new
    }

    /// The same, with a length that nothing proves but the word that named the record, or its header. In a segment of an earlier run
    /// that nobody has proved, no other record is taken for dead for its sake.
    #[inline]
    pub fn note_superseded(&self, shard: Shard, reference: Reference, len: u64) -> bool {
        let is_new = self.dead.as_ref().is_none_or(|dead| {
            let (zone, offset) = (reference.zone(self.zone_shift()), reference.offset(self.zone_shift()));
            let run = if dead.proves_lengths(zone) { len } else { UNIT };
            dead.set(zone, offset..offset.saturating_add(run))
        });
        if is_new {
            self.note_garbage(shard, reference, len);
        }
        is_new
    }

    /// From here on believes the lengths of records that nobody has proved: a broken twin.
    #[doc(hidden)]
    pub fn believe_lengths(&self) {
        if let Some(dead) = &self.dead {
            dead.believe_lengths();
        }
    }

    /// Asks for the bits of a record that is about to be [noted](LogHeap::note_dead): a locked instruction that waits for its line
    /// holds up all that comes behind.
    #[inline]
    pub fn prefetch_dead(&self, reference: Reference) {
        if let Some(dead) = &self.dead {
            let unit = reference.offset(self.zone_shift()) / UNIT;
            let words = dead.of_zone(reference.zone(self.zone_shift()));
            prefetch_to_write(&raw const words[(unit / 64) as usize]);
        }
    }

    /// Whether a record is known not to matter any more. It is not the head of a frame.
    #[inline]
    pub fn is_dead(&self, reference: Reference) -> bool {
        let (zone, offset) = (reference.zone(self.zone_shift()), reference.offset(self.zone_shift()));
        self.dead.as_ref().is_some_and(|dead| dead.is_set(zone, offset))
    }

    /// Bytes of DRAM that the dead bits take.
    pub fn dead_bits_bytes(&self) -> u64 {
        self.dead.as_ref().map_or(0, DeadBits::bytes)
    }
}

impl Scan<'_> {
    /// Passes over whatever is known to be dead here, frames included, by lengths that nothing proves but the bits.
    #[inline]
    pub(super) fn skip_dead(&mut self) {
        let Some(dead) = &self.heap.dead else { return };
        // Each is at least as long as a header, so this ends.
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
