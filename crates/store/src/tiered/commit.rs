//! Items of several records: batches, and the commits of transactions.
//!
//! A commit is a batch with [checks](Checks). They are made between the lock of its keys and its grant, with
//! the stripes of all keys that it has written or read. So nobody writes one of these between the check and
//! the place of the commit in the order of all writes: it is as if the transaction had read all of it at that
//! place. A commit that has read ranges locks all stripes, as a range delete does.
//!
//! *A check goes by versions.* The newest write of a key is in the index, deletions too, or on the levels. A
//! copy that a rewrite has made has a number of its own, and the version of its original. A deletion that is
//! younger than a snapshot is never left behind, and a range delete stays in the list of its table until no
//! snapshot is older. So a comparison with the number of a snapshot that is still announced misses no write,
//! also behind rewrites, dumps and merges.
//!
//! *Nothing fails behind the grant.* A check that does not hold waits, without stripes, until the write which
//! it saw is visible: the transaction sees it when it begins again.

use super::table::Table;
use super::view::LevelsInUse;
use super::write::{Near, Purpose};
use super::{Session, Tiers, Writer};
use crate::engine::checks::{Checks, ReadRange};
use crate::types::batch::WriteBatch;
use crate::types::conditions::{Condition, Must};
use crate::types::error::Error;
use crate::types::table::TableId;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::{Content, Kind};
use quipu_parts::twin;
use quipu_parts::versions::{Look, Noted, RangeList, Snapshot, Version};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

/// Keys of a range that are looked up together.
const LOOKED_UP: usize = 64;

/// A write and its table.
type Write<'b, I> = (Arc<Table<I>>, Content<'b>);

