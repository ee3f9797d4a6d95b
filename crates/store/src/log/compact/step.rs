//! One step: the next few records of a victim.

use super::relocate::Relocated;
use super::{Agenda, Demand, Retired, Worker};
use crate::engine::AT_ONCE;
use crate::log::{Spine, Writer};
use crate::types::error::Error;
use crate::walk::room;
use quipu_medium::MediumError;
use quipu_parts::heap::segments::{Candidate, Found, Position, Use};
use quipu_parts::index::Index;
use quipu_parts::reclaim::{Terms, choose};
use quipu_parts::record::{Kind, RecordView};
use quipu_parts::space::ZoneId;
use quipu_parts::sync::Waiter;
use quipu_parts::twin;
use std::sync::atomic::Ordering;

/// Share of the candidates, as a divisor, that is chosen at a time: few enough that they are still good
/// victims when their turn comes.
const CHOSEN_DIVISOR: usize = 64;

impl<I: Index> Spine<I> {
    /// Moves the next few records of a victim that meets the demand. `false` if there is none.
    pub(super) fn compact_step(&self, demand: &Demand) -> Result<bool, Error> {
        let mut waiter = Waiter::default();
        loop {
            let mut worker = self.compactor.worker();
            self.compactor.busy.fetch_add(1, Ordering::Relaxed);
            let outcome = self.step(&mut worker, demand);
            self.compactor.busy.fetch_sub(1, Ordering::Relaxed);
            if let Err(Error::PoolFull { .. } | Error::Medium(MediumError::DiskFull { .. })) = outcome {
                self.compactor.failures.fetch_add(1, Ordering::Relaxed);
            }
            match outcome? {
                Step::Taken => return Ok(true),
                Step::NothingToDo => return Ok(false),
                Step::OthersFirst => drop(worker),
            }
            waiter.wait();
        }
    }

    pub(super) fn step(&self, worker: &mut Worker, demand: &Demand) -> Result<Step, Error> {
        room::begins_step(self.region());
        let Worker { participant, writer, victim, expired } = worker;
        self.free_ripe(participant);
        let guard = participant.pin();
        let (zone, position) = match *victim {
            Some(victim) => victim,
            // A victim is chosen only when the dead records of all segments are known.
            None if self.survey(&guard, writer, demand.piece)? => return Ok(Step::Taken),
            None => {
                let room = writer.segment.as_ref().map_or(0, |open| self.heap.room_in(open));
                let zone = match self.begin(room, demand) {
                    Ok(zone) => zone,
                    Err(step) => return Ok(step),
                };
                // Expired values of a victim that could not be read to its end keep their zones.
                expired.clear();
                self.move_near(writer, zone);
                (zone, Position::START)
            }
        };
        *victim = Some((zone, position));
        let piece = demand.piece;
        let (mut values, mut others) = (Vec::with_capacity(piece), Vec::new());
        // SAFETY: the segment is sealed, so nobody appends; nobody frees it before this worker retires it, at
        // its end.
        let scan = unsafe { self.heap.scan(zone) };
        let Ok(mut scan) = scan
            .map(|scan| scan.from(position))
            .map(|scan| if self.sizes_in_words { scan.live_only() } else { scan })
        else {
            return Err(self.unreadable(victim, zone, 0));
        };
        while values.len() + others.len() < piece {
            match scan.advance() {
                Ok(Some(Found::Record { reference, record })) => {
                    let list = if self.is_plain(&record) { &mut values } else { &mut others };
                    list.push((reference, record));
                }
                Ok(Some(Found::Frame { .. })) => {}
                Ok(None) => break,
                Ok(Some(Found::Gap { offset, .. })) => return Err(self.unreadable(victim, zone, offset)),
                Err(_) => return Err(self.unreadable(victim, zone, scan.offset())),
            }
        }
        let mut done = Relocated::default();
        // Tombstones and expired records come last: whether a tombstone may go is known when all older
        // records before it have moved.
        let moved = self.relocate(&guard, writer, &values, &mut done).and_then(|()| {
            let mut batches = others.chunks(AT_ONCE);
            batches.try_for_each(|some| self.move_carefully(&guard, writer, zone, some, expired, &mut done))
        });
        self.compactor.note(done);
        moved?;
        if values.len() + others.len() == piece {
            *victim = Some((zone, scan.position()));
            return Ok(Step::Taken);
        }
        self.end_victim(victim, zone);
        // The twin forgets only some zones: if none were freed, the tombstones would stay as well.
        if twin!(FreedInDramOnly) && zone.0 % 2 == 0 {
            self.heap.forget(zone);
        } else {
            let values = std::mem::take(expired);
            self.compactor.retire(&guard, Retired { segment: Some(zone), values });
        }
        Ok(Step::Taken)
    }

