//! One dirty line: the words that may still be missing from the medium, in the order of the line.
//!
//! The rules (`docs/DURABILITY.md`), as this file keeps them:
//!
//! - An aligned word never tears, so the unit is the word. A plain write of a part of a word is an event of
//!   the whole word as the processor then sees it; hardware could tear it no finer, since the bytes share a
//!   word.
//! - Plain words are unordered: any subset may have arrived. Of two on the same word the later one wins.
//! - An atomic word arrives only after all earlier atomic words of its line, and after the earlier plain
//!   words that the same task wrote in that line.
//! - A non-temporal word is unordered against everything until its task fences, even against others on the
//!   same word: either may end up there.
//! - A fence merges words into the durable image in the line's order. A non-temporal word that is still
//!   pending may override a later word that became durable before it. `superseded` marks that case: once its
//!   own fence comes the word has lost, since the processor sees the later one. When a non-temporal word
//!   becomes durable, earlier cached words below it are gone: the non-temporal store took the line out of the
//!   caches.

use crate::arch::LINE;
use crate::region::WORD;

/// Words in a line.
pub(crate) const WORDS: usize = (LINE / WORD) as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Atomic,
    NonTemporal,
}

/// A word on its way to the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// Position in the one order of all events of the region, of which the order of a line is a part.
    pub(crate) order: u64,
    /// The word as it lies in memory.
    pub(crate) value: u64,
    /// The thread that wrote it, numbered uniquely over all runs.
    pub(crate) owner: u32,
    /// Word within the line.
    pub(crate) word: u8,
    pub(crate) kind: Kind,
    /// A later word is durable already; this one may still land on top of it, until its fence.
    pub(crate) superseded: bool,
}

/// A line with pending words.
#[derive(Debug, Default)]
pub(crate) struct DirtyLine {
    /// Number of the line in the region.
    pub(crate) line: u32,
    /// Never empty while the line is listed; ascending by `order`.
    pub(crate) events: Vec<Pending>,
}

impl DirtyLine {
    /// Makes the events durable that `arrives` selects; `store` receives the words in order.
    ///
    /// Of the cached events (all except non-temporal ones) `arrives` must select a prefix of the line's
    /// order, as every flush does. Then the words that stay pending never depend on dropped ones.
    #[inline]
    pub(crate) fn settle(&mut self, arrives: impl Fn(&Pending) -> bool, mut store: impl FnMut(u8, u64)) {
        let mut kept = 0;
        // Words with an earlier event still pending: the only ones for which order matters below.
        let mut held = 0u8;
        for index in 0..self.events.len() {
            let event = self.events[index];
            let bit = 1 << event.word;
            if !arrives(&event) {
                self.events[kept] = event;
                kept += 1;
                held |= bit;
                continue;
            }
            if event.superseded {
                continue;
            }
            store(event.word, event.value);
            if held & bit != 0 {
                let streamed = event.kind == Kind::NonTemporal;
                let mut left = 0;
                for earlier in 0..kept {
                    let mut other = self.events[earlier];
                    if other.word == event.word {
                        if streamed && other.kind != Kind::NonTemporal {
                            continue;
                        }
                        other.superseded = true;
                    }
                    self.events[left] = other;
                    left += 1;
                }
                kept = left;
            }
        }
        self.events.truncate(kept);
    }
}
