//! Recovery: from the segments of a pool to an index, in parallel, the highest sequence number of a key
//! winning.
//!
//! Recovery is a normal code path: no clean shutdown is needed, and it may itself crash at any point and
//! start again. It has two halves. The first only reads: every segment is scanned, and every record proved.
//! The second makes the findings durable for good. It flushes the tails of open segments, since a record that
//! was read from a cache must not vanish with a later power failure. It marks their ends, so that no run ever
//! appends to a segment of an earlier one. It frees segments without a record, and zones of large values that
//! no record names any more. All of it is fenced before the store is handed out.

pub(crate) mod durable;
mod findings;
mod values;

use crate::engine::site::Existing;
use crate::engine::site::Holes;
use crate::log::Spine;
use crate::log::salvage;
use crate::points::checkpoint::Loaded;
use crate::points::reference_of;
use crate::types::error::{DamagedPlace, Error, damaged_at};
use crate::types::reports::RecoveryReport;
use crate::walk::proof::{all_damage, refuse_number};
pub(crate) use findings::Findings;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::{FIRST_RECORD, Found, LogHeap, PastHole, ScanError, SegmentInfo, Shard};
use quipu_parts::index::{Imaged, Index, Key};
use quipu_parts::record::{HEADER, Kind, RecordView};
use quipu_parts::space::{SpaceRecovery, ZoneId};
use quipu_parts::twin;
use values::FoundHead;

/// Records whose index lines are fetched together.
const AT_ONCE: usize = 16;

/// Bytes that a search behind a torn record may prove, in sizes of a segment. Values full of bytes that look
/// like headers can use it up; the rest of the segment is then reported as torn.
pub(crate) const MOST_EFFORT: u64 = 4;

/// A record on its way into the index.
struct Pending<'a> {
    /// It stands in a segment that was sealed.
    sealed: bool,
    hash: u64,
    reference: Reference,
    record: RecordView<'a>,
}

/// Opens a pool that was closed from its loaded checkpoint.
pub(crate) fn resume<I: Imaged>(
    spine: &mut Spine<I>,
    loaded: Loaded<I>,
    space: SpaceRecovery,
) -> RecoveryReport {
    loaded.adopt(&mut spine.core, space)
}

/// Builds the index of a pool that was just mapped, and settles what a crash left open.
pub(crate) fn recover<I: Index>(
    spine: &Spine<I>,
    threads: usize,
    pool: Existing<'_>,
) -> Result<RecoveryReport, Error> {
    let Existing { holes, found: mut space, progress } = pool;
    let mut findings = scan_all(spine, threads, holes, progress)?;
    if let Some(what) = findings.newer {
        return Err(Error::NewerFormat { what });
    }
    refuse_number(spine.heap.space(), findings.highest)?;
    if space.was_clean {
        let no_end_mark = |(info, end): &(SegmentInfo, u64)| spine.no_end_mark(info.zone, *end);
        findings.damage.extend(findings.open.iter().map(no_end_mark));
    }
    let uncoverable = findings.holes.iter().any(|(_, _, len)| !LogHeap::can_cover(*len));
    let holes = if uncoverable { Holes::AreDamage } else { holes };
    if uncoverable {
        findings.damage.append(&mut findings.report.torn);
    }
    findings.damage = all_damage(spine.heap.space(), findings.damage);
    match holes {
        Holes::AreDamage => damaged_at(std::mem::take(&mut findings.damage))?,
        Holes::Salvaged => {}
        Holes::AreLost | Holes::AreAccepted => {
            let participant = spine.common.epochs.register();
            findings.report.lost_keys = salvage::lost_keys(spine, &participant.pin(), &findings, holes)?;
            findings.report.lost = std::mem::take(&mut findings.damage);
        }
    }
    for (info, end) in std::mem::take(&mut findings.open) {
        let needless = end == FIRST_RECORD || (holes == Holes::AreDamage && spine.is_needless(&info)?);
        let list = if needless { &mut findings.needless } else { &mut findings.open };
        list.push((info, end));
    }
    spine.drop_tombstones()?;
    spine.heap.clock().pass(findings.highest);
    // Nothing was changed until here.
    spine.heap.space().repair(&mut space);
    findings.report.was_clean = space.was_clean;
    findings.report.reclaimed = space.leaked_reclaimed as usize;
    spine.settle_segments(findings)
}

