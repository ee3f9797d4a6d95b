//! Levels for the crash explorer: runs in immutable maps, without files, threads or chance.
//!
//! All that would survive a crash is one immutable value, [`SimDisk`], which each change replaces at one
//! point. The explorer copies it at any moment by [`SimForest::image`], beside an image of persistent memory,
//! and opens a forest again from both. Parts have no names, so a crash loses them.
//!
//! Misuse panics, where files would only lose something: records out of order, parts out of order, a run that
//! is older than one below it, a tree that is opened twice.

use quipu_parts::record::Kind;
use quipu_parts::runs::filter::{Filter, Verdict};
use quipu_parts::runs::{
    Compact, Compacted, Forest, Head, LevelRecord, LevelScan, Levels, LevelsState, NameError, Notice, Part,
    Purge, Remains, RunStats, Runs, RunsError, Source,
};
use quipu_parts::sync::SpinLock;
use quipu_parts::versions::RangeTombstone;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All that a forest has made durable.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    /// The runs of each table, newest first.
    trees: BTreeMap<u64, Vec<Arc<SimRun>>>,
    /// The id of the next run, above those of all runs.
    next_id: u64,
    /// Changes of each tree.
    changes: BTreeMap<u64, u64>,
    /// The note of their state, and their changes by then.
    state: LevelsState,
    noted: BTreeMap<u64, u64>,
}

/// A run: records by key, of each key the newest first.
#[derive(Debug)]
struct SimRun {
    id: u64,
    records: Vec<LevelRecord>,
    /// By their numbers.
    ranges: Vec<RangeTombstone>,
}

/// Faults of simulated levels; each counts the calls of all trees, the first one as 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimFaults {
    /// The write that finds the disk full.
    pub write: Option<u64>,
    /// The publication that fails, and how.
    pub publish: Option<(u64, SimPublishFault)>,
    /// The compaction that fails and changes nothing.
    pub compact: Option<u64>,
    /// Whether all later calls fail as well.
    pub lasts: bool,
}

impl SimFaults {
    /// Counts a call, and says whether it is one to fail.
    fn is_due(&self, count: &AtomicU64, fails: Option<u64>) -> bool {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        fails.is_some_and(|fails| number == fails || self.lasts && number > fails)
    }
}

/// How a publication fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimPublishFault {
    /// Nothing was named, and the tree knows it.
    NotNamed,
    /// Nothing was named, and the tree does not know it.
    PoisonedBefore,
    /// The parts were named, and the tree does not know it.
    PoisonedAfter,
}

/// The trees of a pool, simulated.
#[derive(Clone, Default)]
pub struct SimForest(Arc<Shared>);

#[derive(Default)]
struct Shared {
    disk: SpinLock<Arc<SimDisk>>,
    open: SpinLock<BTreeSet<u64>>,
    faults: SpinLock<SimFaults>,
    writes: AtomicU64,
    publications: AtomicU64,
    compactions: AtomicU64,
}

/// The levels of a table, simulated.
struct SimRuns {
    table: u64,
    forest: Arc<Shared>,
    /// Whether it must not be changed any more.
    poisoned: SpinLock<bool>,
    /// Steps of compaction.
    steps: AtomicU64,
}

/// A list of simulated runs.
struct SimLevels(Vec<Arc<SimRun>>);

impl SimForest {
    /// A forest that goes on from an image.
    pub fn from_image(image: Arc<SimDisk>) -> SimForest {
        SimForest(Arc::new(Shared { disk: SpinLock::new(image), ..Shared::default() }))
    }

    /// All that would survive a crash now.
    pub fn image(&self) -> Arc<SimDisk> {
        self.0.disk.lock().clone()
    }

    /// Sets the faults, whose counts begin anew.
    pub fn set_faults(&self, faults: SimFaults) {
        let mut held = self.0.faults.lock();
        *held = faults;
        for count in [&self.0.writes, &self.0.publications, &self.0.compactions] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Replaces the durable value by a changed one.
    fn change<T>(&self, change: impl FnOnce(&mut SimDisk) -> T) -> T {
        let mut disk = self.disk.lock();
        let mut new = SimDisk::clone(&disk);
        let result = change(&mut new);
        *disk = Arc::new(new);
        result
    }
}

impl Forest for SimForest {
    fn place(&self) -> String {
        place()
    }

    fn trees(&self) -> Result<Vec<u64>, RunsError> {
        Ok(self.image().trees.keys().copied().collect())
    }

    fn state(&self) -> Result<LevelsState, RunsError> {
        Ok(self.image().state)
    }

    fn note(&self, state: LevelsState) -> Result<(), RunsError> {
        self.0.change(|disk| (disk.state, disk.noted) = (state, disk.changes.clone()));
        Ok(())
    }

