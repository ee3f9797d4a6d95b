//! Reading keys: of now, or of a number.

use super::table::Table;
use super::view::{Layer, View};
use super::write::Near;
use super::{Session, Tiers};
use crate::engine::AT_ONCE;
use crate::engine::moment::Moment;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::chain::RecordFound;
use quipu_parts::index::{InOrder, Key};
use quipu_parts::record::Kind;
use quipu_parts::sync::between_looks;
use quipu_parts::versions::Version;
use std::borrow::Cow;

/// The newest record of a key in a place, as a reader sees it.
pub(super) enum Hit<T> {
    /// The place has none.
    Nothing,
    Deleted,
    /// One of this number that has expired.
    Expired(u64),
    Value(T),
}

impl<T> Hit<T> {
    pub(super) fn map<U>(self, show: impl FnOnce(T) -> U) -> Hit<U> {
        match self {
            Hit::Nothing => Hit::Nothing,
            Hit::Deleted => Hit::Deleted,
            Hit::Expired(number) => Hit::Expired(number),
            Hit::Value(found) => Hit::Value(show(found)),
        }
    }
}

/// The value of a key, in memory or a copy of one on the levels.
pub(super) struct Found<'g> {
    pub(super) value: Cow<'g, [u8]>,
    /// The number that it was first written with.
    pub(super) version: u64,
    /// When it expires, in milliseconds since 1970; 0 for never.
    pub(super) expires: u64,
}

impl<'g> From<RecordFound<'g>> for Found<'g> {
    #[inline(always)]
    fn from(record: RecordFound<'g>) -> Found<'g> {
        Found { value: Cow::Borrowed(record.value), version: record.version, expires: record.expires }
    }
}

impl<I: InOrder> Tiers<I> {
    /// Shows the value of a key at a moment, unless it is deleted or has expired.
    #[inline(always)]
    pub(super) fn get<'g, T>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        key: &[u8],
        at: Moment,
        show: impl FnOnce(Found<'g>) -> T,
    ) -> Result<Option<T>, Error> {
        let view = table.view(guard);
        table.check()?;
        between_looks();
        self.get_near(guard, table, (view, None), key, at, show)
    }

