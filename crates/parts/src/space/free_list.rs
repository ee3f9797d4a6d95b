//! A list of objects with Get, Commit, Check and Release: the log-free free list of section 3.4.1.
//!
//! Each object has an index word on the medium: a commit bit, and the link to the next free object. Linking
//! changes two words, and only a log could change both at once. So the commit bit alone counts, and links are
//! hints. Recovery (`recovery.rs`) makes a list out of any links that a crash has left.
//!
//! # What each call changes, and in which order
//!
//! - Get moves the head past the first object: one store, not flushed. If the store is lost, the head names
//!   an object that has been committed since. Recovery skips that object by its link, which Commit leaves in
//!   the word.
//! - Commit sets the bit, flushes the word and fences. A crash before the fence may keep or lose it.
//! - Release clears the bit, flushes and fences, and then links the object. In this order no Get can return
//!   an object whose bit a crash could restore. The link and the new head are two stores, not flushed. If
//!   either is lost, recovery finds the object and those behind it unreached and uncommitted, and reclaims
//!   them.
//!
//! A state byte per object in DRAM answers Check without the medium. It turns misuse (two releases of an
//! object, or a Commit without a Get) into a panic, because two owners of one object would destroy data
//! silently.
//!
//! # Threads
//!
//! The spin lock covers links and head only. Only the owner of an object that is not on the list writes its
//! index word. Check answers yes only once the bit is durable, so no caller acts on an answer that a crash
//! could revoke.

use super::error::SpaceError;
use super::pool_header::{HEAD_AT, HEADER_LEN};
use crate::sync::SpinLock;
use quipu_medium::{Region, WORD};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

pub(super) const WORD_LEN: u64 = WORD;
/// Most objects that a link can tell apart.
pub(super) const MAX_OBJECTS: u64 = u32::MAX as u64 - 1;
pub(super) const COMMITTED: u64 = 1 << 63;
/// A link that leads nowhere.
pub(super) const END: u64 = 0;

/// Where a pool keeps its free list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeListKind {
    /// On the medium, as in the paper: open walks the links and reclaims objects that they miss.
    Persistent = 1,
    /// In DRAM, rebuilt from the commit bits at open: Get writes nothing to the medium.
    Volatile = 2,
}

impl FreeListKind {
    pub(super) fn word(self) -> u32 {
        self as u32
    }

    pub(super) fn from_word(word: u32) -> Option<FreeListKind> {
        [FreeListKind::Persistent, FreeListKind::Volatile].into_iter().find(|kind| kind.word() == word)
    }
}

#[derive(Clone)]
pub(super) struct Words {
    pub(super) region: Region,
    pub(super) head: u64,
    pub(super) first: u64,
    /// Distance between index words: 8 in an object pool, 16 in a zone table.
    pub(super) stride: u64,
    pub(super) count: u32,
}

impl Words {
    /// The words behind the header of an object pool or an extent.
    pub(super) fn behind(region: &Region, header: u64, stride: u64, count: u32) -> Words {
        let (head, first) = (header + HEAD_AT, header + HEADER_LEN);
        Words { region: region.clone(), head, first, stride, count }
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> u64 {
        self.first + u64::from(index) * self.stride
    }

    /// The object of this list that a link names. A link is a head word, or an index word without its commit
    /// bit.
    #[inline]
    pub(super) fn target(&self, link: u64) -> Option<u32> {
        (link != END && link <= u64::from(self.count)).then(|| (link - 1) as u32)
    }

    /// Writes the index words of a new list, all objects free and linked in order. `beside` gives the second
    /// word of an entry, if entries have one. A fence follows.
    pub(super) fn format(&self, kind: FreeListKind, beside: impl Fn(u32) -> Option<u64>) {
        const BATCH: u64 = 4096;
        let mut image = Vec::new();
        for index in 0..self.count {
            let word = match kind {
                FreeListKind::Persistent if index + 1 < self.count => link_to(index + 1),
                _ => END,
            };
            for word in std::iter::once(word).chain(beside(index)) {
                image.extend_from_slice(&word.to_le_bytes());
            }
            if image.len() as u64 >= BATCH || index + 1 == self.count {
                let end = self.at(index) + self.stride;
                self.region.write_nt(end - image.len() as u64, &image);
                image.clear();
            }
        }
    }

    /// Starts to make head and index words durable. A fence follows.
    pub(super) fn flush(&self) {
        self.region.flush(self.head, WORD_LEN);
        self.region.flush(self.first, u64::from(self.count) * self.stride);
    }
}

#[inline]
pub(super) fn link_to(index: u32) -> u64 {
    u64::from(index) + 1
}

/// The state of an object, as DRAM remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Free,
    Gotten,
    Committing,
    Committed,
    Releasing,
}

