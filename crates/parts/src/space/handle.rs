//! [`Space`]: a pool, opened.

use super::error::{Shortage, SpaceError};
use super::free_list::{FreeList, FreeListKind};
use super::layout::{self, FormatOptions};
use super::object_pool::{self, ObjectPool};
use super::recovery::{SpaceRecovery, repair};
use super::superblock::{self, COPY_LEN, COPY_OFFSETS, Superblock};
use super::zone_pool::{self, ZoneId, ZonePool};
use crate::sync::SpinLock;
use quipu_medium::{Claim, Node, Region};

/// The space of a pool: its superblock, zones and object pools. See the module documentation.
pub struct Space {
    region: Region,
    /// Nobody else opens the region while this lives.
    _claim: Claim,
    current: SpinLock<Current>,
    pub(super) zones: ZonePool,
    pub(super) pools: Vec<ObjectPool>,
    /// Bytes of a zone that an index uses, if not all.
    index_limit: u64,
}

/// The superblock in use.
struct Current {
    superblock: Superblock,
    /// The copy on the medium that holds it.
    copy: usize,
}

impl Space {
    /// Makes a pool of the whole region, whatever it held before. A crash before the return leaves either no pool or
    /// this one.
    ///
    /// # Errors
    /// [`SpaceError::Options`] and [`SpaceError::TooSmall`] before anything is changed; [`SpaceError::Medium`] if
    /// there is no storage for the metadata.
    pub fn format(region: Region, options: &FormatOptions) -> Result<Space, SpaceError> {
        let plan = layout::plan(region.len(), options)?;
        let claim = region.claim()?;
        // Object pools are used without further reservations, so their objects are reserved with the metadata.
        let first_extent =
            plan.extents().first().map_or(superblock::SUPERBLOCK_END, |extent| extent.start.get());
        region.reserve(0, first_extent)?;
        for extent in plan.extents() {
            // Not what lies between the table and the first zone, which is only there to align that.
            region.reserve(extent.start.get(), zone_pool::table_len(extent))?;
        }
        superblock::erase(&region);
        for entry in plan.pools() {
            object_pool::format(&region, &plan, entry, options.free_list);
        }
        for number in 0..plan.extents().len() {
            zone_pool::format(&region, &plan, number, options.free_list);
        }
        superblock::write_first(&region, &plan);
        drop(claim);
        let space = Space::open(region)?.0;
        space.zones.keep_storage(u32::MAX)?;
        Ok(space)
    }

    /// The superblock of the pool in a region, without opening or changing anything.
    ///
    /// # Errors
    /// As for [`Space::open`], but unknown features that only matter to a writer are let pass.
    pub fn probe(region: &Region) -> Result<Superblock, SpaceError> {
        let found = superblock::find(region)?;
        layout::verify(&found.superblock)?;
        Ok(found.superblock)
    }

    /// Opens a pool and takes back what an earlier run had gotten and not committed. All metadata is verified before
    /// the first change; a pool that was closed cleanly is not changed at all.
    ///
    /// # Errors
    /// That there is no pool here, or which reason speaks against touching it.
    pub fn open(region: Region) -> Result<(Space, SpaceRecovery), SpaceError> {
        let (space, mut recovery) = Space::examine(region)?;
        space.repair(&mut recovery);
        Ok((space, recovery))
    }

    /// The first half of [`open`](Space::open), for an owner who has more to verify: nothing is changed. Before anything
    /// is gotten or released, [`repair`](Space::repair) must follow.
    ///
    /// # Errors
    /// As for [`open`](Space::open).
    pub fn examine(region: Region) -> Result<(Space, SpaceRecovery), SpaceError> {
        let claim = region.claim()?;
        let found = superblock::find(&region)?;
        let superblock = found.superblock;
        match superblock.unknown_when_writing() {
            0 => {}
            // A pool that was not closed is recovered, by rules that this release may not know.
            _ if region.is_read_only() && superblock.is_clean() => {}
            bits => return Err(SpaceError::UnknownFeatures { bits }),
        }
        layout::verify(&superblock)?;
        for entry in superblock.pools() {
            ObjectPool::verify(&region, &superblock, entry)?;
        }
        for number in 0..superblock.extents().len() {
            ZonePool::verify(&region, &superblock, number)?;
        }

        // One that a process wrote which has died may still be in the processor's cache, and so may the other one.
        region.persist(COPY_OFFSETS[found.copy], COPY_LEN);
        let was_clean = superblock.is_clean();
        let superblock_copy_lost = found.other_lost;
        let space = Space::assemble(region, claim, superblock, found.copy);
        space.compare_digest()?;
        let committed = |list: &FreeList| list.count() - list.free();
        let recovery = SpaceRecovery {
            was_clean,
            superblock_copy_lost,
            committed_zones: space.zones.count() - space.zones.free(),
            committed_objects: space.pools.iter().map(|pool| u64::from(committed(&pool.list))).sum(),
            ..SpaceRecovery::default()
        };
        Ok((space, recovery))
    }

