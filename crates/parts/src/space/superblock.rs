//! The superblock: the description of a pool, in two copies, so that one torn update never loses it.
//!
//! Each copy certifies itself by a check word and carries a generation. The valid copy of the higher
//! generation counts. An update writes the other copy, flushes it and fences once, so at every moment at
//! least one copy is whole. Check word, magic and version keep their places in all versions of the format,
//! and the check word always covers the whole copy. So any release can tell a newer pool from a damaged one.
//!
//! A third copy stands apart from both, so that noise at the head of a pool does not take all of them. It is
//! written last when the pool is created, again only if it is damaged, and tells what never changes:
//! geometry, settings, secret. It knows neither the clock nor the last run. So it serves a salvage alone, and
//! no opening believes it.

use super::error::SpaceError;
use super::free_list::FreeListKind;
use super::third_copy;
use quipu_medium::Region;
use twox_hash::XxHash3_64;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Version of the format that this release writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 2;
/// Bytes of settings that the superblock keeps for the store, which this module does not read.
pub const SETTINGS_LEN: usize = 128;

pub(super) const COPY_LEN: u64 = size_of::<Superblock>() as u64;
pub(super) const COPY_OFFSETS: [u64; 2] = [0, COPY_LEN];
pub(super) const SUPERBLOCK_END: u64 = 2 * COPY_LEN;
/// Extents of a pool, at most, and so parts.
pub const MAX_EXTENTS: usize = 16;
pub(super) const MAX_POOLS: usize = 8;

const MAGIC: [u8; 8] = *b"QUIPU\r\n\x1a";
const STATE_CLEAN: u32 = 1;
const STATE_UNCLEAN: u32 = 2;

/// One copy of the superblock. The public fields belong to the store; geometry is fixed when the pool is
/// created.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Superblock {
    pub(super) checksum: U64,
    pub(super) magic: [u8; 8],
    pub(super) version: U32,
    /// Number of the design whose data the pool holds.
    pub design: U32,
    pub(super) generation: U64,
    pub(super) pool_len: U64,
    pub(super) zone_size: U64,
    pub(super) zone_count: U32,
    pub(super) zone_free_list: U32,
    pub(super) state: U32,
    pub(super) reserved_a: [u8; 4],
    /// Every sequence number and life that has been drawn is below this.
    pub clock_ceiling: U64,
    /// Advanced by the first change of each run.
    pub run: U64,
    /// Identity of the boot during which the pool was last written.
    pub boot_id: [u8; 16],
    pub(super) secret: [u8; 32],
    /// The design's own settings.
    pub settings: [u8; SETTINGS_LEN],
    pub(super) extent_count: U32,
    pub(super) pool_count: U32,
    pub(super) zones_digest: U64,
    pub(super) headers_digest: U64,
    /// The checkpoint of the last clean close; see [`Superblock::checkpoint`].
    pub checkpoint: CheckpointEntry,
    /// The mark of the clock by which values expire, in milliseconds since 1970; 0 if none expires.
    pub(super) expiry_mark: U64,
    /// The file that the last run wrote to. All zero if there was none, as on a device.
    pub(super) file: FileEntry,
    /// Where the third copy stands.
    pub(super) third_copy: U64,
    /// Keys that the pool had when it was closed.
    pub keys: U64,
    pub(super) reserved_b: [u8; 152],
    pub(super) extents: [ExtentEntry; MAX_EXTENTS],
    pub(super) pools: [PoolEntry; MAX_POOLS],
    pub(super) reserved_c: [u8; 2432],
}

/// The facts that tell the file of a pool from its copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct FileEntry {
    pub(super) inode: U64,
    pub(super) birth: U64,
    pub(super) device: U64,
}

impl FileEntry {
    /// The file behind a region.
    pub fn of(region: &Region) -> FileEntry {
        region.identity().map_or_else(FileEntry::default, |file| FileEntry {
            inode: file.inode.into(),
            birth: file.birth.into(),
            device: file.device.into(),
        })
    }

    fn is_known(&self) -> bool {
        *self != FileEntry::default()
    }

