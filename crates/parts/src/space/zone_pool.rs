//! The zone pool: large pieces for whatever a design appends to or carves up itself (section 3.4.2), from the memory
//! of the node that asks.
//!
//! Each extent carries the table of its own zones and a list of its own, so that a node's allocations neither touch
//! another node's memory nor wait for its lock. A table entry is the zone's index word and its location word. In
//! format version 1 a zone stays where it was laid out, and open refuses any other location; releases that move
//! zones will say so by an incompatible feature bit.

use super::error::SpaceError;
use super::free_list::{FreeList, FreeListKind, Words};
use super::kept_storage::{KEPT, KeptStorage, Search};
use super::pool_header::{HEAD_AT, HEADER_LEN, PoolHeader, ZoneEntry};
use super::recovery::examine;
use super::superblock::{ExtentEntry, Superblock};
use crate::sync::Waiter;
use quipu_medium::{Node, Region};
use std::hash::Hasher;
use std::sync::atomic::{AtomicU32, Ordering};
use twox_hash::XxHash3_64;

/// A zone, by number: what persistent references name. Stable for the life of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u32);

/// Turns that a Get waits for a zone that must exist; a release takes a few.
const PATIENCE: u32 = 1 << 20;
/// Where the location word lies in a table entry.
const LOCATION_AT: u64 = std::mem::offset_of!(ZoneEntry, location) as u64;

/// The zones of one extent.
pub(super) struct ZoneExtent {
    first_zone: u32,
    node: u16,
    pub(super) list: FreeList,
}

/// All zones.
pub(super) struct ZonePool {
    pub(super) region: Region,
    zone_size: u64,
    pub(super) extents: Vec<ZoneExtent>,
    /// First byte of each zone.
    offsets: Box<[u64]>,
    /// Zones that are on a list, or passed by a Get that is under way, and not promised to one.
    free: AtomicU32,
    pub(super) storage: KeptStorage,
}

impl ZonePool {
    /// Compares the zone table of an extent with what the superblock says of it.
    pub(super) fn verify(region: &Region, superblock: &Superblock, number: usize) -> Result<(), SpaceError> {
        let entry = &superblock.extents()[number];
        PoolHeader::of_extent(superblock, entry).verify(
            region,
            entry.start.get(),
            "the header of an extent",
        )?;
        let words = table_words(region, entry);
        for index in 0..words.count {
            let offset = words.at(index) + LOCATION_AT;
            if region.load(offset) != location(number, entry, index) {
                return Err(SpaceError::Damaged { what: "the location of a zone", offset });
            }
        }
        Ok(())
    }

    /// Opens the zones of extents that have been verified.
    pub(super) fn open(region: &Region, superblock: &Superblock) -> ZonePool {
        let kind = superblock.zone_free_list().expect("the layout has been verified");
        let zone_size = superblock.zone_size();
        let mut extents = Vec::new();
        let mut offsets = Vec::new();
        for entry in superblock.extents() {
            let list = examine(table_words(region, entry), kind);
            let first = entry.zones.get();
            offsets.extend((0..u64::from(list.count())).map(|index| first + index * zone_size));
            extents.push(ZoneExtent { first_zone: entry.first_zone.get(), node: entry.node.get(), list });
        }
        let free = extents.iter().map(|extent| extent.list.free()).sum();
        ZonePool {
            region: region.clone(),
            zone_size,
            extents,
            offsets: offsets.into(),
            free: AtomicU32::new(free),
            storage: KeptStorage::default(),
        }
    }

    #[inline]
    pub(super) fn offset(&self, zone: ZoneId) -> Option<u64> {
        self.offsets.get(zone.0 as usize).copied()
    }

    pub(super) fn zone_size(&self) -> u64 {
        self.zone_size
    }

    pub(super) fn count(&self) -> u32 {
        self.offsets.len() as u32
    }

    pub(super) fn free(&self) -> u32 {
        self.free.load(Ordering::Acquire)
    }

    /// The extent that a zone belongs to, and its number there; `None` if there is no such zone.
    fn home(&self, zone: ZoneId) -> Option<(&ZoneExtent, u32)> {
        let behind = self.extents.partition_point(|extent| extent.first_zone <= zone.0);
        let extent = self.extents.get(behind.checked_sub(1)?)?;
        let index = zone.0 - extent.first_zone;
        (index < extent.list.count()).then_some((extent, index))
    }

