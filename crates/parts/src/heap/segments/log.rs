//! [`LogHeap`]: opening segments, appending records, sealing.

use super::append::OpenSegment;
use super::dead::DeadBits;
use super::expiry::Expiries;
use super::header::{self, END_MARK, FIRST_RECORD, Role, SegmentHeader};
use super::lives::Lives;
use super::scan::SegmentInfo;
use super::usage::{RecordBytes, Shard, Usage};
use crate::heap::{Clock, Numbers, Reference};
use crate::record::{Certifier, HEADER, LifeKey, padded};
use crate::space::{Shortage, Space, SpaceError, ZoneId};
use crate::sync::SpinLock;
use quipu_medium::{LINE, Node, Region};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use zerocopy::IntoBytes;

/// Why a heap has no room or cannot say.
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

/// What room is wanted for: deletions may use the reserve that puts must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// New data.
    Put,
    /// A tombstone, which makes room in the long run.
    Delete,
    /// What compaction moves, which makes room at once.
    Move,
}

const _: () = assert!(FIRST_RECORD.is_multiple_of(LINE), "segments begin with whole lines");

/// Bytes of a record with a key of one byte and no value.
pub(super) const SHORTEST_RECORD: u64 = padded(HEADER + 1);

/// Zones that only compaction may take.
const MOVING: u32 = 1;

/// See [`LogHeap::taking`].
#[must_use = "nobody sees it once it is dropped"]
pub struct Taking<'h> {
    heap: &'h LogHeap,
    is_done: bool,
}

impl Taking<'_> {
    /// The zones were taken, and what they replace is left to others.
    pub fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        // Counted before it is no longer seen to be under way, so that nobody misses both.
        self.heap.turnover.fetch_add(u64::from(self.is_done), Ordering::AcqRel);
        self.heap.taking.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Zones used as logs. Shared by all clients; each appends to a segment of its own.
pub struct LogHeap {
    pub(super) space: Arc<Space>,
    certifier: Certifier,
    clock: Clock,
    zone_shift: u32,
    reserve: u32,
    pub(super) usage: Usage,
    pub(super) expiries: Expiries,
    pub(super) lives: Lives,
    /// If cleaners are to know which records are dead.
    pub(super) dead: Option<DeadBits>,
    /// Segments that clients have left. Who ends a segment of its own, or takes one away, does it under this lock.
    pub(super) idle: SpinLock<Vec<OpenSegment>>,
    /// Who frees a segment, or asks which are gone: one whose zone is not durably free is not gone yet.
    pub(super) ending: SpinLock<()>,
    opening: AtomicU32,
    /// How many take zones at this moment; see [`LogHeap::taking`].
    taking: AtomicU32,
    /// See [`LogHeap::turnover`].
    turnover: AtomicU64,
    /// Segments of the reserve that someone has at this moment.
    pub(super) lent: AtomicU32,
    /// Segments with lower lives are no longer for those who opened them; see [`LogHeap::revoke`].
    pub(super) revoked: AtomicU64,
}

