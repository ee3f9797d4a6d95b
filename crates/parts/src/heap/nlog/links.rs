//! Parents: how a record names the one of its key before it, and how a cleaner follows the names.
//!
//! The word of a parent is its place and 16 bits of the nonce of its file. The place may have been given away
//! again since. So a name is never believed, but proved: the record there must prove itself under the life
//! that the zone has now, have the same key, and have a lower number. The original of a copy has the same
//! number. Then it is superseded, whichever file it is in. The 16 bits only save most readings of the others.
//!
//! Other cleaners mark entries meanwhile. So entries are proved from copies of their bytes.

use super::place::Nlog;
use crate::heap::Reference;
use crate::heap::segments::{FIRST_RECORD, SegmentHeader};
use crate::record::{HEADER, LifeKey, RecordView};
use crate::space::ZoneId;
use crate::sync::atomic::Ordering;
use crate::twin;

const GENERATION_BITS: u32 = 16;

/// A valid entry of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub reference: Reference,
    /// Its number.
    pub sequence: u64,
    /// The word of its parent; 0 for none.
    pub parent: u64,
    /// Its parent is its original.
    pub is_copy: bool,
    /// The life number of its file.
    pub(super) life: u64,
    /// Its check, which a mark replaces.
    pub(super) check: u64,
}

/// The findings before an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing: it has no parent, or its parent is gone.
    Nothing,
    /// Its parent is marked, which may not be durable yet.
    Marked(Reference),
    /// Its parent.
    Entry(Entry),
}

impl Entry {
    /// The entry of a record that proves itself in this life.
    pub fn of(reference: Reference, life: u64, record: &RecordView<'_>) -> Entry {
        Entry {
            reference,
            life,
            sequence: record.header.sequence.get(),
            parent: record.parent(),
            is_copy: record.header.is_copy(),
            check: record.header.check.get(),
        }
    }
}

/// The place that the word of a parent names; `None` for the word of none.
fn place_of_parent(word: u64) -> Option<Reference> {
    (word != 0).then(|| Reference::from_word(word >> GENERATION_BITS))
}

