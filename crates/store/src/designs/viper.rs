//! `viper`: slotted pages that each lie on one DIMM, found by a hash index in DRAM, or beside them (Benson,
//! Makait and Rabl, "Viper: An Efficient Hybrid PMem-DRAM Key-Value Store", PVLDB 14(9), 2021).
//!
//! Every record is written straight to PM, into a page of its client's own block, and marked there. The next
//! record of the client lies beside it, and a page touches one DIMM. The price is two fences a record, and a
//! third to delete the old record before the put returns, unless a later put does that
//! (`store/src/slots/late.rs`). An index in the pool has one more for each change of it.

use super::{Description, Design, NO_OBJECTS, Recipe};
use crate::designs::settings::{CCEH, SLOTS, VIPER};
use crate::settings::image::{Image, refused};
use crate::settings::offset_map::NodePlace;
use crate::settings::slots::PoolSettings;
use crate::settings::techniques::{Shortcut, Techniques};
use crate::slots::SlotParts;
use quipu_parts::heap::slots::{SlotSettings, SlotTechniques};

impl Design {
    /// Viper, of VLDB 2021; see [`viper`](super::viper).
    pub const VIPER: Design = Design(2);
}

const PARTS: SlotParts = SlotParts { updates_in_place: true, late: true, reserve: 2 };

pub(super) const RECIPE: Recipe = Recipe {
    design: Design::VIPER,
    description: Description {
        name: "viper",
        paper: "Viper, PVLDB 14(9), 2021",
        parts: &[
            (
                "records",
                "in a page of the client's own block: in a slot of an array, or at the end of a log (3.2, 4.1)",
            ),
            (
                "durable",
                "when the slot's bit, or the length word, is set after the record: two fences a put (4.2)",
            ),
            (
                "index",
                "CCEH, in DRAM or in the pool, with 16-byte entries and cache-line buckets (3.1, 5.3.6)",
            ),
            ("writers", "lock the page that they write to, and the stripe of their key"),
            ("readers", "copy, and check that the page's version has not changed (4.3)"),
            (
                "garbage",
                "marked by a bit in PM, durably: under a fence of the client's next put but one, or before the put returns (4.2, 4.5)",
            ),
            ("compaction", "inserts the live records of a block again, page by page (4.6)"),
        ],
        can: PARTS.capabilities(),
    },
    settings: &[VIPER, SLOTS, CCEH],
    object_pools: NO_OBJECTS,
    remember: |options, pool| {
        let slots = SlotSettings { techniques: SlotTechniques::default(), ..options.slots };
        PoolSettings::fitted(slots, options.offset_map, pool.zone_size).encode()
    },
    recall: |bytes, options| {
        let PoolSettings { slots, map, .. } = PoolSettings::decode(bytes)?;
        let SlotTechniques { reduce, separate, batch } = slots.techniques;
        options.techniques = Techniques { reduce, separate, batch, shortcut: Shortcut::Off };
        (options.slots, options.offset_map) = (slots, map);
        Ok(())
    },
    open: |site| {
        let settings: PoolSettings = site.settings()?;
        settings.slots.check()?;
        if settings.slots.techniques != SlotTechniques::default() {
            return Err(refused("the superblock of a pool of viper names techniques of PACMAN"));
        }
        match settings.map.nodes {
            NodePlace::Dram => PARTS.open::<false>(site, settings),
            NodePlace::Pm => PARTS.open_in_pool(site, settings),
        }
    },
};
