//! The levels of a damaged pool, for its salvage.
//!
//! Memory wins: of a key that it has, levels have older records, or the same. All that does not prove itself
//! is a damaged place of the report, and the rest counts. The files of tables that are unknown stay as they
//! are.

use super::Tiers;
use super::pairing;
use super::table::Table;
use crate::engine::{AT_ONCE, InPlace};
use crate::types::error::{DamagedPlace, Error};
use quipu_parts::epoch::Guard;
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::Kind;
use quipu_parts::runs::{LevelRecord, Remains, RunsError};
use quipu_parts::versions::{RangeList, RangeTombstone};
use std::collections::{BTreeMap, BTreeSet};

/// The levels of the tables of a damaged pool.
pub(super) struct LevelsLeft {
    of_tables: BTreeMap<u64, Box<dyn Remains>>,
    wrong: BTreeSet<String>,
}

impl LevelsLeft {
    /// Opens those that are there.
    pub(super) fn of<I: InOrder>(tiers: &Tiers<I>) -> LevelsLeft {
        let (mut of_tables, mut wrong) = (BTreeMap::new(), BTreeSet::new());
        wrong.extend(tiers.dumper.stopped());
        let forest = tiers.dumper.forest.as_ref();
        let trees = forest.map(|forest| forest.trees()).transpose();
        let trees = trees.unwrap_or_else(|error| {
            wrong.insert(error.to_string());
            None
        });
        let trees = trees.unwrap_or_default();
        // Those of another time are read all the same.
        let all = tiers.tables.all();
        let relied = all.iter().map(|table| &table.subtable).filter(|table| table.flushed != 0);
        let relied = relied.map(|table| table.created).filter(|table| trees.contains(table));
        let forest_of_pool = forest.filter(|_| tiers.anchor.is_legible());
        let verified = forest_of_pool.map(|forest| pairing::verify(&**forest, tiers.anchor.levels(), relied));
        wrong.extend(verified.and_then(Result::err).map(|error| error.to_string()));
        for table in tiers.tables.all() {
            let created = table.subtable.created;
            if let Some(forest) = forest.filter(|_| trees.contains(&created)) {
                let remains = forest.salvage(created, &mut |error| _ = wrong.insert(error.to_string()));
                of_tables.insert(created, remains);
            } else if table.subtable.flushed != 0 {
                let name = &table.subtable.name;
                wrong.insert(format!("the levels of the table {name:?}, which are missing"));
            }
        }
        LevelsLeft { of_tables, wrong }
    }

    /// The range tombstones of all tables.
    pub(super) fn ranges(&mut self) -> Vec<(u64, RangeTombstone)> {
        let LevelsLeft { of_tables, wrong } = self;
        let mut told = |error: RunsError| _ = wrong.insert(error.to_string());
        let mut all = Vec::new();
        for (table, remains) in of_tables {
            all.extend(remains.ranges(&mut told).into_iter().map(|range| (*table, range)));
        }
        all
    }

    /// Copies the keys of a table that memory does not have, and returns how many there are. `each` is told
    /// all records, and whether the record is a value that is not deleted.
    pub(super) fn copy<I: InOrder>(
        &mut self,
        (tiers, guard, table): (&Tiers<I>, &Guard<'_>, &Table<I>),
        ranges: Option<&RangeList>,
        into: &mut InPlace,
        each: &mut dyn FnMut(&LevelRecord, bool),
    ) -> Result<u64, Error> {
        let LevelsLeft { of_tables, wrong } = self;
        let Some(remains) = of_tables.get(&table.subtable.created) else { return Ok(0) };
        let (now, versions) = (tiers.expiry_time(), &table.view(guard).active.versions);
        let (mut keys, mut outcome, mut some) = (0, Ok(()), Vec::with_capacity(AT_ONCE));
        let mut copy = |record: LevelRecord| -> Result<(), Error> {
            let LevelRecord { key, head, .. } = &record;
            let has_expired = head.expires != 0 && head.expires <= now;
            let is_deleted = ranges.is_some_and(|list| list.deletes(key, head.number, u64::MAX));
            let is_value = head.kind == Kind::Value && !has_expired && !is_deleted;
            each(&record, is_value);
            let at = (guard, Key { bytes: key, hash: 0 }, None);
            let in_memory = versions.get(at, || u64::MAX, |reference| tiers.told_number(guard, reference))?;
            if is_value && in_memory.is_none() {
                keys += 1;
                some.push(record);
            }
            if some.len() == AT_ONCE {
                put(into, &mut some)?;
            }
            Ok(())
        };
        let mut each = |record| {
            outcome = copy(record);
            outcome.is_ok()
        };
        remains.records(&mut each, &mut |error| _ = wrong.insert(error.to_string()));
        outcome?;
        put(into, &mut some)?;
        Ok(keys)
    }

    /// Whether no table has levels.
    pub(super) fn has_none(&self) -> bool {
        self.of_tables.is_empty()
    }

    /// Whether nothing of them is known to be gone.
    pub(super) fn are_whole(&self) -> bool {
        self.wrong.is_empty()
    }

    /// The damage that has been met.
    pub(super) fn places(self) -> impl Iterator<Item = DamagedPlace> {
        self.wrong.into_iter().map(|what| DamagedPlace { what, offset: 0, len: 0 })
    }
}

/// Puts records, and forgets them. Those that are put together take less room.
fn put(into: &mut InPlace, records: &mut Vec<LevelRecord>) -> Result<(), Error> {
    let mut pairs = Vec::with_capacity(AT_ONCE);
    for LevelRecord { key, head, value } in &*records {
        match head.expires {
            0 => pairs.push((&key[..], &value[..])),
            time => into.put_until(key, value, time)?,
        }
    }
    into.put_many(&pairs)?;
    records.clear();
    Ok(())
}
