//! [`Space`]: a pool, opened.

use super::error::SpaceError;
use super::expiry_clock::ExpiryClock;
use super::free_list::{FreeList, FreeListKind};
use super::layout::{self, FormatOptions};
use super::object_pool::{self, ObjectPool};
use super::part_header::{self, PART_HEADER_LEN};
use super::recovery::{SpaceRecovery, repair};
use super::superblock::{self, COPY_LEN, COPY_OFFSETS, Superblock};
use super::third_copy;
use super::zone_pool::{self, ZonePool};
use crate::sync::SpinLock;
use quipu_medium::{Claim, MediumError, Region};

/// The space of a pool: its superblock, zones and object pools. See the module documentation.
pub struct Space {
    region: Region,
    /// Keeps every other handle from opening the region.
    _claim: Claim,
    current: SpinLock<Current>,
    pub(super) zones: ZonePool,
    pub(super) pools: Vec<ObjectPool>,
    pub(super) expiry: ExpiryClock,
    /// Bytes of a zone that an index uses, if not all.
    index_limit: u64,
}

/// The superblock in use.
struct Current {
    superblock: Superblock,
    copy: usize,
}

impl Space {
    /// Makes a pool of the whole region, and overwrites the old contents. A crash before the return leaves
    /// either no pool or this one.
    ///
    /// # Errors
    /// [`SpaceError::Options`] and [`SpaceError::TooSmall`] before anything is changed;
    /// [`SpaceError::Medium`] if there is no storage for the metadata.
    pub fn format(region: Region, options: &FormatOptions) -> Result<Space, SpaceError> {
        let mut plan = layout::plan(&region.spans(), options)?;
        plan.note_file(&region);
        plan.seal();
        let paths = part_header::encode(region.mapping().paths())?;
        let claim = region.claim()?;
        reserve_metadata(&region, &plan)?;
        superblock::erase(&region);
        part_header::format(&region, &plan, &region.spans(), &paths);
        for entry in plan.pools() {
            object_pool::format(&region, &plan, entry, options.free_list);
        }
        for number in 0..plan.extents().len() {
            zone_pool::format(&region, &plan, number, options.free_list);
        }
        superblock::write_first(&region, &plan);
        // Without it there is a whole pool, and it alone would look like a damaged one.
        third_copy::write(&region, &plan);
        region.fence();
        drop(claim);
        let space = Space::open(region)?.0;
        space.keep_storage(u32::MAX)?;
        Ok(space)
    }

    /// The superblock of the pool in a region, without opening or changing anything.
    ///
    /// # Errors
    /// As for [`Space::open`].
    pub fn probe(region: &Region) -> Result<Superblock, SpaceError> {
        let found = superblock::find(region)?;
        layout::verify(&found.superblock)?;
        Ok(found.superblock)
    }

    /// The superblock of a pool that may be damaged, truncated, or have further parts.
    ///
    /// # Errors
    /// It cannot be read, or is none that this release knows.
    pub fn superblock_of(region: &Region) -> Result<Superblock, SpaceError> {
        Ok(superblock::described(region)?.0.superblock)
    }

    /// Opens a pool and reclaims objects that an earlier run had gotten and not committed. All metadata is
    /// verified before the first change. No byte of a pool that was closed cleanly is changed. The metadata
    /// gets storage where a copy of the file has left some out.
    ///
    /// # Errors
    /// The region holds no pool, or one that must not be changed; the error says why. [`SpaceError::Medium`]
    /// if the disk has no room for storage that the metadata lacks.
    pub fn open(region: Region) -> Result<(Space, SpaceRecovery), SpaceError> {
        let (space, mut recovery) = Space::examine(region)?;
        space.repair(&mut recovery);
        Ok((space, recovery))
    }

