//! Compaction: the live records of a sealed segment move to an open one, and its zone becomes free.
//!
//! A step takes the next few records of the victim, locks the stripes of their keys, copies those that are live, fences
//! once, and lets the index name the copies. Because the keys are locked, no copy can lose against a writer, so none has to
//! be made void afterwards; and because locking publishes what was parked, a record that the index does not name is dead.
//! Copies keep their sequence numbers: after a crash the copy and the original say the same.
//!
//! A tombstone moves as well, unless a later record of its key is in the index, or every segment that was opened before it
//! was written is durably gone: then no older record of its key can be anywhere. (A copy of an older record that was made
//! before the tombstone drew its number lies in a segment that was opened before; none is made after, since by then the
//! older record is dead. So the segments' lives tell all that has to be known.)
//!
//! A record whose time has passed is as good as a tombstone, and moves as one. The records of a frame move one by one.
//!
//! A segment that a client has open cannot be cleaned, and holds back the tombstones that are younger. A client that rests
//! would do so for ever, so all segments are taken away from their clients when nothing else helps: they look for that under
//! the lock of each key.
//!
//! The zone is given back when every reader has left that could still reach its records.
//!
//! Writers pay for the space that they use up: while few zones are left, each write is preceded by a step, and one that finds
//! no room at all takes as many as it needs, but cleans no segment twice.

use super::batch::BATCH;
use super::{Spine, Writer};
use crate::error::{Damage, DamagedPlace, Error};
use crate::options::Twin;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::{Candidate, Found, LastLine, LogHeap, OpenSegment, Position, Use};
use quipu_parts::heap::values::ValueZones;
use quipu_parts::reclaim::{Terms, choose};
use quipu_parts::record::{Content, Kind, RecordView};
use quipu_parts::space::ZoneId;
use quipu_parts::sync::{SpinLock, Waiter};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is gone and no reader can reach any more.
type Ripe = Arc<SpinLock<Vec<Retired>>>;

/// A cleaned segment, and large values that nothing names when it is free.
struct Retired {
    segment: Option<ZoneId>,
    values: Vec<ValueZones>,
}

/// What compaction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Segments whose zones were given back.
    pub(crate) segments: u64,
    /// Bytes of records that moved.
    pub(crate) moved: u64,
}

/// The state of compaction, one for a store.
pub(crate) struct Compactor {
    work: SpinLock<Work>,
    ripe: Ripe,
    /// Segments and large values that are gone and not free yet, for fear of readers.
    retired: AtomicU32,
    /// Puts that find fewer zones left than this take a step first.
    low_water: u32,
    /// Whether a step is being taken; the crash explorer sorts its states by it.
    busy: AtomicU32,
}

struct Work {
    participant: Participant,
    writer: Writer,
    victim: Option<(ZoneId, Position)>,
    /// Segments that are to be cleaned after the victim.
    chosen: VecDeque<Candidate>,
    /// Large values of the victim that have expired. As long as the victim is there, recovery may find a head of theirs and
    /// nothing that supersedes it.
    expired: Vec<ValueZones>,
    done: Compacted,
}

/// What a writer demands that cleaning a segment gives back, as a share of it: records are copied this often at most for
/// each time that they are written.
const LEAST_DIVISOR: u64 = 64;

/// Turns that are waited for readers before the pool is taken for full.
const PATIENCE: u32 = 4096;

/// Waiting that ends.
struct Patience {
    left: u32,
    waiter: Waiter,
}

impl Patience {
    fn new() -> Patience {
        Patience { left: PATIENCE, waiter: Waiter::default() }
    }

    /// Waits a turn; `false` if there is none left.
    fn lasts(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            self.waiter.wait();
            return true;
        }
        false
    }
}

/// Share of the zones, as a divisor, that is to be left before compaction rests: as few as keep writers from waiting, since
/// what is left free could hold garbage instead, and the more of it there is, the less has to be copied.
const LOW_WATER_DIVISOR: u32 = 256;