    pub(super) fn node(&self, zone: ZoneId) -> Option<Node> {
        self.home(zone).map(|(extent, _)| Node(extent.node))
    }

    /// Get: see [`super::Space::get_zone`].
    pub(super) fn get(&self, node: Option<Node>, leave: u32, len: u64) -> Result<Option<ZoneId>, SpaceError> {
        if !self.claim(1, leave) {
            return Ok(None);
        }
        self.take_claimed(node, leave, len).map(Some).inspect_err(|_| {
            self.free.fetch_add(1, Ordering::AcqRel);
        })
    }

    /// Get of several: see [`super::Space::get_zones`].
    pub(super) fn get_many(
        &self,
        node: Option<Node>,
        leave: u32,
        count: u32,
    ) -> Result<Option<Vec<ZoneId>>, SpaceError> {
        if !self.claim(count, leave) {
            return Ok(None);
        }
        let mut zones = Vec::with_capacity(count as usize);
        for taken in 0..count {
            match self.take_claimed(node, leave, self.zone_size) {
                Ok(zone) => zones.push(zone),
                Err(error) => {
                    self.free.fetch_add(count - taken, Ordering::AcqRel);
                    zones.into_iter().for_each(|zone| self.release(zone));
                    return Err(error);
                }
            }
        }
        Ok(Some(zones))
    }

    /// Takes `count` zones out of the count of free ones, if at least `leave` are left then.
    fn claim(&self, count: u32, leave: u32) -> bool {
        let claim = |free: u32| free.checked_sub(count).filter(|left| *left >= leave);
        self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).is_ok()
    }

    /// A zone that has been claimed, with storage behind its first bytes: of the node's extents, if they have one, and one of those
    /// that are [kept](KeptStorage) only if no zones are to be left. On an error none is taken.
    fn take_claimed(&self, node: Option<Node>, leave: u32, len: u64) -> Result<ZoneId, SpaceError> {
        // One at a time, where zones are passed: another one would not find those that this one has for a moment.
        let _turn = self.region.is_sparse().then(|| self.storage.turn.lock());
        let search = self.storage.search(leave);
        let keeps = self.keep_storage(leave)?;
        let mut passed = Vec::new();
        let taken = self.take_passing(node, (keeps, len), &search, &mut passed);
        // These were not counted as taken.
        for zone in passed.into_iter().rev() {
            let (extent, index) = self.home(zone).expect("it was taken from a list");
            extent.list.release(index);
        }
        taken
    }

    fn take_passing(
        &self,
        node: Option<Node>,
        (keeps, len): (usize, u64),
        search: &Search,
        passed: &mut Vec<ZoneId>,
    ) -> Result<ZoneId, SpaceError> {
        let mut waiter = Waiter::default();
        let (mut lacks_storage, mut asked) = (None, 0);
        // The count said that a zone is free, so a list has it or is about to: a thread that releases one is between the two, and another
        // thread may take one ahead of the search and leave its own behind it.
        for _ in 0..PATIENCE {
            match self.pop(node)? {
                Some(zone) if self.storage.has(zone, keeps) => passed.push(zone),
                // Of very many only those that are kept are asked.
                Some(zone) if asked >= search.most && !self.storage.has(zone, KEPT) => passed.push(zone),
                Some(zone) => match self.back(zone, 0, len) {
                    Ok(()) => return Ok(zone),
                    Err(error) => {
                        asked += 1;
                        passed.push(zone);
                        if !self.region.is_sparse() {
                            return Err(error);
                        }
                        // Another one may have storage on a disk that is full.
                        lacks_storage = Some(error);
                    }
                },
                None => match (lacks_storage.take(), passed.pop()) {
                    (Some(error), zone) => {
                        passed.extend(zone);
                        self.storage.note_full(search);
                        return Err(error);
                    }
                    // Only those are left that are kept, since deletions have taken the others meanwhile.
                    (None, Some(zone)) => {
                        return self.back(zone, 0, len).map(|()| zone).inspect_err(|_| passed.push(zone));
                    }
                    (None, None) => waiter.wait(),
                },
            }
        }
        let offset = self.extents.first().map_or(0, |extent| extent.list.words.head);
        Err(SpaceError::Damaged { what: "the free list of the zones, which ends too early,", offset })
    }

    /// Makes sure of storage behind bytes of a zone.
    pub(super) fn back(&self, zone: ZoneId, from: u64, to: u64) -> Result<(), SpaceError> {
        let start = self.offset(zone).expect("the zone belongs to this pool");
        Ok(self.region.reserve(start + from, to - from)?)
    }

    /// The next zone of the lists, the node's first.
    pub(super) fn pop(&self, node: Option<Node>) -> Result<Option<ZoneId>, SpaceError> {
        let is_near = |extent: &&ZoneExtent| node.as_ref().is_some_and(|node| node.0 == extent.node);
        let near = self.extents.iter().filter(is_near);
        for extent in near.chain(self.extents.iter().filter(|extent| !is_near(extent))) {
            if let Some(index) = extent.list.get()? {
                return Ok(Some(ZoneId(extent.first_zone + index)));
            }
        }
        Ok(None)
    }

    pub(super) fn commit(&self, zone: ZoneId) {
        let (extent, index) = self.home(zone).expect("only a zone of this pool is committed");
        extent.list.commit(index);
    }

    pub(super) fn check(&self, zone: ZoneId) -> bool {
        self.home(zone).is_some_and(|(extent, index)| extent.list.check(index))
    }

    pub(super) fn release(&self, zone: ZoneId) {
        let (extent, index) = self.home(zone).expect("only a zone of this pool is released");
        extent.list.release(index);
        self.storage.note_release();
        self.free.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn committed(&self) -> Vec<ZoneId> {
        let of = |extent: &'_ ZoneExtent| -> Vec<ZoneId> {
            extent.list.committed().map(|index| ZoneId(extent.first_zone + index)).collect()
        };
        self.extents.iter().flat_map(of).collect()
    }

    /// The last free zones: see [`super::Space::spare_zones`].
    pub(super) fn spare(&self, count: u64) -> Result<Option<Vec<ZoneId>>, SpaceError> {
        if count > u64::from(self.free()) {
            return Ok(None);
        }
        let free = (0..self.count()).rev().map(ZoneId).filter(|zone| self.is_free(*zone));
        let zones: Vec<ZoneId> = free.take(count as usize).collect();
        for zone in &zones {
            self.back(*zone, 0, self.zone_size)?;
        }
        Ok((zones.len() as u64 == count).then_some(zones))
    }

    pub(super) fn is_free(&self, zone: ZoneId) -> bool {
        self.home(zone).is_some_and(|(extent, index)| extent.list.is_free(index))
    }

    /// Names the set of committed zones, so that a lost commit bit of a closed pool is noticed.
    pub(super) fn digest(&self) -> u64 {
        let numbers: Vec<u8> = self.committed().into_iter().flat_map(|zone| zone.0.to_le_bytes()).collect();
        XxHash3_64::oneshot(&numbers)
    }

    /// Names the headers of these zones, so that one of an earlier life, which proves itself all the same, is noticed in a closed pool.
    pub(super) fn headers_digest(&self, region: &Region) -> u64 {
        let mut digest = XxHash3_64::new();
        let mut header = [0; ZONE_HEADER as usize];
        for start in self.committed().into_iter().filter_map(|zone| self.offset(zone)) {
            region.read_racing(start, &mut header);
            digest.write(&header);
        }
        digest.finish()
    }
}

