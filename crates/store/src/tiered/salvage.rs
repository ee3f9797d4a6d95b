//! Salvage: the records of a damaged pool that prove themselves, copied into a new one, table by table.
//!
//! The damaged pool is only read. Its records go into the indexes as in recovery, whatever is missing between
//! them. Keys that memory does not have are copied from the levels ([`remains`](super::remains)). In bytes
//! that prove nothing a record may still be legible. So the report can name keys whose latest record is lost.

use super::Tiers;
use super::checkpoint::{self, Loaded};
use super::remains::LevelsLeft;
use super::table::{DEFAULT, Table};
use crate::engine::{AT_ONCE, Engine, InPlace};
use crate::types::error::{Damage, DamagedPlace, Error};
use crate::types::reports::{Instead, LostKey, SalvageReport};
use crate::walk::proof::places_of;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::{ChainError, Hole, RecordFound};
use quipu_parts::index::{Imaged, InOrder, Key};
use quipu_parts::record::Kind;
use quipu_parts::runs::LevelRecord;
use quipu_parts::space::SpaceError;
use quipu_parts::versions::{Look, Noted, RangeList, RangeTombstone, Retired, Version};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Copies all records that prove themselves from the pool of `tiers`, whose indexes are still empty. `wrong`
/// is the known damage of its metadata.
pub(super) fn salvage<I: InOrder + Imaged>(
    tiers: &Tiers<I>,
    wrong: &[SpaceError],
    threads: usize,
    into: &Arc<dyn Engine>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<SalvageReport, Error> {
    let (heap, tables) = (tiers.log.heap(), tiers.tables.all());
    let by_number: BTreeMap<u64, _> = tables.iter().map(|table| (table.subtable.created, table)).collect();
    let known: Vec<_> = tables.iter().map(|table| table.subtable.clone()).collect();
    let participant = tiers.common.epochs.register();
    let (guard, mut retired, mut ranges) = (participant.pin(), Retired::default(), BTreeMap::new());
    let each = |subtable: u64, record: RecordFound<'_>| {
        if record.kind == Kind::Range {
            let (from, to) = (record.key.into(), record.value.into());
            let range = RangeTombstone { from, to, number: record.version };
            ranges.entry(subtable).or_insert_with(Vec::new).push(range);
            return;
        }
        let version = Version::new(record.sequence, record.reference, record.kind != Kind::Value);
        tiers.adopt(&guard, by_number[&subtable], record.key, version, &mut retired);
    };
    let through = tiers.anchor.is_legible().then(|| tiers.anchor.through());
    // SAFETY: the pool is only read.
    let holes = unsafe { heap.salvage(&known, through, each) }?;
    let mut levels = LevelsLeft::of(tiers);
    for (subtable, range) in levels.ranges() {
        let own: &mut Vec<RangeTombstone> = ranges.entry(subtable).or_default();
        // Copies, and those that are on both.
        if own.iter().all(|other| other.number != range.number) {
            own.push(range);
        }
    }
    let ranges: BTreeMap<u64, RangeList> =
        ranges.into_iter().map(|(subtable, own)| (subtable, RangeList::new(own))).collect();
    for (subtable, own) in &ranges {
        tiers.sweep_recovered(&guard, by_number[subtable], own, &mut retired)?;
    }
    retired.defer(&guard);
    let latest = legible(tiers, &holes);
    let (mut keys, mut expired, mut below) = (0, 0, BTreeMap::new());
    for (nth, table) in tables.iter().enumerate() {
        let mut session = session(table, into)?;
        let copied = copy(tiers, &guard, table, &mut session)?;
        (keys, expired) = (keys + copied.keys, expired + copied.expired);
        let own = table.subtable.created;
        let mut note = |record: &LevelRecord, is_value| {
            let is_sought = |subtable| latest.contains_key(&(record.key.clone(), subtable));
            if !latest.is_empty() && (is_sought(Some(own)) || is_sought(None)) {
                below.insert((record.key.clone(), own), (record.head.number, is_value));
            }
        };
        keys += levels.copy((tiers, &guard, table), ranges.get(&own), &mut session, &mut note)?;
        progress(nth + 1, tables.len());
    }
    let mut lost = lost_keys(tiers, &guard, latest, &ranges, &below)?;
    let missing = missing(tiers, &guard, (&holes, threads), &mut lost)?;
    // Without the indexes of that time, the keys of a closed pool are counted, if all were in memory.
    let superblock = heap.space().superblock();
    let at_close =
        (superblock.is_clean() && levels.has_none() && levels.are_whole()).then(|| superblock.keys.get());
    let back = lost.iter().filter(|lost| lost.instead == Instead::DeletedValue).count() as u64;
    let missing = missing
        .filter(|_| levels.are_whole())
        .or_else(|| Some((at_close? + back).saturating_sub(keys + expired)));
    let places = holes.into_iter().map(|Hole { what, offset, len, .. }| DamagedPlace { what, offset, len });
    let tables = heap.described_subtables().filter_map(Result::err).map(|error| place_of(&error));
    let mut places: Vec<_> = places.chain(tables).chain(places_of(wrong)).chain(levels.places()).collect();
    if !tiers.anchor.is_legible() {
        places.push(DamagedPlace { what: "the anchor of the memtables".into(), offset: 0, len: 0 });
    }
    places.sort_by_key(|place| place.offset);
    Ok(SalvageReport { keys, damage: Damage { places }, missing, lost })
}

