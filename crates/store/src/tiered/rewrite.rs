//! Giving space back: a memtable that is mostly superseded is rewritten and released.
//!
//! 1. Its records are looked at, some at a time, with the stripes of their keys held. One that is the newest
//!    of its key is written anew, as any write is; the others are left.
//! 2. When the copies are visible, older versions of their keys are purged.
//! 3. When all guards have dropped under which a record of it could be found, it is released: the anchor
//!    first, then its object, then its zones.
//!
//! *Nothing that was superseded comes back.* For each key, the newest record stays in some memtable. A
//! tombstone is left behind only if its memtable is the oldest of its table that is not released, so that no
//! older record of the key is anywhere. An expired value is written anew as a tombstone, or left likewise.
//!
//! *A snapshot delays a release, and stops nothing for good.* A copy has a number above all snapshots of its
//! time, which still look at the record itself. So the memtable is *held* until the oldest snapshot is behind
//! the copies, and gone over once more: then it has no record that is the newest of its key. Snapshots that
//! are taken meanwhile see the copies.
//!
//! *Copies have numbers of their own.* They are the newest records of their keys, which nobody else writes
//! meanwhile. So a crash finds a prefix of all writes, and copies change nothing in it.
//!
//! The work goes in steps, so that a writer who needs room waits for no more than one.

use super::choose::{Candidate, Demand, choose};
use super::ranges::Sweep;
use super::table::Table;
use super::view::View;
use super::write::{Near, Purpose};
use super::{Tiers, Writer};
use crate::options::Merging;
use crate::types::error::Error;
use crate::walk::room;
use quipu_medium::LINE;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::{CHUNK_HEADER, Memtable, RecordFound, VERSION_FIELD};
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::{Content, Kind};
use quipu_parts::sync::{SpinGuard, SpinLock};
use quipu_parts::twin;
use quipu_parts::versions::Version;
#[cfg(doc)]
use quipu_parts::versions::Versions;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Records that are written anew as one item.
const BATCH: usize = 64;

/// An item of copies takes at most one part in so many of a zone, unless it is one record.
const ITEMS: u64 = 4;

/// Copies may leave one part in so many unused at the ends of zones. It is an estimate: another writer of the
/// table may take the room that an item was made for, and the item then begins a zone.
const ENDS: u64 = 8;

/// The rewriting of a store.
pub(super) struct Rewriter {
    worker: SpinLock<Worker>,
    /// Memtables that nobody finds any more, and that readers have left.
    ripe: Arc<SpinLock<Vec<Arc<Memtable>>>>,
    /// Memtables that nobody finds any more, and that are not released, by their numbers.
    retired: SpinLock<Vec<u64>>,
    /// Memtables that snapshots keep from being released.
    held: Arc<AtomicU64>,
    /// Whether snapshots delay the sweep of a range tombstone.
    pub(super) delays_sweep: AtomicBool,
    /// Whether snapshots keep tombstones of a memtable that is the oldest of its table.
    keeps_tombstones: AtomicBool,
    /// Whether a memtable has ended since the cleaner has looked for tombstones to let go.
    pub(super) has_ended: AtomicBool,
    /// Free zones at which a writer found nothing to rewrite; `u64::MAX` if it found something.
    pub(super) nothing_at: AtomicU64,
    moved_bytes: AtomicU64,
    moved_records: AtomicU64,
    freed_zones: AtomicU64,
}

/// The state of the thread that rewrites.
pub(super) struct Worker {
    pub(super) participant: Participant,
    pub(super) writer: Writer,
    victim: Option<Victim>,
    pub(super) sweep: Sweep,
    /// Memtables that snapshots hold, each with the number from which on a snapshot needs nothing of it.
    held: Vec<(Arc<Memtable>, u64)>,
    /// How many these are.
    held_count: Arc<AtomicU64>,
}

impl Worker {
    /// Leaves a table, which is about to be dropped.
    pub(super) fn leave(&mut self, subtable: u64) {
        self.victim.take_if(|victim| victim.memtable.subtable() == subtable);
        self.held.retain(|(memtable, _)| memtable.subtable() != subtable);
        self.held_count.store(self.held.len() as u64, Ordering::Release);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.writer.retired.defer(&self.participant.pin());
    }
}

/// A memtable that is being rewritten.
struct Victim {
    memtable: Arc<Memtable>,
    records: Vec<Reference>,
    next: usize,
    /// Whether a snapshot needs one of those before the next.
    is_needed: bool,
    /// Whether it was held: all that counts has been copied.
    was_held: bool,
}

