//! Which parents a cleaner marks, and in which order: "marked reversely" (section III-F).
//!
//! A walk along parents ends where nothing is left, so an entry may be marked only when everything before it
//! is durably gone. Marks are collected by *level*: a level holds those whose parents are all on lower ones.
//! One fence a level makes them durable.

use quipu_parts::heap::Reference;
use quipu_parts::heap::nlog::{Before, Entry, Nlog};
use quipu_parts::space::ZoneId;
use quipu_parts::twin;
use std::collections::HashMap;

/// Entries whose parents are marked together.
const BATCH: usize = 256;

/// The treatment of an entry on its level.
enum Act {
    Mark(Entry),
    /// Its mark is there, and perhaps not durable.
    Help(Reference),
}

/// The marks of a batch of entries of a victim.
pub(super) struct Levels<'h> {
    nlog: Nlog<'h>,
    victim: ZoneId,
    levels: Vec<Vec<Act>>,
    /// The level of each parent that was collected, by the word that names it.
    known: HashMap<u64, usize>,
    traced: usize,
    /// Parents on the way from an entry, the nearest first, with the words that name them.
    path: Vec<(u64, Entry)>,
    buffer: Vec<u8>,
}

impl<'h> Levels<'h> {
    pub(super) fn new(nlog: Nlog<'h>, victim: ZoneId) -> Levels<'h> {
        let (levels, known, path, buffer) = Default::default();
        Levels { nlog, victim, levels, known, traced: 0, path, buffer }
    }

    /// Collects the parents of an entry of this key.
    ///
    /// Parents in the victim go with it, and their own parents are traced from them. But if one outside comes
    /// first, the ones in the victim are marked as well: they are to be gone before that one is.
    pub(super) fn trace(&mut self, entry: Entry, key: &[u8]) {
        let (mut child, mut is_inside) = (entry, true);
        let below = loop {
            if let Some(level) = self.known.get(&child.parent) {
                break level + 1;
            }
            match self.nlog.before(&child, key, &mut self.buffer) {
                Before::Nothing => break 0,
                Before::Marked(place) => {
                    self.add(0, child.parent, Act::Help(place));
                    break 1;
                }
                Before::Entry(parent) => {
                    let is_in_victim = self.nlog.zone_of(parent.reference) == self.victim;
                    is_inside &= is_in_victim;
                    if is_inside || (is_in_victim && twin!(StoppedInside)) {
                        break 0;
                    }
                    self.path.push((child.parent, parent));
                    child = parent;
                }
            }
        };
        let mut path = std::mem::take(&mut self.path);
        let last = path.len();
        for (step, (word, parent)) in path.drain(..).rev().enumerate() {
            let step = match () {
                () if twin!(MarkedForwards) => last - step,
                () if twin!(MarkedAtOnce) => 0,
                () => step,
            };
            self.add(below + step, word, Act::Mark(parent));
        }
        self.path = path;
        self.traced += 1;
        if self.traced == BATCH {
            self.carry_out();
        }
    }

    fn add(&mut self, level: usize, word: u64, act: Act) {
        while self.levels.len() <= level {
            self.levels.push(Vec::new());
        }
        self.levels[level].push(act);
        self.known.insert(word, level);
    }

    /// Marks all that was collected, durably when this returns.
    pub(super) fn carry_out(&mut self) {
        for level in &mut self.levels {
            if level.is_empty() {
                continue;
            }
            for act in level.drain(..) {
                match act {
                    Act::Mark(entry) => self.nlog.mark(&entry),
                    Act::Help(_) if twin!(MarkNotHelped) => {}
                    Act::Help(place) => self.nlog.help(place),
                }
            }
            if !twin!(MarksUnfenced) {
                self.nlog.fence();
            }
        }
        self.known.clear();
        self.traced = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_medium::{Pages, Region};
    use quipu_parts::heap::nlog::{Files, NlogSettings};
    use quipu_parts::heap::segments::{LogHeap, Use};
    use quipu_parts::heap::{Clock, ClockSettings, Numbers};
    use quipu_parts::record::{Certifier, Content, Encoder, RecordView};
    use quipu_parts::space::{FormatOptions, FreeListKind, Space};
    use quipu_parts::twin::{Twin, leave_out};

    const KEY: &[u8] = b"key";

    /// Files of two clusters in a pool of their own, for as long as the process lives.
    fn nlog() -> Nlog<'static> {
        let options = FormatOptions {
            zone_size: 16 << 10,
            design: 1,
            settings: [0; _],
            pools: Vec::new(),
            free_list: FreeListKind::Persistent,
            secret: [1; 32],
            boot_id: [7; 16],
        };
        let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
        let space = Space::format(region, &options).expect("a new pool");
        let clock = Clock::resume(&space, ClockSettings { block: 10, handful: 4 }, false);
        let heap = Box::leak(Box::new(LogHeap::new(space, Certifier::new(&[1; 32]), clock, 2)));
        Box::leak(Box::new(Files::new(heap, NlogSettings { clusters: 2 }))).of(heap)
    }

    /// Writes a value of the key to a cluster, and returns the entry of the record.
    fn write(nlog: Nlog<'_>, cluster: usize, parent: u64, newest: &mut u64) -> Entry {
        let content = Content::value(KEY, b"value").after(parent);
        let home = nlog.home(0, cluster);
        let spot = nlog.reserve(home, content.record_len(), Use::Put).expect("room");
        *newest = spot.draw_above(&mut Numbers::default(), *newest);
        let mut encoder = Encoder::default();
        assert!(spot.write(&mut encoder, &content, *newest).is_none());
        let record = RecordView::legible(encoder.record()).expect("a record");
        let entry = Entry::of(spot.reference(), nlog.life_of(spot.reference()), &record);
        nlog.fence();
        spot.published();
        entry
    }

    /// Two nodes write one key by turns, so its chain leaves the victim and comes back. One of its entries
    /// behind one outside must be gone before that one is: the mark outside may survive a crash that the
    /// cleaning does not, and later walks end there.
    #[test]
    fn entries_of_the_victim_behind_one_outside_are_marked_before_it() {
        let levels_of = |twin| {
            let _left_out = leave_out(twin);
            let (nlog, mut newest) = (nlog(), 0);
            let first = write(nlog, 0, 0, &mut newest);
            let outside = write(nlog, 1, nlog.parent_word(first.reference), &mut newest);
            let last = write(nlog, 0, nlog.parent_word(outside.reference), &mut newest);
            let inside = write(nlog, 0, nlog.parent_word(last.reference), &mut newest);
            let victim = nlog.zone_of(first.reference);
            assert_ne!(nlog.zone_of(outside.reference), victim);
            let mut levels = Levels::new(nlog, victim);
            for entry in [first, last, inside] {
                levels.trace(entry, KEY);
            }
            let places = |level: &Vec<Act>| {
                let place = |act: &Act| match act {
                    Act::Mark(entry) => entry.reference,
                    Act::Help(place) => *place,
                };
                level.iter().map(place).collect::<Vec<_>>()
            };
            let found: Vec<_> = levels.levels.iter().map(places).collect();
            (found, first.reference, outside.reference)
        };
        let (levels, first, outside) = levels_of(None);
        assert_eq!(levels, [[first], [outside]]);
        let (levels, _, outside) = levels_of(Some(Twin::StoppedInside));
        assert_eq!(levels, [[outside]]);
    }
}
