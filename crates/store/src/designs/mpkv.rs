//! `mpkv` and `mpkv-baseline`: a log for each client, found by a bucket index in the pool (Wang, Zhu and Shu, "A Multicore-Friendly
//! Persistent Memory Key-Value Store").
//!
//! The two differ in where the locks of the index are, and so in who takes them. The walk is that of the designs `flatstore` whose
//! index is in the pool; of PACMAN there is what the paper leaves open: how the background recycles logs (section 2).

use super::Description;
use crate::techniques::{Shortcut, Techniques};
use quipu_parts::heap::Reference;
use quipu_parts::index::buckets::{BucketIndex, TableLocks};
use quipu_parts::index::{Index, PmWords};
use quipu_parts::space::Feature;

const PLACED: (&str, &str) = ("placed", "in the client's own segment, a zone used as a log (2)");
const PERSISTENT: (&str, &str) =
    ("persistent", "when its self-certifying record is fenced, and the index has durably named it (3.2)");
const RELEASED: (&str, &str) = ("released", "by a bit and a counter in DRAM");
const SPACE: (&str, &str) =
    ("space comes back", "by copying what is live under one fence and repointing, flushed in batches");
const OPENED: (&str, &str) =
    ("opened", "at once: the index is believed, and what is dead is found out in the background (3.2)");

const LIMITS: &[&str] = &[
    "no order: no range scans",
    "values up to a quarter of a zone",
    "no atomic batches",
    "no salvage: only the index tells which records count",
    "a file is refused after a crash of the operating system, since nobody could tell what its index has lost",
    "pools of less than 256 TiB",
];

/// MPKV.
pub static MPKV: Description = Description {
    name: "mpkv",
    paper: "MPKV, Tsinghua University (in Chinese)",
    parts: &[
        PLACED,
        PERSISTENT,
        (
            "published",
            "by buckets of eight words in the pool, in two phases; readers complete the second (3.2)",
        ),
        (
            "writers",
            "lock the stripe of their key, then one of 4,096 words in DRAM for its chain of buckets (3.1)",
        ),
        ("writers that meet", "at a key: of two puts one may return for the other (3.3)"),
        ("readers", "lock nothing; an epoch keeps what they read from reuse (3.2)"),
        RELEASED,
        SPACE,
        OPENED,
        ("cached in DRAM", "nothing"),
    ],
    switches: super::quipu::DESCRIPTION.switches,
    limits: LIMITS,
    ordered: false,
    batches: false,
    expiry: true,
    lends: true,
    large_values: false,
    value_zones: false,
    checkpoints: false,
    updates_in_place: false,
    eliminates: true,
    waste: 0,
    has_blocks: false,
    index_in_pool: true,
    features: &[Feature::MARKED_BUCKETS],
    pools_below: Reference::reach(<BucketIndex<PmWords, TableLocks> as Index>::WORD_BITS),
    salvages: false,
    unproved: super::OF_INDEX_IN_POOL,
};

/// What the paper compares MPKV with.
pub static BASELINE: Description = Description {
    name: "mpkv-baseline",
    paper: "the baseline of MPKV (4.1)",
    parts: &[
        PLACED,
        PERSISTENT,
        ("published", "by buckets of a lock and seven words in the pool, in two phases (3.2)"),
        ("writers", "lock the stripe of their key, then in the first bucket of its chain, in the pool (4.1)"),
        ("readers", "lock in the first bucket of a chain too, beside each other (4.1)"),
        RELEASED,
        SPACE,
        ("opened", "when all buckets have been looked at, whose locks a crash may have left taken (3.1)"),
        ("cached in DRAM", "nothing"),
    ],
    eliminates: false,
    ..MPKV
};

/// How both compact. A word of the index has no room for a length, and no hints; who supersedes a record has read its key.
pub(crate) const TECHNIQUES: Techniques =
    Techniques { reduce: true, separate: false, shortcut: Shortcut::Off, batch: true };
