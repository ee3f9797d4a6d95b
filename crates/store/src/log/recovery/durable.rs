//! Recovery of a store whose index is in the pool: the index is believed, and the records are not read
//! (PACMAN section 3.5).
//!
//! Recovery reads a line of each zone: the header of a segment, with its life and its end, or that of a zone
//! of the index. A later survey finds the ends of segments that a crash has left open, and the dead records.
//!
//! # Why the index can be believed
//!
//! The index names a record only after the record was durable. A record's segment is freed only when the
//! index has durably forgotten the whole segment. So every record exists that the index names after a crash:
//!
//! | cut off | left | settled by |
//! |---|---|---|
//! | a put, before the index | a record that the index does not name | nothing: it is dead |
//! | a put of an old key, behind the index | the older record, not named any more | nothing: it is dead |
//! | a deletion, before or behind the index | all or nothing of it | nothing |
//! | a step of compaction | originals and copies, of each one named | nothing: the others are dead |
//! | a segment between its zone and its commit | a zone that is taken | freeing the zone |
//! | a segment of a client | an open segment | its survey or a close, which finds, flushes, marks the end |
//! | a zone of the index between its link and its commit | a link to nothing | clearing the link |
//!
//! Dead records are found later ([`LogHeap::take_over`]): the store opens at once.
//!
//! # The clock
//!
//! Recovery does not read the numbers of records. All were drawn below the durable ceiling in the superblock,
//! so the clock continues from there. If a copy of the superblock is lost, it continues from the highest
//! ceiling that the other copy may have had. Lives are read, and the clock passes them.
//!
//! # After a crash of the system
//!
//! Under a file whose durability covers crashes of processes only, pages may be old, new or zero anywhere,
//! those of the index included, and no word of it proves that it is the latest. Such a pool is refused.

use crate::engine::site::Existing;
use crate::engine::site::Holes;
use crate::log::{Rooted, Spine};
use crate::types::error::{DamagedPlace, Error, damaged_at};
use crate::types::reports::RecoveryReport;
use crate::walk::proof::{all_damage, refuse_number};
#[cfg(doc)]
use quipu_parts::heap::segments::LogHeap;
use quipu_parts::heap::segments::{FIRST_RECORD, SegmentInfo};
use quipu_parts::space::ZoneId;
use std::collections::BTreeSet;

/// The contents of the headers.
#[derive(Default)]
struct Headers {
    /// Sealed segments with their ends.
    sealed: Vec<(SegmentInfo, u64)>,
    open: Vec<SegmentInfo>,
    /// Zones of segments that were given up but are still taken in the zone table.
    given_up: Vec<ZoneId>,
    damage: Vec<DamagedPlace>,
    /// The highest life number.
    highest: u64,
}

/// Takes over the segments of a pool that was just mapped, whose index was examined, and settles what a crash
/// left open.
pub(crate) fn recover<I: Rooted>(spine: &Spine<I>, pool: Existing<'_>) -> Result<RecoveryReport, Error> {
    let Existing { holes, found: mut space, progress } = pool;
    let heap = &spine.heap;
    if holes != Holes::AreDamage {
        return Err(DamagedPlace::after_a_crash(heap.space()).into());
    }
    let of_index: BTreeSet<_> = spine.index.zones().into_iter().collect();
    let zones = heap.space().committed_zones();
    let mut headers = Headers::default();
    for (i, zone) in zones.iter().enumerate() {
        if !of_index.contains(zone) {
            spine.read_header(*zone, &mut headers);
        }
        progress(i + 1, zones.len());
    }
    let Headers { sealed, mut open, given_up, mut damage, highest } = headers;
    damage.extend(heap.orphans().into_iter().map(|zone| spine.lost_by_table(zone)));
    refuse_number(heap.space(), highest)?;
    if space.was_clean {
        // Closing seals every segment, so an end mark is missing.
        damage.extend(open.drain(..).map(|info| DamagedPlace {
            what: "the end mark of a segment".into(),
            offset: heap.space().zone_offset(info.zone),
            len: heap.space().zone_size(),
        }));
    }
    damaged_at(all_damage(heap.space(), damage))?;
    // A survey marks their ends.
    heap.back_found(open.iter().map(|info| (info.zone, FIRST_RECORD)))?;
    heap.clock().pass(highest);
    // Nothing was changed until here.
    heap.space().repair(&mut space);
    spine.index.repair(|| heap.clock().begin(heap.space()))?;
    if !given_up.is_empty() {
        heap.clock().begin(heap.space());
        given_up.iter().for_each(|zone| heap.free_given_up(*zone));
    }
    let report = RecoveryReport {
        was_clean: space.was_clean,
        segments: sealed.len() + open.len(),
        reclaimed: space.leaked_reclaimed as usize + given_up.len(),
        ..RecoveryReport::default()
    };
    if !report.was_clean {
        sealed.iter().map(|(info, _)| info).chain(&open).for_each(|info| heap.confirm(info));
        spine.region().fence();
    }
    sealed.iter().for_each(|(info, end)| heap.take_over(info, *end));
    open.iter().for_each(|info| heap.take_over_open(info));
    Ok(report)
}

impl<I: Rooted> Spine<I> {
    /// Reads the header of a segment.
    fn read_header(&self, zone: ZoneId, headers: &mut Headers) {
        if self.heap.is_given_up(zone) {
            headers.given_up.push(zone);
            return;
        }
        // SAFETY: recovery runs before the store is handed out, so nobody writes.
        let info = match unsafe { self.heap.segment_info(zone) } {
            Ok(info) => info,
            Err(error) => {
                headers.damage.push(self.wrong_header(zone, &error));
                return;
            }
        };
        headers.highest = headers.highest.max(info.life_number);
        match info.sealed_end {
            Some(end) => headers.sealed.push((info, end)),
            None => headers.open.push(info),
        }
    }
}
