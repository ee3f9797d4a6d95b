//! Garbage collection (section III-F): a sealed file is emptied and freed, in three passes.
//!
//! 1. *Mark.* The parents of all its entries are marked void, wherever they are ([`trace`](super::trace)).
//! 2. *Move.* Each record that the index names is copied to the tail of its cluster on the file's node, and
//!    the index is repointed under the stripes of the keys. So no copy is ever superseded unseen.
//! 3. *Retire.* The zone is free, durably, when no reader can reach it any more.
//!
//! After pass 1 no entry of the file has a parent that counts, so all of them may go at once (rule P of
//! [`quipu_parts::heap::nlog`]), tombstones among them. If a pass is cut off, nothing has to be undone.
//!
//! A mark changes the first word of a record. Readers may hold views of a superseded record, so a victim
//! waits, before its first pass, until all readers have left that came before it was chosen. All its records
//! were published then, and their parents superseded.

use super::trace::Levels;
use super::{NlogSpine, Writer};
use crate::background::Bell;
use crate::options::Twin;
use crate::types::error::Error;
use crate::types::stats::StallCounts;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::heap::SizedReference;
use quipu_parts::heap::nlog::{Entry, FileInfo, Item, Spot};
use quipu_parts::heap::segments::{Candidate, LogHeap, Use};
use quipu_parts::index::{Index, Key};
use quipu_parts::reclaim::{Terms, choose};
use quipu_parts::record::{Content, Kind, RecordView};
use quipu_parts::space::ZoneId;
use quipu_parts::sync::SpinLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Zones that wait for readers.
type Waiting = Arc<SpinLock<Vec<ZoneId>>>;

/// Records that move under one fence.
const BATCH: usize = 32;

/// Share of the candidates, as a divisor, that is chosen at a time.
const CHOSEN_DIVISOR: usize = 64;

/// Share of the zones, as a divisor, that the cleaner leaves free before it rests.
const LOW_WATER_DIVISOR: u32 = 256;

/// The state of garbage collection, one for a store.
pub(super) struct Cleaning {
    cleaner: SpinLock<Cleaner>,
    /// Victims whose readers of before have left.
    ready: Waiting,
    /// Retired files that no reader can reach any more.
    ripe: Waiting,
    /// Victims that wait for readers.
    chosen: AtomicU32,
    /// Retired files that are not free yet.
    retired: AtomicU32,
    /// With fewer zones left than this, cleaning is due.
    pub(super) low_water: u32,
    /// Files whose dead records take this share, in per cent, are cleaned whatever room is left.
    pub(super) threshold: u32,
    pub(super) bell: Arc<Bell>,
    /// A writer has called the cleaner in this run: before that, it would change a pool that is only read.
    is_called: AtomicBool,
    busy: AtomicU32,
    pub(super) freed: AtomicU64,
    pub(super) moved: AtomicU64,
    pub(super) moved_records: AtomicU64,
    pub(super) stalls: StallCounts,
}

/// The state of a cleaner, borrowed for each file.
struct Cleaner {
    participant: Participant,
    writer: Writer,
    /// The bytes of the victim: others mark entries of it meanwhile.
    file: Vec<u8>,
}

/// The terms of a choice.
#[derive(Clone, Copy)]
pub(super) struct Demand {
    /// A file was opened before this number was drawn.
    pub(super) born_before: u64,
    /// A file gives at least so many bytes back.
    pub(super) least: u64,
    /// Or it has so many behind its records.
    pub(super) place: u64,
    /// Or its dead records take the share of the threshold: only such files count then.
    pub(super) by_threshold: bool,
}

/// The outcome of a step.
#[derive(PartialEq, Eq)]
pub(super) enum Step {
    /// A file was cleaned.
    Taken,
    /// Victims wait for readers.
    Waits,
    /// There is nothing that meets the demand.
    NothingToDo,
}

/// The record that takes the place of a live one.
#[derive(Clone, Copy)]
enum Next {
    Copy,
    Deletion,
}

/// A live record of the victim, with its key.
struct Live<'b> {
    entry: Entry,
    record: RecordView<'b>,
    key: Key<'b>,
    stripe: usize,
}

