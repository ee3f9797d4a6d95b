//! `quipu`: our own design. Self-certifying records in per-client segments, found by a hash index in DRAM.
//!
//! One fence makes a put durable, one cache miss finds its index slot and one its record; the price is an index
//! that is rebuilt at open: from the checkpoint of a clean close, else from a sequential scan of the segments by all
//! threads.

use super::Description;
use quipu_parts::heap::Reference;
use quipu_parts::index::Index;
use quipu_parts::index::hash::HashIndex;

/// What `quipu designs` prints.
pub static DESCRIPTION: Description = Description {
    name: "quipu",
    paper: "our own, from the parts of all five",
    parts: &[
        ("placed", "in the client's own segment, a zone used as a log"),
        ("persistent", "when its self-certifying record is fenced: one fence a put"),
        ("published", "by an extendible hash index in DRAM: 8-byte slots, cache-line buckets"),
        (
            "writers",
            "lock the stripe of their key; of two puts that meet at a key one may return for the other",
        ),
        ("readers", "lock nothing; an epoch keeps what they read from reuse"),
        ("released", "by counters of garbage per segment in DRAM"),
        ("space comes back", "by moving what is live out of the emptiest segments, ahead of the writers"),
        ("cached in DRAM", "nothing but the index"),
    ],
    switches: &[
        ("zone-size", "bytes of a zone, a power of two from 16 KiB to 4 MiB"),
        ("free-list", "persistent (Halloc's log-free list) or volatile (rebuilt from the commit bits)"),
        ("cleaner", "whether a thread compacts ahead of the writers"),
        ("recovery-threads", "threads that scan segments, or load a checkpoint, at open"),
    ],
    limits: &["no order: no range scans", "values up to 1 GiB, as far as the pool has room"],
    ordered: false,
    batches: true,
    expiry: true,
    lends: true,
    large_values: true,
    value_zones: true,
    has_blocks: false,
    index_in_pool: false,
    features: &[],
    pools_below: Reference::reach(<HashIndex as Index>::WORD_BITS),
    checkpoints: true,
    updates_in_place: false,
    eliminates: true,
    waste: 0,
    salvages: true,
    unproved: &[],
};

/// Stripes of key locks: enough that writers of different keys seldom meet, few enough to stay in the L2 cache.
pub(crate) const STRIPES: usize = 4096;

/// Share of the zones, as a divisor, that puts leave to deletes and to compaction.
pub(crate) const RESERVE_DIVISOR: u32 = 50;

/// Records that the cleaner moves under one fence.
pub(crate) const PIECE: usize = 1024;

/// Numbers drawn between two durable raises of the clock's ceiling.
pub(crate) const CLOCK_BLOCK: u64 = 1 << 20;

/// Numbers that a client draws at once.
pub(crate) const HANDFUL: u64 = 64;

/// Bytes of a zone at least, unless another size is asked for.
pub(crate) const LEAST_ZONE: u64 = 64 << 10;