    /// The first half of [`open`](Space::open), for an owner that has more to verify: it changes nothing.
    /// [`repair`](Space::repair) must follow before the first Get or Release.
    ///
    /// # Errors
    /// As for [`open`](Space::open).
    pub fn examine(region: Region) -> Result<(Space, SpaceRecovery), SpaceError> {
        let claim = region.claim()?;
        let found = superblock::find(&region)?;
        let superblock = found.superblock;
        layout::verify(&superblock)?;
        part_header::verify(&region, &superblock, found.other_lost)?;
        verify_metadata(&region, &superblock).try_for_each(|part| part)?;

        if is_written_to(&region) {
            reserve_metadata(&region, &superblock)?;
        }
        // The newest copy may still be only in the processor's cache, if a process that has died wrote it.
        region.persist(COPY_OFFSETS[found.copy], COPY_LEN);
        let was_clean = superblock.is_clean();
        let superblock_copy_lost = found.other_lost;
        let space = Space::assemble(region, claim, superblock, found.copy, true);
        space.compare_digest()?;
        if space.region.shares_blocks() {
            space.back_zones(space.committed_zones())?;
        }
        let committed = |list: &FreeList| list.count() - list.free();
        let recovery = SpaceRecovery {
            was_clean,
            superblock_copy_lost,
            committed_zones: space.zone_count() - space.free_zones(),
            committed_objects: space.pools.iter().map(|pool| u64::from(committed(&pool.list))).sum(),
            ..SpaceRecovery::default()
        };
        Ok((space, recovery))
    }

    /// Opens the rest of a damaged or truncated pool for reading, and reports all faults of its metadata. The
    /// caller must not get, commit, release or update anything.
    ///
    /// # Errors
    /// Too little is left to tell where anything is.
    pub fn survey(region: Region) -> Result<(Space, Vec<SpaceError>), SpaceError> {
        let claim = region.claim()?;
        let (found, wrong) = superblock::described(&region)?;
        let superblock = found.superblock;
        layout::verify(&superblock)?;
        let (expected, found_len) = (superblock.pool_len(), region.len());
        let truncated = || SpaceError::Truncated { expected, found: found_len };
        let mut wrong = Vec::from_iter(wrong);
        if expected > found_len {
            wrong.push(truncated());
        }
        let tables = superblock.extents().iter().map(|extent| extent.zones.get());
        let objects = superblock.pools().iter().map(|pool| pool.objects.get());
        if tables.chain(objects).any(|end| end > found_len) {
            return Err(truncated());
        }
        wrong.extend(part_header::verify(&region, &superblock, found.other_lost).err());
        wrong.extend(verify_metadata(&region, &superblock).filter_map(Result::err));
        let space = Space::assemble(region, claim, superblock, found.copy, false);
        wrong.extend(space.compare_digest().err());
        Ok((space, wrong))
    }

    fn assemble(region: Region, claim: Claim, superblock: Superblock, copy: usize, is_sound: bool) -> Space {
        let pools = superblock.pools().iter().map(|entry| ObjectPool::open(&region, entry)).collect();
        let zones = ZonePool::open(&region, &superblock);
        let may_raise = is_sound && !region.is_read_only();
        let expiry = ExpiryClock::new(superblock.expiry_mark.get(), may_raise);
        let current = SpinLock::new(Current { superblock, copy });
        Space { region, _claim: claim, current, zones, pools, expiry, index_limit: u64::MAX }
    }

    /// Whether the same zones are in use as when the pool was closed.
    fn compare_digest(&self) -> Result<(), SpaceError> {
        let superblock = &self.current.lock().superblock;
        if !superblock.is_clean() || self.zones_digest() == superblock.zones_digest.get() {
            return Ok(());
        }
        let offset = superblock.extents().first().map_or(0, |extent| extent.start.get());
        Err(SpaceError::Damaged { what: "the set of zones in use", offset })
    }

    /// Whether the zones in use have the headers that the pool was closed with. Also `true` if the pool was
    /// not closed. Ask before anything is changed.
    pub fn has_headers_of_close(&self) -> bool {
        let superblock = self.superblock();
        !superblock.is_clean() || self.headers_digest() == superblock.headers_digest.get()
    }

