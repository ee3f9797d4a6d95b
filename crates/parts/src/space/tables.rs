//! The fields of every structure on the medium, derived from the structures themselves. A test holds the
//! description of the format against them.

use super::part_header::PartHeader;
use super::pool_header::{PoolHeader, ZoneEntry};
use super::superblock::{CheckpointEntry, ExtentEntry, FileEntry, PoolEntry, Superblock};
use crate::table;
use crate::table::Table;

/// All structures on the medium that this module owns.
pub fn format_tables() -> Vec<Table> {
    vec![
        table!(Superblock: checksum, magic, version, design, generation, pool_len, zone_size, zone_count, zone_free_list, state, reserved_a, clock_ceiling, run, boot_id, secret,
            settings, extent_count, pool_count, zones_digest, headers_digest, checkpoint, expiry_mark, file, third_copy, keys, reserved_b, extents, pools, reserved_c),
        table!(CheckpointEntry: run, len, check, first_zone, reserved),
        table!(FileEntry: inode, birth, device),
        table!(ExtentEntry: start, len, zones, first_zone, zone_count, node, reserved),
        table!(PoolEntry: metadata, objects, object_size, count, id, free_list, reserved),
        table!(PoolHeader: checksum, objects, object_size, count, id, kind, free_list, node, reserved_a, head,
            reserved_b),
        table!(ZoneEntry: index, location),
        table!(PartHeader: checksum, magic, pool, number, count, reserved_a, raised, confirmed, reserved_b, lens, paths),
    ]
}
