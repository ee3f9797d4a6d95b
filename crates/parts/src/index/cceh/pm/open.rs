//! Creating an index in PM, and finding it again after whatever has happened.

use super::layout::{self, Carving, CcehRoot, MAGIC, NAMES};
use super::nodes::{PmNodes, Zones};
use crate::index::cceh::entry::{EMPTY, Name};
use crate::index::cceh::memory::NodeMemory;
use crate::index::cceh::settings::{CcehError, CcehSettings};
use crate::index::cceh::table::CcehIndex;
use crate::index::chain::{Chain, Found, Linked};
use crate::index::directory::{deepest, following};
use crate::space::{Space, SpaceError};
use crate::sync::SpinLock;
use quipu_medium::WORD;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl CcehIndex<PmNodes> {
    /// An empty index in zones of `space`, of which it always leaves `leave` free. Settings out of range are brought
    /// into range. `keep` makes the root durable where the caller finds it again; after a crash before the return, the root
    /// names an empty index or, by [`CcehError::Absent`], none.
    ///
    /// # Errors
    /// [`CcehError::SegmentTooLarge`], [`CcehError::Full`] or [`CcehError::Space`]; nothing is changed then.
    pub fn create(
        space: Arc<Space>,
        settings: CcehSettings,
        leave: u32,
        keep: impl FnOnce(CcehRoot),
    ) -> Result<CcehIndex<PmNodes>, CcehError> {
        let mut settings = settings.in_range();
        let nodes = PmNodes::new(Chain::create(space.clone(), MAGIC, leave), settings)?;
        settings.initial_depth = settings.initial_depth.min(nodes.carving.segments.ilog2());
        let zone = nodes.take_zone()?;
        nodes.write_head(zone, 0, settings.initial_names());
        let first = space.zone_offset(zone) + nodes.carving.first;
        let segments: Vec<(Name, u64)> =
            settings.initial_names().zip((first..).step_by(nodes.carving.segment as usize)).collect();
        segments
            .iter()
            .for_each(|(_, place)| nodes.write_words(*place, &settings.empty_segment(PmNodes::MARK)));
        nodes.region.fence();
        keep(CcehRoot::new(zone, nodes.chain.nonce));
        space.commit_zone(zone);
        let used = segments.len() as u64;
        nodes.note(&mut nodes.zones.lock(), zone, |segment| segment >= used);
        let index = CcehIndex::over(nodes, settings, &segments);
        index.counts_all.store(true, Ordering::Relaxed);
        Ok(index)
    }

    /// The index of this root, usable at once: what is read is one word for each segment. Nobody has taken zones of the
    /// pool since it was opened.
    ///
    /// # Errors
    /// [`CcehError::Absent`] if the root names none; [`CcehError::Space`] if it is damaged. Nothing is changed then.
    pub fn open(space: Arc<Space>, root: CcehRoot, leave: u32) -> Result<CcehIndex<PmNodes>, CcehError> {
        let index = CcehIndex::examine(space, root, leave)?;
        index.memory().repair(|| ());
        Ok(index)
    }

    /// The first half of [`open`](CcehIndex::open), for an owner who has more to verify: nothing is changed. Before anything is
    /// added, [`repair`](NodeMemory::repair) of its memory must follow.
    ///
    /// # Errors
    /// As for [`open`](CcehIndex::open).
    pub fn examine(space: Arc<Space>, root: CcehRoot, leave: u32) -> Result<CcehIndex<PmNodes>, CcehError> {
        let (nodes, segments) = PmNodes::examine(space, root, leave)?;
        let settings = nodes.settings;
        Ok(CcehIndex::over(nodes, settings, &segments))
    }

    /// The index with readers who act on what is not durable: a broken twin.
    pub fn stop_helping(&mut self) {
        self.memory.helps = false;
    }
}

/// A segment as its zone names it.
struct Named {
    name: Name,
    place: u64,
    /// Where the name stands.
    named: u64,
}

impl PmNodes {
    fn new(chain: Chain, settings: CcehSettings) -> Result<PmNodes, CcehError> {
        let (segment, zone) = (settings.segment_bytes(), chain.zone_size());
        let carving = Carving::new(zone, settings).ok_or(CcehError::SegmentTooLarge { segment, zone })?;
        Ok(PmNodes {
            region: chain.region.clone(),
            key: chain.certifier.life_key(0, chain.nonce),
            chain,
            settings,
            carving,
            zones: SpinLock::default(),
            unfinished: SpinLock::default(),
            helps: true,
        })
    }

    /// The memory of the index of this root and its segments, in the order of their names.
    ///
    /// # Errors
    /// As for [`CcehIndex::open`].
    pub fn open(
        space: Arc<Space>,
        root: CcehRoot,
        leave: u32,
    ) -> Result<(PmNodes, Vec<(Name, u64)>), CcehError> {
        let (nodes, segments) = PmNodes::examine(space, root, leave)?;
        nodes.repair(|| ());
        Ok((nodes, segments))
    }

