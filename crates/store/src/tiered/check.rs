//! `check`: proves every chunk of an open store, and that indexes and memtables agree.

use super::Tiers;
use super::scan::Scan;
use crate::engine::Stretch;
use crate::engine::moment::Moment;
use crate::types::error::{Damage, DamagedPlace, Error};
use crate::types::reports::CheckReport;
use crate::walk::proof::damage_of_space;
use quipu_parts::heap::chain::RecordFound;
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::{Kind, shown_key};
use quipu_parts::versions::{Look, Noted, RangeTombstone};
use std::collections::BTreeMap;

/// Checks a store that nobody else uses.
pub(super) fn check<I: InOrder>(
    tiers: &Tiers<I>,
    progress: &dyn Fn(usize, usize),
) -> Result<CheckReport, Error> {
    tiers.release_all_ripe();
    let (heap, space) = (tiers.log.heap(), tiers.log.heap().space());
    let mut places = Vec::new();
    let mut complain = |what: String, offset, len| places.push(DamagedPlace { what, offset, len });
    damage_of_space(space).into_iter().for_each(|what| complain(what, 0, 0));
    let (memtables, tables) = (tiers.log.memtables(), tiers.tables.all());
    let by_number: BTreeMap<u64, _> = tables.iter().map(|table| (table.subtable.created, table)).collect();
    let known = memtables.iter().map(|memtable| memtable.zones().len()).sum::<usize>();
    let in_use = space.committed_zones().len();
    if known + tiers.log.spare_zones()?.len() != in_use {
        complain(format!("{in_use} zones are in use, and memtables have {known}: they leak"), 0, 0);
    }
    let participant = tiers.common.epochs.register();
    let (guard, mut records, mut live) = (participant.pin(), 0, 0u64);
    let (mut ranges, mut lost, mut forgotten) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (nth, memtable) in memtables.iter().enumerate() {
        let Some(table) = by_number.get(&memtable.subtable()) else {
            complain("a memtable of a table that has been dropped".into(), 0, 0);
            continue;
        };
        let each = |record: RecordFound<'_>| {
            records += 1;
            if record.kind == Kind::Range {
                let (from, to) = (record.key.into(), record.value.into());
                ranges.push((memtable.subtable(), RangeTombstone { from, to, number: record.version }));
                return;
            }
            let at = (&guard, Key { bytes: record.key, hash: 0 }, None);
            let number_of = |reference| tiers.number_of(&guard, reference);
            let newest =
                table.view(&guard).layer_of(memtable.number()).versions.get(at, || u64::MAX, number_of);
            match newest {
                Ok(Some(version)) if version.reference.with_tag(0) == record.reference => live += 1,
                Ok(Some(version)) if version.number > record.sequence => {}
                // A tombstone that hid nothing is forgotten before its memtable is released.
                _ if memtable.end().is_some() && tiers.may_be_forgotten(&record) => {
                    forgotten.insert((memtable.subtable(), record.key.to_vec()), record.sequence);
                }
                _ => lost.push((memtable.subtable(), record.key.to_vec(), record.reference, record.sequence)),
            }
        };
        if let Some(end) = tiers.log.end_so_far(memtable)? {
            // SAFETY: the caller has the store for itself, so nobody writes or releases.
            if let Err(error) = unsafe { heap.records(memtable, end, each) } {
                complain(error.to_string(), 0, 0);
            }
        }
        progress(nth + 1, memtables.len());
    }
    for (subtable, key, reference, number) in lost {
        let deletes = |(of, range): &(u64, RangeTombstone)| {
            *of == subtable && range.number > number && range.holds(&key)
        };
        let later = forgotten.get(&(subtable, key.clone()));
        if !ranges.iter().any(deletes) && later.is_none_or(|later: &u64| *later < number) {
            let what = format!("the index does not name the record of the key {}", shown_key(&key));
            complain(what, heap.resolve(reference), 0);
        }
    }
    let (mut keys, mut named) = (0, 0u64);
    for table in &tables {
        let view = table.view(&guard);
        let mut values = 0;
        for layer in view.layers() {
            let mut scan = layer.versions.scan_from(&[]);
            let number_of = |reference| tiers.number_of(&guard, reference);
            let mut look =
                Look { limit: 64, up_to: u64::MAX, prefetch: |_| (), number_of, noted: Noted::default() };
            let (mut batch, mut has_more) = (Vec::new(), true);
            while has_more {
                let note = |_: &[u8], version| batch.push(version);
                has_more = layer.versions.next_in_order(&guard, &mut scan, &mut look, note)?;
                for version in batch.drain(..) {
                    named += 1;
                    let record = tiers.record_of(&guard, &version).ok();
                    let again = record.and_then(|record| {
                        let at = (&guard, Key { bytes: record.key, hash: 0 }, None);
                        layer.versions.get(at, || u64::MAX, number_of).ok().flatten()
                    });
                    if again == Some(version) {
                        values += u64::from(!version.is_tombstone());
                    } else {
                        complain("the record of a key".into(), heap.resolve(version.reference), 0);
                    }
                }
            }
        }
        let of_levels = view.levels.as_ref().map(|levels| levels.check(&mut |_, _| records += 1));
        let are_sound = !matches!(of_levels, Some(Err(_)));
        if let Some(Err(error)) = of_levels {
            complain(error.to_string(), 0, 0);
        }
        keys += match view.is_one() {
            true => values,
            // A key may be in several places.
            false => {
                let scan = Scan::new(tiers, (&guard, Moment::NOW), table, Stretch::ALL)?;
                let mut found = 0;
                for record in scan {
                    match record {
                        Ok(_) => found += 1,
                        // Levels that were read a moment ago.
                        Err(error @ Error::Levels(_)) if are_sound => complain(error.to_string(), 0, 0),
                        // Told above.
                        Err(_) => {}
                    }
                }
                found
            }
        };
    }
    if named != live {
        complain(format!("of {named} keys in the indexes, {live} have a record that proves itself"), 0, 0);
    }
    let free_zones = space.free_zones() as u64;
    let damage = Damage { places };
    Ok(CheckReport { segments: memtables.len(), values: 0, records, keys, free_zones, damage, unproved: &[] })
}

impl<I: InOrder> Tiers<I> {
    /// Whether an index may have forgotten the key of this record.
    fn may_be_forgotten(&self, record: &RecordFound<'_>) -> bool {
        record.kind == Kind::Tombstone || self.has_expired(record)
    }
}
