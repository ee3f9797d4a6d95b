//! The zone pool: large pieces for heaps, indexes and large values (section 3.4.2), from the memory of the
//! node that asks.
//!
//! Each extent has its own zone table and its own list, so the allocations of a node neither touch the memory
//! of another node nor wait for its lock. A table entry holds the index word and the location word of a zone.
//! Zones do not move, and open refuses any other location.

use super::error::{Shortage, SpaceError};
use super::free_list::{FreeList, FreeListKind, Words};
use super::handle::Space;
use super::kept_storage::{Allowance, KeptStorage, Search};
use super::pool_header::{HEADER_LEN, PoolHeader, ZoneEntry};
use super::recovery::examine;
use super::superblock::{ExtentEntry, MAX_EXTENTS, Superblock};
use crate::sync::Waiter;
use quipu_medium::{Node, Region};
use std::hash::Hasher;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use twox_hash::XxHash3_64;

/// A zone, by number: persistent references name it so. The number is stable for the life of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u32);

/// Turns that a Get waits for a zone that must exist; a release takes a few.
const PATIENCE: u32 = 1 << 20;
/// Offset of the location word in a table entry.
const LOCATION_AT: u64 = std::mem::offset_of!(ZoneEntry, location) as u64;

pub(super) struct ZoneExtent {
    first_zone: u32,
    node: Node,
    /// Offset behind its last byte. Nothing is between that and its last zone.
    end: u64,
    pub(super) list: FreeList,
}

pub(super) struct ZonePool {
    zone_size: u64,
    pub(super) extents: Vec<ZoneExtent>,
    /// First byte of each zone.
    offsets: Box<[u64]>,
    /// Zones that are on a list, or skipped by a Get that is under way, and not promised to one.
    free: AtomicU32,
    /// Zones of another node than the one that was wanted, and pieces of such.
    spilled: AtomicU64,
    pub(super) storage: KeptStorage,
}

impl ZonePool {
    /// Compares the zone table of an extent with the superblock's description of it.
    pub(super) fn verify(region: &Region, superblock: &Superblock, number: usize) -> Result<(), SpaceError> {
        let entry = &superblock.extents()[number];
        let header = PoolHeader::of_extent(superblock, entry);
        header.verify(region, entry.start.get(), "the header of an extent")?;
        let words = table_words(region, entry);
        let moved =
            |index: &u32| region.load(words.at(*index) + LOCATION_AT) != location(number, entry, *index);
        match (0..words.count).find(moved) {
            None => Ok(()),
            Some(index) => {
                let offset = words.at(index) + LOCATION_AT;
                Err(SpaceError::Damaged { what: "the location of a zone", offset })
            }
        }
    }

    /// Opens the zones of extents that have been verified.
    pub(super) fn open(region: &Region, superblock: &Superblock) -> ZonePool {
        let kind = superblock.zone_free_list().expect("the layout has been verified");
        let zone_size = superblock.zone_size();
        let mut extents = Vec::new();
        let mut offsets = Vec::new();
        let (entries, spans) = (superblock.extents(), region.spans());
        for (number, entry) in entries.iter().enumerate() {
            // A device may have moved to another node since the pool was made.
            let told = spans.get(number).filter(|_| spans.len() == entries.len()).and_then(|span| span.node);
            let node = told.unwrap_or(Node(entry.node.get()));
            let list = examine(table_words(region, entry), kind);
            let first = entry.zones.get();
            offsets.extend((0..u64::from(list.count())).map(|index| first + index * zone_size));
            let (first_zone, end) = (entry.first_zone.get(), entry.start.get() + entry.len.get());
            extents.push(ZoneExtent { first_zone, node, end, list });
        }
        let free = extents.iter().map(|extent| extent.list.free()).sum();
        ZonePool {
            zone_size,
            extents,
            offsets: offsets.into(),
            free: AtomicU32::new(free),
            spilled: AtomicU64::new(0),
            storage: KeptStorage::default(),
        }
    }

