//! `flatstore-h`, `-ph`, `-m` and `-ff`: a log for each client, found by a volatile or persistent index (Chen et al., "FlatStore",
//! ASPLOS 2020), compacted as PACMAN does (Wang et al., "Pacman: An Efficient Compaction Approach for Log-Structured Key-Value
//! Store on Persistent Memory", USENIX ATC 2022), which the four are named after (2.2, 4.1).
//!
//! The walk is that of `quipu`, and so are the records. What differs is the index, which names a record with its length; that a
//! client writes hot and cold records to segments of their own; and that compaction asks nobody what is live.

use super::{Description, Design, NewPool, Recipe};
use crate::designs::settings::{BATCH, CCEH, PACMAN, REDUCE, SEPARATE, SHORTCUT, Setting};
use crate::log::LogParts;
use crate::options::Options;
use crate::settings::image::Image;
use crate::settings::offset_map::{NodePlace, OffsetMap};
use crate::settings::techniques::FlatSettings;
use crate::types::error::Error;
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
const PH_PARTS: LogParts<CcehIndex<PmNodes>> = LogParts::of_design();
const FF_PARTS: LogParts<FastFairIndex> = LogParts::of_design().ordered();

const PAPER: &str = "FlatStore, ASPLOS 2020, with Pacman, USENIX ATC 2022";

type Part = (&'static str, &'static str);
const PLACED: Part = ("placed", "in the client's segment for hot records or for cold ones (2.1, 3.4)");
const PERSISTENT: Part = ("persistent", "when its self-certifying record is fenced");
const NAMED: Part =
    ("persistent", "when its self-certifying record is fenced, and the index has durably named it (2.1)");
const WRITERS: Part = ("writers", "lock the stripe of their key");
const READERS: Part = ("readers", "lock nothing; an epoch keeps what they read from reuse");
const RELEASED: Part =
    ("released", "by a bit and a counter in DRAM; the index's word tells its length (3.2)");
const SPACE: Part =
    ("space comes back", "by copying what is live under one fence and repointing, flushed in batches (3.3)");
const OPENED: Part =
    ("opened", "at once: the index is believed, and what is dead is found out in the background (3.5)");
const CACHED: Part = ("cached in DRAM", "which keys are hot (3.4)");

const LIMITS: &[&str] = &["values up to 1 GiB, as far as the pool has room"];
const LIMITS_IN_POOL: &[&str] = &[
    "values up to a quarter of a zone",
    "no atomic batches",
    "no salvage: only the index tells which records count",
    "a file is refused after a crash of the operating system, since nobody could tell what its index has lost",
];

const SETTINGS: &[&Setting] = &[&PACMAN, &REDUCE, &SEPARATE, &SHORTCUT, &BATCH];
const SETTINGS_OF_CCEH: &[&Setting] = &[&CCEH, &PACMAN, &REDUCE, &SEPARATE, &SHORTCUT, &BATCH];

fn recall(bytes: &[u8; SETTINGS_LEN], options: &mut Options) -> Result<(), Error> {
    let FlatSettings { techniques, shape, .. } = FlatSettings::decode(bytes)?;
    (options.techniques, options.offset_map.shape) = (techniques, shape);
    Ok(())
}

/// What all four remember, with CCEH, if they have it, in this memory.
fn remembered(nodes: NodePlace, options: &Options, pool: &NewPool) -> [u8; SETTINGS_LEN] {
    let OffsetMap { shape, .. } = OffsetMap { nodes, ..options.offset_map }.fitted(pool.zone_size);
    FlatSettings { techniques: options.techniques.on(pool.medium), shape, root: FromZeros::new_zeroed() }
        .encode()
}

/// FlatStore-H.
pub(super) const H: Recipe = Recipe {
    design: Design::FLATSTORE_H,
    description: Description {
        name: "flatstore-h",
        paper: PAPER,
        parts: &[
            PLACED,
            PERSISTENT,
            ("published", "by CCEH in DRAM, which keeps keys of eight bytes"),
            WRITERS,
            READERS,
            RELEASED,
            SPACE,
            CACHED,
        ],
        limits: LIMITS,
        can: H_PARTS.capabilities(),
    },
    settings: SETTINGS_OF_CCEH,
    remember: |options, pool| remembered(NodePlace::Dram, options, pool),
    recall,
    open: |site| {
        let FlatSettings { techniques, shape, .. } = site.settings()?;
        let shape = if site.is_tiny() { CcehSettings::tiny() } else { shape };
        H_PARTS.open(site, CcehIndex::in_dram(shape), techniques)
    },
};

/// FlatStore-M.
pub(super) const M: Recipe = Recipe {
    design: Design::FLATSTORE_M,
    description: Description {
        name: "flatstore-m",
        paper: PAPER,
        parts: &[
            PLACED,
            PERSISTENT,
            ("published", "by Masstree in DRAM, which keeps all keys, in their order"),
            WRITERS,
            READERS,
            RELEASED,
            SPACE,
            CACHED,
        ],
        limits: LIMITS,
        can: M_PARTS.capabilities(),
    },
    settings: SETTINGS,
    remember: |options, pool| remembered(NodePlace::Dram, options, pool),
    recall,
    open: |site| {
        let FlatSettings { techniques, .. } = site.settings()?;
        M_PARTS.open(site, Masstree::new(), techniques)
    },
};

/// FlatStore-PH.
pub(super) const PH: Recipe = Recipe {
    design: Design::FLATSTORE_PH,
    description: Description {
        name: "flatstore-ph",
        paper: PAPER,
        parts: &[
            PLACED,
            NAMED,
            ("published", "by CCEH in the pool, which keeps keys of eight bytes"),
            WRITERS,
            READERS,
            RELEASED,
            SPACE,
            OPENED,
            CACHED,
        ],
        limits: LIMITS_IN_POOL,
        can: PH_PARTS.capabilities(),
    },
    settings: SETTINGS_OF_CCEH,
    remember: |options, pool| remembered(NodePlace::Pm, options, pool),
    recall,
    open: |site| {
        let settings: FlatSettings = site.settings()?;
        PH_PARTS.open_in_pool(site, settings, settings.techniques)
    },
};

/// FlatStore-FF.
pub(super) const FF: Recipe = Recipe {
    design: Design::FLATSTORE_FF,
    description: Description {
        name: "flatstore-ff",
        paper: PAPER,
        parts: &[
            PLACED,
            NAMED,
            ("published", "by FAST&FAIR in the pool, which keeps all keys, in their order"),
            WRITERS,
            READERS,
            RELEASED,
            SPACE,
            OPENED,
            CACHED,
        ],
        limits: LIMITS_IN_POOL,
        can: FF_PARTS.capabilities(),
    },
    settings: SETTINGS,
    remember: |options, pool| remembered(NodePlace::Dram, options, pool),
    recall,
    open: |site| {
        let settings: FlatSettings = site.settings()?;
        FF_PARTS.open_in_pool(site, settings, settings.techniques)
    },
};
