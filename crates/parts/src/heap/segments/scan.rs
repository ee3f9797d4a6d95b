//! Reading a segment from its first record to its end: for recovery, cleaners and checks.

use super::header::{self, FIRST_RECORD, Role, SegmentHeader};
use super::log::LogHeap;
use crate::heap::Reference;
use crate::record::{Content, Encoder, HEADER, Kind, LENGTHS, LifeKey, RecordError, RecordView};
use crate::space::ZoneId;
use std::ops::Range;
use zerocopy::FromBytes;

/// An item at one place of a segment.
pub enum Found<'a> {
    /// A record that was written here in this life: one of its own, or one of a frame.
    Record {
        /// Its reference.
        reference: Reference,
        /// The record.
        record: RecordView<'a>,
    },
    /// The head of a frame, whose records follow; its [`HEADER`] bytes were never live.
    Frame {
        /// Its reference.
        reference: Reference,
        /// Its sequence number, the highest of its records'.
        sequence: u64,
    },
    /// Bytes before the end mark that are no record: damage.
    Gap {
        /// Offset in the segment.
        offset: u64,
        /// Bytes up to the next valid record or the end mark.
        len: u64,
    },
}

/// The result of a search behind invalid bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastHole {
    /// The walk stands before a record that proves itself.
    Record,
    /// Nothing proves itself up to the end of the zone.
    Nothing,
    /// Too many bytes looked like records: the rest is unknown.
    Unclear,
}

/// Why a committed zone cannot be read as a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanError {
    /// The header does not prove itself.
    Header,
    /// The end mark does not prove itself.
    EndMark,
    /// A record of a kind that only newer versions know.
    Unknown {
        /// Offset in the segment.
        offset: u64,
        /// Its kind byte.
        kind: u8,
        /// Its flag byte.
        flags: u8,
    },
}

/// The header of a segment, decoded.
#[derive(Clone, Copy, Debug)]
pub struct SegmentInfo {
    /// The zone.
    pub zone: ZoneId,
    /// The life number.
    pub life_number: u64,
    /// Its contribution to checks.
    pub life: LifeKey,
    /// Where the records end by the end mark; `None` while open.
    pub sealed_end: Option<u64>,
}

/// The place that a walk has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    next: u64,
    /// Where the last frame ends. Before that, its records follow.
    frame_end: u64,
}

impl Position {
    /// Before the first record.
    pub const START: Position = Position { next: FIRST_RECORD, frame_end: 0 };
}

/// A walk over a segment's records in the order they were written.
pub struct Scan<'a> {
    pub(super) heap: &'a LogHeap,
    pub(super) info: SegmentInfo,
    bytes: &'a [u8],
    position: Position,
    past_holes: bool,
    live_only: bool,
}