/// Share of the candidates, as a divisor, that is chosen at a time: few enough that they are still the right ones when their
/// turn comes.
const CHOSEN_DIVISOR: usize = 64;

impl Compactor {
    pub(crate) fn new(heap: &LogHeap, epochs: &Collector) -> Compactor {
        let work = Work {
            participant: epochs.register(),
            writer: Writer::new(heap, None),
            victim: None,
            chosen: VecDeque::new(),
            expired: Vec::new(),
            done: Compacted::default(),
        };
        let low_water = (heap.space().zone_count() / LOW_WATER_DIVISOR).max(2);
        let (ripe, retired, busy) = (Ripe::default(), AtomicU32::new(0), AtomicU32::new(0));
        Compactor { work: SpinLock::new(work), ripe, retired, low_water, busy }
    }

    /// Takes a large value that the index names no more; its zones are free when no reader is left. Whoever makes room next
    /// finds them: the caller may not come back for long.
    pub(super) fn retire_value(&self, guard: &Guard<'_>, value: ValueZones) {
        let ripe = self.ripe.clone();
        self.retired.fetch_add(1, Ordering::AcqRel);
        let retired = Retired { segment: None, values: vec![value] };
        guard.defer_to_anyone(Box::new(move || ripe.lock().push(retired)));
    }

    /// Takes a segment that was cleaned, and its values that had expired.
    fn retire_segment(&self, guard: &Guard<'_>, segment: ZoneId, values: Vec<ValueZones>) {
        let ripe = self.ripe.clone();
        self.retired.fetch_add(1, Ordering::AcqRel);
        let retired = Retired { segment: Some(segment), values };
        guard.defer(Box::new(move || ripe.lock().push(retired)));
    }

    /// What was done since the store was opened.
    pub(crate) fn done(&self) -> Compacted {
        self.work.lock().done
    }

    /// Segments that hold nothing any more and are not free yet.
    fn retired(&self) -> u32 {
        self.retired.load(Ordering::Acquire)
    }

    /// Whether a step is being taken at this moment.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }
}

impl Spine {
    /// Makes some room ahead of a write, if little is left. The caller holds no lock.
    #[inline]
    pub(super) fn relieve(&self) -> Result<(), Error> {
        if self.heap.zones_left(Use::Put) < self.compactor.low_water {
            self.step_of_writer(u64::MAX, self.worthwhile())?;
        }
        Ok(())
    }

    /// Makes room ahead of a write that will hold locks when it finds out that it has none.
    #[inline]
    pub(super) fn relieve_for(&self, writer: &mut Writer, len: u64) -> Result<(), Error> {
        self.relieve()?;
        if self.heap.zones_left(Use::Put) == 0 {
            let has_room = |open: &OpenSegment| self.heap.has_room(open, len, Use::Put);
            if !writer.segment.as_ref().is_some_and(has_room) {
                self.make_space(writer, (len, 0), Use::Put)?;
            }
        }
        Ok(())
    }

    /// Compacts until there is a place for so many bytes and so many zones beside it; `false` if that is hopeless. The
    /// caller holds no lock.
    #[cold]
    pub(super) fn make_space(
        &self,
        writer: &mut Writer,
        (len, zones): (u64, u32),
        purpose: Use,
    ) -> Result<bool, Error> {
        // Large values that were superseded take no copying to come back.
        self.settle_all(&self.epochs.register().pin());
        self.free_all_ripe(&mut self.compactor.work.lock());
        // All that could be cleaned may be in this writer's own segment.
        if let Some(segment) = writer.segment.take() {
            self.heap.leave(segment);
        }
        let least = if purpose == Use::Put { self.worthwhile() } else { 1 };
        let born_before = self.heap.draw();
        let mut patience = Patience::new();
        let mut revoked = false;
        while !self.heap.offers(len, purpose, zones) {
            if self.step_of_writer(born_before, least)? {
                continue;
            }
            let mut work = self.compactor.work.lock();
            if let Some(segment) = work.writer.segment.take() {
                self.heap.leave(segment);
                continue;
            }
            if !revoked && self.heap.held_back() >= self.heap.longest_record() {
                self.revoke(&work);
                revoked = true;
                continue;
            }
            // Readers that were here when the last segments were cleaned will soon have left, unless someone keeps a guard
            // for long; and who deletes at this moment has the segment that is kept for that.
            drop(work);
            let someone_leaves = self.compactor.retired() > 0 || self.heap.lends();
            if !(someone_leaves && patience.lasts()) {
                return Ok(self.heap.offers(len, purpose, zones));
            }
        }
        Ok(true)
    }