impl Cleaning {
    pub(super) fn new(heap: &LogHeap, epochs: &Collector, writer: Writer, threshold: u32) -> Cleaning {
        let cleaner = Cleaner { participant: epochs.register(), writer, file: Vec::new() };
        Cleaning {
            cleaner: SpinLock::new(cleaner),
            ready: Waiting::default(),
            ripe: Waiting::default(),
            chosen: AtomicU32::new(0),
            retired: AtomicU32::new(0),
            low_water: (heap.space().zone_count() / LOW_WATER_DIVISOR).max(2),
            threshold,
            bell: Arc::default(),
            is_called: AtomicBool::new(false),
            busy: AtomicU32::new(0),
            freed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            moved_records: AtomicU64::new(0),
            stalls: StallCounts::default(),
        }
    }

    /// Calls the cleaner, and tells whether it has a thread.
    pub(super) fn call(&self) -> bool {
        self.is_called.store(true, Ordering::Relaxed);
        self.bell.ring()
    }

    /// Whether a writer has called it.
    pub(super) fn is_called(&self) -> bool {
        self.is_called.load(Ordering::Relaxed)
    }

    /// Whether a file is being cleaned at this moment.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Files that wait for readers, before they are cleaned or after.
    pub(super) fn waiting(&self) -> u32 {
        self.retired.load(Ordering::Acquire) + self.chosen.load(Ordering::Acquire)
    }
}

impl<I: Index> NlogSpine<I> {
    /// Cleans a file that meets the demand.
    pub(super) fn clean_step(&self, demand: &Demand) -> Result<Step, Error> {
        let mut cleaner = self.cleaning.cleaner.lock();
        let Cleaner { participant, writer, file } = &mut *cleaner;
        self.free_ripe(participant);
        let Some(zone) = self.next_victim(participant, demand) else {
            let waits = self.cleaning.waiting() > 0;
            return Ok(if waits { Step::Waits } else { Step::NothingToDo });
        };
        self.cleaning.busy.fetch_add(1, Ordering::Relaxed);
        let cleaned = self.clean(&participant.pin(), writer, file, zone);
        self.cleaning.busy.fetch_sub(1, Ordering::Relaxed);
        match cleaned {
            Ok(()) => Ok(Step::Taken),
            // A file whose records cannot all be read stays taken, for ever.
            Err(damaged @ Error::Damaged(_)) => Err(damaged),
            Err(error) => {
                self.heap.leave_victim(zone);
                Err(error)
            }
        }
    }

    /// A victim that is ready; if there is none, chooses some.
    fn next_victim(&self, participant: &Participant, demand: &Demand) -> Option<ZoneId> {
        let ready = || {
            let zone = self.cleaning.ready.lock().pop();
            self.cleaning.chosen.fetch_sub(u32::from(zone.is_some()), Ordering::AcqRel);
            zone
        };
        ready().or_else(|| {
            if self.cleaning.chosen.load(Ordering::Acquire) == 0 {
                self.choose(participant, demand);
            }
            participant.collect();
            ready()
        })
    }

    /// Takes victims, which are ready when all readers of this moment have left.
    fn choose(&self, participant: &Participant, demand: &Demand) {
        let (candidates, _) = self.heap.candidates();
        let capacity = self.heap.longest_record();
        let is_dead_enough = |candidate: &Candidate| {
            let dead = candidate.garbage + candidate.expired + candidate.unused;
            dead * 100 >= capacity * u64::from(self.cleaning.threshold)
        };
        let mut candidates: Vec<_> =
            candidates.into_iter().filter(|file| file.life < demand.born_before).collect();
        candidates.retain(|file| !demand.by_threshold || is_dead_enough(file));
        let Demand { least, place, .. } = *demand;
        let terms = Terms { capacity, least, room: 0, oldest_other: u64::MAX, tombstones: u64::MAX, place };
        let most = (candidates.len() / CHOSEN_DIVISOR).max(1);
        let chosen = choose(&candidates, &terms, most).into_iter().map(|file| file.zone);
        let taken: Vec<ZoneId> = chosen.filter(|zone| self.heap.take_victim(*zone)).rev().collect();
        if taken.is_empty() {
            return;
        }
        self.cleaning.chosen.fetch_add(taken.len() as u32, Ordering::AcqRel);
        let ready = self.cleaning.ready.clone();
        participant.pin().defer_to_anyone(Box::new(move || ready.lock().extend(taken)));
    }

