//! `check`: proves every structure and every record of an open store, and that nothing leaks.

use super::NlogSpine;
use crate::types::error::{Damage, DamagedPlace, Error};
use crate::types::reports::CheckReport;
use crate::walk::proof::damage_of_space;
use quipu_parts::heap::SizedReference;
use quipu_parts::heap::nlog::Item;
use quipu_parts::heap::segments::ScanError;
use quipu_parts::index::Index;
use quipu_parts::record::Kind;
use std::collections::HashSet;

/// The bytes of records whose checks cover their headers alone.
const BEHIND_HEADERS: &[&str] = &["keys, values, times of expiry and parents of records (entry=op-last)"];

/// Checks a store that nobody else uses.
pub(super) fn check<I: Index>(
    spine: &NlogSpine<I>,
    progress: &dyn Fn(usize, usize),
) -> Result<CheckReport, Error> {
    // Retired files that only wait for readers are no leak.
    spine.give_back();
    let space = spine.heap.space();
    let mut places = Vec::new();
    let mut complain = |what: String, offset, len| places.push(DamagedPlace { what, offset, len });
    damage_of_space(space).into_iter().for_each(|what| complain(what, 0, 0));
    let zones = space.committed_zones();
    let (mut segments, mut records, mut named) = (0, 0, 0);
    let participant = spine.common.epochs.register();
    let guard = participant.pin();
    for (number, zone) in zones.iter().enumerate() {
        let start = space.zone_offset(*zone);
        // SAFETY: the caller has the store for itself, so nobody writes.
        let found = unsafe { spine.nlog().file_info(*zone).map(|info| (info, spine.nlog().bytes_of(&info))) };
        let (info, bytes) = match found {
            Ok((info, Some(bytes))) => (info, bytes),
            Ok(_) => {
                complain("a segment that leaves the pool".into(), start, space.zone_size());
                continue;
            }
            Err(error) => {
                complain(format!("a segment's header or end mark ({error:?})"), start, space.zone_size());
                continue;
            }
        };
        segments += 1;
        let mut scan = spine.nlog().scan(&info, bytes, spine.drawn());
        // Places behind the last record of an open file were not given away yet.
        let mut hole = None;
        loop {
            match scan.advance() {
                Ok(Some(Item::Record(entry, record))) => {
                    records += 1;
                    let word = SizedReference::new(entry.reference, record.header.record_len()).word();
                    let is_named = record.kind() == Kind::Value
                        && spine.index.names(&guard, spine.key(record.key), word)?;
                    named += u64::from(is_named);
                }
                Ok(Some(Item::Void { .. })) => {}
                Ok(Some(Item::Hole { offset, len })) => {
                    hole = Some((offset, len));
                    continue;
                }
                Err(ScanError::Unknown { offset, kind, .. }) => {
                    complain(format!("a record of unknown kind {kind}"), start + offset, 0);
                    break;
                }
                Ok(None) | Err(_) => break,
            }
            if let Some((offset, len)) = hole.take() {
                complain("records".into(), start + offset, len);
            }
        }
        if let Some((offset, len)) = hole.filter(|_| info.segment.sealed_end.is_some()) {
            complain("records".into(), start + offset, len);
        }
        progress(number + 1, zones.len());
    }
    let (keys, counted) = spine.check_names(&guard, &mut complain, &mut |_, _| {});
    if named != counted {
        spine.complain_of_unproved(&guard, (named, counted), &proved(spine), &mut complain);
    }
    let free_zones = space.free_zones() as u64;
    Ok(CheckReport {
        segments,
        values: 0,
        records,
        keys,
        free_zones,
        damage: Damage { places },
        unproved: if spine.heap.certifier().is_of_headers_alone() { BEHIND_HEADERS } else { &[] },
    })
}

/// The words of all proved records.
fn proved<I: Index>(spine: &NlogSpine<I>) -> HashSet<u64> {
    let mut proved = HashSet::new();
    for zone in spine.heap.space().committed_zones() {
        // SAFETY: the caller of `check` has the store for itself, so nobody writes.
        let found = unsafe { spine.nlog().file_info(zone).map(|info| (info, spine.nlog().bytes_of(&info))) };
        let Ok((info, Some(bytes))) = found else { continue };
        let mut scan = spine.nlog().scan(&info, bytes, spine.drawn());
        while let Ok(Some(item)) = scan.advance() {
            if let Item::Record(entry, _) = item {
                proved.insert(entry.reference.word());
            }
        }
    }
    proved
}
