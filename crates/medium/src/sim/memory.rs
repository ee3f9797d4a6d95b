//! The two images of a simulated region and the pending words between them.
//!
//! The processor's image is the mapping itself, so loads need no detour. The durable image is the state after
//! a power failure at which nothing more arrived. Between them are the dirty lines with their pending words
//! (`line`).
//!
//! Invariants: a word of the processor's image equals its last pending event that is not superseded, or else
//! the durable word; so a snapshot needs no copy of the processor's image. A line is listed in `lines`
//! exactly while it has pending events, and `slots` then holds its place in the list plus one.

use super::cost::Cost;
use super::dimm::{Dimms, Geometry};
use super::line::{DirtyLine, Kind, Pending, WORDS};
use super::page::{PAGE, PAGE_WORDS, Pages};
use super::sched::Identity;
use crate::arch::LINE;
use crate::map::Mapping;
use crate::region::WORD;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pending events in a line after which its older half is written back, as caches and buffers do by
/// themselves sooner or later. Without a bound a word that is never flushed would gather one event a store
/// for ever.
const MAX_PENDING: usize = 256;

/// The simulator's state of a thread.
#[derive(Default)]
struct Thread {
    run: u64,
    owner: u32,
    node: u16,
    /// Lines flushed since the last fence, each with the position in the order up to which it was captured.
    captured: Vec<(u32, u64)>,
    /// Lines written by non-temporal stores since the last fence.
    streamed: Vec<u32>,
}

pub(crate) struct Memory {
    mapping: Arc<Mapping>,
    pub(crate) durable: Pages,
    slots: Vec<u32>,
    pub(crate) lines: Vec<DirtyLine>,
    /// Event lists of lines that became clean, kept for their storage.
    spare: Vec<Vec<Pending>>,
    pub(crate) order: u64,
    pub(crate) owners: u32,
    threads: Vec<Thread>,
    pub(crate) geometry: Geometry,
    dimms: Dimms,
    pub(crate) cost: Cost,
    /// Every so many fences one is ignored; 0 for none.
    pub(crate) omit_fence_every: u64,
}

impl Memory {
    pub(crate) fn new(mapping: Arc<Mapping>, geometry: Geometry) -> Memory {
        let len = mapping.len();
        Memory {
            durable: Pages::zero(len),
            slots: vec![0; len.div_ceil(LINE) as usize],
            lines: Vec::new(),
            spare: Vec::new(),
            order: 0,
            owners: 0,
            threads: Vec::new(),
            dimms: Dimms::new(&geometry),
            geometry,
            cost: Cost::default(),
            omit_fence_every: 0,
            mapping,
        }
    }

    #[inline]
    fn cpu(&self, word: u64) -> &AtomicU64 {
        assert!(word < self.mapping.len() / WORD, "word {word} leaves the region");
        // SAFETY: in bounds by the assertion; mappings start on a page, so the word is aligned; the mapping
        // lives as long as `self`, and its words change only by atomics or under the latch around `self`.
        unsafe { &*self.mapping.base().cast::<AtomicU64>().add(word as usize) }
    }

    /// The thread that acts, with a fresh owner number if it belongs to another run than its predecessor.
    #[inline]
    fn thread(&mut self, who: Identity) -> &mut Thread {
        let index = who.task as usize;
        if self.threads.get(index).is_none_or(|thread| thread.owner == 0 || thread.run != who.run) {
            self.enlist(who);
        }
        &mut self.threads[index]
    }

    #[cold]
    fn enlist(&mut self, who: Identity) {
        self.owners += 1;
        let owner = self.owners;
        let thread = self.known(who.task);
        thread.run = who.run;
        thread.owner = owner;
        thread.captured.clear();
        thread.streamed.clear();
    }

    pub(crate) fn home_node(&self, task: u32) -> u16 {
        self.threads.get(task as usize).map_or(0, |thread| thread.node)
    }

    pub(crate) fn set_node(&mut self, task: u32, node: u16) {
        self.known(task).node = node;
    }

