//! Records of a block that are dead although their marks are set: bits and counters in DRAM, so that a writer
//! that supersedes a record writes nothing to it (PACMAN section 3.2).
//!
//! A block has one bit for every 24 bytes, and no entry is shorter, so no two begin in the same unit. The bit
//! of a record is set once, by the writer that took it out of the index, or by recovery, which also counts
//! the record off.
//!
//! # What deletions need
//!
//! A mark that stays set counts again after a crash, unless something with a higher number beats it: the
//! record that replaced it, or the *tombstone* that deleted it. A tombstone is a record without a value.
//! Nobody can find it; it has to stay until no block holds a record that it beats. That is told by one number
//! for each block: the block *holds* tombstones from this number on.
//!
//! **Rule.** Let `m` be the highest number that was written for a key. A block with a marked record of the
//! key that the index does not name holds `m`. So every block that needs the tombstone of a deleted key holds
//! it, since its number is `m`. A tombstone with a lower number is not needed at all, since the record or
//! tombstone with the number `m` does its work.
//!
//! - *A record is superseded*, by one with the number `d`, under the lock of its key: `d` is noted for its
//!   block before that lock is let go. Later numbers of the key are higher.
//! - *A record is moved*: the original keeps the number of the copy, and that is noted, for the case that the
//!   block cannot be freed. The copy is named.
//! - *A copy loses*, since its original was superseded before the index could name it: its mark is durably
//!   cleared before the original is gone. Until then the original is marked too, and the write that
//!   superseded the original has noted that.
//! - *A crash* forgets the notes. For each record that another one beats, recovery notes the number of the
//!   other.
//!
//! Marks in the pool are cleared for copies that lose, and for records whose value fills blocks of its own,
//! which are freed at once. They are also cleared for all dead records of blocks that hold many tombstones
//! back (`scrub`), which then hold none. The mark of a tombstone is never cleared: it goes with its block,
//! and with the records there that it beats.

use crate::heap::slots::chunks::Page;
use crate::heap::slots::heap::SlotHeap;
use crate::heap::slots::offset::{Offset, SizedOffset};
use crate::heap::slots::read::Stands;
use crate::heap::slots::recovery::FoundSlot;
use crate::sync::atomic::{AtomicU64, Ordering};
use quipu_medium::arch::prefetch_to_write;

/// Bytes for which there is a bit: those of the shortest entry, a tombstone of a key of eight bytes.
const UNIT: u64 = 24;

const _: () =
    assert!(crate::heap::slots::format::ENTRY_HEAD + 8 == UNIT, "two entries may not begin in one unit");

/// A block that holds no tombstones back.
pub(in crate::heap::slots) const HOLDS_NONE: u64 = u64::MAX;

/// See the module's documentation.
pub(in crate::heap::slots) struct Dead {
    bits: Box<[AtomicU64]>,
    /// From which number on it holds tombstones.
    hold: AtomicU64,
    /// Bytes of the tombstones in it, and the highest of their numbers.
    tombstones: AtomicU64,
    newest_tombstone: AtomicU64,
    /// The number of the record that filled it.
    filled: AtomicU64,
}

