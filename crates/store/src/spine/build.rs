//! Putting a spine over logs together: its parts, by the design of the pool.

use super::eliminate::Elimination;
use super::hot::Hot;
use super::rooted::{Remembered, Rooted};
use super::{Compactor, Logs, Spine, workers_of};
use crate::checkpoint;
use crate::designs::{Design, quipu};
use crate::error::Error;
use crate::options::{Options, Twin};
use crate::recovery::{self, Holes, RecoveryReport};
use crate::techniques::{FlatSettings, Shortcut, Techniques};
use quipu_parts::epoch::Collector;
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings};
use quipu_parts::index::hash::{HashIndex, HashIndexSettings};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{Imaged, Index, IndexRoot};
use quipu_parts::record::Certifier;
use quipu_parts::space::{Space, SpaceError, SpaceRecovery};
use quipu_parts::stripes::Stripes;
use std::sync::Arc;

/// How design `quipu` compacts.
const OF_QUIPU: Techniques =
    Techniques { reduce: true, separate: true, shortcut: Shortcut::Off, batch: true };

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
        let of_index = if self.design.description().index_in_pool { MOST_FIRST_ZONES } else { 0 };
        if zones < reserve_of(zones) + of_index + 1 {
            return Err(Error::no_room_in(&space));
        }
        match self.design {
            Design::FlatstorePh => self.create_rooted(space, Logs::FlatstorePh),
            Design::FlatstoreFf => self.create_rooted(space, Logs::FlatstoreFf),
            Design::Mpkv => self.create_rooted(space, Logs::Mpkv),
            Design::MpkvBaseline => self.create_rooted(space, Logs::MpkvBaseline),
            _ => self.build(space),
        }
    }

    /// The store of a pool that was just mapped, recovered. `progress` is told the segments done and in all.
    pub(crate) fn open(
        &self,
        space: Space,
        holes: Holes,
        found: SpaceRecovery,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Logs, RecoveryReport), Error> {
        match self.design {
            Design::FlatstorePh => self.open_rooted(space, holes, found, progress, Logs::FlatstorePh),
            Design::FlatstoreFf => self.open_rooted(space, holes, found, progress, Logs::FlatstoreFf),
            Design::Mpkv => self.open_rooted(space, holes, found, progress, Logs::Mpkv),
            Design::MpkvBaseline => self.open_rooted(space, holes, found, progress, Logs::MpkvBaseline),
            _ => self.open_rebuilt(space, holes, found, progress),
        }
    }

    /// A store whose index is in DRAM, recovered.
    fn open_rebuilt(
        &self,
        space: Space,
        holes: Holes,
        found: SpaceRecovery,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Logs, RecoveryReport), Error> {
        let threads = self.options.recovery_threads;
        let mut logs = self.build(space)?;
        let resumed = match &mut logs {
            Logs::Quipu(spine) => self.resume(spine, &found),
            Logs::FlatstoreM(spine) => self.resume(spine, &found),
            _ => None,
        };
        if let Some(report) = resumed {
            return Ok((logs, report));
        }
        let report =
            super::with_logs!(&logs, spine => recovery::recover(spine, threads, holes, found, progress))?;
        Ok((logs, report))
    }

    /// Lets a store go on from what the last close has left for it, if that is to be believed.
    fn resume<I: Imaged>(&self, spine: &mut Arc<Spine<I>>, found: &SpaceRecovery) -> Option<RecoveryReport> {
        // If a copy of the superblock is lost, it may have been the one that said that the pool has changed.
        if self.options.verify || self.options.accept_damage || self.copy_lost {
            return None;
        }
        let loaded = checkpoint::load(spine, self.options.recovery_threads)?;
        let spine = Arc::get_mut(spine).expect("nobody else has it yet");
        Some(recovery::resume(spine, loaded, found.clone()))
    }

    /// A new pool's store, whose index is in the pool.
    fn create_rooted<I: Rooted>(
        &self,
        space: Space,
        logs: impl FnOnce(Arc<Spine<I>>) -> Logs,
    ) -> Result<Logs, Error> {
        let space = Arc::new(space);
        let settings: I::Remembered = settings_of(&space)?;
        let clock = clock_of(&space, self.options, self.copy_lost);
        let index = self.in_its_twin(self.create_index(&space, &clock, settings)?);
        Ok(logs(Arc::new(self.spine(space, clock, index, settings.techniques(), false))))
    }

    /// A store whose index is in the pool, recovered.
    fn open_rooted<I: Rooted>(
        &self,
        space: Space,
        holes: Holes,
        mut found: SpaceRecovery,
        progress: &(dyn Fn(usize, usize) + Sync),
        logs: impl FnOnce(Arc<Spine<I>>) -> Logs,
    ) -> Result<(Logs, RecoveryReport), Error> {
        let space = Arc::new(space);
        let settings: I::Remembered = settings_of(&space)?;
        let clock = clock_of(&space, self.options, self.copy_lost);
        let index = match I::examine(space.clone(), settings.root(), self.index_leaves(&space))? {
            Some(index) => index,
            // Nothing is in use before the index is: its creation was cut off.
            None if space.committed_zones().is_empty() => {
                space.repair(&mut found);
                self.create_index(&space, &clock, settings)?
            }
            None => {
                let what = "the root of the index in the superblock";
                return Err(SpaceError::Damaged { what, offset: 0 }.into());
            }
        };
        let spine = self.spine(space, clock, self.in_its_twin(index), settings.techniques(), false);
        let report = recovery::durable::recover(&spine, holes, found, progress)?;
        Ok((logs(Arc::new(spine)), report))
    }

    /// A new index in the pool, which the superblock names.
    fn create_index<I: Rooted>(
        &self,
        space: &Arc<Space>,
        clock: &Clock,
        settings: I::Remembered,
    ) -> Result<I, Error> {
        // The run has durably begun before anything else changes.
        clock.begin(space);
        let keep = |root: IndexRoot| {
            let settings = settings.with_root(root).encode();
            space.update_superblock(|superblock| superblock.settings = settings);
        };
        let is_tiny = self.options.testing.tiny_index;
        Ok(I::create(space.clone(), &settings, is_tiny, self.index_leaves(space), keep)?)
    }

    /// The index of a store that may be broken on purpose.
    fn in_its_twin<I: Rooted>(&self, mut index: I) -> I {
        if self.options.testing.twin == Some(Twin::ReadersDoNotHelp) {
            index.stop_helping();
        }
        index
    }

    /// Free zones that an index in the pool leaves: each who compacts may need one, and a crash may take one away from those who
    /// compact next.
    fn index_leaves(&self, space: &Space) -> u32 {
        self.workers(space) + 1
    }

    fn workers(&self, space: &Space) -> u32 {
        self.options.testing.compactors.unwrap_or_else(|| workers_of(space.zone_count()))
    }

    /// A store whose index is in DRAM and empty, whatever is in the pool.
    pub(crate) fn build(&self, space: Space) -> Result<Logs, Error> {
        let tiny = self.options.testing.tiny_index;
        let clock = clock_of(&space, self.options, self.copy_lost);
        if self.design == Design::Quipu {
            let settings = if tiny { HashIndexSettings::tiny() } else { HashIndexSettings::default() };
            let index = HashIndex::new(settings);
            return Ok(Logs::Quipu(Arc::new(self.spine(space, clock, index, OF_QUIPU, true))));
        }
        let FlatSettings { techniques, shape, .. } = settings_of(&space)?;
        let shape = if tiny { CcehSettings::tiny() } else { shape };
        Ok(match self.design {
            Design::FlatstoreM => {
                Logs::FlatstoreM(Arc::new(self.spine(space, clock, Masstree::new(), techniques, false)))
            }
            _ => {
                let index = CcehIndex::in_dram(shape);
                Logs::FlatstoreH(Arc::new(self.spine(space, clock, index, techniques, false)))
            }
        })
    }

    fn spine<I: Index>(
        &self,
        space: impl Into<Arc<Space>>,
        clock: Clock,
        index: I,
        techniques: Techniques,
        publishes_late: bool,
    ) -> Spine<I> {
        let (space, testing) = (space.into(), &self.options.testing);
        let mut certifier = Certifier::new(space.superblock().secret());
        if testing.twin == Some(Twin::LifeLeftOut) {
            certifier = certifier.ignoring_lives();
        }
        let (zones, workers) = (space.zone_count(), self.workers(&space));
        let mut heap = LogHeap::new(space, certifier, clock, reserve_of(zones));
        // A survey of what is dead runs beside those who note it, and the bits see to it that nothing is counted twice.
        if techniques.reduce || I::DURABLE {
            heap = heap.with_dead_bits();
        }
        let epochs = Collector::new();
        let hot_set = Hot::settings(testing);
        let hot = techniques.separate.then(|| Hot::new(hot_set, epochs.register()));
        let piece = if techniques.batch { quipu::PIECE } else { 1 };
        Spine {
            compactor: Compactor::new(&heap, &epochs, workers, piece),
            heap,
            index,
            stripes: Stripes::new(testing.stripes.unwrap_or(quipu::STRIPES)),
            epochs,
            publishes_late: publishes_late && I::NEVER_FAILS && self.options.late,
            sizes_in_words: techniques.reduce,
            hot,
            gives_hints: techniques.shortcut == Shortcut::On,
            verifies: self.options.verify_reads,
            elimination: Elimination::new(self.options.eliminate && self.design.description().eliminates),
            twin: testing.twin,
        }
    }
}

/// Zones that an index in the pool takes with the first keys, at most.
const MOST_FIRST_ZONES: u32 = 2;

/// What the superblock remembers of a pool.
fn settings_of<R: Remembered>(space: &Space) -> Result<R, SpaceError> {
    let unknown = SpaceError::Geometry { what: "the superblock holds settings that no release knows" };
    R::decode(&space.superblock().settings).ok_or(unknown)
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