    /// Whether two files are one, as far as their file systems tell; the device may be a clone.
    fn may_be(&self, other: &FileEntry) -> bool {
        let births = [self.birth, other.birth].map(U64::get);
        self.inode == other.inode && (births.contains(&0) || births[0] == births[1])
    }
}

/// Where an extent lies: a zone table followed by zones, all on one NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ExtentEntry {
    /// First byte of the extent, which is that of its zone table.
    pub start: U64,
    /// Length in bytes, including table and alignment.
    pub len: U64,
    /// First byte of its first zone.
    pub zones: U64,
    /// Number of its first zone in the pool.
    pub first_zone: U32,
    /// Zones in this extent.
    pub zone_count: U32,
    /// NUMA node of its memory.
    pub node: U16,
    pub(super) reserved: [u8; 6],
}

/// Where an object pool lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PoolEntry {
    /// First byte of the metadata.
    pub metadata: U64,
    /// First byte of the objects.
    pub objects: U64,
    /// Bytes of an object.
    pub object_size: U64,
    /// Objects in the pool.
    pub count: U64,
    /// Name of the pool, chosen by the store.
    pub id: U32,
    /// Kind of the free list: 1 persistent, 2 volatile.
    pub free_list: U32,
    pub(super) reserved: [u8; 24],
}

/// Where a checkpoint lies, and its check. All zero if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CheckpointEntry {
    /// Run that left it. It is stale once a later run has begun.
    pub run: U64,
    /// Bytes of its contents.
    pub len: U64,
    /// Check of the checks of its zones.
    pub check: U64,
    /// Its first zone.
    pub first_zone: U32,
    pub(super) reserved: [u8; 4],
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Superblock>() == 4096);
    assert!(size_of::<CheckpointEntry>() == 32);
    assert!(size_of::<ExtentEntry>() == 40);
    assert!(size_of::<PoolEntry>() == 64);
    assert!(offset_of!(Superblock, magic) == 8);
    assert!(offset_of!(Superblock, version) == 16);
    assert!(offset_of!(Superblock, generation) == 24);
    assert!(offset_of!(Superblock, clock_ceiling) == 64);
    assert!(offset_of!(Superblock, checkpoint) == 280);
    assert!(offset_of!(Superblock, extents) == 512);
    assert!(offset_of!(Superblock, pools) == 1152);
};

impl Superblock {
    /// A superblock of generation 0 with nothing but its version filled in.
    pub(super) fn blank() -> Superblock {
        let mut superblock = Superblock::new_zeroed();
        superblock.version.set(FORMAT_VERSION);
        superblock.state.set(STATE_UNCLEAN);
        superblock
    }

    /// Length of the pool in bytes.
    pub fn pool_len(&self) -> u64 {
        self.pool_len.get()
    }

    /// Bytes of a zone.
    pub fn zone_size(&self) -> u64 {
        self.zone_size.get()
    }

    /// Zones of all extents.
    pub fn zone_count(&self) -> u32 {
        self.zone_count.get()
    }

    /// Number of updates that the pool has seen.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Format version of the pool.
    pub fn version(&self) -> u32 {
        self.version.get()
    }

    /// The pool's own random bytes, which key the checks of records.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// The extents.
    pub fn extents(&self) -> &[ExtentEntry] {
        // Open refuses a count above the table; until then it must not panic here.
        &self.extents[..(self.extent_count.get() as usize).min(MAX_EXTENTS)]
    }

    /// The object pools.
    pub fn pools(&self) -> &[PoolEntry] {
        &self.pools[..(self.pool_count.get() as usize).min(MAX_POOLS)]
    }

    /// Kind of the zones' free lists, or `None` if the number has no meaning.
    pub(super) fn zone_free_list(&self) -> Option<FreeListKind> {
        FreeListKind::from_word(self.zone_free_list.get())
    }

    /// Whether the pool was closed properly and has not changed since.
    pub fn is_clean(&self) -> bool {
        self.state.get() == STATE_CLEAN
    }

    /// Sets whether everything in the pool is durable and will not change before the next update.
    pub fn set_clean(&mut self, clean: bool) {
        self.state.set(if clean { STATE_CLEAN } else { STATE_UNCLEAN });
    }

