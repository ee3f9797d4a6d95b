//! Which large values a pool still has: those whose head won. The others' zones are free again.
//!
//! A head proves itself as every record does, and its value is proved with it. If the value fails, the head
//! may be dead: a later write of its key was durable before the zones were reused. Recovery finds that write
//! too, or a later one, since a tombstone stays as long as an older record exists. A head that fails and that
//! nothing supersedes is damage.

use super::{DamagedPlace, Findings};
use crate::log::Spine;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::Reference;
use quipu_parts::heap::segments::SegmentInfo;
use quipu_parts::heap::values::ValueZones;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::Kind;
use quipu_parts::space::ZoneId;

/// The head of a large value, found in a segment.
pub(super) struct FoundHead {
    pub(super) hash: u64,
    pub(super) reference: Reference,
    pub(super) segment: SegmentInfo,
    /// Bytes of the record.
    pub(super) len: u64,
    pub(super) sequence: u64,
    /// Its zones, if they prove that they hold its value.
    pub(super) zones: Option<ValueZones>,
}

impl<I: Index> Spine<I> {
    /// Judges every head and every zone of a value, once all records have been seen.
    pub(super) fn judge_values(&self, findings: &mut Findings) -> Result<(), Error> {
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        let mut is_named = vec![false; self.heap.space().zone_count() as usize];
        let mut name = |zone: ZoneId| {
            is_named.get_mut(zone.0 as usize).is_some_and(|named| !std::mem::replace(named, true))
        };
        for head in std::mem::take(&mut findings.heads) {
            let word = self.word(head.reference, Kind::Large, head.len);
            let Some(record) = self.record_of(&guard, word) else { continue };
            let key = Key { bytes: record.key, hash: head.hash };
            let is_lost = match &head.zones {
                None => match self.superseding(&guard, &head, key)? {
                    // The segment may be younger than a tombstone that supersedes this head: the head is a
                    // copy that lost.
                    Some(later) => {
                        self.heap.hold_tombstones(head.reference, later);
                        false
                    }
                    None => true,
                },
                Some(_) if !self.index.names(&guard, key, word)? => false,
                // Two heads of one value: no store wrote the second.
                Some(zones) => zones.iter().filter(|zone| !name(*zone)).count() != 0,
            };
            if is_lost {
                self.index.take(&guard, key, None, |named| named == word)?;
                let (what, offset) = ("a large value".into(), self.heap.resolve(head.reference));
                findings.damage.push(DamagedPlace { what, offset, len: head.len });
                let in_segment = head.reference.offset(self.heap.zone_shift());
                findings.holes.push((head.segment, in_segment, head.len));
            }
        }
        findings.values.retain(|zone| is_named.get(zone.0 as usize) == Some(&false));
        Ok(())
    }

    /// The number of a later write of the head's key, if one was found.
    fn superseding(&self, guard: &Guard<'_>, head: &FoundHead, key: Key<'_>) -> Result<Option<u64>, Error> {
        let found = self.locate::<false>(guard, key)?;
        Ok(found.and_then(|found| {
            let (sequence, is_deletion) = (found.record.header.sequence.get(), found.is_tombstone());
            // The copy of a head that had expired is a tombstone of its number.
            let is_later = sequence > head.sequence || (sequence == head.sequence && is_deletion);
            is_later.then_some(sequence)
        }))
    }
}
