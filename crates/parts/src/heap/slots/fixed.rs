//! Pages of slots: records of one size (section 3.2.2).
//!
//! ```text
//!        0        1        2        3        4        5        6        7
//!    0 | lock    | kind   | zero            | tag                            |
//!    8 | bitset: a bit for each slot, 1 = a record; whole words              |
//!      | slot 0: key | value | zeros to a multiple of 8 | sequence number (8) |
//!      | slot 1 ...                                                           |
//! ```
//!
//! A record is written and made durable; then its bit is, by one store of the word that holds it.

use super::chunks::Page;
use super::error::Damage;
use super::geometry::SlotShape;
use super::heap::SlotHeap;

impl SlotHeap {
    fn slots(&self) -> &SlotShape {
        self.chunks.geometry.shape.as_ref().expect("asked of pages of slots only")
    }

    /// Writes a record into the first free slot of a page that is held, durably. `None` if none is free.
    pub(super) fn write_slot(
        &self,
        page: &Page<'_>,
        scratch: &mut Vec<u8>,
        key: &[u8],
        value: &[u8],
        sequence: u64,
    ) -> Option<u32> {
        let shape = self.slots();
        let (slot, bits) = (0..shape.bitset_words).find_map(|word| {
            let bits = self.region().load(page.at + shape.bit(word * 64).0);
            let free = (!bits & shape.valid_bits(word)).trailing_zeros();
            (free < 64).then_some((word * 64 + free, bits))
        })?;
        scratch.clear();
        scratch.extend_from_slice(key);
        scratch.extend_from_slice(value);
        scratch.resize(shape.sequence_at as usize, 0);
        scratch.extend_from_slice(&sequence.to_le_bytes());
        let at = page.at + shape.slot(slot);
        self.region().write(at, scratch);
        self.region().persist(at, shape.size);
        let (word, bit) = shape.bit(slot);
        self.region().store(page.at + word, bits | bit);
        self.region().persist(page.at + word, 8);
        page.state.add(shape.size);
        Some(slot)
    }

    /// Whether a slot has a record; `None` if there is no such slot.
    pub(super) fn is_slot_set(&self, page: &Page<'_>, slot: u32) -> Option<bool> {
        let shape = self.slots();
        let (word, bit) = shape.bit(slot);
        (slot < shape.count).then(|| self.region().load(page.at + word) & bit != 0)
    }

    /// Clears the bit of a slot of a page that is held, durably. `false` if it was clear.
    pub(super) fn clear_slot(&self, page: &Page<'_>, slot: u32) -> bool {
        let shape = self.slots();
        if self.is_slot_set(page, slot) != Some(true) {
            return false;
        }
        let (word, bit) = shape.bit(slot);
        let bits = self.region().load(page.at + word);
        self.region().store(page.at + word, bits & !bit);
        self.region().persist(page.at + word, 8);
        page.state.remove(shape.size);
        true
    }

    /// Copies key and value of a slot out, whatever it holds, but for the first `skip` bytes. Returns the sequence number.
    #[inline]
    pub(super) fn copy_slot(&self, page: &Page<'_>, slot: u32, skip: u64, buffer: &mut Vec<u8>) -> u64 {
        let shape = self.slots();
        let at = page.at + shape.slot(slot);
        buffer.resize((shape.key + shape.value - skip) as usize, 0);
        self.region().read_racing(at + skip, buffer);
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
