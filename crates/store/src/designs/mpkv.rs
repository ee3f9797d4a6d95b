//! `mpkv` and `mpkv-baseline`: a log for each client, found by a bucket index in the pool (Wang, Zhu and Shu, "A Multicore-Friendly
//! Persistent Memory Key-Value Store").
//!
//! The two differ in where the locks of the index are, and so in who takes them. The walk is that of the designs `flatstore` whose
//! index is in the pool; of PACMAN there is what the paper leaves open: how the background recycles logs (section 2).

use super::{Description, Design, NewPool, Recipe};
use crate::designs::settings::{BUCKETS, ELIMINATE, GROW};
use crate::log::LogParts;
use crate::options::Options;
use crate::settings::bucket_table::{self, MpkvSettings};
use crate::settings::image::Image;
use crate::settings::techniques::{Shortcut, Techniques};
use crate::types::error::Error;
use quipu_parts::index::PmWords;
use quipu_parts::index::buckets::{BucketIndex, BucketLocks, TableLocks};
use quipu_parts::space::SETTINGS_LEN;
use zerocopy::FromZeros;

impl Design {
    /// MPKV: a bucket index in the pool, with locks in DRAM; see [`mpkv`](super::mpkv).
    pub const MPKV: Design = Design(8);
    /// MPKV's baseline: the same with locks in the buckets.
    pub const MPKV_BASELINE: Design = Design(9);
}

const PARTS: LogParts<BucketIndex<PmWords, TableLocks>> = LogParts::of_design().eliminating();
const BASELINE_PARTS: LogParts<BucketIndex<PmWords, BucketLocks>> = LogParts::of_design();

/// How both compact. A word of the index has no room for a length, and no hints; the writer that supersedes a record has read its
/// key.
const TECHNIQUES: Techniques =
    Techniques { reduce: true, separate: false, shortcut: Shortcut::Off, batch: true };

type Part = (&'static str, &'static str);
const PLACED: Part = ("placed", "in the client's own segment, a zone used as a log (2)");
const PERSISTENT: Part =
    ("persistent", "when its self-certifying record is fenced, and the index has durably named it (3.2)");
const RELEASED: Part = ("released", "by a bit and a counter in DRAM");
const SPACE: Part =
    ("space comes back", "by copying what is live under one fence and repointing, flushed in batches");
const OPENED: Part =
    ("opened", "at once: the index is believed, and what is dead is found out in the background (3.2)");

const LIMITS: &[&str] = &[
    "no order: no range scans",
    "values up to a quarter of a zone",
    "no atomic batches",
    "no salvage: only the index tells which records count",
    "a file is refused after a crash of the operating system, since nobody could tell what its index has lost",
    "pools of less than 256 TiB",
];

fn remember(options: &Options, pool: &NewPool) -> [u8; SETTINGS_LEN] {
    MpkvSettings { table: bucket_table::fitted(options.table, pool.zone_size), root: FromZeros::new_zeroed() }
        .encode()
}

fn recall(bytes: &[u8; SETTINGS_LEN], options: &mut Options) -> Result<(), Error> {
    options.table = MpkvSettings::decode(bytes)?.table;
    Ok(())
}

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
        limits: LIMITS,
        can: PARTS.capabilities(),
    },
    settings: &[&BUCKETS, &GROW, &ELIMINATE],
    remember,
    recall,
    open: |site| {
        let settings = site.settings()?;
        PARTS.open_in_pool(site, settings, TECHNIQUES)
    },
};

/// What the paper compares MPKV with.
pub(super) const BASELINE: Recipe = Recipe {
    design: Design::MPKV_BASELINE,
    description: Description {
        name: "mpkv-baseline",
        paper: "the baseline of MPKV (4.1)",
        parts: &[
            PLACED,
            PERSISTENT,
            ("published", "by buckets of a lock and seven words in the pool, in two phases (3.2)"),
            (
                "writers",
                "lock the stripe of their key, then in the first bucket of its chain, in the pool (4.1)",
            ),
            ("readers", "lock in the first bucket of a chain too, beside each other (4.1)"),
            RELEASED,
            SPACE,
            ("opened", "when all buckets have been looked at, whose locks a crash may have left taken (3.1)"),
            ("cached in DRAM", "nothing"),
        ],
        limits: LIMITS,
        can: BASELINE_PARTS.capabilities(),
    },
    settings: &[&BUCKETS, &GROW],
    remember,
    recall,
    open: |site| {
        let settings = site.settings()?;
        BASELINE_PARTS.open_in_pool(site, settings, TECHNIQUES)
    },
};
