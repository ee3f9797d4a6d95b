//! [`LogHeap`]: opening segments, appending records, sealing.

use super::append::OpenSegment;
use super::dead::DeadBits;
use super::expiry::Expiries;
use super::header::{self, END_MARK, FIRST_RECORD, Role, SegmentHeader};
use super::lives::Lives;
use super::scan::SegmentInfo;
use super::usage::Usage;
use crate::heap::{Clock, Numbers, Reference};
use crate::record::{Certifier, HEADER, LifeKey, padded};
use crate::space::{Shortage, Space, SpaceError, ZoneId};
use crate::sync::SpinLock;
use quipu_medium::{LINE, Node, Region};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use zerocopy::IntoBytes;

/// Why the heap has no room, or cannot tell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapError {
    /// No free zone is left beyond the reserve.
    #[error("the pool is full: {0}")]
    Full(Shortage),
    /// No segment can ever hold the record.
    #[error("a record of {len} bytes does not fit a segment, which holds {limit}")]
    TooLong {
        /// Bytes of the record.
        len: u64,
        /// Bytes that a segment has for records.
        limit: u64,
    },
    /// The allocator or the medium failed.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// The use of room: deletions may use the reserve that puts must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// New data.
    Put,
    /// A tombstone, which makes room in the long run.
    Delete,
    /// Records that compaction moves, which makes room at once.
    Move,
    /// The same by a cleaner beside others: the last zone is left to one that works alone.
    MoveBeside,
}

const _: () = assert!(FIRST_RECORD.is_multiple_of(LINE), "segments begin with whole lines");

/// Bytes of a record with a key of one byte and no value.
pub(super) const SHORTEST_RECORD: u64 = padded(HEADER + 1);

/// See [`LogHeap::taking`].
#[must_use = "nobody sees it once it is dropped"]
pub struct Taking<'h> {
    heap: &'h LogHeap,
    is_done: bool,
    /// To move records.
    moves: bool,
}

impl Taking<'_> {
    /// The zones have been taken, and those that they replace are left to others.
    pub fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        // Counted before `taking` falls, so that no thread misses both.
        self.heap.turnover.fetch_add(u64::from(self.is_done), Ordering::AcqRel);
        self.heap.takes.fetch_add(u64::from(self.is_done && !self.moves), Ordering::AcqRel);
        self.heap.taking.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Zones used as logs, shared by all clients. Each client appends to its own segment.
pub struct LogHeap {
    pub(super) space: Arc<Space>,
    certifier: Certifier,
    clock: Clock,
    zone_shift: u32,
    /// The first byte of the first zone, if all zones stand behind each other.
    first_zone: Option<u64>,
    reserve: u32,
    pub(super) usage: Usage,
    pub(super) expiries: Expiries,
    pub(super) lives: Lives,
    /// Present if cleaners are to know the dead records.
    pub(super) dead: Option<DeadBits>,
    /// Segments that clients have left. A thread that seals its own segment, or takes one away, holds this
    /// lock.
    pub(super) idle: SpinLock<Vec<OpenSegment>>,
    /// Held while a segment is freed, and by a thread that asks which are: a zone that is not durably free is
    /// in use.
    pub(super) ending: SpinLock<()>,
    opening: AtomicU32,
    /// Threads that take zones at this moment; see [`LogHeap::taking`].
    taking: AtomicU32,
    /// See [`LogHeap::turnover`].
    turnover: AtomicU64,
    /// See [`LogHeap::takes`].
    pub(super) takes: AtomicU64,
    /// Segments of the reserve that clients hold at this moment.
    pub(super) lent: AtomicU32,
    /// Segments with lower lives are taken away from their owners; see [`LogHeap::revoke`].
    pub(super) revoked: AtomicU64,
}

impl LogHeap {
    /// A heap over the zones of `space`, of which puts leave `reserve` free.
    pub fn new(space: impl Into<Arc<Space>>, certifier: Certifier, clock: Clock, reserve: u32) -> LogHeap {
        let space = space.into();
        assert!(space.zone_size().is_power_of_two(), "segments need a power of two for a zone size");
        let zones = space.zone_count();
        LogHeap {
            zone_shift: space.zone_size().trailing_zeros(),
            first_zone: space.zones_in_a_row(),
            space,
            certifier,
            clock,
            reserve,
            usage: Usage::new(zones),
            expiries: Expiries::new(zones),
            lives: Lives::new(zones),
            dead: None,
            idle: SpinLock::new(Vec::new()),
            ending: SpinLock::new(()),
            opening: AtomicU32::new(0),
            taking: AtomicU32::new(0),
            turnover: AtomicU64::new(0),
            takes: AtomicU64::new(0),
            lent: AtomicU32::new(0),
            revoked: AtomicU64::new(0),
        }
    }