pub(super) struct FreeList {
    pub(super) words: Words,
    pub(super) kind: FreeListKind,
    pub(super) states: Box<[AtomicU8]>,
    /// The list of [`FreeListKind::Volatile`], next object last. Unused otherwise; then its lock guards the
    /// links.
    pub(super) stack: SpinLock<Vec<u32>>,
    free: AtomicU32,
}

impl FreeList {
    /// A list in a known state: its links, if they are on the medium, reach exactly the free objects.
    pub(super) fn new(
        words: Words,
        kind: FreeListKind,
        states: Box<[AtomicU8]>,
        stack: Vec<u32>,
    ) -> FreeList {
        let free = states.iter().filter(|state| state.load(Ordering::Relaxed) == State::Free as u8).count();
        FreeList { words, kind, states, stack: SpinLock::new(stack), free: AtomicU32::new(free as u32) }
    }

    pub(super) fn count(&self) -> u32 {
        self.words.count
    }

    pub(super) fn free(&self) -> u32 {
        self.free.load(Ordering::Acquire)
    }

    fn state(&self, index: u32) -> Option<&AtomicU8> {
        self.states.get(index as usize)
    }

    /// Moves an object from one state to another, if it is in the first.
    fn advance(&self, index: u32, from: State, to: State) -> bool {
        self.state(index).is_some_and(|state| {
            state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
        })
    }

    fn set_state(&self, index: u32, to: State) {
        if let Some(state) = self.state(index) {
            state.store(to as u8, Ordering::Release);
        }
    }

    /// Get. A link that names no free object is damage, since open has verified every link.
    pub(super) fn get(&self) -> Result<Option<u32>, SpaceError> {
        let Words { region, head, .. } = &self.words;
        let mut stack = self.stack.lock();
        let index = match self.kind {
            FreeListKind::Volatile => match stack.pop() {
                Some(index) => index,
                None => return Ok(None),
            },
            FreeListKind::Persistent => {
                let first = region.load(*head);
                if first == END {
                    return Ok(None);
                }
                let damaged = SpaceError::Damaged { what: "the head of a free list", offset: *head };
                let index = self.words.target(first).ok_or(damaged)?;
                let word = region.load(self.words.at(index));
                if word & COMMITTED != 0 || !self.is_free(index) {
                    return Err(SpaceError::Damaged { what: "a free list", offset: self.words.at(index) });
                }
                region.store(*head, word);
                index
            }
        };
        self.set_state(index, State::Gotten);
        self.free.fetch_sub(1, Ordering::AcqRel);
        Ok(Some(index))
    }

    /// Commit: durable when it returns, for the one flush and one fence of an allocation.
    pub(super) fn commit(&self, index: u32) {
        assert!(
            self.advance(index, State::Gotten, State::Committing),
            "object {index} is committed without having been gotten"
        );
        let Words { region, .. } = &self.words;
        let at = self.words.at(index);
        let link = match self.kind {
            FreeListKind::Persistent => region.load(at),
            FreeListKind::Volatile => END,
        };
        region.store(at, link | COMMITTED);
        region.persist(at, WORD_LEN);
        self.set_state(index, State::Committed);
    }

    /// Check: whether the object is durably committed.
    #[inline]
    pub(super) fn check(&self, index: u32) -> bool {
        self.state(index).is_some_and(|state| state.load(Ordering::Acquire) == State::Committed as u8)
    }

    /// Whether the object is on the list.
    pub(super) fn is_free(&self, index: u32) -> bool {
        self.state(index).is_some_and(|state| state.load(Ordering::Acquire) == State::Free as u8)
    }

    /// Release: when it returns, the object is durably free and can be gotten again.
    pub(super) fn release(&self, index: u32) {
        self.release_after(index, || ());
    }

    /// Release that does something to the object between its two steps, while it is durably free and nobody
    /// can get it.
    pub(super) fn release_after(&self, index: u32, between: impl FnOnce()) {
        if self.advance(index, State::Committed, State::Releasing) {
            let at = self.words.at(index);
            self.words.region.store(at, END);
            self.words.region.persist(at, WORD_LEN);
        } else {
            assert!(
                self.advance(index, State::Gotten, State::Releasing),
                "object {index} is released without being in use"
            );
        }
        between();
        let mut stack = self.stack.lock();
        match self.kind {
            FreeListKind::Volatile => stack.push(index),
            FreeListKind::Persistent => {
                let Words { region, head, .. } = &self.words;
                region.store(self.words.at(index), region.load(*head));
                region.store(*head, link_to(index));
            }
        }
        self.set_state(index, State::Free);
        self.free.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn committed(&self) -> impl Iterator<Item = u32> {
        (0..self.count()).filter(|&index| self.check(index))
    }
}
