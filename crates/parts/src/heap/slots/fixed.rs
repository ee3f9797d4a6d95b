//! Pages of slots: records of one size (section 3.2.2).
//!
//! A record is written and made durable; then its bit is, by one store of the word that holds it.

use super::change::Cleared;
use super::chunks::Page;
use super::error::Damage;
use super::geometry::{FreeSlot, SlotShape};
use super::heap::SlotHeap;
use super::locks::PageGuard;
use super::pen::{Pen, set_word};
use super::place::Record;
use quipu_medium::LINE;

impl SlotHeap {
    #[inline]
    fn slots(&self) -> &SlotShape {
        self.chunks.geometry.shape.as_ref().expect("asked of pages of slots only")
    }

    /// The first free slot of a page that is held, if one is free.
    #[inline]
    pub(super) fn free_slot(&self, guard: &PageGuard<'_>, pen: &mut Pen) -> Option<FreeSlot> {
        let shape = self.slots();
        pen.turn_to(self.region(), guard);
        pen.next.take().or_else(|| {
            (0..shape.bitset_words).find_map(|word| shape.first_free(word, self.bits(guard, pen, word)))
        })
    }

    /// A word of the bitset of a page.
    #[inline]
    fn bits(&self, guard: &PageGuard<'_>, pen: &Pen, word: u32) -> u64 {
        let at = self.slots().bit(word * 64).0;
        pen.bits(at).unwrap_or_else(|| self.region().load(guard.page.at + at))
    }

    /// Writes a record into a free slot of a page that is held. Durable with the next fence.
    #[inline(always)]
    pub(super) fn write_slot(
        &self,
        guard: &PageGuard<'_>,
        pen: &mut Pen,
        FreeSlot { slot, .. }: FreeSlot,
        record: Record<'_>,
    ) {
        let (shape, page, region) = (self.slots(), &guard.page, self.region());
        // Before the fences, since a locked instruction behind one waits for it.
        page.state.add(shape.size);
        // Records that share the last line of this one must stay.
        let at = shape.slot(slot);
        let end = (at + shape.size).next_multiple_of(LINE);
        let shares = |slot: &u32| shape.slot(*slot) < end;
        let is_set = |slot: u32| self.bits(guard, pen, slot / 64) & shape.bit(slot).1 != 0;
        if (slot + 1..shape.count).take_while(shares).any(is_set) {
            self.write_between(page.at + at, record);
            pen.look(region, page.at);
        } else {
            pen.write(region, page.at, at, shape, record);
        }
    }

    /// Sets the bit of a slot whose record is durable. Durable with the next fence.
    #[inline(always)]
    pub(super) fn mark_slot(&self, guard: &PageGuard<'_>, pen: &mut Pen, FreeSlot { slot, bits }: FreeSlot) {
        let (shape, page, region) = (self.slots(), &guard.page, self.region());
        let (word, bit) = shape.bit(slot);
        match pen.bits(word) {
            Some(_) => pen.set_word(region, page.at, word, bits | bit),
            None => set_word(region, page.at + word, bits | bit),
        }
        pen.next = shape.first_free(slot / 64, bits | bit);
        if slot + 2 == shape.count {
            // The pen will look at the next page soon, whose first line was last written past the caches.
            region.prefetch(page.at + self.chunks.geometry.page_size);
        }
        pen.leave(guard);
    }

    /// Writes a record to a slot that shares its last line with another record. Durable after the next fence.
    fn write_between(&self, at: u64, record: Record<'_>) {
        let (shape, region) = (self.slots(), self.region());
        region.write(at, record.key);
        region.write(at + shape.key, record.value);
        let zeros = [0; 8];
        let gap = shape.sequence_at - shape.key - shape.value;
        region.write(at + shape.key + shape.value, &zeros[..gap as usize]);
        region.store(at + shape.sequence_at, record.sequence);
        region.flush(at, shape.size);
    }

    /// Copies the value of a slot out, if it has a record of `key`. `None` if it has none; `false` if of
    /// another key.
    ///
    /// The record and its mark may be read in either order: only the page's version before and behind both
    /// counts.
    #[inline]
    pub(super) fn copy_value_of_slot(
        &self,
        page: &Page<'_>,
        slot: u32,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Option<bool> {
        let shape = self.slots();
        if slot >= shape.count {
            return None;
        }
        let at = page.at + shape.slot(slot);
        let is_key = key.len() as u64 == shape.key && self.region().equals_racing(at, key);
        if is_key {
            value.clear();
            self.region().append_racing(at + shape.key, shape.value, value);
        }
        (self.is_slot_set(page, slot) == Some(true)).then_some(is_key)
    }

    /// Whether a slot has a record; `None` if there is no such slot.
    #[inline(always)]
    pub(super) fn is_slot_set(&self, page: &Page<'_>, slot: u32) -> Option<bool> {
        let shape = self.slots();
        (slot < shape.count).then(|| self.is_bit_set(shape, page.at, slot))
    }

    /// Whether a slot of the page at this place has a record.
    #[inline(always)]
    pub(super) fn is_bit_set(&self, shape: &SlotShape, page: u64, slot: u32) -> bool {
        let (word, bit) = shape.bit(slot);
        self.region().load(page + word) & bit != 0
    }

    /// Counts out the record in a slot of a page that is held; the caller then clears its bit. `None` if the
    /// bit is clear.
    #[inline]
    pub(super) fn count_out_slot(&self, page: &Page<'_>, slot: u32) -> Option<Cleared> {
        let shape = self.slots();
        let (word, bit) = shape.bit(slot);
        let at = page.at + word;
        let bits = if slot < shape.count { self.region().load(at) } else { 0 };
        if bits & bit == 0 {
            return None;
        }
        // The block is not freed meanwhile: that takes all its pages before.
        page.state.remove(shape.size);
        Some(Cleared { at, word: bits & !bit })
    }

    /// Copies key and value of a slot out, except for the first `skip` bytes, whether its bit is set or not.
    /// Returns the sequence number.
    #[inline]
    pub(super) fn copy_slot(&self, page: &Page<'_>, slot: u32, skip: u64, buffer: &mut Vec<u8>) -> u64 {
        let shape = self.slots();
        let at = page.at + shape.slot(slot);
        buffer.clear();
        self.region().append_racing(at + skip, shape.key + shape.value - skip, buffer);
        self.region().load(at + shape.sequence_at)
    }

    /// The slots of a page that have records.
    ///
    /// # Errors
    /// [`Damage`] if a bit is set that stands for no slot.
    pub(super) fn set_slots(&self, page: &Page<'_>) -> Result<Vec<u32>, Damage> {
        let shape = self.slots();
        let mut set = Vec::new();
        for word in 0..shape.bitset_words {
            let at = page.at + shape.bit(word * 64).0;
            let mut bits = self.region().load(at);
            if bits & !shape.valid_bits(word) != 0 {
                return Err(Damage { what: "the bitset of a page", offset: at });
            }
            while bits != 0 {
                set.push(word * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        Ok(set)
    }
}