/// The checks of a commit, with their tables.
struct Checked<'c, I: InOrder> {
    keys: Vec<(Arc<Table<I>>, Condition<'c>)>,
    snapshot: Option<&'c Snapshot>,
    ranges: Vec<(Arc<Table<I>>, &'c ReadRange)>,
}

/// A check that does not hold.
struct Broken {
    /// The key that was written, if it was one.
    key: Option<Box<[u8]>>,
    /// Nobody is told before this number is visible.
    number: u64,
}

/// A write that was found where there should be none, or nothing.
type Finding = Result<Option<Broken>, Error>;

impl<I: InOrder> Tiers<I> {
    /// Carries out a batch, wholly or not at all. Writes that name no table are of the client's.
    pub(super) fn write_batch(&self, session: &mut Session<I>, batch: &WriteBatch) -> Result<(), Error> {
        let writes = self.writes_of(session, batch)?;
        if twin!(BatchInPieces) {
            return writes.iter().try_for_each(|(table, content)| {
                let one = std::iter::once((table, *content));
                self.write_all(session, Purpose::of(content.kind), one)
            });
        }
        self.write_all(session, purpose_of(&writes), writes.iter().map(|(table, content)| (table, *content)))
    }

    /// Carries out a batch if the checks hold.
    pub(super) fn commit(
        &self,
        session: &mut Session<I>,
        batch: &WriteBatch,
        checks: &Checks<'_>,
    ) -> Result<(), Error> {
        let writes = self.writes_of(session, batch)?;
        let named = |id: Option<TableId>| id.map_or(Ok(session.table.clone()), |id| self.tables.of(id));
        checks.keys.all().try_for_each(|condition| self.check_key(condition.key))?;
        let keys = checks.keys.all().map(|condition| Ok((named(condition.table)?, condition)));
        let ranges = checks.ranges.iter().map(|range| Ok((self.tables.of(range.table)?, range)));
        let checked = Checked {
            keys: keys.collect::<Result<_, Error>>()?,
            snapshot: checks.snapshot,
            ranges: ranges.collect::<Result<_, Error>>()?,
        };
        self.with_room(session, &Cell::new(purpose_of(&writes)), |tiers, session| {
            let Session { participant, writer, node, .. } = session;
            let guard = participant.pin();
            let tables =
                tiers.encode(&guard, writer, writes.iter().map(|(table, content)| (table, *content)));
            if twin!(CheckedEarly)
                && let Some(broken) = tiers.find_broken(&guard, &writes, &checked, None)?
            {
                return tiers.conflict(broken);
            }
            // Levels are read ahead, where nobody waits for it.
            let below = tiers.find_below(&guard, &checked)?;
            let stripes = tiers.lock_checked(&writes, &checked);
            let broken = match below {
                Err(broken) => Some(broken),
                Ok(_) if twin!(CheckedEarly) => None,
                Ok(highest) => tiers.find_broken(&guard, &writes, &checked, Some(&highest))?,
            };
            if checked.snapshot.is_some_and(|snapshot| snapshot.has_ended(|| tiers.region().coarse_ticks())) {
                return Err(Error::TransactionTooOld);
            }
            if let Some(broken) = broken {
                drop(stripes);
                return tiers.conflict(broken);
            }
            let purpose = purpose_of(&writes);
            let last = match tables.is_empty() {
                // Its answer tells of writes that may not be visible yet.
                true => tiers.log.granted()?,
                false if twin!(BatchInPieces) => {
                    let mut last = 0;
                    for (table, content) in &writes {
                        let tables = tiers.encode(&guard, writer, std::iter::once((table, *content)));
                        let purpose = (Purpose::of(content.kind), *node);
                        last = tiers.write(&guard, (&tables, Near::default()), writer, purpose)?;
                    }
                    last
                }
                false => {
                    tiers.refuse_if_full(&tables, purpose)?;
                    tiers.snapshots.horizon(|| tiers.log.visible(), &mut writer.horizon);
                    // Its transaction reads no more.
                    checked.snapshot.iter().for_each(|snapshot| writer.horizon.leave_out(snapshot));
                    tiers.write_for(&guard, (&tables, Near::default()), writer, (purpose, *node))?
                }
            };
            drop(stripes);
            tiers.acknowledge(last)
        })
    }

    /// The writes of a batch that count, with their tables: the last one of each key. Nobody sees the others.
    fn writes_of<'b>(&self, session: &Session<I>, batch: &'b WriteBatch) -> Result<Vec<Write<'b, I>>, Error> {
        let mut writes: Vec<Write<'b, I>> = Vec::with_capacity(batch.len());
        for (table, content) in batch.writes() {
            self.check_key(content.key)?;
            self.check_value(content.value)?;
            let table = match (table, writes.last()) {
                (None, _) => session.table.clone(),
                (Some(id), Some((last, _))) if last.id == id => last.clone(),
                (Some(id), _) => self.tables.of(id)?,
            };
            writes.push((table, content));
        }
        let mut later = HashSet::with_capacity(writes.len());
        let mut counts: Vec<bool> = Vec::with_capacity(writes.len());
        counts.extend(writes.iter().rev().map(|(table, content)| later.insert((table.number, content.key))));
        writes.retain(|_| counts.pop() == Some(true));
        Ok(writes)
    }

    /// Writes all of these records as one item.
    pub(super) fn write_all<'c>(
        &self,
        session: &mut Session<I>,
        purpose: Purpose,
        writes: impl Iterator<Item = (&'c Arc<Table<I>>, Content<'c>)> + Clone,
    ) -> Result<(), Error>
    where
        I: 'c,
    {
        self.with_room(session, &Cell::new(purpose), |tiers, session| {
            let Session { participant, writer, node, .. } = session;
            let guard = participant.pin();
            let tables = tiers.encode(&guard, writer, writes.clone());
            let stripes = tiers.lock_all(writes.clone().map(|(_, content)| tiers.key(content.key).hash));
            let last = tiers.write(&guard, (&tables, Near::default()), writer, (purpose, *node))?;
            drop(stripes);
            tiers.acknowledge(last)
        })
    }

    /// Puts these records into the writer's item, and asks for their places in the index ahead. Returns their
    /// tables.
    fn encode<'c>(
        &self,
        guard: &Guard<'_>,
        writer: &mut Writer,
        writes: impl Iterator<Item = (&'c Arc<Table<I>>, Content<'c>)>,
    ) -> Vec<&'c Arc<Table<I>>>
    where
        I: 'c,
    {
        writer.item.clear();
        let mut tables = Vec::<&Arc<Table<I>>>::new();
        for (table, content) in writes {
            let index = table.view(guard).active.versions.index();
            index.prefetch_to_write(guard.participant(), self.key(content.key));
            writer.item.chunk(table.number).push(&content);
            if tables.iter().all(|other| other.number != table.number) {
                tables.push(table);
            }
        }
        tables
    }

    /// Locks the keys that a commit writes, and those that it has read.
    fn lock_checked(&self, writes: &[Write<'_, I>], checked: &Checked<'_, I>) -> Vec<StripeGuard<'_>> {
        if !checked.ranges.is_empty() {
            return (0..self.common.stripes.count()).map(|stripe| self.lock_stripe(stripe)).collect();
        }
        let written = writes.iter().map(|(_, content)| content.key);
        let read = checked.keys.iter().map(|(_, condition)| condition.key);
        self.lock_all(written.chain(read).map(|key| self.key(key).hash))
    }

    /// Ends a commit one of whose checks does not hold.
    fn conflict(&self, Broken { key, number }: Broken) -> Result<(), Error> {
        self.log.wait(number)?;
        Err(Error::Conflict { key })
    }

    /// Looks for a check that does not hold. The stripes of all keys are held. Levels whose highest number is
    /// the one given have been looked at for ranges.
    fn find_broken(
        &self,
        guard: &Guard<'_>,
        writes: &[Write<'_, I>],
        checked: &Checked<'_, I>,
        below: Option<&[u64]>,
    ) -> Finding {
        for (table, condition) in &checked.keys {
            let key = self.key(condition.key);
            let broken = match condition.must {
                Must::RestSince(since) => self.find_write(guard, table, key, since)?,
                Must::Have(version) => {
                    let (number, found) = self.newest(guard, table, key, Near::default())?;
                    let is_so = found.map(|found| found.version) == version;
                    (!is_so).then(|| Broken { key: Some(key.bytes.into()), number })
                }
            };
            if broken.is_some() {
                return Ok(broken);
            }
        }
        let Some(since) = checked.snapshot.map(Snapshot::number) else { return Ok(None) };
        for (table, content) in writes {
            let broken = self.find_write(guard, table, self.key(content.key), since)?;
            if broken.is_some() {
                return Ok(broken);
            }
        }
        for (at, (table, range)) in checked.ranges.iter().enumerate() {
            if twin!(ScanNotRepeated) {
                break;
            }
            let known = below.map(|highest| highest[at]);
            let broken = self.find_write_in(guard, table, range, since, known)?;
            if broken.is_some() {
                return Ok(broken);
            }
        }
        Ok(None)
    }

    /// The newest write of a key, if it came after a number, visible or not. The key's stripe is held.
    fn find_write(&self, guard: &Guard<'_>, table: &Table<I>, key: Key<'_>, since: u64) -> Finding {
        let view = table.view(guard);
        table.check()?;
        if table.ranges.get(guard).is_some_and(|list| list.deletes(key.bytes, since, u64::MAX)) {
            return Ok(Some(Broken { key: Some(key.bytes.into()), number: self.log.granted()? }));
        }
        for layer in view.layers() {
            let number_of = |found| self.number_of(guard, found);
            // The first that is found is the newest.
            if let Some(version) = layer.versions.get((guard, key, None), || u64::MAX, number_of)? {
                return self.find_younger(guard, key.bytes, &version, since);
            }
        }
        let Some(levels) = view.levels.as_ref().filter(|levels| levels.highest() > since) else {
            return Ok(None);
        };
        let head = levels.get(key.bytes, u64::MAX, &mut Vec::new())?;
        let is_younger = head.is_some_and(|head| version_of(head.version, head.number) > since);
        // All that is on the levels is visible.
        Ok(is_younger.then(|| Broken { key: Some(key.bytes.into()), number: 0 }))
    }

    /// This newest version of a key in memory, if it was written after a number.
    fn find_younger(&self, guard: &Guard<'_>, key: &[u8], version: &Version, since: u64) -> Finding {
        if version.number <= since && !version.is_unproved() {
            return Ok(None);
        }
        let record = self.record_of(guard, version)?;
        if record.key != key {
            return Err(self.names_no_record(version));
        }
        let is_younger = version_of(record.version, record.sequence) > since;
        // A damaged record may tell any number, and nobody waits for one that was never granted.
        let number = version.number.min(self.log.granted()?);
        Ok(is_younger.then(|| Broken { key: Some(key.into()), number }))
    }

    /// A write in a range after a number, visible or not. All stripes are held. Levels of this highest number
    /// have been looked at.
    fn find_write_in(
        &self,
        guard: &Guard<'_>,
        table: &Table<I>,
        range: &ReadRange,
        since: u64,
        known: Option<u64>,
    ) -> Finding {
        let view = table.view(guard);
        table.check()?;
        let overlaps = |list: &RangeList| {
            list.iter().any(|deleted| {
                let begins_behind = deleted.to.is_empty() || range.first() < &*deleted.to;
                deleted.number > since && begins_behind && range.reaches(&deleted.from)
            })
        };
        if table.ranges.get(guard).is_some_and(overlaps) {
            return Ok(Some(Broken { key: None, number: self.log.granted()? }));
        }
        for layer in view.layers() {
            let (mut scan, mut noted) = (layer.versions.scan_from(range.first()), Noted::default());
            let (mut broken, mut is_behind) = (Ok(None), false);
            while matches!(broken, Ok(None)) && !is_behind {
                let prefetch = |reference| self.region().prefetch(self.log.heap().resolve(reference));
                let number_of = |reference| self.number_of(guard, reference);
                let mut look = Look { limit: LOOKED_UP, up_to: u64::MAX, prefetch, number_of, noted };
                let each = |key: &[u8], versions: &[Version]| {
                    is_behind |= !range.reaches(key);
                    if matches!(broken, Ok(None)) && range.holds(key) {
                        broken = self.find_younger(guard, key, &versions[0], since);
                    }
                };
                let has_more = layer.versions.next_with_all(guard, &mut scan, &mut look, each)?;
                (noted, is_behind) = (look.noted, is_behind || !has_more);
            }
            if !matches!(broken, Ok(None)) {
                return broken;
            }
        }
        match view.levels.as_ref().filter(|levels| Some(levels.highest()) != known) {
            Some(levels) if levels.highest() > since => self.find_write_below(levels, range, since),
            _ => Ok(None),
        }
    }

    /// A write in a range of these levels after a number.
    fn find_write_below(&self, levels: &LevelsInUse, range: &ReadRange, since: u64) -> Finding {
        for record in levels.scan(range.first(), u64::MAX) {
            let record = record?;
            if !range.reaches(&record.key) {
                break;
            }
            if range.holds(&record.key) && version_of(record.head.version, record.head.number) > since {
                return Ok(Some(Broken { key: Some(record.key.into()), number: 0 }));
            }
        }
        Ok(None)
    }

    /// Looks for writes in ranges on the levels, where nothing is locked. Returns the highest number of the
    /// levels of each range.
    fn find_below(
        &self,
        guard: &Guard<'_>,
        checked: &Checked<'_, I>,
    ) -> Result<Result<Vec<u64>, Broken>, Error> {
        let (since, mut highest) = (checked.snapshot.map_or(u64::MAX, Snapshot::number), Vec::new());
        for (table, range) in &checked.ranges {
            let view = table.view(guard);
            table.check()?;
            let levels = view.levels.as_ref();
            if let Some(levels) = levels.filter(|levels| levels.highest() > since)
                && let Some(broken) = self.find_write_below(levels, range, since)?
            {
                return Ok(Err(broken));
            }
            highest.push(levels.map_or(0, |levels| levels.highest()));
        }
        Ok(Ok(highest))
    }
}

/// The number by which a write is younger or older than a snapshot.
fn version_of(version: u64, number: u64) -> u64 {
    if twin!(CheckedByNumber) { number } else { version }
}

fn purpose_of<I: InOrder>(writes: &[Write<'_, I>]) -> Purpose {
    let is_deletion = writes.iter().all(|(_, content)| content.kind == Kind::Tombstone);
    if is_deletion { Purpose::Delete } else { Purpose::Put }
}