    /// Empties a file and retires it.
    fn clean(
        &self,
        pinned: &Guard<'_>,
        writer: &mut Writer,
        file: &mut Vec<u8>,
        zone: ZoneId,
    ) -> Result<(), Error> {
        // The run begins, durably, before anything changes.
        self.heap.draw();
        // SAFETY: the file is sealed, and only this cleaner frees it: nobody changes its header.
        let info = unsafe { self.nlog().file_info(zone) }.map_err(|_| self.unreadable(zone, 0))?;
        self.nlog().copy_of(&info, file);
        let node = self.heap.space().is_spread().then(|| self.heap.space().zone_node(zone));
        writer.node = self.nlog().number_of(node);
        if self.twin != Some(Twin::ParentsLeft) {
            self.mark_parents(&info, file)?;
        }
        self.move_live(pinned, writer, &info, file)?;
        let ripe = self.cleaning.ripe.clone();
        self.cleaning.retired.fetch_add(1, Ordering::AcqRel);
        pinned.defer_to_anyone(Box::new(move || ripe.lock().push(zone)));
        Ok(())
    }

    /// Pass 1: marks the parents of all entries, durably, each after its own parents.
    fn mark_parents(&self, info: &FileInfo, file: &[u8]) -> Result<(), Error> {
        let mut levels = Levels::new(self.nlog(), info.segment.zone, self.twin);
        self.each_entry(info, file, |entry, record| {
            levels.trace(entry, record.key);
            Ok(())
        })?;
        levels.carry_out();
        Ok(())
    }

