//! Tails: where the records of a cluster go on a node. A tail's lock is held while a place is given away, and
//! not while a record is written (section III-E, "Concurrent write").
//!
//! In a full pool a record may go to the tail of another cluster, so a cluster in the header of a file tells
//! where most of its records belong, and no more.

use super::marks::{Mark, mark};
use super::scan::FileInfo;
use super::spot::Spot;
use crate::heap::Reference;
use crate::heap::segments::{
    FIRST_RECORD, HIGH_WATER, HeapError, LogHeap, Role, SegmentHeader, SegmentInfo, Shard, Use,
};
use crate::record::LifeKey;
use crate::space::ZoneId;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Padded, SpinLock};
use crate::twin;
use quipu_medium::{LINE, Node};
use zerocopy::IntoBytes;

/// Bytes by which the high water rises, in a zone that is not smaller than a few of them.
const CHUNK: u64 = 64 << 10;
/// Chunks of a file at least.
const LEAST_CHUNKS: u64 = 4;

/// Set in the word of a file that gives no more places away; the rest of the word counts its writers.
pub(super) const CLOSED: u32 = 1 << 31;

/// How many clusters there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NlogSettings {
    /// A power of two: keys of so many clusters have files of their own (256 in the paper).
    pub clusters: u32,
}

impl NlogSettings {
    /// These settings for a pool of so many zones on so many nodes: each tail keeps a zone, and most zones
    /// should be full files.
    pub fn fitted(self, zones: u32, nodes: u32) -> NlogSettings {
        const FILES_OF_A_TAIL: u32 = 8;
        let most = (zones / (FILES_OF_A_TAIL * nodes.max(1))).max(1);
        NlogSettings { clusters: self.clusters.min(1 << most.ilog2()) }
    }
}

/// The tail that a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The number of the node among those that have bytes of the pool.
    node: u32,
    cluster: u32,
}

/// The state in DRAM of the files in the memory of each node, which all clients share.
pub struct Files {
    nodes: Vec<Node>,
    clusters: u32,
    /// By node, then by cluster.
    tails: Box<[Padded<SpinLock<Option<Tail>>>]>,
    by_zone: Box<[File]>,
    /// Closed files that are not sealed yet.
    closing: AtomicU32,
    /// Files that are being opened at this moment.
    opening: AtomicU32,
}

/// Files in the zones of a heap.
#[derive(Clone, Copy)]
pub struct Nlog<'h> {
    pub(super) heap: &'h LogHeap,
    files: &'h Files,
}

/// A file that places are given away in.
struct Tail {
    zone: ZoneId,
    start: u64,
    life_number: u64,
    life: LifeKey,
    /// Offset of the next place.
    next: u64,
    high_water: u64,
    /// The zone has storage up to here.
    limit: u64,
    /// Its zone, or the storage of that, came from the reserve for this use; others wait until the reserve is
    /// whole again.
    reserved_for: Use,
}

/// Bytes of the place of a record of so many bytes: whole lines, which no other record shares.
#[inline]
pub const fn taken(len: u64) -> u64 {
    len.next_multiple_of(LINE)
}

/// The state in DRAM of a zone while it is a file.
#[derive(Default)]
pub(super) struct File {
    /// [`CLOSED`], and how many writers have a place in it.
    pub(super) flight: AtomicU32,
    /// Where its records end, once it is closed.
    pub(super) end: AtomicU64,
    /// Bits of the nonce of its life, by which parents name it.
    pub(super) generation: AtomicU32,
}

impl Files {
    /// For the zones of a heap, which has nothing open.
    pub fn new(heap: &LogHeap, settings: NlogSettings) -> Files {
        assert!(settings.clusters.is_power_of_two(), "a cluster is chosen by masking");
        let nodes = heap.space().nodes();
        let tails = nodes.len() * settings.clusters as usize;
        Files {
            nodes,
            clusters: settings.clusters,
            tails: (0..tails).map(|_| Padded::default()).collect(),
            by_zone: (0..heap.space().zone_count()).map(|_| File::default()).collect(),
            closing: AtomicU32::new(0),
            opening: AtomicU32::new(0),
        }
    }

