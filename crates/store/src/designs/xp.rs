//! `xp`: one order over all writes of a pool (Yan et al., "Revisiting the Design of LSM-tree Based OLTP
//! Storage Engine with Persistent Memory", VLDB 2021).
//!
//! Writes go through a ring into memtables, whose records stay in persistent memory. An index in DRAM names
//! the versions of each key. When half of the pool is used, a table is dumped into levels on an SSD.

use super::{Description, Design, Recipe};
use crate::settings::image::Image;
use crate::tiered::{TieredParts, capabilities, object_pools, settings};
use quipu_parts::index::masstree::Masstree;

impl Design {
    /// The LSM engine for transactions; see [`xp`](super::xp).
    pub const XP: Design = Design(10);
}

const PARTS: TieredParts<Masstree> = TieredParts { index: Masstree::new };

pub(super) const RECIPE: Recipe = Recipe {
    design: Design::XP,
    description: Description {
        name: "xp",
        paper: "Yan et al., VLDB 2021 (LSM-tree based OLTP on PM)",
        parts: &[
            ("order", "a ring gives all writes of the pool one order (3.2.3)"),
            ("records", "in the memtable of their table, behind the write before (3.1)"),
            ("durable", "when the self-certifying chunk is fenced: one fence for a put or a batch (3.2.1)"),
            ("index", "Masstree in DRAM, with the versions of each key (3.1)"),
            ("visible", "when all writes before it are durable and published, too"),
            ("writers", "lock the stripe of their key"),
            ("readers", "lock nothing; iterators see one state"),
            (
                "compaction",
                "dumps a table into sorted files on an SSD (3.3), or writes the live records of a memtable anew",
            ),
            (
                "open",
                "from the checkpoint of a clean close, otherwise by a scan of all memtables, by several threads",
            ),
        ],
        can: capabilities::<Masstree>(),
    },
    settings: &[],
    object_pools,
    remember: |_, pool| settings(pool).encode(),
    recall: |_, _| Ok(()),
    open: |site| PARTS.open(site),
};