impl LogHeap {
    /// A heap over the zones of `space`, of which puts leave `reserve` free.
    pub fn new(space: impl Into<Arc<Space>>, certifier: Certifier, clock: Clock, reserve: u32) -> LogHeap {
        let space = space.into();
        assert!(space.zone_size().is_power_of_two(), "segments need a power of two for a zone size");
        let usage = Usage::new(space.zone_count());
        let expiries = Expiries::new(space.zone_count());
        let lives = Lives::new(space.zone_count());
        LogHeap {
            zone_shift: space.zone_size().trailing_zeros(),
            space,
            certifier,
            clock,
            reserve,
            usage,
            expiries,
            lives,
            dead: None,
            idle: SpinLock::new(Vec::new()),
            ending: SpinLock::new(()),
            opening: AtomicU32::new(0),
            taking: AtomicU32::new(0),
            turnover: AtomicU64::new(0),
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

    /// Draws a sequence number for a record of this segment, above `newest`, out of a client's handful.
    #[inline]
    pub fn draw_above(&self, segment: &OpenSegment, numbers: &mut Numbers, newest: u64) -> u64 {
        self.clock.draw_above(&self.space, numbers, newest.max(segment.life_number))
    }

    /// Bytes that the longest record of this heap may take.
    pub fn longest_record(&self) -> u64 {
        self.space.zone_size() - FIRST_RECORD
    }

    /// Where in the region a record stands.
    #[inline]
    pub fn resolve(&self, reference: Reference) -> u64 {
        self.space.zone_offset(reference.zone(self.zone_shift)) + reference.offset(self.zone_shift)
    }

    /// The same for a reference that may be damaged: `None` if there is no such zone.
    #[inline]
    pub fn resolve_checked(&self, reference: Reference) -> Option<u64> {
        let start = self.space.checked_zone_offset(reference.zone(self.zone_shift))?;
        Some(start + reference.offset(self.zone_shift))
    }

    /// Takes a segment with room for `len` bytes: one that another client left on this node, or a fresh one. The old segment, if
    /// any, is sealed, durably, or left for others.
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
        // There may be room already, and no storage behind it.
        let has_room = |own: &&mut OpenSegment| self.may_go_on(own, len, purpose);
        if let Some(own) = segment.as_mut().filter(has_room)
            && self.back(own, len).is_ok()
        {
            return Ok(());
        }
        let taking = self.taking();
        let left = {
            let mut idle = self.idle.lock();
            let is_near =
                |s: &OpenSegment| node.as_ref().is_none_or(|node| self.space.zone_node(s.zone) == *node);
            let find = |is_meant: &dyn Fn(&OpenSegment) -> bool| {
                idle.iter().position(|s| is_meant(s) && self.may_take(s, len, purpose))
            };
            // One with storage before one that has to be asked for it, and near if there is one; but before a put has to do without,
            // any will do.
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
            // One that only lacks storage is for others, who may have some by then.
            self.end(passed, |segment| !segment.reserved && !self.may_go_on(segment, len, purpose));
        }
        taking.done();
        Ok(())
    }

    /// Whether a segment is being opened at this moment; the crash explorer sorts its states by it.
    pub fn growing(&self) -> bool {
        self.opening.load(Ordering::Relaxed) != 0
    }

    /// Whether `len` more bytes fit, for this use.
    #[inline]
    pub fn has_room(&self, segment: &OpenSegment, len: u64, purpose: Use) -> bool {
        segment.next + len <= segment.limit && (!segment.reserved || purpose != Use::Put)
    }

    /// The same, whether there is storage or not.
    fn may_go_on(&self, segment: &OpenSegment, len: u64, purpose: Use) -> bool {
        segment.next + len <= self.space.zone_size() && (!segment.reserved || purpose != Use::Put)
    }

    /// Whether a segment that was left may be taken for `len` bytes of this use.
    fn may_take(&self, segment: &OpenSegment, len: u64, purpose: Use) -> bool {
        let is_meant = match purpose {
            Use::Put => !segment.reserved || self.space.free_zones() >= self.reserve,
            Use::Delete => true,
            // What a deletion has left of the reserve, compaction leaves to the next deletion.
            Use::Move => !segment.reserved,
        };
        is_meant && segment.next + len <= self.space.zone_size()
    }

    /// Whether [`make_room`](LogHeap::make_room) would find a place for `len` bytes at this moment, and leave so many
    /// zones for a large value.
    pub fn offers(&self, len: u64, purpose: Use, zones: u32) -> bool {
        let left = self.zones_left(purpose);
        let is_left = || self.idle.lock().iter().any(|s| self.may_take(s, len, purpose));
        left > zones || (left == zones && is_left())
    }

    /// Who takes zones in place of others has both for a moment, which [`lends`](LogHeap::lends) tells as long as the answer lives.
    pub fn taking(&self) -> Taking<'_> {
        self.taking.fetch_add(1, Ordering::Relaxed);
        // Whoever sees what is taken also sees that it is under way.
        fence(Ordering::SeqCst);
        Taking { heap: self, is_done: false }
    }

    /// Whether someone has zones for a moment, which nobody else can use or clean: a segment of the reserve, or the next segment or
    /// value beside the one that it replaces.
    pub fn lends(&self) -> bool {
        // What the caller has seen of segments was seen before this.
        fence(Ordering::SeqCst);
        self.taking.load(Ordering::Acquire) != 0 || self.lent.load(Ordering::Acquire) != 0
    }

    /// How often someone has taken zones, or given a segment of the reserve back. If it has not changed since before a look at all
    /// segments, and nobody [has one for a moment](LogHeap::lends) after it, nobody had one for a moment during that look.
    pub fn turnover(&self) -> u64 {
        self.turnover.load(Ordering::Acquire)
    }

    /// Zones that must stay free when one is taken for this use.
    pub(in crate::heap) fn leave_free(&self, purpose: Use) -> u32 {
        match purpose {
            Use::Put => self.reserve,
            // Without a zone to move records to, nothing would ever become free again.
            Use::Delete => MOVING,
            Use::Move => 0,
        }
    }

