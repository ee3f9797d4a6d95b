//! `viper-pacman`: Viper for records of any size, reclaimed as PACMAN does (Wang et al., "Pacman: An Efficient Compaction
//! Approach for Log-Structured Key-Value Store on Persistent Memory", USENIX ATC 2022, sections 3.2 to 3.4 and 4.1).
//!
//! What differs from [`viper`]: nobody writes to a record that is superseded, nor reads it if its key has eight
//! bytes; a deletion is a record of its own for as long as an older one of its key is marked; what is live of a block moves
//! under one fence; and hot records lie apart. Without any of the techniques it is the raw store, which is `viper` with records
//! of any size.

use super::{Description, Design, viper};
use crate::offset_map::{NodePlace, OffsetMap};
use crate::techniques::{Shortcut, Techniques};
use quipu_parts::heap::slots::{SlotError, SlotSettings, SlotTechniques};

/// What `quipu designs` prints.
pub static DESCRIPTION: Description = Description {
    name: "viper-pacman",
    paper: "Viper, PVLDB 14(9), 2021, with Pacman, USENIX ATC 2022",
    parts: &[
        (
            "placed",
            "at the end of a log, in a page of the client's block for hot records or for cold ones (3.4)",
        ),
        ("persistent", "when its length word is set after it: two fences a put (Viper 4.2)"),
        ("published", "by CCEH in DRAM, which keeps keys of eight bytes"),
        ("writers", "lock the page that they write to, and the stripe of their key"),
        ("readers", "copy, and look whether the page's version has changed (Viper 4.3)"),
        (
            "released",
            "by a bit and a counter in DRAM; the index's word tells its length (3.2). A deletion is a tombstone",
        ),
        ("space comes back", "by copying what is live of a block under one fence and repointing (3.3)"),
        ("cached in DRAM", "which keys are hot (3.4), and what is dead"),
    ],
    switches: super::quipu::DESCRIPTION.switches,
    limits: &[
        "no order: no range scans",
        "no atomic batches, no expiry, no updates in place",
        "records do not prove themselves: damage to one shows as a wrong value, as in the paper",
        "a file is refused after a crash of the operating system, since nobody could tell what it has lost",
        "no shortcuts (3.1): they do not pay for a hash index",
    ],
    updates_in_place: false,
    eliminates: false,
    ..viper::DESCRIPTION
};

/// Free blocks that are kept: two for reclamation alone, two for deletions as well.
pub(crate) const RESERVE: usize = 4;

/// The techniques of a new heap of this design.
pub(crate) fn techniques(design: Design, chosen: Techniques) -> SlotTechniques {
    let Techniques { reduce, separate, batch, .. } = chosen;
    match design {
        Design::ViperPacman => SlotTechniques { reduce, separate, batch },
        _ => SlotTechniques::default(),
    }
}

/// The index of a new pool.
pub(crate) fn offset_map(design: Design, chosen: OffsetMap) -> OffsetMap {
    match design {
        Design::ViperPacman => OffsetMap { nodes: NodePlace::Dram, ..chosen },
        _ => chosen,
    }
}

/// What was chosen for a heap with these.
pub(crate) fn chosen(SlotTechniques { reduce, separate, batch }: SlotTechniques) -> Techniques {
    Techniques { reduce, separate, batch, shortcut: Shortcut::Off }
}

/// Refuses what the superblock of no pool of the design has.
pub(crate) fn check(
    design: Option<Design>,
    settings: &SlotSettings,
    map: &OffsetMap,
) -> Result<(), SlotError> {
    let reason = match design {
        Some(Design::ViperPacman) if map.nodes == NodePlace::Pm => "the index of viper-pacman is in DRAM",
        Some(Design::Viper) if settings.techniques != SlotTechniques::default() => {
            "the superblock of a pool of viper names techniques of PACMAN"
        }
        _ => return Ok(()),
    };
    Err(SlotError::Settings { reason })
}
