//! Levels against a model: one suite for simulated levels and for those in files.

use proptest::prelude::*;
use quipu_lab::sim_levels::SimForest;
use quipu_parts::record::Kind;
use quipu_parts::runs::lsm::{Access, LsmForest, LsmSettings};
use quipu_parts::runs::{Compact, Forest, Head, LevelRecord, Levels, Notice, Part, Purge, Runs, Source};
use quipu_parts::versions::{Horizon, RangeList, RangeTombstone};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The table of all these tests.
pub const TABLE: u64 = 7;

/// A range of all keys.
fn all_keys() -> RangeTombstone {
    RangeTombstone { from: Box::default(), to: Box::default(), number: u64::MAX }
}

/// A place where forests are opened, one after the other.
pub trait Place {
    fn forest(&self) -> Box<dyn Forest>;
}

#[derive(Default)]
pub struct Simulated(RefCell<SimForest>);

impl Place for Simulated {
    fn forest(&self) -> Box<dyn Forest> {
        let next = SimForest::from_image(self.0.borrow().image());
        *self.0.borrow_mut() = next.clone();
        Box::new(next)
    }
}

pub struct Folder(pub tempfile::TempDir);

pub fn settings() -> LsmSettings {
    LsmSettings {
        cache: 1 << 20,
        first_level: 2,
        file: 8 << 10,
        pool: 5,
        read_only: false,
        access: Access::default(),
    }
}

impl Place for Folder {
    fn forest(&self) -> Box<dyn Forest> {
        Box::new(LsmForest::open(self.0.path(), settings()).expect("the folder of these levels"))
    }
}

/// Calls with a place of each kind.
fn on_each(call: impl Fn(&dyn Place)) {
    call(&Simulated::default());
    call(&Folder(tempfile::tempdir().unwrap()));
}

/// Records in order.
pub struct Records<'r>(pub std::slice::Iter<'r, LevelRecord>);

impl Source for Records<'_> {
    fn next(&mut self) -> Option<(&[u8], Head, &[u8])> {
        self.0.next().map(|record| (&*record.key, record.head, &*record.value))
    }
}

pub fn value(key: &[u8], number: u64) -> LevelRecord {
    let head = Head { number, version: number, kind: Kind::Value, expires: 0 };
    LevelRecord { key: key.to_vec(), head, value: vec![number as u8; 300] }
}

pub fn write(runs: &dyn Runs, records: &[LevelRecord]) -> Part {
    runs.write(&[], &mut Records(records.iter())).expect("room")
}

pub fn publish(runs: &dyn Runs, records: &[LevelRecord]) {
    runs.publish(vec![write(runs, records)]).expect("published");
}

/// The number and value of a key.
pub fn get(levels: &dyn Levels, key: &[u8], up_to: u64) -> Option<(Head, Vec<u8>)> {
    let mut out = vec![3];
    let head = levels.get(key, up_to, &mut out).expect("sound")?;
    assert_eq!(out.remove(0), 3, "the bytes before stay");
    Some((head, out))
}

/// For compactions of which nobody wants to know before.
pub fn nobody() -> Notice {
    Arc::new(|| Ok(()))
}

/// The limits of a purge when nobody has a snapshot, and all up to a number is visible.
pub fn purge(visible: u64) -> Purge {
    Purge { horizon: Horizon::new(visible, []), ranges: RangeList::default(), now: 0 }
}

#[derive(Clone, Debug)]
enum Step {
    Write { key: u8, kind: u8, moved: bool },
    Range { from: u8, len: u8 },
    Dump { parts: u8, twice: bool, discards: bool },
    Compact { all: bool },
    Snapshot,
    Release(prop::sample::Index),
    Tick,
    DropRange { from: u8, len: u8 },
    Reopen,
}

const KEYS: u8 = 24;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write =
        (0..KEYS, 0..8u8, any::<bool>()).prop_map(|(key, kind, moved)| Step::Write { key, kind, moved });
    let range = (0..KEYS, 1..KEYS).prop_map(|(from, len)| Step::Range { from, len });
    let dump = (1..4u8, 0..6u8, 0..6u8).prop_map(|(parts, twice, discards)| Step::Dump {
        parts,
        twice: twice == 0,
        discards: discards == 0,
    });
    let step = prop_oneof![
        60 => write,
        2 => range,
        10 => dump,
        5 => (0..4u8).prop_map(|all| Step::Compact { all: all == 0 }),
        3 => Just(Step::Snapshot),
        3 => any::<prop::sample::Index>().prop_map(Step::Release),
        2 => Just(Step::Tick),
        1 => (0..KEYS, 1..KEYS).prop_map(|(from, len)| Step::DropRange { from, len }),
        2 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 0..250)
}