    fn open_segment(&self, node: Option<Node>, len: u64, purpose: Use) -> Result<OpenSegment, HeapError> {
        // Drawn first: the draw may begin the run, which must be durable before anything else changes.
        let life = self.draw();
        let leave = self.leave_free(purpose);
        let limit = self.storage_for(FIRST_RECORD + len);
        let zone = self.space.get_zone_with(node, leave, limit)?;
        let zone = zone.ok_or_else(|| HeapError::Full(self.shortage(len, purpose)))?;
        let start = self.space.zone_offset(zone);
        let run = self.space.superblock().run.get();
        let header = SegmentHeader::open(&self.certifier, Role::Segment, zone, life, self.nonce(), run);
        self.region().write_nt(start, header.as_bytes());
        self.region().fence();
        {
            // Nobody takes it away in between.
            let _ends = self.idle.lock();
            self.lives.begin(zone, life);
            self.space.commit_zone(zone);
        }
        let reserved = purpose != Use::Put && self.space.free_zones() < self.reserve;
        let key = header.life_key(&self.certifier);
        Ok(OpenSegment { reserved, ..OpenSegment::new(zone, start, life, key, FIRST_RECORD, limit) })
    }

    /// Random bits, which make a life differ from every other of its number.
    pub(in crate::heap) fn nonce(&self) -> u64 {
        let mut nonce = [0; 8];
        self.region().entropy(&mut nonce);
        u64::from_le_bytes(nonce)
    }

    /// Leaves a segment for the next client that needs room; one without any is sealed.
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
                // Whoever closes the pool believes that every mark is durable, and this thread may never fence again.
                self.region().fence();
            } else {
                if segment.written < segment.next {
                    // Only who was interrupted between placing records and their fence leaves them so; the next owner's
                    // fences are not theirs.
                    self.complete(&mut segment);
                    self.region().fence();
                }
                idle.push(segment);
            }
        }
        if was_lent {
            self.turnover.fetch_add(1, Ordering::AcqRel);
            self.lent.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Leaves a segment of the reserve to all clients, so that it serves whoever deletes next. Its records are fenced.
    #[inline]
    pub fn share_reserve(&self, segment: &mut Option<OpenSegment>) {
        if let Some(reserved) = segment.take_if(|segment| segment.reserved) {
            self.leave(reserved);
        }
    }

    /// Where the records of a segment end that was left: what a check may compare with what it finds.
    pub fn idle_end(&self, zone: ZoneId) -> Option<u64> {
        self.idle.lock().iter().find(|segment| segment.zone == zone).map(|segment| segment.next)
    }

    /// Marks the end of a segment that nobody appends to any more. Durable with the next fence of this thread.
    pub(super) fn seal(&self, segment: &mut OpenSegment) {
        self.complete(segment);
        // A mark vouches for the records before it, so it must not become durable ahead of them.
        self.region().fence();
        self.seal_at(segment.start, segment.life, segment.next);
        self.lives.seal(segment.zone);
    }

    /// Seals every segment that clients have left, durably.
    pub fn seal_idle(&self) {
        let mut idle = std::mem::take(&mut *self.idle.lock());
        if !idle.is_empty() {
            for segment in &mut idle {
                self.seal(segment);
            }
            self.region().fence();
        }
    }

    pub(super) fn seal_at(&self, start: u64, life: LifeKey, end: u64) {
        self.region().store(start + END_MARK, header::end_mark(&self.certifier, life, end));
        self.region().flush(start + END_MARK, 8);
    }

    /// Takes over a segment whose end was found by recovery, to append to it: the broken twin of rule 4.5.
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

    /// The counters that a client will add to.
    pub fn shard(&self) -> Shard {
        self.usage.shard()
    }

    /// Counts record bytes of a zone. Only the zone's owner does.
    #[inline]
    pub fn note_written(&self, shard: Shard, zone: ZoneId, len: u64) {
        self.usage.add_written(shard, zone, len);
    }

    /// Counts bytes of a record that no longer matters.
    #[inline]
    pub fn note_garbage(&self, shard: Shard, reference: Reference, len: u64) {
        self.usage.add_garbage(shard, reference.zone(self.zone_shift), len);
    }

    /// Counts bytes of a tombstone.
    #[inline]
    pub fn note_tombstone(&self, shard: Shard, reference: Reference, len: u64) {
        self.usage.add_tombstone(shard, reference.zone(self.zone_shift), len);
    }

    /// Counts bytes of a record that expires, at a time in milliseconds since 1970.
    #[cold]
    pub fn note_expiring(&self, reference: Reference, len: u64, expires: u64) {
        self.expiries.add(reference.zone(self.zone_shift), len, expires, self.region().now());
    }

    /// Bytes of all records.
    pub fn usage(&self) -> RecordBytes {
        self.usage.total()
    }

    /// Zones that may still be taken for this use.
    #[inline]
    pub fn zones_left(&self, purpose: Use) -> u32 {
        self.space.free_zones().saturating_sub(self.leave_free(purpose))
    }

    /// Zones that are segments.
    pub(in crate::heap) fn segment_count(&self) -> usize {
        self.lives.count()
    }

    /// Bytes of a segment's records that are not known to be garbage.
    pub fn live_bytes(&self, zone: ZoneId) -> u64 {
        let RecordBytes { written, garbage, .. } = self.usage.of_zone(zone);
        written.saturating_sub(garbage)
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
