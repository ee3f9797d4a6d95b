//! From memory to the levels: freezing a layer, dumping it, and giving its memtables back.
//!
//! 1. **Freeze.** An empty layer enters the view, and the memtables of before end. All items of the old
//!    layers are visible, and nobody writes to them any more. They are [merged](super::global) into one.
//! 2. **Dump.** The layer is read in order, in several ranges at a time, and written to files. Versions that
//!    nobody reads are left out.
//! 3. **Publish.** The files get their names, all at once, between two steps of the
//!    [pairing](super::pairing).
//! 4. The anchor is raised to all that is visible. Then one word of the table says that its memtables up to
//!    the freeze are *flushed*.
//! 5. The layer leaves the view at the moment at which the new levels enter it. When its readers have left,
//!    its memtables are released, one by one.
//!
//! *A crash before the word* leaves the memtables as they are. If the files have names already, the levels
//! have second copies of these records, with the same numbers. The next dump writes them again, and
//! compaction drops records that it meets twice. Levels of a table without a word are copies alone, and an
//! opening removes them.
//!
//! *A crash behind it* leaves memtables that recovery releases, also in parts. They count together or not at
//! all: no tombstone leaves before the value that it hides, as could happen without the word.
//!
//! *Why the anchor.* An item may have a part in a table that is dumped, and another part elsewhere. Without
//! the anchor the latter would look like an item of which a part is missing.
//!
//! Source: section 3.3 of the paper, which has a manifest of memtables on the SSD. It names them by their
//! objects, which other memtables use later; numbers are never used again.

use super::Tiers;
use super::pace::Pace;
use super::source::LayerSource;
use super::table::Table;
use super::view::{Layer, LevelsInUse};
use crate::background::{self, Bell};
use crate::types::error::Error;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::heap::chain::Memtable;
use quipu_parts::index::InOrder;
use quipu_parts::runs::{Forest, Part, Purge, Runs, RunsError};
use quipu_parts::space::ZoneId;
use quipu_parts::sync::{SpinGuard, SpinLock, between_looks};
use quipu_parts::twin;
use quipu_parts::versions::RangeTombstone;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds from a failed dump to the next one ahead of need.
const REST: u64 = 1000;

/// The levels of a store, and the thread that dumps.
pub(super) struct Dumper {
    /// `None` in a store without levels.
    pub(super) forest: Option<Arc<dyn Forest>>,
    pub(super) bell: Arc<Bell>,
    /// Pieces of a dump, and threads at most.
    threads: usize,
    /// Held by the thread that dumps.
    state: SpinLock<Participant>,
    /// The failure after which the levels take no more changes.
    stopped: SpinLock<Option<String>>,
    /// The time at which a dump has failed.
    failed: AtomicU64,
    /// The error of the levels that it met.
    failure: SpinLock<Option<RunsError>>,
    pub(super) pace: Pace,
    dumped_bytes: AtomicU64,
}

impl Dumper {
    pub(super) fn new(forest: Option<Arc<dyn Forest>>, threads: usize, epochs: &Collector) -> Dumper {
        let state = SpinLock::new(epochs.register());
        let (bell, pace) = (Arc::default(), Pace::default());
        let (stopped, failure) = (SpinLock::default(), SpinLock::default());
        let [failed, dumped_bytes] = [AtomicU64::new(0), AtomicU64::new(0)];
        Dumper { forest, bell, threads, state, stopped, failed, failure, pace, dumped_bytes }
    }

    /// Whether the store has levels.
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        self.forest.is_some()
    }

    /// The failure after which the levels take no more changes, if there was one.
    pub(super) fn stopped(&self) -> Option<String> {
        self.stopped.lock().clone()
    }

    /// Levels that could not be opened at all.
    pub(super) fn stop(&self, error: &Error) {
        *self.stopped.lock() = Some(error.to_string());
    }

    /// The right to dump.
    pub(super) fn lock(&self) -> SpinGuard<'_, Participant> {
        self.state.lock()
    }

    /// The right to dump, unless another thread has it.
    pub(super) fn try_lock(&self) -> Option<SpinGuard<'_, Participant>> {
        self.state.try_lock()
    }

    /// Whether something is being dumped.
    pub(super) fn is_busy(&self) -> bool {
        self.state.try_lock().is_none()
    }

    /// Whether a dump has failed a moment ago, and another one would be in vain.
    pub(super) fn has_failed(&self, now: u64) -> bool {
        let failed = self.failed.load(Ordering::Relaxed);
        failed != 0 && now.saturating_sub(failed) < REST
    }

    /// The error of the levels that a dump has met a moment ago.
    pub(super) fn failure(&self, now: u64) -> Option<RunsError> {
        if self.has_failed(now) { self.failure.lock().clone() } else { None }
    }

    /// Remembers how a dump has ended.
    fn note<T>(&self, dumped: &Result<T, Error>, now: u64) {
        *self.failure.lock() = match dumped {
            Err(Error::Levels(error)) => Some(error.clone()),
            _ => None,
        };
        self.failed.store(if dumped.is_err() { now } else { 0 }, Ordering::Relaxed);
    }

    /// Bytes of files that dumps have written since open.
    pub(super) fn dumped_bytes(&self) -> u64 {
        self.dumped_bytes.load(Ordering::Relaxed)
    }
}

