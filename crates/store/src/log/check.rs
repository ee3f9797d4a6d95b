//! `check`: proves every structure and every record of an open store, and that nothing leaks.
//!
//! An index in the pool proves itself, and its words are compared with the records. If it is damaged, the
//! report also names the keys that it has perhaps lost (`lost`).

mod lost;

use crate::log::Spine;
use crate::points::check::{name, place_of};
use crate::types::error::{Damage, DamagedPlace, Error};
use crate::types::reports::CheckReport;
use crate::walk::proof::damage_of_space;
use quipu_parts::heap::segments::{Found, ScanError};
use quipu_parts::index::Index;
use std::collections::{BTreeSet, HashSet};

/// Checks a store that nobody else uses.
pub(crate) fn check<I: Index>(
    spine: &Spine<I>,
    progress: &dyn Fn(usize, usize),
) -> Result<CheckReport, Error> {
    // Retired zones that only wait for readers are no leak.
    spine.give_back();
    let space = spine.heap.space();
    let mut places = Vec::new();
    let mut complain = |what: String, offset, len| places.push(DamagedPlace { what, offset, len });

    damage_of_space(space).into_iter().for_each(|what| complain(what, 0, 0));
    let zones = space.committed_zones();
    let of_index: BTreeSet<_> = spine.index.zones().into_iter().collect();
    let (mut segments, mut records) = (0, 0);
    let mut unnamed = BTreeSet::new();
    let session = spine.own_session(None);
    let guard = session.pin();
    // Proved records that the index names.
    let mut named = 0;
    let (mut has_gaps, mut is_lossy) = (false, false);
    if let Err(error) = spine.index.audit(&guard, &|word| spine.place_of(word).is_some()) {
        let DamagedPlace { what, offset, len } = place_of(error.into());
        complain(what, offset, len);
        is_lossy = true;
    }
    for (i, zone) in zones.iter().enumerate() {
        if of_index.contains(zone) {
            progress(i + 1, zones.len());
            continue;
        }
        let start = space.zone_offset(*zone);
        let mut garbage = 0;
        // SAFETY: the caller has the store for itself, so nobody writes.
        if unsafe { spine.heap.value_life(*zone) }.is_some() {
            unnamed.insert(*zone);
            progress(i + 1, zones.len());
            continue;
        }
        // SAFETY: the caller has the store for itself, so nobody appends.
        match unsafe { spine.heap.scan(*zone) } {
            Err(error) => {
                complain(format!("a segment's header or end mark ({error:?})"), start, space.zone_size())
            }
            Ok(mut scan) => loop {
                match scan.advance() {
                    Ok(Some(Found::Record { reference, record })) => {
                        records += 1;
                        let len = record.header.record_len();
                        let word = spine.word(reference, record.kind(), len);
                        let key = spine.key(record.key);
                        let is_named = spine.index.names(&guard, key, word).unwrap_or_else(|error| {
                            if !is_lossy {
                                let DamagedPlace { what, offset, len } = place_of(error.into());
                                complain(what, offset, len);
                            }
                            is_lossy = true;
                            false
                        });
                        if !is_named && let Some(place) = spine.index.nearly_names(key, word) {
                            complain("an entry of the index, with a bit of another hash".into(), place, 0);
                            is_lossy = true;
                        }
                        if !is_named {
                            garbage += len;
                            continue;
                        }
                        named += 1;
                        if spine.heap.is_dead(reference) {
                            let what = "a record that the index names and that is taken for dead";
                            complain(what.into(), spine.heap.resolve(reference), len);
                        }
                    }
                    Ok(Some(Found::Frame { .. })) => {}
                    Ok(Some(Found::Gap { offset, len })) => {
                        has_gaps = true;
                        complain("records".into(), start + offset, len);
                    }
                    Err(ScanError::Unknown { offset, kind, .. }) => {
                        complain(format!("a record of unknown kind {kind}"), start + offset, 0);
                        break;
                    }
                    Ok(None) | Err(_) => {
                        segments += 1;
                        let counted = spine.heap.known_garbage(*zone).filter(|_| I::DURABLE);
                        if let Some(counted) = counted.filter(|counted| *counted != garbage) {
                            let what = format!(
                                "a segment with {garbage} bytes of garbage, of which {counted} count"
                            );
                            complain(what, start, space.zone_size());
                        }
                        if let Some(end) = spine.heap.idle_end(*zone)
                            && scan.offset() < end
                        {
                            complain("records".into(), start + scan.offset(), end - scan.offset());
                        }
                        break;
                    }
                }
            },
        }
        progress(i + 1, zones.len());
    }

    let mut values = 0;
    let (keys, counted) = spine.check_names(&guard, &mut complain, &mut |record, complain| {
        if !record.is_large() {
            return;
        }
        let value = spine.heap.large_value(record.value);
        // SAFETY: the caller has the store for itself, so nobody writes.
        match value.and_then(|value| unsafe { value.proved_zones() }) {
            Some(zones) if zones.iter().all(|zone| unnamed.remove(&zone)) => values += 1,
            Some(_) => complain(format!("two keys name the large value of {}", name(record)), 0, 0),
            None => complain(format!("the large value of {}", name(record)), 0, 0),
        }
    });
    if named != counted {
        is_lossy |= I::DURABLE && !has_gaps;
        spine.complain_of_unproved(&guard, (named, counted), &proved(spine), &mut complain);
    }
    if is_lossy {
        lost::keys(spine, &guard).into_iter().for_each(|lost| complain(lost.what, lost.offset, lost.len));
    }
    for zone in unnamed {
        let what = "a zone of a large value that no key has: it leaks".into();
        complain(what, space.zone_offset(zone), space.zone_size());
    }
    let free_zones = space.free_zones() as u64;
    Ok(CheckReport { segments, values, records, keys, free_zones, damage: Damage { places }, unproved: &[] })
}

/// The words of all proved records.
fn proved<I: Index>(spine: &Spine<I>) -> HashSet<u64> {
    let mut proved = HashSet::new();
    for zone in spine.heap.space().committed_zones() {
        // SAFETY: the caller of `check` has the store for itself, so nobody appends.
        let Ok(mut scan) = (unsafe { spine.heap.scan(zone) }) else { continue };
        while let Ok(Some(found)) = scan.advance() {
            if let Found::Record { reference, .. } = found {
                proved.insert(reference.word());
            }
        }
    }
    proved
}
