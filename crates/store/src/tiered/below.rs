//! Reading the places that are older than the active layer: further layers, and the levels.

use super::Tiers;
use super::read::{Found, Hit};
use super::table::Table;
use super::view::View;
use crate::engine::moment::Moment;
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::InOrder;
use quipu_parts::record::Kind;
use quipu_parts::sync::between_looks;
use quipu_parts::twin;

impl<I: InOrder> Tiers<I> {
    /// The value at a moment of a key that the active layer of this view does not have, or whose
    /// record of this number has expired there.
    #[inline(never)]
    pub(super) fn get_further<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        (view, expired): (&'g View<I>, Option<u64>),
        key: &[u8],
        at: Moment,
    ) -> Result<Option<Found<'g>>, Error> {
        let mut hit = match expired {
            None => self.get_older(guard, table, view, key, at)?,
            Some(number) => Hit::Expired(number),
        };
        let mut seen = None;
        loop {
            match hit {
                Hit::Value(found) => return Ok(Some(found)),
                // It has expired since it was found, and may have been overwritten before it did, perhaps in
                // a newer layer.
                Hit::Expired(number)
                    if !twin!(ExpiredBelowBelieved) && seen.replace(number) != Some(number) =>
                {
                    let view = table.view(guard);
                    table.check()?;
                    hit = match self.get_in(guard, table, (&view.active, None), key, at)? {
                        Hit::Nothing => self.get_older(guard, table, view, key, at)?,
                        found => found.map(Found::from),
                    };
                }
                Hit::Expired(_) | Hit::Deleted | Hit::Nothing => return Ok(None),
            }
        }
    }

    /// The value of a key that the active layer does not have.
    fn get_older<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        table: &'g Table<I>,
        view: &'g View<I>,
        key: &[u8],
        at: Moment,
    ) -> Result<Hit<Found<'g>>, Error> {
        for layer in view.further() {
            match self.get_in(guard, table, (layer, None), key, at)? {
                Hit::Nothing => {}
                found => return Ok(found.map(Found::from)),
            }
        }
        self.get_below(guard, table, view, key, at)
    }

    /// The value of a key on the levels at a moment.
    fn get_below<'g>(
        &self,
        guard: &Guard<'_>,
        table: &Table<I>,
        view: &View<I>,
        key: &[u8],
        at: Moment,
    ) -> Result<Hit<Found<'g>>, Error> {
        let (Some(levels), mut value) = (&view.levels, Vec::new()) else { return Ok(Hit::Nothing) };
        // All that is on the levels was visible before they were made.
        let Some(head) = levels.get(key, at.number, &mut value)? else {
            return Ok(Hit::Nothing);
        };
        // Versions, range tombstones, visible number: in this order (see `ranges`).
        between_looks();
        let list = table.ranges.get(guard);
        between_looks();
        let up_to = if at.is_now() { self.log.visible() } else { at.number };
        if head.kind != Kind::Value || list.is_some_and(|list| list.deletes(key, head.number, up_to)) {
            return Ok(Hit::Deleted);
        }
        between_looks();
        if head.expires != 0 && self.has_passed_by(head.expires, self.time_at(at)) {
            return Ok(Hit::Expired(head.number));
        }
        Ok(Hit::Value(Found { value: value.into(), version: head.version, expires: head.expires }))
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
        // All of it is visible: a range delete holds every stripe until its number is.
        match self.get_below(guard, table, view, key, Moment::NOW)? {
            Hit::Value(found) => Ok((0, Some(found))),
            _ => Ok((0, None)),
        }
    }
}