impl LogHeap {
    /// Starts a walk over a committed zone's segment.
    ///
    /// # Errors
    /// [`ScanError::Header`] or [`ScanError::EndMark`] if they are damaged.
    ///
    /// # Safety
    /// Nobody appends to the segment or reuses its zone while the walk's borrows live.
    pub unsafe fn scan(&self, zone: ZoneId) -> Result<Scan<'_>, ScanError> {
        // SAFETY: forwarded.
        let (header, bytes) = unsafe { self.header(zone, self.space().zone_size()) }?;
        Ok(Scan::new(self, self.info_of(zone, header, bytes.len() as u64)?, bytes))
    }

    /// The header of a committed zone's segment; nothing else is read.
    ///
    /// # Errors
    /// As for [`scan`](LogHeap::scan).
    ///
    /// # Safety
    /// Nobody changes the header meanwhile.
    pub unsafe fn segment_info(&self, zone: ZoneId) -> Result<SegmentInfo, ScanError> {
        // SAFETY: forwarded; nothing else is borrowed.
        let (header, _) = unsafe { self.header(zone, FIRST_RECORD) }?;
        self.info_of(zone, header, self.space().zone_size())
    }

    fn info_of(&self, zone: ZoneId, header: &SegmentHeader, len: u64) -> Result<SegmentInfo, ScanError> {
        let life = header.life_key(self.certifier());
        let sealed_end = header::read_end_mark(self.certifier(), life, header.end_mark())
            .map_err(|()| ScanError::EndMark)?;
        if sealed_end.is_some_and(|end| !(FIRST_RECORD..=len).contains(&end)) {
            return Err(ScanError::EndMark);
        }
        Ok(SegmentInfo { zone, life_number: header.life(), life, sealed_end })
    }

    /// Starts a walk over all records that can be proved in a segment whose end mark is damaged.
    ///
    /// # Errors
    /// [`ScanError::Header`] if the header is damaged.
    ///
    /// # Safety
    /// As for [`scan`](LogHeap::scan).
    pub unsafe fn scan_without_end(&self, zone: ZoneId) -> Result<Scan<'_>, ScanError> {
        // SAFETY: forwarded.
        let (header, bytes) = unsafe { self.header(zone, self.space().zone_size()) }?;
        let life = header.life_key(self.certifier());
        let info = SegmentInfo { zone, life_number: header.life(), life, sealed_end: None };
        Ok(Scan::new(self, info, bytes).past_holes())
    }

    /// The header of a segment, and the first `len` bytes of its zone.
    ///
    /// # Safety
    /// As for [`scan`](LogHeap::scan).
    unsafe fn header(&self, zone: ZoneId, len: u64) -> Result<(&SegmentHeader, &[u8]), ScanError> {
        let start = self.space().zone_offset(zone);
        // Of a truncated pool, the part of the zone that is left.
        let len = len.min(self.region().len().saturating_sub(start));
        // SAFETY: the caller rules out writers of this zone.
        let bytes = unsafe { self.region().bytes_in_pieces(start, len) }.ok_or(ScanError::Header)?;
        self.region().note_read(start, FIRST_RECORD.min(len));
        let (header, _) = SegmentHeader::ref_from_prefix(bytes).map_err(|_| ScanError::Header)?;
        let is_valid = header.is_valid(self.certifier(), Role::Segment, zone);
        if is_valid { Ok((header, bytes)) } else { Err(ScanError::Header) }
    }

    /// Makes the records that recovery found in open segments durable, each up to its end, and marks the
    /// ends. The bytes are flushed first: after a crash of the process they may be only in a cache, and a
    /// mark must not become durable before the records that it vouches for.
    pub fn seal_recovered(&self, open: &[(SegmentInfo, u64)]) {
        for (info, end) in open {
            self.region().flush(self.space().zone_offset(info.zone), *end);
        }
        self.region().fence();
        for (info, end) in open {
            self.seal_at(self.space().zone_offset(info.zone), info.life, *end);
        }
        self.region().fence();
    }

    /// Starts to write back the header and the end mark of a segment, which a crash of the process may have
    /// left in a cache. Durable with the next fence.
    pub fn confirm(&self, info: &SegmentInfo) {
        self.region().flush(self.space().zone_offset(info.zone), FIRST_RECORD);
    }

    /// Whether a gap has room for the record that would cover it. A smaller gap does not come from lost
    /// records.
    pub fn can_cover(len: u64) -> bool {
        len >= HEADER
    }

    /// Covers bytes before the end of a segment's records, lost or never finished, with a void record, so
    /// that later scans skip them. Recovery has skipped them before. Durable with the next fence. The gap
    /// [can be covered](LogHeap::can_cover).
    pub fn cover(&self, info: &SegmentInfo, offset: u64, len: u64) {
        self.cover_at(info.zone, info.life, offset, len);
    }

    /// The same for a place of a zone that has this life.
    pub(in crate::heap) fn cover_at(&self, zone: ZoneId, life: LifeKey, offset: u64, len: u64) {
        let start = self.space().zone_offset(zone);
        let sequence = self.draw();
        let mut encoder = Encoder::default();
        let zeros = vec![0; (len - HEADER) as usize];
        let void = Content { kind: Kind::Void, ..Content::value(b"", &zeros) };
        let certifier = self.certifier();
        if certifier.is_of_headers_alone() {
            encoder.prepare_by_header(certifier, life, offset, &void);
        } else {
            encoder.prepare(certifier, life, offset, &void);
        }
        encoder.stamp(sequence);
        self.region().write_nt(start + offset, certifier.proved_part(encoder.record()));
    }
}

