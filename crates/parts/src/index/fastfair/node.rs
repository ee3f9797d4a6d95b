//! Nodes: how they are read while a thread changes them. `docs/FORMAT.md` draws them.
//!
//! Entries stand in order, with holes among them; an end has nothing behind it. A hole, an end, a value and a
//! zero differ in many bits each. So a flipped bit makes none of them into another, and zeros are no end
//! either: such a word is told as damage. Separators and links, which lead to many keys, have a check over
//! key word and number. An entry of a leaf has no room for one, so a lookup that finds no key where the order
//! would have it looks at all entries.
//!
//! # Reading without a lock
//!
//! A writer changes an entry in three steps: no value, the new key, the new value. So no key ever stands
//! beside a value that is not its own. A reader that finds the same value before and after the key has read
//! an entry that was there. A shift copies entry by entry to the next position, beginning beside a hole, so
//! each entry is at all times in one of two neighbouring positions or in both. A reader in the direction of
//! the move misses none, and drops the second of two equal keys. (The paper has two equal pointers, section
//! 3.1, and so needs pointers that differ.)

use super::arena::Arena;
use super::key::{Key, Stored};
use super::link::{END, HOLE, KEPT, Link, VACANT, is_broken, marked, unmarked};
use super::settings::{Result, damaged};
use super::shift::Locked;
use super::state::{Seen, State};
use crate::index::hint::Hint;
use crate::index::words::Words;
use quipu_medium::{LINE, WORD};
use std::cmp::Ordering;

/// Bytes of a node, as published (FAST'18, section 5.2).
pub(super) const NODE: u64 = 512;
/// Lines that are asked for ahead of a lookup: half of a node.
const LINES_AHEAD: u64 = NODE / LINE / 2;
/// Entries of a node.
pub(super) const SLOTS: usize = ((NODE - FIRST) / ENTRY) as usize;

const META: u64 = 0;
pub(super) const LEFTMOST: u64 = WORD;
pub(super) const LINK: u64 = 2 * WORD;
pub(super) const NEXT_LINK: u64 = 4 * WORD;
const FIRST: u64 = 6 * WORD;
pub(super) const ENTRY: u64 = 2 * WORD;
/// Words of a node.
pub(super) const NODE_WORDS: usize = (NODE / WORD) as usize;

/// The upper bits of a meta word.
const TAG: u64 = u64::from_le_bytes(*b"\0QFFNODE");
const LEVEL_MASK: u64 = 0xFF;
/// No tree is higher.
const LEVEL_MAX: u32 = 40;

const _: () = {
    assert!(SLOTS == 29 && SLOTS <= 1 << Hint::SLOT_BITS && FIRST + SLOTS as u64 * ENTRY == NODE);
    // No entry lies in two lines, and both links lie in the first.
    assert!(
        LINE.is_multiple_of(ENTRY)
            && FIRST.is_multiple_of(ENTRY)
            && FIRST <= LINE
            && NODE.is_multiple_of(LINE)
    );
};

/// The first word of a node of this level.
pub(super) fn meta(level: u32) -> u64 {
    TAG | u64::from(level)
}

/// The word of a node that an entry's key stands in.
pub(super) fn entry_word(slot: usize) -> usize {
    ((FIRST + slot as u64 * ENTRY) / WORD) as usize
}

/// A key and the word under it, in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) slot: usize,
    pub(super) key: Stored,
    /// A value or a child.
    pub(super) value: u64,
}

/// How far a look at the entries has come.
struct Passed {
    /// The entry at which it ended.
    at: Option<usize>,
    /// The last one before that whose key word is lower.
    last: Option<usize>,
    /// Whether there are keys in chunks before that, or words that no run of the index leaves.
    is_mixed: bool,
}

/// The content of one position.
pub(super) enum Position {
    Entry(Entry),
    Hole,
    End,
    Broken,
}

