//! Steps of a recovery that do not depend on how a walk writes.

use super::{Core, TOMBSTONE, reference_of};
use crate::background;
use crate::types::error::{DamagedPlace, Error};
use quipu_medium::Node;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::segments::{ScanError, Shard};
use quipu_parts::index::Index;
use quipu_parts::space::ZoneId;
use quipu_parts::sync::SpinLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The findings of scanning threads.
pub(crate) trait Findings: Default + Send {
    /// Adds the findings of another thread.
    fn merge(&mut self, other: Self);
}

impl<I: Index> Core<I> {
    /// Scans zones by so many threads, each zone by one call of `scan`, and merges the findings. `progress`
    /// is told the zones done and in all. Threads scan where the zones are (NStore, section III-G); a single
    /// one stays where it is.
    pub(crate) fn scan_zones<F: Findings>(
        &self,
        zones: &[ZoneId],
        threads: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
        scan: impl Fn(&Guard<'_>, Shard, ZoneId, &mut F) -> Result<(), Error> + Sync,
    ) -> Result<F, Error> {
        let nodes = self.heap.space().nodes();
        let of_node = |node: &Node| {
            let own = zones.iter().filter(|zone| self.heap.space().zone_node(**zone) == *node);
            (*node, own.copied().collect::<Vec<_>>(), AtomicUsize::new(0))
        };
        let queues: Vec<_> = nodes.iter().map(of_node).collect();
        let (done, all, failure) = (AtomicUsize::new(0), SpinLock::new(F::default()), SpinLock::new(None));
        let threads = threads.clamp(1, zones.len().max(1));
        background::in_parallel(threads, |thread| {
            let participant = self.common.epochs.register();
            let shard = self.heap.shard();
            let (before, after) = queues.split_at(thread % queues.len());
            for (node, zones_of_node, next) in after.iter().chain(before) {
                if threads > 1 {
                    // Where the node has no processors, its zones are scanned from another one.
                    let _ = self.region().pin(*node);
                }
                while let Some(zone) = zones_of_node.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut findings = F::default();
                    if let Err(error) = scan(&participant.pin(), shard, *zone, &mut findings) {
                        failure.lock().get_or_insert(error);
                    }
                    all.lock().merge(findings);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, zones.len());
                }
            }
        });
        match failure.lock().take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut *all.lock())),
        }
    }

    /// The damage of a segment whose zone the zone table has lost.
    pub(crate) fn lost_by_table(&self, zone: ZoneId) -> DamagedPlace {
        self.damaged_zone(zone, "a segment with records whose zone the zone table takes for free")
    }

    /// The damage of a segment that cannot be scanned for this reason.
    pub(crate) fn wrong_header(&self, zone: ZoneId, error: &ScanError) -> DamagedPlace {
        let what = match error {
            ScanError::EndMark => "the end mark of a segment",
            _ => "the header of a segment",
        };
        self.damaged_zone(zone, what)
    }

    /// The damage of a segment of a closed pool that has no end mark: closing seals every segment.
    pub(crate) fn no_end_mark(&self, zone: ZoneId, end: u64) -> DamagedPlace {
        DamagedPlace { len: end, ..self.damaged_zone(zone, "the end mark of a segment") }
    }

    fn damaged_zone(&self, zone: ZoneId, what: &str) -> DamagedPlace {
        let space = self.heap.space();
        DamagedPlace { what: what.into(), offset: space.zone_offset(zone), len: space.zone_size() }
    }

    /// Takes the tombstones that won out of the index: to readers a tombstone and absence are equal.
    pub(crate) fn drop_tombstones(&self) -> Result<(), Error> {
        let participant = self.common.epochs.register();
        let mut cursor = I::Cursor::default();
        let mut words = Vec::new();
        loop {
            let guard = participant.pin();
            let more = self.index.next_batch(&guard, &mut cursor, &mut words)?;
            for word in words.drain(..) {
                if reference_of(word).tag() == TOMBSTONE
                    && let Some(record) = self.record_of(&guard, word)
                {
                    self.index.take(&guard, self.key(record.key), None, |found| found == word)?;
                }
            }
            if !more {
                return Ok(());
            }
        }
    }
}
