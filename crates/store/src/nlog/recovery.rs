//! Recovery (section III-G): from the files of a pool to an index, in parallel.
//!
//! The first half only reads. Of all records of a key that prove themselves, the one with the highest number
//! counts. A copy has the number of its original, and counts in its place. But if the copy is in a file that
//! was still open, the original counts: a cleaner was cut off, and without its copies the file may be empty.
//!
//! The second half makes the findings durable for good. Places whose records never arrived are covered,
//! copies that do not count are marked, and the ends of open files are marked, so that no run appends to a
//! file of an earlier one. Only files without any valid record are freed, however needless the others are: a
//! record goes only after its parent (rule P of [`quipu_parts::heap::nlog`]), and a cleaner sees to that.

use super::NlogSpine;
use crate::engine::site::{Existing, Holes};
use crate::points::checkpoint::Loaded;
use crate::points::recovery::Findings;
use crate::points::{reference_of, tagged};
use crate::types::error::{DamagedPlace, Error, damaged_at};
use crate::types::reports::RecoveryReport;
use crate::walk::proof::{all_damage, refuse_number};
use quipu_parts::epoch::Guard;
use quipu_parts::heap::SizedReference;
use quipu_parts::heap::nlog::{Entry, FileInfo, Item, taken};
use quipu_parts::heap::segments::{FIRST_RECORD, ScanError, Shard};
use quipu_parts::index::{Imaged, Index};
use quipu_parts::record::{Kind, RecordView};
use quipu_parts::space::{SpaceRecovery, ZoneId};
use quipu_parts::twin;

/// A file that a crash has left open.
struct OpenFile {
    info: FileInfo,
    /// Where its records end.
    end: u64,
    /// Places before that whose records never arrived, with their lengths.
    holes: Vec<(u64, u64)>,
    /// Valid records.
    records: usize,
}

/// Findings of all scanning threads.
#[derive(Default)]
struct Found {
    report: RecoveryReport,
    damage: Vec<DamagedPlace>,
    open: Vec<OpenFile>,
    sealed: Vec<FileInfo>,
    /// Zones of files that were given up but are still taken in the zone table.
    given_up: Vec<ZoneId>,
    /// Copies in open files, and their originals.
    pairs: Vec<(Entry, Entry)>,
    newer: Option<String>,
    /// The highest number of the clock, of records and of lives.
    highest: u64,
}

impl Findings for Found {
    fn merge(&mut self, other: Found) {
        self.report.segments += other.report.segments;
        self.report.records += other.report.records;
        self.damage.extend(other.damage);
        self.open.extend(other.open);
        self.sealed.extend(other.sealed);
        self.given_up.extend(other.given_up);
        self.pairs.extend(other.pairs);
        self.report.torn.extend(other.report.torn);
        self.newer = self.newer.take().or(other.newer);
        self.highest = self.highest.max(other.highest);
    }
}

/// Opens a pool that was closed from its loaded checkpoint.
pub(super) fn resume<I: Imaged>(
    spine: &mut NlogSpine<I>,
    loaded: Loaded<I>,
    space: SpaceRecovery,
) -> Result<RecoveryReport, Error> {
    let mut found = Vec::new();
    for zone in spine.heap.space().committed_zones() {
        // SAFETY: the store is being opened, so nobody writes.
        if let Ok(info) = unsafe { spine.nlog().file_info(zone) } {
            spine.nlog().note_generation(&info);
            found.push((zone, info.segment.sealed_end.unwrap_or(u64::MAX)));
        }
    }
    // Records of any file may be marked.
    spine.heap.back_found(found.into_iter())?;
    Ok(loaded.adopt(&mut spine.core, space))
}