    /// The checkpoint, if the pool was closed with one and nothing has changed since.
    pub fn checkpoint(&self) -> Option<CheckpointEntry> {
        let entry = self.checkpoint;
        (self.is_clean() && entry.len.get() != 0 && entry.run == self.run).then_some(entry)
    }

    /// Whether the region shows a copy of a file that was open while it was copied. Such a copy has pieces of
    /// different times. A copy of a closed pool is as good as the pool.
    pub fn is_copy_of_open(&self, region: &Region) -> bool {
        let here = FileEntry::of(region);
        !self.is_clean() && self.file.is_known() && here.is_known() && !self.file.may_be(&here)
    }

    /// Whether the system has stopped since the last run.
    pub fn is_of_other_boot(&self, region: &Region) -> bool {
        self.boot_id != region.boot_id()
    }

    /// Whether the system's cache of pages may be another one than that of the last run: the system has
    /// stopped since, or the file is on another device. A copy was made by way of that cache, so it may be on
    /// any device if the operator accepts it.
    pub fn has_lost_pages(&self, region: &Region, is_accepted: bool) -> bool {
        let is_elsewhere = self.file.device != FileEntry::of(region).device;
        self.is_of_other_boot(region) || (is_elsewhere && !is_accepted)
    }

    /// Whether the last run was of this boot, on this device and in this file.
    pub fn is_noted(&self, region: &Region) -> bool {
        self.boot_id == region.boot_id() && self.file == FileEntry::of(region)
    }

    /// Notes that pages of the pool are in the cache of this boot and of this device.
    pub fn note_place(&mut self, region: &Region) {
        self.boot_id = region.boot_id();
        self.note_file(region);
    }

    /// Notes that this file is the pool, and no copy.
    pub(super) fn note_file(&mut self, region: &Region) {
        self.file = FileEntry::of(region);
    }

    /// Whether the pool has several parts.
    pub fn has_parts(&self) -> bool {
        self.extent_count.get() > 1
    }

    /// Fills in magic and check word, ready to be written.
    pub(super) fn seal(&mut self) {
        self.magic = MAGIC;
        self.checksum.set(self.expected_checksum());
    }

    pub(super) fn expected_checksum(&self) -> u64 {
        let bytes = self.as_bytes();
        XxHash3_64::oneshot(&bytes[size_of::<U64>()..])
    }

    fn has_magic(&self) -> bool {
        self.magic == MAGIC
    }
}

impl std::fmt::Debug for Superblock {
    /// Leaves the secret out, since debug output ends up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Superblock")
            .field("version", &self.version())
            .field("generation", &self.generation())
            .field("design", &self.design.get())
            .field("pool_len", &self.pool_len())
            .field("zone_size", &self.zone_size())
            .field("zone_count", &self.zone_count())
            .field("clean", &self.is_clean())
            .field("clock_ceiling", &self.clock_ceiling.get())
            .field("run", &self.run.get())
            .field("extents", &self.extents())
            .field("pools", &self.pools())
            .finish_non_exhaustive()
    }
}

const BOTH_COPIES: &str = "the superblock, in both copies,";

/// The newest valid superblock, and how it was found.
pub(super) struct Found {
    pub(super) superblock: Superblock,
    pub(super) copy: usize,
    /// The other copy does not certify itself: an update was torn, or it is damaged.
    pub(super) other_lost: bool,
}

/// Reads the newest superblock copy that certifies itself, and refuses a pool that this release must not
/// touch.
pub(super) fn find(region: &Region) -> Result<Found, SpaceError> {
    let found = newest(region)?;
    if found.superblock.pool_len() > region.len() {
        return Err(SpaceError::Truncated { expected: found.superblock.pool_len(), found: region.len() });
    }
    Ok(found)
}

