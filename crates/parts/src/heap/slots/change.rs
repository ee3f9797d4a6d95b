//! Changes in place: letting records go (section 4.5) and updating eight bytes of them (section 4.4).

use super::error::{Damage, SlotError};
use super::heap::SlotHeap;
use super::locks::PageGuard;
use super::offset::Offset;
use super::pen::set_word;

/// The page of a record is locked until this drops. A caller that deletes the record takes the offset out of
/// the index meanwhile, so that no reader misses it before it is gone for good.
#[must_use = "the page is held for as long as this lives"]
pub struct Held<'h> {
    heap: &'h SlotHeap,
    guard: PageGuard<'h>,
    offset: Offset,
}

/// A word of a page without the mark of a record that has been counted out.
#[derive(Clone, Copy)]
pub(super) struct Cleared {
    pub(super) at: u64,
    pub(super) word: u64,
}

/// A record that is being let go. To be dropped behind the fence that follows [`clear`](Releasing::clear):
/// until then no other client may write to the place.
#[must_use = "the mark is to be cleared"]
pub struct Releasing<'h> {
    guard: PageGuard<'h>,
    cleared: Option<Cleared>,
}

impl Releasing<'_> {
    /// Clears the mark, durably after the next fence. Apart from the rest, since a locked instruction behind
    /// it waits until it has reached the medium.
    #[inline]
    pub fn clear(&self) {
        if let Some(cleared) = self.cleared {
            self.guard.heap().store_cleared(cleared);
        }
    }
}

impl Held<'_> {
    /// Lets the record go, durably when this returns. `false` if there is none.
    ///
    /// # Errors
    /// As for [`delete`](SlotHeap::delete).
    #[inline(always)]
    pub fn delete(&self) -> Result<bool, SlotError> {
        if self.heap.shape().is_none() {
            return self.delete_entry();
        }
        let Some(Cleared { at, word }) = self.heap.count_out(&self.guard, self.offset)? else {
            return Ok(false);
        };
        // Written back, and not the line past the caches as where a put lets the old record go: that takes
        // fewer instructions, and a delete has nothing else to do.
        self.heap.region().change_durably(at, |_| word);
        Ok(true)
    }

    /// Lets an entry of a log go.
    fn delete_entry(&self) -> Result<bool, SlotError> {
        let blocks = self.heap.overflow_of(self.offset)?;
        let is_gone = self.heap.clear(&self.guard, self.offset)?;
        if is_gone {
            self.heap.free_overflow(&blocks);
        }
        Ok(is_gone)
    }

    /// Whether the record is one of this key.
    #[inline(always)]
    pub fn key_is(&self, key: &[u8]) -> bool {
        self.heap.has_key(&self.guard.page, self.offset.position(), key)
    }
}

impl SlotHeap {
    /// Clears the mark of a record on a page that is held, durably. `false` if it was clear.
    #[inline]
    pub(super) fn clear(&self, guard: &PageGuard<'_>, offset: Offset) -> Result<bool, Damage> {
        let Some(cleared) = self.count_out(guard, offset)? else { return Ok(false) };
        self.store_cleared(cleared);
        self.region().fence();
        Ok(true)
    }

    /// Clears the mark of a record that has been counted out, durably after the next fence.
    ///
    /// Of slots the whole line is written, past the caches: the holder of the page is alone with it. In a log
    /// a cleaner may store the first word of its batch without the page (`batch`), and must not find its line
    /// written back as it was.
    #[inline]
    fn store_cleared(&self, Cleared { at, word }: Cleared) {
        if self.shape().is_some() {
            return set_word(self.region(), at, word);
        }
        self.region().store(at, word);
        self.region().flush(at, 8);
    }

    /// Counts out a record on a page that is held; the caller then clears its mark. `None` if the mark is
    /// clear.
    #[inline]
    fn count_out(&self, guard: &PageGuard<'_>, offset: Offset) -> Result<Option<Cleared>, Damage> {
        guard.touch();
        match self.shape() {
            Some(_) => Ok(self.count_out_slot(&guard.page, offset.position())),
            None => self.count_out_entry(&guard.page, offset.position()),
        }
    }

