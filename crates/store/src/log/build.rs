//! Putting a log store together: its index, and what its design chooses besides.

use super::eliminate::Elimination;
use super::recovery;
use super::rooted::Rooted;
use super::{Compactor, Spine, workers_of};
use crate::engine::common::Common;
use crate::engine::site::{How, Opened, Site};
use crate::points::checkpoint::{self, Loaded};
use crate::points::{self, Core, RangeOf, Readers};
use crate::settings::techniques::{Shortcut, Techniques};
use crate::types::design::Capabilities;
use crate::types::error::Error;
use crate::types::reports::RecoveryReport;
use crate::walk::hot::Hot;
use crate::walk::in_pool;
use quipu_parts::commit::Roster;
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::{Clock, Reference};
use quipu_parts::index::{BothWays, Imaged, Index};
use quipu_parts::record::Certifier;
use quipu_parts::space::{CheckpointEntry, Space, SpaceRecovery};
use std::sync::Arc;

/// Share of the zones, as a divisor, that puts leave to deletes and to compaction.
const RESERVE_DIVISOR: u32 = 50;

/// Records that the cleaner moves under one fence.
const PIECE: usize = 1024;

/// Bytes of a zone at least, unless another size is asked for.
const LEAST_ZONE: u64 = 64 << 10;

/// Zones that an index in the pool takes with the first keys, at most.
const MOST_FIRST_ZONES: u32 = 2;

/// The choices of a design for a log store with this index.
pub(crate) struct LogParts<I: Index> {
    publishes_late: bool,
    eliminates: bool,
    caches: bool,
    reads_near: bool,
    in_order: Option<RangeOf<I>>,
    checkpoints: Option<Checkpoints<I>>,
}

/// How a store leaves a checkpoint; see [`checkpoint::save`].
pub(super) type SaveOf<I> = fn(&Core<I>) -> Option<CheckpointEntry>;

/// How a salvage reads the index of the last close; see [`checkpoint::index_of_close`].
pub(super) type IndexOfClose<I> = fn(&Core<I>, usize) -> Option<I>;

/// How a store whose index has an image leaves checkpoints, and goes on from them.
struct Checkpoints<I: Index> {
    save: SaveOf<I>,
    index_of_close: IndexOfClose<I>,
    resume: fn(&mut Arc<Spine<I>>, usize, &SpaceRecovery) -> Option<RecoveryReport>,
}

impl<I: Index> LogParts<I> {
    /// A store that publishes each put before it returns, and needs nothing of its index beyond [`Index`].
    pub(crate) const fn of_design() -> LogParts<I> {
        LogParts {
            publishes_late: false,
            eliminates: false,
            caches: false,
            reads_near: false,
            in_order: None,
            checkpoints: None,
        }
    }

    /// This store, with puts published by later writes of their client (see `log/publish.rs`).
    pub(crate) const fn late(self) -> LogParts<I> {
        assert!(I::NEVER_FAILS, "a put that has returned cannot fail any more");
        LogParts { publishes_late: true, ..self }
    }

    /// This store, where one of two puts that meet at a key may return for the other (MPKV section 3.3).
    pub(crate) const fn eliminating(self) -> LogParts<I> {
        LogParts { eliminates: true, ..self }
    }

    /// This store, with a [cache](points::cache_of) where that pays. Any other has one if it is asked to.
    pub(crate) const fn cached(self) -> LogParts<I> {
        LogParts { caches: true, ..self }
    }

    /// This store, with threads that read for scans on their nodes (NStore, section III-E).
    pub(crate) const fn reading_near(self) -> LogParts<I> {
        LogParts { reads_near: true, ..self }
    }