    fn refuse_torn(&self, table: u64) -> Result<(), RunsError> {
        let disk = self.image();
        let is_torn = disk.changes.get(&table) < disk.noted.get(&table);
        let what = format!("the tree of table {table} is older than the note");
        if is_torn { Err(RunsError::Damaged { place: place(), what }) } else { Ok(()) }
    }

    fn open(&self, table: u64) -> Result<Arc<dyn Runs>, RunsError> {
        assert!(self.0.open.lock().insert(table), "the tree of table {table} is open already");
        if !self.image().trees.contains_key(&table) {
            self.0.change(|disk| disk.trees.insert(table, Vec::new()));
        }
        let (forest, poisoned, steps) = (self.0.clone(), SpinLock::new(false), AtomicU64::new(0));
        Ok(Arc::new(SimRuns { table, forest, poisoned, steps }))
    }

    fn salvage(&self, table: u64, _wrong: &mut dyn FnMut(RunsError)) -> Box<dyn Remains> {
        Box::new(SimLevels(self.image().trees[&table].clone()))
    }

    fn is_open(&self, table: u64) -> bool {
        self.0.open.lock().contains(&table)
    }

    fn remove(&self, table: u64) -> Result<(), RunsError> {
        assert!(!self.is_open(table), "the tree of table {table} is open");
        self.0.change(|disk| (disk.trees.remove(&table), disk.changes.remove(&table)));
        Ok(())
    }
}

impl Drop for SimRuns {
    fn drop(&mut self) {
        self.forest.open.lock().remove(&self.table);
    }
}

fn place() -> String {
    "the simulated disk".to_owned()
}

fn device(what: &str) -> RunsError {
    RunsError::Device { place: place(), error: io::Error::other(what.to_owned()).into() }
}

impl SimRuns {
    fn list(&self) -> SimLevels {
        let disk = self.forest.disk.lock().clone();
        SimLevels(disk.trees[&self.table].clone())
    }

    fn refuse_if_poisoned(&self) -> Result<(), NameError> {
        let poisoned = *self.poisoned.lock();
        if poisoned { Err(NameError::Poisoned(device("an earlier change failed"))) } else { Ok(()) }
    }

    /// Names runs, in place of these neighbours in the list, or in front of it.
    fn replace(&self, old: &[Arc<SimRun>], new: impl IntoIterator<Item = SimRun>) {
        self.forest.change(|disk| {
            let runs = disk.trees.get_mut(&self.table).expect("the tree is open");
            // Others may have named runs meanwhile, in front of the list.
            let place = |old: &Arc<SimRun>| runs.iter().position(|run| run.id == old.id);
            let at = old.first().map_or(0, |old| place(old).expect("nobody else compacts"));
            let named = new.into_iter().map(|run| {
                let id = disk.next_id;
                disk.next_id += 1;
                Arc::new(SimRun { id, ..run })
            });
            runs.splice(at..at + old.len(), named);
            *disk.changes.entry(self.table).or_default() += 1;
        });
    }
}

impl Runs for SimRuns {
    fn levels(&self) -> Arc<dyn Levels> {
        Arc::new(self.list())
    }

    fn write(&self, ranges: &[RangeTombstone], from: &mut dyn Source) -> Result<Part, RunsError> {
        let mut run = SimRun { id: 0, records: Vec::new(), ranges: ranges.to_vec() };
        run.ranges.sort_unstable_by_key(|range| range.number);
        while let Some((key, head, value)) = from.next() {
            assert!(matches!(head.kind, Kind::Value | Kind::Tombstone), "a record of a level");
            if let Some(last) = run.records.last() {
                let order = (&*last.key, Reverse(last.head.number));
                assert!(order < (key, Reverse(head.number)), "keys rise, and numbers of a key fall");
            }
            run.records.push(LevelRecord { key: key.to_vec(), head, value: value.to_vec() });
        }
        let faults = *self.forest.faults.lock();
        if faults.is_due(&self.forest.writes, faults.write) {
            return Err(RunsError::Full { place: place() });
        }
        Ok(Part { records: run.len(), bytes: run.bytes(), files: Box::new(run) })
    }

    fn discard(&self, part: Part) {
        drop(part);
    }