impl<I: InOrder> Tiers<I> {
    /// Dumps all that a table has in memory now. The caller holds no other lock, and is not pinned.
    pub(super) fn dump(&self, participant: &Participant, table: &Arc<Table<I>>) -> Result<(), Error> {
        if let Some(what) = self.dumper.stopped.lock().clone() {
            return Err(Error::LevelsStopped { what });
        }
        self.forget_layers(participant);
        let is_frozen = !table.view(&participant.pin()).frozen.is_empty();
        let frozen = if is_frozen { Ok(()) } else { self.freeze(participant, table) };
        let dumped = match frozen.and_then(|()| self.dump_frozen(participant, table)) {
            Err(Error::TableDropped) => Ok(()),
            dumped => dumped,
        };
        if let Err(Error::LevelsStopped { what }) = &dumped {
            *self.dumper.stopped.lock() = Some(what.clone());
        }
        self.dumper.note(&dumped, self.region().ticks());
        dumped
    }

    /// Drops layers that readers have left. `false` if readers still have one.
    pub(super) fn forget_layers(&self, participant: &Participant) -> bool {
        participant.collect();
        self.gone.forget()
    }

    /// Puts an empty layer over those of a table, and ends its memtables.
    fn freeze(&self, participant: &Participant, table: &Arc<Table<I>>) -> Result<(), Error> {
        // Nothing of it is being rewritten: copies go into the active layer.
        let mut worker = self.rewriter.worker();
        if !twin!(FrozenWhileRewritten) {
            worker.leave(table.subtable.created);
        }
        let guard = participant.pin();
        let _alone = table.changing.lock();
        table.check()?;
        let begin = |boundary| {
            let empty = Layer::new(boundary, (self.tables.index)(), &self.common.epochs);
            table.views.change(&guard, |view| {
                view.frozen = view.stack();
                (view.active, view.older) = (empty, Vec::new());
            });
        };
        let last = match twin!(FrozenEarly) {
            true => self.log.begin_to_freeze(table.number, begin)?,
            false => self.log.freeze(table.number, begin)?,
        };
        table.view(&guard).global().merged.fetch_max(last, Ordering::Release);
        Ok(())
    }

    /// Steps 2 to 5, of a table that is frozen.
    fn dump_frozen(&self, participant: &Participant, table: &Arc<Table<I>>) -> Result<(), Error> {
        // A freeze that was cut off by a poisoned order has left items that never become visible.
        self.log.granted()?;
        let guard = participant.pin();
        let view = table.view(&guard);
        let (Some(frozen), boundary) = (view.frozen.last().cloned(), view.global().above) else {
            return Ok(());
        };
        let levels = match (&view.levels, &self.dumper.forest) {
            (Some(levels), _) => levels.clone(),
            (None, Some(forest)) => {
                let runs = forest.open(table.subtable.created)?;
                table.use_levels(&guard, &runs);
                LevelsInUse::of(&runs)
            }
            (None, None) => return Ok(()),
        };
        drop(guard);
        let leaves_out = twin!(DeletionsNotDumped);
        let (runs, is_last) = (&levels.runs, levels.is_empty() || leaves_out);
        let purge = self.purge_of(participant, table);
        let zones = self.zones_of(table, frozen.above..boundary);
        let held = self.log.heap().usage().of_all(zones.iter().copied(), purge.now);
        self.dumper.pace.begin(zones.len() as u32, held.packed, self.region().ticks());
        let merged = self.merge_frozen(table);
        let write = |()| self.write_layer((table, &frozen, boundary), &**runs, purge, is_last);
        let parts = merged.and_then(write);
        self.dumper.pace.end(self.region().ticks());
        self.publish(participant, table, (runs, parts?), boundary)?;
        self.gone.push(frozen);
        Ok(())
    }

