//! Putting a slot store together: its parts, and the memory of its index.
//!
//! The index is created before the first chunk of the heap. So a pool without an index and with a zone in use
//! is damaged. A pool without both was not finished, and the open finishes it.

use super::{SlotSpine, recovery};
use crate::engine::NO_SALVAGE;
use crate::engine::common::Common;
use crate::engine::site::{How, Opened, Site};
use crate::settings::slots::PoolSettings;
use crate::types::design::Capabilities;
use crate::types::error::Error;
use crate::types::reports::RecoveryReport;
use crate::walk::hot::Hot;
use crate::walk::in_pool;
use quipu_parts::heap::Clock;
use quipu_parts::heap::slots::{Damage, Neighbor, SlotHeap};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, DramNodes, NodeMemory, PmNodes};
use quipu_parts::record::Certifier;
use std::sync::Arc;

/// The choices of a design for a slot store.
pub(crate) struct SlotParts {
    /// Whether records of one size are updated in place.
    pub(crate) updates_in_place: bool,
    /// Whether puts are published by later writes of their client.
    pub(crate) late: bool,
    /// Free blocks that are reserved for reclamation, and for deletions if these are records.
    pub(crate) reserve: usize,
}

/// The least bytes of a zone, unless another size is asked for: blocks are aligned in it to the DIMMs, and
/// the rest at its ends should not count.
const LEAST_ZONE: u64 = 256 << 10;

/// Free zones that the heap leaves to an index in the pool, of so many: the index is to be the last that
/// finds the pool full.
fn index_share(zones: u32) -> u32 {
    (zones / 32).max(1)
}

/// Facts that records in slots or in the logs of pages do not prove.
const UNPROVED: &[&str] = &[
    "the bytes of keys and values",
    "the sequence numbers of records",
    "the marks that tell which records count",
];

impl SlotParts {
    /// Its capabilities.
    pub(crate) const fn capabilities(&self) -> Capabilities {
        Capabilities {
            large_values: true,
            has_blocks: true,
            // An offset has room for the number of any block.
            pools_below: u64::MAX,
            least_zone: LEAST_ZONE,
            updates_in_place: self.updates_in_place,
            publishes_late: self.late,
            waste: 50,
            unproved: UNPROVED,
            ..Capabilities::NONE
        }
    }

    /// Opens a store whose index is in DRAM. With `REDUCED`, bits in DRAM tell which records are dead.
    pub(crate) fn open<const REDUCED: bool>(
        &self,
        site: Site<'_>,
        settings: PoolSettings,
    ) -> Result<Opened, Error> {
        let (index, clock) = (CcehIndex::in_dram(shape(&site, &settings)), site.clock());
        self.finish::<DramNodes, REDUCED>(site, &settings, index, clock)
    }

    /// Opens a store whose index is in the pool.
    pub(crate) fn open_in_pool(&self, mut site: Site<'_>, settings: PoolSettings) -> Result<Opened, Error> {
        let (clock, shape) = (site.clock(), shape(&site, &settings));
        let index = in_pool::index(&mut site, &clock, settings, shape, 0)?;
        self.finish::<PmNodes, false>(site, &settings, index, clock)
    }

    /// The store of a new pool, with its first room, or of a mapped pool, recovered.
    fn finish<M: NodeMemory, const REDUCED: bool>(
        &self,
        site: Site<'_>,
        settings: &PoolSettings,
        index: CcehIndex<M>,
        clock: Clock,
    ) -> Result<Opened, Error> {
        let (spine, damage) = self.spine::<M, REDUCED>(&site, settings, index, clock)?;
        let recovery = match site.how {
            How::Existing(pool) => recovery::recover(&spine, damage, site.options.recovery_threads, pool)?,
            How::Unrecovered => return Err(Error::Unsupported { what: NO_SALVAGE }),
            How::New => {
                spine.heap.open_blocks()?;
                if spine.heap.free_blocks() == 0 {
                    return Err(Error::no_room_in(&site.space));
                }
                RecoveryReport::default()
            }
        };
        Ok(Opened { engine: Arc::new(spine), recovery })
    }

    /// The spine over these parts, and the damage of the heap's chunks.
    fn spine<M: NodeMemory, const REDUCED: bool>(
        &self,
        site: &Site<'_>,
        settings: &PoolSettings,
        index: CcehIndex<M>,
        clock: Clock,
    ) -> Result<(SlotSpine<M, REDUCED>, Vec<Damage>), Error> {
        let space = &site.space;
        let zones = index.memory().zones();
        let leave = if zones.is_empty() { 0 } else { index_share(space.zone_count()) };
        let neighbor = Neighbor { zones, leave };
        let certifier = Certifier::new(space.superblock().secret());
        let (heap, damage) =
            SlotHeap::new(&neighbor, space.clone(), certifier, clock, settings.slots, self.reserve)?;
        let testing = &site.options.testing;
        let late = self.late && site.options.late;
        Ok((
            SlotSpine::new(
                Common::of(site),
                heap,
                index,
                Hot::settings(testing),
                (late, site.options.wait_for_room),
            ),
            damage,
        ))
    }
}

/// The shape of an index in DRAM, or of a new one in the pool.
fn shape(site: &Site<'_>, settings: &PoolSettings) -> CcehSettings {
    if site.is_tiny() { CcehSettings::tiny() } else { settings.map.shape }
}
