//! Freed segments, and segments that the zone table has lost.
//!
//! A bit in the zone table tells whether a zone is in use, and nothing proves that bit. Damage to it can lose
//! all records of a segment, whose zone is soon used for others. Or it can revive a segment that was freed
//! long ago, with values that have been deleted since.
//!
//! So the header of a segment repeats the bit in its own way. Before the bit of a segment is cleared, the
//! check of its header is complemented, durably. From then on the segment holds nothing, in spite of the
//! table.
//!
//! | header | zone in use | free |
//! |---|---|---|
//! | proves itself | a segment | see below |
//! | its check is complemented | a crash came before the bit was cleared: it is freed | a freed segment |
//!
//! A free zone with a header that proves itself, and without a record, was being opened at a crash. With a
//! record, the table is damaged, or a crash of the system lost a newer page of it.

use super::header::{FIRST_RECORD, Role, SegmentHeader};
use super::log::LogHeap;
use crate::record::{RecordError, RecordView};
use crate::space::ZoneId;
use zerocopy::{FromZeros, IntoBytes};

const CHECK_LEN: u64 = 8;

impl LogHeap {
    /// Complements the check of a segment's header, durably when this returns. The segment may have no
    /// storage beside its records.
    pub fn give_up(&self, zone: ZoneId) {
        let check = self.space().zone_offset(zone);
        self.region().overwrite(check, !self.region().load(check));
        self.region().persist(check, CHECK_LEN);
    }

    /// Whether a zone is a segment that was freed.
    pub fn is_given_up(&self, zone: ZoneId) -> bool {
        self.header_of(zone).is_given_up(self.certifier(), zone)
    }

    /// Frees the zone of a segment whose header a crash has left complemented and whose bit it has left set.
    /// Durable when this returns. After a crash of the process the header may be only in a cache, so it is
    /// made durable first.
    pub fn free_given_up(&self, zone: ZoneId) {
        self.region().persist(self.space().zone_offset(zone), CHECK_LEN);
        self.space().release_zone(zone);
    }

    /// Segments that hold records and whose zones are not in use: the result of damage to the zone table, or
    /// of a crash of the system that the durability does not cover. The caller has taken no zone yet, and
    /// nobody appends to one.
    pub fn orphans(&self) -> Vec<ZoneId> {
        let zones = (0..self.space().zone_count()).map(ZoneId);
        zones.filter(|zone| !self.space().check_zone(*zone) && self.is_orphan(*zone)).collect()
    }

    fn is_orphan(&self, zone: ZoneId) -> bool {
        let start = self.space().zone_offset(zone);
        if start + FIRST_RECORD > self.region().len() || !self.region().has_data(start, FIRST_RECORD) {
            return false;
        }
        let header = self.header_of(zone);
        if !header.is_valid(self.certifier(), Role::Segment, zone) {
            return false;
        }
        let len = self.space().zone_size();
        // SAFETY: nobody writes to the zone, as the caller of `orphans` ensures.
        let bytes = unsafe { self.region().bytes_in_pieces(start + FIRST_RECORD, len - FIRST_RECORD) };
        let life = header.life_key(self.certifier());
        bytes.is_some_and(|bytes| {
            let record = RecordView::certified(bytes, self.certifier(), life, FIRST_RECORD);
            // In a file of Nlog it may have been marked.
            !matches!(record, Err(RecordError::Invalid))
                || RecordView::is_marked(bytes, self.certifier(), life, FIRST_RECORD)
        })
    }

    /// A copy of the bytes of a segment's header; zeros beyond the end of a truncated pool.
    pub(super) fn header_of(&self, zone: ZoneId) -> SegmentHeader {
        let mut header = SegmentHeader::new_zeroed();
        let start = self.space().zone_offset(zone);
        if start + FIRST_RECORD <= self.region().len() {
            self.region().read_racing(start, header.as_mut_bytes());
        }
        header
    }
}
