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
    use quipu_medium::sim::{Event, Image, Sim, SimArena, SimOptions, Snapshot};
    use quipu_medium::{Pages, Region};
    use quipu_parts::heap::nlog::{Files, NlogSettings};
    use quipu_parts::heap::segments::{LogHeap, Use};
    use quipu_parts::heap::{Clock, ClockSettings, Numbers};
    use quipu_parts::record::{Certifier, Content, Encoder, RecordView};
    use quipu_parts::space::{FormatOptions, FreeListKind, Space};
    use quipu_parts::twin::{Twin, leave_out};
    use std::sync::{Arc, Mutex};

    const KEY: &[u8] = b"key";

    /// Files of two clusters in a pool of their own, for as long as the process lives.
    fn nlog() -> Nlog<'static> {
        nlog_on(Region::dram(1 << 20, Pages::Ordinary).expect("memory")).0
    }

    fn nlog_on(region: Region) -> (Nlog<'static>, &'static LogHeap) {
        let options = FormatOptions {
            zone_size: 16 << 10,
            design: 1,
            settings: [0; _],
            pools: Vec::new(),
            free_list: FreeListKind::Persistent,
            secret: [1; 32],
            boot_id: [7; 16],
        };
        let space = Space::format(region, &options).expect("a new pool");
        let clock = Clock::resume(&space, ClockSettings { block: 10, handful: 4 }, false);
        let heap = Box::leak(Box::new(LogHeap::new(space, Certifier::new(&[1; 32]), clock, 2)));
        (Box::leak(Box::new(Files::new(heap, NlogSettings { clusters: 2 }))).of(heap), heap)
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

    /// The power fails at some operation while the parents of an entry are marked, or when they are. Tells
    /// whether each image has the marks of all parents that stand before a marked one, and whether all are
    /// there in the end.
    fn marks_survive_in_order(rule: Option<Twin>) -> (bool, bool) {
        let region = Region::sim(SimOptions { len: 1 << 20, ..SimOptions::default() });
        let ((nlog, heap), mut newest) = (nlog_on(region.clone()), 0);
        let mut chain: Vec<Entry> = Vec::new();
        for cluster in [1, 1, 1, 0] {
            let parent = chain.last().map_or(0, |parent| nlog.parent_word(parent.reference));
            chain.push(write(nlog, cluster, parent, &mut newest));
        }
        let entry = chain.pop().expect("the last one");
        // A mark changes the first word.
        let first_words = |region: &Region| -> Vec<u64> {
            chain.iter().map(|parent| region.load(heap.resolve(parent.reference))).collect()
        };
        let unmarked = first_words(&region);
        let mut levels = Levels::new(nlog, nlog.zone_of(entry.reference));
        let _left_out = leave_out(rule);
        levels.trace(entry, KEY);
        let sim = region.simulator().expect("simulated");
        let crashes = Arc::new(Mutex::new(Vec::new()));
        let noted = crashes.clone();
        let note = move |sim: &Sim, _: Event| noted.lock().expect("no panic").push(sim.snapshot());
        sim.set_observer(Some(Box::new(note)));
        levels.carry_out();
        sim.set_observer(None);
        let (mut arena, mut is_in_order) = (SimArena::new(), true);
        let mut marks_of = |snapshot: &Snapshot, image: &Image| {
            let words = first_words(&arena.boot(snapshot, image, 1));
            words.iter().zip(&unmarked).map(|(word, before)| word != before).collect::<Vec<_>>()
        };
        for crash in crashes.lock().expect("no panic").iter() {
            for image in crash.images(1, 16) {
                is_in_order &= marks_of(crash, &image).is_sorted_by_key(|is_marked| !is_marked);
            }
        }
        let end = sim.snapshot();
        (is_in_order, marks_of(&end, &end.nothing()) == [true; 3])
    }

    #[test]
    fn a_crash_leaves_no_mark_of_an_entry_without_those_before_it() {
        assert_eq!(marks_survive_in_order(None), (true, true));
        assert_eq!(marks_survive_in_order(Some(Twin::MarkedForwards)), (false, true));
        assert_eq!(marks_survive_in_order(Some(Twin::MarkedAtOnce)), (false, true));
        assert_eq!(marks_survive_in_order(Some(Twin::MarksUnfenced)), (false, false));
    }
}