/// The work of a rewriter since open.
pub(super) struct Done {
    pub(super) bytes: u64,
    pub(super) records: u64,
    /// Zones of memtables that were released.
    pub(super) zones: u64,
}

impl Rewriter {
    pub(super) fn new(epochs: &Collector) -> Rewriter {
        let (participant, writer) = (epochs.register(), Writer::default());
        let (held, held_count) = (Vec::new(), Arc::<AtomicU64>::default());
        let (victim, sweep) = (None, Sweep::default());
        let worker = Worker { participant, writer, victim, sweep, held, held_count: held_count.clone() };
        Rewriter {
            worker: SpinLock::new(worker),
            ripe: Arc::default(),
            retired: SpinLock::default(),
            held: held_count,
            delays_sweep: AtomicBool::new(false),
            keeps_tombstones: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            nothing_at: AtomicU64::new(u64::MAX),
            moved_bytes: AtomicU64::new(0),
            moved_records: AtomicU64::new(0),
            freed_zones: AtomicU64::new(0),
        }
    }

    /// Waits until nothing is being rewritten.
    pub(super) fn worker(&self) -> SpinGuard<'_, Worker> {
        self.worker.lock()
    }

    /// Whether a memtable is being rewritten.
    pub(super) fn is_busy(&self) -> bool {
        self.worker.try_lock().is_none_or(|worker| worker.victim.is_some())
    }

    /// Whether a memtable waits for its readers to leave.
    pub(super) fn waits(&self) -> bool {
        !self.retired.lock().is_empty()
    }

    /// Whether room would come if snapshots went.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) != 0
            || self.delays_sweep.load(Ordering::Acquire)
            || self.keeps_tombstones.load(Ordering::Acquire)
    }

    /// Memtables that nobody finds any more, and that are not released, by their numbers.
    pub(super) fn retired(&self) -> Vec<u64> {
        self.retired.lock().clone()
    }

    pub(super) fn done(&self) -> Done {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Done {
            bytes: read(&self.moved_bytes),
            records: read(&self.moved_records),
            zones: read(&self.freed_zones),
        }
    }
}

impl<I: InOrder> Tiers<I> {
    /// Rewrites the next few records of a memtable that meets the demand. `false` if there is none.
    pub(super) fn rewrite_step(&self, demand: &Demand) -> Result<bool, Error> {
        let mut worker = self.rewriter.worker.lock();
        room::begins_step(self.region());
        self.end_old_transactions();
        self.release_ripe(&worker.participant);
        // Swept records are garbage that the choice of a memtable knows of.
        if self.sweep_step(&mut worker)? {
            return Ok(true);
        }
        let Worker { participant, writer, victim, held, .. } = &mut *worker;
        let Some(mut at_work) = victim.take() else {
            *victim = self.begin(&participant.pin(), demand, held)?;
            return Ok(victim.is_some());
        };
        let guard = participant.pin();
        let end = at_work.records.len().min(at_work.next + BATCH);
        at_work.is_needed |= !self.rewrite(&guard, writer, &at_work, at_work.next..end)?;
        at_work.next = end;
        if end < at_work.records.len() {
            *victim = Some(at_work);
            return Ok(true);
        }
        writer.retired.defer(&guard);
        if at_work.is_needed {
            // All copies are visible.
            let newest = writer.horizon.snapshots.last().map_or(0, |newest| newest + 1);
            self.hold(held, at_work.memtable, newest.max(self.log.visible()));
        } else {
            self.retire(&guard, at_work.memtable);
        }
        Ok(true)
    }

    /// Leaves a memtable until no snapshot before this number is there.
    fn hold(&self, held: &mut Vec<(Arc<Memtable>, u64)>, memtable: Arc<Memtable>, until: u64) {
        held.push((memtable, until));
        self.rewriter.held.store(held.len() as u64, Ordering::Release);
    }

    /// Releases memtables that nobody reads any more.
    pub(super) fn release_all_ripe(&self) {
        let worker = self.rewriter.worker.lock();
        self.release_ripe(&worker.participant);
    }

