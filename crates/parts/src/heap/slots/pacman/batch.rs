//! Moving the records of a block many at a time (PACMAN section 3.3), where dead records are known in DRAM.
//!
//! Writers go on meanwhile. The live records of the victim are collected (step 1 of the paper's figure 4) and
//! written to the cleaner's pages by non-temporal stores (2); one fence makes them durable. Then the index is
//! to name each copy if it still names the original (4), and the victim goes as a whole: nothing is cleared
//! in it.
//!
//! The paper's logs are trusted by their bytes; in Viper's a length word counts, and there must be a record
//! behind it. So the copies that go to one page are written with all their words except the first. As long as
//! that is zero the log ends there, and the bytes behind it may have arrived in part. When all is durable the
//! first words follow. The next fence is due before the originals go, not before the index names the copies:
//! a crash finds the originals, or the records that have superseded them since.
//!
//! | step | fence | a crash before that leaves |
//! |---|---|---|
//! | [`copy`](SlotHeap::copy) | first thing in [`reveal`](SlotHeap::reveal) | the originals |
//! | first words, index, [`void`](SlotHeap::void) | [`settle_copies`](SlotHeap::settle_copies) | copies too |
//! | [`free_victim`](SlotHeap::free_victim) | its last thing | the same |
//!
//! A record whose value fills blocks of its own moves as in Viper, with the page of the original held: a
//! writer that supersedes it frees these blocks, and waits for that page before.

use crate::heap::slots::chunks::{BlockState, Page};
use crate::heap::slots::error::SlotError;
use crate::heap::slots::format::{Entry, EntryKind, LOG_START};
use crate::heap::slots::heap::SlotHeap;
use crate::heap::slots::log::FIRST_ENTRY;
use crate::heap::slots::offset::{Offset, SizedOffset};
use crate::heap::slots::owner::Owner;
use crate::heap::slots::pen::line_of;
use crate::heap::slots::place::Record;
use crate::heap::slots::reclaim::{Moved, Reclaimed};
use quipu_medium::LINE;
use std::ops::Range;

/// A block whose records move, and how far that has come.
pub struct Victim {
    block: u64,
    page: u32,
    position: u32,
    /// All blocks but this one hold back tombstones from this number on.
    horizon: u64,
    /// Records with values in blocks of their own, to be moved by themselves.
    alone: Vec<Offset>,
}

impl Victim {
    /// Whether no block but the victim can hold a record that a tombstone with this number beats.
    pub fn may_go(&self, tombstone: u64) -> bool {
        tombstone < self.horizon
    }
}

/// Records of a victim that move together.
#[derive(Default)]
pub struct Batch {
    /// Their keys and values.
    bytes: Vec<u8>,
    records: Vec<Collected>,
    /// First words of the copies in each page, which stand there as zeros.
    hidden: Vec<(u64, u64)>,
}

/// A record of a batch, for the walk that lets the index name its copy.
#[derive(Clone, Debug)]
pub struct Collected {
    key: Range<usize>,
    body: Range<usize>,
    /// Its sequence number.
    pub sequence: u64,
    /// It is a tombstone, which no index names.
    pub is_tombstone: bool,
    /// The original.
    pub from: SizedOffset,
    /// Bytes that the original takes of its block.
    pub len: u64,
    /// The copy, if there was room for it.
    pub to: Option<SizedOffset>,
}

impl Batch {
    /// Its records, with their keys.
    pub fn records(&self) -> impl Iterator<Item = (&[u8], &Collected)> + Clone {
        self.records.iter().map(|record| (&self.bytes[record.key.clone()], record))
    }

    /// Leaves out tombstones for which `stays` says no, and returns them.
    pub fn drop_tombstones(&mut self, mut stays: impl FnMut(&[u8], u64) -> bool) -> Vec<SizedOffset> {
        let Batch { bytes, records, .. } = self;
        let goes = |record: &mut Collected| {
            record.is_tombstone && !stays(&bytes[record.key.clone()], record.sequence)
        };
        records.extract_if(.., goes).map(|record| record.from).collect()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.hidden.clear();
    }
}

/// Copies to be written to one page, without their first word.
#[derive(Default)]
struct Run<'h> {
    page: Option<Page<'h>>,
    /// Where they are to stand, and the end of their page.
    at: u64,
    end: u64,
    first: u64,
    /// Empty where there is nothing to write.
    bytes: Vec<u8>,
}

