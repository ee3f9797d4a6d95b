//! Zones for the files of [`crate::heap::nlog`], whose tails are not of this heap.

use super::header::{Role, SegmentHeader};
use super::log::LogHeap;
use crate::record::LifeKey;
use crate::space::ZoneId;

impl LogHeap {
    /// Registers a zone that others append to.
    pub(in crate::heap) fn begin(&self, zone: ZoneId, life: u64) {
        self.lives.begin(zone, life);
    }

    /// Notes that nobody appends to a zone any more, and that its end is durable.
    pub(in crate::heap) fn end_of_writes(&self, zone: ZoneId) {
        self.lives.seal(zone);
    }

    /// Marks the end of a zone whose records are all durable. Durable when this returns.
    pub(in crate::heap) fn seal_file(&self, zone: ZoneId, end: u64) {
        let (_, life) = self.proved_header(zone).expect("its header was durable before its first record");
        self.seal_at(self.space().zone_offset(zone), life, end);
        self.region().fence();
        self.lives.seal(zone);
    }

    /// A copy of the header of a zone, if it proves itself, with the contribution of its life to checks.
    pub(in crate::heap) fn proved_header(&self, zone: ZoneId) -> Option<(SegmentHeader, LifeKey)> {
        self.space().checked_zone_offset(zone)?;
        let header = self.header_of(zone);
        let is_valid = header.is_valid(self.certifier(), Role::Segment, zone);
        is_valid.then(|| (header, header.life_key(self.certifier())))
    }

    /// Waits until a zone whose header somebody has given up by now is durably freed.
    pub(in crate::heap) fn wait_for_ends(&self) {
        drop(self.ending.lock());
    }

    /// Does what a thread that frees a zone does to others.
    #[cfg(test)]
    pub(in crate::heap) fn ending_held(&self) -> crate::sync::SpinGuard<'_, ()> {
        self.ending.lock()
    }

    /// The life number of a registered zone.
    pub(in crate::heap) fn life_of(&self, zone: ZoneId) -> u64 {
        self.lives.life(zone)
    }

    /// Whether a registered zone has no end yet.
    pub(in crate::heap) fn is_written(&self, zone: ZoneId) -> bool {
        self.lives.is_open(zone, self.lives.life(zone))
    }

    /// Takes a sealed zone of this life for cleaning; `false` if somebody else has, or has freed it.
    pub fn take_victim(&self, zone: ZoneId, life: u64) -> bool {
        self.lives.take(zone, life)
    }

    /// Gives a zone back that was taken and not cleaned to its end.
    pub fn leave_victim(&self, zone: ZoneId) {
        self.lives.leave(zone);
    }
}