    /// Its capabilities.
    pub(crate) const fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered: self.in_order.is_some(),
            batches: !I::DURABLE,
            expiry: true,
            caches: true,
            versions: true,
            lends: true,
            large_values: !I::DURABLE,
            value_zones: !I::DURABLE,
            index_in_pool: I::DURABLE,
            pools_below: Reference::reach(I::WORD_BITS),
            least_zone: LEAST_ZONE,
            checkpoints: self.checkpoints.is_some(),
            eliminates: self.eliminates,
            publishes_late: self.publishes_late,
            salvages: !I::DURABLE,
            unproved: if I::DURABLE { UNPROVED_IN_POOL } else { &[] },
            ..Capabilities::NONE
        }
    }

    /// Opens a store whose index is in DRAM. This one is empty.
    pub(crate) fn open(&self, site: Site<'_>, index: I, techniques: Techniques) -> Result<Opened, Error> {
        let mut spine = Arc::new(self.spine(&site, site.clock(), index, techniques));
        let (believed, threads) = (site.believes_checkpoints(), site.options.recovery_threads);
        let recovery = match site.how {
            How::Unrecovered => RecoveryReport::default(),
            How::New => {
                check_room(&site.space, 0)?;
                RecoveryReport::default()
            }
            How::Existing(pool) => {
                let checkpoints = self.checkpoints.as_ref().filter(|_| believed);
                match checkpoints.and_then(|found| (found.resume)(&mut spine, threads, &pool.found)) {
                    Some(report) => report,
                    None => recovery::recover(&*spine, threads, pool)?,
                }
            }
        };
        Ok(Opened { engine: spine, recovery })
    }

    fn spine(&self, site: &Site<'_>, clock: Clock, index: I, techniques: Techniques) -> Spine<I> {
        let (space, options, testing) = (&site.space, site.options, &site.options.testing);
        let certifier = Certifier::new(space.superblock().secret());
        let mut heap = LogHeap::new(space.clone(), certifier, clock, reserve_of(space.zone_count()));
        // A survey of dead records runs beside the writers that note them; the bits ensure that nothing is
        // counted twice.
        if techniques.reduce || I::DURABLE {
            heap = heap.with_dead_bits();
        }
        let common = Common::of(site);
        let hot_set = Hot::settings(testing);
        let hot = techniques.separate.then(|| Hot::new(hot_set, common.epochs.register()));
        let piece = if techniques.batch { PIECE } else { 1 };
        Spine {
            compactor: Compactor::new(
                &heap,
                &common.epochs,
                (workers(site), piece),
                site.options.wait_for_room,
            ),
            core: Core {
                heap,
                index,
                common,
                sizes_in_words: techniques.reduce,
                verifies: options.verify_reads,
                cache: points::cache_of(site, self.caches),
                readers: Readers::of(space, if self.reads_near { options.readers } else { 0 }),
                in_order: self.in_order,
            },
            publishes_late: self.publishes_late && options.late,
            roster: Roster::default(),
            hot,
            gives_hints: techniques.shortcut == Shortcut::On,
            elimination: Elimination::new(options.eliminate && self.eliminates),
            save: self.checkpoints.as_ref().map(|checkpoints| checkpoints.save),
            index_of_close: self.checkpoints.as_ref().map(|checkpoints| checkpoints.index_of_close),
        }
    }
}

impl<I: BothWays> LogParts<I> {
    /// This store with its keys in their order.
    pub(crate) const fn ordered(self) -> LogParts<I> {
        LogParts { in_order: Some(points::range_of::<I>), ..self }
    }
}

impl<I: Imaged> LogParts<I> {
    /// This store with a checkpoint at each close.
    pub(crate) const fn checkpointed(self) -> LogParts<I> {
        LogParts {
            checkpoints: Some(Checkpoints {
                save: checkpoint::save::<I>,
                index_of_close: checkpoint::index_of_close::<I>,
                resume: resume::<I>,
            }),
            ..self
        }
    }
}

impl<I: Rooted> LogParts<I> {
    /// Opens a store whose index is in the pool.
    pub(crate) fn open_in_pool(
        &self,
        mut site: Site<'_>,
        settings: I::Remembered,
        techniques: Techniques,
    ) -> Result<Opened, Error> {
        let clock = site.clock();
        if let How::New = site.how {
            check_room(&site.space, MOST_FIRST_ZONES)?;
        }
        let (shape, leave) = (I::shape(&settings, site.is_tiny()), index_leaves(&site));
        let index = in_pool::index(&mut site, &clock, settings, shape, leave)?;
        let spine = self.spine(&site, clock, index, techniques);
        let recovery = match site.how {
            How::Existing(pool) => recovery::durable::recover(&spine, pool)?,
            _ => RecoveryReport::default(),
        };
        Ok(Opened { engine: Arc::new(spine), recovery })
    }
}

/// Facts that an index in the pool does not prove.
const UNPROVED_IN_POOL: &[&str] = &["that the index has every key, and for each the latest of its records"];

/// Resumes a store from the checkpoint of the last close, if it holds.
fn resume<I: Imaged>(
    spine: &mut Arc<Spine<I>>,
    threads: usize,
    found: &SpaceRecovery,
) -> Option<RecoveryReport> {
    let loaded: Loaded<I> = checkpoint::load(spine, threads)?;
    let spine = Arc::get_mut(spine).expect("nobody else has it yet");
    Some(recovery::resume(spine, loaded, found.clone()))
}

/// Free zones that an index in the pool leaves: each compactor may need one, and a crash may cost the next
/// compactors one.
fn index_leaves(site: &Site<'_>) -> u32 {
    workers(site) + 1
}

fn workers(site: &Site<'_>) -> u32 {
    site.options.testing.compactors.unwrap_or_else(|| workers_of(site.space.zone_count()))
}

/// Refuses a new pool without room for a segment beside the reserve, and so many zones of its index.
fn check_room(space: &Space, of_index: u32) -> Result<(), Error> {
    let zones = space.zone_count();
    if zones < reserve_of(zones) + of_index + 1 { Err(Error::no_room_in(space)) } else { Ok(()) }
}

/// Zones that puts leave free, of so many: one for compaction, the others for deletes.
fn reserve_of(zones: u32) -> u32 {
    (zones / RESERVE_DIVISOR).max(2)
}