    /// Begins to let a record go that the caller has taken out of the index, if that can be done without
    /// waiting. It cannot if its page is held, be it by the caller, or does not exist. Nor can it if the
    /// value fills blocks of its own, or the record is damaged. Then the record is as it was.
    #[inline]
    pub fn begin_release(&self, old: Offset) -> Option<Releasing<'_>> {
        let guard = self.try_lock(self.chunks.page_of(old)?)?;
        if self.shape().is_none() && !self.overflow_of(old).is_ok_and(|blocks| blocks.is_empty()) {
            return None;
        }
        let cleared = self.count_out(&guard, old).ok()?;
        Some(Releasing { guard, cleared })
    }

    /// Deletes the record at an offset that the index gave, durably when this returns. `None` if there is
    /// none any more: the caller asks the index again.
    ///
    /// Nobody replaces the record in the index meanwhile: the caller has the key's lock.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if the bytes there cannot be a record.
    pub fn delete(&self, offset: Offset) -> Result<Option<Held<'_>>, SlotError> {
        let Some(held) = self.hold(offset) else { return Ok(None) };
        Ok(held.delete()?.then_some(held))
    }

    /// Holds the page of an offset that the index gave, to change the record there. `None` if there is no
    /// such page any more.
    ///
    /// Inlined, as the methods of [`Held`] are. The less code lies between the record's arrival and the end
    /// of the call, the more misses of the next call overlap; and a call would return so large an answer in
    /// memory.
    #[inline(always)]
    pub fn hold(&self, offset: Offset) -> Option<Held<'_>> {
        let guard = self.lock(self.chunks.page_of(offset)?);
        Some(Held { heap: self, guard, offset })
    }

    /// Changes eight bytes of a value in place: a little-endian number, `at` bytes into the value. The change
    /// is atomic, and durable when this returns. Returns the old number; `None` if the record of this key no
    /// longer stands at the offset, which the index gave.
    ///
    /// The sequence number stays. The caller has the key's lock.
    ///
    /// One function: it finds out all that it can without the record before it asks for the record. See
    /// [`hold`](SlotHeap::hold).
    ///
    /// # Errors
    /// [`SlotError::NotInPlace`] if records have no fixed size, or the bytes are not aligned or not inside
    /// the value.
    #[inline(always)]
    pub fn update_in_place(
        &self,
        offset: Offset,
        key: &[u8],
        at: u64,
        change: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>, SlotError> {
        let shape = self.shape().ok_or(SlotError::NotInPlace)?;
        let is_inside = at.checked_add(8).is_some_and(|end| end <= shape.value);
        if !is_inside || !(shape.key + at).is_multiple_of(8) {
            return Err(SlotError::NotInPlace);
        }
        let Some(spot) = self.chunks.spot_of(offset) else { return Ok(None) };
        let position = offset.position();
        if position >= shape.count || key.len() as u64 != shape.key {
            return Ok(None);
        }
        let (bits, bit) = shape.bit(position);
        let (bits, slot) = (spot.at + bits, spot.at + shape.slot(position));
        let word = slot + shape.key + at;
        let is_there = || self.region().equals_racing(slot, key) && self.region().load(bits) & bit != 0;
        loop {
            let version = self.even_version(spot);
            // The line has to be read first: to write it back then takes fewer instructions than to write it
            // past the caches.
            let old = self.region().load(word);
            if !is_there() {
                return Ok(None);
            }
            // Not under the lock of the page, which `change` may read.
            let new = change(old);
            let locked = self.lock_spot(spot);
            if !locked.follows(version) {
                if !is_there() {
                    return Ok(None);
                }
                // Others may change the page, and this record only by moving it: nobody else has the key's
                // lock. It is here again, but the word was perhaps read while another record stood here.
                if self.region().load(word) != old {
                    continue;
                }
            }
            self.region().change_durably(word, |_| new);
            return Ok(Some(old));
        }
    }
}
