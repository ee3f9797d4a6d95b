//! The third copy of the superblock: what never changes, for a salvage.
//!
//! It stands apart from the other two, so that noise at the head of a pool does not take all that says where
//! anything is. Nothing that a run changes may be believed of it.

use super::superblock::{COPY_LEN, CheckpointEntry, FORMAT_VERSION, FileEntry, SUPERBLOCK_END, Superblock};
use quipu_medium::Region;
use zerocopy::little_endian::U64;
use zerocopy::{FromZeros, IntoBytes};

const MAGIC: [u8; 8] = *b"QUIPU3RD";
/// It stands nowhere behind this.
pub(super) const AT_MOST: u64 = 1 << 20;
/// The ceiling of the clock in the third copy: higher than any run draws, and low enough that few other bytes
/// look like a number below it.
const UNKNOWN_CEILING: u64 = 1 << 44;

/// Looks for the third copy, whose place depends on the length that the pool was created with.
pub(super) fn find(region: &Region) -> Option<Superblock> {
    places(region).find_map(|at| read(region, at))
}

pub(super) fn places(region: &Region) -> impl Iterator<Item = u64> {
    let places = (SUPERBLOCK_END..=AT_MOST).step_by(COPY_LEN as usize);
    places.take_while(|at| at + COPY_LEN <= region.len())
}

pub(super) fn read(region: &Region, at: u64) -> Option<Superblock> {
    // On a file system in memory, a look at a hole takes a page.
    if !region.has_data(at, COPY_LEN) {
        return None;
    }
    let mut copy = Superblock::new_zeroed();
    region.read_racing(at, copy.as_mut_bytes());
    let is_one = copy.magic == MAGIC && copy.checksum.get() == copy.expected_checksum();
    (is_one && copy.version() == FORMAT_VERSION && copy.third_copy.get() == at).then_some(copy)
}

/// Whether the third copy is there, and tells of this pool.
pub(super) fn is_there(region: &Region, superblock: &Superblock) -> bool {
    let at = superblock.third_copy.get();
    at + COPY_LEN <= region.len() && read(region, at).is_some_and(|third| third.secret == superblock.secret)
}

/// Writes the third copy of a pool: what never changes. Nothing that a later run changes may be believed of
/// it, so it is of no run, of no file, and unclean. A fence follows.
pub(super) fn write(region: &Region, superblock: &Superblock) {
    let mut copy = superblock.clone();
    copy.generation.set(0);
    copy.set_clean(false);
    copy.clock_ceiling.set(UNKNOWN_CEILING);
    copy.run.set(0);
    copy.boot_id = [0; _];
    (copy.zones_digest, copy.headers_digest) = (U64::ZERO, U64::ZERO);
    copy.checkpoint = CheckpointEntry::new_zeroed();
    (copy.expiry_mark, copy.keys) = (U64::ZERO, U64::ZERO);
    copy.file = FileEntry::default();
    copy.magic = MAGIC;
    copy.checksum.set(copy.expected_checksum());
    region.write_nt(superblock.third_copy.get(), copy.as_bytes());
}
