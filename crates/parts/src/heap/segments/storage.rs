//! Storage behind a segment of a file. It is reserved in few steps, so that a run that writes little takes
//! little disk.

use super::append::OpenSegment;
use super::header::FIRST_RECORD;
use super::log::{HeapError, LogHeap};
use super::{SegmentInfo, Use};
use crate::space::{SpaceError, ZoneId};
use quipu_medium::{MediumError, Node};

/// Bytes with storage when a segment is opened.
const FIRST: u64 = 4 << 10;
/// The factor by which storage grows each time that it runs out.
const FACTOR: u64 = 4;

impl LogHeap {
    /// Ensures storage behind the next `len` bytes of a segment that has room for them.
    pub(super) fn back(&self, segment: &mut OpenSegment, len: u64) -> Result<(), SpaceError> {
        let wanted = segment.next + len;
        if wanted > segment.limit {
            let limit = self.storage_for(wanted);
            self.space.back_zone(segment.zone, segment.limit, limit)?;
            segment.limit = limit;
        }
        Ok(())
    }

    /// A zone for a new segment, and how many bytes from its start have storage.
    pub(super) fn zone_with_storage(
        &self,
        node: Option<Node>,
        len: u64,
        purpose: Use,
    ) -> Result<(ZoneId, u64), HeapError> {
        let (leave, few) = (self.leave_free(purpose), self.storage_for(FIRST_RECORD + len));
        // Where storage comes in pages, a full disk has zones with few of them. One would leave compaction in
        // the midst of its segment, so it takes such a zone only if there is no whole one.
        let wants_all = purpose == Use::Move && self.region().reads_take_storage();
        let mut limit = if wants_all { self.space.zone_size() } else { few };
        let mut zone = self.space.get_zone_with(node, leave, limit);
        if matches!(zone, Err(SpaceError::Medium(MediumError::DiskFull { .. }))) && limit > few {
            limit = few;
            zone = self.space.get_zone_with(node, leave, limit);
        }
        let zone = zone?.ok_or_else(|| HeapError::Full(self.shortage(len, purpose)))?;
        Ok((zone, limit))
    }

    /// Bytes from a segment's start to reserve, if so many are wanted.
    pub(in crate::heap) fn storage_for(&self, wanted: u64) -> u64 {
        self.steps().find(|len| *len >= wanted).unwrap_or(self.space.zone_size())
    }

    /// Ensures storage behind records of an earlier run, those before an offset in each segment, so that
    /// marks and covers can be stored there. A copy of the file may have left holes.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full.
    pub fn back_found(&self, found: impl Iterator<Item = (ZoneId, u64)>) -> Result<(), SpaceError> {
        self.space.back_zones_up_to(found)
    }

    /// Seals every segment that clients have left, durably. They keep no more storage than their records
    /// need, so that many short runs take little of a disk.
    pub fn seal_idle(&self) {
        let mut idle = std::mem::take(&mut *self.idle.lock());
        if !idle.is_empty() {
            for segment in &mut idle {
                self.mark_end(segment);
                // Sealed, it may soon be cleaned, and its zone be another's.
                self.space.discard_rest(segment.zone, segment.next);
                self.lives.seal(segment.zone);
            }
            self.region().fence();
        }
    }

    /// Gives back [storage behind](quipu_medium::Region::discard_rest) the ends of segments that recovery has
    /// sealed.
    pub fn discard_rests(&self, sealed: &[(SegmentInfo, u64)]) {
        sealed.iter().for_each(|(info, end)| self.space.discard_rest(info.zone, *end));
    }

    /// Bytes from a segment's start that can be read, where [reads take
    /// storage](quipu_medium::Region::reads_take_storage). A file system in memory knows at once which pages
    /// were written. Others read a hole as zeros, and may not know yet of pages that only the system has.
    pub fn readable_len(&self, zone: ZoneId) -> u64 {
        let (start, all) = (self.space.zone_offset(zone), self.space.zone_size());
        // A truncated pool ends within a zone.
        if start + all > self.region().len() || !self.region().reads_take_storage() {
            return all;
        }
        self.region().data_len(start, all)
    }

    /// Where storage may end: in a file at each step, otherwise only at the end of the zone.
    fn steps(&self) -> impl Iterator<Item = u64> {
        let all = self.space.zone_size();
        let first = if self.region().is_sparse() { FIRST } else { all };
        std::iter::successors(Some(first), |len| Some(len * FACTOR)).take_while(move |len| *len < all)
    }

    /// Whether a zone with storage is left to which compaction can move records: on a full disk, the one that
    /// is kept for it.
    #[cold]
    pub fn has_zone_for_copies(&self) -> bool {
        self.space.renew_storage(1);
        self.zones_left(Use::Move) > 0 && self.space.keeps_storage(1)
    }

    /// Whether zones are left for copies and none of them has storage.
    #[cold]
    pub fn lacks_storage_for_copies(&self) -> bool {
        self.zones_left(Use::Move) > 0 && !self.has_zone_for_copies()
    }
}