/// Builds the index of a pool that was just mapped, and settles what a crash left open.
pub(super) fn recover<I: Index>(
    spine: &NlogSpine<I>,
    threads: usize,
    pool: Existing<'_>,
) -> Result<RecoveryReport, Error> {
    let Existing { holes, found: mut space, progress } = pool;
    if holes != Holes::AreDamage {
        // Each record names the one before, and nothing tells which are gone.
        return Err(DamagedPlace::after_a_crash(spine.heap.space()).into());
    }
    let zones = spine.heap.space().committed_zones();
    let mut findings: Found = spine.scan_zones(&zones, threads, progress, |guard, shard, zone, found| {
        spine.scan_file(guard, shard, zone, found)
    })?;
    findings.damage.extend(spine.heap.orphans().iter().map(|zone| spine.lost_by_table(*zone)));
    if let Some(what) = findings.newer {
        return Err(Error::NewerFormat { what });
    }
    refuse_number(spine.heap.space(), findings.highest)?;
    if space.was_clean {
        let no_end_mark = |file: &OpenFile| spine.no_end_mark(file.info.segment.zone, file.end);
        findings.damage.extend(findings.open.iter().map(no_end_mark));
    }
    damaged_at(all_damage(spine.heap.space(), std::mem::take(&mut findings.damage)))?;
    spine.drop_tombstones()?;
    spine.heap.clock().pass(findings.highest);
    // Records of any file may be marked.
    let sealed =
        findings.sealed.iter().map(|file| (file.segment.zone, file.segment.sealed_end.unwrap_or(u64::MAX)));
    let open = findings.open.iter().map(|file| (file.info.segment.zone, file.end));
    spine.heap.back_found(sealed.chain(open))?;
    // Nothing was changed until here.
    spine.heap.space().repair(&mut space);
    findings.report.was_clean = space.was_clean;
    findings.report.reclaimed = space.leaked_reclaimed as usize;
    Ok(spine.settle_files(findings))
}

impl<I: Index> NlogSpine<I> {
    fn scan_file(
        &self,
        guard: &Guard<'_>,
        shard: Shard,
        zone: ZoneId,
        findings: &mut Found,
    ) -> Result<(), Error> {
        if self.heap.is_given_up(zone) {
            findings.given_up.push(zone);
            return Ok(());
        }
        let start = self.heap.space().zone_offset(zone);
        // SAFETY: recovery runs before the store is handed out, so nobody writes; the scanning threads only
        // read.
        let found = unsafe { self.nlog().file_info(zone).map(|info| (info, self.nlog().bytes_of(&info))) };
        let (info, bytes) = match found {
            Ok((info, Some(bytes))) => (info, bytes),
            Ok(_) => {
                findings.damage.push(self.wrong_header(zone, &ScanError::Header));
                return Ok(());
            }
            Err(error) => {
                findings.damage.push(self.wrong_header(zone, &error));
                return Ok(());
            }
        };
        self.nlog().register(&info);
        findings.report.segments += 1;
        findings.highest = findings.highest.max(info.segment.life_number);
        let is_open = info.segment.sealed_end.is_none();
        let mut file = OpenFile { info, end: FIRST_RECORD, holes: Vec::new(), records: 0 };
        let mut hole = None;
        let mut scan = self.nlog().scan(&info, bytes, self.drawn());
        loop {
            let item = match scan.advance() {
                Ok(Some(item)) => item,
                Ok(None) => break,
                Err(ScanError::Unknown { offset, kind, flags }) => {
                    let at = start + offset;
                    findings.newer = Some(format!("record kind {kind} with flags {flags:#x} at byte {at}"));
                    return Ok(());
                }
                Err(_) => break,
            };
            let (reference, len) = match &item {
                Item::Hole { offset, len } if is_open => {
                    hole = Some((*offset, *len));
                    continue;
                }
                Item::Hole { offset, len } => {
                    let place = DamagedPlace { what: "records".into(), offset: start + offset, len: *len };
                    findings.damage.push(place);
                    continue;
                }
                Item::Void { reference, len } => (*reference, *len),
                Item::Record(entry, record) => (entry.reference, taken(record.header.record_len())),
            };
            if twin!(HoleIsTail) && hole.is_some() {
                break;
            }
            if let Some((offset, len)) = hole.take() {
                let what = "records that were written in part or are damaged".into();
                findings.report.torn.push(DamagedPlace { what, offset: start + offset, len });
                file.holes.push((offset, len));
            }
            file.end = reference.offset(self.heap.zone_shift()) + len;
            self.heap.note_written(shard, zone, len);
            match item {
                Item::Record(entry, record) => {
                    file.records += 1;
                    findings.report.records += 1;
                    findings.highest = findings.highest.max(entry.sequence);
                    if record.expires != 0 {
                        self.heap.note_expiring(reference, len, record.expires);
                    }
                    self.adopt(guard, shard, entry, &record, findings)?;
                }
                _ => self.heap.note_garbage(shard, reference, len),
            }
        }
        if is_open {
            findings.open.push(file)
        } else {
            findings.sealed.push(info)
        }
        Ok(())
    }

