//! Walking over the keys in their order, while the index changes.
//!
//! A walk copies what a border node has at one moment, hands out what comes behind the last key that it has handed out, and
//! goes to the next node. Keys move only to the right of where they were, by splits: into nodes that the walk has not
//! reached, or between the one that it has copied and the one that followed that then. So a key that is there all the time is
//! seen exactly once. If the next node has gone, its keys had before, and the walk looks from above for what comes next.
//!
//! How far a walk has come is said by a key and not by a node. So it can rest for as long as it likes, unpinned.

use super::border::{Entry, LAYER};
use super::descend::Leaf;
use super::key::{LONGER, Piece, SLICE, push_slice};
use super::nodes::Link;
use super::permutation::SLOTS;
use super::tree::Masstree;
use super::version::Seen;
use crate::epoch::Guard;
use crate::sync::Waiter;
use crate::sync::atomic::Ordering;
use std::cmp;

/// Layers to which a walk finds back without looking from above.
const REMEMBERED: usize = 8;

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    /// At the key.
    #[default]
    At,
    /// Behind the key.
    Behind,
    /// Behind all keys that begin with this one, which is whole slices.
    BehindPrefix,
    /// Nowhere.
    End,
}

/// How far a walk has come; starts at the lowest key.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    key: Vec<u8>,
    position: Position,
}

impl Cursor {
    /// A walk that begins at this key, if it is there, and else behind it.
    pub fn at(key: &[u8]) -> Cursor {
        Cursor { key: key.to_vec(), position: Position::At }
    }

    /// A walk that begins behind this key.
    pub fn behind(key: &[u8]) -> Cursor {
        Cursor { key: key.to_vec(), position: Position::Behind }
    }

    /// Whether an entry of the layer behind the first `offset` bytes is still to come.
    fn awaits(&self, offset: usize, entry: &Entry<'_>) -> bool {
        let piece = Piece::at(&self.key, offset);
        let rank = if self.position == Position::BehindPrefix { LONGER } else { piece.rank };
        match (entry.order().cmp(&(piece.slice, rank)), self.position) {
            (cmp::Ordering::Equal, Position::At) => entry.suffix >= piece.suffix,
            (cmp::Ordering::Equal, Position::Behind) => entry.suffix > piece.suffix,
            (order, _) => order.is_gt(),
        }
    }

    /// Goes to an entry of that layer, which is handed out now; to a link as to the key that ends with its slice, before all
    /// keys that the link leads to.
    fn go_to(&mut self, offset: usize, entry: &Entry<'_>) {
        self.key.truncate(offset);
        push_slice(&mut self.key, entry.slice, entry.class);
        self.key.extend_from_slice(entry.suffix);
        self.position = Position::Behind;
    }

    /// Goes to what follows that layer.
    fn leave_layer(&mut self, offset: usize) {
        self.key.truncate(offset);
        self.position = if offset == 0 { Position::End } else { Position::BehindPrefix };
    }
}

/// A border node at which a walk is.
#[derive(Clone, Copy)]
struct Stop {
    number: u32,
    seen: Seen,
    offset: usize,
}

/// What a border node had at one moment.
struct Snapshot<'g> {
    entries: [Option<Entry<'g>>; SLOTS],
    next: u32,
}

/// A walk during a call.
struct Walk<'c> {
    cursor: &'c mut Cursor,
    /// Keys that may still be handed out.
    left: usize,
    /// The nodes with the links to the layer in which it is, and to those above, as far as it has come through them.
    above: [Option<Stop>; REMEMBERED],
}

impl Walk<'_> {
    /// The node with the link to the layer that it has left, if it came through that.
    fn node_above(&self) -> Option<Stop> {
        let offset = self.cursor.key.len().checked_sub(SLICE)?;
        let stop = self.above[offset / SLICE % REMEMBERED]?;
        (self.cursor.position == Position::BehindPrefix && stop.offset == offset).then_some(stop)
    }
}

