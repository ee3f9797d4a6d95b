//! Finding out, after a restart, which nodes and chunks of earlier runs are in use: all others are free.
//!
//! The index is usable before that, and takes new zones as long as no free units are known. A change that
//! needs one goes some steps of the walk, so that no single one waits for all of it, unless the pool has no
//! zone left. The walk goes over all levels from the root's down, each from left to right, and settles every
//! node, so it also finishes interrupted changes in nodes that no other thread has visited.
//!
//! The walk meets every unit that is in use at the restart and stays in use. A node that splits gives its
//! entries to one further to the right. The walk remembers a key, so it comes again to a node that has taken
//! over from the next one. Units that are allocated or freed meanwhile are noted then.

use super::arena::Kind;
use super::key::KeyBuf;
use super::settings::Result;
use super::tree::FastFairIndex;
use crate::epoch::Guard;
use crate::index::IndexError;
use crate::index::words::Words;

/// Nodes that a change visits before it takes another zone.
const STEPS: usize = 64;

/// How far the walk has come.
pub(super) struct Sweep {
    /// The level, and the key from which on its nodes have not been visited; `None` before the first.
    next: Option<(u32, KeyBuf)>,
    is_done: bool,
}

impl Sweep {
    /// Of an index that is new, or of one from an earlier run.
    pub(super) fn new(is_done: bool) -> Sweep {
        Sweep { next: None, is_done }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }
}

impl<W: Words> FastFairIndex<W> {
    /// Finds all free nodes and chunks of earlier runs, and settles all nodes, so that hints to them are good
    /// again. For an idle thread after a restart; without one, changes that need room do it step by step.
    ///
    /// # Errors
    /// [`IndexError::Space`](crate::index::IndexError::Space) for a damaged index.
    pub fn sweep(&self, guard: &Guard<'_>) -> Result<()> {
        while !self.sweep_some(guard, STEPS)? {}
        Ok(())
    }

    /// Visits up to so many nodes; true if there is none left.
    fn sweep_some(&self, _guard: &Guard<'_>, steps: usize) -> Result<bool> {
        let mut sweep = self.sweep.lock();
        for _ in 0..steps {
            if sweep.is_done {
                return Ok(true);
            }
            let (level, from) = match sweep.next.take() {
                Some(next) => next,
                None => (self.top_level()?, KeyBuf::Bytes(Vec::new())),
            };
            let visited = self.visit(level, &from);
            match visited {
                Ok(Some(next)) => sweep.next = Some((level, next)),
                Ok(None) if level > 0 => sweep.next = Some((level - 1, KeyBuf::Bytes(Vec::new()))),
                Ok(None) => {
                    self.arena.free_unknown();
                    sweep.is_done = true;
                }
                Err(error) => {
                    sweep.next = Some((level, from));
                    return Err(error);
                }
            }
        }
        Ok(sweep.is_done)
    }

    /// Visits the node of a key on a level; returns where its keys end.
    fn visit(&self, level: u32, from: &KeyBuf) -> Result<Option<KeyBuf>> {
        let locked = self.lock_by(&from.as_key(), level, |_| Ok(()))?;
        for entry in locked.entries()? {
            self.arena.know_kept(entry.key)?;
        }
        let Some(link) = locked.link()? else { return Ok(None) };
        self.arena.know_kept(link.key)?;
        Ok(Some(self.arena.key(link.key)?))
    }

    /// A node or a chunk. Nothing is locked.
    pub(super) fn allocate(&self, guard: &Guard<'_>, kind: Kind) -> Result<u64> {
        loop {
            if let Some(number) = self.arena.take(kind) {
                return Ok(number);
            }
            // A damaged node ends the walk, so no unknown unit is taken for free; the index grows all the
            // same.
            let swept = self.sweep_some(guard, STEPS);
            if self.arena.free(kind) > 0 {
                continue;
            }
            match self.arena.extend(kind) {
                Err(IndexError::Full(_)) if !matches!(swept, Ok(true)) => self.sweep(guard)?,
                result => result?,
            }
        }
    }
}
