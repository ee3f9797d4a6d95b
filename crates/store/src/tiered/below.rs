//! Reading the levels of a table, for keys that its layers in memory do not have.

use super::Tiers;
use super::read::Found;
use super::table::Table;
use super::view::View;
use crate::engine::NOW;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::BothWays;
use quipu_parts::record::Kind;

/// The record of a key on the levels, as readers see it.
pub(super) enum Below<'g> {
    /// None, or a deletion.
    Nothing,
    /// One of this number that has expired.
    Expired(u64),
    Value(Found<'g>),
}

impl<I: BothWays> Tiers<I> {
    /// The value of a key on the levels at a number, or [`NOW`].
    #[inline(never)]
    pub(super) fn get_below<'g>(
        &self,
        guard: &Guard<'_>,
        table: &Table<I>,
        view: &View<I>,
        key: &[u8],
        at: u64,
    ) -> Result<Below<'g>, Error> {
        let (Some(levels), mut value) = (&view.levels, Vec::new()) else { return Ok(Below::Nothing) };
        // All that is on the levels was visible before they were made.
        let Some(head) = levels.get(key, if at == NOW { u64::MAX } else { at }, &mut value)? else {
            return Ok(Below::Nothing);
        };
        // Versions, range tombstones, visible number: in this order (see `ranges`).
        let list = table.ranges.get(guard);
        let up_to = if at == NOW { self.log.visible() } else { at };
        if head.kind != Kind::Value || list.is_some_and(|list| list.deletes(key, head.number, up_to)) {
            return Ok(Below::Nothing);
        }
        if head.expires != 0 && head.expires <= self.region().now() {
            return Ok(Below::Expired(head.number));
        }
        Ok(Below::Value(Found { value: value.into(), version: head.version, expires: head.expires }))
    }

    /// As [`newest`](Tiers::newest), of a key that no layer has.
    #[inline(never)]
    pub(super) fn newest_below<'g>(
        &self,
        guard: &Guard<'_>,
        table: &Table<I>,
        view: &View<I>,
        key: &[u8],
    ) -> Result<(u64, Option<Found<'g>>), Error> {
        let found = match self.get_below(guard, table, view, key, NOW)? {
            Below::Value(found) => found,
            Below::Expired(_) | Below::Nothing => return Ok((0, None)),
        };
        // One that deletes it and is not visible yet was granted before this moment.
        let list = table.ranges.get(guard);
        let is_deleted = list.is_some_and(|list| list.deletes(key, found.version, u64::MAX));
        if is_deleted { Ok((self.log.granted()?, None)) } else { Ok((0, Some(found))) }
    }
}
