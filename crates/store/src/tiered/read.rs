//! Reading keys: of now, or of a number.

use super::table::Table;
use super::{Session, Tiers};
use crate::engine::{AT_ONCE, NOW};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::chain::RecordFound;
use quipu_parts::index::{BothWays, Key};
use quipu_parts::record::Kind;
use quipu_parts::versions::Version;

impl<I: BothWays> Tiers<I> {
    /// The record of a key at a number, or [`NOW`], unless it is deleted or has expired.
    #[inline(always)]
    pub(super) fn get<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        key: &[u8],
        at: u64,
    ) -> Result<Option<RecordFound<'g>>, Error> {
        self.get_near(guard, table, (key, None), at)
    }

    #[inline(always)]
    fn get_near<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        (bytes, near): (&[u8], Option<u64>),
        at: u64,
    ) -> Result<Option<RecordFound<'g>>, Error> {
        table.check()?;
        // An index that has the keys needs no hash of a reader.
        let place = (guard, Key { bytes, hash: 0 }, near);
        let mut expired = None;
        loop {
            // Versions, range tombstones, visible number: in this order (see `ranges`).
            let mut seen = (None, at);
            let up_to = || {
                seen = (table.ranges.get(guard), if at == NOW { self.log.visible() } else { at });
                seen.1
            };
            let found = table.versions.get(place, up_to, |found| self.number_of(guard, found))?;
            let Some(version) = found else { return Ok(None) };
            if let (Some(list), at) = seen
                && !version.is_unproved()
                && list.deletes(bytes, version.number, at)
            {
                return Ok(None);
            }
            match self.value_of(guard, bytes, &version, || self.region().now())? {
                // It has expired since it was found, and may have been overwritten before it did.
                None if !version.is_tombstone()
                    && expired.replace(version.number) != Some(version.number) => {}
                found => return Ok(found),
            }
        }
    }

    /// The record of a key whose stripe is held, visible or not, unless it is deleted or has expired; and a
    /// number to wait for before anybody is told.
    #[inline]
    pub(super) fn newest<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        key: Key<'_>,
        near: Option<u64>,
    ) -> Result<(u64, Option<RecordFound<'g>>), Error> {
        let at = (guard, key, near);
        let found = table.versions.get(at, || u64::MAX, |found| self.number_of(guard, found))?;
        let Some(version) = found else { return Ok((0, None)) };
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
        Ok((number, self.value_of(guard, key.bytes, &version, || self.region().now())?))
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
        Ok((record.expires == 0 || record.expires > now()).then_some(record))
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
    fn names_no_record(&self, version: &Version) -> Error {
        let offset = self.log.heap().resolve(version.reference);
        Error::damaged("no record of its key where the index names one", offset, 0)
    }

    /// Whether a record has expired: it acts as a tombstone then.
    #[inline]
    pub(super) fn has_expired(&self, record: &RecordFound<'_>) -> bool {
        record.expires != 0 && record.expires <= self.region().now()
    }

    /// Values of up to [`AT_ONCE`] keys, whose cache misses overlap; `each` sees them in order.
    pub(super) fn get_many(
        &self,
        session: &Session<I>,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        let (guard, table) = (session.participant.pin_to_read(), &*session.table);
        let mut near = [None; AT_ONCE];
        for (near, bytes) in near.iter_mut().zip(keys) {
            *near = table.versions.index().prefetch(Key { bytes, hash: 0 });
        }
        for (near, bytes) in near.iter().zip(keys) {
            let region = self.region();
            let prefetch = |reference| region.prefetch(self.log.heap().resolve(reference));
            table.versions.glance(&guard, Key { bytes, hash: 0 }, *near, prefetch);
        }
        for (position, (key, near)) in keys.iter().zip(near).enumerate() {
            let record = self.get_near(&guard, table, (key, near), NOW)?;
            each(position, record.map(|record| record.value));
        }
        Ok(())
    }
}