    /// Takes their segments away from all clients, which may rest.
    fn revoke(&self, work: &Work) {
        let guard = work.participant.pin();
        self.heap.revoke(|| {
            for stripe in 0..self.stripes.count() {
                drop(self.stripes.lock(stripe, |parked| self.publish_parked(&guard, parked)));
            }
        });
    }

    fn step_of_writer(&self, born_before: u64, least: u64) -> Result<bool, Error> {
        match self.compact_step(born_before, least) {
            // A victim that cannot be read, or moved now, is no reason to refuse a write that has room.
            Err(Error::Damaged(_)) => Ok(true),
            Err(Error::PoolFull { .. } | Error::Medium(_)) => Ok(false),
            stepped => stepped,
        }
    }

    /// Bytes that cleaning a segment must give back for a writer to do it.
    fn worthwhile(&self) -> u64 {
        self.heap.longest_record() / LEAST_DIVISOR
    }

    /// Cleans every segment that was opened before this call and has something to give back.
    pub(crate) fn compact(&self) -> Result<Compacted, Error> {
        let before = {
            let mut work = self.compactor.work.lock();
            if let Some(segment) = work.writer.segment.take() {
                self.heap.leave(segment);
            }
            self.revoke(&work);
            work.done
        };
        let born_before = self.heap.draw();
        let mut patience = Patience::new();
        loop {
            match self.compact_step(born_before, 1) {
                Ok(true) => {}
                Ok(false) => break,
                // The zones are there, and free when the readers have left that were here when they were cleaned.
                Err(Error::PoolFull { .. }) if self.compactor.retired() > 0 && patience.lasts() => {}
                Err(error) => return Err(error),
            }
        }
        self.give_back();
        let done = self.compactor.done();
        Ok(Compacted { segments: done.segments - before.segments, moved: done.moved - before.moved })
    }

    /// Gives all zones back that no reader can reach any more, and the compactor's own segment to others.
    pub(crate) fn give_back(&self) {
        let mut work = self.compactor.work.lock();
        if let Some(segment) = work.writer.segment.take() {
            self.heap.leave(segment);
        }
        self.free_all_ripe(&mut work);
    }

    fn free_all_ripe(&self, work: &mut Work) {
        // An epoch passes with each, if nobody is pinned; two have to.
        for _ in 0..3 {
            self.free_ripe(work);
        }
    }