    fn release_ripe(&self, participant: &Participant) {
        participant.collect();
        let ripe = std::mem::take(&mut *self.rewriter.ripe.lock());
        if ripe.is_empty() {
            return;
        }
        let zones: usize = ripe.iter().map(|memtable| memtable.zones().len()).sum();
        self.log.release(&ripe, &self.anchor);
        self.rewriter.freed_zones.fetch_add(zones as u64, Ordering::Relaxed);
        let is_ripe = |number: &u64| ripe.iter().any(|memtable| memtable.number() == *number);
        self.rewriter.retired.lock().retain(|number| !is_ripe(number));
    }

    /// Zones of memtables that nobody finds any more, and that are not released.
    pub(super) fn zones_to_come(&self) -> u32 {
        let (retired, memtables) = (self.rewriter.retired.lock().clone(), self.log.memtables());
        let coming = memtables.iter().filter(|memtable| retired.contains(&memtable.number()));
        coming.map(|memtable| memtable.zones().len() as u32).sum()
    }

    /// Releases a memtable that no index names, once readers have left it.
    fn retire(&self, guard: &Guard<'_>, memtable: Arc<Memtable>) {
        self.rewriter.retired.lock().push(memtable.number());
        if twin!(RecycledEarly) {
            return self.rewriter.ripe.lock().push(memtable);
        }
        let ripe = self.rewriter.ripe.clone();
        guard.defer_to_anyone(Box::new(move || ripe.lock().push(memtable)));
    }

    /// Releases memtables that nobody finds any more, once readers have left them. Some may wait for that
    /// already.
    pub(super) fn retire_all(&self, guard: &Guard<'_>, memtables: Vec<Arc<Memtable>>) {
        let retired = self.rewriter.retired.lock().clone();
        let is_new = |memtable: &Arc<Memtable>| !retired.contains(&memtable.number());
        memtables.into_iter().filter(is_new).for_each(|memtable| self.retire(guard, memtable));
    }

    /// Chooses the next memtable, and finds its records.
    fn begin(
        &self,
        guard: &Guard<'_>,
        demand: &Demand,
        held: &mut Vec<(Arc<Memtable>, u64)>,
    ) -> Result<Option<Victim>, Error> {
        // A copy would get a number above that of a newer record in another layer.
        if self.merging != Merging::Direct {
            return Ok(None);
        }
        let oldest = self.snapshots.oldest();
        let is_free = |until: u64| oldest.is_none_or(|oldest| oldest >= until);
        if let Some(at) = held.iter().position(|(_, until)| is_free(*until)) {
            let (memtable, _) = held.swap_remove(at);
            self.rewriter.held.store(held.len() as u64, Ordering::Release);
            return self.victim(memtable, true).map(Some);
        }
        self.log.end_full();
        let (memtables, retired) = (self.log.memtables(), self.rewriter.retired.lock().clone());
        let is_held = |number| held.iter().any(|(memtable, _)| memtable.number() == number);
        let is_left = |number| retired.contains(&number) || is_held(number);
        // Of each table the oldest memtable, and the number above which those of its active layer are.
        let (mut oldest_of, mut above) = (HashMap::new(), HashMap::new());
        for memtable in &memtables {
            let oldest = oldest_of.entry(memtable.subtable()).or_insert(memtable.number());
            *oldest = memtable.number().min(*oldest);
        }
        for table in self.tables.all() {
            let view = table.view(guard);
            above.insert(table.subtable.created, view.global().above);
            if !view.is_alone() {
                // Something older is on the levels, or on its way there.
                oldest_of.remove(&table.subtable.created);
            }
        }
        let mut keeps_tombstones = false;
        let candidates: Vec<Candidate> = (memtables.iter().enumerate())
            .filter(|(_, memtable)| !is_left(memtable.number()))
            .filter(|(_, memtable)| {
                above.get(&memtable.subtable()).is_some_and(|above| memtable.number() > *above)
            })
            .filter_map(|(at, memtable)| {
                let is_oldest = oldest_of.get(&memtable.subtable()) == Some(&memtable.number());
                let usage = self.log.heap().usage();
                // Tombstones that are younger than a snapshot stay: each scan has one, for a moment.
                let (has_ended, heap) = (memtable.end().is_some(), self.log.heap());
                let is_behind = |oldest| has_ended && heap.last_of(memtable) <= oldest;
                let stays = is_oldest && !oldest.is_none_or(is_behind);
                keeps_tombstones |= stays && usage.of_all(memtable.zones(), 0).tombstones > 0;
                self.candidate(at, memtable, is_oldest && !stays)
            })
            .collect();
        self.rewriter.keeps_tombstones.store(keeps_tombstones, Ordering::Release);
        let Some(chosen) = choose(&candidates, demand) else { return Ok(None) };
        // The run begins, durably, before anything changes: the memtable may be released without a copy.
        self.log.heap().clock().begin(self.log.heap().space());
        self.victim(memtables[chosen.at].clone(), false).map(Some)
    }