    /// Lets a worker write its copies to the node of its victim.
    fn move_near(&self, writer: &mut Writer, victim: ZoneId) {
        let space = self.heap.space();
        let node = space.is_spread().then(|| space.zone_node(victim));
        if node != writer.node {
            writer.segment.take().into_iter().for_each(|segment| self.heap.leave(segment));
            writer.node = node;
        }
    }

    /// Chooses and begins a victim for a worker that has none and so much room; or returns why there is none.
    fn begin(&self, room: u64, demand: &Demand) -> Result<ZoneId, Step> {
        let mut agenda = self.compactor.agenda.lock();
        let (zones, others) = (self.heap.zones_left(Use::Move) as usize, agenda.begun.len());
        // Each victim that was begun may still need a zone.
        if others > 0 && zones <= others {
            return Err(Step::OthersFirst);
        }
        let nothing = if others > 0 { Step::OthersFirst } else { Step::NothingToDo };
        let fits = |zone| zones > 0 || self.heap.live_bytes(zone) <= room;
        let victim = self.next_victim(&mut agenda, room, demand, fits).ok_or(nothing)?;
        // The run begins, durably, before anything changes. The zone may be freed without a move of any
        // record.
        self.heap.draw();
        if !self.heap.claim(&victim) {
            return Err(Step::Taken);
        }
        agenda.begun.push((victim.zone, victim.life));
        Ok(victim.zone)
    }

    /// Whether a record is a value that has not expired.
    fn is_plain(&self, record: &RecordView<'_>) -> bool {
        matches!(record.kind(), Kind::Value | Kind::Large) && !self.has_expired(record)
    }

    /// Ends a victim, which is then no candidate any more.
    fn end_victim(&self, victim: &mut Option<(ZoneId, Position)>, zone: ZoneId) {
        *victim = None;
        self.heap.withdraw(zone);
        self.compactor.agenda.lock().begun.retain(|(begun, _)| *begun != zone);
    }

    /// The next segment to clean. The search looks at all segments, so it chooses many at a time, by the
    /// demand of its worker. Later workers check only their age again: meanwhile segments only become
    /// emptier, except those that are written to, which cannot be claimed.
    fn next_victim(
        &self,
        agenda: &mut Agenda,
        room: u64,
        demand: &Demand,
        fits: impl Fn(ZoneId) -> bool,
    ) -> Option<Candidate> {
        let Demand { born_before, least, tombstone_share, place, .. } = *demand;
        let Agenda { chosen, begun } = agenda;
        let may_be = |candidate: &Candidate| candidate.life < born_before && fits(candidate.zone);
        if let Some(position) = chosen.iter().position(may_be) {
            return chosen.remove(position);
        }
        let (mut candidates, oldest_other) = self.heap.candidates();
        let is_begun = |candidate: &Candidate| begun.iter().any(|(zone, _)| *zone == candidate.zone);
        candidates.retain(|candidate| may_be(candidate) && !is_begun(candidate));
        if demand.gives_storage {
            candidates.iter_mut().for_each(|candidate| candidate.unused = 0);
        }
        let oldest_other = begun.iter().map(|(_, life)| *life).fold(oldest_other, u64::min);
        let written = candidates.iter().map(|candidate| candidate.written).sum::<u64>();
        let (capacity, tombstones) = (self.heap.longest_record(), written / tombstone_share);
        let terms = Terms { capacity, least, room, oldest_other, tombstones, place };
        let most = (candidates.len() / CHOSEN_DIVISOR).max(1);
        let mut fresh = choose(&candidates, &terms, most).into_iter();
        let first = fresh.next()?;
        chosen.clear();
        chosen.extend(fresh);
        Some(first)
    }

    /// A segment whose records cannot all be read stays as it is, if need be for ever.
    fn unreadable(&self, victim: &mut Option<(ZoneId, Position)>, zone: ZoneId, offset: u64) -> Error {
        self.end_victim(victim, zone);
        let start = self.heap.space().zone_offset(zone);
        Error::damaged("records, found by compaction", start + offset, self.heap.space().zone_size() - offset)
    }
}

/// The outcome of a step.
pub(super) enum Step {
    /// Some records have moved, or a victim could not be claimed.
    Taken,
    /// There is nothing that meets the demand.
    NothingToDo,
    /// There may be something to do once other workers have ended their victims.
    OthersFirst,
}