    /// Ranges of bytes in which nothing lies except zones that `is_idle`, each as long as can be.
    pub(super) fn idle_ranges(&self, is_idle: impl Fn(ZoneId) -> bool) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for extent in &self.extents {
            let last = extent.list.count() - 1;
            for index in (0..=last).filter(|index| is_idle(ZoneId(extent.first_zone + index))) {
                let start = self.offsets[(extent.first_zone + index) as usize];
                let end = if index == last { extent.end } else { start + self.zone_size };
                match ranges.last_mut().filter(|before| before.end == start) {
                    Some(before) => before.end = end,
                    None => ranges.push(start..end),
                }
            }
        }
        ranges
    }

    /// The extent that a zone belongs to, and its number there; `None` if there is no such zone.
    fn home(&self, zone: ZoneId) -> Option<(&ZoneExtent, u32)> {
        let behind = self.extents.partition_point(|extent| extent.first_zone <= zone.0);
        let extent = self.extents.get(behind.checked_sub(1)?)?;
        let index = zone.0 - extent.first_zone;
        (index < extent.list.count()).then_some((extent, index))
    }

    /// Takes `count` zones out of the count of free ones, if at least `leave` are left then.
    fn claim(&self, count: u32, leave: u32) -> bool {
        let claim = |free: u32| free.checked_sub(count).filter(|left| *left >= leave);
        self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).is_ok()
    }

    /// The next zone of the lists, those near the node first.
    fn pop(&self, region: &Region, node: Option<Node>) -> Result<Option<ZoneId>, SpaceError> {
        for number in self.by_distance(region, node) {
            let extent = &self.extents[number];
            if let Some(index) = extent.list.get()? {
                return Ok(Some(ZoneId(extent.first_zone + index)));
            }
        }
        Ok(None)
    }

    /// The numbers of the extents, the nearest to a node first.
    fn by_distance(&self, region: &Region, node: Option<Node>) -> impl Iterator<Item = usize> {
        let (count, mut order) = (self.extents.len(), std::array::from_fn::<usize, MAX_EXTENTS, _>(|i| i));
        if let (Some(node), true) = (node, count > 1) {
            order[..count].sort_by_key(|number| region.distance(node, self.extents[*number].node));
        }
        order.into_iter().take(count)
    }
}

impl Space {
    /// First byte of a zone: one load from a table in DRAM.
    ///
    /// # Panics
    /// If there is no such zone.
    #[inline]
    pub fn zone_offset(&self, zone: ZoneId) -> u64 {
        self.checked_zone_offset(zone).expect("the zone belongs to this pool")
    }

    /// First byte of a zone, or `None` if there is no such zone (a damaged reference).
    #[inline]
    pub fn checked_zone_offset(&self, zone: ZoneId) -> Option<u64> {
        self.zones.offsets.get(zone.0 as usize).copied()
    }

    /// First byte of the first zone, if all zones stand behind each other.
    pub fn zones_in_a_row(&self) -> Option<u64> {
        if let [_] = *self.zones.extents { self.zones.offsets.first().copied() } else { None }
    }

    /// Bytes of a zone.
    #[inline]
    pub fn zone_size(&self) -> u64 {
        self.zones.zone_size
    }

    /// Zones of the pool, in use or free.
    pub fn zone_count(&self) -> u32 {
        self.zones.offsets.len() as u32
    }