    /// Opens a damaged pool, or one that was cut short, for reading what is left of it: with everything that is wrong with
    /// its metadata. Nothing may be gotten, committed, released or updated.
    ///
    /// # Errors
    /// If there is not enough left to tell where anything is.
    pub fn survey(region: Region) -> Result<(Space, Vec<SpaceError>), SpaceError> {
        let claim = region.claim()?;
        let found = superblock::newest(&region)?;
        let superblock = found.superblock;
        layout::verify(&superblock)?;
        let (expected, found_len) = (superblock.pool_len(), region.len());
        let truncated = || SpaceError::Truncated { expected, found: found_len };
        let mut wrong = Vec::new();
        if expected > found_len {
            wrong.push(truncated());
        }
        let tables = superblock.extents().iter().map(|extent| extent.zones.get());
        let objects = superblock.pools().iter().map(|pool| pool.objects.get());
        if tables.chain(objects).any(|end| end > found_len) {
            return Err(truncated());
        }
        for entry in superblock.pools() {
            wrong.extend(ObjectPool::verify(&region, &superblock, entry).err());
        }
        for number in 0..superblock.extents().len() {
            wrong.extend(ZonePool::verify(&region, &superblock, number).err());
        }
        let space = Space::assemble(region, claim, superblock, found.copy);
        wrong.extend(space.compare_digest().err());
        Ok((space, wrong))
    }

    fn assemble(region: Region, claim: Claim, superblock: Superblock, copy: usize) -> Space {
        let pools = superblock.pools().iter().map(|entry| ObjectPool::open(&region, entry)).collect();
        let zones = ZonePool::open(&region, &superblock);
        let current = SpinLock::new(Current { superblock, copy });
        Space { region, _claim: claim, current, zones, pools, index_limit: u64::MAX }
    }

    /// Whether the zones in use are those that they were when the pool was closed.
    fn compare_digest(&self) -> Result<(), SpaceError> {
        let superblock = &self.current.lock().superblock;
        if !superblock.is_clean() || self.zones.digest() == superblock.zones_digest.get() {
            return Ok(());
        }
        let offset = superblock.extents().first().map_or(0, |extent| extent.start.get());
        Err(SpaceError::Damaged { what: "the set of zones in use", offset })
    }

    /// Whether the headers of the zones in use are those that the pool was closed with, as far as it was closed by a release that
    /// wrote that down. To be asked before anything is changed.
    pub fn has_headers_of_close(&self) -> bool {
        let superblock = self.superblock();
        !superblock.is_clean()
            || superblock.marked_from().is_none()
            || self.zones.headers_digest(&self.region) == superblock.headers_digest.get()
    }

    /// The second half of [`open`](Space::open): sets the free lists right, and adds to `recovery` what that took.
    pub fn repair(&self, recovery: &mut SpaceRecovery) {
        self.lists().for_each(|list| recovery.add(&repair(list)));
    }

    fn lists(&self) -> impl Iterator<Item = &FreeList> {
        self.pools.iter().map(|pool| &pool.list).chain(self.zones.extents.iter().map(|extent| &extent.list))
    }

    /// The region that holds the pool.
    #[inline]
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// A copy of the superblock.
    pub fn superblock(&self) -> Superblock {
        self.current.lock().superblock.clone()
    }

    /// Changes the superblock: durable when it returns, and after a crash before that, either the old or the new
    /// one. Whoever marks the pool clean must have stopped everything else; the free lists are made durable first.
    pub fn update_superblock(&self, change: impl FnOnce(&mut Superblock)) {
        let mut current = self.current.lock();
        let mut next = current.superblock.clone();
        change(&mut next);
        next.generation.set(current.superblock.generation() + 1);
        if next.is_clean() {
            next.zones_digest.set(self.zones.digest());
            next.headers_digest.set(self.zones.headers_digest(&self.region));
            self.flush_lists();
            self.region.fence();
        }
        next.seal();
        let other = 1 - current.copy;
        superblock::write_copy(&self.region, other, &next);
        *current = Current { superblock: next, copy: other };
    }

    /// Writes the superblock back to the device beneath a file; see [`Region::write_back`].
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the system could not.
    pub fn write_back_superblock(&self) -> Result<(), SpaceError> {
        Ok(self.region.write_back(0, superblock::SUPERBLOCK_END)?)
    }

    /// Starts making the links of lists durable, which Get and Release leave to the caches. A fence follows.
    fn flush_lists(&self) {
        for list in self.lists().filter(|list| list.kind == FreeListKind::Persistent) {
            list.words.flush();
        }
    }

    /// First byte of a zone: one load from a table in DRAM.
    ///
    /// # Panics
    /// If there is no such zone.
    #[inline]
    pub fn zone_offset(&self, zone: ZoneId) -> u64 {
        self.zones.offset(zone).expect("the zone belongs to this pool")
    }