/// Builds the index of the latest of all records that prove themselves. The pool is not changed. `progress`
/// is told the segments done and in all.
pub(crate) fn scan_all<I: Index>(
    spine: &Spine<I>,
    threads: usize,
    holes: Holes,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Findings, Error> {
    let mut zones = spine.heap.space().committed_zones();
    if holes == Holes::Salvaged {
        zones.extend(spine.heap.orphans());
    }
    let mut findings: Findings =
        spine.scan_zones(&zones, threads, progress, |guard, shard, zone, found| {
            spine.scan_zone(guard, shard, zone, holes, found)
        })?;
    spine.judge_values(&mut findings)?;
    findings.orphans = spine.heap.orphans();
    // After a crash of the system that the durability does not cover, table and headers may be of different
    // times.
    if holes != Holes::AreLost {
        findings.damage.extend(findings.orphans.iter().map(|zone| spine.lost_by_table(*zone)));
    }
    Ok(findings)
}

impl<I: Index> Spine<I> {
    fn scan_zone(
        &self,
        guard: &Guard<'_>,
        shard: Shard,
        zone: ZoneId,
        holes: Holes,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let start = self.heap.space().zone_offset(zone);
        if self.heap.is_given_up(zone) {
            findings.given_up.push(zone);
            return Ok(());
        }
        // SAFETY: recovery runs before the store is handed out, so nobody writes; the scanning threads only
        // read.
        if let Some(life) = unsafe { self.heap.value_life(zone) } {
            findings.highest = findings.highest.max(life);
            findings.values.push(zone);
            return Ok(());
        }
        // SAFETY: as above.
        let mut scan = match unsafe { self.heap.scan(zone) } {
            Ok(scan) => Some(scan),
            Err(error) => {
                findings.damage.push(self.wrong_header(zone, &error));
                None
            }
        };
        if scan.is_none() && holes != Holes::AreDamage {
            // SAFETY: as above.
            scan = unsafe { self.heap.scan_without_end(zone) }.ok();
        }
        let Some(mut scan) = scan else {
            findings.headless.push(zone);
            return Ok(());
        };
        if holes != Holes::AreDamage {
            scan = scan.past_holes();
        }
        findings.report.segments += 1;
        findings.highest = findings.highest.max(scan.info().life_number);
        let mut batch: Vec<Pending<'_>> = Vec::with_capacity(AT_ONCE);
        let mut effort = MOST_EFFORT * self.heap.space().zone_size();
        loop {
            match scan.advance() {
                Ok(Some(Found::Record { reference, record })) => {
                    findings.report.records += 1;
                    findings.highest = findings.highest.max(record.header.sequence.get());
                    self.heap.note_written(shard, zone, record.header.record_len());
                    if record.kind() == Kind::Void {
                        self.heap.note_garbage(shard, reference, record.header.record_len());
                        continue;
                    }
                    let key = self.key(record.key);
                    if record.is_large()
                        && !self.note_head(scan.info(), key.hash, reference, &record, findings)
                    {
                        self.heap.note_garbage(shard, reference, record.header.record_len());
                        continue;
                    }
                    self.index.prefetch(guard.participant(), key);
                    if record.expires != 0 {
                        self.heap.note_expiring(reference, record.header.record_len(), record.expires);
                    }
                    let sealed = scan.info().sealed_end.is_some();
                    batch.push(Pending { sealed, hash: key.hash, reference, record });
                    if batch.len() == AT_ONCE {
                        batch.drain(..).try_for_each(|pending| self.adopt(guard, shard, pending))?;
                    }
                }
                Ok(Some(Found::Frame { reference, sequence })) => {
                    findings.highest = findings.highest.max(sequence);
                    self.heap.note_written(shard, zone, HEADER);
                    self.heap.note_garbage(shard, reference, HEADER);
                }
                Ok(Some(Found::Gap { offset, len })) => {
                    let place = DamagedPlace { what: "records".into(), offset: start + offset, len };
                    findings.damage.push(place);
                    findings.holes.push((scan.info(), offset, len));
                }
                Ok(None) => {
                    let offset = scan.offset();
                    // Otherwise the scan passes over holes by itself.
                    let may_be_torn = scan.info().sealed_end.is_none() && holes == Holes::AreDamage;
                    let passed = match may_be_torn && !twin!(AppendAfterRecovery) {
                        true => scan.pass_hole(&self.drawn(), &mut effort),
                        false => PastHole::Nothing,
                    };
                    // Either the run died while it wrote several records under one fence, of which any may
                    // have arrived. Or a record that was written whole was damaged since. The records behind
                    // it count in either case.
                    let end = match passed {
                        PastHole::Nothing => break,
                        PastHole::Record => scan.offset(),
                        PastHole::Unclear => self.heap.space().zone_size(),
                    };
                    let (what, len) =
                        ("records that were written in part or are damaged".into(), end - offset);
                    findings.report.torn.push(DamagedPlace { what, offset: start + offset, len });
                    if passed == PastHole::Unclear {
                        break;
                    }
                    findings.holes.push((scan.info(), offset, len));
                }
                Err(ScanError::Unknown { offset, kind, flags }) => {
                    let at = start + offset;
                    let what = format!("record kind {kind} with flags {flags:#x} at byte {at}");
                    if holes == Holes::Salvaged {
                        let len = self.heap.space().zone_size() - offset;
                        findings.damage.push(DamagedPlace { what, offset: at, len });
                        break;
                    }
                    findings.newer = Some(what);
                    return Ok(());
                }
                Err(_) => break,
            }
        }
        batch.drain(..).try_for_each(|pending| self.adopt(guard, shard, pending))?;
        if scan.info().sealed_end.is_none() {
            findings.open.push((scan.info(), scan.offset()));
        } else {
            findings.sealed.push(scan.info());
        }
        Ok(())
    }

    /// Notes the head of a large value, and tells whether its zones prove that they hold it.
    fn note_head(
        &self,
        segment: SegmentInfo,
        hash: u64,
        reference: Reference,
        record: &RecordView<'_>,
        findings: &mut Findings,
    ) -> bool {
        let value = self.heap.large_value(record.value);
        // SAFETY: as for the scan: nobody writes.
        let zones = value.and_then(|value| unsafe { value.proved_zones() });
        let is_proved = zones.is_some();
        let (sequence, len) = (record.header.sequence.get(), record.header.record_len());
        findings.heads.push(FoundHead { hash, reference, segment, len, sequence, zones });
        is_proved
    }

    /// Lets the index name this record, unless it names a later one of the same key. A copy by compaction
    /// equals its original. But the copy of a record that had expired is a tombstone, which is final.
    fn adopt(&self, guard: &Guard<'_>, shard: Shard, pending: Pending<'_>) -> Result<(), Error> {
        let Pending { sealed, hash, reference, record } = pending;
        let (len, sequence) = (record.header.record_len(), record.header.sequence.get());
        let word = self.word(reference, record.kind(), len);
        let is_tombstone = record.kind() == Kind::Tombstone;
        // An expired record means the same as a tombstone. A large one does not: a tombstone of its number
        // may have outlived its zones.
        let is_final = |record: &RecordView<'_>| match record.kind() {
            Kind::Value => self.has_expired(record),
            kind => kind == Kind::Tombstone && !twin!(TombstoneNotFinal),
        };
        // Of a record and its equal copy, the one in a sealed segment wins: if compaction was cut off, its
        // unfinished segment then holds nothing that is needed.
        let rank = |record: &RecordView<'_>, sealed| (record.header.sequence.get(), is_final(record), sealed);
        let key = Key { bytes: record.key, hash };
        let _stripe = self.lock(guard, hash);
        match self.locate::<false>(guard, key)? {
            None => {
                self.index.upsert(guard, key, word, None, |_| false, &self.core)?;
            }
            Some(old) if rank(&old.record, false) < rank(&record, sealed) => {
                let done = self.index.replace(guard, key, old.word, word)?;
                debug_assert!(done, "the key is locked");
                let place = reference_of(old.word);
                self.heap.hold_tombstones(place, sequence);
                if !old.is_tombstone() {
                    self.heap.note_dead(shard, place, old.record.header.record_len());
                }
            }
            Some(winner) => {
                self.heap.hold_tombstones(reference, winner.record.header.sequence.get());
                if !is_tombstone {
                    self.heap.note_dead(shard, reference, len);
                }
            }
        }
        if is_tombstone {
            self.heap.note_tombstone(shard, reference, len);
        }
        Ok(())
    }

    /// Whether the index names no record in this segment, tombstones included. The segment is then freed: in
    /// a full pool, a run that dies soon after compaction took the last zone would otherwise leave no zone to
    /// the next.
    fn is_needless(&self, info: &SegmentInfo) -> Result<bool, Error> {
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        // SAFETY: as in `scan_zone`.
        let Ok(mut scan) = (unsafe { self.heap.scan(info.zone) }) else { return Ok(false) };
        let mut effort = MOST_EFFORT * self.heap.space().zone_size();
        loop {
            match scan.advance() {
                Ok(Some(Found::Record { reference, record })) => {
                    let word = self.word(reference, record.kind(), record.header.record_len());
                    if self.index.names(&guard, self.key(record.key), word)? {
                        return Ok(false);
                    }
                }
                Ok(Some(Found::Frame { .. })) => {}
                Ok(None) if scan.pass_hole(&self.drawn(), &mut effort) == PastHole::Record => {}
                Ok(None) => return Ok(true),
                Ok(Some(Found::Gap { .. })) | Err(_) => return Ok(false),
            }
        }
    }

    fn settle_segments(&self, findings: Findings) -> Result<RecoveryReport, Error> {
        let mut report = findings.report;
        findings.sealed.iter().for_each(|info| self.heap.register(info));
        let lost = !report.lost.is_empty();
        if report.was_clean && !lost && findings.values.is_empty() {
            return Ok(report);
        }
        findings.sealed.iter().for_each(|info| self.heap.confirm(info));
        self.region().fence();
        let is_settled = findings.open.is_empty()
            && findings.needless.is_empty()
            && findings.given_up.is_empty()
            && findings.orphans.is_empty()
            && findings.values.is_empty();
        if is_settled && !lost {
            return Ok(report);
        }
        let changed = findings.open.iter().map(|(info, end)| (info.zone, *end));
        let covered = findings.holes.iter().map(|(info, offset, len)| (info.zone, offset + len));
        self.heap.back_found(changed.chain(covered))?;
        self.heap.clock().begin(self.heap.space());
        if !findings.holes.is_empty() {
            for (info, offset, len) in &findings.holes {
                self.heap.cover(info, *offset, *len);
            }
            self.region().fence();
        }
        // Damage that was excused or accepted now: no later open has that excuse.
        findings.orphans.iter().for_each(|zone| self.heap.give_up(*zone));
        if lost {
            for zone in &findings.headless {
                self.heap.space().release_zone(*zone);
                report.reclaimed += 1;
            }
        }
        let used = findings.open;
        if twin!(AppendAfterRecovery) {
            used.iter().for_each(|(info, end)| self.heap.reopen(info, *end));
        } else {
            self.heap.seal_recovered(&used);
            self.heap.discard_rests(&used);
            used.iter().for_each(|(info, _)| self.heap.register(info));
            report.sealed = used.len();
        }
        // Only now: the records that make them needless, or supersede a large value, may have been in a
        // cache.
        let free_given_up = || findings.given_up.iter().for_each(|zone| self.heap.free_given_up(*zone));
        let values_first = twin!(ValuesFreedBeforeGivenUp);
        if !values_first {
            // The mark of a given-up segment may be in a cache too. The segment would return with a head
            // whose value is gone. If that head has expired, nothing supersedes it.
            free_given_up();
        }
        for (info, _) in &findings.needless {
            self.heap.free(info.zone);
        }
        findings.values.iter().for_each(|zone| self.heap.space().release_zone(*zone));
        if values_first {
            free_given_up();
        }
        report.reclaimed += findings.needless.len() + findings.values.len() + findings.given_up.len();
        Ok(report)
    }
}