    /// The second half of [`open`](Space::open), once the pool is accepted: repairs the free lists, and adds
    /// the repairs to `recovery`.
    pub fn repair(&self, recovery: &mut SpaceRecovery) {
        self.accept_expiry();
        self.lists().for_each(|list| repair(list, recovery));
        if !self.region.is_read_only() && !self.has_third_copy() {
            third_copy::write(&self.region, &self.superblock());
            self.region.fence();
        }
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

    /// Recovery is over: from here on the pages of a pool that was not closed belong to this boot, device and
    /// file. Until now they stay those of the crashed run, so that an interrupted recovery finds the same
    /// excuse for lost pages again.
    pub fn settle(&self) {
        let superblock = self.superblock();
        if !superblock.is_clean() && !superblock.is_noted(&self.region) {
            self.update_superblock(|superblock| superblock.note_place(&self.region));
            // On a file, a refusal means that a crash of the system has the copy refused once more.
            let _ = self.write_back_superblock();
        }
    }

    /// Changes the superblock, durably when this returns; a crash before that leaves either the old or the
    /// new one. A caller that marks the pool clean must have stopped all other work. The free lists are made
    /// durable first then.
    pub fn update_superblock(&self, change: impl FnOnce(&mut Superblock)) {
        let mut current = self.current.lock();
        let mut next = current.superblock.clone();
        let mark = self.expiry.next_mark(next.expiry_mark.get(), self.region.now());
        next.expiry_mark.set(mark);
        change(&mut next);
        next.generation.set(current.superblock.generation() + 1);
        if next.is_clean() && !current.superblock.is_clean() {
            next.zones_digest.set(self.zones_digest());
            next.headers_digest.set(self.headers_digest());
            // Get and Release leave the links in the caches.
            let persistent = self.lists().filter(|list| list.kind == FreeListKind::Persistent);
            persistent.for_each(|list| list.words.flush());
            self.region.fence();
        }
        next.seal();
        let (other, begins) = (1 - current.copy, next.run != current.superblock.run);
        if begins {
            part_header::note_run(&self.region, &next, false);
        }
        superblock::write_copy(&self.region, other, &next);
        if begins && next.has_parts() {
            // On a file, a refusal matters only after a crash of the system.
            let _ = self.write_back_superblock();
            part_header::note_run(&self.region, &next, true);
        }
        *current = Current { superblock: next, copy: other };
    }

    /// Writes the superblock back to the device beneath a file; see [`Region::write_back`].
    ///
    /// # Errors
    /// The system could not.
    pub(crate) fn write_back_superblock(&self) -> Result<(), MediumError> {
        self.region.write_back(0, superblock::SUPERBLOCK_END)
    }

    /// Limits how many bytes of each of their zones indexes use, so that a few keys fill several zones. For
    /// tests. The limit shapes how an index lies in its zones, so every open of the pool must set the same
    /// one.
    pub fn limit_index_zones(&mut self, bytes: u64) {
        self.index_limit = bytes;
    }

    pub(crate) fn index_zone_size(&self) -> u64 {
        self.zone_size().min(self.index_limit)
    }

    /// Whether the third copy of the superblock, which a salvage may need, is whole. If it is not, the next
    /// opening for writing writes it anew.
    pub fn has_third_copy(&self) -> bool {
        third_copy::is_there(&self.region, &self.current.lock().superblock)
    }

    /// The object pool of that name.
    pub fn pool(&self, id: u32) -> Option<&ObjectPool> {
        self.pools.iter().find(|pool| pool.id() == id)
    }
}

/// Whether stores to the region may need storage. A simulated one counts its reservations for tests.
pub(super) fn is_written_to(region: &Region) -> bool {
    region.simulator().is_none() && !region.is_read_only()
}

/// Ensures storage behind all metadata. Object pools are used without further reservations, so their objects
/// count.
fn reserve_metadata(region: &Region, plan: &Superblock) -> Result<(), SpaceError> {
    let first_extent = plan.extents().first().map_or(superblock::SUPERBLOCK_END, |extent| extent.start.get());
    // Nothing is between the copies of the superblock.
    let third = plan.third_copy.get();
    region.reserve(0, superblock::SUPERBLOCK_END)?;
    region.reserve(third, first_extent.max(third + COPY_LEN) - third)?;
    for (_, at) in part_header::places(plan) {
        region.reserve(at, PART_HEADER_LEN)?;
    }
    for extent in plan.extents() {
        // The gap between the table and the first zone only aligns the zone and needs no storage.
        region.reserve(extent.start.get(), zone_pool::table_len(extent))?;
    }
    Ok(())
}

/// Compares the metadata of each object pool and extent with the superblock's description of it.
fn verify_metadata(region: &Region, superblock: &Superblock) -> impl Iterator<Item = Result<(), SpaceError>> {
    let pools = superblock.pools().iter().map(|entry| ObjectPool::verify(region, superblock, entry));
    let extents = (0..superblock.extents().len()).map(|number| ZonePool::verify(region, superblock, number));
    pools.chain(extents)
}