    /// Lets the index name this record, unless it names one that counts in its place.
    fn adopt(
        &self,
        guard: &Guard<'_>,
        shard: Shard,
        entry: Entry,
        record: &RecordView<'_>,
        findings: &mut Found,
    ) -> Result<(), Error> {
        let len = record.header.record_len();
        let bytes = taken(len);
        let word = SizedReference::new(tagged(entry.reference, record.kind()), len).word();
        let key = self.key(record.key);
        let _held = self.lock(self.common.stripes.of(key.hash));
        if record.kind() == Kind::Tombstone {
            self.heap.note_garbage(shard, entry.reference, bytes);
        }
        let Some(old) = self.locate::<false>(guard, key)? else {
            self.index.upsert(guard, key, word, None, |_| false, &self.core)?;
            return Ok(());
        };
        let reference = reference_of(old.word).with_tag(0);
        let before = Entry::of(reference, self.nlog().life_of(reference), &old.record);
        let is_latest = self.counts_before(&entry, &before, findings);
        let (loser, loser_len, loser_kind) = if is_latest {
            let replaced = self.index.replace(guard, key, old.word, word)?;
            debug_assert!(replaced, "the key is locked");
            (reference, self.place_len(guard, old.word), old.record.kind())
        } else {
            (entry.reference, bytes, record.kind())
        };
        // Tombstones were counted when they were met.
        if loser_kind != Kind::Tombstone {
            self.heap.note_garbage(shard, loser, loser_len);
        }
        Ok(())
    }

    /// Whether an entry counts in place of another one of its key.
    fn counts_before(&self, entry: &Entry, other: &Entry, findings: &mut Found) -> bool {
        if entry.sequence != other.sequence {
            return entry.sequence > other.sequence;
        }
        let is_copy = self.nlog().is_copy_of(entry, other);
        let (copy, original) = if is_copy { (entry, other) } else { (other, entry) };
        if self.nlog().is_open(copy.reference) {
            findings.pairs.push((*copy, *original));
            return !is_copy;
        }
        is_copy != twin!(OriginalCounts)
    }

    /// Makes the findings durable for good.
    fn settle_files(&self, findings: Found) -> RecoveryReport {
        let Found { mut report, mut open, sealed, given_up, pairs, .. } = findings;
        if report.was_clean {
            return report;
        }
        // After a crash of the process, headers and end marks may be in a cache alone.
        sealed.iter().for_each(|info| self.heap.confirm(&info.segment));
        self.region().fence();
        if open.is_empty() && given_up.is_empty() {
            return report;
        }
        self.heap.clock().begin(self.heap.space());
        for copy in self.needless(pairs) {
            self.nlog().mark(&copy);
            let zone = self.nlog().zone_of(copy.reference);
            let file = open.iter_mut().find(|file| file.info.segment.zone == zone);
            file.expect("the copy is in an open file").records -= 1;
        }
        let ends: Vec<_> = open.iter().map(|file| (file.info.segment, file.end)).collect();
        if twin!(EndBeforeCovers) {
            self.nlog().end_recovered(&ends);
        }
        for file in &open {
            for (offset, len) in &file.holes {
                self.heap.cover(&file.info.segment, *offset, *len);
            }
        }
        // Its first fence is also that of the marks and covers, for which an end mark vouches.
        if !twin!(EndBeforeCovers) {
            self.nlog().end_recovered(&ends);
        }
        report.sealed = ends.len();
        given_up.iter().for_each(|zone| self.heap.free_given_up(*zone));
        let needless = |file: &OpenFile| {
            let has_live = || self.heap.live_bytes(file.info.segment.zone) > 0;
            file.records == 0 || (twin!(NeedlessFreed) && !has_live())
        };
        let empty: Vec<ZoneId> =
            open.iter().filter(|file| needless(file)).map(|file| file.info.segment.zone).collect();
        empty.iter().for_each(|zone| self.heap.free(*zone));
        report.reclaimed += empty.len() + given_up.len();
        report
    }

    /// The copies that do not count since their originals do. If another record counts, the copy may be its
    /// parent: then it goes as all parents do.
    fn needless(&self, pairs: Vec<(Entry, Entry)>) -> Vec<Entry> {
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        let counts = |original: &Entry| {
            let at = self.heap.resolve(original.reference);
            // SAFETY: nobody writes before the store is handed out, and the record was proved.
            let record = unsafe { RecordView::published_key(self.region(), at) };
            record.is_some_and(|record| {
                let word = SizedReference::new(original.reference, record.header.record_len()).word();
                self.index.names(&guard, self.key(record.key), word).unwrap_or_default()
            })
        };
        pairs.into_iter().filter(|(_, original)| counts(original)).map(|(copy, _)| copy).collect()
    }
}