    /// The same without a change; [`repair`](NodeMemory::repair) must follow.
    pub(super) fn examine(
        space: Arc<Space>,
        root: CcehRoot,
        leave: u32,
    ) -> Result<(PmNodes, Vec<(Name, u64)>), CcehError> {
        let chain = Chain::new(space, MAGIC, root.nonce(), leave);
        let Found { zones, dangling } = chain.follow(root.zone())?.ok_or(CcehError::Absent)?;
        let nodes = PmNodes::new(chain, layout::settings(zones[0].shape))?;
        let named = nodes.read_names(&zones)?;
        let Partition { segments, orphans } = partition(named)?;
        let mut noted = Zones::default();
        for Linked { zone, .. } in zones {
            let names = nodes.chain.space.zone_offset(zone) + NAMES;
            nodes.note(&mut noted, zone, |segment| nodes.region.load(names + segment * WORD) == EMPTY);
        }
        let orphans = orphans.into_iter().map(|Orphan { place, named }| (named, Some(place)));
        let unfinished = dangling.map(|link| (link, None)).into_iter().chain(orphans).collect();
        *nodes.zones.lock() = noted;
        *nodes.unfinished.lock() = unfinished;
        Ok((nodes, segments))
    }

    /// The names of all segments, durable.
    fn read_names(&self, zones: &[Linked]) -> Result<Vec<Named>, CcehError> {
        let mut found = Vec::new();
        for Linked { zone, .. } in zones {
            let start = self.chain.space.zone_offset(*zone);
            self.region.flush(start, self.carving.first);
            for segment in 0..self.carving.segments {
                let named = start + NAMES + segment * WORD;
                let word = self.region.load(named);
                if word == EMPTY {
                    continue;
                }
                let damaged =
                    SpaceError::Damaged { what: "the name of a segment of the index", offset: named };
                let name = self.name_of(word, named).ok_or(damaged)?;
                let place = start + self.carving.first + segment * self.carving.segment;
                found.push(Named { name, place, named });
            }
        }
        self.region.fence();
        Ok(found)
    }
}

/// What the names say.
struct Partition {
    /// The segments that divide all hashes among them, in order.
    segments: Vec<(Name, u64)>,
    /// The others: siblings of splits that have not happened, which other names cover.
    orphans: Vec<Orphan>,
}

/// A segment that nothing leads to.
struct Orphan {
    place: u64,
    /// Where its name stands.
    named: u64,
}

/// Tells the segments in use from the siblings of splits that did not happen, and refuses what no sequence of splits leaves.
fn partition(mut found: Vec<Named>) -> Result<Partition, CcehError> {
    let damaged = |offset| SpaceError::Damaged { what: "the set of segments of the index", offset };
    found.sort_unstable_by_key(|named| named.name);
    if let Some(twice) = found.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(damaged(twice[1].named).into());
    }
    let (mut segments, mut orphans) = (Vec::<(Name, u64)>::new(), Vec::new());
    // The lowest hash that no segment covers.
    let mut next = Some(0);
    for Named { name, place, named } in found {
        match segments.last() {
            _ if next == Some(name.start) => {
                segments.push((name, place));
                next = following(name.start, name.depth);
            }
            Some((covering, _)) if covering.halves()[1] == name => orphans.push(Orphan { place, named }),
            _ => return Err(damaged(named).into()),
        }
    }
    let limit = deepest(segments.len() as u64);
    match segments.iter().find(|(name, _)| name.depth > limit) {
        Some((_, place)) => Err(damaged(*place).into()),
        None if next.is_some() => Err(damaged(0).into()),
        None => Ok(Partition { segments, orphans }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(names: &[(u64, u32)]) -> Option<(usize, usize)> {
        let named = |&(start, depth): &(u64, u32)| Named { name: Name { start, depth }, place: 0, named: 0 };
        let Partition { segments, orphans } = partition(names.iter().map(named).collect()).ok()?;
        Some((segments.len(), orphans.len()))
    }

    #[test]
    fn names_that_divide_all_hashes_among_them() {
        const HALF: u64 = 1 << 63;
        const QUARTER: u64 = 1 << 62;
        assert_eq!(parts(&[(0, 0)]), Some((1, 0)));
        assert_eq!(parts(&[(HALF, 1), (0, 1)]), Some((2, 0)));
        assert_eq!(parts(&[(0, 0), (HALF, 1)]), Some((1, 1)), "a split that has not happened");
        assert_eq!(parts(&[(0, 1), (QUARTER, 2), (HALF, 1), (HALF + QUARTER, 2)]), Some((2, 2)));
        for wrong in [
            &[][..],
            &[(0, 1)],
            &[(HALF, 1)],
            &[(0, 0), (0, 0)],
            &[(0, 0), (0, 1)],
            &[(0, 0), (QUARTER, 2)],
            &[(0, 0), (HALF, 1), (HALF, 1)],
            &[(0, 2), (HALF, 1)],
        ] {
            assert_eq!(parts(wrong), None, "{wrong:?}");
        }
    }
}
