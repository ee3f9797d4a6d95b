//! The keys that an index in the pool has perhaps lost, once it is known to be damaged.
//!
//! In a believed index, a deletion is only an absence. So a key with records that the index does not know has
//! been deleted or lost, and nothing tells which. The report names all such keys.

use crate::log::Spine;
use crate::types::error::DamagedPlace;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::Found;
use quipu_parts::index::Index;
use quipu_parts::record::shown_key;
use std::collections::{BTreeMap, BTreeSet};

/// Keys that are named; of the others only the number is reported.
const NAMED: usize = 100;

/// The last record of a key.
struct Last {
    sequence: u64,
    reference: Reference,
    len: u64,
}

/// A place for each key that has perhaps been lost.
pub(super) fn keys<I: Index>(spine: &Spine<I>, guard: &Guard<'_>) -> Vec<DamagedPlace> {
    let space = spine.heap.space();
    let of_index: BTreeSet<_> = spine.index.zones().into_iter().collect();
    let mut lost = BTreeMap::<Box<[u8]>, Last>::new();
    for zone in space.committed_zones().into_iter().filter(|zone| !of_index.contains(zone)) {
        // SAFETY: the caller has the store for itself, so nobody writes.
        if unsafe { spine.heap.value_life(zone) }.is_some() {
            continue;
        }
        // SAFETY: the caller has the store for itself, so nobody appends.
        let Ok(mut scan) = (unsafe { spine.heap.scan(zone) }) else { continue };
        while let Ok(Some(found)) = scan.advance() {
            let Found::Record { reference, record } = found else { continue };
            // A key that cannot be looked up counts as absent.
            let is_found =
                spine.locate::<false>(guard, spine.key(record.key)).is_ok_and(|found| found.is_some());
            if is_found || spine.has_expired(&record) {
                continue;
            }
            let (sequence, len) = (record.header.sequence.get(), record.header.record_len());
            let last = Last { sequence, reference, len };
            match lost.get_mut(record.key) {
                Some(before) if before.sequence < sequence => *before = last,
                Some(_) => {}
                None => _ = lost.insert(record.key.into(), last),
            }
        }
    }
    let others = lost.len().saturating_sub(NAMED);
    let mut places: Vec<DamagedPlace> = Vec::with_capacity(lost.len().min(NAMED) + 1);
    places.extend(lost.into_iter().take(NAMED).map(|(key, last)| DamagedPlace {
        what: format!("the key {} is perhaps lost: the index does not name its last record", shown_key(&key)),
        offset: spine.heap.resolve(last.reference),
        len: last.len,
    }));
    if others != 0 {
        places.push(DamagedPlace { what: format!("{others} more keys are perhaps lost"), offset: 0, len: 0 });
    }
    places
}