impl Dead {
    pub(in crate::heap::slots) fn new(block_size: u64) -> Dead {
        Dead {
            bits: (0..(block_size / UNIT).div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            hold: AtomicU64::new(HOLDS_NONE),
            tombstones: AtomicU64::new(0),
            newest_tombstone: AtomicU64::new(0),
            filled: AtomicU64::new(0),
        }
    }

    /// The block is empty, and nobody knows a place in it.
    pub(in crate::heap::slots) fn reset(&self) {
        self.bits.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.hold.store(HOLDS_NONE, Ordering::Release);
        for count in [&self.tombstones, &self.newest_tombstone, &self.filled] {
            count.store(0, Ordering::Relaxed);
        }
    }

    fn word(&self, at: u64) -> Option<(&AtomicU64, u64)> {
        let unit = at / UNIT;
        Some((self.bits.get((unit / 64) as usize)?, 1 << (unit % 64)))
    }

    /// Sets the bit of an entry, and tells whether it was clear.
    fn set(&self, at: u64) -> bool {
        // Ordered with `hold`: a scrub lets go of that, and looks at the bits behind it.
        self.word(at).is_some_and(|(word, bit)| word.fetch_or(bit, Ordering::SeqCst) & bit == 0)
    }

    fn is_set(&self, at: u64) -> bool {
        self.word(at).is_some_and(|(word, bit)| word.load(Ordering::SeqCst) & bit != 0)
    }

    /// From which number on the block holds tombstones.
    pub(in crate::heap::slots) fn holds(&self) -> u64 {
        self.hold.load(Ordering::Acquire)
    }

    /// Notes that the block holds tombstones from this number on.
    pub(in crate::heap::slots) fn hold(&self, from: u64) {
        // Most are above the noted number, which covers them; then nothing is locked.
        if self.hold.load(Ordering::SeqCst) > from {
            self.hold.fetch_min(from, Ordering::SeqCst);
        }
    }

    /// The block holds nothing back that is not noted from now on. The caller clears the marks of the records
    /// that are dead by now.
    pub(in crate::heap::slots) fn let_go(&self) -> u64 {
        self.hold.swap(HOLDS_NONE, Ordering::SeqCst)
    }

    /// Notes that a tombstone is about to stand in the block, or does.
    pub(in crate::heap::slots) fn note_tombstone(&self, len: u64, sequence: u64) {
        self.tombstones.fetch_add(len, Ordering::Relaxed);
        self.newest_tombstone.fetch_max(sequence, Ordering::Relaxed);
    }

    /// Notes a record that recovery has found in the block.
    pub(in crate::heap::slots) fn found(&self, record: &FoundSlot<'_>) {
        let Stands { sequence, len, is_tombstone, .. } = record.stands;
        self.fill(sequence);
        if is_tombstone {
            self.note_tombstone(len, sequence);
        }
    }

    /// Bytes of the tombstones in the block, if all of their numbers are below `horizon`, and if not.
    pub(in crate::heap::slots) fn tombstones(&self, horizon: u64) -> (u64, u64) {
        let bytes = self.tombstones.load(Ordering::Relaxed);
        let may_go = self.newest_tombstone.load(Ordering::Relaxed) < horizon;
        if may_go { (bytes, 0) } else { (0, bytes) }
    }

    /// Notes that the record of this number has filled the block.
    pub(in crate::heap::slots) fn fill(&self, sequence: u64) {
        self.filled.fetch_max(sequence, Ordering::Relaxed);
    }

    /// The number of the record that filled the block.
    pub(in crate::heap::slots) fn filled(&self) -> u64 {
        self.filled.load(Ordering::Relaxed)
    }
}

impl SlotHeap {
    /// Whether bits in DRAM tell which records are dead, and a deletion is a tombstone.
    #[inline]
    pub fn knows_dead(&self) -> bool {
        self.chunks.knows_dead
    }

    /// Where the bit of an offset is.
    #[inline]
    fn dead_at(&self, offset: Offset) -> Option<(&Dead, u64)> {
        let geometry = &self.chunks.geometry;
        let dead = self.chunks.dead(offset.block(geometry.page_bits))?;
        let at = u64::from(offset.page(geometry.page_bits)) * geometry.page_size;
        Some((dead, at + u64::from(offset.position()) * 8))
    }

    /// Notes that a record, which stays marked, does not count any more because of the one with the number
    /// `by`; `false` if that was noted before. `len` is that of the record.
    ///
    /// The caller's guard is older than the moment at which the index named the record last, so its block is
    /// not used again meanwhile. The writer that supersedes it still has the lock of its key.
    #[inline]
    pub fn note_dead(&self, offset: Offset, len: u64, by: u64) -> bool {
        let Some((dead, at)) = self.dead_at(offset) else { return false };
        let is_new = dead.set(at);
        dead.hold(by);
        if is_new && let Some(block) = self.chunks.block(offset.block(self.chunks.geometry.page_bits)) {
            block.remove(len);
        }
        is_new
    }

    /// Notes that a tombstone is not needed at its place any more; `false` if that was noted before.
    pub fn note_tombstone_gone(&self, tombstone: SizedOffset) -> bool {
        let Some((dead, at)) = self.dead_at(tombstone.offset) else { return false };
        let len = tombstone.told_len().unwrap_or_default();
        let is_new = dead.set(at);
        if is_new
            && let Some(block) = self.chunks.block(tombstone.offset.block(self.chunks.geometry.page_bits))
        {
            block.remove(len);
            dead.tombstones.fetch_sub(len, Ordering::Relaxed);
        }
        is_new
    }

    /// Whether the marked record at this place is noted as dead.
    pub(in crate::heap::slots) fn is_dead(&self, page: &Page<'_>, position: u32) -> bool {
        let at = u64::from(page.page) * self.chunks.geometry.page_size + u64::from(position) * 8;
        self.chunks.dead(page.block).is_some_and(|dead| dead.is_set(at))
    }

    /// Prefetches the words that [`note_dead`](SlotHeap::note_dead) changes.
    #[inline]
    pub fn prefetch_dead(&self, offset: Offset) {
        let Some((dead, at)) = self.dead_at(offset) else { return };
        if let Some((word, _)) = dead.word(at) {
            prefetch_to_write(std::ptr::from_ref(word));
        }
        prefetch_to_write(std::ptr::from_ref(&dead.hold));
    }
}
