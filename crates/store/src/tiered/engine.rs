//! A store of memtables as its handle sees it.

use super::Tiers;
use super::check;
use super::checkpoint;
use super::client::TieredClient;
use super::salvage;
use crate::background::{Job, Steps};
use crate::engine::common::Common;
use crate::engine::holder;
use crate::engine::moment::Moment;
use crate::engine::{Engine, InPlace};
use crate::types::error::Error;
use crate::types::reports::{CheckReport, SalvageReport};
use crate::types::stats::{Activity, Stats};
use crate::types::table::{Table, TableId, TableStats};
use crate::walk::cleaner;
use crate::walk::room;
use quipu_medium::Node;
use quipu_parts::epoch::What;
use quipu_parts::heap::Clock;
use quipu_parts::heap::chain::Held;
use quipu_parts::index::{Imaged, InOrder, Index};
use quipu_parts::space::{CheckpointEntry, SpaceError};
#[cfg(feature = "twins")]
use quipu_parts::twin;
use quipu_parts::versions::{Snapshot, Terms};
use smallbox::smallbox;
use std::sync::Arc;
use std::time::Duration;

impl<I: InOrder + Imaged + 'static> Engine for Tiers<I> {
    fn session(self: Arc<Self>, node: Option<Node>) -> InPlace {
        let table = self.tables.default_table();
        smallbox!(TieredClient::of(self, table, node))
    }

    fn clock(&self) -> &Clock {
        self.log.heap().clock()
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn jobs(self: Arc<Self>) -> Vec<Job> {
        let cleans = cleaner(self.clone(), self.common.bell.clone(), Self::clean_ahead);
        if !self.dumper.is_there() {
            return vec![cleans];
        }
        let (dumper, compactor) = (self.clone(), self.clone());
        let dumps = Job {
            name: "quipu-dumper",
            steps: Steps::Long,
            bell: self.dumper.bell.clone(),
            step: Box::new(move || dumper.dump_ahead()),
        };
        let merges = Job {
            name: "quipu-compactor",
            steps: Steps::Longest,
            bell: self.compactor.bell.clone(),
            step: Box::new(move || compactor.compact_ahead()),
        };
        vec![cleans, dumps, merges]
    }

    fn limits(&self) -> (u64, u64) {
        (self.key_limit(), self.value_limit())
    }

    fn create_table(&self, name: &str) -> Result<Table, Error> {
        Tiers::create_table(self, name)
    }

    fn tables(&self) -> Result<Vec<Table>, Error> {
        Ok(self.handles())
    }

    fn drop_table(&self, id: TableId) -> Result<(), Error> {
        Tiers::drop_table(self, id)
    }

    fn table_stats(&self, id: TableId) -> Result<TableStats, Error> {
        Tiers::table_stats(self, id)
    }

    fn snapshot(&self) -> Result<Snapshot, Error> {
        let holder = holder::here(self.region(), What::Snapshot);
        Ok(self.snapshots.take(holder, Terms::NONE, || self.log.visible()))
    }

    fn moment(&self) -> Result<(Snapshot, Moment), Error> {
        let end_of = |age: Duration| self.region().coarse_ticks().saturating_add(age.as_millis() as u64);
        let end = self.transaction_age.map_or(u64::MAX, end_of);
        let (snapshot, moment) = Tiers::moment(self, What::Transaction, end);
        #[cfg(feature = "twins")]
        if twin!(SnapshotForgotten) {
            self.snapshots.forget(&snapshot);
        }
        Ok((snapshot, moment))
    }

    fn activity(&self) -> Activity {
        // The tables of a pool grow one by one; a tool that looks closely has one.
        let table = self.tables.default_table();
        let view = table.views.latest();
        let index = view.as_ref().map(|view| view.active.versions.index());
        Activity {
            is_growing: index.is_some_and(Index::growing) || self.log.is_preparing(),
            index_growth: index.map(Index::growth).unwrap_or_default(),
            is_compacting: self.rewriter.is_busy() || self.dumper.is_busy(),
            ..Activity::default()
        }
    }

    fn stats(&self) -> Stats {
        let (space, held) = (&self.common.space, self.held_by(|_| true));
        let Held { bytes, tombstones, .. } = held;
        let (live, done) = (held.live().saturating_sub(tombstones), self.rewriter.done());
        let (zone, free) = (space.zone_size(), space.free_zones());
        let mut stats = Stats {
            records: live,
            free_bytes: u64::from(free.saturating_sub(self.reserve)) * zone,
            open_segments: self.log.memtables().iter().filter(|memtable| memtable.end().is_none()).count()
                as u64,
            record_bytes: bytes,
            garbage_bytes: bytes.saturating_sub(held.bytes_of(live)),
            tombstone_bytes: held.bytes_of(tombstones),
            moved_bytes: done.bytes,
            moved_records: done.records,
            freed_segments: done.zones,
            ..self.common.stats(self.reserve)
        };
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        for table in self.tables.all() {
            let view = table.view(&guard);
            for layer in view.layers() {
                stats.index_bytes += layer.bytes();
                stats.index_splits += layer.versions.index().stats().splits;
            }
            if let Some(levels) = &view.levels {
                let runs = levels.runs.stats();
                stats.level_files += runs.tables;
                stats.level_bytes += runs.bytes;
                stats.level_records += runs.records;
                stats.level_debt += runs.debt;
                stats.level_dram += runs.pinned;
            }
        }
        stats.index_bytes += self.gone.bytes();
        stats.dumped_bytes = self.dumper.dumped_bytes();
        (stats.paced_writes, stats.paced_ms) = self.dumper.pace.paused();
        room::counted_in(self, stats)
    }

    fn compact(&self) -> Result<(u64, u64), Error> {
        self.rewrite_all()
    }

    fn check(&self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        check::check(self, progress)
    }

    fn salvage(
        &self,
        wrong: &[SpaceError],
        threads: usize,
        into: &Arc<dyn Engine>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<SalvageReport, Error> {
        salvage::salvage(self, wrong, threads, into, progress)
    }

    fn quiesce(&self) -> Result<(), Error> {
        self.release_all_ripe();
        Ok(())
    }

    fn retire(&self) -> Result<CheckpointEntry, Error> {
        self.log.close()?;
        // Both copies agree in a pool that was closed.
        let heap = self.log.heap();
        self.anchor.raise(heap.region(), heap.certifier(), self.anchor.through());
        checkpoint::save(self)
    }
}
