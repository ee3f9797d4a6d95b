//! Pages that are logs: records of any size (section 3.2.3).
//!
//! ```text
//!        0        1        2        3        4        5        6        7
//!    0 | lock    | kind   | zero            | tag                            |
//!    8 | entry: length word (8) | sequence number (8) | key | value | zeros   |
//!      | entry ...                                                           |
//!      | zero word, unless the page is full                                  |
//! ```
//!
//! An entry without its length word, and the zero word behind it, are made durable; then the length word is. So whoever walks
//! the length words finds the end, and nothing that an earlier life has left can be taken for an entry.

use super::change::Cleared;
use super::chunks::Page;
use super::error::Damage;
use super::format::{ENTRY_HEAD, Entry, EntryKind, LOG_START, SET};
use super::geometry::entry_len;
use super::heap::SlotHeap;
use super::place::{Content, Fence};

/// Puts together what stands behind the length word of an entry, and the zero word behind that, if there is room.
fn assemble(scratch: &mut Vec<u8>, sequence: u64, key: &[u8], body: &[u8], room: u64) {
    scratch.clear();
    scratch.extend_from_slice(&sequence.to_le_bytes());
    scratch.extend_from_slice(key);
    scratch.extend_from_slice(body);
    let end = scratch.len().next_multiple_of(8);
    // The length word is 8 bytes of the entry that are not here.
    let zeros = if end as u64 + 8 < room { 8 } else { 0 };
    scratch.resize(end + zeros, 0);
}

impl SlotHeap {
    /// Writes an entry at the end of the log of a page that is held, durably. `tail` is where, with `room` bytes from there.
    pub(super) fn write_entry(
        &self,
        page: &Page<'_>,
        scratch: &mut Vec<u8>,
        (tail, room): (u64, u64),
        content: Content<'_>,
        mut ahead: impl FnMut(Fence),
    ) {
        let Content { kind, key, body, sequence } = content;
        let entry = Entry { kind, key: key.len() as u64, body: body.len() as u64, set: true };
        let at = page.at + tail;
        // Before the fences, since a locked instruction behind one waits for it.
        page.state.add(entry.record_len());
        assemble(scratch, sequence, key, body, room);
        self.region().write(at + 8, scratch);
        self.region().flush(at + 8, scratch.len() as u64);
        ahead(Fence::OfRecord);
        self.region().fence();
        self.region().store(at, entry.word(page.seed, page.place((tail / 8) as u32)));
        self.region().flush(at, 8);
        ahead(Fence::OfMark);
        self.region().fence();
    }

    /// Writes a key at the end of the log of a page that is held, and its value as the first entry of the next page, which
    /// nobody has written to. Durable when this returns.
    pub(super) fn write_continued(
        &self,
        page: &Page<'_>,
        next: &Page<'_>,
        scratch: &mut Vec<u8>,
        (tail, room): (u64, u64),
        content: Content<'_>,
    ) {
        let Content { key, body, sequence, .. } = content;
        let part = Entry { kind: EntryKind::Part, key: 0, body: body.len() as u64, set: true };
        let head = Entry { kind: EntryKind::Continued, key: key.len() as u64, ..part };
        let (at, part_at) = (page.at + tail, next.at + LOG_START);
        page.state.add(head.record_len());
        let pieces: [(u64, &[u8], &[u8], u64); 2] =
            [(part_at, &[], body, self.chunks.geometry.page_size - LOG_START), (at, key, &[], room)];
        for (at, key, body, room) in pieces {
            assemble(scratch, sequence, key, body, room);
            self.region().write(at + 8, scratch);
            self.region().flush(at + 8, scratch.len() as u64);
        }
        self.region().fence();
        // If only one of the words arrives, the part is garbage or its page looks empty; nobody appends to it after a crash.
        self.region().store(part_at, part.word(next.seed, next.place((LOG_START / 8) as u32)));
        self.region().flush(part_at, 8);
        self.region().store(at, head.word(page.seed, page.place((tail / 8) as u32)));
        self.region().persist(at, 8);
    }

    /// The entry at a position of a page, racing with whoever changes it. `Ok(None)` if the log has ended or never came so far.
    ///
    /// # Errors
    /// [`Damage`] if what stands there cannot be one. Who does not hold the page looks at its version first.
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

    /// Copies key and body of an entry out, but for the first `skip` bytes of the key. Returns the sequence number.
    pub(super) fn copy_entry(
        &self,
        page: &Page<'_>,
        position: u32,
        entry: &Entry,
        skip: u64,
        buffer: &mut Vec<u8>,
    ) -> u64 {
        buffer.clear();
        self.append_entry(page, position, entry, skip, buffer)
    }

    /// The same behind what the buffer has.
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
        let next = (page.page + 1) % self.chunks.geometry.pages;
        if entry.kind == EntryKind::Continued
            && let Some(next) = self.chunks.page(page.block, next)
        {
            self.region().append_racing(next.at + LOG_START + ENTRY_HEAD, entry.body, buffer);
        }
        sequence
    }

    /// Counts out the record of an entry of a page that is held; what remains is to clear its set bit. `None` if there is none or
    /// that is clear.
    pub(super) fn count_out_entry(&self, page: &Page<'_>, position: u32) -> Result<Option<Cleared>, Damage> {
        let Some(entry) = self.read_entry(page, position)?.filter(|entry| entry.set) else {
            return Ok(None);
        };
        let at = page.at + u64::from(position) * 8;
        // Nobody frees the block meanwhile: who does takes all its pages before.
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
