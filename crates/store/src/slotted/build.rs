//! Putting a spine over slots together: its parts, and the memory of its index.
//!
//! The code is the same with the index in DRAM and in the pool, and for what tells what is dead, but compiled for each:
//! [`Slots`] says which a pool has.
//!
//! Created is the index before the first chunk of the heap; so a pool that names no index and has a zone in use is damaged, and
//! one that has none in use was not finished, and is finished by whoever opens it.

use super::{SlotSpine, recovery};
use crate::designs::{Design, viper, viper_pacman};
use crate::error::Error;
use crate::offset_map::{NodePlace, OffsetMap};
use crate::options::Options;
use crate::recovery::{Holes, RecoveryReport};
use crate::spine::Hot;
use quipu_parts::heap::Clock;
use quipu_parts::heap::slots::{Damage, Neighbor, SlotHeap, SlotSettings};
use quipu_parts::index::cceh::{
    CcehError, CcehIndex, CcehRoot, CcehSettings, DramNodes, NodeMemory, PmNodes,
};
use quipu_parts::record::Certifier;
use quipu_parts::space::{Space, SpaceRecovery};
use std::sync::Arc;

/// An open store of slots, by the memory of its index.
#[derive(Clone)]
pub(crate) enum Slots {
    /// It is in DRAM.
    Dram(Arc<SlotSpine<DramNodes, false>>),
    /// It is in the pool.
    Pm(Arc<SlotSpine<PmNodes, false>>),
    /// It is in DRAM, and so is what tells what is dead.
    Reduced(Arc<SlotSpine<DramNodes, true>>),
}

/// Does the same with either.
macro_rules! with_slots {
    ($slots:expr, $spine:ident => $act:expr) => {
        match $slots {
            $crate::slotted::Slots::Dram($spine) => $act,
            $crate::slotted::Slots::Pm($spine) => $act,
            $crate::slotted::Slots::Reduced($spine) => $act,
        }
    };
}
pub(crate) use with_slots;

/// What a pool is made of.
struct Plan<'o> {
    space: Arc<Space>,
    settings: SlotSettings,
    map: OffsetMap,
    root: CcehRoot,
    options: &'o Options,
}

impl Slots {
    /// Who shares it, itself included.
    pub(crate) fn owners(&self) -> usize {
        with_slots!(self, spine => Arc::strong_count(spine))
    }

    /// The store of a new pool.
    pub(crate) fn create(space: Space, clock: Clock, options: &Options) -> Result<Slots, Error> {
        let plan = Plan::of(space, options)?;
        match plan.map.nodes {
            NodePlace::Dram if plan.settings.techniques.reduce => {
                plan.begin(plan.index_in_dram(), clock).map(|spine| Slots::Reduced(Arc::new(spine)))
            }
            NodePlace::Dram => {
                plan.begin(plan.index_in_dram(), clock).map(|spine| Slots::Dram(Arc::new(spine)))
            }
            NodePlace::Pm => {
                let index = plan.create_index(&clock)?;
                plan.begin(index, clock).map(|spine| Slots::Pm(Arc::new(spine)))
            }
        }
    }

    /// The store of a pool that was just mapped, recovered. `progress` is told the blocks done and in all.
    pub(crate) fn open(
        space: Space,
        clock: Clock,
        options: &Options,
        holes: Holes,
        mut found: SpaceRecovery,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Slots, RecoveryReport), Error> {
        let plan = Plan::of(space, options)?;
        let threads = options.recovery_threads;
        match plan.map.nodes {
            NodePlace::Dram if plan.settings.techniques.reduce => {
                let (spine, damage) = plan.spine(plan.index_in_dram(), clock)?;
                let report = recovery::recover(&spine, damage, threads, holes, found, progress)?;
                Ok((Slots::Reduced(Arc::new(spine)), report))
            }
            NodePlace::Dram => {
                let (spine, damage) = plan.spine(plan.index_in_dram(), clock)?;
                let report = recovery::recover(&spine, damage, threads, holes, found, progress)?;
                Ok((Slots::Dram(Arc::new(spine)), report))
            }
            NodePlace::Pm => {
                let index = match CcehIndex::examine(plan.space.clone(), plan.root, 0) {
                    Err(CcehError::Absent) if plan.space.committed_zones().is_empty() => {
                        plan.space.repair(&mut found);
                        plan.create_index(&clock)
                    }
                    examined => Ok(examined?),
                }?;
                let (spine, damage) = plan.spine(index, clock)?;
                let report = recovery::recover(&spine, damage, threads, holes, found, progress)?;
                Ok((Slots::Pm(Arc::new(spine)), report))
            }
        }
    }
}

impl Plan<'_> {
    fn of(space: Space, options: &Options) -> Result<Plan<'_>, Error> {
        let superblock = space.superblock();
        let (settings, map, root) = viper::decode(&superblock.settings)?;
        viper_pacman::check(Design::from_id(superblock.design.get()), &settings, &map)?;
        Ok(Plan { space: Arc::new(space), settings, map, root, options })
    }

    fn shape(&self) -> CcehSettings {
        if self.options.testing.tiny_index { CcehSettings::tiny() } else { self.map.shape }
    }

    fn index_in_dram(&self) -> CcehIndex<DramNodes> {
        CcehIndex::in_dram(self.shape())
    }

    /// A new index in the pool, which the superblock names.
    fn create_index(&self, clock: &Clock) -> Result<CcehIndex<PmNodes>, Error> {
        let space = &self.space;
        // The run has durably begun before anything else changes.
        clock.begin(space);
        let keep = |root: CcehRoot| {
            space.update_superblock(|superblock| {
                superblock.settings = viper::encode(&self.settings, &self.map, root.to_bytes());
            });
        };
        Ok(CcehIndex::create(space.clone(), self.shape(), 0, keep)?)
    }

    /// The spine over these parts, and what is damaged of the heap's chunks.
    fn spine<M: NodeMemory, const REDUCED: bool>(
        &self,
        index: CcehIndex<M>,
        clock: Clock,
    ) -> Result<(SlotSpine<M, REDUCED>, Vec<Damage>), Error> {
        let zones = index.memory().zones();
        let leave = if zones.is_empty() { 0 } else { viper::index_share(self.space.zone_count()) };
        let neighbor = Neighbor { zones, leave };
        let certifier = Certifier::new(self.space.superblock().secret());
        let (space, settings) = (self.space.clone(), self.settings);
        let design = Design::from_id(space.superblock().design.get());
        let reserve = if REDUCED { viper_pacman::RESERVE } else { viper::RESERVE };
        let (heap, damage) = SlotHeap::beside(&neighbor, space, certifier, clock, settings, reserve)?;
        let testing = &self.options.testing;
        let stripes = testing.stripes.unwrap_or(viper::STRIPES);
        let hot_set = Hot::settings(testing);
        // PACMAN is held against the paper's own order.
        let late = self.options.late && design == Some(Design::Viper);
        Ok((SlotSpine::new(heap, index, stripes, hot_set, late, testing.twin), damage))
    }

    /// The spine of a new pool, with room in it.
    fn begin<M: NodeMemory, const REDUCED: bool>(
        &self,
        index: CcehIndex<M>,
        clock: Clock,
    ) -> Result<SlotSpine<M, REDUCED>, Error> {
        let (spine, _) = self.spine(index, clock)?;
        spine.begin()?;
        if spine.heap.free_blocks() == 0 {
            return Err(Error::no_room_in(&self.space));
        }
        Ok(spine)
    }
}