/// Bytes at the start of a zone in which each of its owners has its header.
const ZONE_HEADER: u64 = 64;

/// Bytes of the zone table of an extent.
pub(super) fn table_len(entry: &ExtentEntry) -> u64 {
    HEADER_LEN + u64::from(entry.zone_count.get()) * size_of::<ZoneEntry>() as u64
}

/// Where the list words of an extent lie.
fn table_words(region: &Region, entry: &ExtentEntry) -> Words {
    let start = entry.start.get();
    Words {
        region: region.clone(),
        head: start + HEAD_AT,
        first: start + HEADER_LEN,
        stride: size_of::<ZoneEntry>() as u64,
        count: entry.zone_count.get(),
    }
}

/// The location word of a zone.
fn location(extent: usize, entry: &ExtentEntry, index: u32) -> u64 {
    u64::from(entry.node.get()) << 48 | (extent as u64) << 32 | u64::from(index)
}

/// Writes the zone table of a new extent, all zones free. A fence follows.
pub(super) fn format(region: &Region, superblock: &Superblock, number: usize, kind: FreeListKind) {
    let entry = &superblock.extents()[number];
    PoolHeader::of_extent(superblock, entry).write(region, entry.start.get(), kind);
    table_words(region, entry).format(kind, |index| Some(location(number, entry, index)));
}