    /// A memtable that has ended, with its records.
    fn victim(&self, memtable: Arc<Memtable>, was_held: bool) -> Result<Victim, Error> {
        let end = memtable.end().expect("it has ended");
        let mut records = Vec::new();
        // SAFETY: it has ended, and nobody but this worker retires it.
        unsafe { self.log.heap().records(&memtable, end, |record| records.push(record.reference)) }?;
        Ok(Victim { memtable, records, next: 0, is_needed: false, was_held })
    }

    /// A memtable that has ended, as a candidate: unless there is no room for copies of its live records.
    fn candidate(&self, at: usize, memtable: &Memtable, is_oldest: bool) -> Option<Candidate> {
        let (end, heap, zones) = (memtable.end()?, self.log.heap(), memtable.zones());
        let zone_size = heap.space().zone_size();
        let capacity = zones.len() as u64 * zone_size;
        // Values that somebody still sees have not expired, and would be copied.
        let held = heap.usage().of_all(zones, self.time_of_all());
        let hides_nothing = if is_oldest { held.tombstones } else { 0 };
        let stays = held.records.saturating_sub(held.dead.max(held.expired) + hides_nothing);
        // Copies share headers and last lines, and may leave a little at the ends of zones.
        let packed = held.bytes_of(stays) + stays.div_ceil(BATCH as u64) * (CHUNK_HEADER + LINE);
        let packed = packed + packed / ENDS;
        if stays > 0 && packed > u64::from(heap.space().free_zones()) * zone_size {
            return None;
        }
        // Records that go are gained in any case.
        let gone = held.bytes.saturating_sub(packed).max(held.bytes_of(held.records.saturating_sub(stays)));
        // A full zone leaves less than a long record. More of it shows that a run ended there, and a copy
        // leaves no such rest.
        let rest = capacity.saturating_sub(u64::from(end) * LINE);
        let long = (zone_size / 4 + 2 * LINE).max(2 * held.bytes_of(1));
        let rest = if rest > long { rest } else { 0 };
        let (number, table, tombstones) = (memtable.number(), memtable.subtable(), held.tombstones);
        Some(Candidate { at, number, capacity, gain: gone + rest, table, is_oldest, tombstones })
    }

    /// Whether nothing of its table is older, in memory or on the levels.
    fn is_oldest(&self, view: &View<I>, memtable: &Memtable) -> bool {
        let all = self.log.memtables();
        let own = all.iter().filter(|other| other.subtable() == memtable.subtable());
        let is_alone = view.is_alone() || twin!(LevelsForgotten);
        is_alone && own.map(|other| other.number()).min() == Some(memtable.number())
    }