    /// Steps 3 to 5: names the parts of a frozen layer, whose memtables are below the boundary, and lets it
    /// go.
    fn publish(
        &self,
        participant: &Participant,
        table: &Arc<Table<I>>,
        (runs, parts): (&Arc<dyn Runs>, Vec<Part>),
        boundary: u64,
    ) -> Result<(), Error> {
        let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
        let _alone = table.changing.lock();
        if let Err(error) = table.check() {
            parts.into_iter().for_each(|part| runs.discard(part));
            return Err(error);
        }
        let note = || self.log.note_flushed(&table.subtable, boundary, &self.anchor);
        if twin!(FlushedBeforePublished) {
            note();
        }
        let change = self.change_of_levels();
        if let Err(error) = change.begin() {
            parts.into_iter().for_each(|part| runs.discard(part));
            return Err(error.into());
        }
        runs.publish(parts)?;
        change.confirm()?;
        let is_flushed = |memtable: &Arc<Memtable>| {
            memtable.subtable() == table.subtable.created && memtable.number() < boundary
        };
        let mut flushed: Vec<_> = self.log.memtables().into_iter().filter(is_flushed).collect();
        if twin!(FlushedNotNoted) || twin!(ReleasedBeforeFlushed) {
            // Without the word, the oldest would have to go first.
            flushed.reverse();
        }
        if twin!(ReleasedBeforeFlushed) {
            self.log.release(&flushed, &self.anchor);
        }
        if !twin!(FlushedBeforePublished) && !twin!(FlushedNotNoted) {
            note();
        }
        let (guard, levels) = (participant.pin(), LevelsInUse::of(runs));
        let leave =
            || table.views.change(&guard, |view| (view.frozen, view.levels) = (Vec::new(), Some(levels)));
        if twin!(RetiredInView) {
            self.retire_all(&guard, flushed);
            between_looks();
            leave();
        } else {
            leave();
            between_looks();
            self.retire_all(&guard, flushed);
        }
        self.dumper.dumped_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// The table to dump next: one whose dump has failed, or else the one that takes most zones, if any
    /// takes one.
    pub(super) fn to_dump(&self, participant: &Participant) -> Option<Arc<Table<I>>> {
        let guard = participant.pin();
        let zones =
            |table: &Arc<Table<I>>| self.zones_of(table, table.view(&guard).global().above..u64::MAX).len();
        let tables = self.tables.all();
        let is_frozen = |table: &&Arc<Table<I>>| !table.view(&guard).frozen.is_empty();
        if let Some(frozen) = tables.iter().find(is_frozen) {
            return Some(frozen.clone());
        }
        let largest = tables.into_iter().map(|table| (zones(&table), table)).max_by_key(|(zones, _)| *zones);
        largest.filter(|(zones, _)| *zones > 0).map(|(_, table)| table)
    }

    /// Writes a layer to files without names, in ranges of keys.
    fn write_layer(
        &self,
        (table, layer, boundary): (&Table<I>, &Layer<I>, u64),
        runs: &dyn Runs,
        purge: Purge,
        is_last: bool,
    ) -> Result<Vec<Part>, Error> {
        let visible = purge.horizon.visible;
        let tombstones: Vec<RangeTombstone> =
            purge.ranges.iter().filter(|range| range.number <= visible).cloned().collect();
        let splitters = self.splitters(table, layer.above..boundary)?;
        let written: Vec<SpinLock<Option<Result<Part, Error>>>> =
            (0..=splitters.len()).map(|_| SpinLock::default()).collect();
        background::in_pieces(written.len(), |nth| {
            let from = nth.checked_sub(1).map_or(&[][..], |before| &splitters[before]);
            let (end, participant) = (splitters.get(nth).map(Vec::as_slice), self.common.epochs.register());
            let mut source =
                LayerSource::new((self, table, layer), &participant, from, end, (purge.clone(), is_last));
            let has_ranges = nth == 0 && !twin!(RangesNotDumped);
            let tombstones = if has_ranges { &tombstones[..] } else { &[] };
            let part = runs.write(tombstones, &mut source);
            let part = match (part, source.outcome()) {
                (Ok(part), Ok(())) => Ok(part),
                (Ok(part), Err(error)) => {
                    runs.discard(part);
                    Err(error)
                }
                (Err(error), _) => Err(error.into()),
            };
            *written[nth].lock() = Some(part);
        });
        let written = written.into_iter().filter_map(|part| part.lock().take());
        let (parts, errors): (Vec<_>, Vec<_>) = written.partition(Result::is_ok);
        let parts = parts.into_iter().flatten();
        match errors.into_iter().find_map(Result::err) {
            None => Ok(parts.collect()),
            Some(error) => {
                parts.for_each(|part| runs.discard(part));
                Err(error)
            }
        }
    }

    /// Keys that split a layer into about equal ranges, one for each thread: some first keys of the zones of
    /// its memtables, which have these numbers.
    fn splitters(&self, table: &Table<I>, numbers: Range<u64>) -> Result<Vec<Vec<u8>>, Error> {
        if self.dumper.threads <= 1 {
            return Ok(Vec::new());
        }
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        table.check()?;
        let zones = self.zones_to_sample(&guard, table, numbers);
        // SAFETY: none of their memtables had been retired when this guard was pinned, by a rewrite or by a
        // drop of the table, and one that is retired later is not released before the guard drops. Each zone
        // has a record.
        let first = zones.into_iter().filter_map(|zone| unsafe { self.log.heap().first_key(zone) });
        let mut keys: Vec<Vec<u8>> = first.collect();
        keys.sort_unstable();
        keys.dedup();
        let ranges = self.dumper.threads.min(keys.len());
        Ok((1..ranges).map(|nth| keys[nth * keys.len() / ranges].clone()).collect())
    }

    /// The zones of the memtables of a table with these numbers that are not released as long as this guard
    /// is there.
    fn zones_to_sample(&self, _guard: &Guard<'_>, table: &Table<I>, numbers: Range<u64>) -> Vec<ZoneId> {
        // Read before the list of memtables, from which a memtable goes before it is no longer retired.
        let retired = self.rewriter.retired();
        let is_retired = |number| retired.contains(&number) && !twin!(ReleasedSampled);
        self.zones_where(table, |number| numbers.contains(&number) && !is_retired(number))
    }

    /// The zones of the memtables of a table above a number, and below another.
    fn zones_of(&self, table: &Table<I>, numbers: Range<u64>) -> Vec<ZoneId> {
        self.zones_where(table, |number| numbers.contains(&number))
    }

    /// The zones of the memtables of a table whose numbers pass a test.
    fn zones_where(&self, table: &Table<I>, is_asked: impl Fn(u64) -> bool) -> Vec<ZoneId> {
        let own = |memtable: &Arc<Memtable>| {
            memtable.subtable() == table.subtable.created && is_asked(memtable.number())
        };
        self.log.memtables().into_iter().filter(own).flat_map(|memtable| memtable.zones()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tiers;
    use super::super::client::TieredClient;
    use crate::{Client, Design, Error, Levels, Options, Store};
    use quipu_medium::{Pages, Region};
    use quipu_parts::index::masstree::Masstree;
    use quipu_parts::runs::RunsError;
    use quipu_parts::twin::{Twin, leave_out};
    use std::any::Any;
    use std::sync::Arc;

    /// A store without a thread that cleans or dumps.
    fn store(levels: Levels) -> Store {
        let region = Region::dram(8 << 20, Pages::Ordinary).expect("memory");
        let options = Options::new().design(Design::XP).zone_size(64 << 10).cleaner(false).levels(levels);
        Store::create_on(region, &options).expect("a new pool")
    }

    fn tiers_of(client: &Client) -> Arc<Tiers<Masstree>> {
        let session: &dyn Any = client.session();
        session.downcast_ref::<TieredClient<Masstree>>().expect("its client").tiers.clone()
    }

    fn put(client: &mut Client, key: u32) -> Result<(), Error> {
        client.put(&key.to_be_bytes(), &[1; 200]).map(drop)
    }

    /// Whether the zones of a memtable are among those to sample, before and behind its retirement.
    fn samples_a_retired_memtable(twin: Option<Twin>) -> (bool, bool) {
        let _left_out = leave_out(twin);
        let store = store(Levels::Off);
        let mut client = store.client();
        (0..3000).for_each(|key| put(&mut client, key).expect("room"));
        let tiers = tiers_of(&client);
        let participant = tiers.common.epochs.register();
        let guard = participant.pin();
        let table = &tiers.tables.all()[0];
        let oldest = tiers.log.memtables()[0].clone();
        let is_sampled = || {
            let zones = tiers.zones_to_sample(&guard, table, 0..u64::MAX);
            assert!(!zones.is_empty());
            zones.iter().any(|zone| oldest.zones().contains(zone))
        };
        let before = is_sampled();
        tiers.retire_all(&guard, vec![oldest.clone()]);
        (before, is_sampled())
    }

    /// A rewrite releases what it has retired without waiting for a reader that came later.
    #[test]
    fn first_keys_are_read_in_memtables_that_stay() {
        assert_eq!(samples_a_retired_memtable(None), (true, false));
        assert_eq!(samples_a_retired_memtable(Some(Twin::ReleasedSampled)), (true, true));
    }

    /// Its own attempt would tell the same. "The pool is full" would send its user to the wrong disk.
    #[test]
    fn who_finds_another_at_a_dump_that_has_failed_tells_its_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(Levels::Folder(folder.path().join("levels")));
        let mut client = store.client();
        let tiers = tiers_of(&client);
        let full = || Error::from(RunsError::Full { place: "a full disk".to_owned() });
        // In a moment to come: however slow this test is, it has failed a moment ago.
        tiers.dumper.note::<()>(&Err(full()), u64::MAX);
        let _dumping = tiers.dumper.lock();
        let refusal = (0..).find_map(|key| put(&mut client, key).err()).expect("a full pool");
        assert_eq!(refusal.to_string(), full().to_string());
    }
}