/// The number of keys in memory whose record stood in these holes when the pool was closed; `None` if it was
/// not closed, or nothing tells any more what it had. Takes out of `lost` keys that no index had there: bytes
/// that look like a record may be noise.
fn missing<I: InOrder + Imaged>(
    tiers: &Tiers<I>,
    guard: &Guard<'_>,
    (holes, threads): (&[Hole], usize),
    lost: &mut Vec<LostKey>,
) -> Result<Option<u64>, Error> {
    let (heap, mut missing) = (tiers.log.heap(), 0);
    if holes.is_empty() {
        return Ok(Some(0));
    }
    let Some(Loaded { indexes, .. }) = checkpoint::load::<I>(heap, &tiers.anchor, threads) else {
        return Ok(None);
    };
    let is_missing = |word: u64| {
        let reference = Reference::from_word(word);
        let place = heap.resolve(reference);
        let has = |hole: &Hole| (hole.offset..hole.offset.saturating_add(hole.len)).contains(&place);
        // A version with tag 1 deletes its key.
        reference.tag() == 0 && holes.iter().any(has)
    };
    for (_, index) in &indexes {
        let (mut cursor, mut words, mut has_more) = (I::Cursor::default(), Vec::new(), true);
        while has_more {
            has_more = index.next_batch(guard, &mut cursor, &mut words)?;
            missing += words.drain(..).filter(|word| is_missing(*word)).count() as u64;
        }
    }
    let may_be = |key: &LostKey| {
        let at = Key { bytes: &key.key, hash: 0 };
        let mut found = indexes.iter().map(|(_, index)| index.get(guard, at, is_missing));
        key.instead == Instead::DeletedValue || found.any(|found| !matches!(found, Ok(None)))
    };
    lost.retain(may_be);
    Ok(Some(missing))
}

fn place_of(error: &ChainError) -> DamagedPlace {
    let offset = if let ChainError::Damaged { offset, .. } = error { *offset } else { 0 };
    DamagedPlace { what: error.to_string(), offset, len: 0 }
}

/// A session for a table of the new pool, which is made for it.
fn session<I: InOrder>(table: &Table<I>, into: &Arc<dyn Engine>) -> Result<InPlace, Error> {
    let session = into.clone().session(None);
    if table.subtable.name == DEFAULT {
        return Ok(session);
    }
    let created = into.create_table(&table.subtable.name)?;
    session.on(created.id)
}

/// The keys of a table that were found in memory.
#[derive(Default)]
struct Copied {
    keys: u64,
    /// Keys whose values had expired.
    expired: u64,
}

