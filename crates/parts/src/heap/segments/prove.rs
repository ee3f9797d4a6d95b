//! The proof of one record at its place, for a reader that the index has led there.
//!
//! A scan proves all records of a segment in their order. A reader has only a reference, and other threads may append to the
//! segment meanwhile; so only the header of the segment, the record, and the frame around it, if it has one, are read.
//!
//! A record of a frame has a check of zero, and nothing in it says where the frame begins. The frame is looked for backwards from
//! the record: whatever is found there that could be a frame around the record has to prove itself.

use super::header::{FIRST_RECORD, Role, SegmentHeader};
use super::log::LogHeap;
use crate::heap::Reference;
use crate::record::{HEADER, Kind, LifeKey, RecordView};
use crate::space::ZoneId;
use zerocopy::{FromZeros, IntoBytes};

impl LogHeap {
    /// The record at a reference, if it proves itself there: by its own check, or by that of the frame around it.
    ///
    /// # Safety
    /// As for [`RecordView::published`]: whatever the reference names is immutable and cannot be reused while the view lives.
    #[cold]
    pub unsafe fn prove(&self, reference: Reference) -> Option<RecordView<'_>> {
        let (zone, offset) = (reference.zone(self.zone_shift()), reference.offset(self.zone_shift()));
        if offset < FIRST_RECORD {
            return None;
        }
        let life = self.proved_life(zone)?;
        // SAFETY: forwarded.
        let bytes = unsafe { self.claimed(zone, offset) }?;
        if let Ok(record) = RecordView::certified(bytes, self.certifier(), life, offset) {
            return (record.kind() != Kind::Frame).then_some(record);
        }
        let is_member = RecordView::member(bytes).is_some_and(|record| record.header.check.get() == 0);
        // SAFETY: forwarded; what stands before a record in its segment was written before it.
        if is_member { unsafe { self.prove_in_frame(zone, life, offset) } } else { None }
    }

    /// What the life of a segment contributes to the checks of its records, if its header proves itself.
    fn proved_life(&self, zone: ZoneId) -> Option<LifeKey> {
        let start = self.space().checked_zone_offset(zone)?;
        let mut header = SegmentHeader::new_zeroed();
        // Another thread may be marking the segment's end.
        self.region().read_racing(start, header.as_mut_bytes());
        header.is_valid(self.certifier(), Role::Segment, zone).then(|| header.life_key(self.certifier()))
    }

    /// As many bytes as the record at this offset of a zone says that it has, if the zone has them.
    ///
    /// # Safety
    /// As for [`prove`](LogHeap::prove).
    unsafe fn claimed(&self, zone: ZoneId, offset: u64) -> Option<&[u8]> {
        let start = self.space().checked_zone_offset(zone)?;
        let room = self.space().zone_size().checked_sub(offset)?;
        let len_of =
            |head: &[u8]| RecordView::stated_len(head).filter(|len| *len <= room).unwrap_or_default();
        // SAFETY: forwarded.
        unsafe { self.region().bytes_sized(start + offset, HEADER, len_of) }
    }

    /// The record at this offset, if a frame around it proves itself.
    ///
    /// # Safety
    /// As for [`prove`](LogHeap::prove).
    unsafe fn prove_in_frame(&self, zone: ZoneId, life: LifeKey, offset: u64) -> Option<RecordView<'_>> {
        let steps = (FIRST_RECORD..=offset.checked_sub(HEADER)?).rev().step_by(8);
        steps.into_iter().find_map(|at| {
            // SAFETY: forwarded.
            let bytes = unsafe { self.claimed(zone, at) }?;
            let is_around = RecordView::legible(bytes).is_some_and(|frame| frame.kind() == Kind::Frame)
                && at + bytes.len() as u64 > offset;
            if !is_around {
                return None;
            }
            let frame = RecordView::certified(bytes, self.certifier(), life, at).ok()?;
            let (mut next, mut rest) = (at + HEADER, frame.value);
            while next < offset {
                let len = RecordView::member(rest)?.header.record_len();
                (next, rest) = (next + len, rest.get(len as usize..)?);
            }
            RecordView::member(rest).filter(|_| next == offset)
        })
    }
}
