//! The part of a check that holds the index against the records.

use super::{Batch, Core, reference_of};
use crate::types::error::{DamagedPlace, Error};
use quipu_parts::epoch::Guard;
use quipu_parts::index::Index;
use quipu_parts::record::{Kind, RecordView, shown_key};
use quipu_parts::space::SpaceError;
use std::collections::HashSet;

/// Is told of damage, with its place and its length.
pub(crate) type Complain<'c> = dyn FnMut(String, u64, u64) + 'c;

impl<I: Index> Core<I> {
    /// Passes on each record that the index names, and complains of contradictions in the index. Returns the
    /// keys that it holds, and those that it counts. The caller has the store for itself.
    pub(crate) fn check_names(
        &self,
        guard: &Guard<'_>,
        complain: &mut Complain<'_>,
        judge: &mut dyn FnMut(&RecordView<'_>, &mut Complain<'_>),
    ) -> (u64, u64) {
        let (mut batch, mut keys) = (Batch::default(), 0);
        loop {
            let record = match self.next_record(guard, &mut batch) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    let DamagedPlace { what, offset, len } = place_of(error);
                    complain(what, offset, len);
                    break;
                }
            };
            keys += 1;
            if !matches!(record.kind(), Kind::Value | Kind::Large) {
                complain("the index names a record that is no value".into(), 0, 0);
            }
            judge(&record, complain);
            match self.locate::<true>(guard, self.key(record.key)) {
                Ok(Some(located)) if std::ptr::eq(located.record.value, record.value) => {}
                _ => complain("the index names two records of one key".into(), 0, 0),
            }
        }
        // The count fails only for damage that has been reported.
        let counted = self.index.len(guard).unwrap_or(keys);
        if keys != counted {
            complain(format!("the index counts {counted} keys and holds {keys}"), 0, 0);
        }
        (keys, counted)
    }

    /// Complains of each word of the index that names no proved record. To be called where the index counts
    /// other keys than proved records that it names. All words differ, so if the two are equal, each names
    /// one.
    pub(crate) fn complain_of_unproved(
        &self,
        guard: &Guard<'_>,
        (named, counted): (u64, u64),
        proved: &HashSet<u64>,
        complain: &mut Complain<'_>,
    ) {
        let what = format!("of {counted} keys that the index has, {named} have a record that proves itself");
        complain(what, 0, 0);
        let mut batch = Batch::default();
        // A damaged way through the index has been reported.
        while let Ok(Some(record)) = self.next_record(guard, &mut batch) {
            let Some(place) = batch.word().map(reference_of) else { continue };
            if !proved.contains(&place.with_tag(0).word()) {
                let what = format!("the record of {}, which does not prove itself", name(&record));
                let offset = self.heap.resolve_checked(place).unwrap_or_default();
                complain(what, offset, record.header.record_len());
            }
        }
    }
}

/// Where an error says that the pool is damaged.
pub(crate) fn place_of(error: Error) -> DamagedPlace {
    match error {
        Error::Damaged(damage) if !damage.places.is_empty() => damage.places[0].clone(),
        Error::Space(SpaceError::Damaged { what, offset }) => {
            DamagedPlace { what: what.into(), offset, len: 0 }
        }
        other => DamagedPlace { what: other.to_string(), offset: 0, len: 0 },
    }
}

/// The key of a record, for people.
pub(crate) fn name(record: &RecordView<'_>) -> String {
    format!("the key {}", shown_key(record.key))
}