    /// The allocator beneath.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The region beneath.
    #[inline]
    pub fn region(&self) -> &Region {
        self.space.region()
    }

    /// The pool's certifier.
    #[inline]
    pub fn certifier(&self) -> &Certifier {
        &self.certifier
    }

    /// The pool's clock.
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Log2 of the zone size, the split of a [`Reference`].
    #[inline]
    pub fn zone_shift(&self) -> u32 {
        self.zone_shift
    }

    /// Draws the next sequence number.
    #[inline]
    pub fn draw(&self) -> u64 {
        self.clock.draw(&self.space)
    }

    /// Draws a sequence number for a record of this segment, above `newest`, from a client's batch.
    #[inline]
    pub fn draw_above(&self, segment: &OpenSegment, numbers: &mut Numbers, newest: u64) -> u64 {
        self.clock.draw_above(&self.space, numbers, newest.max(segment.life_number))
    }

    /// Bytes that the longest record of this heap may take.
    pub fn longest_record(&self) -> u64 {
        self.space.zone_size() - FIRST_RECORD
    }

    /// Where in the region a record stands.
    #[inline(always)]
    pub fn resolve(&self, reference: Reference) -> u64 {
        match self.first_zone {
            Some(first) => first + reference.distance(),
            None => self.resolve_by_table(reference),
        }
    }

    #[inline(never)]
    fn resolve_by_table(&self, reference: Reference) -> u64 {
        self.space.zone_offset(reference.zone(self.zone_shift)) + reference.offset(self.zone_shift)
    }

    /// Where in the region a record stands. The reference may be damaged: `None` if there is no such zone.
    #[inline]
    pub fn resolve_checked(&self, reference: Reference) -> Option<u64> {
        let start = self.space.checked_zone_offset(reference.zone(self.zone_shift))?;
        Some(start + reference.offset(self.zone_shift))
    }

    /// Takes a segment with room for `len` bytes: one that another client has left on this node, or a new
    /// one. The old segment, if any, is sealed, durably, or left for others.
    ///
    /// # Errors
    /// [`HeapError::Full`] if only the reserve is left and this use may not take it.
    #[cold]
    pub fn make_room(
        &self,
        segment: &mut Option<OpenSegment>,
        len: u64,
        node: Option<Node>,
        purpose: Use,
    ) -> Result<(), HeapError> {
        if len > self.longest_record() {
            return Err(HeapError::TooLong { len, limit: self.longest_record() });
        }
        let node = node.or_else(|| self.space.node_here());
        // There may be room in it and only storage missing.
        let has_room = |own: &&mut OpenSegment| self.may_go_on(own, len, purpose);
        if let Some(own) = segment.as_mut().filter(has_room)
            && self.back(own, len).is_ok()
        {
            return Ok(());
        }
        let is_move = purpose.moves();
        let mut taking = self.taking();
        taking.moves = is_move;
        // Compaction leaves a partly used segment of the reserve to the next deletion, except on a full disk,
        // where it may find no other storage.
        let takes_all = is_move && !self.space.keeps_storage(1) && self.lacks_storage_for_copies();
        let taker = if takes_all { Use::Delete } else { purpose };
        let left = {
            let mut idle = self.idle.lock();
            let is_near =
                |s: &OpenSegment| node.as_ref().is_none_or(|node| self.space.zone_node(s.zone) == *node);
            let find = |is_meant: &dyn Fn(&OpenSegment) -> bool| {
                idle.iter().position(|s| is_meant(s) && self.may_take(s, len, taker))
            };
            // Segments with storage come first, and near ones before others. A put that would otherwise fail
            // takes any segment.
            let fitting = find(&|s| is_near(s) && s.next + len <= s.limit).or_else(|| find(&is_near));
            let fitting = fitting.or_else(|| (self.zones_left(purpose) == 0).then(|| find(&|_| true))?);
            fitting.map(|i| {
                let left = idle.swap_remove(i);
                // Puts take it only while the reserve is whole without it.
                let reserved = left.reserved && purpose != Use::Put;
                self.lent.fetch_add(u32::from(reserved), Ordering::Relaxed);
                OpenSegment { reserved, ..left }
            })
        };
        let fresh = match left.map(|mut left| (self.back(&mut left, len).is_ok(), left)) {
            Some((true, left)) => left,
            without_storage => {
                if let Some((_, left)) = without_storage {
                    self.leave(left);
                }
                self.opening.fetch_add(1, Ordering::Relaxed);
                let opened = self.open_segment(node, len, purpose);
                let reserved = opened.as_ref().is_ok_and(|opened| opened.reserved);
                self.lent.fetch_add(u32::from(reserved), Ordering::Relaxed);
                self.opening.fetch_sub(1, Ordering::Relaxed);
                opened?
            }
        };
        if let Some(passed) = segment.replace(fresh) {
            // A segment that only lacks storage is left to others, who may get some.
            self.end(passed, |segment| !segment.reserved && !self.may_go_on(segment, len, purpose));
        }
        taking.done();
        Ok(())
    }