    /// Writes those of some records of a memtable anew that count. `false` if a snapshot needs one of them.
    fn rewrite(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        Victim { memtable, records, was_held, .. }: &Victim,
        batch: Range<usize>,
    ) -> Result<bool, Error> {
        let tables = self.tables.all();
        let named = |table: &&Arc<Table<I>>| table.subtable.created == memtable.subtable();
        let Some(table) = tables.iter().find(named) else { return Ok(true) };
        let is_oldest = self.is_oldest(table.view(guard), memtable);
        // SAFETY: the memtable is not released before this worker retires it.
        let record = |reference: &Reference| unsafe { self.log.heap().record(*reference) };
        let records: Vec<RecordFound<'_>> = records[batch].iter().map(record).collect::<Result<_, _>>()?;
        let stripes = self.lock_all(records.iter().map(|record| self.key(record.key).hash));
        writer.item.clear();
        self.snapshots.horizon(|| self.log.visible(), &mut writer.horizon);
        let oldest = writer.horizon.snapshots.first().copied();
        let (mut may_go, mut bytes, mut copies, mut room) = (true, 0, Vec::new(), 0);
        let is_released_anyway = twin!(NeededReleased);
        for record in &records {
            let is_here = |version: &Version| version.reference.with_tag(0) == record.reference;
            let deletes = record.kind == Kind::Tombstone || self.has_expired(record);
            if record.kind == Kind::Range {
                if !is_oldest && !was_held && !twin!(RangeDroppedEarly) {
                    let content = Content { kind: Kind::Range, ..Content::value(record.key, record.value) };
                    self.make_room_for_copy(guard, table, writer, (record.len, &mut room))?;
                    writer.item.chunk(table.number).push_copy(&content, record.version);
                }
                continue;
            }
            let (mut is_newest, mut is_left) = (false, false);
            let list = table.ranges.get(guard);
            self.tidy(guard, table, writer, record.key, |versions| {
                // One that a range tombstone deletes, and that is not swept, is there for a snapshot.
                let is_deleted = |version: &Version| {
                    list.is_some_and(|list| list.deletes(record.key, version.number, u64::MAX))
                };
                is_newest = versions.first().is_some_and(|newest| is_here(newest) && !is_deleted(newest));
                let hides_nothing = is_oldest || twin!(TombstoneDroppedEarly);
                // One that is younger than a snapshot shows that the key has changed since.
                let is_old =
                    oldest.is_none_or(|oldest| record.version <= oldest) || twin!(YoungTombstoneDropped);
                is_left = is_newest && deletes && hides_nothing && versions.len() == 1 && is_old;
                may_go &= is_newest || is_released_anyway || !versions.iter().any(is_here);
                if is_left {
                    versions.clear();
                }
            })?;
            if is_left {
                self.note_dead(&Version::new(
                    record.sequence,
                    record.reference,
                    record.kind == Kind::Tombstone,
                ));
            } else if is_newest {
                let content = match deletes {
                    true => Content::tombstone(record.key),
                    false => Content { expires: record.expires, ..Content::value(record.key, record.value) },
                };
                self.make_room_for_copy(guard, table, writer, (record.len, &mut room))?;
                writer.item.chunk(table.number).push_copy(&content, record.version);
                bytes += record.len;
                copies.push(record);
            }
        }
        if !writer.item.is_empty() {
            self.move_item(guard, table, writer)?;
        }
        self.snapshots.horizon(|| self.log.visible(), &mut writer.horizon);
        for record in &copies {
            let is_here = |version: &Version| version.reference.with_tag(0) == record.reference;
            self.tidy(guard, table, writer, record.key, |versions| {
                let is_released_anyway = is_released_anyway || twin!(CopiedReleased);
                may_go &= is_released_anyway || !versions.iter().any(is_here);
            })?;
        }
        drop(stripes);
        self.rewriter.moved_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.rewriter.moved_records.fetch_add(copies.len() as u64, Ordering::Relaxed);
        Ok(may_go)
    }

    /// Writes the item of copies out if it would be longer than this room with one more record. A new item
    /// may fill the rest of the zone: if nobody else writes there, copies fill zones to their ends.
    fn make_room_for_copy(
        &self,
        guard: &Guard<'_>,
        table: &Arc<Table<I>>,
        writer: &mut Writer,
        (len, room): (u64, &mut u64),
    ) -> Result<(), Error> {
        let len = (len + VERSION_FIELD).next_multiple_of(LINE);
        if !writer.item.is_empty() && writer.item.len() + len > *room {
            self.move_item(guard, table, writer)?;
        }
        if writer.item.is_empty() {
            let (longest, left) = (self.common.space.zone_size() / ITEMS, self.log.left(table.number)?);
            *room = if left >= CHUNK_HEADER + len { longest.min(left) } else { longest };
        }
        Ok(())
    }

    /// Writes the copies that the writer has, and waits until they are visible.
    fn move_item(&self, guard: &Guard<'_>, table: &Arc<Table<I>>, writer: &mut Writer) -> Result<(), Error> {
        let last = self.write(guard, (&[table], Near::default()), writer, (Purpose::Move, None))?;
        writer.item.clear();
        self.log.wait(last)?;
        Ok(())
    }

    /// Purges the versions of a key whose stripe is held; see [`Versions::tidy`].
    fn tidy(
        &self,
        guard: &Guard<'_>,
        table: &Table<I>,
        writer: &mut Writer,
        key: &[u8],
        keep: impl FnOnce(&mut Vec<Version>),
    ) -> Result<(), Error> {
        let Writer { horizon, retired, .. } = writer;
        let at = (guard, Key { bytes: key, hash: 0 }, None);
        let number_of = |reference| self.number_of(guard, reference);
        // Its memtable is of the active layer: a freeze leaves it.
        let versions = &table.view(guard).active.versions;
        Ok(versions.tidy(at, horizon, retired, number_of, keep)?)
    }
}
