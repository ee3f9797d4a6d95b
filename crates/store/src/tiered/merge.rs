//! Keys of several layers and of levels in one order: of each key the record in the newest place.

use super::Tiers;
use super::table::Table;
use super::view::{Layer, LevelsInUse, View};
use crate::types::error::Error;
use crate::types::iter::Pair;
use quipu_medium::LINE;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::chain::RecordFound;
use quipu_parts::index::InOrder;
use quipu_parts::record::Kind;
use quipu_parts::runs::{LevelRecord, LevelScan};
use quipu_parts::versions::{Look, Noted, Version};
use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

/// Keys that are looked up together in a layer: at first, since few of those that a scan tells may be there,
/// and at most.
const AT_FIRST: usize = 8;
const AT_ONCE: usize = 32;

/// The state in which a scan sees a table.
pub(super) struct Sight<'g, I: InOrder> {
    pub(super) tiers: &'g Tiers<I>,
    pub(super) guard: &'g Guard<'g>,
    pub(super) table: &'g Table<I>,
    /// The number of the snapshot.
    pub(super) at: u64,
    /// The time at which records expire or not.
    pub(super) now: u64,
}

/// The view whose layers are merged, and its levels.
type Places<'g, I> = (&'g View<I>, &'g Option<LevelsInUse>);

/// The keys of a view, in order or against it.
pub(super) struct Merge<'g, I: InOrder> {
    /// The newest first.
    layers: Vec<LayerScan<'g, I>>,
    levels: Option<Peekable<LevelScan<'g>>>,
}

struct LayerScan<'g, I: InOrder> {
    layer: &'g Layer<I>,
    cursor: Cursor<I>,
    /// The newest versions of the next keys, tombstones too.
    next: VecDeque<Result<(u64, RecordFound<'g>), Error>>,
    has_more: bool,
    /// Keys that are looked up next.
    limit: usize,
    noted: Noted,
}

enum Cursor<I: InOrder> {
    InOrder(I::Scan),
    Back(I::ScanBack),
}

impl<'g, I: InOrder> Merge<'g, I> {
    /// From the first key that is not lower than this one, in order.
    pub(super) fn from((view, levels): Places<'g, I>, key: &[u8], at: u64) -> Merge<'g, I> {
        let cursor = |layer: &Layer<I>| Cursor::InOrder(layer.versions.scan_from(key));
        Merge::new(view, cursor, levels.as_ref().map(|levels| levels.scan(key, at)))
    }

    /// From the last key below this bound, or at it, against the order.
    pub(super) fn back_from((view, levels): Places<'g, I>, bound: Bound<&[u8]>, at: u64) -> Merge<'g, I> {
        let cursor = |layer: &Layer<I>| Cursor::Back(layer.versions.scan_back_from(bound));
        Merge::new(view, cursor, levels.as_ref().map(|levels| levels.scan_back(bound, at)))
    }

    fn new(
        view: &'g View<I>,
        cursor: impl Fn(&Layer<I>) -> Cursor<I>,
        levels: Option<LevelScan<'g>>,
    ) -> Merge<'g, I> {
        let scan = |layer: &'g Arc<Layer<I>>| LayerScan {
            layer,
            cursor: cursor(layer),
            next: VecDeque::new(),
            has_more: true,
            limit: AT_FIRST,
            noted: Noted::default(),
        };
        Merge { layers: view.layers().map(scan).collect(), levels: levels.map(Iterator::peekable) }
    }

