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

use super::cleaners::Work;
use super::trace::Levels;
use super::{NlogSpine, Writer};
use crate::types::error::Error;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::SizedReference;
use quipu_parts::heap::nlog::{Entry, FileInfo, FirstLine, Item, Spot};
use quipu_parts::heap::segments::Use;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind, RecordView};
use quipu_parts::space::ZoneId;
use quipu_parts::twin;
use std::sync::atomic::Ordering;

/// Records that move under one fence.
const BATCH: usize = 32;

/// The terms of a choice.
#[derive(Clone, Copy)]
pub(super) struct Demand {
    /// A file was opened before this number was drawn.
    pub(super) born_before: u64,
    /// A file gives at least so many bytes back.
    pub(super) least: u64,
    /// Or it has so many behind its records.
    pub(super) place: u64,
    /// It gives storage back: room behind its records has none.
    pub(super) gives_storage: bool,
    /// Or its dead records take the share of the threshold: only such files count then.
    pub(super) by_threshold: bool,
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

impl<I: Index> NlogSpine<I> {
    /// Empties a file and retires it.
    pub(super) fn clean(&self, work: &mut Work, zone: ZoneId, purpose: Use) -> Result<(), Error> {
        let Work { participant, writer, file } = work;
        let pinned = &participant.pin();
        // The run begins, durably, before anything changes.
        self.heap.draw();
        // SAFETY: the file is sealed, and only this cleaner frees it: nobody changes its header.
        let info = unsafe { self.nlog().file_info(zone) }.map_err(|_| self.unreadable(zone, 0))?;
        self.nlog().copy_of(&info, file);
        if !twin!(ParentsLeft) {
            self.mark_parents(&info, file)?;
        }
        self.move_live(pinned, (writer, purpose), &info, file)?;
        self.retire_file(participant, zone);
        Ok(())
    }

    /// Pass 1: marks the parents of all entries, durably, each after its own parents.
    fn mark_parents(&self, info: &FileInfo, file: &[u8]) -> Result<(), Error> {
        let mut levels = Levels::new(self.nlog(), info.segment.zone);
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
        (writer, purpose): (&mut Writer, Use),
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
            batch.push(Live { entry, record, key, stripe: self.common.stripes.of(key.hash) });
            if batch.len() < BATCH {
                return Ok(());
            }
            self.move_batch(pinned, (writer, purpose), &mut batch)
        })?;
        self.move_batch(pinned, (writer, purpose), &mut batch)
    }

    /// Moves records under one fence, or two if lines are held back, with their stripes held.
    fn move_batch(
        &self,
        pinned: &Guard<'_>,
        (writer, purpose): (&mut Writer, Use),
        batch: &mut Vec<Live<'_>>,
    ) -> Result<(), Error> {
        let mut stripes: Vec<usize> = batch.iter().map(|live| live.stripe).collect();
        stripes.sort_unstable();
        stripes.dedup();
        let held: Vec<_> = stripes.iter().map(|stripe| self.lock(*stripe)).collect();
        let (mut moves, mut held_back) = (Vec::with_capacity(batch.len()), Vec::new());
        let mut moved = Ok(());
        for live in batch.drain(..) {
            let stripe = &held[stripes.binary_search(&live.stripe).expect("each was locked")];
            match self.write_next(pinned, (writer, purpose), stripe, &live, &mut held_back) {
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
        self.nlog().put_held_back(&held_back);
        if !twin!(CopyNamedEarly) {
            self.region().fence();
        }
        // Those that were written before an error count too: a valid record that nobody names would win
        // later.
        for (live, spot, next) in moves {
            self.publish_next(pinned, writer, &live, spot, next)?;
        }
        moved
    }

    /// Writes the record that takes the place of one whose key is locked, if the index names that still: a
    /// copy, or a deletion if it has expired. Durable with the next fence, or the one behind its first line
    /// if that is held back.
    ///
    /// Without a deletion, a later record of the key would not name the expired one, and might go before it.
    fn write_next(
        &self,
        pinned: &Guard<'_>,
        (writer, purpose): (&mut Writer, Use),
        stripe: &StripeGuard<'_>,
        live: &Live<'_>,
        held_back: &mut Vec<FirstLine>,
    ) -> Result<Option<(Spot<'_>, Next)>, Error> {
        let Live { entry, record, key, .. } = live;
        let is_expired = self.has_expired(record);
        // The index has whole keys of eight bytes, and would not ask which word is meant.
        let is_asked = !(is_expired && twin!(ExpiredUnasked));
        if is_asked && !self.index.names(pinned, *key, self.word_of(entry, record))? {
            return Ok(None);
        }
        let before = self.nlog().parent_word(entry.reference);
        let content = if is_expired {
            Content::tombstone(key.bytes).after(before)
        } else {
            let content = Content { expires: record.expires, ..Content::value(key.bytes, record.value) };
            let is_unchained = twin!(CopyUnchained);
            if is_unchained { content.after(0) } else { content.copy_of(before) }
        };
        let home = self.nlog().home(writer.node, live.stripe);
        let spot = self.nlog().reserve(home, content.record_len(), purpose)?;
        let sequence = if is_expired {
            let sequence = spot.draw_above(&mut writer.numbers, stripe.newest());
            stripe.note_newest(sequence);
            sequence
        } else {
            entry.sequence
        };
        held_back.extend(spot.write(&mut writer.encoder, &content, sequence));
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
        let mourner = self.common.admission.mourner();
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
}