    fn publish(&self, parts: Vec<Part>) -> Result<(), NameError> {
        self.refuse_if_poisoned()?;
        let mut whole = SimRun { id: 0, records: Vec::new(), ranges: Vec::new() };
        for part in parts {
            let run = part.files.downcast::<SimRun>().expect("a part of simulated levels");
            if let (Some(last), Some(next)) = (whole.records.last(), run.records.first()) {
                assert!(last.key < next.key, "parts in the order of their keys");
            }
            assert!(run.ranges.is_empty() || whole.len() == 0, "range tombstones stand before all records");
            whole.records.extend(run.records);
            whole.ranges.extend(run.ranges);
        }
        let list = self.list();
        let mut before = None;
        for record in &whole.records {
            if before.replace(&record.key) != Some(&record.key) {
                let old = list.find(&record.key, u64::MAX);
                let is_newer = old.is_none_or(|old| old.head.number <= record.head.number);
                assert!(is_newer, "a run is newer than all that was named before");
            }
        }
        let faults = *self.forest.faults.lock();
        let due = faults.is_due(&self.forest.publications, faults.publish.map(|(at, _)| at));
        let fault = faults.publish.filter(|_| due).map(|(_, fault)| fault);
        if fault == Some(SimPublishFault::NotNamed) {
            return Err(NameError::NotNamed(RunsError::Full { place: place() }));
        }
        if fault != Some(SimPublishFault::PoisonedBefore) && whole.len() > 0 {
            self.replace(&[], [whole]);
        }
        if fault.is_some() {
            *self.poisoned.lock() = true;
            return Err(NameError::Poisoned(device("a simulated error")));
        }
        Ok(())
    }

    /// With three runs or more, it merges by turns the two newest, which are above the last, and the two
    /// oldest. So tests meet both cases of the [`Filter`].
    fn compact(&self, how: Compact, purge: Purge, before: &Notice) -> Result<Compacted, NameError> {
        self.refuse_if_poisoned()?;
        let faults = *self.forest.faults.lock();
        let list = self.list().0;
        let (at, count) = match how {
            Compact::All => (0, list.len()),
            Compact::Due if list.len() < 3 => (0, 0),
            Compact::Due if self.steps.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => (0, 2),
            Compact::Due => (list.len() - 2, 2),
        };
        if count == 0 {
            return Ok(Compacted::default());
        }
        let old = &list[at..at + count];
        let merged = merge(old, &mut Filter::new(purge, at + count == list.len()));
        if faults.is_due(&self.forest.compactions, faults.compact) {
            return Err(NameError::NotNamed(RunsError::Full { place: place() }));
        }
        before().map_err(NameError::NotNamed)?;
        let read = old.iter().map(|run| run.bytes()).sum();
        let written = merged.bytes();
        self.replace(old, (merged.len() > 0).then_some(merged));
        Ok(Compacted { has_worked: true, read, written })
    }

    fn drop_range(&self, from: &[u8], to: &[u8], below: u64, before: &Notice) -> Result<u64, NameError> {
        self.refuse_if_poisoned()?;
        let range = RangeTombstone { from: from.into(), to: to.into(), number: below };
        let is_inside = |run: &Arc<SimRun>| {
            run.ranges.is_empty() && run.records.iter().all(|record| range.holds(&record.key))
        };
        let inside: Vec<_> = self.list().0.into_iter().filter(is_inside).collect();
        let is_newer = |record: &LevelRecord| record.head.number >= below;
        if inside.is_empty() || inside.iter().flat_map(|run| &run.records).any(is_newer) {
            return Ok(0);
        }
        before().map_err(NameError::NotNamed)?;
        self.forest.change(|disk| {
            let runs = disk.trees.get_mut(&self.table).expect("the tree is open");
            runs.retain(|run| !is_inside(run));
            *disk.changes.entry(self.table).or_default() += 1;
        });
        Ok(inside.iter().map(|run| run.bytes()).sum())
    }

    fn next_id(&self) -> u64 {
        self.forest.disk.lock().next_id
    }

    fn stats(&self) -> RunStats {
        let list = self.list().0;
        RunStats {
            tables: list.len() as u64,
            bytes: list.iter().map(|run| run.bytes()).sum(),
            records: list.iter().map(|run| run.len()).sum(),
            first_level: list.len() as u64,
            ..RunStats::default()
        }
    }
}

/// One run of several, newest first, without the records that the filter drops.
fn merge(runs: &[Arc<SimRun>], filter: &mut Filter) -> SimRun {
    let mut ranges: Vec<_> = runs.iter().flat_map(|run| run.ranges.iter().cloned()).collect();
    ranges.sort_by_key(|range| range.number);
    ranges.retain(|range| filter.keeps_range(range.number));
    let mut records: Vec<_> = runs.iter().flat_map(|run| run.records.iter().cloned()).collect();
    records.sort_by(|one, next| {
        (&one.key, Reverse(one.head.number)).cmp(&(&next.key, Reverse(next.head.number)))
    });
    records.retain_mut(|record| match filter.record(&record.key, &record.head) {
        Verdict::Keep => true,
        Verdict::Drop => false,
        Verdict::Bury => {
            record.head = Head { kind: Kind::Tombstone, expires: 0, ..record.head };
            record.value.clear();
            true
        }
    });
    SimRun { id: 0, records, ranges }
}

impl SimRun {
    /// Its records and range tombstones.
    fn len(&self) -> u64 {
        (self.records.len() + self.ranges.len()) as u64
    }

