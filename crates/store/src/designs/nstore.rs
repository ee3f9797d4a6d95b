//! `nstore`: logs on each node that all its clients append to, found by a learned index (Wang et al.,
//! "NStore: A High-Performance NUMA-Aware Key-Value Store for Hybrid Memory", IEEE Transactions on Computers,
//! 2025).

use super::{Description, Design, NO_OBJECTS, Recipe, settings};
use crate::nlog;
use crate::settings::files::NstoreSettings;
use crate::settings::image::Image;
use quipu_parts::index::alex::Alex;

impl Design {
    /// NStore; see [`nstore`](super::nstore).
    pub const NSTORE: Design = Design(11);
}

pub(super) const RECIPE: Recipe = Recipe {
    design: Design::NSTORE,
    description: Description {
        name: "nstore",
        paper: "NStore, IEEE TC 2025",
        parts: &[
            (
                "records",
                "in a log for each node and cluster of keys, whose tail a writer locks for a moment (III-C)",
            ),
            ("durable", "when the self-certifying record is fenced: one fence a put"),
            ("index", "c-ALEX in DRAM, which stores the first bytes of keys, in their order (IV)"),
            (
                "writers",
                "lock the stripe of their key, and look up its last record, which the new one names (III-D)",
            ),
            ("readers", "lock nothing; an epoch keeps what they read from reuse"),
            ("garbage", "counted per file in DRAM"),
            (
                "compaction",
                "marks the parents of a file's entries, moves its live records, and frees it (III-F)",
            ),
            ("open", "from the checkpoint of a clean close, otherwise by a scan of all files (III-G)"),
            (
                "cache",
                "in DRAM, for records that are read often and are far; on persistent memory or several nodes (III-B)",
            ),
        ],
        can: nlog::capabilities::<Alex>(),
    },
    settings: &[settings::NSTORE],
    object_pools: NO_OBJECTS,
    remember: |options, _| NstoreSettings::new(options.files.entry).encode(),
    recall: |kept, options| {
        options.files.entry = NstoreSettings::kept(kept)?.entry;
        Ok(())
    },
    open: |site| {
        let index = if site.is_tiny() { Alex::tiny() } else { Alex::new() };
        let kept = NstoreSettings::kept(&site.space.superblock().settings)?;
        nlog::open(site, index, kept.entry)
    },
};
