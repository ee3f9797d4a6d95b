//! `viper-pacman`: Viper for records of any size, reclaimed as PACMAN does (Wang et al., "Pacman: An
//! Efficient Compaction Approach for Log-Structured Key-Value Store on Persistent Memory", USENIX ATC 2022,
//! sections 3.2 to 3.4 and 4.1).
//!
//! It differs from [`viper`] in four ways. A superseded record is not written to, nor read if
//! its key has eight bytes. A deletion is a record for as long as an older record of its key is marked. The
//! live records of a block move under one fence. Hot records lie apart. Without any of the techniques it is
//! the raw store, which is `viper` with records of any size.

use super::{Description, Design, NO_OBJECTS, Recipe, viper};
use crate::designs::settings::{CCEH, PACMAN, SLOTS};
use crate::settings::image::{Image, refused};
use crate::settings::offset_map::{NodePlace, OffsetMap};
use crate::settings::slots::PoolSettings;
use crate::settings::techniques::Techniques;
use crate::slots::SlotParts;
use quipu_parts::heap::slots::{SlotSettings, SlotTechniques};

impl Design {
    /// Viper with PACMAN's techniques; see [`viper_pacman`](super::viper_pacman).
    pub const VIPER_PACMAN: Design = Design(7);
}

/// Raw, it is held against the paper's own order, so no put is published late.
const RAW: SlotParts = SlotParts { updates_in_place: false, late: false, reserve: 2 };
/// Two of the free blocks that are kept are for reclamation alone, two for deletions as well.
const REDUCED: SlotParts = SlotParts { reserve: 4, ..RAW };

pub(super) const RECIPE: Recipe = Recipe {
    design: Design::VIPER_PACMAN,
    description: Description {
        name: "viper-pacman",
        paper: "Viper, PVLDB 14(9), 2021, with Pacman, USENIX ATC 2022",
        parts: &[
            (
                "records",
                "at the end of a log, in a page of the client's block for hot records or for cold ones (3.4)",
            ),
            ("durable", "when the length word is set after the record: two fences a put (Viper 4.2)"),
            ("index", "CCEH in DRAM, with keys of eight bytes in its entries"),
            ("writers", "lock the page that they write to, and the stripe of their key"),
            ("readers", "copy, and check that the page's version has not changed (Viper 4.3)"),
            (
                "garbage",
                "marked by a bit and counted, in DRAM; the index stores the length of a record (3.2). A deletion is a tombstone",
            ),
            (
                "compaction",
                "copies the live records of a block under one fence, and changes their index entries (3.3)",
            ),
            ("hot keys", "a set of them in DRAM (3.4)"),
        ],
        can: RAW.capabilities(),
    },
    settings: &[SLOTS, CCEH, PACMAN],
    object_pools: NO_OBJECTS,
    remember: |options, pool| {
        let Techniques { reduce, separate, batch, .. } = options.techniques;
        let slots = SlotSettings { techniques: SlotTechniques { reduce, separate, batch }, ..options.slots };
        let map = OffsetMap { nodes: NodePlace::Dram, ..options.offset_map };
        PoolSettings::fitted(slots, map, pool.zone_size).encode()
    },
    open: |site| {
        let settings: PoolSettings = site.settings()?;
        settings.slots.check()?;
        match settings.map.nodes {
            NodePlace::Pm => Err(refused("the index of viper-pacman is in DRAM")),
            NodePlace::Dram if settings.slots.techniques.reduce => REDUCED.open::<true>(site, settings),
            NodePlace::Dram => RAW.open::<false>(site, settings),
        }
    },
    ..viper::RECIPE
};