    /// The state of a task, an empty one if the task is new.
    fn known(&mut self, task: u32) -> &mut Thread {
        let index = task as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// The owner number and the node of the thread that acts.
    #[inline]
    fn origin(&mut self, who: Identity) -> (u32, u16) {
        let thread = self.thread(who);
        (thread.owner, thread.node)
    }

    /// The dirty line, listed if it was clean.
    #[inline]
    fn dirty(&mut self, line: u32) -> usize {
        let slot = self.slots[line as usize];
        if slot != 0 {
            return slot as usize - 1;
        }
        let events = self.spare.pop().unwrap_or_default();
        self.lines.push(DirtyLine { line, events });
        self.slots[line as usize] = self.lines.len() as u32;
        self.lines.len() - 1
    }

    /// Takes a line off the list if nothing of it is pending any more.
    #[inline]
    fn drop_if_clean(&mut self, slot: usize) {
        if !self.lines[slot].events.is_empty() {
            return;
        }
        let clean = self.lines.swap_remove(slot);
        self.slots[clean.line as usize] = 0;
        self.spare.push(clean.events);
        if let Some(moved) = self.lines.get(slot) {
            self.slots[moved.line as usize] = slot as u32 + 1;
        }
    }

    #[inline]
    fn settle(&mut self, slot: usize, arrives: impl Fn(&Pending) -> bool) {
        let Memory { lines, durable, .. } = self;
        let dirty = &mut lines[slot];
        let first = u64::from(dirty.line) * WORDS as u64;
        dirty.settle(arrives, |word, value| durable.set(first + u64::from(word), value));
        self.drop_if_clean(slot);
    }

    #[inline]
    fn note_written(&mut self, node: u16, line: u64) {
        self.cost.lines_written += 1;
        let owner = self.geometry.node(line * LINE);
        self.cost.remote_lines_written += u64::from(owner != node);
        self.cost.written_by_nodes[usize::from(node)][usize::from(owner)] += 1;
    }

    /// A bulk write, ordinary or non-temporal.
    pub(crate) fn write(&mut self, who: Identity, offset: u64, src: &[u8], kind: Kind) {
        if src.is_empty() {
            return;
        }
        let end = offset + src.len() as u64;
        assert!(end <= self.mapping.len(), "a write leaves the region");
        // SAFETY: in bounds by the assertion; the mapping is lent out only for bytes that no one writes
        // (`Region`).
        unsafe {
            std::ptr::copy_nonoverlapping(src.as_ptr(), self.mapping.base().add(offset as usize), src.len());
        }
        let (owner, node) = self.origin(who);
        let (mut word, last) = (offset / WORD, (end - 1) / WORD);
        self.cost.words_stored += last - word + 1;
        while word <= last {
            let line = word / WORDS as u64;
            let stop = last.min(line * WORDS as u64 + WORDS as u64 - 1);
            self.note_written(node, line);
            let slot = self.dirty(line as u32);
            for word in word..=stop {
                let value = self.cpu(word).load(Ordering::Relaxed);
                self.push(slot, owner, word, value, kind);
            }
            if kind == Kind::NonTemporal {
                self.thread(who).streamed.push(line as u32);
            }
            self.bound(slot);
            word = stop + 1;
        }
    }

    #[inline]
    fn push(&mut self, slot: usize, owner: u32, word: u64, value: u64, kind: Kind) {
        let order = self.order;
        self.order += 1;
        let word = (word % WORDS as u64) as u8;
        self.lines[slot].events.push(Pending { order, value, owner, word, kind, superseded: false });
    }

    #[inline]
    fn bound(&mut self, slot: usize) {
        let events = &self.lines[slot].events;
        if events.len() > MAX_PENDING {
            let until = events[MAX_PENDING / 2].order;
            self.settle(slot, |event| event.order < until);
        }
    }

    /// An atomic store.
    pub(crate) fn store(&mut self, who: Identity, offset: u64, value: u64) {
        self.cpu(offset / WORD).store(value, Ordering::Release);
        self.push_atomic(who, offset, value);
    }

    fn push_atomic(&mut self, who: Identity, offset: u64, value: u64) {
        let (owner, node) = self.origin(who);
        self.cost.words_stored += 1;
        self.note_written(node, offset / LINE);
        let slot = self.dirty((offset / LINE) as u32);
        self.push(slot, owner, offset / WORD, value, Kind::Atomic);
        self.bound(slot);
    }

    /// A compare-and-swap; one that fails changes nothing but the count.
    pub(crate) fn compare_exchange(
        &mut self,
        who: Identity,
        offset: u64,
        current: u64,
        new: u64,
    ) -> Result<u64, u64> {
        let word = self.cpu(offset / WORD);
        match word.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(found) => {
                self.push_atomic(who, offset, new);
                Ok(found)
            }
            Err(found) => {
                self.cost.failed_swaps += 1;
                Err(found)
            }
        }
    }

    /// Captures every line of the range at its present place in its order.
    pub(crate) fn flush(&mut self, who: Identity, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let (first, last) = ((offset / LINE) as u32, ((offset + len - 1) / LINE) as u32);
        self.cost.flushes += u64::from(last - first + 1);
        for line in first..=last {
            let slot = self.slots[line as usize];
            let cached = slot != 0
                && self.lines[slot as usize - 1].events.iter().any(|event| event.kind != Kind::NonTemporal);
            if cached {
                let until = self.order;
                self.thread(who).captured.push((line, until));
            }
        }
    }

