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
                "placed",
                "at the tail of the key's cluster on the client's node; the tail is locked for a moment (III-C)",
            ),
            ("persistent", "when its self-certifying record is fenced: one fence a put"),
            ("published", "by c-ALEX in DRAM, which keeps the first bytes of keys, in their order (IV)"),
            (
                "writers",
                "lock the stripe of their key, and look up the record before theirs, which theirs names (III-D)",
            ),
            ("readers", "lock nothing; an epoch keeps what they read from reuse"),
            ("released", "by counters of garbage per file in DRAM"),
            (
                "space comes back",
                "by marking the parents of a file's entries, moving its live records, and freeing it (III-F)",
            ),
            ("opened", "from the checkpoint of a clean close, else when all files have been scanned (III-G)"),
            (
                "cached in DRAM",
                "the index; on persistent memory and on several nodes, what is read often and lies far (III-B)",
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