    /// NUMA node of a zone's memory.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn zone_node(&self, zone: ZoneId) -> Node {
        let (extent, _) = self.zones.home(zone).expect("the zone belongs to this pool");
        extent.node
    }

    /// The node near which the caller's data should stand: of those with bytes of the pool, the nearest to
    /// where the caller runs. `None` if all bytes are on one node.
    pub fn node_here(&self) -> Option<Node> {
        if !self.is_spread() {
            return None;
        }
        let node = self.region().current_node()?;
        let nearest = self.zones.by_distance(self.region(), Some(node)).next()?;
        Some(self.zones.extents[nearest].node)
    }

    /// The nodes that have bytes of the pool, each once, in the order of their numbers.
    pub fn nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.zones.extents.iter().map(|extent| extent.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether the pool's bytes lie on several nodes.
    pub fn is_spread(&self) -> bool {
        let extents = &self.zones.extents;
        extents.iter().any(|extent| extent.node != extents[0].node)
    }

    /// The parts of the pool: for each, its node, its zones, and how many of these are free.
    pub fn parts(&self) -> impl Iterator<Item = (Node, u32, u32)> + '_ {
        self.zones.extents.iter().map(|extent| (extent.node, extent.list.count(), extent.list.free()))
    }

    /// How often a zone of another node was taken so far, or a piece of one, since the wanted one had no
    /// room.
    pub fn spills(&self) -> u64 {
        self.zones.spilled.load(Ordering::Relaxed)
    }

    /// Counts a piece of a zone of another node that was taken, since the wanted one had no room.
    pub(crate) fn note_spill(&self) {
        self.zones.spilled.fetch_add(1, Ordering::Relaxed);
    }

    /// Zones that Get could return.
    pub fn free_zones(&self) -> u32 {
        self.zones.free.load(Ordering::Acquire)
    }

    /// The figures of an error: a user wants so many bytes and must leave so many zones free.
    pub fn shortage(&self, wanted: u64, leave: u32) -> Shortage {
        let free = self.free_zones();
        let bytes = |zones: u32| u64::from(zones) * self.zone_size();
        let (zones, reserved) = (self.zone_count(), free.min(leave));
        Shortage { zones, wanted, free: bytes(free - reserved), reserved: bytes(reserved) }
    }

    /// Get: takes a free zone with storage behind it, one of the node's if it has any, or of where the caller
    /// runs if none is named. Returns `None` if no
    /// more than `leave` zones are free: these stay for their purpose, also on a full disk. Nothing is
    /// durable yet. A zone that is not committed is free again after the next open.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full (the zone stays free); [`SpaceError::Damaged`] if the list
    /// on the medium has changed since it was verified.
    pub fn get_zone(&self, node: Option<Node>, leave: u32) -> Result<Option<ZoneId>, SpaceError> {
        self.get_zone_with(node, leave, self.zone_size())
    }

    /// Get with storage behind the first `len` bytes of the zone only: [`back_zone`](Space::back_zone) adds
    /// to it.
    ///
    /// # Errors
    /// As for [`get_zone`](Space::get_zone).
    pub(crate) fn get_zone_with(
        &self,
        node: Option<Node>,
        leave: u32,
        len: u64,
    ) -> Result<Option<ZoneId>, SpaceError> {
        if !self.zones.claim(1, leave) {
            return Ok(None);
        }
        let node = node.or_else(|| self.node_here());
        self.take_claimed(node, leave, len).map(Some).inspect_err(|_| {
            self.zones.free.fetch_add(1, Ordering::AcqRel);
        })
    }

    /// Get of several zones: all of them or, without a change, none.
    ///
    /// # Errors
    /// As for [`get_zone`](Space::get_zone).
    pub fn get_zones(
        &self,
        node: Option<Node>,
        leave: u32,
        count: u32,
    ) -> Result<Option<Vec<ZoneId>>, SpaceError> {
        if !self.zones.claim(count, leave) {
            return Ok(None);
        }
        let node = node.or_else(|| self.node_here());
        let mut zones = Vec::with_capacity(count as usize);
        for taken in 0..count {
            match self.take_claimed(node, leave, self.zone_size()) {
                Ok(zone) => zones.push(zone),
                Err(error) => {
                    self.zones.free.fetch_add(count - taken, Ordering::AcqRel);
                    zones.into_iter().for_each(|zone| self.release_zone(zone));
                    return Err(error);
                }
            }
        }
        Ok(Some(zones))
    }

    /// A zone that has been claimed, with storage behind its first `len` bytes: one of the node's extents, if
    /// they have any, and one of the [kept](KeptStorage) zones only if `leave` is zero. An error takes no
    /// zone.
    fn take_claimed(&self, node: Option<Node>, leave: u32, len: u64) -> Result<ZoneId, SpaceError> {
        // One Get at a time skips zones: a second one would miss those that the first holds for a moment.
        let storage = &self.zones.storage;
        let _turn = self.region().is_sparse().then(|| storage.turn.lock());
        let mut search = storage.search(leave);
        let allowance = self.keep_storage(leave)?;
        let mut skipped = Vec::new();
        let taken = self.take_skipping(node, (allowance, len), &mut search, &mut skipped);
        // The skipped zones were not counted as taken.
        for zone in skipped.into_iter().rev() {
            let (extent, index) = self.zones.home(zone).expect("it was taken from a list");
            extent.list.release(index);
        }
        if let (Ok(zone), Some(node)) = (&taken, node)
            && self.zone_node(*zone) != node
        {
            self.note_spill();
        }
        taken
    }

    fn take_skipping(
        &self,
        node: Option<Node>,
        (allowance, len): (Allowance, u64),
        search: &mut Search,
        skipped: &mut Vec<ZoneId>,
    ) -> Result<ZoneId, SpaceError> {
        let ZonePool { storage, extents, .. } = &self.zones;
        let mut waiter = Waiter::default();
        let (mut lacks_storage, mut asked) = (None, 0);
        // The count said that a zone is free, so a list has it or soon will. A release may be between its two
        // steps, or another Get may take a zone ahead of this search and leave its own behind it.
        for _ in 0..PATIENCE {
            match self.zones.pop(self.region(), node)? {
                Some(zone) if storage.has_among(zone, allowance.leaves) => skipped.push(zone),
                // Beyond the limit of the search, only the kept zones are tried.
                Some(zone)
                    if (allowance.only_kept
                        || asked >= search.most
                        || search.is_refused(self.region(), self.zone_offset(zone)))
                        && !storage.has(zone) =>
                {
                    skipped.push(zone);
                }
                Some(zone) => match self.back_zone(zone, 0, len) {
                    Ok(()) => return Ok(zone),
                    Err(error) => {
                        asked += 1;
                        skipped.push(zone);
                        search.note_refused(self.region(), self.zone_offset(zone));
                        if !self.region().is_sparse() {
                            return Err(error);
                        }
                        // On a full disk, another zone may have storage.
                        lacks_storage = Some(error);
                    }
                },
                None => match (lacks_storage.take(), skipped.pop()) {
                    (Some(error), zone) => {
                        skipped.extend(zone);
                        storage.note_full(search);
                        return Err(error);
                    }
                    // Only kept zones are left, since deletions have taken the others meanwhile.
                    (None, Some(zone)) => {
                        return self
                            .back_zone(zone, 0, len)
                            .map(|()| zone)
                            .inspect_err(|_| skipped.push(zone));
                    }
                    (None, None) => waiter.wait(),
                },
            }
        }
        let offset = extents.first().map_or(0, |extent| extent.list.words.head);
        Err(SpaceError::Damaged { what: "the free list of the zones, which ends too early,", offset })
    }

    /// Commit: the zone is owned, durably when this returns, for one flush of one line and one fence. The
    /// fence also covers a header that the caller has written and flushed, but after a crash before the
    /// return the bit may be durable without the header. An owner to whom a committed zone without a header
    /// is damage fences the header first.
    ///
    /// # Panics
    /// If the zone was not gotten, or is committed already.
    pub fn commit_zone(&self, zone: ZoneId) {
        let (extent, index) = self.zones.home(zone).expect("only a zone of this pool is committed");
        extent.list.commit(index);
    }

    /// Check: whether the zone is durably committed.
    pub fn check_zone(&self, zone: ZoneId) -> bool {
        self.zones.home(zone).is_some_and(|(extent, index)| extent.list.check(index))
    }

    /// Release: gives the zone back, durably when this returns. A zone that was never committed costs nothing
    /// on the medium.
    ///
    /// # Panics
    /// If the zone is free already: two releases would soon mean two owners.
    pub fn release_zone(&self, zone: ZoneId) {
        self.release_zone_after(zone, || ());
    }

    /// Release that does something between its two steps, while the zone is durably free and nobody can get
    /// it.
    pub(super) fn release_zone_after(&self, zone: ZoneId, between: impl FnOnce()) {
        let (extent, index) = self.zones.home(zone).expect("only a zone of this pool is released");
        extent.list.release_after(index, between);
        self.zones.storage.note_release();
        self.zones.free.fetch_add(1, Ordering::AcqRel);
    }

    /// The committed zones, for an owner that looks for those it does not know.
    pub fn committed_zones(&self) -> Vec<ZoneId> {
        (0..self.zone_count()).map(ZoneId).filter(|zone| self.check_zone(*zone)).collect()
    }

    /// The last `count` free zones, with storage behind them, for the checkpoint of a close. They stay free,
    /// so Get may hand them out and their contents are lost then. `None` if there are fewer.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full.
    pub fn spare_zones(&self, count: u64) -> Result<Option<Vec<ZoneId>>, SpaceError> {
        if count > u64::from(self.free_zones()) {
            return Ok(None);
        }
        let free = (0..self.zone_count()).rev().map(ZoneId).filter(|zone| self.is_free(*zone));
        let zones: Vec<ZoneId> = free.take(count as usize).collect();
        for zone in &zones {
            self.back_zone(*zone, 0, self.zone_size())?;
        }
        Ok((zones.len() as u64 == count).then_some(zones))
    }

    /// Whether this is a free zone of the pool.
    pub fn is_free(&self, zone: ZoneId) -> bool {
        self.zones.home(zone).is_some_and(|(extent, index)| extent.list.is_free(index))
    }

    /// A digest of the set of committed zones: a commit bit that a closed pool has lost changes it.
    pub(super) fn zones_digest(&self) -> u64 {
        let zones = self.committed_zones();
        XxHash3_64::oneshot(&zones.into_iter().flat_map(|zone| zone.0.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// A digest of the headers of the committed zones. In a closed pool it exposes a header of an earlier
    /// life, which proves itself all the same.
    pub(super) fn headers_digest(&self) -> u64 {
        let mut digest = XxHash3_64::new();
        let mut header = [0; ZONE_HEADER as usize];
        for zone in self.committed_zones() {
            self.region().read_racing(self.zone_offset(zone), &mut header);
            digest.write(&header);
        }
        digest.finish()
    }
}

/// Bytes at the start of a zone in which each kind of owner has its header.
const ZONE_HEADER: u64 = 64;

pub(super) fn table_len(entry: &ExtentEntry) -> u64 {
    HEADER_LEN + u64::from(entry.zone_count.get()) * size_of::<ZoneEntry>() as u64
}

fn table_words(region: &Region, entry: &ExtentEntry) -> Words {
    Words::behind(region, entry.start.get(), size_of::<ZoneEntry>() as u64, entry.zone_count.get())
}

fn location(extent: usize, entry: &ExtentEntry, index: u32) -> u64 {
    u64::from(entry.node.get()) << 48 | (extent as u64) << 32 | u64::from(index)
}

/// Writes the zone table of a new extent, all zones free. A fence follows.
pub(super) fn format(region: &Region, superblock: &Superblock, number: usize, kind: FreeListKind) {
    let entry = &superblock.extents()[number];
    PoolHeader::of_extent(superblock, entry).write(region, entry.start.get(), kind);
    table_words(region, entry).format(kind, |index| Some(location(number, entry, index)));
}