/// A node.
pub(super) struct Node<'a, W> {
    pub(super) arena: &'a Arena<W>,
    pub(super) number: u64,
    /// Its first byte.
    pub(super) place: u64,
    pub(super) state: &'a State,
}

impl<W> Clone for Node<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Node<'_, W> {}

impl<'a, W: Words> Node<'a, W> {
    #[inline]
    pub(super) fn load(&self, at: u64) -> u64 {
        self.arena.words.load(self.place + at)
    }

    /// Where the key of an entry stands.
    #[inline]
    pub(super) fn at(slot: usize) -> u64 {
        FIRST + slot as u64 * ENTRY
    }

    /// The level. Levels are one bit apart; but a root that has become a leaf has a leftmost child, and below
    /// any other that has changed, no node is of the level that it should be of.
    #[inline]
    pub(super) fn level(&self) -> Result<u32> {
        let meta = self.load(META);
        let level = (meta & LEVEL_MASK) as u32;
        let is_mistaken = level == 0 && self.load(LEFTMOST) != 0;
        if meta & !LEVEL_MASK != TAG || level > LEVEL_MAX || is_mistaken {
            return damaged("a node of the index", self.place);
        }
        Ok(level)
    }

    /// The node, which was named as one of this level.
    #[inline]
    pub(super) fn of_level(self, level: u32) -> Result<Node<'a, W>> {
        if self.load(META) == meta(level) { Ok(self) } else { damaged("a node of the index", self.place) }
    }

    /// Of an inner node, the child for keys below the first separator.
    #[inline]
    pub(super) fn leftmost(&self) -> Result<u64> {
        let number = self.load(LEFTMOST);
        let node = unmarked(number);
        let is_proved = marked(node) == number;
        if is_proved { Ok(node) } else { damaged("the leftmost child of a node of the index", self.place) }
    }

    /// The child to which a separator of this node leads.
    #[inline]
    pub(super) fn child_of(&self, separator: Entry) -> Result<u64> {
        let node = unmarked(separator.value);
        let is_proved = Link { key: separator.key, node }.number() == separator.value;
        if is_proved {
            Ok(node)
        } else {
            damaged("a separator of the index", self.place + Self::at(separator.slot))
        }
    }

    /// Takes the lock.
    pub(super) fn lock(self) -> Locked<'a, W> {
        self.state.lock();
        Locked::new(self)
    }

    /// Takes the lock if nobody has it.
    pub(super) fn try_lock(self) -> Option<Locked<'a, W>> {
        self.state.try_lock().then(|| Locked::new(self))
    }

    /// Asks for the line of an entry, and for that of the state.
    pub(super) fn prefetch(&self, slot: usize) {
        self.arena.words.prefetch(self.place + Self::at(slot));
        quipu_medium::arch::prefetch_to_write(std::ptr::from_ref(self.state));
    }

    /// Asks for the first lines, which most lookups read, and for that of the state.
    pub(super) fn prefetch_first(&self) {
        (0..LINES_AHEAD).for_each(|line| self.arena.words.prefetch(self.place + line * LINE));
        quipu_medium::arch::prefetch_to_write(std::ptr::from_ref(self.state));
    }

    /// The content of a position.
    #[inline]
    pub(super) fn position(&self, slot: usize) -> Position {
        let at = Self::at(slot);
        let mut second = self.load(at + WORD);
        loop {
            match second {
                END => return Position::End,
                HOLE => return Position::Hole,
                _ if is_broken(second) => return Position::Broken,
                _ => {}
            }
            let word = self.load(at);
            let again = self.load(at + WORD);
            if again == second {
                let key = Stored { word, is_kept: second & KEPT != 0 };
                return Position::Entry(Entry { slot, key, value: second & !KEPT });
            }
            second = again;
        }
    }

    /// The entry in a position, if there is one.
    #[inline]
    pub(super) fn entry(&self, slot: usize) -> Option<Entry> {
        match self.position(slot) {
            Position::Entry(entry) => Some(entry),
            Position::Hole | Position::End | Position::Broken => None,
        }
    }

    /// Calls `each` with the entries until it says no: in order, or in reverse while they move to the left.
    #[inline]
    fn walk(&self, is_left: bool, mut each: impl FnMut(Entry) -> Result<bool>) -> Result<()> {
        for slot in 0..SLOTS {
            let slot = if is_left { SLOTS - 1 - slot } else { slot };
            match self.position(slot) {
                Position::Entry(entry) if !each(entry)? => break,
                Position::End if !is_left => break,
                Position::Broken => {
                    return damaged("an entry of a node of the index", self.place + Self::at(slot));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes the entries whose key words are below this one, and those that are kept in chunks, as far as a
    /// look without care can tell.
    #[inline]
    fn pass(&self, word: u64) -> Passed {
        let mut passed = Passed { at: None, last: None, is_mixed: false };
        for slot in 0..SLOTS {
            let second = self.load(Self::at(slot) + WORD);
            // One test for all that is not a value beside a key word; zero is none either.
            if second.wrapping_sub(1) & (KEPT | VACANT) != 0 {
                if second == END {
                    break;
                }
                passed.is_mixed |= second != HOLE;
                continue;
            }
            if self.load(Self::at(slot)) >= word {
                passed.at = Some(slot);
                break;
            }
            passed.last = Some(slot);
        }
        passed
    }

    /// Whether no entry from this position on has this key word, and none is broken, as far as a look without
    /// care can tell. Entries that move to the right are not missed: each is in its new position before it
    /// leaves the old one.
    #[inline]
    fn is_nowhere(&self, from: usize, word: u64) -> bool {
        for slot in from..SLOTS {
            let second = self.load(Self::at(slot) + WORD);
            if second == END {
                return true;
            }
            let is_it = second & (KEPT | VACANT) == 0 && self.load(Self::at(slot)) == word;
            if is_it || is_broken(second) {
                return false;
            }
        }
        true
    }

    /// Looks for a key.
    #[inline]
    pub(super) fn search(&self, key: &Key<'_>, seen: Seen) -> Result<Option<Entry>> {
        let is_left = seen.is_left();
        if let (Key::Word(word), false) = (key, is_left) {
            // The passed entries were lower: those that stood there, and those that came from the left and
            // were passed there too. Only the entry at which this ends is looked at with care.
            let Passed { at, is_mixed, .. } = self.pass(*word);
            let entry = at.and_then(|slot| self.entry(slot)).filter(|entry| key.is_likely(entry.key));
            if entry.is_some() {
                return Ok(entry);
            }
            // It is not in its place by the order. If it is nowhere behind either, no damaged neighbour hides
            // it.
            if !is_mixed && self.is_nowhere(at.unwrap_or(SLOTS), *word) {
                return Ok(None);
            }
        }
        let mut found = None;
        self.walk(is_left, |entry| {
            if key.is_likely(entry.key) {
                match self.arena.compare_unproved(key, entry.key)? {
                    Ordering::Equal => found = Some(entry),
                    _ => self.arena.prove(entry.key)?,
                }
            }
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// The child of an inner node for a key, and whether there is a separator above the key. If the node
    /// changes meanwhile, the child may be one further to the left, from which links lead on. A damaged
    /// separator that leads astray is the last one that is not above the key, or the first one that is: these
    /// are proved.
    #[inline]
    pub(super) fn route(&self, key: &Key<'_>) -> Result<(u64, bool)> {
        if let Key::Word(word) = key
            && let Some(routed) = self.route_word(*word)
        {
            return Ok(routed);
        }
        let entries = self.entries()?;
        let behind = self.rank(&entries, key)?;
        let child =
            behind.checked_sub(1).map_or_else(|| self.leftmost(), |last| self.child_of(entries[last]))?;
        let above = entries.get(behind).map(|entry| self.child_of(*entry)).transpose()?;
        Ok((child, above.is_some()))
    }

    /// As [`route`](Node::route), for separators outside of chunks; `None` if one that counts changes or is
    /// damaged.
    #[inline]
    fn route_word(&self, word: u64) -> Option<(u64, bool)> {
        // A broken entry counts as mixed.
        let Passed { at, last, is_mixed: false } = self.pass(word) else { return None };
        let proved = |slot| {
            let entry = self.entry(slot).filter(|entry| !entry.key.is_kept)?;
            Some((entry.key.word, self.child_of(entry).ok()?))
        };
        if let Some(slot) = at {
            let (found, child) = proved(slot).filter(|(found, _)| *found >= word)?;
            if found == word {
                return Some((child, false));
            }
        }
        let child = match last {
            Some(slot) => proved(slot).filter(|(found, _)| *found < word)?.1,
            None => self.leftmost().ok()?,
        };
        Some((child, at.is_some()))
    }

    /// How many of the entries have keys up to this one.
    pub(super) fn rank(&self, entries: &[Entry], key: &Key<'_>) -> Result<usize> {
        self.rank_of(entries, key, true)
    }

    /// How many of the entries have lower keys, or this one, if it counts. A damaged key that has misled the
    /// search is one of the two beside its end, which are proved.
    pub(super) fn rank_of(&self, entries: &[Entry], key: &Key<'_>, counts: bool) -> Result<usize> {
        let (mut low, mut high) = (0, entries.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.arena.compare_unproved(key, entries[middle].key)? {
                Ordering::Greater => low = middle + 1,
                Ordering::Equal if counts => low = middle + 1,
                Ordering::Equal | Ordering::Less => high = middle,
            }
        }
        for entry in &entries[low.saturating_sub(1)..entries.len().min(low + 1)] {
            self.arena.prove(entry.key)?;
        }
        Ok(low)
    }

    /// The first entry for which `is_it` says yes, of a node that no thread is changing. It is settled, so
    /// there is nothing wrong with it.
    pub(super) fn find(&self, is_it: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut found = None;
        let end = self.walk(false, |entry| {
            found = is_it(&entry).then_some(entry);
            Ok(found.is_none())
        });
        end.ok().and(found)
    }

    /// All entries, in order.
    pub(super) fn entries(&self) -> Result<Vec<Entry>> {
        self.entries_of(false)
    }

    /// All entries, in order, of a node that may be changing.
    pub(super) fn entries_seen(&self, seen: Seen) -> Result<Vec<Entry>> {
        let mut entries = self.entries_of(seen.is_left())?;
        if seen.is_left() {
            entries.reverse();
        }
        entries.dedup_by_key(|entry| entry.key);
        Ok(entries)
    }

    fn entries_of(&self, is_left: bool) -> Result<Vec<Entry>> {
        let mut entries = Vec::with_capacity(SLOTS);
        self.walk(is_left, |entry| {
            entries.push(entry);
            Ok(true)
        })?;
        Ok(entries)
    }

    /// Where higher keys go.
    #[inline]
    pub(super) fn link(&self) -> Result<Option<Link>> {
        loop {
            let next = self.load(NEXT_LINK + WORD);
            let at = if next == HOLE { LINK } else { NEXT_LINK };
            let (second, word) = (self.load(at + WORD), self.load(at));
            // The first link changes only while the second one counts.
            if self.load(NEXT_LINK + WORD) == next && self.load(at + WORD) == second {
                return match Link::of_words(word, second) {
                    Some(link) => Ok(link),
                    None => damaged("the link of a node of the index", self.place + at),
                };
            }
        }
    }

    /// The sibling that has this key, if this node does not.
    #[inline]
    pub(super) fn sibling_for(&self, key: &Key<'_>) -> Result<Option<Link>> {
        let Some(link) = self.link()? else { return Ok(None) };
        let is_behind = self.arena.compare(key, link.key)? != Ordering::Less;
        Ok(is_behind.then_some(link))
    }

    /// Makes the node durable for a reader that acts on it.
    #[cold]
    pub(super) fn help(&self) {
        self.arena.words.help(self.place, NODE);
    }
}