    /// Finds the next pairs, up to so many in all; none at the end.
    pub(super) fn find<const BACK: bool>(
        &mut self,
        sight: &Sight<'g, I>,
        limit: usize,
        found: &mut VecDeque<Pair<'g>>,
    ) -> Result<(), Error> {
        while found.len() < limit {
            for layer in &mut self.layers {
                layer.fill(sight)?;
                while layer.next.front().is_some_and(Result::is_err) {
                    let damage = layer.next.pop_front().and_then(Result::err);
                    found.extend(damage.map(Err));
                    layer.fill(sight)?;
                }
            }
            if let Some(error) = self.levels.as_mut().and_then(|levels| levels.next_if(Result::is_err)) {
                return Err(error.map(drop).expect_err("it is one").into());
            }
            let Some(first) = self.first::<BACK>() else { break };
            match first {
                First::InLayer(number, record)
                    if sight.shows(record.key, number, record.kind, record.expires) =>
                {
                    found.push_back(Ok((record.key.into(), record.value.into())));
                }
                First::OnLevels(LevelRecord { key, head, value })
                    if sight.shows(&key, head.number, head.kind, head.expires) =>
                {
                    found.push_back(Ok((key.into(), value.into())));
                }
                First::InLayer(..) | First::OnLevels(_) => {}
            }
        }
        Ok(())
    }

    /// Takes the record of the next key in the newest place, and passes over those of the key in older ones.
    fn first<const BACK: bool>(&mut self) -> Option<First<'g>> {
        let heads = self.layers.iter().map(LayerScan::key);
        let below = self.levels.as_mut().and_then(Peekable::peek).and_then(|next| next.as_ref().ok());
        let heads = heads.chain([below.map(|record| &record.key[..])]);
        let mut first: Option<(usize, &[u8])> = None;
        for (at, key) in heads.enumerate() {
            let Some(key) = key else { continue };
            let is_first = first.is_none_or(|(_, first)| if BACK { key > first } else { key < first });
            first = if is_first { Some((at, key)) } else { first };
        }
        let (at, _) = first?;
        let Some(layer) = self.layers.get_mut(at) else {
            return self.levels.as_mut()?.next()?.ok().map(First::OnLevels);
        };
        let (number, record) = layer.next.pop_front()?.ok()?;
        for older in &mut self.layers[at + 1..] {
            if older.key() == Some(record.key) {
                older.next.pop_front();
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.next_if(|next| next.as_ref().is_ok_and(|next| next.key == record.key));
        }
        Some(First::InLayer(number, record))
    }
}

/// The next record of a merge.
enum First<'g> {
    InLayer(u64, RecordFound<'g>),
    OnLevels(LevelRecord),
}

impl<I: InOrder> Sight<'_, I> {
    /// Whether a version of a key is a value that is not deleted and has not expired.
    fn shows(&self, key: &[u8], number: u64, kind: Kind, expires: u64) -> bool {
        let list = self.table.ranges.get(self.guard);
        kind == Kind::Value
            && !(expires != 0 && self.tiers.has_passed_by(expires, self.now))
            && !list.is_some_and(|list| number != 0 && list.deletes(key, number, self.at))
    }
}

impl<'g, I: InOrder> LayerScan<'g, I> {
    fn key(&self) -> Option<&'g [u8]> {
        self.next.front()?.as_ref().ok().map(|(_, record)| record.key)
    }

    /// Looks up the next keys, if none is left.
    fn fill(&mut self, sight: &Sight<'g, I>) -> Result<(), Error> {
        let Sight { tiers, guard, at, .. } = *sight;
        let LayerScan { layer, cursor, next, has_more, limit, noted } = self;
        let number_of = |reference| tiers.number_of(guard, reference);
        let prefetch = |reference| {
            let place = tiers.log.heap().resolve(reference);
            tiers.region().prefetch(place);
            tiers.region().prefetch(place + LINE);
        };
        let mut look = Look { limit: *limit, up_to: at, prefetch, number_of, noted: std::mem::take(noted) };
        while next.is_empty() && *has_more {
            let note = |key: &[u8], version: Version| {
                let record = match tiers.record_of(guard, &version) {
                    Ok(record) if record.key != key => Err(tiers.names_no_record(&version)),
                    record => record,
                };
                next.push_back(record.map(|record| (version.number, record)));
            };
            *has_more = match cursor {
                Cursor::InOrder(scan) => layer.versions.next_in_order(guard, scan, &mut look, note)?,
                Cursor::Back(scan) => layer.versions.prev_in_order(guard, scan, &mut look, note)?,
            };
            *limit = (*limit * 2).min(AT_ONCE);
            look.limit = *limit;
        }
        *noted = look.noted;
        Ok(())
    }
}