/// Copies the keys of a table that are in memory, and returns how many there are.
fn copy<I: InOrder>(
    tiers: &Tiers<I>,
    guard: &Guard<'_>,
    table: &Table<I>,
    session: &mut InPlace,
) -> Result<Copied, Error> {
    let versions = &table.view(guard).active.versions;
    let mut scan = versions.scan_from(&[]);
    let number_of = |reference| tiers.told_number(guard, reference);
    let noted = Noted::default();
    let mut look = Look { limit: AT_ONCE, up_to: u64::MAX, prefetch: |_| (), number_of, noted };
    let now = tiers.expiry_time();
    let (mut found, mut copied, mut has_more) = (Vec::with_capacity(AT_ONCE), Copied::default(), true);
    while has_more {
        has_more = versions.next_in_order(guard, &mut scan, &mut look, |_, version| found.push(version))?;
        // Records that are put together take less room.
        let mut pairs = Vec::with_capacity(AT_ONCE);
        for version in found.drain(..) {
            let Some(record) = tiers.value_at(guard, &version, || now)? else {
                let deletes = version.reference.tag() != 0;
                copied.expired += u64::from(!deletes);
                continue;
            };
            match record.expires {
                0 => pairs.push((record.key, record.value)),
                time => session.put_until(record.key, record.value, time)?,
            }
            copied.keys += 1;
        }
        session.put_many(&pairs)?;
    }
    Ok(copied)
}

/// The keys that are legible in holes, with their tables if these are known: the highest number of each, and
/// whether it is of a deletion.
type Legible = BTreeMap<(Vec<u8>, Option<u64>), (u64, bool)>;

fn legible<I: InOrder>(tiers: &Tiers<I>, holes: &[Hole]) -> Legible {
    let ceiling = tiers.log.heap().space().superblock().clock_ceiling.get();
    let mut latest = Legible::new();
    for hole in holes {
        let each = |record: RecordFound<'_>| {
            if record.kind != Kind::Range {
                let known = latest.entry((record.key.to_vec(), hole.subtable)).or_default();
                *known = (*known).max((record.sequence, record.kind == Kind::Tombstone));
            }
        };
        // SAFETY: the pool is only read.
        unsafe { tiers.log.heap().legible(hole, ceiling, each) };
    }
    latest
}

/// Of the keys that are legible in holes, those whose records elsewhere are older. `below` has the numbers
/// of those that are on the levels of a table, and whether they are values.
fn lost_keys<I: InOrder>(
    tiers: &Tiers<I>,
    guard: &Guard<'_>,
    latest: Legible,
    ranges: &BTreeMap<u64, RangeList>,
    below: &BTreeMap<(Vec<u8>, u64), (u64, bool)>,
) -> Result<Vec<LostKey>, Error> {
    let (mut lost, tables) = (Vec::new(), tiers.tables.all());
    for ((key, subtable), (number, is_deletion)) in latest {
        // A record whose table nobody knows may be of any.
        let is_own = |table: &&Arc<Table<I>>| subtable.is_none_or(|own| own == table.subtable.created);
        let (mut is_old, mut has_older) = (false, false);
        for table in tables.iter().filter(is_own) {
            let at = (guard, Key { bytes: &key, hash: 0 }, None);
            let found = table.view(guard).active.versions.get(
                at,
                || u64::MAX,
                |found| tiers.told_number(guard, found),
            )?;
            let list = ranges.get(&table.subtable.created);
            is_old |= found.is_some_and(|found| found.number >= number)
                || list.is_some_and(|list| list.deletes(&key, number, u64::MAX));
            let on_levels = below.get(&(key.clone(), table.subtable.created));
            is_old |= on_levels.is_some_and(|(below, _)| *below >= number);
            has_older |= match found {
                Some(found) => !found.is_tombstone(),
                None => on_levels.is_some_and(|(_, is_value)| *is_value),
            };
        }
        let instead = match (has_older, is_deletion) {
            _ if is_old => continue,
            (true, true) => Instead::DeletedValue,
            (true, false) => Instead::OlderValue,
            (false, true) => continue,
            (false, false) => Instead::Nothing,
        };
        lost.push(LostKey { key, instead });
    }
    Ok(lost)
}
