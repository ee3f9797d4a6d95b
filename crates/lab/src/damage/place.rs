//! The places of a pool that damage strikes.

use std::fmt;

/// The structure that a byte of a pool belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The older copy of the superblock or the newer one.
    Superblock,
    /// The description and the list head before the zone table, and the table.
    ZoneTable,
    /// The header of a segment, or of a zone of a large value, but for the end mark.
    ZoneHeader,
    /// The end mark of a segment.
    EndMark,
    /// A record that counts, in a segment that has an end mark.
    LiveRecord,
    /// Any other record there: a dead one, a tombstone, the head of a frame.
    DeadRecord,
    /// A record in a segment that was open when the run ended.
    OpenRecord,
    /// The objects of memtables, tables and anchor, and the tables of their pools.
    Object,
    /// A zone of a large value.
    LargeValue,
    /// The header of a chunk.
    ChunkHeader,
    /// The header word of a page.
    PageHeader,
    /// The bits of a page of slots.
    SlotBits,
    /// The bytes of a record in a page, but for its length word.
    PageRecord,
    /// The length word of an entry of a page.
    LengthWord,
    /// The rest of a page: dead records, free room.
    PageRest,
    /// The header of a zone of an index in the pool.
    IndexHeader,
    /// Nodes, buckets or chunks of an index in the pool.
    Index,
    /// The checkpoint.
    Checkpoint,
    /// Free zones, and gaps.
    Free,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Place::Superblock => "superblock",
            Place::ZoneTable => "zone table",
            Place::ZoneHeader => "zone header",
            Place::EndMark => "end mark",
            Place::LiveRecord => "live record",
            Place::OpenRecord => "open record",
            Place::DeadRecord => "dead record",
            Place::Object => "object",
            Place::LargeValue => "large value",
            Place::ChunkHeader => "chunk header",
            Place::PageHeader => "page header",
            Place::SlotBits => "slot bits",
            Place::PageRecord => "page record",
            Place::LengthWord => "length word",
            Place::PageRest => "page rest",
            Place::IndexHeader => "index header",
            Place::Index => "index",
            Place::Checkpoint => "checkpoint",
            Place::Free => "free",
        })
    }
}
