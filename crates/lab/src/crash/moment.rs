//! Moments at which a run is stopped, and the activity there.

use super::history::{Expectation, Recorder};
use super::levels::{Disk, DiskImage};
use super::oracle::Time;
use quipu_medium::sim::{Sim, Snapshot};
use quipu_parts::index::IndexGrowth;
use std::cell::RefCell;
use std::rc::Rc;

/// Commits before most crashes of a run of transfers.
pub(super) const MANY_COMMITS: u32 = 10;

/// A frozen moment, with what a crash then may leave.
pub(super) struct Point {
    pub(super) snapshot: Snapshot,
    /// The levels at that moment.
    pub(super) levels: DiskImage,
    pub(super) expectation: Rc<Expectation>,
    /// Operations on persistent memory before it.
    pub(super) operation: u64,
    /// The time of the clock.
    pub(super) time: Time,
    /// It is judged however many there are.
    pub(super) stays: bool,
    pub(super) label: Label,
}

/// The activity at a crash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Label {
    /// Crashes that came before.
    pub(super) depth: u32,
    pub(super) creating: bool,
    pub(super) growing: bool,
    /// A node or segment of the index is being split.
    pub(super) splitting: bool,
    /// One has been, in the life of the pool.
    pub(super) split: bool,
    /// A node of the index has become empty and left it.
    pub(super) removed: bool,
    /// A further zone is being linked to the index.
    pub(super) linking: bool,
    /// One has been.
    pub(super) linked: bool,
    /// Every key is a word.
    pub(super) words: bool,
    /// Time has passed.
    pub(super) timed: bool,
    /// There is a key whose value has expired.
    pub(super) expired: bool,
    pub(super) compacting: bool,
    /// The dead records in segments of an earlier run are not known yet.
    pub(super) surveying: bool,
    pub(super) closing: bool,
    /// A value is being changed in place.
    pub(super) changing: bool,
    /// The records of the pool have one size.
    pub(super) fixed: bool,
    pub(super) recovering: bool,
    /// One order over all writes is demanded.
    pub(super) ordered: bool,
    /// There are several tables.
    pub(super) tables: bool,
    /// A table is being created or dropped.
    pub(super) changing_tables: bool,
    /// Somebody holds a snapshot.
    pub(super) holding: bool,
    /// A range of keys has been deleted, in the life of the pool.
    pub(super) ranged: bool,
    /// Transactions that have committed, in the life of the pool.
    pub(super) commits: u32,
}

/// A kind of states that a report counts.
pub struct Kind {
    /// Its name in JSON.
    pub name: &'static str,
    /// In words, after the number of states.
    pub words: &'static str,
    pub(super) holds: fn(&Label) -> bool,
}

const fn kind(name: &'static str, words: &'static str, holds: fn(&Label) -> bool) -> Kind {
    Kind { name, words, holds }
}

/// All kinds. An index in DRAM shows its splits only if another thread writes to the medium meanwhile;
/// removals of nodes are told by an ordered index in the pool.
pub static KINDS: [Kind; 23] = [
    kind("nested", "nested", |label| label.depth > 0),
    kind("nested_again", "in a recovery of a recovery", |label| label.depth > 1),
    kind("during_recovery", "during recovery", |label| label.recovering),
    kind("during_growth", "during growth", |label| label.growing),
    kind("during_index_split", "during a split of the index", |label| label.splitting),
    kind("after_index_split", "after one", |label| label.split),
    kind("after_index_removal", "after a removal from the index", |label| label.removed),
    kind("during_index_zone", "during a link of the index's zones", |label| label.linking),
    kind("after_index_zone", "after one", |label| label.linked),
    kind("word_keys", "with keys of one word", |label| label.words),
    kind("after_clock", "after the clock had moved", |label| label.timed),
    kind("expired", "with an expired value", |label| label.expired),
    kind("during_compaction", "during compaction", |label| label.compacting),
    kind("during_survey", "during a survey", |label| label.surveying),
    kind("during_close", "during a close", |label| label.closing),
    kind("fixed", "with records of one size", |label| label.fixed),
    kind("during_in_place", "during an update in place", |label| label.changing),
    kind("ordered", "of one order over all writes", |label| label.ordered),
    kind("tables", "with several tables", |label| label.tables),
    kind("during_table_change", "while a table came or went", |label| label.changing_tables),
    kind("with_snapshot", "with a snapshot held", |label| label.holding),
    kind("after_range_delete", "after a range delete", |label| label.ranged),
    kind("after_ten_commits", "after ten commits of transactions", |label| label.commits >= MANY_COMMITS),
];

impl Label {
    /// The label after the index has grown so far, which had so many zones at first.
    pub(super) fn with(self, growth: IndexGrowth, first_zones: u32) -> Label {
        Label {
            splitting: growth.is_splitting,
            split: self.split || growth.splits > 0,
            removed: self.removed || growth.removals > 0,
            linking: growth.is_linking,
            linked: self.linked || growth.zones > first_zones,
            ..self
        }
    }

    /// The part that stays true of the pool after a crash.
    pub(super) fn inherited(self) -> Label {
        let Label {
            depth,
            split,
            removed,
            linked,
            words,
            timed,
            fixed,
            ordered,
            tables,
            ranged,
            commits,
            ..
        } = self;
        let base = Label { depth, split, removed, linked, ranged, commits, ..Label::default() };
        Label { words, timed, fixed, ordered, tables, ..base }
    }
}

/// Points that an observer has collected.
pub(super) type Points = Rc<RefCell<Vec<Point>>>;

/// Adds the moment after a close, which came after these points.
pub(super) fn closed((sim, disk): (&Sim, &Disk), recorder: &RefCell<Recorder>, points: &Points, base: Label) {
    let last = points.borrow().last().map_or(base, |point| point.label.inherited());
    let label = Label { closing: true, depth: base.depth, ..last };
    let time = recorder.borrow().now();
    let expectation = Rc::new(recorder.borrow_mut().expectation());
    let (snapshot, levels) = (sim.snapshot(), disk.image());
    let point = Point { snapshot, levels, expectation, operation: 0, time, stays: true, label };
    points.borrow_mut().push(point);
}
