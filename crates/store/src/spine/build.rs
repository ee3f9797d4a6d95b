//! Putting a spine over logs together: its parts, by the design of the pool.

use super::hot::Hot;
use super::{Compactor, Logs, Spine, workers_of};
use crate::checkpoint;
use crate::designs::{Design, quipu};
use crate::error::Error;
use crate::options::{Options, Twin};
use crate::recovery::{self, Holes, RecoveryReport};
use crate::techniques::{FlatSettings, Techniques};
use quipu_parts::epoch::Collector;
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::index::Index;
use quipu_parts::index::cceh::{CcehIndex, CcehSettings};
use quipu_parts::index::hash::{HashIndex, HashIndexSettings};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::reclaim::hot::HotSetSettings;
use quipu_parts::record::Certifier;
use quipu_parts::space::{Space, SpaceError, SpaceRecovery};
use quipu_parts::stripes::Stripes;
use std::sync::Arc;

/// How design `quipu` compacts.
const OF_QUIPU: Techniques = Techniques { reduce: true, separate: true, shortcut: false, batch: true };

/// So few samples that short runs come to know what is hot.
const TINY_HOT_SET: HotSetSettings =
    HotSetSettings { keys: 8, interval: 1, samples: 32, shift: 0.5, uniform: 1.5 };

/// What is at hand for a store that is being built.
pub(crate) struct Plan<'o> {
    pub(crate) design: Design,
    pub(crate) options: &'o Options,
    /// A copy of the superblock is lost.
    pub(crate) copy_lost: bool,
}

impl Plan<'_> {
    /// The store of a new pool.
    pub(crate) fn create(&self, space: Space) -> Result<Logs, Error> {
        let zones = space.zone_count();
        if zones < reserve_of(zones) + 1 {
            return Err(Error::no_room_in(&space));
        }
        self.build(space)
    }

    /// The store of a pool that was just mapped, recovered. `progress` is told the segments done and in all.
    pub(crate) fn open(
        &self,
        space: Space,
        holes: Holes,
        found: SpaceRecovery,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Logs, RecoveryReport), Error> {
        let threads = self.options.recovery_threads;
        let mut logs = self.build(space)?;
        // If a copy of the superblock is lost, it may have been the one that said that the pool has changed.
        if !self.options.verify
            && !self.copy_lost
            && let Logs::Quipu(spine) = &mut logs
            && let Some(loaded) = checkpoint::load(spine, threads)
        {
            let spine = Arc::get_mut(spine).expect("nobody else has it yet");
            let report = recovery::resume(spine, loaded, found);
            return Ok((logs, report));
        }
        let report =
            super::with_logs!(&logs, spine => recovery::recover(spine, threads, holes, found, progress))?;
        Ok((logs, report))
    }

    /// A store whose index is empty, whatever is in the pool.
    pub(crate) fn build(&self, space: Space) -> Result<Logs, Error> {
        let tiny = self.options.testing.tiny_index;
        if self.design == Design::Quipu {
            let settings = if tiny { HashIndexSettings::tiny() } else { HashIndexSettings::default() };
            return Ok(Logs::Quipu(Arc::new(self.spine(space, HashIndex::new(settings), OF_QUIPU, true))));
        }
        let unknown = SpaceError::Geometry { what: "the superblock holds settings that no release knows" };
        let FlatSettings { techniques, shape, .. } =
            FlatSettings::decode(&space.superblock().settings).ok_or(unknown)?;
        let shape = if tiny { CcehSettings::tiny() } else { shape };
        Ok(match self.design {
            Design::FlatstoreM => {
                Logs::FlatstoreM(Arc::new(self.spine(space, Masstree::new(), techniques, false)))
            }
            _ => {
                let index = CcehIndex::in_dram(shape);
                Logs::FlatstoreH(Arc::new(self.spine(space, index, techniques, false)))
            }
        })
    }

    fn spine<I: Index>(
        &self,
        space: Space,
        index: I,
        techniques: Techniques,
        publishes_late: bool,
    ) -> Spine<I> {
        let testing = &self.options.testing;
        let mut certifier = Certifier::new(space.superblock().secret());
        if testing.twin == Some(Twin::LifeLeftOut) {
            certifier = certifier.ignoring_lives();
        }
        let clock = clock_of(&space, self.options, self.copy_lost);
        let zones = space.zone_count();
        let workers = testing.compactors.unwrap_or_else(|| workers_of(zones));
        let mut heap = LogHeap::new(space, certifier, clock, reserve_of(zones));
        if techniques.reduce {
            heap = heap.with_dead_bits();
        }
        let epochs = Collector::new();
        let hot_set = if testing.tiny_index { TINY_HOT_SET } else { HotSetSettings::default() };
        let hot = techniques.separate.then(|| Hot::new(hot_set, epochs.register()));
        let piece = if techniques.batch { quipu::PIECE } else { 1 };
        Spine {
            compactor: Compactor::new(&heap, &epochs, workers, piece),
            heap,
            index,
            stripes: Stripes::new(testing.stripes.unwrap_or(quipu::STRIPES)),
            epochs,
            publishes_late: publishes_late && I::NEVER_FAILS,
            sizes_in_words: techniques.reduce,
            hot,
            gives_hints: techniques.shortcut,
            twin: testing.twin,
        }
    }
}

/// Zones that puts leave free, of so many: one for compaction, the others for deletes.
fn reserve_of(zones: u32) -> u32 {
    (zones / quipu::RESERVE_DIVISOR).max(2)
}

/// The clock of a pool.
pub(crate) fn clock_of(space: &Space, options: &Options, copy_lost: bool) -> Clock {
    let testing = &options.testing;
    let settings = ClockSettings {
        block: testing.clock_block.unwrap_or(quipu::CLOCK_BLOCK),
        handful: testing.handful.unwrap_or(quipu::HANDFUL),
    };
    Clock::resume(space, settings, copy_lost)
}