    /// Pass 2: copies the live values, and repoints the index. Those that have expired are deleted.
    fn move_live(
        &self,
        pinned: &Guard<'_>,
        writer: &mut Writer,
        info: &FileInfo,
        file: &[u8],
    ) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(BATCH);
        self.each_entry(info, file, |entry, record| {
            let key = self.key(record.key);
            if record.kind() != Kind::Value
                || !self.index.names(pinned, key, self.word_of(&entry, &record)).map_err(Error::from)?
            {
                return Ok(());
            }
            batch.push(Live { entry, record, key, stripe: self.stripes.of(key.hash) });
            if batch.len() < BATCH {
                return Ok(());
            }
            self.move_batch(pinned, writer, &mut batch)
        })?;
        self.move_batch(pinned, writer, &mut batch)
    }

    /// Moves records under one fence, with their stripes held.
    fn move_batch(
        &self,
        pinned: &Guard<'_>,
        writer: &mut Writer,
        batch: &mut Vec<Live<'_>>,
    ) -> Result<(), Error> {
        let mut stripes: Vec<usize> = batch.iter().map(|live| live.stripe).collect();
        stripes.sort_unstable();
        stripes.dedup();
        let held: Vec<_> = stripes.iter().map(|stripe| self.lock(*stripe)).collect();
        let mut moves = Vec::with_capacity(batch.len());
        let mut moved = Ok(());
        for live in batch.drain(..) {
            let stripe = &held[stripes.binary_search(&live.stripe).expect("each was locked")];
            match self.write_next(pinned, writer, stripe, &live) {
                Ok(Some((spot, content))) => moves.push((live, spot, content)),
                Ok(None) => {}
                Err(error) => {
                    moved = Err(error);
                    break;
                }
            }
        }
        if moves.is_empty() {
            return moved;
        }
        self.region().fence();
        // Those that were written before an error count too: a valid record that nobody names would win
        // later.
        for (live, spot, next) in moves {
            self.publish_next(pinned, writer, &live, spot, next)?;
        }
        moved
    }

    /// Writes the record that takes the place of one whose key is locked, if the index names that still: a
    /// copy, or a deletion if it has expired. Durable with the next fence.
    ///
    /// Without a deletion, a later record of the key would not name the expired one, and might go before it.
    fn write_next(
        &self,
        pinned: &Guard<'_>,
        writer: &mut Writer,
        stripe: &StripeGuard<'_>,
        live: &Live<'_>,
    ) -> Result<Option<(Spot<'_>, Next)>, Error> {
        let Live { entry, record, key, .. } = live;
        let is_expired = self.has_expired(record);
        // The index has whole keys of eight bytes, and would not ask which word is meant.
        let is_asked = !(is_expired && self.twin == Some(Twin::ExpiredUnasked));
        if is_asked && !self.index.names(pinned, *key, self.word_of(entry, record))? {
            return Ok(None);
        }
        let before = self.nlog().parent_word(entry.reference);
        let content = if is_expired {
            Content::tombstone(key.bytes).after(before)
        } else {
            let content = Content { expires: record.expires, ..Content::value(key.bytes, record.value) };
            let is_unchained = self.twin == Some(Twin::CopyUnchained);
            if is_unchained { content.after(0) } else { content.copy_of(before) }
        };
        let home = self.nlog().home(writer.node, live.stripe);
        let spot = self.nlog().reserve(home, content.record_len(), Use::Move)?;
        let sequence = if is_expired {
            let sequence = spot.draw_above(&mut writer.numbers, stripe.newest());
            stripe.note_newest(sequence);
            sequence
        } else {
            entry.sequence
        };
        spot.write(&mut writer.encoder, &content, sequence);
        if content.expires != 0 {
            self.heap.note_expiring(spot.reference(), spot.taken(), content.expires);
        }
        Ok(Some((spot, if is_expired { Next::Deletion } else { Next::Copy })))
    }

    /// Lets the index name a copy that is durable, or no record.
    fn publish_next(
        &self,
        pinned: &Guard<'_>,
        writer: &Writer,
        live: &Live<'_>,
        spot: Spot<'_>,
        next: Next,
    ) -> Result<(), Error> {
        let Live { entry, record, key, .. } = live;
        let (reference, taken) = (spot.reference(), spot.taken());
        let old = self.word_of(entry, record);
        let mourner = self.admission.mourner();
        match next {
            Next::Copy => {
                let new = SizedReference::new(reference, record.header.record_len()).word();
                let replaced = self.index.replace(pinned, *key, old, new)?;
                debug_assert!(replaced, "the key is locked");
                self.cleaning.moved.fetch_add(taken, Ordering::Relaxed);
                self.cleaning.moved_records.fetch_add(1, Ordering::Relaxed);
            }
            Next::Deletion => {
                self.forget(pinned, key.hash);
                self.index.take(pinned, *key, None, |found| found == old)?;
                self.heap.note_garbage(writer.shard, reference, taken);
            }
        }
        spot.published();
        mourner.dismiss();
        self.heap.note_garbage(writer.shard, entry.reference, self.place_len(pinned, old));
        Ok(())
    }

    fn word_of(&self, entry: &Entry, record: &RecordView<'_>) -> u64 {
        SizedReference::new(entry.reference, record.header.record_len()).word()
    }

    /// Shows every entry of a file that still counts.
    fn each_entry<'b>(
        &self,
        info: &FileInfo,
        file: &'b [u8],
        mut each: impl FnMut(Entry, RecordView<'b>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let zone = info.segment.zone;
        let mut scan = self.nlog().scan(info, file, self.drawn());
        loop {
            match scan.advance() {
                Ok(Some(Item::Record(entry, record))) => each(entry, record)?,
                Ok(Some(Item::Void { .. })) => {}
                Ok(None) => return Ok(()),
                Ok(Some(Item::Hole { offset, .. })) => return Err(self.unreadable(zone, offset)),
                Err(_) => return Err(self.unreadable(zone, 0)),
            }
        }
    }

    fn unreadable(&self, zone: ZoneId, offset: u64) -> Error {
        let (start, len) = (self.heap.space().zone_offset(zone), self.heap.space().zone_size());
        Error::damaged("records, found by compaction", start + offset, len - offset)
    }

    /// Frees the retired files that no reader can reach any more, in the order in which they were retired.
    fn free_ripe(&self, participant: &Participant) {
        participant.collect();
        let ripe = std::mem::take(&mut *self.cleaning.ripe.lock());
        for zone in ripe {
            self.heap.free(zone);
            self.cleaning.freed.fetch_add(1, Ordering::Relaxed);
            self.cleaning.retired.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Ends all files that places are given away in, so that they can be cleaned; tells whether there was
    /// one. Not while a file is being cleaned: the last zone may be one that its copies go to.
    pub(super) fn close_files(&self) -> bool {
        let _nobody_cleans = self.cleaning.cleaner.lock();
        self.nlog().close_all()
    }

    /// Frees all files that can be freed, and gives back victims that nobody has begun to clean.
    pub(super) fn give_back(&self) {
        let cleaner = self.cleaning.cleaner.lock();
        self.free_ripe(&cleaner.participant);
        let ready = std::mem::take(&mut *self.cleaning.ready.lock());
        for zone in ready {
            self.heap.leave_victim(zone);
            self.cleaning.chosen.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