    fn free_ripe(&self, work: &mut Work) {
        work.participant.collect();
        let ripe = std::mem::take(&mut *self.compactor.ripe.lock());
        for Retired { segment, values } in ripe {
            if let Some(zone) = segment {
                self.heap.free(zone);
                work.done.segments += 1;
            }
            values.iter().for_each(|value| self.heap.free_value(value));
            self.compactor.retired.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Moves the next few records of a victim that was opened before the number was drawn and gives at least so many bytes
    /// back. `false` if there is none.
    fn compact_step(&self, born_before: u64, least: u64) -> Result<bool, Error> {
        let mut work = self.compactor.work.lock();
        self.compactor.busy.fetch_add(1, Ordering::Relaxed);
        let outcome = self.step(&mut work, born_before, least);
        self.compactor.busy.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    fn step(&self, work: &mut Work, born_before: u64, least: u64) -> Result<bool, Error> {
        self.free_ripe(work);
        let Work { participant, writer, victim, chosen, expired, done } = work;
        let guard = participant.pin();
        let (zone, position) = match *victim {
            Some(victim) => victim,
            None => {
                let room = writer.segment.as_ref().map_or(0, |open| self.heap.room_in(open));
                let Some(zone) = self.next_victim(chosen, room, born_before, least) else { return Ok(false) };
                // The run begins, durably, before anything changes: also if nothing has to move before the zone is freed.
                self.heap.draw();
                if !self.heap.claim(zone) {
                    return Ok(true);
                }
                // What was parked before the segment was sealed is published now, so that it counts as live.
                self.settle_all(&guard);
                // Those of a victim that could not be read to its end stay where they are.
                expired.clear();
                (zone, Position::START)
            }
        };
        *victim = Some((zone, position));
        let mut batch: Vec<(Reference, RecordView<'_>)> = Vec::with_capacity(BATCH);
        // SAFETY: the segment is sealed, so nobody appends; only this compactor frees it, and it holds the work's lock.
        let scan = unsafe { self.heap.scan(zone) };
        let Ok(mut scan) = scan.map(|scan| scan.from(position)) else {
            return Err(self.unreadable(victim, zone, 0));
        };
        while batch.len() < BATCH {
            match scan.advance() {
                Ok(Some(Found::Record { reference, record })) => batch.push((reference, record)),
                Ok(Some(Found::Frame { .. })) => {}
                Ok(None) => break,
                Ok(Some(Found::Gap { offset, .. })) => return Err(self.unreadable(victim, zone, offset)),
                Err(_) => return Err(self.unreadable(victim, zone, scan.offset())),
            }
        }
        done.moved += self.move_live(&guard, writer, zone, &batch, expired)?;
        if batch.len() == BATCH {
            *victim = Some((zone, scan.position()));
            return Ok(true);
        }
        *victim = None;
        self.heap.withdraw(zone);
        // Some of them: if none were freed, the tombstones would stay where they are as well.
        if self.twin == Some(Twin::FreedInDramOnly) && zone.0 % 2 == 0 {
            self.heap.forget(zone);
        } else {
            self.compactor.retire_segment(&guard, zone, std::mem::take(expired));
        }
        Ok(true)
    }

    /// The next segment to clean of those opened before the number was drawn. Many are chosen at a time, since who chooses
    /// looks at all; meanwhile they can only become emptier, but for those that someone writes to, which cannot be claimed.
    fn next_victim(
        &self,
        chosen: &mut VecDeque<Candidate>,
        room: u64,
        born_before: u64,
        least: u64,
    ) -> Option<ZoneId> {
        if let Some(position) = chosen.iter().position(|candidate| candidate.life < born_before) {
            return chosen.remove(position).map(|candidate| candidate.zone);
        }
        let (mut candidates, oldest_other) = self.heap.candidates();
        candidates.retain(|candidate| candidate.life < born_before);
        let terms = Terms { capacity: self.heap.longest_record(), least, room, oldest_other };
        let most = (candidates.len() / CHOSEN_DIVISOR).max(1);
        let mut fresh = choose(&candidates, &terms, most).into_iter();
        let first = fresh.next()?;
        chosen.extend(fresh);
        Some(first.zone)
    }

    /// A segment whose records cannot all be read stays as it is, for ever if need be.
    fn unreadable(&self, victim: &mut Option<(ZoneId, Position)>, zone: ZoneId, offset: u64) -> Error {
        *victim = None;
        self.heap.withdraw(zone);
        let place = DamagedPlace {
            what: "records, found by compaction".into(),
            offset: self.heap.space().zone_offset(zone) + offset,
            len: self.heap.space().zone_size() - offset,
        };
        Error::Damaged(Box::new(Damage { places: vec![place] }))
    }

    /// Moves what is live of these records, and returns its bytes; of a large value the head moves alone. On an error,
    /// those before the one that failed have moved. Large values that have expired are added to `expired`.
    fn move_live(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        victim: ZoneId,
        batch: &[(Reference, RecordView<'_>)],
        expired: &mut Vec<ValueZones>,
    ) -> Result<u64, Error> {
        let mut hashes = [0; BATCH];
        for (hash, (_, record)) in hashes.iter_mut().zip(batch) {
            *hash = self.hash(record.key);
            self.index.prefetch_to_write(*hash);
        }
        let _locks = self.lock_all(guard, &hashes[..batch.len()]);
        let mut turns = [const { Turn::Stays }; BATCH];
        let mut moved = 0;
        let mut outcome = Ok(());
        for (i, (reference, record)) in batch.iter().enumerate() {
            let content = match self.fate(guard, victim, hashes[i], *reference, record) {
                Fate::Dead => continue,
                Fate::Forgotten => {
                    turns[i] = Turn::Leaves;
                    continue;
                }
                Fate::Moves(content) => content,
            };
            outcome = self.prepare_for(Use::Move, writer, &content);
            if outcome.is_err() {
                break;
            }
            let copy = self.append(writer, record.header.sequence.get(), &content, LastLine::Left);
            moved += content.record_len();
            turns[i] = match (record.kind(), content.kind) {
                (Kind::Tombstone, _) => Turn::Stays,
                (_, Kind::Tombstone) => Turn::Leaves,
                _ => Turn::Names(copy),
            };
        }
        if let Some(open) = &mut writer.segment {
            self.heap.complete(open);
        }
        self.region().fence();
        for (i, (old, record)) in batch.iter().enumerate() {
            let done = match turns[i] {
                Turn::Stays => continue,
                Turn::Leaves => {
                    if record.is_large() {
                        expired.extend(self.zones_of(guard, record));
                    }
                    self.index.remove(guard, hashes[i], old.word())
                }
                Turn::Names(copy) => self.index.replace(guard, hashes[i], old.word(), copy.word()),
            };
            debug_assert!(done, "the key is locked");
            self.heap.note_garbage(writer.shard, *old, record.header.record_len());
        }
        outcome.map(|()| moved)
    }

    /// What becomes of a record of a victim. Its key is locked.
    fn fate<'r>(
        &self,
        guard: &Guard<'_>,
        victim: ZoneId,
        hash: u64,
        reference: Reference,
        record: &RecordView<'r>,
    ) -> Fate<'r> {
        let is_named = || self.index.get(guard, hash, |word| word == reference.word()).is_some();
        let may_go = || {
            self.twin == Some(Twin::TombstoneDroppedEarly)
                || self.heap.outlived(record.header.sequence.get(), victim)
        };
        match record.kind() {
            Kind::Value | Kind::Large if !is_named() => Fate::Dead,
            kind @ (Kind::Value | Kind::Large) if !self.has_expired(record) => {
                let RecordView { key, value, expires, .. } = *record;
                Fate::Moves(Content { kind, key, value, expires })
            }
            Kind::Value | Kind::Large if may_go() => Fate::Forgotten,
            Kind::Tombstone if may_go() || self.locate::<false>(guard, hash, record.key).is_some() => {
                Fate::Dead
            }
            Kind::Value | Kind::Large | Kind::Tombstone => Fate::Moves(Content::tombstone(record.key)),
            Kind::Frame | Kind::Void => Fate::Dead,
        }
    }
}

/// What becomes of a record.
enum Fate<'r> {
    /// Nothing depends on it.
    Dead,
    /// It has expired, and no older record of its key can be anywhere: the index need not know of it.
    Forgotten,
    /// It is copied, one that has expired as a tombstone.
    Moves(Content<'r>),
}

/// What becomes of a record's entry in the index, once the copies are durable.
enum Turn {
    /// Nothing.
    Stays,
    /// It goes.
    Leaves,
    /// It names this copy.
    Names(Reference),
}
