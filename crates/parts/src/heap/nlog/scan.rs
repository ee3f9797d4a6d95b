//! The entries of a file in their order, for recovery, cleaners and checks.
//!
//! A file that a crash has left open has holes: places that were given away, and whose records never arrived
//! whole. Nothing behind the high water was given away. At an invalid place a scan goes on by lines. Most
//! bytes it meets are those of an earlier life, whose records have lower numbers than this one. So they are
//! excluded by a look at their headers, and hardly any is hashed in vain.

use super::links::Entry;
use super::marks::{Mark, read};
use super::place::{Nlog, taken};
use crate::heap::Reference;
use crate::heap::segments::{FIRST_RECORD, ScanError, SegmentInfo};
use crate::record::{Kind, RecordError, RecordView};
use crate::space::ZoneId;
use crate::twin;
use quipu_medium::LINE;
use std::ops::Range;

/// The header of a file, decoded.
#[derive(Clone, Copy, Debug)]
pub struct FileInfo {
    /// Zone, life, and where the records end by the end mark.
    pub segment: SegmentInfo,
    /// The nonce of the life.
    pub nonce: u64,
    /// The cluster that most of its records are of; `None` if the header has lost it.
    pub cluster: Option<u32>,
    /// No record stands behind it.
    pub high_water: u64,
}

impl FileInfo {
    /// Where a scan ends.
    pub fn end(&self) -> u64 {
        self.segment.sealed_end.unwrap_or(self.high_water)
    }
}

/// An item at one place of a file.
pub enum Item<'a> {
    /// A record that was written here in this life, with what parents need of it.
    Record(Entry, RecordView<'a>),
    /// A record that counts no more, or bytes that were covered.
    Void {
        /// Its place.
        reference: Reference,
        /// Bytes that it takes.
        len: u64,
    },
    /// Bytes that are no record: in a sealed file damage, in an open one places whose records never arrived.
    Hole {
        /// Offset in the file.
        offset: u64,
        /// Bytes up to the next item or the end.
        len: u64,
    },
}

/// A walk over a file.
pub struct FileScan<'h, 'b> {
    nlog: Nlog<'h>,
    info: FileInfo,
    bytes: &'b [u8],
    next: u64,
    /// Numbers that records of this pool can have.
    drawn: Range<u64>,
}

impl<'h> Nlog<'h> {
    /// The header of a committed zone.
    ///
    /// # Errors
    /// [`ScanError::Header`] or [`ScanError::EndMark`] if they are damaged.
    ///
    /// # Safety
    /// Nobody changes the header meanwhile.
    pub unsafe fn file_info(self, zone: ZoneId) -> Result<FileInfo, ScanError> {
        // SAFETY: forwarded.
        let segment = unsafe { self.heap.segment_info(zone) }?;
        let (header, life) = self.heap.proved_header(zone).ok_or(ScanError::Header)?;
        let (cluster, high_water) = header.file_words();
        let certifier = self.heap.certifier();
        let zone_size = self.heap.space().zone_size();
        let high_water =
            read(certifier, life, Mark::HighWater, high_water).map(|units| u64::from(units) << 3);
        Ok(FileInfo {
            segment,
            nonce: header.nonce(),
            cluster: read(certifier, life, Mark::Cluster, cluster),
            high_water: high_water
                .filter(|end| (FIRST_RECORD..=zone_size).contains(end))
                .unwrap_or(zone_size),
        })
    }

    /// The life number of the file that a record stands in.
    pub fn life_of(self, reference: Reference) -> u64 {
        self.heap.life_of(reference.zone(self.heap.zone_shift()))
    }

    /// Whether the file that a record stands in has no end yet.
    pub fn is_open(self, reference: Reference) -> bool {
        self.heap.is_written(reference.zone(self.heap.zone_shift()))
    }

    /// The bytes of a file up to its end, in place.
    ///
    /// # Safety
    /// Nobody changes the file while the bytes are borrowed.
    pub unsafe fn bytes_of(self, info: &FileInfo) -> Option<&'h [u8]> {
        let start = self.heap.space().zone_offset(info.segment.zone);
        // SAFETY: forwarded.
        unsafe { self.heap.region().bytes(start, info.end()) }
    }

    /// Copies the bytes of a file up to its end. Others may mark entries meanwhile.
    pub fn copy_of(self, info: &FileInfo, out: &mut Vec<u8>) {
        out.clear();
        let start = self.heap.space().zone_offset(info.segment.zone);
        self.heap.region().append_racing(start, info.end(), out);
    }

    /// A walk over the bytes of a file. `drawn` are the numbers that records of this pool can have.
    pub fn scan<'b>(self, info: &FileInfo, bytes: &'b [u8], drawn: Range<u64>) -> FileScan<'h, 'b> {
        FileScan { nlog: self, info: *info, bytes, next: FIRST_RECORD, drawn }
    }
}

impl<'b> FileScan<'_, 'b> {
    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// [`ScanError::Unknown`] for a record that a newer version wrote.
    pub fn advance(&mut self) -> Result<Option<Item<'b>>, ScanError> {
        let offset = self.next;
        if offset >= self.info.end() {
            return Ok(None);
        }
        if let Some(item) = self.item_at(offset)? {
            return Ok(Some(item));
        }
        let mut resume = offset + LINE;
        while resume < self.info.end() && !(self.is_likely(resume) && self.is_item(resume)) {
            resume += LINE;
        }
        self.next = resume.min(self.info.end());
        Ok(Some(Item::Hole { offset, len: self.next - offset }))
    }

    fn rest(&self, offset: u64) -> &'b [u8] {
        self.bytes.get(offset as usize..self.info.end() as usize).unwrap_or_default()
    }

    /// The item at this place, which the walk then passes.
    fn item_at(&mut self, offset: u64) -> Result<Option<Item<'b>>, ScanError> {
        let SegmentInfo { zone, life, life_number, .. } = self.info.segment;
        let (bytes, certifier) = (self.rest(offset), self.nlog.heap.certifier());
        let reference = Reference::new(zone, offset, self.nlog.heap.zone_shift());
        let proved = RecordView::certified(bytes, certifier, life, offset);
        let stated = RecordView::stated_len(bytes).unwrap_or(0);
        let len = taken(stated);
        let item = match proved {
            Ok(record) if record.kind() == Kind::Void => Item::Void { reference, len },
            Ok(record) => Item::Record(Entry::of(reference, life_number, &record), record),
            Err(RecordError::Unknown { kind, flags }) => {
                return Err(ScanError::Unknown { offset, kind, flags });
            }
            Err(RecordError::Invalid) if RecordView::is_marked(bytes, certifier, life, offset) => {
                Item::Void { reference, len }
            }
            Err(RecordError::Invalid) => return Ok(None),
        };
        self.next = offset + len;
        Ok(Some(item))
    }

    fn is_item(&self, offset: u64) -> bool {
        let (life, certifier) = (self.info.segment.life, self.nlog.heap.certifier());
        let bytes = self.rest(offset);
        !matches!(RecordView::certified(bytes, certifier, life, offset), Err(RecordError::Invalid))
            || RecordView::is_marked(bytes, certifier, life, offset)
    }

    /// Whether the header at a place could be that of a record of this life. It costs no hash.
    fn is_likely(&self, offset: u64) -> bool {
        let Some(header) = RecordView::claimed(self.rest(offset)) else { return false };
        let (sequence, life) = (header.sequence.get(), self.info.segment.life_number);
        self.drawn.contains(&sequence) && (sequence > life || header.is_copy() && !twin!(CopiesUnlikely))
    }
}
