//! Pages that are logs: records of any size (section 3.2.3).
//!
//! An entry without its length word, and the zero word behind it, are made durable; then the length word is.
//! So a walk over the length words finds the end, and no leftover of an earlier life can be taken for an
//! entry.

use super::change::Cleared;
use super::chunks::Page;
use super::error::Damage;
use super::format::{ENTRY_HEAD, Entry, EntryKind, LOG_START, SET};
use super::geometry::entry_len;
use super::heap::SlotHeap;
use super::place::{Claim, Record};

/// Puts together the bytes behind the length word of an entry, and the zero word behind these, if there is
/// room.
fn assemble(scratch: &mut Vec<u8>, record: Record<'_>, room: u64) {
    scratch.clear();
    scratch.extend_from_slice(&record.sequence.to_le_bytes());
    scratch.extend_from_slice(record.key);
    scratch.extend_from_slice(record.value);
    let end = scratch.len().next_multiple_of(8);
    // The length word is 8 bytes of the entry that are not here.
    let zeros = if end as u64 + 8 < room { 8 } else { 0 };
    scratch.resize(end + zeros, 0);
}

impl<'h> Claim<'h, '_> {
    /// Writes an entry but its length word, without which it does not count; of one that continues, both
    /// parts. Durable with the next fence.
    #[inline]
    pub(super) fn write_entry(&mut self, entry: &Entry, record: Record<'_>) {
        let (heap, page) = (self.guard.heap(), &self.guard.page);
        if entry.kind == EntryKind::Tombstone
            && let Some(dead) = heap.chunks.dead(page.block)
        {
            dead.note_tombstone(entry.len(), record.sequence);
        }
        // Before the fences, since a locked instruction behind one waits for it.
        page.state.add(entry.record_len());
        let (large, tail) = (page.state.is_large(), self.tail());
        let room = heap.chunks.geometry.log_len(large) - tail;
        if entry.kind == EntryKind::Continued {
            let (next, next_room) = (self.next_page(), heap.chunks.geometry.page_size - LOG_START);
            let buffer = &mut self.owner.pen.buffer;
            heap.write_body(next.at + LOG_START, next_room, buffer, Record { key: &[], ..record });
            heap.write_body(page.at + tail, room, buffer, Record { value: &[], ..record });
            return;
        }
        heap.write_body(page.at + tail, room, &mut self.owner.pen.buffer, record);
        self.owner.grow_tail(large, entry.len());
    }

    /// Writes the length word of an entry that is durable, so that it counts. Durable with the next fence.
    #[inline]
    pub(super) fn mark_entry(&mut self, entry: &Entry) {
        let (region, page) = (self.guard.heap().region(), &self.guard.page);
        if entry.kind == EntryKind::Continued {
            // If only one of the words arrives, the part is garbage or its page looks empty; nobody appends
            // to it after a crash.
            let (next, part) = (self.next_page(), Entry { kind: EntryKind::Part, key: 0, ..*entry });
            region.store(next.at + LOG_START, part.word(next.seed, next.place(FIRST_ENTRY)));
            region.flush(next.at + LOG_START, 8);
        }
        let at = page.at + self.tail();
        region.store(at, entry.word(page.seed, page.place(self.offset().position())));
        region.flush(at, 8);
    }

    /// Where the entry begins in its page.
    #[inline]
    fn tail(&self) -> u64 {
        u64::from(self.offset().position()) * 8
    }

    /// The page where the entry continues, which nobody has written to.
    fn next_page(&self) -> Page<'h> {
        self.guard.heap().next_page(&self.guard.page).expect("a claimed entry continues in its own block")
    }
}

impl SlotHeap {
    /// Writes the bytes behind a length word, with `room` bytes from that word to the end of the page.
    fn write_body(&self, at: u64, room: u64, scratch: &mut Vec<u8>, record: Record<'_>) {
        assemble(scratch, record, room);
        self.region().write(at + 8, scratch);
        self.region().flush(at + 8, scratch.len() as u64);
    }

    /// The page behind this one in its block, which is the first behind the last.
    pub(super) fn next_page(&self, page: &Page<'_>) -> Option<Page<'_>> {
        self.chunks.page(page.block, (page.page + 1) % self.chunks.geometry.pages)
    }

    /// The entry at a position of a page, racing with its changes. `Ok(None)` if the log has ended or never
    /// came so far.
    ///
    /// # Errors
    /// [`Damage`] if the bytes there cannot be an entry. A caller that does not hold the page looks at its
    /// version first.
    pub(super) fn read_entry(&self, page: &Page<'_>, position: u32) -> Result<Option<Entry>, Damage> {
        let (large, start) = (page.state.is_large(), u64::from(position) * 8);
        let len = self.chunks.geometry.log_len(large);
        if start < LOG_START || start + ENTRY_HEAD > len || (large && page.page != 0) {
            return Ok(None);
        }
        let at = page.at + start;
        let entry = Entry::read(self.region().load(at), page.seed, page.place(position), (at, len - start))?;
        match entry {
            Some(Entry { kind: EntryKind::Continued, body, .. })
                if !self.chunks.geometry.fits(false, entry_len(0, body)) =>
            {
                Err(Damage { what: "the length of a record", offset: at })
            }
            entry => Ok(entry),
        }
    }

    /// Appends key and body of an entry to the buffer, except for the first `skip` bytes of the key. Returns
    /// the sequence number.
    pub(super) fn append_entry(
        &self,
        page: &Page<'_>,
        position: u32,
        entry: &Entry,
        skip: u64,
        buffer: &mut Vec<u8>,
    ) -> u64 {
        let at = page.at + u64::from(position) * 8;
        let sequence = self.region().load(at + 8);
        self.region().append_racing(at + ENTRY_HEAD + skip, entry.key + entry.inline_body() - skip, buffer);
        if entry.kind == EntryKind::Continued
            && let Some(next) = self.next_page(page)
        {
            self.region().append_racing(next.at + LOG_START + ENTRY_HEAD, entry.body, buffer);
        }
        sequence
    }

    /// Counts out the record of an entry of a page that is held; the caller then clears its set bit. `None`
    /// if there is none or the bit is clear.
    pub(super) fn count_out_entry(&self, page: &Page<'_>, position: u32) -> Result<Option<Cleared>, Damage> {
        let Some(entry) = self.read_entry(page, position)?.filter(|entry| entry.set) else {
            return Ok(None);
        };
        let at = page.at + u64::from(position) * 8;
        // The block is not freed meanwhile: that takes all its pages before.
        page.state.remove(entry.record_len());
        Ok(Some(Cleared { at, word: self.region().load(at) & !SET }))
    }

    /// The position behind an entry.
    pub(super) fn behind(position: u32, entry: &Entry) -> u32 {
        position + (entry.len() / 8) as u32
    }
}

/// The position of the first entry of a log.
pub(super) const FIRST_ENTRY: u32 = (LOG_START / 8) as u32;