    /// These files in the zones of the heap that they were made for.
    #[inline]
    pub fn of<'h>(&'h self, heap: &'h LogHeap) -> Nlog<'h> {
        Nlog { heap, files: self }
    }
}

impl<'h> Nlog<'h> {
    #[inline]
    pub(super) fn file(self, zone: ZoneId) -> &'h File {
        &self.files.by_zone[zone.0 as usize]
    }

    /// The zone of a record.
    #[inline]
    pub fn zone_of(self, reference: Reference) -> ZoneId {
        reference.zone(self.heap.zone_shift())
    }

    /// Makes the marks of this thread durable.
    pub fn fence(self) {
        self.heap.region().fence();
    }

    /// The number of a node, for [`home`](Nlog::home). A client of no node, or of one that has no bytes of
    /// the pool, counts to the first.
    pub fn number_of(self, node: Option<Node>) -> u32 {
        let number = node.and_then(|node| self.files.nodes.iter().position(|known| *known == node));
        number.unwrap_or_default() as u32
    }

    /// The home of a key whose stripe has this number, for a client of the node of that number.
    #[inline]
    pub fn home(self, node: u32, stripe: usize) -> Home {
        Home { node, cluster: stripe as u32 & (self.files.clusters - 1) }
    }

    /// Gives away a place for a record of `len` bytes, at the tail of its home. While free zones are scarce,
    /// or storage on a full disk, deletes and moves take room at other tails of the node before they open a
    /// file. Else each of many tails would hold a zone of the reserve. If there is no zone or no storage for
    /// a file, any tail that has room serves, near ones first.
    ///
    /// # Errors
    /// [`HeapError::Full`] if there is no room for this use; [`HeapError::TooLong`].
    #[inline]
    pub fn reserve(self, home: Home, len: u64, purpose: Use) -> Result<Spot<'h>, HeapError> {
        let len = taken(len);
        let limit = self.heap.longest_record();
        if len > limit {
            return Err(HeapError::TooLong { len, limit });
        }
        let number = (home.node * self.files.clusters + home.cluster) as usize;
        let near = self.files.tails[number].0.lock().as_mut().and_then(|tail| self.offer(tail, len, purpose));
        if let Some(Ok(spot)) = near { Ok(spot) } else { self.reserve_elsewhere(home, len, purpose) }
    }

    /// A place that is not at this tail: it has no room, or no storage.
    #[cold]
    fn reserve_elsewhere(self, home: Home, len: u64, purpose: Use) -> Result<Spot<'h>, HeapError> {
        let (node, clusters) = (home.node as usize, self.files.clusters as usize);
        let (first, count) = (node * clusters, self.files.tails.len());
        let is_scarce = purpose != Use::Put && !self.heap.has_left(self.heap.reserve());
        if is_scarce && let Ok(Some(spot)) = self.reserve_at_any(first..first + clusters, len, purpose) {
            return Ok(spot);
        }
        let number = first + home.cluster as usize;
        self.reserve_or_open(number, len, purpose).or_else(|full| {
            if purpose == Use::Put {
                self.heap.space().renew_storage(self.heap.reserve());
            }
            // Its own again too, which may be for puts by now.
            let any = (0..count).map(|step| (number + step) % count);
            self.reserve_at_any(any, len, purpose)?.ok_or(full)
        })
    }

    /// A place at this tail, or in another file that replaces it.
    fn reserve_or_open(self, number: usize, len: u64, purpose: Use) -> Result<Spot<'h>, HeapError> {
        let mut slot = self.files.tails[number].0.lock();
        if let Some(Ok(spot)) = slot.as_mut().and_then(|tail| self.offer(tail, len, purpose)) {
            return Ok(spot);
        }
        self.files.opening.fetch_add(1, Ordering::Relaxed);
        let fresh = self.open_file(number, len, purpose);
        self.files.opening.fetch_sub(1, Ordering::Relaxed);
        let closed = slot.replace(fresh?);
        self.files.closing.fetch_add(u32::from(closed.is_some()), Ordering::AcqRel);
        let spot = self.give(slot.as_mut().expect("it was just opened"), len);
        drop(slot);
        if let Some(full) = closed {
            self.close(&full);
        }
        spot
    }

    /// A place at the first of these tails that has room.
    ///
    /// # Errors
    /// Why a tail with room has no storage.
    fn reserve_at_any(
        self,
        tails: impl Iterator<Item = usize>,
        len: u64,
        purpose: Use,
    ) -> Result<Option<Spot<'h>>, HeapError> {
        let mut lacks_storage = None;
        for number in tails {
            let mut slot = self.files.tails[number].0.lock();
            match slot.as_mut().and_then(|tail| self.offer(tail, len, purpose)) {
                None => {}
                Some(Ok(spot)) => return Ok(Some(spot)),
                Some(Err(error)) => lacks_storage = Some(error),
            }
        }
        lacks_storage.map_or(Ok(None), Err)
    }

    /// The next place of a tail, if it has room for this use.
    #[inline]
    fn offer(self, tail: &mut Tail, len: u64, purpose: Use) -> Option<Result<Spot<'h>, HeapError>> {
        self.has_room(tail, len, purpose).then(|| self.give(tail, len))
    }

    #[inline]
    fn has_room(self, tail: &Tail, len: u64, purpose: Use) -> bool {
        if tail.next + len > self.heap.space().zone_size() {
            return false;
        }
        match (purpose, tail.reserved_for) {
            (Use::Put, Use::Put) | (Use::Delete, Use::Put | Use::Delete) => true,
            (Use::Move | Use::MoveBeside, _) => true,
            // Those that it was opened for can go on in another zone.
            (Use::Put, _) | (Use::Delete, Use::Move | Use::MoveBeside) => {
                self.heap.has_left(self.heap.leave_free(purpose))
            }
        }
    }

    /// Gives away the next place of a tail that has room. Nothing has changed if this fails.
    #[inline]
    fn give(self, tail: &mut Tail, len: u64) -> Result<Spot<'h>, HeapError> {
        let end = tail.next + len;
        if end > tail.high_water {
            self.raise(tail, end)?;
        }
        let spot = Spot::new(self, tail.zone, tail.start, tail.next, len, (tail.life_number, tail.life));
        self.file(tail.zone).flight.fetch_add(1, Ordering::Relaxed);
        // Only the holder of a tail counts for its zone.
        self.heap.note_written(Shard::default(), tail.zone, len);
        tail.next = end;
        Ok(spot)
    }

    /// Raises the high water of a tail to an end or above, durably.
    #[cold]
    fn raise(self, tail: &mut Tail, end: u64) -> Result<(), HeapError> {
        let high_water = self.high_water_for(end);
        if high_water > tail.limit {
            let limit = self.heap.storage_for(high_water);
            self.heap.space().back_zone(tail.zone, tail.limit, limit)?;
            tail.limit = limit;
        }
        let word = self.high_water_mark(tail.life, high_water);
        self.heap.region().store(tail.start + HIGH_WATER, word);
        if !twin!(HighWaterUnflushed) {
            self.heap.region().persist(tail.start + HIGH_WATER, size_of_val(&word) as u64);
        }
        tail.high_water = high_water;
        Ok(())
    }

    fn high_water_for(self, end: u64) -> u64 {
        let zone_size = self.heap.space().zone_size();
        end.next_multiple_of(CHUNK.min(zone_size / LEAST_CHUNKS)).min(zone_size)
    }

    fn high_water_mark(self, life: LifeKey, high_water: u64) -> u64 {
        mark(self.heap.certifier(), life, Mark::HighWater, (high_water >> 3) as u32)
    }

    /// Opens a file for a tail, with room for a record of `len` bytes.
    #[cold]
    fn open_file(self, number: usize, len: u64, purpose: Use) -> Result<Tail, HeapError> {
        let (heap, space) = (self.heap, self.heap.space());
        let (node, cluster) =
            (number / self.files.clusters as usize, number as u32 & (self.files.clusters - 1));
        // Drawn first: the draw may begin the run, which must be durable before anything else changes.
        let life_number = heap.draw();
        let high_water = self.high_water_for(FIRST_RECORD + len);
        // So its zone has storage for the next file when the disk is full. Less than a zone may be kept for
        // deletions.
        let limit = if purpose == Use::Delete { heap.storage_for(high_water) } else { space.zone_size() };
        let zone = space.get_zone_with(Some(self.files.nodes[node]), heap.leave_free(purpose), limit)?;
        let zone = zone.ok_or_else(|| HeapError::Full(heap.shortage(len, purpose)))?;
        let (start, run, nonce) = (space.zone_offset(zone), space.superblock().run.get(), heap.nonce());
        let header = SegmentHeader::open(heap.certifier(), Role::Segment, zone, life_number, nonce, run);
        let life = header.life_key(heap.certifier());
        let cluster = mark(heap.certifier(), life, Mark::Cluster, cluster);
        let header = header.of_file(cluster, self.high_water_mark(life, high_water));
        heap.region().write_nt(start, header.as_bytes());
        if !twin!(FileNamedEarly) {
            heap.region().fence();
        }
        self.begin(zone, life_number, nonce);
        space.commit_zone(zone);
        heap.count_take(purpose);
        let reserved_for = if heap.came_from_reserve(purpose) { purpose } else { Use::Put };
        let next = FIRST_RECORD;
        Ok(Tail { zone, start, life_number, life, next, high_water, limit, reserved_for })
    }

    /// Notes the life of a file in DRAM.
    fn begin(self, zone: ZoneId, life_number: u64, nonce: u64) {
        self.file(zone).flight.store(0, Ordering::Relaxed);
        self.file(zone).generation.store(u32::from(nonce as u16), Ordering::Relaxed);
        self.heap.begin(zone, life_number);
    }

    /// Notes a file of an earlier run. One that was left open is not cleaned before it is
    /// [ended](Nlog::end_recovered).
    pub fn register(self, info: &FileInfo) {
        let SegmentInfo { zone, life_number, sealed_end, .. } = info.segment;
        self.begin(zone, life_number, info.nonce);
        if sealed_end.is_some() {
            self.heap.end_of_writes(zone);
        }
    }

    /// Notes how parents name a file that is registered.
    pub fn note_generation(self, info: &FileInfo) {
        let generation = &self.file(info.segment.zone).generation;
        generation.store(u32::from(info.nonce as u16), Ordering::Relaxed);
    }

    /// Ends files that a crash has left open, each at this offset, durably.
    pub fn end_recovered(self, open: &[(SegmentInfo, u64)]) {
        self.heap.seal_recovered(open);
        open.iter().for_each(|(info, _)| self.heap.end_of_writes(info.zone));
    }

    /// Ends a file whose tail nobody reaches any more, and that counts as closing: it is sealed when its last
    /// writer has published.
    fn close(self, tail: &Tail) {
        let file = self.file(tail.zone);
        file.end.store(tail.next, Ordering::Relaxed);
        if file.flight.fetch_or(CLOSED, Ordering::AcqRel) == 0 || twin!(SealedInFlight) {
            self.seal(tail.zone);
        }
    }

    /// Ends all files that places are given away in, so that they can be cleaned; tells whether there was
    /// one. Each is sealed when its last writer has published.
    pub fn close_all(self) -> bool {
        let mut closed = false;
        for slot in &self.files.tails {
            let mut slot = slot.0.lock();
            let tail = slot.take();
            self.files.closing.fetch_add(u32::from(tail.is_some()), Ordering::AcqRel);
            drop(slot);
            tail.iter().for_each(|tail| self.close(tail));
            closed |= tail.is_some();
        }
        closed
    }

    /// Notes that a closed file is sealed.
    pub(super) fn note_sealed(self) {
        self.files.closing.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether a file is being opened at this moment.
    pub fn is_growing(self) -> bool {
        self.files.opening.load(Ordering::Relaxed) != 0
    }

    /// Whether a closed file waits for its last writer.
    pub fn is_closing(self) -> bool {
        self.files.closing.load(Ordering::Acquire) != 0
    }

    /// Whether [`reserve`](Nlog::reserve) would find a place for `len` bytes now.
    pub fn offers(self, len: u64, purpose: Use) -> bool {
        let len = taken(len);
        let has_room = |tail: &Tail| self.has_room(tail, len, purpose);
        self.heap.zones_left(purpose) > 0
            || self.files.tails.iter().any(|slot| slot.0.lock().as_ref().is_some_and(has_room))
    }
}
