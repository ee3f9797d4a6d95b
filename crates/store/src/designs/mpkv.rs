//! `mpkv` and `mpkv-baseline`: a log for each client, found by a bucket index in the pool (Wang, Zhu and Shu,
//! "A Multicore-Friendly Persistent Memory Key-Value Store").
//!
//! The locks of the index are in DRAM in the one and in its buckets in the other, so other operations take
//! them. The walk is that of the designs `flatstore` with an index in the pool. The paper leaves open how the
//! background recycles logs (section 2); PACMAN's compaction does it here.

use super::{Description, Design, NO_OBJECTS, Recipe};
use crate::designs::settings::TABLE;
use crate::log::LogParts;
use crate::settings::bucket_table::{self, MpkvSettings};
use crate::settings::image::Image;
use crate::settings::techniques::{Shortcut, Techniques};
use quipu_parts::index::PmWords;
use quipu_parts::index::buckets::{BucketIndex, BucketLocks, TableLocks};
use zerocopy::FromZeros;

impl Design {
    /// MPKV: a bucket index in the pool, with locks in DRAM; see [`mpkv`](super::mpkv).
    pub const MPKV: Design = Design(8);
    /// MPKV's baseline: locks in the buckets.
    pub const MPKV_BASELINE: Design = Design(9);
}

const PARTS: LogParts<BucketIndex<PmWords, TableLocks>> = LogParts::of_design().eliminating();
const BASELINE_PARTS: LogParts<BucketIndex<PmWords, BucketLocks>> = LogParts::of_design();

/// How both compact. A word of the index has no room for a length or a hint. A writer that supersedes a
/// record has read its key.
const TECHNIQUES: Techniques =
    Techniques { reduce: true, separate: false, shortcut: Shortcut::Off, batch: true };

type Part = (&'static str, &'static str);
const PLACED: Part = ("records", "in the client's own segment, a zone used as a log (2)");
const PERSISTENT: Part =
    ("durable", "when the self-certifying record is fenced, and then the index entry (3.2)");
const RELEASED: Part = ("garbage", "marked by a bit and counted, in DRAM");
const SPACE: Part =
    ("compaction", "copies live records under one fence, and flushes their index entries in batches");
const OPENED: Part =
    ("open", "at once: the index is believed, and dead records are found in the background (3.2)");

/// MPKV.
pub(super) const MPKV: Recipe = Recipe {
    design: Design::MPKV,
    description: Description {
        name: "mpkv",
        paper: "MPKV, Tsinghua University (in Chinese)",
        parts: &[
            PLACED,
            PERSISTENT,
            (
                "index",
                "buckets of eight words in the pool, updated in two phases; readers complete the second (3.2)",
            ),
            (
                "writers",
                "lock the stripe of their key, then one of 4,096 words in DRAM for its chain of buckets (3.1)",
            ),
            (
                "elimination",
                "if two threads put one key at the same time, only one value may be written (3.3)",
            ),
            ("readers", "lock nothing; an epoch keeps what they read from reuse (3.2)"),
            RELEASED,
            SPACE,
            OPENED,
            ("cache", "none unless `cache` asks for one"),
        ],
        can: PARTS.capabilities(),
    },
    settings: &[TABLE],
    object_pools: NO_OBJECTS,
    remember: |options, pool| {
        let table = bucket_table::fitted(options.table, pool.zone_size);
        MpkvSettings { table, root: FromZeros::new_zeroed() }.encode()
    },
    recall: |bytes, options| {
        options.table = MpkvSettings::decode(bytes)?.table;
        Ok(())
    },
    open: |site| {
        let settings = site.settings()?;
        PARTS.open_in_pool(site, settings, TECHNIQUES)
    },
};

/// The paper's baseline.
pub(super) const BASELINE: Recipe = Recipe {
    design: Design::MPKV_BASELINE,
    description: Description {
        name: "mpkv-baseline",
        paper: "the baseline of MPKV (4.1)",
        parts: &[
            PLACED,
            PERSISTENT,
            ("index", "buckets of a lock and seven words in the pool, updated in two phases (3.2)"),
            (
                "writers",
                "lock the stripe of their key, then in the first bucket of its chain, in the pool (4.1)",
            ),
            ("readers", "share the lock in the first bucket of the chain (4.1)"),
            RELEASED,
            SPACE,
            ("open", "after a look at all buckets, whose locks a crash may have left taken (3.1)"),
            ("cache", "none unless `cache` asks for one"),
        ],
        can: BASELINE_PARTS.capabilities(),
    },
    open: |site| {
        let settings = site.settings()?;
        BASELINE_PARTS.open_in_pool(site, settings, TECHNIQUES)
    },
    ..MPKV
};