/// Short and long keys, the empty one too.
fn name(key: u8) -> Vec<u8> {
    match key {
        0 => vec![],
        KEYS.. => vec![0xff; 3],
        key if key % 7 == 0 => [&[key][..], &[b'k'; 200]].concat(),
        key => vec![key],
    }
}

fn range_of(from: u8, len: u8, number: u64) -> RangeTombstone {
    let to = if from + len >= KEYS { vec![] } else { name(from + len) };
    RangeTombstone { from: name(from).into(), to: to.into(), number }
}

/// A range tombstone of the list, as a store keeps it.
struct Listed {
    range: RangeTombstone,
    /// It deletes nothing in runs with ids from here on.
    base: Option<u64>,
}

/// The levels, and all that was ever dumped.
struct Model<'p> {
    place: &'p dyn Place,
    forest: Box<dyn Forest>,
    runs: Arc<dyn Runs>,
    records: BTreeMap<Vec<u8>, BTreeMap<u64, LevelRecord>>,
    ranges: Vec<RangeTombstone>,
    listed: Vec<Listed>,
    snapshots: Vec<u64>,
    visible: u64,
    now: u64,
}

impl Model<'_> {
    fn is_hidden(&self, record: &LevelRecord, ranges: &[RangeTombstone], up_to: u64) -> bool {
        let head = &record.head;
        head.kind == Kind::Tombstone
            || head.expires != 0 && head.expires <= self.now
            || ranges
                .iter()
                .any(|range| range.holds(&record.key) && head.number < range.number && range.number <= up_to)
    }

    fn expected(&self, key: &[u8], up_to: u64) -> Option<LevelRecord> {
        let (_, newest) = self.records.get(key)?.range(..=up_to).next_back()?;
        (!self.is_hidden(newest, &self.ranges, up_to)).then(|| newest.clone())
    }

    /// The records that a scan shows to a reader.
    fn shown(&self, scan: impl Iterator<Item = LevelRecord>, up_to: u64) -> Vec<LevelRecord> {
        let ranges: Vec<_> = self.listed.iter().map(|listed| listed.range.clone()).collect();
        scan.filter(|record| !self.is_hidden(record, &ranges, up_to)).collect()
    }

    fn check(&self) {
        let levels = self.runs.levels();
        for up_to in self.snapshots.iter().copied().chain([self.visible, u64::MAX]) {
            let all: Vec<_> = (0..=KEYS).filter_map(|key| self.expected(&name(key), up_to)).collect();
            for key in 0..=KEYS {
                let found = get(&*levels, &name(key), up_to);
                let record = found.map(|(head, value)| LevelRecord { key: name(key), head, value });
                let found = self.shown(record.into_iter(), up_to);
                assert_eq!(found.first(), self.expected(&name(key), up_to).as_ref(), "{key} at {up_to}");
            }
            for from in [0, 5, 14, KEYS] {
                let found = levels.scan(&name(from), up_to).map(|record| record.expect("sound"));
                let found = self.shown(found, up_to);
                let expected = all.iter().filter(|record| record.key >= name(from));
                assert!(found.iter().eq(expected), "from {from} at {up_to}");
            }
            let ends = [Bound::Included(0), Bound::Excluded(5), Bound::Included(14), Bound::Excluded(KEYS)];
            for to in ends.into_iter().chain([Bound::Unbounded]) {
                let key = to.map(name);
                let bound = key.as_ref().map(|to| &**to);
                let found = levels.scan_back(bound, up_to).map(|record| record.expect("sound"));
                let found = self.shown(found, up_to);
                let is_before = |record: &&LevelRecord| (Bound::Unbounded, bound).contains(&*record.key);
                let expected = all.iter().rev().filter(is_before);
                assert!(found.iter().eq(expected), "back from {to:?} at {up_to}");
            }
        }
        let in_files = levels.ranges().expect("sound");
        assert!(self.listed.iter().all(|listed| in_files.contains(&listed.range)));
        let (mut count, stats) = (in_files.len() as u64, self.runs.stats());
        levels.check(&mut |_, _| count += 1).expect("sound");
        // A range tombstone of a repeated dump may stand twice.
        assert!(count <= stats.records);
        assert!(levels.highest() <= Some(self.visible));
        assert!(levels.lowest_id(&all_keys()) < Some(self.runs.next_id()));
    }

    fn purge(&self) -> Purge {
        let mut snapshots = self.snapshots.clone();
        snapshots.sort_unstable();
        let ranges = RangeList::new(self.listed.iter().map(|listed| listed.range.clone()).collect());
        Purge { horizon: Horizon::new(self.visible, snapshots), ranges, now: self.now }
    }

    /// Takes the range tombstones off the list that delete nothing any more.
    fn tidy(&mut self) {
        let lowest = self.runs.levels().lowest_id(&all_keys());
        for listed in &mut self.listed {
            if listed.base.is_none() && self.snapshots.iter().all(|at| *at >= listed.range.number) {
                listed.base = Some(self.runs.next_id());
            }
        }
        self.listed
            .retain(|listed| listed.base.is_none_or(|base| lowest.is_some_and(|lowest| lowest < base)));
    }

    fn dump(&mut self, batch: &mut Vec<LevelRecord>, ranges: &mut Vec<RangeTombstone>, step: &Step) {
        let Step::Dump { parts, twice, discards } = *step else { return };
        batch.sort_by(|one, next| (&one.key, next.head.number).cmp(&(&next.key, one.head.number)));
        let write = |runs: &dyn Runs| -> Vec<Part> {
            let cuts: Vec<u8> = (0..=parts).map(|part| part * KEYS / parts).collect();
            let of = |cut: &[u8]| {
                let from = batch.partition_point(|record| record.key < name(cut[0]));
                let to = batch.partition_point(|record| cut[1] == KEYS || record.key < name(cut[1]));
                let ranges = if cut[0] == 0 { &**ranges } else { &[] };
                let part = runs.write(ranges, &mut Records(batch[from..to].iter())).expect("room");
                assert_eq!(part.records, (to - from + ranges.len()) as u64);
                part
            };
            cuts.windows(2).map(of).collect()
        };
        if discards {
            write(&*self.runs).into_iter().for_each(|part| self.runs.discard(part));
        }
        for _ in 0..=u8::from(twice) {
            self.runs.publish(write(&*self.runs)).expect("published");
        }
        for record in batch.drain(..) {
            self.records.entry(record.key.clone()).or_default().insert(record.head.number, record);
        }
        for range in ranges.drain(..) {
            self.ranges.push(range.clone());
            self.listed.push(Listed { range, base: None });
        }
    }

    /// With all purged, exactly the live records are left.
    fn finish(&mut self) {
        self.snapshots.clear();
        for _ in 0..2 {
            self.tidy();
            self.runs.compact(Compact::All, self.purge(), &nobody()).expect("compacted");
        }
        self.check();
        let live = (0..=KEYS).filter(|key| self.expected(&name(*key), u64::MAX).is_some()).count();
        self.tidy();
        self.runs.compact(Compact::All, self.purge(), &nobody()).expect("compacted");
        assert!(self.listed.is_empty());
        assert_eq!(self.runs.stats().records, live as u64);
    }
}

