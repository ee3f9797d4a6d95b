//! Reading without a lock (section 4.3): copy, and look whether the page has changed meanwhile.
//!
//! Bytes are copied out, since they may change under any reference. What is copied while the page changes may be anything; it
//! is only believed, and only called damaged, once the version has been found unchanged.

use super::chunks::Page;
use super::error::{Damage, SlotError};
use super::format::{BlockKind, EntryKind, read_page_word};
use super::heap::SlotHeap;
use super::offset::Offset;
use crate::sync::Waiter;

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

/// A record in a buffer.
pub(super) struct Copied {
    pub(super) key: u64,
    pub(super) sequence: u64,
}

impl SlotHeap {
    /// Reads the record at an offset that the index gave. `None` if there is none any more: the caller asks the index again.
    ///
    /// Blocks are reused, so the caller stays pinned to its epoch from its look at the index on; and it compares the key,
    /// since a slot may have been given to another one.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if what is there cannot be a record.
    pub fn read<'b>(
        &self,
        offset: Offset,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<SlotRecord<'b>>, SlotError> {
        let Some(page) = self.chunks.page_of(offset) else { return Ok(None) };
        let mut waiter = Waiter::default();
        let copied = loop {
            let version = self.version(&page);
            if version.is_multiple_of(2) {
                let copied = self.copy_record(&page, offset.position(), buffer);
                if self.is_unchanged(&page, version) {
                    break copied?;
                }
            }
            waiter.wait();
        };
        Ok(copied.map(|Copied { key, sequence }| {
            let (key, value) = buffer.split_at(key as usize);
            SlotRecord { key, value, sequence }
        }))
    }

    /// Whether the record at this offset has this key. Does not wait for whoever has the page, so it may be asked with a
    /// [`Placed`](super::Placed) record at hand, or by an index under its own lock. The answer is right if the index names the
    /// offset all the while.
    pub fn key_is(&self, offset: Offset, key: &[u8]) -> bool {
        let Some(page) = self.chunks.page_of(offset) else { return false };
        let at = match self.shape() {
            Some(shape) if shape.key == key.len() as u64 && offset.position() < shape.count => {
                page.at + shape.slot(offset.position())
            }
            Some(_) => return false,
            None => match self.read_entry(&page, offset.position()) {
                Ok(Some(entry)) if entry.key == key.len() as u64 => {
                    page.at + u64::from(offset.position()) * 8 + super::format::ENTRY_HEAD
                }
                _ => return false,
            },
        };
        const PIECE: usize = 64;
        let mut piece = [0; PIECE];
        key.chunks(PIECE).zip((at..).step_by(PIECE)).all(|(part, at)| {
            let copy = &mut piece[..part.len()];
            self.region().read_racing(at, copy);
            copy == part
        })
    }

    /// Copies a record out that may be changing. `Ok(None)` if there is none.
    pub(super) fn copy_record(
        &self,
        page: &Page<'_>,
        position: u32,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Copied>, Damage> {
        if let Some(shape) = self.shape() {
            if self.is_slot_set(page, position) != Some(true) {
                return Ok(None);
            }
            let sequence = self.copy_slot(page, position, buffer);
            return Ok(Some(Copied { key: shape.key, sequence }));
        }
        let Some(entry) = self.read_entry(page, position)?.filter(|entry| entry.set) else {
            return Ok(None);
        };
        let sequence = self.copy_entry(page, position, &entry, buffer);
        if entry.kind == EntryKind::Overflow {
            let (len, blocks) = self.read_descriptor(page, position, &entry)?;
            buffer.truncate(entry.key as usize);
            self.copy_overflow(len, &blocks, buffer);
        }
        let is_record = entry.kind != EntryKind::Part;
        Ok(is_record.then_some(Copied { key: entry.key, sequence }))
    }

    /// What the header of a page says that its block is for, if it is one of this page.
    pub(super) fn kind_of(&self, page: &Page<'_>) -> Option<BlockKind> {
        read_page_word(self.region().load(page.at), page.tag())
    }
}