impl SlotHeap {
    /// Begins to empty a [victim](SlotHeap::victim).
    pub fn evacuate(&self, block: u64) -> Victim {
        let horizon = self.supply.victims.lock().horizon.without(block);
        Victim { block, page: 0, position: FIRST_ENTRY, horizon, alone: Vec::new() }
    }

    /// Collects up to `most` of the victim's records that are not known to be dead, in place of the batch's
    /// old ones. `false` if there is none left.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if one cannot be read; the victim is not touched again.
    pub fn collect(&self, victim: &mut Victim, most: usize, batch: &mut Batch) -> Result<bool, SlotError> {
        batch.clear();
        while victim.page < self.pages_of(victim.block)? && batch.records.len() < most {
            let page = self.page_at(victim.block, victim.page)?;
            let entry = self.read_entry(&page, victim.position);
            let Some(entry) = entry.inspect_err(|_| page.state.set_state(BlockState::Damaged))? else {
                (victim.page, victim.position) = (victim.page + 1, FIRST_ENTRY);
                continue;
            };
            if entry.set && entry.kind != EntryKind::Part && !self.is_dead(&page, victim.position) {
                self.collect_entry(victim, &page, &entry, batch);
            }
            victim.position = SlotHeap::behind(victim.position, &entry);
        }
        Ok(!batch.records.is_empty())
    }

    fn collect_entry(&self, victim: &mut Victim, page: &Page<'_>, entry: &Entry, batch: &mut Batch) {
        let offset = self.offset_in(page, victim.position);
        if entry.kind == EntryKind::Overflow {
            victim.alone.push(offset);
            return;
        }
        let start = batch.bytes.len();
        let sequence = self.append_entry(page, victim.position, entry, 0, &mut batch.bytes);
        let key = start..start + entry.key as usize;
        batch.records.push(Collected {
            body: key.end..batch.bytes.len(),
            key,
            sequence,
            is_tombstone: entry.kind == EntryKind::Tombstone,
            from: SizedOffset::new(offset, entry.record_len()),
            len: entry.record_len(),
            to: None,
        });
    }

