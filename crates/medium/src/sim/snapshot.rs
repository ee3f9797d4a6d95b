//! [`Snapshot`]: a crash point, from which any number of crash images can be formed.
//!
//! It holds the durable image (shared pages) and the pending words. The processor's image is not copied: it
//! follows from the two (see the invariants of `memory`).

use super::image::Image;
use super::images::Images;
use super::line::{Kind, Pending, WORDS};
use super::memory::Memory;
use super::options::SimOptions;
use super::page::Pages;
use crate::region::WORD;
use std::ops::Range;

/// The durable words and the pending words of one moment.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) options: SimOptions,
    pub(super) boot_id: [u8; 16],
    pub(super) durable: Pages,
    /// Dirty lines by number, each with its share of `events`.
    pub(super) lines: Vec<(u32, Range<usize>)>,
    pub(super) events: Vec<Pending>,
    pub(super) order: u64,
    pub(super) owners: u32,
}

impl Snapshot {
    pub(super) fn take(options: SimOptions, boot_id: [u8; 16], memory: &Memory) -> Snapshot {
        let mut listed: Vec<_> = memory.lines.iter().collect();
        listed.sort_unstable_by_key(|line| line.line);
        let mut events = Vec::with_capacity(listed.iter().map(|line| line.events.len()).sum());
        let mut lines = Vec::with_capacity(listed.len());
        for line in listed {
            let start = events.len();
            events.extend_from_slice(&line.events);
            lines.push((line.line, start..events.len()));
        }
        Snapshot {
            options,
            boot_id,
            durable: memory.durable.clone(),
            lines,
            events,
            order: memory.order,
            owners: memory.owners,
        }
    }

    /// How many words may or may not have arrived, older values of the same word included.
    pub fn pending_count(&self) -> usize {
        self.events.len()
    }

    /// The word at an aligned offset that is certainly durable.
    pub fn durable_word(&self, offset: u64) -> u64 {
        self.durable.get(offset / WORD)
    }

    /// The image in which nothing arrived: the words that are certainly durable. Equal images of any crash
    /// points have equal hashes.
    pub fn nothing(&self) -> Image {
        Image::new(self, Vec::new())
    }

    /// The image in which everything arrived: the processor's view.
    pub fn everything(&self) -> Image {
        Image::new(self, self.resolve(&vec![true; self.events.len()], None))
    }

    /// Crash images, no two with equal content. First come the fixed ones, after the taxonomy of the PMDK's
    /// pmreorder: nothing, everything, each word alone, all except each word, each line alone, all except
    /// each line, accumulated in order, and in reverse. Each includes the words that its words demand. Then
    /// come all other images if no more than about a thousand are possible, and otherwise a sample of them
    /// drawn from `seed`.
    ///
    /// `budget` bounds their number; 0 means all fixed ones and no sample. A budget below the number of
    /// fixed images takes nothing, everything and a seeded choice, and leaves a quarter for the sample.
    pub fn images(&self, seed: u64, budget: usize) -> impl Iterator<Item = Image> {
        Images::new(self, seed, budget)
    }

    /// The words of an image in which the flagged events arrived: each line in its order, so that the last
    /// one on a word stays; a superseded one only where `lands` names it.
    pub(super) fn resolve(&self, arrived: &[bool], lands: Option<usize>) -> Vec<(u64, u64)> {
        let mut changes = Vec::new();
        for (line, range) in &self.lines {
            let mut values = [None; WORDS];
            for index in range.clone() {
                let event = &self.events[index];
                if arrived[index] && (!event.superseded || lands == Some(index)) {
                    values[usize::from(event.word)] = Some(event.value);
                }
            }
            self.append(&mut changes, *line, &values);
        }
        changes
    }

    /// Adds the words of a line that differ from the durable ones.
    pub(super) fn append(&self, changes: &mut Vec<(u64, u64)>, line: u32, values: &[Option<u64>; WORDS]) {
        let first = u64::from(line) * WORDS as u64;
        for (word, value) in (first..).zip(values) {
            if let Some(value) = value
                && self.durable.get(word) != *value
            {
                changes.push((word, *value));
            }
        }
    }

    /// Flags an event and everything that must have arrived before it. Events of a line lie in order.
    pub(super) fn close_over(&self, range: &Range<usize>, index: usize, arrived: &mut [bool]) {
        arrived[index] = true;
        if self.events[index].kind != Kind::Atomic {
            return;
        }
        // Backwards, so that every atomic word found is seen before the plain words that it demands in turn.
        let mut atomics = vec![self.events[index].owner];
        for earlier in (range.start..index).rev() {
            let event = &self.events[earlier];
            match event.kind {
                Kind::Atomic => {
                    arrived[earlier] = true;
                    atomics.push(event.owner);
                }
                Kind::Plain => arrived[earlier] |= atomics.contains(&event.owner),
                Kind::NonTemporal => {}
            }
        }
    }

    /// Clears an event and everything that cannot have arrived without it.
    pub(super) fn leave_out(&self, range: &Range<usize>, index: usize, arrived: &mut [bool]) {
        arrived[index] = false;
        let missing = self.events[index];
        let mut blocked = missing.kind == Kind::Atomic;
        for (event, arrives) in self.events.iter().zip(arrived).take(range.end).skip(index + 1) {
            if event.kind == Kind::Atomic {
                blocked |= missing.kind == Kind::Plain && event.owner == missing.owner;
                *arrives &= !blocked;
            }
        }
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("len", &self.options.len)
            .field("hash", &self.durable.hash)
            .field("pending", &self.events.len())
            .finish_non_exhaustive()
    }
}