impl Masstree {
    /// Hands out keys and words in order, `limit` at most, and moves the cursor behind them. Returns how many they were; fewer
    /// than `limit` only at the end. No lock is held meanwhile.
    ///
    /// A key that is in the index from the first call to the last is handed out exactly once, whatever happens in between; its
    /// word is one that it had during the call.
    pub fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Cursor,
        limit: usize,
        mut visit: impl FnMut(&[u8], u64),
    ) -> usize {
        let mut walk = Walk { cursor, left: limit, above: [None; REMEMBERED] };
        let mut waiter = Waiter::default();
        while walk.left > 0 && walk.cursor.position != Position::End {
            let mut stop = Some(self.resume(guard, &mut walk));
            while let Some(at) = stop {
                stop = self.pass(guard, &mut walk, at, &mut visit);
            }
            if matches!(walk.cursor.position, Position::At | Position::Behind) {
                waiter.wait();
            }
        }
        limit - walk.left
    }

    /// The node in which a walk goes on, as its cursor says.
    fn resume(&self, guard: &Guard<'_>, walk: &mut Walk<'_>) -> Stop {
        if let Some(stop) = walk.node_above() {
            // While a node is for the slices that it was for, it is the one to go back to.
            let seen = self.nodes.border(stop.number).version.stable();
            if !seen.has_left(stop.seen) {
                return Stop { seen, ..stop };
            }
        }
        walk.above = [None; REMEMBERED];
        let Leaf { number, seen, offset, .. } = self.find(guard, &walk.cursor.key);
        Stop { number, seen, offset }
    }

    /// Hands out what a node has for a walk. Returns the next node; nothing if that is for the cursor to say, or if the walk is
    /// over.
    fn pass(
        &self,
        guard: &Guard<'_>,
        walk: &mut Walk<'_>,
        stop: Stop,
        visit: &mut impl FnMut(&[u8], u64),
    ) -> Option<Stop> {
        let snapshot = self.snapshot(guard, &stop)?;
        self.nodes.prefetch(Link::border(snapshot.next));
        let all = snapshot.entries.iter().flatten();
        let passed = all.clone().take_while(|entry| !walk.cursor.awaits(stop.offset, entry)).count();
        for entry in all.skip(passed) {
            walk.cursor.go_to(stop.offset, entry);
            if entry.class == LAYER {
                walk.above[stop.offset / SLICE % REMEMBERED] = Some(stop);
                let (number, seen) = self.leftmost(Link::from_bits(entry.word as u32))?;
                return Some(Stop { number, seen, offset: stop.offset + SLICE });
            }
            visit(&walk.cursor.key, entry.word);
            walk.left -= 1;
            if walk.left == 0 {
                return None;
            }
        }
        if snapshot.next == 0 {
            walk.cursor.leave_layer(stop.offset);
            return None;
        }
        let seen = self.nodes.border(snapshot.next).version.stable();
        seen.is_live().then_some(Stop { number: snapshot.next, seen, ..stop })
    }

    /// What a node has, if it is still as it was seen.
    fn snapshot<'g>(&self, guard: &'g Guard<'_>, stop: &Stop) -> Option<Snapshot<'g>> {
        let border = self.nodes.border(stop.number);
        let slots = border.permutation();
        let mut entries = [None; SLOTS];
        let places = entries.iter_mut().zip(slots.slots());
        // A suffix has a byte at least: without, the key was removed meanwhile, which does not change the version.
        let is_whole = |entry: &Entry<'_>| entry.class != LONGER || !entry.suffix.is_empty();
        places.for_each(|(entry, slot)| *entry = Some(border.entry(guard, slot)).filter(is_whole));
        let next = border.next.load(Ordering::Acquire);
        (!border.version.has_changed(stop.seen)).then_some(Snapshot { entries, next })
    }
}
