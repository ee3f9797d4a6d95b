//! Compaction: the live records of a sealed segment move to an open one, and its zone becomes free.
//!
//! A step takes the next few records of the victim, copies the live ones, fences once, and repoints the index
//! to the copies where it still names the originals (`relocate.rs`). No writer is locked out meanwhile.
//! Copies keep their sequence numbers: after a crash a copy and its original are equal.
//!
//! A tombstone moves as well, under the lock of its key (`careful.rs`). It is dropped if the index names a
//! later record of its key, or no segment holds it any more: then no older record of its key can exist.
//! `parts/src/heap/segments/lives.rs` says which segments hold a tombstone, and why that is enough.
//!
//! An expired record acts as a tombstone, and moves as one. The records of a frame move one by one.
//!
//! A segment that a client has open cannot be cleaned, and holds back younger tombstones. An idle client
//! would do so for ever. So before a write is refused, all segments are revoked from their clients, which
//! check for that under the lock of each key.
//!
//! The zone is given back when all readers that could reach its records have left.
//!
//! In a large pool several workers may compact at a time, each with a victim and a segment for the copies.
//! The live records of a victim fit the rest of that segment, or one more. So no worker begins a victim
//! without either, nor a second victim without a zone for each. The worker with the last zone can then end
//! its victim, which gives a zone to the others. A worker without a victim continues an abandoned one.
//!
//! A cleaner works ahead of the writers where there is one (see [`crate::background`]). If it falls behind,
//! or there is none, writers pay for the space that they use: while very few zones are left, each write is
//! preceded by a step. A write that finds no room takes as many steps as it needs. It cleans no segment that
//! was opened since, unless others take the room that it makes.

mod careful;
mod pace;
mod relocate;
mod step;

use super::durable::Surveying;
use super::{Spine, Writer};
use crate::walk::room::Room;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::heap::segments::{Candidate, LogHeap, Position};
use quipu_parts::heap::values::ValueZones;
use quipu_parts::index::Index;
use quipu_parts::space::ZoneId;
use quipu_parts::sync::{SpinGuard, SpinLock};
use quipu_parts::twin;
use relocate::Relocated;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Retired segments and values that no reader can reach any more.
type Ripe = Arc<SpinLock<Vec<Retired>>>;

/// A cleaned segment, and large values that nothing names once it is free.
struct Retired {
    segment: Option<ZoneId>,
    values: Vec<ValueZones>,
}

fn zones_of(values: &[ValueZones]) -> u32 {
    // Each is a zone of the pool.
    values.iter().map(|value| value.iter().len() as u32).sum()
}

/// The results of compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Segments whose zones were given back.
    pub(crate) segments: u64,
    /// Bytes of records that moved.
    pub(crate) moved: u64,
    /// Records that moved, and those of them whose hint led to their entry.
    pub(crate) records: u64,
    pub(crate) by_hint: u64,
}

/// The state of compaction, one for a store.
pub(crate) struct Compactor {
    workers: Box<[SpinLock<Worker>]>,
    /// Records that the cleaner takes in one step.
    piece: usize,
    /// Steps that found no room: after each, the search for a worker begins with the next one.
    failures: AtomicUsize,
    agenda: SpinLock<Agenda>,
    ripe: Ripe,
    /// The segment of an earlier run that is being surveyed for dead records.
    pub(super) surveying: SpinLock<Surveying>,
    /// Segments and large values that are retired and wait for readers.
    retired: AtomicU32,
    /// Zones of these large values.
    retired_zones: AtomicU32,
    pub(super) room: Room,
    /// Steps being taken; the crash explorer sorts its states by it.
    busy: AtomicU32,
    freed: AtomicU64,
    /// Retired segments and large values whose zones were given back.
    given_back: AtomicU64,
    moved: AtomicU64,
    moved_records: AtomicU64,
    hinted_records: AtomicU64,
}

/// The state of a worker, borrowed for each step.
struct Worker {
    participant: Participant,
    writer: Writer,
    victim: Option<(ZoneId, Position)>,
    /// Expired large values of the victim. While the victim exists, recovery may find their heads, and
    /// nothing that supersedes them.
    expired: Vec<ValueZones>,
}

/// The victims of all workers, and the next ones.
#[derive(Default)]
struct Agenda {
    /// Segments that are to be cleaned next.
    chosen: VecDeque<Candidate>,
    /// The workers' victims, with their lives.
    begun: Vec<(ZoneId, u64)>,
}

/// Zones of a pool, as a divisor, for each worker, since each keeps one open; and the most workers.
const WORKERS_DIVISOR: u32 = 512;
const MOST_WORKERS: u32 = 4;

/// How many may compact at a time in a pool of so many zones.
pub(crate) fn workers_of(zones: u32) -> u32 {
    (zones / WORKERS_DIVISOR).clamp(1, MOST_WORKERS)
}

/// A compactor's demand on a victim.
struct Demand {
    /// It was opened before this number was drawn.
    born_before: u64,
    /// It gives at least so many bytes back.
    least: u64,
    /// Tombstones may take this share of all record bytes, as a divisor, before the oldest segment becomes a
    /// victim.
    tombstone_share: u64,
    /// If nothing else is worthwhile, a segment with this much unused room behind its records is a victim.
    place: u64,
    /// It gives storage back. Unused room does not count then: it has no storage.
    gives_storage: bool,
    /// Records that a step takes.
    piece: usize,
}

