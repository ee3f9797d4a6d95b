//! Reading without a lock (section 4.3): copy, and look whether the page has changed meanwhile.
//!
//! Bytes are copied out, since they may change under any reference. A copy made while the page changes may be
//! anything. It is only believed, and only called damaged, once the version has been found unchanged.

use super::chunks::{Page, Spot};
use super::error::{Damage, SlotError};
use super::format::{BlockKind, ENTRY_HEAD, EntryKind};
use super::heap::SlotHeap;
use super::locks::is_same;
use super::offset::Offset;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{Waiter, point};
use quipu_medium::LINE;

/// Lines of a record that are asked for ahead; the hardware fetches the rest of a longer one by itself.
const AHEAD: u64 = 4;

/// A record, copied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRecord<'b> {
    /// The key.
    pub key: &'b [u8],
    /// The value.
    pub value: &'b [u8],
    /// The sequence number.
    pub sequence: u64,
}

/// A record or tombstone at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stands {
    /// Its sequence number.
    pub sequence: u64,
    /// Bytes that it takes of its block.
    pub len: u64,
    /// A key was deleted by it.
    pub is_tombstone: bool,
    /// Its value fills blocks of its own.
    pub has_blocks: bool,
}

/// A record in a buffer.
pub(super) struct Copied {
    pub(super) key: u64,
    pub(super) sequence: u64,
}

