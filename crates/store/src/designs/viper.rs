//! `viper`: slotted pages that each lie on one DIMM, found by a hash index in DRAM, or beside them (Benson, Makait and Rabl,
//! "Viper: An Efficient Hybrid PMem-DRAM Key-Value Store", PVLDB 14(9), 2021).
//!
//! Every record is written straight to PM, into a page of its client's own block, and marked there; what a client writes next
//! lies beside it, and a page touches one DIMM. The price is two fences a record, and, before the put returns, a third to delete
//! the one before it, unless that is left to a later put (`store/src/slotted/late.rs`); with the index in the pool, one more
//! for each change of that.

use super::Description;
use crate::offset_map::OffsetMap;
use quipu_parts::heap::slots::{SlotError, SlotSettings};
use quipu_parts::index::cceh::CcehRoot;
use quipu_parts::space::{Feature, SETTINGS_LEN};

/// What `quipu designs` prints.
pub static DESCRIPTION: Description = Description {
    name: "viper",
    paper: "Viper, PVLDB 14(9), 2021",
    parts: &[
        ("placed", "in a page of the client's own block: a slot of an array, or the end of a log (3.2, 4.1)"),
        ("persistent", "when its slot's bit, or its length word, is set after it: two fences a put (4.2)"),
        ("published", "by CCEH, in DRAM or in the pool: 16-byte entries, cache-line buckets (3.1, 5.3.6)"),
        ("writers", "lock the page that they write to, and the stripe of their key"),
        ("readers", "copy, and look whether the page's version has changed (4.3)"),
        (
            "released",
            "by its bit in PM, durably: under a fence of the client's next put but one, or before it returns (4.2, 4.5)",
        ),
        ("space comes back", "by inserting what is live of a block again, page by page (4.6)"),
        ("cached in DRAM", "nothing but the index"),
    ],
    switches: super::quipu::DESCRIPTION.switches,
    limits: &[
        "no order: no range scans",
        "no atomic batches, no expiry",
        "records do not prove themselves: damage to one shows as a wrong value, as in the paper",
        "a file is refused after a crash of the operating system, since nobody could tell what it has lost",
    ],
    ordered: false,
    batches: false,
    expiry: false,
    lends: false,
    large_values: true,
    value_zones: false,
    has_blocks: true,
    index_in_pool: false,
    features: &[Feature::CHECKED_USED],
    // An offset has room for the number of any block.
    pools_below: u64::MAX,
    checkpoints: false,
    updates_in_place: true,
    eliminates: false,
    waste: 50,
    salvages: false,
    unproved: super::OF_SLOTS,
};

/// Bytes of a zone at least, unless another size is asked for: blocks are aligned in it to the DIMMs, and what is left over at
/// its ends should not count.
pub(crate) const LEAST_ZONE: u64 = 256 << 10;

/// Stripes of key locks.
pub(crate) const STRIPES: usize = super::quipu::STRIPES;

/// Free blocks that only reclamation gets at.
pub(crate) const RESERVE: usize = 2;

/// Free zones that the heap leaves to an index in the pool, of so many: the index is the last to find that the pool is full.
pub(crate) fn index_share(zones: u32) -> u32 {
    (zones / 32).max(1)
}

const _: () = assert!(SlotSettings::LEN + OffsetMap::LEN == SETTINGS_LEN);

/// What the superblock remembers of the design: the settings of the heap, the Offset Map, and the root of that if it is in the pool.
pub(crate) fn encode(
    settings: &SlotSettings,
    map: &OffsetMap,
    root: [u8; CcehRoot::LEN],
) -> [u8; SETTINGS_LEN] {
    let mut bytes = [0; SETTINGS_LEN];
    bytes[..SlotSettings::LEN].copy_from_slice(&settings.encode());
    bytes[SlotSettings::LEN..].copy_from_slice(&map.encode(root));
    bytes
}

/// The settings of a pool.
pub(crate) fn decode(bytes: &[u8; SETTINGS_LEN]) -> Result<(SlotSettings, OffsetMap, CcehRoot), SlotError> {
    let unknown = SlotError::Settings { reason: "the superblock holds more than this release knows" };
    let (Some(heap), Some(map)) = (bytes.first_chunk(), bytes.last_chunk()) else { return Err(unknown) };
    let settings = SlotSettings::decode(heap)?;
    let (map, root) = OffsetMap::decode(*map).ok_or(unknown)?;
    Ok((settings, map, root))
}