impl Compactor {
    /// A compactor with so many workers, whose cleaner takes so many records under one fence.
    pub(crate) fn new(
        heap: &LogHeap,
        epochs: &Collector,
        (workers, piece): (u32, usize),
        wait: u32,
    ) -> Compactor {
        let worker = |_| {
            let (participant, writer) = (epochs.register(), Writer::new(heap, None));
            SpinLock::new(Worker { participant, writer, victim: None, expired: Vec::new() })
        };
        Compactor {
            workers: (0..workers).map(worker).collect(),
            piece,
            failures: AtomicUsize::new(0),
            agenda: SpinLock::default(),
            ripe: Ripe::default(),
            surveying: SpinLock::default(),
            retired: AtomicU32::new(0),
            retired_zones: AtomicU32::new(0),
            room: Room::of_zones(heap.space().zone_count(), wait),
            busy: AtomicU32::new(0),
            freed: AtomicU64::new(0),
            given_back: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            moved_records: AtomicU64::new(0),
            hinted_records: AtomicU64::new(0),
        }
    }

    /// Zones that are free for puts when compaction rests.
    pub(crate) fn goal(&self) -> u64 {
        self.room.low_water
    }

    /// Retires a large value that the index no longer names.
    pub(super) fn retire_value(&self, guard: &Guard<'_>, value: ValueZones) {
        self.retire(guard, Retired { segment: None, values: vec![value] });
    }

    /// Retires a segment or value; its zones are free when no reader is left. The next writer that makes room
    /// frees them: the caller may not return for long.
    fn retire(&self, guard: &Guard<'_>, retired: Retired) {
        let ripe = self.ripe.clone();
        self.retired.fetch_add(1, Ordering::AcqRel);
        self.retired_zones.fetch_add(zones_of(&retired.values), Ordering::AcqRel);
        if twin!(SegmentFreedEarly) {
            return ripe.lock().push(retired);
        }
        guard.defer_to_anyone(Box::new(move || ripe.lock().push(retired)));
    }

    /// A free worker, preferably one that has begun a victim, so that none stays half done.
    fn worker(&self) -> SpinGuard<'_, Worker> {
        let (mut free, first) = (None, self.failures.load(Ordering::Relaxed) % self.workers.len());
        let (before, from) = self.workers.split_at(first);
        for worker in from.iter().chain(before).filter_map(SpinLock::try_lock) {
            if worker.victim.is_some() {
                return worker;
            }
            free = free.or(Some(worker));
        }
        free.unwrap_or_else(|| self.workers[0].lock())
    }

    fn note(&self, done: Relocated) {
        self.moved.fetch_add(done.bytes, Ordering::Relaxed);
        self.moved_records.fetch_add(done.records, Ordering::Relaxed);
        self.hinted_records.fetch_add(done.by_hint, Ordering::Relaxed);
    }

    /// The results since the store was opened.
    pub(crate) fn done(&self) -> Compacted {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Compacted {
            segments: load(&self.freed),
            moved: load(&self.moved),
            records: load(&self.moved_records),
            by_hint: load(&self.hinted_records),
        }
    }

    /// Retired segments that are not free yet.
    fn retired(&self) -> u32 {
        self.retired.load(Ordering::Acquire)
    }

    /// Retired segments and large values that are free, since the store was opened.
    fn given_back(&self) -> u64 {
        self.given_back.load(Ordering::Acquire)
    }

    /// Zones of retired large values that are not free yet.
    fn retired_zones(&self) -> u32 {
        self.retired_zones.load(Ordering::Acquire)
    }

    /// Whether a worker has begun to clean a segment.
    pub(crate) fn has_begun(&self) -> bool {
        !self.agenda.lock().begun.is_empty()
    }

    /// Whether a step is being taken at this moment.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }
}

impl<I: Index> Spine<I> {
    /// Frees all zones that no reader can reach any more, and leaves the compactor's own segments to others.
    pub(crate) fn give_back(&self) {
        // A worker that waits for a zone gets one when another worker has ended its victim. The last worker
        // is left when there is a zone beside its own.
        for _ in 0..=self.compactor.workers.len() {
            self.leave_segments(&mut self.all_workers());
            self.free_all_ripe();
        }
    }

    /// All workers: no step can begin while they are held.
    fn all_workers(&self) -> Vec<SpinGuard<'_, Worker>> {
        self.compactor.workers.iter().map(SpinLock::lock).collect()
    }

    /// Leaves the compactor's own segments to others, and tells whether there was one. It ends a victim under
    /// way first: the victim may need the room in them.
    ///
    /// While victims are left and there is no zone to move records to, the segments stay: the last one holds
    /// only copies of records in those victims, so that recovery can free it. With other records in it, a
    /// crash would leave no zone to move records to. (Copies that had to go to a segment of deletions, on a
    /// full disk, have other records beside them.)
    fn leave_segments(&self, workers: &mut [SpinGuard<'_, Worker>]) -> bool {
        let mut left = false;
        for worker in workers {
            while worker.victim.is_some() && self.step(worker, &self.demand(0, u64::MAX)).is_ok() {}
            if self.compactor.retired() > 0 && !self.heap.has_zone_for_copies() {
                continue;
            }
            if let Some(segment) = worker.writer.segment.take() {
                self.heap.leave(segment);
                left = true;
            }
        }
        left
    }

    fn free_all_ripe(&self) {
        self.free_ripe(&self.compactor.worker().participant);
    }

    fn free_ripe(&self, participant: &Participant) {
        participant.collect();
        let ripe = std::mem::take(&mut *self.compactor.ripe.lock());
        for Retired { segment, values } in ripe {
            if let Some(zone) = segment {
                self.heap.free_unread(zone);
                self.compactor.freed.fetch_add(1, Ordering::Relaxed);
            }
            values.iter().for_each(|value| self.heap.free_value(value));
            self.compactor.given_back.fetch_add(1, Ordering::AcqRel);
            self.compactor.retired_zones.fetch_sub(zones_of(&values), Ordering::AcqRel);
            self.compactor.retired.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