    /// Makes durable the lines that this thread captured or wrote past the caches since its last fence.
    pub(crate) fn fence(&mut self, who: Identity) {
        self.cost.fences += 1;
        if self.omit_fence_every != 0 && self.cost.fences.is_multiple_of(self.omit_fence_every) {
            return;
        }
        let thread = self.thread(who);
        let (owner, node) = (thread.owner, thread.node);
        if thread.captured.is_empty() && thread.streamed.is_empty() {
            return;
        }
        let mut captured = std::mem::take(&mut thread.captured);
        let mut streamed = std::mem::take(&mut thread.streamed);
        captured.sort_unstable();
        streamed.sort_unstable();
        streamed.dedup();
        let mut remote = false;
        let (mut c, mut s) = (0, 0);
        while c < captured.len() || s < streamed.len() {
            let line = match (captured.get(c), streamed.get(s)) {
                (Some((flushed, _)), Some(line)) => *flushed.min(line),
                (Some((flushed, _)), None) => *flushed,
                (None, Some(line)) => *line,
                (None, None) => break,
            };
            let mut until = None;
            while captured.get(c).is_some_and(|(flushed, _)| *flushed == line) {
                until = Some(captured[c].1);
                c += 1;
            }
            s += usize::from(streamed.get(s) == Some(&line));
            match until {
                Some(_) => self.cost.lines_flushed += 1,
                None => self.cost.lines_streamed += 1,
            }
            remote |= self.geometry.node(u64::from(line) * LINE) != node;
            self.dimms.write(&self.geometry, line, &mut self.cost);
            let slot = self.slots[line as usize];
            if slot != 0 {
                let until = until.unwrap_or(0);
                self.settle(slot as usize - 1, |event| match event.kind {
                    Kind::NonTemporal => event.owner == owner,
                    Kind::Plain | Kind::Atomic => event.order < until,
                });
            }
        }
        self.cost.persists += 1;
        self.cost.remote_persists += u64::from(remote);
        captured.clear();
        streamed.clear();
        let thread = self.thread(who);
        thread.captured = captured;
        thread.streamed = streamed;
    }

    /// Everything pending becomes durable.
    pub(crate) fn sync(&mut self) {
        while let Some(slot) = self.lines.len().checked_sub(1) {
            self.dimms.write(&self.geometry, self.lines[slot].line, &mut self.cost);
            self.settle(slot, |_| true);
        }
        for thread in &mut self.threads {
            thread.captured.clear();
            thread.streamed.clear();
        }
    }

    /// Counts a read.
    #[inline]
    pub(crate) fn note_read(&mut self, who: Identity, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let home = self.home_node(who.task);
        let (first, last) = (offset / LINE, (offset + len - 1) / LINE);
        let lines = last - first + 1;
        self.cost.reads += 1;
        self.cost.lines_read += lines;
        if self.geometry.node(offset) != home {
            self.cost.remote_reads += 1;
        }
        let mut read = |owner: u16, lines: u64| {
            self.cost.remote_lines_read += if owner != home { lines } else { 0 };
            self.cost.read_by_nodes[usize::from(home)][usize::from(owner)] += lines;
        };
        let owner = self.geometry.node(offset);
        if owner == self.geometry.node(last * LINE) {
            read(owner, lines);
        } else {
            (first..=last).for_each(|line| read(self.geometry.node(line * LINE), 1));
        }
    }

    /// Makes both images equal to `durable`, nothing pending and nothing counted. The cost is that of the
    /// difference.
    pub(crate) fn reset(&mut self, durable: &Pages) {
        while let Some(mut dirty) = self.lines.pop() {
            self.slots[dirty.line as usize] = 0;
            let first = u64::from(dirty.line) * WORDS as u64;
            for word in first..first + WORDS as u64 {
                self.cpu(word).store(self.durable.get(word), Ordering::Relaxed);
            }
            dirty.events.clear();
            self.spare.push(dirty.events);
        }
        for (index, page) in durable.pages.iter().enumerate() {
            if !Arc::ptr_eq(page, &self.durable.pages[index]) {
                self.durable.pages[index] = Arc::clone(page);
                // SAFETY: the mapping has this page (both images have the same length, in whole pages), and
                // the caller that resets a region is its only user.
                unsafe {
                    let target = self.mapping.base().add(index * PAGE as usize).cast::<u64>();
                    std::ptr::copy_nonoverlapping(page.0.as_ptr(), target, PAGE_WORDS);
                }
            }
        }
        self.durable.hash = durable.hash;
        self.order = 0;
        self.owners = 0;
        self.threads.clear();
        self.dimms.clear();
        self.cost = Cost::default();
        self.omit_fence_every = 0;
    }

    /// Sets a word in both images. For booting, when nothing is pending.
    pub(crate) fn plant(&mut self, word: u64, value: u64) {
        self.durable.set(word, value);
        self.cpu(word).store(value, Ordering::Relaxed);
    }

    /// Takes over pending words of an earlier process, whose threads are gone.
    pub(crate) fn adopt(&mut self, line: u32, events: &[Pending]) {
        let at = |event: &Pending| u64::from(line) * WORDS as u64 + u64::from(event.word);
        for event in events.iter().filter(|event| !event.superseded) {
            if event.kind == Kind::NonTemporal {
                self.plant(at(event), event.value);
            }
            self.cpu(at(event)).store(event.value, Ordering::Relaxed);
        }
        let overtaken = |event: &Pending| {
            let past_caches = |later: &&Pending| later.kind == Kind::NonTemporal && later.order > event.order;
            events.iter().filter(past_caches).any(|later| later.word == event.word)
        };
        let cached = events.iter().filter(|event| event.kind != Kind::NonTemporal && !overtaken(event));
        let mut cached = cached.copied().peekable();
        if cached.peek().is_some() {
            let slot = self.dirty(line);
            self.lines[slot].events.extend(cached);
        }
    }
}