    /// Whether a segment is being opened at this moment. The crash explorer classifies its states by it.
    pub fn growing(&self) -> bool {
        self.opening.load(Ordering::Relaxed) != 0
    }

    /// Whether `len` more bytes fit, for this use.
    #[inline]
    pub fn has_room(&self, segment: &OpenSegment, len: u64, purpose: Use) -> bool {
        segment.next + len <= segment.limit && (!segment.reserved || purpose != Use::Put)
    }

    /// Whether `len` more bytes fit, for this use, with or without storage.
    fn may_go_on(&self, segment: &OpenSegment, len: u64, purpose: Use) -> bool {
        segment.next + len <= self.space.zone_size() && (!segment.reserved || purpose != Use::Put)
    }

    /// Whether a client may take this left segment for `len` bytes of this use.
    fn may_take(&self, segment: &OpenSegment, len: u64, purpose: Use) -> bool {
        let is_meant = match purpose {
            Use::Put => !segment.reserved || self.has_left(self.reserve),
            Use::Delete => true,
            Use::Move | Use::MoveBeside => !segment.reserved,
        };
        is_meant && segment.next + len <= self.space.zone_size()
    }

    /// Whether [`make_room`](LogHeap::make_room) would find a place for `len` bytes now, and leave so many
    /// zones for a large value.
    pub fn offers(&self, len: u64, purpose: Use, zones: u32) -> bool {
        let left = self.zones_left(purpose);
        let is_left = || self.idle.lock().iter().any(|s| self.may_take(s, len, purpose));
        left > zones || (left == zones && is_left())
    }

