//! The records of a frozen layer in order of keys, for a dump.

use super::Tiers;
use super::table::Table;
use super::view::Layer;
use crate::types::error::Error;
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::heap::chain::RecordFound;
use quipu_parts::index::InOrder;
use quipu_parts::record::Kind;
use quipu_parts::runs::filter::{Filter, Verdict};
use quipu_parts::runs::{Head, Purge, Source};
use quipu_parts::versions::purge::purge;
use quipu_parts::versions::{Horizon, Look, Noted, Version};
use std::collections::VecDeque;

/// Keys whose records are asked for together.
const AT_ONCE: usize = 32;

/// The versions of the keys of a range, as far as anybody may read them. Each record is read once.
pub(super) struct LayerSource<'t, I: InOrder> {
    tiers: &'t Tiers<I>,
    table: &'t Table<I>,
    layer: &'t Layer<I>,
    participant: &'t Participant,
    /// Under which the records that wait were found.
    guard: Option<Guard<'t>>,
    scan: I::Scan,
    /// The first key behind the range.
    end: Option<&'t [u8]>,
    filter: Filter,
    /// That of the filter: records that it would drop are not read.
    horizon: Horizon,
    kept: Vec<Version>,
    waiting: VecDeque<Result<RecordFound<'t>, Error>>,
    has_more: bool,
    noted: Noted,
    failure: Option<Error>,
}

impl<'t, I: InOrder> LayerSource<'t, I> {
    /// The keys from one on, and below another.
    pub(super) fn new(
        (tiers, table, layer): (&'t Tiers<I>, &'t Table<I>, &'t Layer<I>),
        participant: &'t Participant,
        from: &[u8],
        end: Option<&'t [u8]>,
        (purge, is_last): (Purge, bool),
    ) -> LayerSource<'t, I> {
        let scan = layer.versions.scan_from(from);
        let (horizon, filter) = (purge.horizon.clone(), Filter::new(purge, is_last));
        let (guard, waiting, kept, noted) = (None, VecDeque::new(), Vec::new(), Noted::default());
        let (has_more, failure) = (true, None);
        LayerSource {
            tiers,
            table,
            layer,
            participant,
            guard,
            scan,
            end,
            filter,
            horizon,
            kept,
            waiting,
            has_more,
            noted,
            failure,
        }
    }

    /// The reason why it has ended early, if it has.
    pub(super) fn outcome(self) -> Result<(), Error> {
        self.failure.map_or(Ok(()), Err)
    }

    /// Looks up the next keys, under a guard of their own: a dump takes long.
    fn fill(&mut self) -> Result<(), Error> {
        self.guard = None;
        let guard = self.guard.insert(self.participant.pin());
        // Else its memtables may be gone.
        self.table.check()?;
        let (tiers, waiting, end) = (self.tiers, &mut self.waiting, self.end);
        let (kept, horizon) = (&mut self.kept, &self.horizon);
        let prefetch = |reference| tiers.region().prefetch(tiers.log.heap().resolve(reference));
        // Of a key with one version, the record tells the number.
        let number_of = |_| 0;
        let noted = std::mem::take(&mut self.noted);
        let mut look = Look { limit: AT_ONCE, up_to: u64::MAX, prefetch, number_of, noted };
        let mut is_beyond = false;
        let each = |key: &[u8], versions: &[Version]| {
            is_beyond |= end.is_some_and(|end| key >= end);
            if !is_beyond {
                kept.clear();
                kept.extend_from_slice(versions);
                purge(kept, horizon);
                waiting.extend(kept.iter().map(|version| tiers.record_to_dump(key, version)));
            }
        };
        self.has_more = self.layer.versions.next_with_all(guard, &mut self.scan, &mut look, each)?;
        self.has_more &= !is_beyond;
        self.noted = look.noted;
        Ok(())
    }

    /// The next record that stays.
    fn take(&mut self) -> Result<Option<(RecordFound<'t>, Head)>, Error> {
        loop {
            if self.waiting.is_empty() && self.has_more {
                self.fill()?;
                continue;
            }
            let Some(record) = self.waiting.pop_front().transpose()? else { return Ok(None) };
            let RecordFound { sequence: number, version, kind, expires, len, .. } = record;
            self.tiers.dumper.pace.advance(len);
            let head = Head { number, version, kind, expires };
            match self.filter.record(record.key, &head) {
                Verdict::Keep => return Ok(Some((record, head))),
                Verdict::Bury => {
                    let head = Head { kind: Kind::Tombstone, expires: 0, ..head };
                    return Ok(Some((RecordFound { value: &[], ..record }, head)));
                }
                Verdict::Drop => {}
            }
        }
    }
}

impl<I: InOrder> Source for LayerSource<'_, I> {
    fn next(&mut self) -> Option<(&[u8], Head, &[u8])> {
        match self.take() {
            Ok(next) => next.map(|(record, head)| (record.key, head, record.value)),
            Err(error) => {
                self.failure = Some(error);
                (self.has_more, self.guard) = (false, None);
                self.waiting.clear();
                None
            }
        }
    }
}

impl<I: InOrder> Tiers<I> {
    /// The record of a version, if it is of this key and tells its number, if that is known.
    fn record_to_dump(&self, key: &[u8], version: &Version) -> Result<RecordFound<'_>, Error> {
        let wrong = || self.names_no_record(version);
        if self.verify_reads && !self.log.heap().proves(version.reference) {
            return Err(wrong());
        }
        // SAFETY: the memtables of a frozen layer are not released before its dump is over, or before the
        // table has been dropped and readers have left: the caller is pinned, and has looked.
        let record = unsafe { self.log.heap().record(version.reference) }?;
        let is_it = record.key == key
            && (version.is_unproved() || record.sequence == version.number)
            && record.kind != Kind::Range
            && (record.kind == Kind::Tombstone) == version.is_tombstone();
        if is_it { Ok(record) } else { Err(wrong()) }
    }
}