    #[inline(always)]
    fn get_near<'g, T>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        (view, near): (&'g View<I>, Option<u64>),
        bytes: &[u8],
        at: Moment,
        show: impl FnOnce(Found<'g>) -> T,
    ) -> Result<Option<T>, Error> {
        let expired = match self.get_in(guard, table, (&view.active, near), bytes, at)? {
            // Here, where it is known to be no copy.
            Hit::Value(record) => return Ok(Some(show(record.into()))),
            Hit::Deleted => return Ok(None),
            Hit::Nothing => None,
            Hit::Expired(number) => Some(number),
        };
        Ok(self.get_further(guard, table, (view, expired), bytes, at)?.map(show))
    }

    /// The value of a key in one layer at a moment.
    #[inline(always)]
    pub(super) fn get_in<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        (layer, near): (&'g Layer<I>, Option<u64>),
        bytes: &[u8],
        at: Moment,
    ) -> Result<Hit<RecordFound<'g>>, Error> {
        // Versions, range tombstones, visible number: in this order (see `ranges`).
        let mut seen = (None, at.number);
        let up_to = || {
            seen.0 = table.ranges.get(guard);
            between_looks();
            if at.is_now() {
                seen.1 = self.log.visible();
            }
            seen.1
        };
        // An index that has the keys needs no hash of a reader.
        let place = (guard, Key { bytes, hash: 0 }, near);
        let found = layer.versions.get(place, up_to, |found| self.number_of(guard, found))?;
        let Some(version) = found else { return Ok(Hit::Nothing) };
        if let (Some(list), at) = seen
            && !version.is_unproved()
            && list.deletes(bytes, version.number, at)
        {
            return Ok(Hit::Deleted);
        }
        Ok(match self.value_of(guard, bytes, &version, || self.time_at(at))? {
            Some(record) => Hit::Value(record),
            None if version.is_tombstone() => Hit::Deleted,
            None => Hit::Expired(version.number),
        })
    }

    /// The value of a key whose stripe is held, visible or not, unless it is deleted or has expired; and a
    /// number to wait for before anybody is told.
    #[inline]
    pub(super) fn newest<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        key: Key<'_>,
        near: Near,
    ) -> Result<(u64, Option<Found<'g>>), Error> {
        let view = table.view(guard);
        table.check()?;
        let number_of = |found| self.number_of(guard, found);
        let at = (guard, key, near.of(&view.active));
        let mut found = view.active.versions.get(at, || u64::MAX, number_of)?;
        if found.is_none() {
            for layer in view.further() {
                found = layer.versions.get((guard, key, None), || u64::MAX, number_of)?;
                if found.is_some() {
                    break;
                }
            }
        }
        let Some(version) = found else { return self.newest_below(guard, table, view, key.bytes) };
        between_looks();
        let list = table.ranges.get(guard);
        if list.is_some_and(|list| list.deletes(key.bytes, version.number, u64::MAX)) {
            // All items of this moment are above it.
            return Ok((self.log.granted()?, None));
        }
        // A damaged record may tell any number, and nobody waits for one that was never granted.
        let number = match version.number > self.log.visible() {
            true => version.number.min(self.log.granted()?),
            false => version.number,
        };
        let record = self.value_of(guard, key.bytes, &version, || self.expiry_time())?;
        Ok((number, record.map(Found::from)))
    }

    /// The record of a version of this key, unless it is deleted or has expired at that time.
    #[inline(always)]
    pub(super) fn value_of<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        key: &[u8],
        version: &Version,
        now: impl FnOnce() -> u64,
    ) -> Result<Option<RecordFound<'g>>, Error> {
        match self.value_at(guard, version, now)? {
            Some(record) if record.key != key => Err(self.names_no_record(version)),
            found => Ok(found),
        }
    }

    /// The record of a version, unless it is deleted or has expired at that time.
    #[inline(always)]
    pub(super) fn value_at<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        version: &Version,
        now: impl FnOnce() -> u64,
    ) -> Result<Option<RecordFound<'g>>, Error> {
        if version.is_tombstone() {
            return Ok(None);
        }
        let record = self.record_of(guard, version)?;
        if record.kind != Kind::Value {
            return Err(self.names_no_record(version));
        }
        between_looks();
        let has_expired = record.expires != 0 && self.has_passed_by(record.expires, now());
        Ok((!has_expired).then_some(record))
    }

    /// The record of a version; if reads are to prove, one that proves itself.
    #[inline(always)]
    pub(super) fn record_of<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        version: &Version,
    ) -> Result<RecordFound<'g>, Error> {
        if self.verify_reads && !self.proves(guard, version.reference) {
            return Err(self.names_no_record(version));
        }
        // SAFETY: as in `told_number`.
        Ok(unsafe { self.log.heap().record(version.reference) }?)
    }

    #[cold]
    pub(super) fn names_no_record(&self, version: &Version) -> Error {
        let offset = self.log.heap().resolve(version.reference);
        Error::damaged("no record of its key where the index names one", offset, 0)
    }

    /// Whether a record has expired for everybody: it acts as a tombstone then.
    #[inline]
    pub(super) fn has_expired(&self, record: &RecordFound<'_>) -> bool {
        record.expires != 0 && self.has_passed_by(record.expires, self.time_of_all())
    }

    #[cold]
    pub(super) fn has_passed_by(&self, time: u64, now: u64) -> bool {
        self.log.heap().space().has_passed_by(time, now)
    }

    /// Values of up to [`AT_ONCE`] keys, whose cache misses overlap; `each` sees them in order.
    pub(super) fn get_many(
        &self,
        session: &Session<I>,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let (guard, table) = (session.participant.pin_to_read(), &*session.table);
        let (view, mut near) = (table.view(&guard), [None; AT_ONCE]);
        table.check()?;
        between_looks();
        let versions = &view.active.versions;
        for (near, bytes) in near.iter_mut().zip(keys) {
            *near = versions.index().prefetch(&session.participant, Key { bytes, hash: 0 });
        }
        for (near, bytes) in near.iter().zip(keys) {
            let region = self.region();
            let prefetch = |reference| region.prefetch(self.log.heap().resolve(reference));
            versions.glance(&guard, Key { bytes, hash: 0 }, *near, prefetch);
        }
        for (position, (key, near)) in keys.iter().zip(near).enumerate() {
            let show = |found: Found<'_>| each(position, Some(&found.value));
            if self.get_near(&guard, table, (view, near), key, Moment::NOW, show)?.is_none() {
                each(position, None);
            }
        }
        Ok(())
    }
}
