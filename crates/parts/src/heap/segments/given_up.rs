//! Segments that were given up, and those that the zone table has lost.
//!
//! A bit in the zone table says whether a zone is in use, and nothing proves that bit. If it is damaged, all records of a segment are gone, and
//! its zone is soon used for others; or a segment that was given up long ago is back, with values that were deleted since.
//!
//! So the header of a segment says the same in its own way: before the bit of a segment is cleared, the check of its header is complemented,
//! durably. From then on the segment holds nothing, whatever the table says.
//!
//! | header | zone in use | free |
//! |---|---|---|
//! | proves itself | a segment | one that a crash has left between its header and its bit, without a record; with one, damage to the table, or a table page newer than the header after a crash of the system |
//! | its check is complemented | a crash has left it between that and the bit: it is freed | it was given up |
//!
//! A pool that an earlier release has written has segments that were given up without this. The superblock remembers the first run
//! that knew of it, and only segments that were opened from then on are judged.

use super::header::{FIRST_RECORD, Role, SegmentHeader};
use super::log::LogHeap;
use crate::record::{RecordError, RecordView};
use crate::space::ZoneId;
use zerocopy::{FromZeros, IntoBytes};

/// Bytes of a header's check.
const CHECK_LEN: u64 = 8;

impl LogHeap {
    /// Complements the check of a segment's header, durably when this returns.
    pub fn give_up(&self, zone: ZoneId) {
        let check = self.space().zone_offset(zone);
        self.region().store(check, !self.region().load(check));
        self.region().persist(check, CHECK_LEN);
    }

    /// Whether a zone was a segment that was given up.
    pub fn is_given_up(&self, zone: ZoneId) -> bool {
        self.header_of(zone).is_given_up(self.certifier(), zone)
    }

    /// Gives the zone of a segment back, durably when this returns, that a crash has left between its header and its bit. After a crash of the
    /// process the header may still be in a cache: it is made durable before the bit is cleared.
    pub fn free_given_up(&self, zone: ZoneId) {
        self.region().persist(self.space().zone_offset(zone), CHECK_LEN);
        self.space().release_zone(zone);
    }

    /// Segments that hold records and whose zones are not in use, as only damage to the zone table leaves them, or a crash of
    /// the system that the durability does not cover. Nobody has taken a zone yet, or appends to one.
    pub fn orphans(&self) -> Vec<ZoneId> {
        let Some(from) = self.space().superblock().marked_from() else { return Vec::new() };
        let zones = (0..self.space().zone_count()).map(ZoneId);
        zones.filter(|zone| !self.space().check_zone(*zone) && self.is_orphan(*zone, from)).collect()
    }

    fn is_orphan(&self, zone: ZoneId, from: u64) -> bool {
        let start = self.space().zone_offset(zone);
        if start + FIRST_RECORD > self.region().len() || !self.region().has_data(start, FIRST_RECORD) {
            return false;
        }
        let header = self.header_of(zone);
        if header.run() < from || !header.is_valid(self.certifier(), Role::Segment, zone) {
            return false;
        }
        let (start, len) = (self.space().zone_offset(zone), self.space().zone_size());
        // SAFETY: nobody writes to the zone, as the caller of `orphans` sees to.
        let bytes = unsafe { self.region().bytes_in_pieces(start + FIRST_RECORD, len - FIRST_RECORD) };
        let life = header.life_key(self.certifier());
        bytes.is_some_and(|bytes| {
            let record = RecordView::certified(bytes, self.certifier(), life, FIRST_RECORD);
            !matches!(record, Err(RecordError::Invalid))
        })
    }

    /// A copy of what stands where a segment's header does; zeros behind the end of a pool that was cut short.
    fn header_of(&self, zone: ZoneId) -> SegmentHeader {
        let mut header = SegmentHeader::new_zeroed();
        let start = self.space().zone_offset(zone);
        if start + FIRST_RECORD <= self.region().len() {
            self.region().read_racing(start, header.as_mut_bytes());
        }
        header
    }
}
