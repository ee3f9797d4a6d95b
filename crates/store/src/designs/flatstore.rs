//! `flatstore-h`, `-ph`, `-m` and `-ff`: a log for each client, found by a volatile or persistent index (Chen
//! et al., "FlatStore", ASPLOS 2020). Compaction is PACMAN's (Wang et al., "Pacman: An Efficient Compaction
//! Approach for Log-Structured Key-Value Store on Persistent Memory", USENIX ATC 2022), which named the four
//! (2.2, 4.1).
//!
//! The walk and the records are those of `quipu`. There are three differences: the index names a record with
//! its length, a client writes hot and cold records to segments of their own, and compaction asks no index
//! which records are live.

use super::{Capabilities, Description, Design, NO_OBJECTS, NewPool, Recipe};
use crate::designs::settings::{CCEH, PACMAN, SHORTCUT};
use crate::log::LogParts;
use crate::options::{IndexChoice, Options};
use crate::settings::image::Image;
use crate::settings::offset_map::{NodePlace, OffsetMap};
use crate::settings::techniques::FlatSettings;
use quipu_parts::index::alex::Alex;
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, DramNodes, PmNodes};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::masstree::Masstree;
use quipu_parts::space::SETTINGS_LEN;
use zerocopy::FromZeros;

impl Design {
    /// FlatStore-H: CCEH in DRAM; see [`flatstore`](super::flatstore).
    pub const FLATSTORE_H: Design = Design(3);
    /// FlatStore-M: Masstree in DRAM.
    pub const FLATSTORE_M: Design = Design(4);
    /// FlatStore-PH: CCEH in the pool.
    pub const FLATSTORE_PH: Design = Design(5);
    /// FlatStore-FF: FAST&FAIR in the pool.
    pub const FLATSTORE_FF: Design = Design(6);
}

const H_PARTS: LogParts<CcehIndex<DramNodes>> = LogParts::of_design();
const M_PARTS: LogParts<Masstree> = LogParts::of_design().ordered().checkpointed();
const M_PARTS_LEARNED: LogParts<Alex> = LogParts::of_design().ordered().checkpointed();
const PH_PARTS: LogParts<CcehIndex<PmNodes>> = LogParts::of_design();
const FF_PARTS: LogParts<FastFairIndex> = LogParts::of_design().ordered();

type Part = (&'static str, &'static str);
const PERSISTENT: Part = ("durable", "when the self-certifying record is fenced: one fence a put");
const NAMED: Part = ("durable", "when the self-certifying record is fenced, and then the index entry (2.1)");
const SCANNED: Part = ("open", "after a scan of all segments, by several threads");
const SAVED: Part = ("open", "from the checkpoint of a clean close, otherwise by a scan of all segments");
const BELIEVED: Part =
    ("open", "at once: the index is believed, and dead records are found in the background (3.5)");

/// The parts of one of the four.
const fn parts(persistent: Part, published: &'static str, opened: Part) -> [Part; 9] {
    [
        ("records", "in the client's segment for hot records or for cold ones (2.1, 3.4)"),
        persistent,
        ("index", published),
        ("writers", "lock the stripe of their key"),
        ("readers", "lock nothing; an epoch keeps what they read from reuse"),
        ("garbage", "marked by a bit and counted, in DRAM; the index stores the length of a record (3.2)"),
        (
            "compaction",
            "copies live records under one fence, and flushes their index entries in batches (3.3)",
        ),
        opened,
        ("hot keys", "a set of them in DRAM (3.4)"),
    ]
}

/// The settings of a new pool, with CCEH, if it has that, in this memory.
fn kept(nodes: NodePlace, options: &Options, pool: &NewPool) -> [u8; SETTINGS_LEN] {
    let OffsetMap { shape, .. } = OffsetMap { nodes, ..options.offset_map }.fitted(pool.zone_size);
    let techniques = options.techniques.on(pool.medium);
    FlatSettings { techniques, shape, root: FromZeros::new_zeroed() }.encode()
}

/// FlatStore-M. The other recipes list their differences from it.
pub(super) const M: Recipe = Recipe {
    design: Design::FLATSTORE_M,
    description: Description {
        name: "flatstore-m",
        paper: "FlatStore, ASPLOS 2020, with Pacman, USENIX ATC 2022",
        parts: &parts(
            PERSISTENT,
            "Masstree in DRAM, which stores whole keys, in their order; with `index=alex`, c-ALEX, which stores their first bytes",
            SAVED,
        ),
        can: Capabilities { chooses_index: true, ..M_PARTS.capabilities() },
    },
    settings: &[PACMAN, SHORTCUT],
    object_pools: NO_OBJECTS,
    remember: |options, pool| kept(NodePlace::Dram, options, pool),
    recall: |bytes, options| {
        let FlatSettings { techniques, shape, .. } = FlatSettings::decode(bytes)?;
        (options.techniques, options.offset_map.shape) = (techniques, shape);
        Ok(())
    },
    open: |site| {
        let FlatSettings { techniques, .. } = site.settings()?;
        match site.options.index {
            IndexChoice::Own => M_PARTS.open(site, Masstree::new(), techniques),
            IndexChoice::Alex => {
                let index = if site.is_tiny() { Alex::tiny() } else { Alex::new() };
                M_PARTS_LEARNED.open(site, index, techniques)
            }
        }
    },
};

/// FlatStore-H.
pub(super) const H: Recipe = Recipe {
    design: Design::FLATSTORE_H,
    description: Description {
        name: "flatstore-h",
        parts: &parts(PERSISTENT, "CCEH in DRAM, with keys of eight bytes in its entries", SCANNED),
        can: H_PARTS.capabilities(),
        ..M.description
    },
    settings: &[CCEH, PACMAN, SHORTCUT],
    open: |site| {
        let FlatSettings { techniques, shape, .. } = site.settings()?;
        let shape = if site.is_tiny() { CcehSettings::tiny() } else { shape };
        H_PARTS.open(site, CcehIndex::in_dram(shape), techniques)
    },
    ..M
};

/// FlatStore-PH.
pub(super) const PH: Recipe = Recipe {
    design: Design::FLATSTORE_PH,
    description: Description {
        name: "flatstore-ph",
        parts: &parts(NAMED, "CCEH in the pool, with keys of eight bytes in its entries", BELIEVED),
        can: PH_PARTS.capabilities(),
        ..M.description
    },
    settings: &[CCEH, PACMAN, SHORTCUT],
    remember: |options, pool| kept(NodePlace::Pm, options, pool),
    open: |site| {
        let settings: FlatSettings = site.settings()?;
        PH_PARTS.open_in_pool(site, settings, settings.techniques)
    },
    ..M
};

/// FlatStore-FF.
pub(super) const FF: Recipe = Recipe {
    design: Design::FLATSTORE_FF,
    description: Description {
        name: "flatstore-ff",
        parts: &parts(NAMED, "FAST&FAIR in the pool, which stores whole keys, in their order", BELIEVED),
        can: FF_PARTS.capabilities(),
        ..M.description
    },
    open: |site| {
        let settings: FlatSettings = site.settings()?;
        FF_PARTS.open_in_pool(site, settings, settings.techniques)
    },
    ..M
};