impl<'a> Scan<'a> {
    fn new(heap: &'a LogHeap, info: SegmentInfo, bytes: &'a [u8]) -> Scan<'a> {
        let readable = || bytes.len().min(heap.readable_len(info.zone) as usize);
        let bytes = if info.sealed_end.is_some() { bytes } else { &bytes[..readable()] };
        Scan { heap, info, bytes, position: Position::START, past_holes: false, live_only: false }
    }

    /// Treats an invalid record of an open segment as a gap too, if a valid record follows anywhere. For a
    /// pool whose pages reached the disk in any order, so that the first invalid record need not be the tail.
    pub fn past_holes(self) -> Scan<'a> {
        Scan { past_holes: true, ..self }
    }

    /// Skips records that the heap [knows to be dead](LogHeap::is_dead), for a cleaner. Their bytes are not
    /// proved, so damage in their keys and values goes unnoticed. All other records are proved, and damage
    /// never hides one: a length that leads beyond the dead bytes is reported as a [`Gap`](Found::Gap).
    pub fn live_only(self) -> Scan<'a> {
        Scan { live_only: true, ..self }
    }

    /// Continues where an earlier walk over the segment stood.
    pub fn from(self, position: Position) -> Scan<'a> {
        Scan { position, ..self }
    }

    /// The decoded header.
    pub fn info(&self) -> SegmentInfo {
        self.info
    }

    /// The place that the walk has reached.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Offset of the next item; after the walk has ended, the end of the records.
    pub fn offset(&self) -> u64 {
        self.position.next
    }

    /// The end of the records, or an upper bound of it.
    fn end(&self) -> u64 {
        self.info.sealed_end.unwrap_or(self.bytes.len() as u64)
    }

    pub(super) fn ahead(&self) -> Option<&'a [u8]> {
        self.bytes.get(self.offset() as usize..self.end() as usize)
    }

    /// Skips a record of so many bytes that is [ahead](Scan::ahead), of which only the lengths were read.
    pub(super) fn pass_over(&mut self, len: u64) {
        self.note_read(self.offset() + LENGTHS.start, LENGTHS.end - LENGTHS.start);
        self.position.next += len;
    }

    /// Accounts for a read of bytes of the segment.
    fn note_read(&self, offset: u64, len: u64) {
        self.heap.region().note_read(self.heap.space().zone_offset(self.info.zone) + offset, len);
    }

    fn here(&self) -> Reference {
        Reference::new(self.info.zone, self.offset(), self.heap.zone_shift())
    }

    /// The unproved record here, if the bytes look like one.
    pub fn legible(&self) -> Option<(Reference, RecordView<'a>)> {
        RecordView::legible(self.ahead()?).map(|record| (self.here(), record))
    }

    /// Skips invalid bytes, up to the next record that proves itself, if this version knows its kind. The
    /// author of the bytes decides how much of them looks like records with numbers of `drawn`. At most
    /// `effort` bytes of those are proved, and `effort` falls by them. When it is used up, only the end that
    /// the record here claims is still tried.
    pub fn pass_hole(&mut self, drawn: &Range<u64>, effort: &mut u64) -> PastHole {
        let (start, end) = (self.offset(), self.end());
        let claimed = |offset| {
            let header = RecordView::claimed(self.bytes.get(offset as usize..end as usize)?)?;
            drawn.contains(&header.sequence.get()).then(|| header.record_len())
        };
        let is_record = |offset| !matches!(self.certified(offset, end), Err(RecordError::Invalid));
        let mut found = PastHole::Nothing;
        for offset in (start + 8..end).step_by(8) {
            let Some(len) = claimed(offset) else { continue };
            let Some(rest) = effort.checked_sub(len) else {
                found = PastHole::Unclear;
                break;
            };
            *effort = rest;
            if is_record(offset) {
                self.position.next = offset;
                return PastHole::Record;
            }
        }
        if found == PastHole::Unclear
            && let Some(behind) = claimed(start).map(|len| start + len).filter(|behind| is_record(*behind))
        {
            self.position.next = behind;
            return PastHole::Record;
        }
        found
    }

    fn certified(&self, offset: u64, end: u64) -> Result<RecordView<'a>, RecordError> {
        let bytes = self.bytes.get(offset as usize..end as usize).unwrap_or_default();
        RecordView::certified(bytes, self.heap.certifier(), self.info.life, offset)
    }

    /// The next record or gap; `None` at the end (the end mark, or the first invalid record of an open
    /// segment).
    ///
    /// # Errors
    /// [`ScanError::Unknown`] for a record that a newer version wrote.
    #[inline]
    pub fn advance(&mut self) -> Result<Option<Found<'a>>, ScanError> {
        while self.live_only {
            self.skip_dead();
            match self.prove()? {
                // It may have died just now, or is one of a frame that other records keep.
                Some(Found::Record { reference, .. }) if self.heap.is_dead(reference) => {}
                found => return Ok(found),
            }
        }
        self.prove()
    }

    #[inline]
    fn prove(&mut self) -> Result<Option<Found<'a>>, ScanError> {
        let Position { next: offset, frame_end } = self.position;
        if offset < frame_end {
            return match RecordView::member(&self.bytes[offset as usize..frame_end as usize]) {
                Some(record) => Ok(Some(self.pass(record))),
                None => Err(ScanError::Unknown { offset, kind: Kind::Frame as u8, flags: 0 }),
            };
        }
        let end = self.end();
        if offset >= end {
            return Ok(None);
        }
        let found = self.certified(offset, end);
        self.note_read(
            offset,
            found.as_ref().map_or(HEADER, |record| record.header.record_len()).min(end - offset),
        );
        match found {
            Ok(frame) if frame.kind() == Kind::Frame => {
                let reference = self.here();
                self.position =
                    Position { next: offset + HEADER, frame_end: offset + frame.header.record_len() };
                Ok(Some(Found::Frame { reference, sequence: frame.header.sequence.get() }))
            }
            Ok(record) => Ok(Some(self.pass(record))),
            Err(RecordError::Unknown { kind, flags }) => Err(ScanError::Unknown { offset, kind, flags }),
            Err(RecordError::Invalid) if self.info.sealed_end.is_none() && !self.past_holes => Ok(None),
            Err(RecordError::Invalid) => {
                let mut resume = offset + 8;
                while resume < end && matches!(self.certified(resume, end), Err(RecordError::Invalid)) {
                    resume += 8;
                }
                if resume >= end && self.info.sealed_end.is_none() {
                    return Ok(None);
                }
                self.position.next = resume;
                Ok(Some(Found::Gap { offset, len: resume - offset }))
            }
        }
    }

    /// The record at this place; the walk continues behind it.
    #[inline]
    fn pass(&mut self, record: RecordView<'a>) -> Found<'a> {
        let reference = self.here();
        self.position.next += record.header.record_len();
        Found::Record { reference, record }
    }
}