fn run(place: &dyn Place, steps: &[Step]) {
    let forest = place.forest();
    let runs = forest.open(TABLE).expect("opened");
    let (records, ranges, listed, snapshots) = (BTreeMap::new(), vec![], vec![], vec![]);
    let mut model = Model { place, forest, runs, records, ranges, listed, snapshots, visible: 0, now: 100 };
    let (mut batch, mut ranges, mut number) = (Vec::new(), Vec::new(), 0);
    for step in steps {
        match *step {
            Step::Write { key, kind, moved } => {
                number += 1;
                let (kind, expires) = match kind {
                    0 | 1 => (Kind::Tombstone, 0),
                    2 => (Kind::Value, model.now + number % 3),
                    _ => (Kind::Value, 0),
                };
                let version = if moved { number / 2 } else { number };
                let head = Head { number, version, kind, expires };
                let len = if kind == Kind::Value { number as usize * 37 % 400 } else { 0 };
                batch.push(LevelRecord { key: name(key), head, value: vec![number as u8; len] });
                continue;
            }
            Step::Range { from, len } => {
                number += 1;
                ranges.push(range_of(from, len, number));
                continue;
            }
            Step::Dump { .. } => {
                model.visible = number;
                model.dump(&mut batch, &mut ranges, step);
            }
            Step::Compact { all } => {
                let how = if all { Compact::All } else { Compact::Due };
                while model.runs.compact(how, model.purge(), &nobody()).expect("compacted").has_worked && !all
                {
                }
            }
            Step::Snapshot => model.snapshots.push(model.visible),
            Step::Release(index) if !model.snapshots.is_empty() => {
                model.snapshots.swap_remove(index.index(model.snapshots.len()));
            }
            Step::Release(_) => continue,
            Step::Tick => model.now += 1,
            Step::DropRange { from, len } => {
                // A range tombstone of the list lets its keys go at once, without snapshots below it.
                number += 1;
                model.visible = number;
                let range = range_of(from, len, number);
                ranges.push(range.clone());
                model.dump(&mut batch, &mut ranges, &Step::Dump { parts: 2, twice: false, discards: false });
                if model.snapshots.is_empty() {
                    model.runs.drop_range(&range.from, &range.to, number, &nobody()).expect("dropped");
                }
            }
            Step::Reopen => {
                // All that is open goes first.
                model.listed.iter_mut().for_each(|listed| listed.base = None);
                let none = Simulated::default().forest();
                model.runs = none.open(TABLE).expect("opened");
                model.forest = none;
                model.forest = model.place.forest();
                assert!(model.forest.trees().expect("sound").contains(&TABLE));
                model.runs = model.forest.open(TABLE).expect("opened");
            }
        }
        model.tidy();
        model.check();
    }
    model.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn simulated_levels_answer_like_the_model(steps in steps()) {
        run(&Simulated::default(), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn levels_in_files_answer_like_the_model(steps in steps()) {
        run(&Folder(tempfile::tempdir().unwrap()), &steps);
    }
}

#[test]
fn a_part_counts_only_when_it_is_published() {
    on_each(|place| {
        let forest = place.forest();
        let runs = forest.open(TABLE).expect("opened");
        publish(&*runs, &[value(b"a", 1)]);
        let before = runs.levels();
        let part = write(&*runs, &[value(b"a", 3), value(b"a", 2), value(b"b", 4)]);
        assert_eq!(get(&*runs.levels(), b"a", 9), Some((value(b"a", 1).head, vec![1; 300])));
        runs.publish(vec![part]).expect("published");
        // A list stays as it was, also when its runs are merged.
        assert!(runs.compact(Compact::All, purge(4), &nobody()).expect("compacted").has_worked);
        assert_eq!(get(&*before, b"a", 9).map(|found| found.0.number), Some(1));
        assert_eq!(get(&*before, b"b", 9), None);
        let after = runs.levels();
        assert_eq!(get(&*after, b"a", 9).map(|found| found.0.number), Some(3));
        assert_eq!((after.highest(), runs.stats().records), (Some(4), 2));
        // A part that a crash finds without a name is gone.
        drop(write(&*runs, &[value(b"c", 5)]));
        drop((runs, forest, before, after));
        let forest = place.forest();
        assert_eq!(forest.trees().expect("sound"), [TABLE]);
        let runs = forest.open(TABLE).expect("opened");
        assert_eq!(get(&*runs.levels(), b"c", 9), None);
        assert_eq!(runs.stats().records, 2);
        drop(runs);
        forest.remove(TABLE).expect("removed");
        forest.remove(TABLE + 1).expect("nothing to do");
        assert!(forest.trees().expect("sound").is_empty());
        assert_eq!(forest.open(TABLE).expect("opened").levels().highest(), None);
    });
}

#[test]
fn files_go_whole_when_all_of_their_records_are_deleted() {
    on_each(|place| {
        let runs = place.forest().open(TABLE).expect("opened");
        publish(&*runs, &[value(b"a", 1), value(b"b", 2)]);
        publish(&*runs, &[value(b"b", 3), value(b"c", 4)]);
        let bytes = runs.stats().bytes;
        assert_eq!(runs.drop_range(b"b", b"", 9, &nobody()).expect("dropped"), bytes / 2);
        assert_eq!((runs.stats().records, runs.stats().bytes), (2, bytes / 2));
        assert_eq!(runs.drop_range(b"a", b"b", 9, &nobody()).expect("nothing lies there"), 0);
        assert_eq!(runs.drop_range(b"a", b"c", 2, &nobody()).expect("it is too new"), 0);
        assert!(runs.drop_range(b"a", b"c", 3, &nobody()).expect("dropped") > 0);
        assert_eq!(runs.levels().lowest_id(&all_keys()), None);
    });
}

/// The message of the panic of a call.
fn panic_of(call: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).expect_err("a panic");
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a text")
}

#[test]
fn misuse_panics() {
    on_each(|place| {
        let forest = place.forest();
        let runs = forest.open(TABLE).expect("opened");
        for wrong in [[value(b"b", 1), value(b"a", 2)], [value(b"a", 1), value(b"a", 2)]] {
            assert!(panic_of(|| drop(write(&*runs, &wrong))).contains("keys rise"));
        }
        let mut frame = value(b"a", 1);
        frame.head.kind = Kind::Frame;
        assert!(panic_of(|| drop(write(&*runs, &[frame]))).contains("a record of a level"));
        let parts = [b"a", b"b"].map(|key| write(&*runs, &[value(key, 1)]));
        let parts: Vec<Part> = parts.into_iter().rev().collect();
        assert!(panic_of(|| runs.publish(parts).expect("published")).contains("in the order of their keys"));
        assert!(panic_of(|| drop(forest.open(TABLE))).contains("is open already"));
        assert!(panic_of(|| forest.remove(TABLE).expect("removed")).contains("is open"));
    });
}
