//! `flatstore-h`, `-ph`, `-m` and `-ff`: a log for each client, found by a volatile or persistent index (Chen et al., "FlatStore",
//! ASPLOS 2020), compacted as PACMAN does (Wang et al., "Pacman: An Efficient Compaction Approach for Log-Structured Key-Value
//! Store on Persistent Memory", USENIX ATC 2022), which the four are named after (2.2, 4.1).
//!
//! The walk is that of `quipu`, and so are the records. What differs is the index, which names a record with its length; that a
//! client writes hot and cold records to segments of their own; and that compaction asks nobody what is live.

use super::Description;
use quipu_parts::heap::Reference;
use quipu_parts::space::Feature;

/// What the four have in common.
const BASE: Description = Description {
    name: "flatstore",
    paper: "FlatStore, ASPLOS 2020, with Pacman, USENIX ATC 2022",
    parts: &[],
    switches: super::quipu::DESCRIPTION.switches,
    limits: &["values up to 1 GiB, as far as the pool has room"],
    ordered: false,
    batches: true,
    expiry: true,
    lends: true,
    large_values: true,
    value_zones: true,
    has_blocks: false,
    index_in_pool: false,
    features: &[],
    // Words of all four have room for a whole one.
    pools_below: Reference::reach(Reference::BITS),
    checkpoints: false,
    updates_in_place: false,
    eliminates: false,
    waste: 0,
    salvages: true,
    unproved: &[],
};

const PLACED: (&str, &str) =
    ("placed", "in the client's segment for hot records or for cold ones (2.1, 3.4)");
const PERSISTENT: (&str, &str) = ("persistent", "when its self-certifying record is fenced");
const WRITERS: (&str, &str) = ("writers", "lock the stripe of their key");
const READERS: (&str, &str) = ("readers", "lock nothing; an epoch keeps what they read from reuse");
const RELEASED: (&str, &str) =
    ("released", "by a bit and a counter in DRAM; the index's word tells its length (3.2)");
const SPACE: (&str, &str) =
    ("space comes back", "by copying what is live under one fence and repointing, flushed in batches (3.3)");
const CACHED: (&str, &str) = ("cached in DRAM", "which keys are hot (3.4)");

/// FlatStore-H.
pub static H: Description = Description {
    name: "flatstore-h",
    parts: &[
        PLACED,
        PERSISTENT,
        ("published", "by CCEH in DRAM, which keeps keys of eight bytes"),
        WRITERS,
        READERS,
        RELEASED,
        SPACE,
        CACHED,
    ],
    ..BASE
};

/// FlatStore-M.
pub static M: Description = Description {
    name: "flatstore-m",
    parts: &[
        PLACED,
        PERSISTENT,
        ("published", "by Masstree in DRAM, which keeps all keys, in their order"),
        WRITERS,
        READERS,
        RELEASED,
        SPACE,
        CACHED,
    ],
    ordered: true,
    checkpoints: true,
    ..BASE
};

/// What the two with a persistent index have in common.
const IN_POOL: Description = Description {
    limits: &[
        "values up to a quarter of a zone",
        "no atomic batches",
        "no salvage: only the index tells which records count",
        "a file is refused after a crash of the operating system, since nobody could tell what its index has lost",
    ],
    batches: false,
    large_values: false,
    value_zones: false,
    index_in_pool: true,
    salvages: false,
    unproved: super::OF_INDEX_IN_POOL,
    ..BASE
};

const NAMED: (&str, &str) =
    ("persistent", "when its self-certifying record is fenced, and the index has durably named it (2.1)");
const OPENED: (&str, &str) =
    ("opened", "at once: the index is believed, and what is dead is found out in the background (3.5)");

/// FlatStore-PH.
pub static PH: Description = Description {
    name: "flatstore-ph",
    parts: &[
        PLACED,
        NAMED,
        ("published", "by CCEH in the pool, which keeps keys of eight bytes"),
        WRITERS,
        READERS,
        RELEASED,
        SPACE,
        OPENED,
        CACHED,
    ],
    ..IN_POOL
};

/// FlatStore-FF.
pub static FF: Description = Description {
    name: "flatstore-ff",
    parts: &[
        PLACED,
        NAMED,
        ("published", "by FAST&FAIR in the pool, which keeps all keys, in their order"),
        WRITERS,
        READERS,
        RELEASED,
        SPACE,
        OPENED,
        CACHED,
    ],
    ordered: true,
    features: &[Feature::MARKED_NODES, Feature::CHECKED_CHILDREN],
    ..IN_POOL
};
