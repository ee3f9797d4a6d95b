//! A log store as its handle sees it.

use super::Spine;
use super::{check, salvage};
use crate::background::{Admission, Bell, Job};
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
use quipu_parts::space::{CheckpointEntry, Space, SpaceError};
use smallbox::smallbox;
use std::sync::Arc;

impl<I: Index> Engine for Spine<I> {
    fn session(self: Arc<Self>, node: Option<Node>) -> InPlace {
        smallbox!(points::Client::of(self, node))
    }

    fn space(&self) -> &Space {
        self.heap.space()
    }

    fn clock(&self) -> &Clock {
        self.heap.clock()
    }

    fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    fn jobs(self: Arc<Self>) -> Vec<Job> {
        let bell = self.compactor.bell.clone();
        let mut jobs = points::reader_jobs(&self);
        jobs.push(cleaner(self, bell, Self::clean_ahead));
        jobs
    }

    fn clock_bell(&self) -> Option<Arc<Bell>> {
        Some(self.compactor.bell.clone())
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
        let participant = self.epochs.register();
        let guard = participant.pin();
        // A write or a read reports a failure.
        let _ = self.settle_all(&guard);
        let space = self.heap.space();
        let index = self.index.stats();
        let bytes = self.heap.usage();
        let compacted = self.compactor.done();
        let goal = self.compactor.goal();
        let stats = Stats {
            // Damage, which every other call reports.
            records: self.index.len(&guard).unwrap_or_default(),
            pool_bytes: self.region().len(),
            zone_bytes: space.zone_size(),
            zones: space.zone_count() as u64,
            free_zones: space.free_zones() as u64,
            spills: space.spills(),
            reserve_zones: self.heap.reserve() as u64,
            reserved_bytes: self.heap.reserve() as u64 * space.zone_size(),
            free_bytes: self.heap.zones_left(Use::Put) as u64 * space.zone_size(),
            segments: (u64::from(space.zone_count()) - self.heap.reserve() as u64)
                .saturating_sub(index.pm_bytes.div_ceil(space.zone_size())),
            open_segments: self.heap.open_segments(),
            segment_bytes: space.zone_size(),
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
            ..Stats::default()
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
        self.settle_all(&self.epochs.register().pin())?;
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