/// Reads the newest superblock copy that certifies itself, also of a truncated pool.
pub(super) fn newest(region: &Region) -> Result<Found, SpaceError> {
    let mut best: Option<(Superblock, usize)> = None;
    let mut valid = 0;
    let mut first_magic = None;
    for (copy, offset) in COPY_OFFSETS.into_iter().enumerate() {
        if region.len() < offset + COPY_LEN {
            continue;
        }
        let mut candidate = Superblock::new_zeroed();
        region.read_racing(offset, candidate.as_mut_bytes());
        if !candidate.has_magic() {
            continue;
        }
        first_magic = first_magic.or(Some(offset));
        if candidate.checksum.get() != candidate.expected_checksum() {
            continue;
        }
        valid += 1;
        if best.as_ref().is_none_or(|(newest, _)| newest.generation() < candidate.generation()) {
            best = Some((candidate, copy));
        }
    }
    let Some((superblock, copy)) = best else {
        return Err(match first_magic {
            None if third_copy::find(region).is_some() => {
                SpaceError::Damaged { what: BOTH_COPIES, offset: 0 }
            }
            None => SpaceError::NotAPool,
            Some(_) if region.len() < SUPERBLOCK_END => {
                SpaceError::Truncated { expected: SUPERBLOCK_END, found: region.len() }
            }
            Some(offset) => SpaceError::Damaged { what: BOTH_COPIES, offset },
        });
    };
    match superblock.version() {
        FORMAT_VERSION => {}
        version if version > FORMAT_VERSION => {
            return Err(SpaceError::NewerFormat { version, known: FORMAT_VERSION });
        }
        version => return Err(SpaceError::OlderFormat { version, known: FORMAT_VERSION }),
    }
    Ok(Found { superblock, copy, other_lost: valid < COPY_OFFSETS.len() })
}

/// Reads what never changes, from the newest copy or else from the third one; with the error of the former
/// two then. The latter is of no run, and not clean.
pub(super) fn described(region: &Region) -> Result<(Found, Option<SpaceError>), SpaceError> {
    match newest(region) {
        Ok(found) => Ok((found, None)),
        Err(error @ (SpaceError::NotAPool | SpaceError::Damaged { .. })) => match third_copy::find(region) {
            Some(superblock) => Ok((Found { superblock, copy: 0, other_lost: true }, Some(error))),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Writes a sealed superblock into a copy. Durable when it returns.
pub(super) fn write_copy(region: &Region, copy: usize, superblock: &Superblock) {
    let offset = COPY_OFFSETS[copy];
    region.write(offset, superblock.as_bytes());
    region.persist(offset, COPY_LEN);
}

/// Erases all copies, durably: the region holds no pool then. An earlier pool may have had its third copy
/// elsewhere.
pub(super) fn erase(region: &Region) {
    region.zero(0, SUPERBLOCK_END);
    for at in third_copy::places(region).filter(|at| third_copy::read(region, *at).is_some()) {
        region.zero(at, COPY_LEN);
    }
    region.fence();
}

/// Writes both copies of a new pool, and last the magic words, as single words. Until the first of them is
/// durable there is no pool, and from then on there is a whole one. The fence before them also covers the
/// metadata of lists, which the caller has written without waiting.
pub(super) fn write_first(region: &Region, superblock: &Superblock) {
    let magic_at = std::mem::offset_of!(Superblock, magic);
    let mut without_magic = superblock.clone();
    without_magic.magic = [0; 8];
    for offset in COPY_OFFSETS {
        region.write(offset, without_magic.as_bytes());
        region.flush(offset, COPY_LEN);
    }
    region.fence();
    for offset in COPY_OFFSETS {
        region.store(offset + magic_at as u64, u64::from_le_bytes(MAGIC));
        region.flush(offset + magic_at as u64, size_of_val(&MAGIC) as u64);
    }
    region.fence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_what_both_have() {
        let file = |inode: u64, birth: u64, device: u64| {
            let [inode, birth, device] = [inode, birth, device].map(U64::new);
            FileEntry { inode, birth, device }
        };
        let one = file(12, 34, 56);
        assert!(one.may_be(&file(12, 34, 57)) && !one.may_be(&file(13, 34, 56)));
        assert!(!one.may_be(&file(12, 35, 56)));
        // A file system that does not tell it now, or did not then.
        assert!(one.may_be(&file(12, 0, 56)) && file(12, 0, 56).may_be(&one));
    }
}
