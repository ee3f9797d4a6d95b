//! The value of a record: in place, or assembled from zones of its own.

use super::Core;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::Index;
use quipu_parts::record::{RecordView, shown_key};
use std::borrow::Cow;

impl<I: Index> Core<I> {
    /// The value of a record: in place, or assembled if it is large.
    #[inline]
    pub(crate) fn value<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        record: &RecordView<'g>,
    ) -> Result<Cow<'g, [u8]>, Error> {
        if record.is_large() { self.assemble(guard, record).map(Cow::Owned) } else { Ok(record.value.into()) }
    }

    /// The large value that a record names, assembled.
    #[cold]
    pub(crate) fn assemble(&self, guard: &Guard<'_>, record: &RecordView<'_>) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.append_large(guard, record, &mut value)?;
        Ok(value)
    }

    /// Appends the large value that a record names.
    #[cold]
    pub(crate) fn append_large(
        &self,
        _guard: &Guard<'_>,
        record: &RecordView<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let value = self.heap.large_value(record.value);
        // SAFETY: the index named the head while the guard was pinned, which keeps the value's zones from
        // reuse.
        value.and_then(|value| unsafe { value.read(out) }).ok_or_else(|| {
            let what = format!("the large value of the key {}", shown_key(record.key));
            let zone = value.and_then(|value| value.first_zone());
            let offset = zone.map_or(0, |zone| self.heap.space().zone_offset(zone));
            let len = value.map_or(0, |value| value.value_len());
            Error::damaged(what, offset, len)
        })
    }
}