impl SlotHeap {
    /// Reads the record at an offset that the index gave. `None` if there is none any more: the caller asks
    /// the index again.
    ///
    /// Blocks are reused, so the caller stays pinned to its epoch from its look at the index on; and it
    /// compares the key, since a slot may have been given to another one.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if the bytes there cannot be a record.
    pub fn read<'b>(
        &self,
        offset: Offset,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<SlotRecord<'b>>, SlotError> {
        let Some(page) = self.chunks.page_of(offset) else { return Ok(None) };
        let copied = self.unchanged(&page, || self.copy_record(&page, offset.position(), 0, buffer))?;
        Ok(copied.map(|Copied { key, sequence }| {
            let (key, value) = buffer.split_at(key as usize);
            SlotRecord { key, value, sequence }
        }))
    }

    /// Reads the value of the record at an offset that the index gave, if that is one of `key`, and tells
    /// whether it is. `None` if there is no record any more: the caller, pinned as for
    /// [`read`](SlotHeap::read), asks the index again.
    ///
    /// # Errors
    /// As for [`read`](SlotHeap::read).
    #[inline]
    pub fn read_value(
        &self,
        offset: Offset,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<bool>, SlotError> {
        let Some(page) = self.chunks.page_of(offset) else { return Ok(None) };
        let position = offset.position();
        if self.shape().is_some() {
            return self.unchanged(&page, || Ok(self.copy_value_of_slot(&page, position, key, value)));
        }
        self.unchanged(&page, || {
            let is_key = self.has_key(&page, position, key);
            let skip = if is_key { key.len() as u64 } else { 0 };
            Ok(self.copy_record(&page, position, skip, value)?.map(|_| is_key))
        })
    }

    /// Whether [`read_at_once`](SlotHeap::read_at_once) may succeed: records have one size.
    pub fn reads_at_once(&self) -> bool {
        self.chunks.geometry.shape.is_some()
    }

    /// Copies the value of the record at an offset that the index gave, if one look is enough: nobody changes
    /// its page meanwhile, and it is one of `key`. `false` says nothing, and leaves anything in `value`. The
    /// caller is pinned as for [`read`](SlotHeap::read), and has asked
    /// [`reads_at_once`](SlotHeap::reads_at_once).
    #[inline(always)]
    pub fn read_at_once(&self, offset: Offset, key: &[u8], value: &mut Vec<u8>) -> bool {
        let (Some(shape), Some(Spot { at, lock })) =
            (&self.chunks.geometry.shape, self.chunks.spot_of(offset))
        else {
            return false;
        };
        let slot = offset.position();
        if slot >= shape.count || key.len() as u64 != shape.key {
            return false;
        }
        point();
        let version = lock.load(Ordering::Acquire);
        value.clear();
        let is_read = version.is_multiple_of(2)
            && self.region().append_behind_racing(at + shape.slot(slot), key, shape.value, value)
            && self.is_bit_set(shape, at, slot);
        // The reads before must not be taken for later than this look.
        fence(Ordering::Acquire);
        point();
        is_read && is_same(lock.load(Ordering::Relaxed), version)
    }

    /// Whether the record at an offset that the index gave is one of `key`. `None` if there is no record any
    /// more, as for [`read_value`](SlotHeap::read_value); its value is not looked at.
    ///
    /// # Errors
    /// As for [`read`](SlotHeap::read).
    pub fn is_record_of(&self, offset: Offset, key: &[u8]) -> Result<Option<bool>, SlotError> {
        let Some(page) = self.chunks.page_of(offset) else { return Ok(None) };
        self.unchanged(&page, || {
            let place = self.key_of_record(&page, offset.position())?;
            Ok(place.map(|(at, len)| len == key.len() as u64 && self.region().equals_racing(at, key)))
        })
    }

    /// Reads the key of the record at an offset that the index gave, and tells whether there is a record; its
    /// value is not looked at. The caller is pinned as for [`read`](SlotHeap::read).
    ///
    /// # Errors
    /// As for [`read`](SlotHeap::read).
    pub fn read_key(&self, offset: Offset, key: &mut Vec<u8>) -> Result<bool, SlotError> {
        let Some(page) = self.chunks.page_of(offset) else { return Ok(false) };
        self.unchanged(&page, || {
            let Some((at, len)) = self.key_of_record(&page, offset.position())? else { return Ok(false) };
            key.clear();
            self.region().append_racing(at, len, key);
            Ok(true)
        })
    }

    /// Where the key of the record at a position of a page stands, and its bytes; `None` if there is no
    /// record.
    pub(super) fn key_of_record(&self, page: &Page<'_>, position: u32) -> Result<Option<(u64, u64)>, Damage> {
        if let Some(shape) = &self.chunks.geometry.shape {
            let is_there = self.is_slot_set(page, position) == Some(true);
            return Ok(is_there.then(|| (page.at + shape.slot(position), shape.key)));
        }
        let is_record = |kind| !matches!(kind, EntryKind::Part | EntryKind::Tombstone);
        let entry = self.read_entry(page, position)?.filter(|entry| entry.set && is_record(entry.kind));
        let at = page.at + u64::from(position) * 8 + ENTRY_HEAD;
        Ok(entry.map(|entry| (at, entry.key)))
    }

    /// The result of `look` at a page, repeated until nobody changes the page meanwhile.
    #[inline]
    fn unchanged<T>(
        &self,
        page: &Page<'_>,
        mut look: impl FnMut() -> Result<T, Damage>,
    ) -> Result<T, SlotError> {
        let mut waiter = Waiter::default();
        loop {
            let version = self.version(page);
            if version.is_multiple_of(2) {
                let seen = look();
                if self.is_unchanged(page, version) {
                    return Ok(seen?);
                }
            }
            waiter.wait();
        }
    }

    /// Whether the record at this offset has this key. Does not wait for the page, so it may be asked with a
    /// [`Claim`](super::Claim) at hand, or by an index under its own lock. The answer is right if the index
    /// names the offset all the while.
    #[inline]
    pub fn key_is(&self, offset: Offset, key: &[u8]) -> bool {
        self.chunks.page_of(offset).is_some_and(|page| self.has_key(&page, offset.position(), key))
    }

    #[inline(always)]
    pub(super) fn has_key(&self, page: &Page<'_>, position: u32, key: &[u8]) -> bool {
        let at = match &self.chunks.geometry.shape {
            Some(shape) if shape.key == key.len() as u64 && position < shape.count => {
                page.at + shape.slot(position)
            }
            Some(_) => return false,
            None => match self.read_entry(page, position) {
                Ok(Some(entry)) if entry.key == key.len() as u64 => {
                    page.at + u64::from(position) * 8 + ENTRY_HEAD
                }
                _ => return false,
            },
        };
        self.region().equals_racing(at, key)
    }

    /// Asks for the lines that a read of this record begins with.
    #[inline]
    pub fn prefetch(&self, offset: Offset) {
        let Some(page) = self.chunks.page_of(offset) else { return };
        page.prefetch_lock();
        let at = self.first_byte(&page, offset.position());
        (0..AHEAD).for_each(|line| self.region().prefetch(at + line * LINE));
        self.region().prefetch(page.at);
    }

    /// Prefetches the bytes that a comparison of the record's key, and then its release, look at.
    #[inline]
    pub fn prefetch_to_change(&self, offset: Offset) {
        let Some(page) = self.chunks.page_of(offset) else { return };
        self.region().prefetch(self.first_byte(&page, offset.position()));
        self.region().prefetch(page.at);
        page.prefetch_to_change();
    }

    /// Where the record at a position of a page begins.
    #[inline]
    fn first_byte(&self, page: &Page<'_>, position: u32) -> u64 {
        match &self.chunks.geometry.shape {
            Some(shape) => page.at + shape.slot(position),
            None => page.at + u64::from(position) * 8,
        }
    }

    /// Copies a record out that may be changing, but for its first `skip` bytes, which are of its key.
    /// `Ok(None)` if there is none.
    #[inline]
    pub(super) fn copy_record(
        &self,
        page: &Page<'_>,
        position: u32,
        skip: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Copied>, Damage> {
        if let Some(shape) = &self.chunks.geometry.shape {
            if self.is_slot_set(page, position) != Some(true) {
                return Ok(None);
            }
            let sequence = self.copy_slot(page, position, skip, buffer);
            return Ok(Some(Copied { key: shape.key, sequence }));
        }
        let Some(entry) = self.read_entry(page, position)?.filter(|entry| entry.set) else {
            return Ok(None);
        };
        // It may be another record by now, with a shorter key.
        if entry.key < skip {
            return Ok(None);
        }
        buffer.clear();
        let sequence = self.append_entry(page, position, &entry, skip, buffer);
        if entry.kind == EntryKind::Overflow {
            let (len, blocks) = self.read_descriptor(page, position, &entry)?;
            buffer.truncate((entry.key - skip) as usize);
            self.copy_overflow(len, &blocks, buffer);
        }
        let is_record = !matches!(entry.kind, EntryKind::Part | EntryKind::Tombstone);
        Ok(is_record.then_some(Copied { key: entry.key, sequence }))
    }

    /// The record or tombstone at an offset, if one is marked there.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if that cannot be.
    pub fn stands(&self, offset: Offset) -> Result<Option<Stands>, SlotError> {
        let page = self.page_of(offset)?;
        if let Some(shape) = &self.chunks.geometry.shape {
            let at = page.at + shape.slot(offset.position()) + shape.sequence_at;
            let is_set = self.is_slot_set(&page, offset.position()) == Some(true);
            let sequence = is_set.then(|| self.region().load(at));
            let len = shape.size;
            return Ok(sequence.map(|sequence| Stands {
                sequence,
                len,
                is_tombstone: false,
                has_blocks: false,
            }));
        }
        let entry = self.read_entry(&page, offset.position())?;
        Ok(entry.filter(|entry| entry.set && entry.kind != EntryKind::Part).map(|entry| Stands {
            sequence: self.region().load(page.at + u64::from(offset.position()) * 8 + 8),
            len: entry.record_len(),
            is_tombstone: entry.kind == EntryKind::Tombstone,
            has_blocks: entry.kind == EntryKind::Overflow,
        }))
    }

    /// The kind of block that a page's header says, if it is the header of this page.
    pub(super) fn kind_of(&self, page: &Page<'_>) -> Option<BlockKind> {
        page.kind_of(self.region().load(page.at))
    }
}