    fn bytes(&self) -> u64 {
        let bytes = |record: &LevelRecord| (record.key.len() + record.value.len() + 8) as u64;
        let ranges = self.ranges.iter().map(|range| (range.from.len() + range.to.len() + 8) as u64);
        self.records.iter().map(bytes).chain(ranges).sum()
    }

    /// The newest record of a key up to a number.
    fn find(&self, key: &[u8], up_to: u64) -> Option<&LevelRecord> {
        let is_before =
            |record: &LevelRecord| (&*record.key, Reverse(record.head.number)) < (key, Reverse(up_to));
        let at = self.records.partition_point(is_before);
        self.records.get(at).filter(|record| record.key == key)
    }

    /// The first key of those that are not before.
    fn first(&self, is_before: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
        let at = self.records.partition_point(|record| is_before(&record.key));
        self.records.get(at).map(|record| &*record.key)
    }

    /// The last key of those that are before.
    fn last(&self, is_before: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
        let at = self.records.partition_point(|record| is_before(&record.key));
        Some(&self.records[at.checked_sub(1)?].key)
    }
}

impl SimLevels {
    fn find(&self, key: &[u8], up_to: u64) -> Option<&LevelRecord> {
        self.0.iter().find_map(|run| run.find(key, up_to))
    }
}

/// Nothing damages them.
impl Remains for SimLevels {
    fn ranges(&self, wrong: &mut dyn FnMut(RunsError)) -> Vec<RangeTombstone> {
        Levels::ranges(self).map_err(wrong).unwrap_or_default()
    }

    fn records(&self, each: &mut dyn FnMut(LevelRecord) -> bool, wrong: &mut dyn FnMut(RunsError)) {
        let records = self.scan(&[], u64::MAX).filter_map(|record| record.map_err(&mut *wrong).ok());
        records.map(each).find(|goes_on| !goes_on);
    }
}

impl Levels for SimLevels {
    fn get(&self, key: &[u8], up_to: u64, out: &mut Vec<u8>) -> Result<Option<Head>, RunsError> {
        let found = self.find(key, up_to);
        out.extend_from_slice(found.map_or(&[], |record| &record.value));
        Ok(found.map(|record| record.head))
    }

    fn scan<'l>(&'l self, from: &[u8], up_to: u64) -> LevelScan<'l> {
        let mut next = self.0.iter().filter_map(|run| run.first(|key| key < from)).min();
        let keys = std::iter::from_fn(move || {
            let key = next?;
            next = self.0.iter().filter_map(|run| run.first(|other| other <= key)).min();
            Some(key)
        });
        Box::new(keys.filter_map(move |key| Some(Ok(self.find(key, up_to)?.clone()))))
    }

    fn scan_back<'l>(&'l self, to: Bound<&[u8]>, up_to: u64) -> LevelScan<'l> {
        let is_before = |key: &[u8]| match to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        };
        let mut next = self.0.iter().filter_map(|run| run.last(is_before)).max();
        let keys = std::iter::from_fn(move || {
            let key = next?;
            next = self.0.iter().filter_map(|run| run.last(|other| other < key)).max();
            Some(key)
        });
        Box::new(keys.filter_map(move |key| Some(Ok(self.find(key, up_to)?.clone()))))
    }

    fn ranges(&self) -> Result<Vec<RangeTombstone>, RunsError> {
        let mut ranges: Vec<_> = self.0.iter().flat_map(|run| run.ranges.iter().cloned()).collect();
        ranges.sort_by_key(|range| range.number);
        ranges.dedup_by_key(|range| range.number);
        Ok(ranges)
    }

    fn check(&self, each: &mut dyn FnMut(&[u8], &Head)) -> Result<(), RunsError> {
        for record in self.0.iter().flat_map(|run| &run.records) {
            each(&record.key, &record.head);
        }
        Ok(())
    }

    fn highest(&self) -> Option<u64> {
        let records = self.0.iter().flat_map(|run| &run.records).map(|record| record.head.number);
        let ranges = self.0.iter().flat_map(|run| &run.ranges).map(|range| range.number);
        records.chain(ranges).max()
    }

    fn lowest_id(&self, range: &RangeTombstone) -> Option<u64> {
        let has_some = |run: &&Arc<SimRun>| run.records.iter().any(|record| range.holds(&record.key));
        self.0.iter().filter(has_some).map(|run| run.id).min()
    }
}