    /// Announces that the caller takes zones in place of others, and has both for a moment.
    /// [`lends`](LogHeap::lends) is true until the result drops.
    pub fn taking(&self) -> Taking<'_> {
        self.taking.fetch_add(1, Ordering::Relaxed);
        // A thread that sees the zones taken also sees that this is under way.
        fence(Ordering::SeqCst);
        Taking { heap: self, is_done: false, moves: false }
    }

    /// Whether a thread holds zones that nobody else can use or clean for the moment: a segment of the
    /// reserve, or a new segment or value beside the one that it replaces.
    pub fn lends(&self) -> bool {
        // The caller has looked at the segments before this.
        fence(Ordering::SeqCst);
        self.taking.load(Ordering::Acquire) != 0 || self.lent.load(Ordering::Acquire) != 0
    }

    /// Counts how often a thread has taken zones, or returned a segment of the reserve. Read it before a look
    /// at all segments. If it is unchanged afterwards, and [`lends`](LogHeap::lends) is false, no thread held
    /// zones for a moment during the look.
    pub fn turnover(&self) -> u64 {
        self.turnover.load(Ordering::Acquire)
    }

    /// Zones that must stay free when one is taken for this use.
    pub(in crate::heap) fn leave_free(&self, purpose: Use) -> u32 {
        match purpose {
            Use::Put => self.reserve,
            // Without a zone to move records to, compaction could never free one.
            Use::Delete | Use::MoveBeside => 1,
            Use::Move => 0,
        }
    }

    fn open_segment(&self, node: Option<Node>, len: u64, purpose: Use) -> Result<OpenSegment, HeapError> {
        // Drawn first: the draw may begin the run, which must be durable before anything else changes.
        let life = self.draw();
        let (zone, limit) = self.zone_with_storage(node, len, purpose)?;
        let start = self.space.zone_offset(zone);
        let run = self.space.superblock().run.get();
        let header = SegmentHeader::open(&self.certifier, Role::Segment, zone, life, self.nonce(), run);
        self.region().write_nt(start, header.as_bytes());
        self.region().fence();
        {
            // A revocation must not come in between.
            let _ends = self.idle.lock();
            self.lives.begin(zone, life);
            self.space.commit_zone(zone);
        }
        let reserved = self.came_from_reserve(purpose);
        let key = header.life_key(&self.certifier);
        Ok(OpenSegment { reserved, ..OpenSegment::new(zone, start, life, key, FIRST_RECORD, limit) })
    }

    /// Random bits, which make a life differ from every other of its number.
    pub(in crate::heap) fn nonce(&self) -> u64 {
        let mut nonce = [0; 8];
        self.region().entropy(&mut nonce);
        u64::from_le_bytes(nonce)
    }

    /// Leaves a segment to the next client that needs room. A full one is sealed.
    pub fn leave(&self, segment: OpenSegment) {
        self.end(segment, |segment| segment.next + SHORTEST_RECORD > self.space.zone_size());
    }

    /// Seals a segment or leaves it to others, unless it was taken away meanwhile.
    fn end(&self, mut segment: OpenSegment, seals: impl FnOnce(&OpenSegment) -> bool) {
        let mut idle = self.idle.lock();
        let was_lent = segment.reserved;
        if self.lives.is_open(segment.zone, segment.life_number) {
            if seals(&segment) || self.is_revoked(&segment) {
                self.seal(&mut segment);
                // A close relies on every mark being durable, and this thread may never fence again.
                self.region().fence();
            } else {
                if segment.written < segment.next {
                    // Only a thread that was interrupted between its records and their fence leaves this
                    // state, and the next owner's fences would not cover them.
                    self.complete(&mut segment);
                    self.region().fence();
                }
                idle.push(segment);
            }
        }
        if was_lent {
            self.turnover.fetch_add(1, Ordering::AcqRel);
            self.takes.fetch_add(1, Ordering::AcqRel);
            self.lent.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Leaves a segment of the reserve to all clients, so that it serves the next deletion. Its records are
    /// fenced.
    #[inline]
    pub fn share_reserve(&self, segment: &mut Option<OpenSegment>) {
        if let Some(reserved) = segment.take_if(|segment| segment.reserved) {
            self.leave(reserved);
        }
    }

    /// Where the records of a segment end that a client has left, for a check to compare.
    pub fn idle_end(&self, zone: ZoneId) -> Option<u64> {
        self.idle.lock().iter().find(|segment| segment.zone == zone).map(|segment| segment.next)
    }

    /// Marks the end of a segment that nobody appends to any more. Durable with the next fence of this
    /// thread.
    pub(super) fn seal(&self, segment: &mut OpenSegment) {
        self.mark_end(segment);
        self.lives.seal(segment.zone);
    }

    /// The part of [`seal`](LogHeap::seal) on the medium. Nobody cleans the segment yet.
    pub(super) fn mark_end(&self, segment: &mut OpenSegment) {
        self.complete(segment);
        // A mark vouches for the records before it, so it must not become durable before them.
        self.region().fence();
        self.seal_at(segment.start, segment.life, segment.next);
    }

    pub(super) fn seal_at(&self, start: u64, life: LifeKey, end: u64) {
        self.region().store(start + END_MARK, header::end_mark(&self.certifier, life, end));
        self.region().flush(start + END_MARK, 8);
    }

    /// Takes over a segment whose end recovery found, to append to it: the broken twin of rule 4.5.
    #[doc(hidden)]
    pub fn reopen(&self, info: &SegmentInfo, end: u64) {
        let start = self.space.zone_offset(info.zone);
        let limit = self.storage_for(end);
        let mut segment = OpenSegment::new(info.zone, start, info.life_number, info.life, end, limit);
        self.lives.begin(info.zone, info.life_number);
        let in_line = end % LINE;
        self.region().read_racing(start + end - in_line, &mut segment.last_line[..in_line as usize]);
        self.leave(segment);
    }

    /// Counts bytes of a record that expires, at a time in milliseconds since 1970.
    #[cold]
    pub fn note_expiring(&self, reference: Reference, len: u64, expires: u64) {
        self.space.note_expiring();
        self.expiries.add(reference.zone(self.zone_shift), len, expires, self.space.expiry_time());
    }

    /// Zones that may still be taken for this use.
    #[inline]
    pub fn zones_left(&self, purpose: Use) -> u32 {
        self.space.free_zones().saturating_sub(self.leave_free(purpose))
    }

    /// Whether a zone that was just taken for this use came from the reserve, or its storage did.
    #[cold]
    pub(in crate::heap) fn came_from_reserve(&self, purpose: Use) -> bool {
        if purpose == Use::Put {
            return false;
        }
        self.space.renew_storage(self.reserve);
        !self.has_left(self.reserve)
    }

    /// Whether so many zones are left, with the storage that is kept in them.
    #[cold]
    pub fn has_left(&self, zones: u32) -> bool {
        self.space.free_zones() >= zones && self.space.keeps_storage(zones)
    }

    pub(in crate::heap) fn segment_count(&self) -> usize {
        self.lives.count()
    }

    /// Bytes that a segment still has room for.
    pub fn room_in(&self, segment: &OpenSegment) -> u64 {
        self.space.zone_size() - segment.next
    }

    /// Zones that puts leave free.
    pub fn reserve(&self) -> u32 {
        self.reserve
    }
}
