//! A store of files as its handle sees it.

use super::{NlogSpine, check};
use crate::background::Job;
use crate::engine::common::Common;
use crate::engine::{Engine, InPlace};
use crate::points::{self, checkpoint};
use crate::types::error::Error;
use crate::types::reports::CheckReport;
use crate::types::stats::{Activity, Stats};
use crate::walk::room::{self, Cleans};
use quipu_medium::Node;
use quipu_parts::heap::Clock;
use quipu_parts::heap::segments::Use;
use quipu_parts::index::Imaged;
use quipu_parts::space::CheckpointEntry;
use smallbox::smallbox;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<I: Imaged> Engine for NlogSpine<I> {
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
        let readers = points::reader_jobs(&self);
        self.cleaner_jobs().into_iter().chain(readers).collect()
    }

    fn limits(&self) -> (u64, u64) {
        (self.key_limit(), self.inline_limit())
    }

    fn activity(&self) -> Activity {
        Activity {
            is_growing: self.index.growing() || self.nlog().is_growing(),
            index_growth: self.index.growth(),
            is_compacting: self.cleaning.is_busy(),
            is_surveying: false,
        }
    }

    fn stats(&self) -> Stats {
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        let (space, index, bytes) = (self.heap.space(), self.index.stats(), self.heap.usage());
        let load = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let goal = self.cleaning.room.low_water;
        let stats = Stats {
            records: self.index.len(&guard).unwrap_or_default(),
            free_bytes: self.heap.zones_left(Use::Put) as u64 * space.zone_size(),
            open_segments: self.heap.open_segments(),
            record_bytes: bytes.written,
            garbage_bytes: bytes.garbage,
            moved_bytes: load(&self.cleaning.moved),
            moved_records: load(&self.cleaning.moved_records),
            freed_segments: load(&self.cleaning.freed),
            goal_zones: goal,
            owed_zones: goal.saturating_sub(self.left()),
            index_bytes: index.bytes,
            index_splits: index.splits,
            index_records_read: index.records_read,
            ..self.common.stats(self.heap.reserve())
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
        self.give_back();
        self.close_files(|| true);
        Ok(())
    }

    fn retire(&self) -> Result<CheckpointEntry, Error> {
        Ok(checkpoint::save(&self.core).unwrap_or_default())
    }
}
