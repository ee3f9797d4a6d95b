//! Steps of a recovery that do not depend on how a walk writes.

use super::{Core, TOMBSTONE, reference_of};
use crate::background;
use crate::types::error::{DamagedPlace, Error};
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
    /// is told the zones done and in all.
    pub(crate) fn scan_zones<F: Findings>(
        &self,
        zones: &[ZoneId],
        threads: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
        scan: impl Fn(&Guard<'_>, Shard, ZoneId, &mut F) -> Result<(), Error> + Sync,
    ) -> Result<F, Error> {
        let next = AtomicUsize::new(0);
        let (all, failure) = (SpinLock::new(F::default()), SpinLock::new(None));
        background::in_parallel(threads.clamp(1, zones.len().max(1)), |_| {
            let participant = self.epochs.register();
            let shard = self.heap.shard();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(zone) = zones.get(number) else { break };
                let mut findings = F::default();
                if let Err(error) = scan(&participant.pin(), shard, *zone, &mut findings) {
                    failure.lock().get_or_insert(error);
                }
                all.lock().merge(findings);
                progress(number + 1, zones.len());
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
        let participant = self.epochs.register();
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