    /// First byte of a zone, or `None` if there is no such zone (a damaged reference).
    #[inline]
    pub fn checked_zone_offset(&self, zone: ZoneId) -> Option<u64> {
        self.zones.offset(zone)
    }

    /// Bytes of a zone.
    #[inline]
    pub fn zone_size(&self) -> u64 {
        self.zones.zone_size()
    }

    /// Lets indexes use no more than so many bytes of each of their zones, so that a few keys fill several.
    /// For tests: the limit is part of how an index stands in its zones, so the same one has to be set
    /// whenever the pool is opened.
    pub fn limit_index_zones(&mut self, bytes: u64) {
        self.index_limit = bytes;
    }

    /// Bytes of a zone that an index uses.
    pub fn index_zone_size(&self) -> u64 {
        self.zone_size().min(self.index_limit)
    }

    /// Zones in the pool, whoever has them.
    pub fn zone_count(&self) -> u32 {
        self.zones.count()
    }

    /// NUMA node of a zone's memory.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn zone_node(&self, zone: ZoneId) -> Node {
        self.zones.node(zone).expect("the zone belongs to this pool")
    }

    /// Zones that Get could return.
    pub fn free_zones(&self) -> u32 {
        self.zones.free()
    }

    /// The figures of an error: so many bytes are wanted by a user who has to leave so many zones free.
    pub fn shortage(&self, wanted: u64, leave: u32) -> Shortage {
        let free = self.free_zones();
        let bytes = |zones: u32| u64::from(zones) * self.zone_size();
        let (zones, reserved) = (self.zone_count(), free.min(leave));
        Shortage { zones, wanted, free: bytes(free - reserved), reserved: bytes(reserved) }
    }

    /// Get: takes a free zone, one of the node's if it has any, with storage behind it. `None` if no more than `leave`
    /// zones are free, which are then still there for whom they are kept, also on a full disk. Nothing is durable yet; a zone that is
    /// not committed is free again after the next open.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full (the zone stays free); [`SpaceError::Damaged`] if the list on the
    /// medium has changed since it was verified.
    pub fn get_zone(&self, node: Option<Node>, leave: u32) -> Result<Option<ZoneId>, SpaceError> {
        self.get_zone_with(node, leave, self.zone_size())
    }

    /// The same, with storage behind the first `len` bytes only: [`back_zone`](Space::back_zone) adds to it.
    ///
    /// # Errors
    /// As for [`get_zone`](Space::get_zone).
    pub fn get_zone_with(
        &self,
        node: Option<Node>,
        leave: u32,
        len: u64,
    ) -> Result<Option<ZoneId>, SpaceError> {
        self.zones.get(node, leave, len)
    }

    /// Makes sure of storage behind bytes `from..to` of a zone that the caller has.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn back_zone(&self, zone: ZoneId, from: u64, to: u64) -> Result<(), SpaceError> {
        self.zones.back(zone, from, to)
    }

    /// Gives the storage of free zones back to the file system, but for what deletions and compaction need on a full disk. Nobody
    /// takes or releases zones meanwhile, and the zone table that says they are free is on the device. Returns the bytes of these zones.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the system could not.
    pub fn discard_free_zones(&self) -> Result<u64, SpaceError> {
        self.zones.discard_free()
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
        self.zones.get_many(node, leave, count)
    }

    /// Commit: the zone is owned, durably when this returns, for one flush of one line and one fence. The fence also
    /// covers a header that the caller has written and flushed; but after a crash before the return the bit may have
    /// arrived without it. An owner for whom a committed zone without a header is damage fences the header first.
    ///
    /// # Panics
    /// If the zone was not gotten, or is committed already.
    pub fn commit_zone(&self, zone: ZoneId) {
        self.zones.commit(zone);
    }

    /// Check: whether the zone is durably committed.
    pub fn check_zone(&self, zone: ZoneId) -> bool {
        self.zones.check(zone)
    }

    /// Release: gives the zone back, durably when this returns. One that was never committed costs nothing on the
    /// medium.
    ///
    /// # Panics
    /// If the zone is free already: two releases would soon mean two owners.
    pub fn release_zone(&self, zone: ZoneId) {
        self.zones.release(zone);
    }

    /// The committed zones, for an owner that looks for those it does not know.
    pub fn committed_zones(&self) -> Vec<ZoneId> {
        self.zones.committed()
    }

    /// The last free zones, so many, with storage behind them, for what is written when a pool closes. They stay free:
    /// whatever is written there is gone when Get returns them. `None` if there are fewer.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full.
    pub fn spare_zones(&self, count: u64) -> Result<Option<Vec<ZoneId>>, SpaceError> {
        self.zones.spare(count)
    }

    /// Whether this is a zone of the pool that nobody has.
    pub fn is_free(&self, zone: ZoneId) -> bool {
        self.zones.is_free(zone)
    }

    /// The object pool of that name.
    pub fn pool(&self, id: u32) -> Option<&ObjectPool> {
        self.pools.iter().find(|pool| pool.id() == id)
    }
}
