//! A slot store as its handle sees it.

use super::SlotSpine;
use super::client::SlotClient;
use super::recovery;
use crate::background::Job;
use crate::engine::common::Common;
use crate::engine::{Engine, InForce, InPlace};
use crate::types::error::Error;
use crate::types::reports::CheckReport;
use crate::types::stats::{Activity, Stats};
use crate::walk::cleaner;
use crate::walk::room;
use quipu_medium::Node;
use quipu_parts::heap::Clock;
use quipu_parts::index::Index;
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::space::CheckpointEntry;
use smallbox::smallbox;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<M: NodeMemory, const REDUCED: bool> Engine for SlotSpine<M, REDUCED> {
    fn session(self: Arc<Self>, node: Option<Node>) -> InPlace {
        smallbox!(SlotClient::of(self, node))
    }

    fn clock(&self) -> &Clock {
        self.heap.clock()
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn jobs(self: Arc<Self>) -> Vec<Job> {
        vec![cleaner(self.clone(), self.common.bell.clone(), Self::clean_ahead)]
    }

    fn limits(&self) -> (u64, u64) {
        self.heap.limits()
    }

    fn in_force(&self) -> InForce {
        InForce { eliminate: false, late: self.publishes_late() }
    }

    fn activity(&self) -> Activity {
        Activity {
            is_growing: self.index.growing() || self.heap.growing(),
            index_growth: self.index.growth(),
            is_compacting: self.reclaimer.busy.load(Ordering::Relaxed) != 0,
            is_surveying: false,
        }
    }

    fn stats(&self) -> Stats {
        // A write or a read reports a failure.
        let _ = self.settle_all(&self.common.epochs.register().pin());
        let (usage, index) = (self.heap.usage(), self.index.stats());
        let used = usage.used_blocks * usage.block_bytes;
        let live = usage.live_bytes + usage.value_blocks * usage.block_bytes;
        let (freed, moved) = self.reclaimer.done();
        let stats = Stats {
            records: self.index.len(),
            reserved_bytes: self.heap.reserve() * usage.block_bytes,
            free_bytes: self.heap.free_blocks() * usage.block_bytes,
            segments: usage.usable_blocks,
            open_segments: usage.open_blocks,
            segment_bytes: usage.block_bytes,
            record_bytes: used.max(live),
            garbage_bytes: used.saturating_sub(live),
            moved_bytes: moved,
            freed_segments: freed,
            index_bytes: index.bytes,
            index_pm_bytes: index.pm_bytes,
            index_splits: index.splits,
            ..self.common.stats(0)
        };
        room::counted_in(self, stats)
    }

    fn compact(&self) -> Result<(u64, u64), Error> {
        self.reclaim_all()
    }

    fn check(&self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        recovery::check(self, progress)
    }

    fn retire(&self) -> Result<CheckpointEntry, Error> {
        self.free_empty()?;
        Ok(CheckpointEntry::default())
    }
}
