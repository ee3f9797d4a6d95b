//! `quipu`: our own design. Self-certifying records in per-client segments, found by a hash index in DRAM.
//!
//! One fence makes a put durable, one cache miss finds its index slot and one its record. The price is an
//! index that is rebuilt at open: from the checkpoint of a clean close, else by all threads from a scan of
//! the segments.

use super::{Capabilities, Description, Design, NO_OBJECTS, Recipe};
use crate::log::LogParts;
use crate::options::IndexChoice;
use crate::settings::techniques::{Shortcut, Techniques};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::hash::{HashIndex, HashIndexSettings};

impl Design {
    /// Our own; see [`quipu`](super::quipu).
    pub const QUIPU: Design = Design(1);
}

const PARTS: LogParts<HashIndex> = LogParts::of_design().late().eliminating().cached().checkpointed();

/// The same with an index that keeps keys in order.
const ORDERED_PARTS: LogParts<Alex> =
    LogParts::of_design().late().eliminating().cached().ordered().reading_near().checkpointed();

/// How it compacts.
const TECHNIQUES: Techniques =
    Techniques { reduce: true, separate: true, shortcut: Shortcut::Off, batch: true };

pub(super) const RECIPE: Recipe = Recipe {
    design: Design::QUIPU,
    description: Description {
        name: "quipu",
        paper: "our own, from the parts of all five",
        parts: &[
            ("records", "in the client's own segment, a zone used as a log"),
            ("durable", "when the self-certifying record is fenced: one fence a put"),
            (
                "index",
                "extendible hashing in DRAM, with 8-byte slots and cache-line buckets; with `index=alex`, c-ALEX",
            ),
            (
                "writers",
                "lock the stripe of their key; if two threads put one key at the same time, only one value may be written",
            ),
            ("readers", "lock nothing; an epoch keeps what they read from reuse"),
            ("garbage", "counted per segment in DRAM"),
            ("compaction", "moves live records out of the emptiest segments, ahead of the writers"),
            (
                "cache",
                "in DRAM, for records that are read often and are far; on persistent memory or several nodes",
            ),
        ],
        can: Capabilities { chooses_index: true, reads_near: true, ..PARTS.capabilities() },
    },
    settings: &[],
    object_pools: NO_OBJECTS,
    remember: |_, _| [0; _],
    recall: |_, _| Ok(()),
    open: |site| {
        if site.options.index == IndexChoice::Alex {
            let index = if site.is_tiny() { Alex::tiny() } else { Alex::new() };
            return ORDERED_PARTS.open(site, index, TECHNIQUES);
        }
        let shape = if site.is_tiny() { HashIndexSettings::tiny() } else { HashIndexSettings::default() };
        PARTS.open(site, HashIndex::new(shape), TECHNIQUES)
    },
};
