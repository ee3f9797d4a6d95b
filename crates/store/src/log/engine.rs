//! A log store as its handle sees it.

use super::Spine;
use super::{check, salvage};
use crate::background::Job;
use crate::engine::common::Common;
use crate::engine::{Engine, InForce, InPlace, NO_SALVAGE};
use crate::points::{self, Points};
use crate::types::error::Error;
use crate::types::reports::{CheckReport, SalvageReport};
use crate::types::stats::{Activity, Stats};
use crate::walk::cleaner;
use crate::walk::room::{self, Cleans};
use quipu_medium::Node;
use quipu_parts::heap::Clock;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Index;
use quipu_parts::space::{CheckpointEntry, SpaceError};
use smallbox::smallbox;
use std::sync::Arc;

impl<I: Index> Engine for Spine<I> {
    fn session(self: Arc<Self>, node: Option<Node>) -> InPlace {
        smallbox!(points::Client::of(self, node))
    }

    fn clock(&self) -> &Clock {
        self.heap.clock()
    }

    fn common(&self) -> &Common {
        &self.core.common
    }

    fn jobs(self: Arc<Self>) -> Vec<Job> {
        let mut jobs = points::reader_jobs(&self);
        jobs.push(cleaner(self.clone(), self.core.common.bell.clone(), Self::clean_ahead));
        jobs
    }

    fn limits(&self) -> (u64, u64) {
        (self.key_limit(), self.value_limit())
    }

    fn in_force(&self) -> InForce {
        InForce { eliminate: self.eliminates(), late: self.publishes_late }
    }

    fn activity(&self) -> Activity {
        Activity {
            is_growing: self.index.growing() || self.heap.growing(),
            index_growth: self.index.growth(),
            is_compacting: self.compactor.is_busy(),
            is_surveying: self.heap.unsurveyed().is_some(),
        }
    }

    fn stats(&self) -> Stats {
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        // A write or a read reports a failure.
        let _ = self.settle_all(&guard);
        let space = self.heap.space();
        let (pool, index) = (self.common.stats(self.heap.reserve()), self.index.stats());
        let bytes = self.heap.usage();
        let compacted = self.compactor.done();
        let goal = self.compactor.goal();
        let stats = Stats {
            // Damage, which every other call reports.
            records: self.index.len(&guard).unwrap_or_default(),
            free_bytes: self.heap.zones_left(Use::Put) as u64 * space.zone_size(),
            segments: pool.segments.saturating_sub(index.pm_bytes.div_ceil(space.zone_size())),
            open_segments: self.heap.open_segments(),
            record_bytes: bytes.written,
            garbage_bytes: bytes.garbage + bytes.tombstones,
            tombstone_bytes: bytes.tombstones,
            moved_bytes: compacted.moved,
            moved_records: compacted.records,
            hinted_records: compacted.by_hint,
            freed_segments: compacted.segments,
            goal_zones: goal,
            owed_zones: goal.saturating_sub(self.left()),
            value_bytes: (self.heap.zones_of_values() * space.zone_size()).saturating_sub(index.pm_bytes),
            index_bytes: index.bytes,
            index_pm_bytes: index.pm_bytes,
            index_splits: index.splits,
            index_records_read: index.records_read,
            eliminated_writes: self.elimination.count(),
            ..pool
        };
        room::counted_in(self, self.with_reads(stats))
    }

    fn compact(&self) -> Result<(u64, u64), Error> {
        self.clean_all()
    }

    fn check(&self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        check::check(self, progress)
    }

    fn quiesce(&self) -> Result<(), Error> {
        self.settle_all(&self.common.epochs.register().pin())?;
        self.give_back();
        self.heap.seal_idle();
        Ok(())
    }

    fn retire(&self) -> Result<CheckpointEntry, Error> {
        self.end_all_open()?;
        // A victim that could not be ended may hold heads of expired large values that the index does not
        // name. A scan frees their zones; a checkpoint would leave them in use.
        let save = self.save.filter(|_| !self.compactor.has_begun());
        Ok(save.and_then(|save| save(&self.core)).unwrap_or_default())
    }

    fn salvage(
        &self,
        wrong: &[SpaceError],
        threads: usize,
        into: &Arc<dyn Engine>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<SalvageReport, Error> {
        if I::DURABLE {
            return Err(Error::Unsupported { what: NO_SALVAGE });
        }
        salvage::salvage(self, wrong, threads, into, progress)
    }
}
