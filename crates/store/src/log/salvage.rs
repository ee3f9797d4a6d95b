//! Salvage: the records of a damaged pool that prove themselves, copied into a new one, and the keys of those
//! that do not.
//!
//! The damaged pool is only read. Its records are found as in recovery, but unreadable bytes are passed over.
//! In these bytes a header may still be legible, though nothing proves it. So the report can name keys whose
//! latest record is lost; the new pool has an older record of such a key, if there is one.

use super::recovery::{self, Findings};
use crate::engine::Engine;
use crate::engine::site::Holes;
use crate::log::Spine;
use crate::points::{Batch, reference_of};
use crate::types::error::{Damage, Error};
use crate::types::reports::{Instead, LostKey, SalvageReport};
use crate::walk::proof::places_of;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::segments::FIRST_RECORD;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{HEADER, Kind, RecordView};
use quipu_parts::space::{SpaceError, ZoneId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A record that may have stood in bytes that prove nothing.
struct Legible {
    sequence: u64,
    is_deletion: bool,
}

/// Copies all proved records from the pool of `spine`, whose index is still empty. `wrong` is the known
/// damage of its metadata.
pub(crate) fn salvage<I: Index>(
    spine: &Spine<I>,
    wrong: &[SpaceError],
    threads: usize,
    into: &Arc<dyn Engine>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<SalvageReport, Error> {
    let mut findings = recovery::scan_all(spine, threads, Holes::Salvaged, progress)?;
    let session = spine.own_session(None);
    let mut lost = lost_keys(spine, &session.pin(), &findings, Holes::Salvaged)?;
    let Findings { holes, headless, orphans, .. } = &findings;
    let missing = match Missing::of(spine, &findings, threads) {
        _ if holes.is_empty() && headless.is_empty() && orphans.is_empty() => Some(0),
        Some(missing) => {
            let guard = session.pin();
            let mut named = Vec::with_capacity(lost.len());
            for key in lost {
                if key.instead == Instead::DeletedValue || missing.may_be(&guard, spine.key(&key.key))? {
                    named.push(key);
                }
            }
            lost = named;
            Some(missing.count(&guard)?)
        }
        None => None,
    };
    let superblock = spine.heap.space().superblock();
    let at_close = superblock.is_clean().then(|| superblock.keys.get());
    spine.drop_tombstones()?;
    let (guard, mut into) = (session.pin(), into.clone().session(None));
    let mut batch = Batch::default();
    let (mut keys, mut expired) = (0, 0);
    while let Some(record) = spine.next_record(&guard, &mut batch)? {
        if spine.has_expired(&record) {
            expired += 1;
        } else {
            let value = spine.value(&guard, &record)?;
            match record.expires {
                0 => into.put(record.key, &value)?,
                time => into.put_until(record.key, &value, time)?,
            }
            keys += 1;
        }
    }
    // Without an index of that time, the keys of a closed pool are counted. It had expired ones too.
    let back = lost.iter().filter(|lost| lost.instead == Instead::DeletedValue).count() as u64;
    let missing = missing.or_else(|| Some((at_close? + back).saturating_sub(keys + expired)));
    findings.damage.extend(places_of(wrong));
    findings.damage.sort_by_key(|place| place.offset);
    Ok(SalvageReport { keys, damage: Damage { places: findings.damage }, missing, lost })
}

/// The keys whose records stood in unproved bytes when the pool was closed.
struct Missing<I> {
    /// The index of that time.
    index: I,
    zone_shift: u32,
    /// Unproved bytes in each zone.
    unproved: BTreeMap<ZoneId, Vec<Range<u64>>>,
}

impl<I: Index> Missing<I> {
    /// `None` if the pool was not closed, or has left no checkpoint that proves itself.
    fn of(spine: &Spine<I>, findings: &Findings, threads: usize) -> Option<Missing<I>> {
        let index = spine.index_of_close.and_then(|read| read(spine, threads))?;
        let mut unproved = BTreeMap::<ZoneId, Vec<Range<u64>>>::new();
        for (info, offset, len) in &findings.holes {
            unproved.entry(info.zone).or_default().push(*offset..offset.saturating_add(*len));
        }
        for zone in findings.headless.iter().chain(&findings.orphans) {
            unproved.entry(*zone).or_default().push(0..u64::MAX);
        }
        Some(Missing { index, zone_shift: spine.heap.zone_shift(), unproved })
    }

    /// Whether the record of a word of the index stood there.
    fn has(&self, word: u64) -> bool {
        let reference = reference_of(word);
        let places = self.unproved.get(&reference.zone(self.zone_shift));
        places.is_some_and(|places| {
            places.iter().any(|place| place.contains(&reference.offset(self.zone_shift)))
        })
    }

    fn count(&self, guard: &Guard<'_>) -> Result<u64, Error> {
        let (mut cursor, mut words, mut count, mut has_more) = (I::Cursor::default(), Vec::new(), 0, true);
        while has_more {
            has_more = self.index.next_batch(guard, &mut cursor, &mut words)?;
            count += words.drain(..).filter(|word| self.has(*word)).count() as u64;
        }
        Ok(count)
    }

    /// Whether such a record may have been of this key: bytes that look like a record may be noise.
    fn may_be(&self, guard: &Guard<'_>, key: Key<'_>) -> Result<bool, Error> {
        Ok(self.index.get(guard, key, |word| self.has(word))?.is_some())
    }
}

/// Compares legible records in unproved bytes, or in segments whose zones count as free, with the proved
/// records elsewhere. Such a segment does not count where it is excused.
pub(crate) fn lost_keys<I: Index>(
    spine: &Spine<I>,
    guard: &Guard<'_>,
    findings: &Findings,
    holes: Holes,
) -> Result<Vec<LostKey>, Error> {
    let mut legible = BTreeMap::new();
    for (info, offset, len) in &findings.holes {
        read(spine, spine.heap.space().zone_offset(info.zone) + offset, *len, &mut legible);
    }
    let orphans = if holes == Holes::AreLost { &[][..] } else { &findings.orphans };
    for zone in findings.headless.iter().chain(orphans) {
        let start = spine.heap.space().zone_offset(*zone);
        // A zone without data has none at its head either.
        let len = spine.heap.readable_len(*zone).saturating_sub(FIRST_RECORD);
        read(spine, start + FIRST_RECORD, len, &mut legible);
    }
    let verdict = |(key, Legible { sequence, is_deletion }): (Vec<u8>, Legible)| {
        let proved = match spine.locate::<false>(guard, spine.key(&key)) {
            Ok(proved) => proved,
            Err(error) => return Some(Err(error)),
        };
        let instead = match proved {
            Some(proved) if proved.record.header.sequence.get() >= sequence => return None,
            Some(proved) if !proved.is_tombstone() && is_deletion => Instead::DeletedValue,
            Some(proved) if !proved.is_tombstone() => Instead::OlderValue,
            _ if is_deletion => return None,
            _ => Instead::Nothing,
        };
        Some(Ok(LostKey { key, instead }))
    };
    legible.into_iter().filter_map(verdict).collect()
}

/// Notes the latest legible record of each key in these bytes. It looks like a record: a known kind, lengths
/// that fit, and a sequence number that the pool's clock may have drawn, which few other bytes look like.
fn read<I: Index>(spine: &Spine<I>, start: u64, len: u64, legible: &mut BTreeMap<Vec<u8>, Legible>) {
    let ceiling = spine.heap.space().superblock().clock_ceiling.get();
    let len = len.min(spine.region().len().saturating_sub(start));
    // SAFETY: the pool is only read, by this thread now that the scan is over.
    let Some(mut rest) = (unsafe { spine.region().bytes(start, len) }) else { return };
    while !rest.is_empty() {
        let record = RecordView::legible(rest);
        let record = record.filter(|record| (1..ceiling).contains(&record.header.sequence.get()));
        let step = match record {
            Some(frame) if frame.kind() == Kind::Frame => HEADER,
            Some(record) if record.kind() != Kind::Void => {
                let sequence = record.header.sequence.get();
                let found = Legible { sequence, is_deletion: record.kind() == Kind::Tombstone };
                match legible.get_mut(record.key) {
                    Some(known) if known.sequence >= sequence => {}
                    Some(known) => *known = found,
                    None => drop(legible.insert(record.key.to_vec(), found)),
                }
                record.header.record_len()
            }
            _ => 8,
        };
        rest = rest.get(step as usize..).unwrap_or_default();
    }
}