impl Nlog<'_> {
    /// The word by which a record names this one as its parent. The caller is pinned, so the zone keeps its
    /// life.
    #[inline]
    pub fn parent_word(self, reference: Reference) -> u64 {
        let zone = reference.zone(self.heap.zone_shift());
        let generation = self.file(zone).generation.load(Ordering::Relaxed);
        reference.with_tag(0).word() << GENERATION_BITS | u64::from(generation)
    }

    /// Proves what an entry of this key names as its parent. The caller has been pinned since before it read
    /// the entry. `buffer` is for the bytes of the parent.
    pub fn before(self, child: &Entry, key: &[u8], buffer: &mut Vec<u8>) -> Before {
        let Some(reference) = place_of_parent(child.parent) else { return Before::Nothing };
        let shift = self.heap.zone_shift();
        let (zone, offset) = (reference.zone(shift), reference.offset(shift));
        let Some(start) = self.heap.space().checked_zone_offset(zone) else { return Before::Nothing };
        let Some((life_number, life)) = self.life_named(child.parent) else { return Before::Nothing };
        let room = self.heap.space().zone_size() - offset;
        if room < HEADER {
            return Before::Nothing;
        }
        let mut head = [0; HEADER as usize];
        self.heap.region().read_racing(start + offset, &mut head);
        let Some(len) = RecordView::stated_len(&head).filter(|len| *len <= room) else {
            return Before::Nothing;
        };
        buffer.clear();
        self.heap.region().append_racing(start + offset, len, buffer);
        // The header was read first. So the bytes may be those of a later life, which a check of the header
        // alone does not notice. Their parent then supersedes this record, and has no lower number than it.
        buffer[..HEADER as usize].copy_from_slice(&head);
        let certifier = self.heap.certifier();
        match RecordView::certified(buffer, certifier, life, offset) {
            Ok(record) if record.key == key || twin!(ParentByPlace) => {
                let parent = Entry::of(reference, life_number, &record);
                if twin!(ParentByPlace) || self.is_parent_of(&parent, child) {
                    Before::Entry(parent)
                } else {
                    Before::Nothing
                }
            }
            Ok(_) => Before::Nothing,
            Err(_) if RecordView::is_marked(buffer, certifier, life, offset) => Before::Marked(reference),
            Err(_) => Before::Nothing,
        }
    }

    /// The life of the file that the word of a parent names, if its zone still has that.
    fn life_named(self, word: u64) -> Option<(u64, LifeKey)> {
        let zone = place_of_parent(word)?.zone(self.heap.zone_shift());
        let (header, life) = self.header_in_use(zone)?;
        let generation = word & ((1 << GENERATION_BITS) - 1);
        let is_named = u64::from(header.nonce() as u16) == generation;
        (is_named || twin!(ParentByPlace)).then_some((header.life(), life))
    }

    /// The header of a file. If there is none, its last life has durably ended.
    fn header_in_use(self, zone: ZoneId) -> Option<(SegmentHeader, LifeKey)> {
        // A free zone may have given its storage back, and one that was just taken may have none yet.
        let region = self.heap.region();
        let has_data = |start| region.has_data(start, FIRST_RECORD);
        let is_hole =
            region.reads_take_storage() && !self.heap.space().checked_zone_offset(zone).is_some_and(has_data);
        let proved = if is_hole { None } else { self.heap.proved_header(zone) };
        if proved.is_none() && !twin!(EndsUnawaited) {
            // A cleaner that frees the file takes the proof away before that is durable.
            self.heap.wait_for_ends();
        }
        proved
    }

    /// Whether this entry is a copy of the other one, which has its key and its number.
    pub fn is_copy_of(self, copy: &Entry, original: &Entry) -> bool {
        let names =
            |one: &Entry, other: &Entry| one.is_copy && one.parent == self.parent_word(other.reference);
        // A copy may stand where the original of its original stood once, under a life with the same bits.
        // Then each of the two names the other, and the one in the younger life is the copy.
        names(copy, original) && !(names(original, copy) && original.life > copy.life)
    }

    /// Whether an entry that has the child's key, and that the child names, was there before it.
    pub(super) fn is_parent_of(self, parent: &Entry, child: &Entry) -> bool {
        if !child.is_copy {
            return parent.sequence < child.sequence;
        }
        parent.sequence == child.sequence && self.is_copy_of(child, parent)
    }

    /// Marks an entry: it counts no more, but its length stays legible. Durable with the next fence.
    ///
    /// Another cleaner may free its file at this moment. If the zone has another life, or none, that is
    /// durable, and there is nothing to mark. Nor does a mark harm if the zone is reopened after that look:
    /// the swap finds the old check only where the new life has not written yet.
    pub fn mark(self, entry: &Entry) {
        let Some(life) = self.life_of_entry(entry) else { return };
        let at = self.heap.resolve(entry.reference);
        let mut head = [0; HEADER as usize];
        self.heap.region().read_racing(at, &mut head);
        let offset = entry.reference.offset(self.heap.zone_shift());
        let marked = RecordView::mark_of(&head, self.heap.certifier(), life, offset);
        // Only another mark can have come first.
        let _ = self.heap.region().compare_exchange(at, entry.check, marked);
        if !twin!(MarkUnflushed) {
            self.heap.region().flush(at, size_of_val(&marked) as u64);
        }
    }

    /// Makes the mark of another thread, or of an earlier run, durable with the next fence.
    pub fn help(self, marked: Reference) {
        self.heap.region().flush(self.heap.resolve(marked), size_of::<u64>() as u64);
    }

    /// The key of the life in which an entry was proved, if its zone still has that.
    fn life_of_entry(self, entry: &Entry) -> Option<LifeKey> {
        let (header, life) = self.header_in_use(self.zone_of(entry.reference))?;
        (header.life() == entry.life).then_some(life)
    }
}