    /// Copies the records of a batch to the cleaner's pages. A copy has a place, and does not count yet.
    ///
    /// # Errors
    /// [`SlotError::Full`] if there is no room for all of them.
    pub fn copy(&self, cleaner: &mut Owner, batch: &mut Batch) -> Result<(), SlotError> {
        // One for pages, and one for blocks that are one page.
        let mut runs = [Run::default(), Run::default()];
        let Batch { bytes, records, hidden } = batch;
        let mut write = |run: &mut Run<'_>| {
            if !run.bytes.is_empty() {
                self.write_run(run);
                hidden.push((run.at, run.first));
                run.bytes.clear();
            }
        };
        let copied = records.iter_mut().try_for_each(|record| {
            let kind = if record.is_tombstone { EntryKind::Tombstone } else { EntryKind::Plain };
            let (key, value) = (&bytes[record.key.clone()], &bytes[record.body.clone()]);
            let copy = Record { key, value, sequence: record.sequence };
            record.to = Some(self.copy_one(cleaner, kind, copy, &mut runs, &mut write)?);
            Ok(())
        });
        runs.iter_mut().for_each(write);
        copied
    }

    /// Adds a record to a run, behind which there may be another.
    fn copy_one<'h>(
        &'h self,
        cleaner: &mut Owner,
        kind: EntryKind,
        Record { key, value, sequence }: Record<'_>,
        runs: &mut [Run<'h>; 2],
        write: &mut impl FnMut(&mut Run<'_>),
    ) -> Result<SizedOffset, SlotError> {
        let mut entry = Entry { kind, key: key.len() as u64, body: value.len() as u64, set: true };
        let large = !self.chunks.geometry.fits(false, entry.len());
        let run = &mut runs[usize::from(large)];
        let (page, tail, room) = self.room_for(cleaner, &mut entry, sequence, |page| page, || write(run))?;
        if run.bytes.is_empty() {
            run.begin(page, page.at + tail, page.at + tail + room);
        }
        let position = (tail / 8) as u32;
        let word = entry.word(page.seed, page.place(position));
        page.state.add(entry.record_len());
        if entry.kind == EntryKind::Continued {
            let next = self.next_page(&page).expect("an entry continues in its own block");
            let part = Entry { kind: EntryKind::Part, key: 0, ..entry };
            run.push(word, sequence, [key, &[]]);
            write(run);
            run.begin(next, next.at + LOG_START, next.at + self.chunks.geometry.page_size);
            run.push(part.word(next.seed, next.place(FIRST_ENTRY)), sequence, [&[], value]);
        } else {
            if kind == EntryKind::Tombstone
                && let Some(dead) = self.chunks.dead(page.block)
            {
                dead.note_tombstone(entry.len(), sequence);
            }
            run.push(word, sequence, [key, value]);
            cleaner.grow_tail(large, entry.len());
        }
        Ok(SizedOffset::new(self.offset_in(&page, position), entry.record_len()))
    }

    /// Writes a run by whole lines; its first word stays zero. Durable with the next fence.
    fn write_run(&self, run: &Run<'_>) {
        let from = run.at + 8;
        // A zero word ends the log, if there is room for one.
        let end = (from + run.bytes.len() as u64 + 8).min(run.end).next_multiple_of(LINE);
        let begin = line_of(from);
        let known = (from - begin) as usize;
        let mut lines = Vec::with_capacity((end - begin) as usize);
        // Nobody else changes the bytes before it in the first line.
        let _guard = run.page.map(|page| self.lock(page));
        self.region().append_racing(begin, known as u64, &mut lines);
        lines.extend_from_slice(&run.bytes);
        lines.resize((end - begin) as usize, 0);
        self.region().write_lines_nt(begin, &lines, known);
    }

    /// Makes the copies of a batch durable, and lets them count. That is durable with the next fence.
    pub fn reveal(&self, batch: &Batch) {
        self.region().fence();
        for (at, word) in &batch.hidden {
            self.region().store(*at, *word);
            self.region().flush(*at, 8);
        }
    }

    /// Takes a copy back that the index was not to name: its original has been superseded. Durable with the
    /// next fence.
    ///
    /// # Errors
    /// [`SlotError::Damaged`] if there is no such block.
    pub fn void(&self, copy: SizedOffset) -> Result<(), SlotError> {
        let page = self.page_of(copy.offset)?;
        if let Some(entry) = self.read_entry(&page, copy.offset.position())?.filter(|entry| entry.set) {
            self.clear_mark(&page, copy.offset.position());
            page.state.remove(entry.record_len());
        }
        Ok(())
    }

    /// Makes it durable which copies of a batch count.
    pub fn settle_copies(&self) {
        self.region().fence();
    }

    /// Moves the victim's records with values in blocks of their own, one by one, as
    /// [`reclaim`](SlotHeap::reclaim) does, and frees the victim. All else of it has moved, durably.
    ///
    /// # Errors
    /// As for [`reclaim`](SlotHeap::reclaim).
    pub fn free_victim(
        &self,
        victim: &Victim,
        cleaner: &mut Owner,
        mut repoint: impl FnMut(Moved<'_>) -> bool,
    ) -> Result<Reclaimed, SlotError> {
        let mut kept = false;
        for from in &victim.alone {
            let moved = self.move_alone(*from, cleaner, &mut repoint);
            kept |= !moved.inspect_err(|error| self.give_up(victim, error))?;
        }
        Ok(self.end_victim(victim.block, kept))
    }

    /// Leaves a victim as it is: there is no room to move records to, or they cannot be read.
    pub fn give_up(&self, victim: &Victim, error: &SlotError) {
        self.leave_victim(victim.block, error);
    }

    /// Moves one record, if it is still there. `false` if somebody is about to let it go.
    fn move_alone(
        &self,
        from: Offset,
        cleaner: &mut Owner,
        repoint: &mut impl FnMut(Moved<'_>) -> bool,
    ) -> Result<bool, SlotError> {
        let guard = self.lock(self.page_of(from)?);
        match self.read_entry(&guard.page, from.position())?.filter(|entry| entry.set) {
            Some(entry) => {
                self.move_entry(&guard, from.position(), &entry, cleaner, repoint, &mut Vec::new())
            }
            None => Ok(true),
        }
    }
}

impl<'h> Run<'h> {
    fn begin(&mut self, page: Page<'h>, at: u64, end: u64) {
        (self.page, self.at, self.end) = (Some(page), at, end);
    }

    /// Adds an entry.
    fn push(&mut self, word: u64, sequence: u64, content: [&[u8]; 2]) {
        if self.bytes.is_empty() {
            self.first = word;
        } else {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        self.bytes.extend_from_slice(&sequence.to_le_bytes());
        content.iter().for_each(|bytes| self.bytes.extend_from_slice(bytes));
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}
