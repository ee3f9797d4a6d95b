//! Creating an index in PM, and finding it again after a crash.

use super::layout::{self, Carving, MAGIC, NAMES};
use super::nodes::{Named, PmNodes};
use crate::index::cceh::entry::{EMPTY, Name};
use crate::index::cceh::memory::NodeMemory;
use crate::index::cceh::settings::CcehSettings;
use crate::index::cceh::table::CcehIndex;
use crate::index::chain::{Chain, Linked, damaged};
use crate::index::directory::{deepest, following};
use crate::index::{InPool, IndexError, IndexRoot};
use crate::space::{Space, SpaceError};
use crate::sync::SpinLock;
use quipu_medium::WORD;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl InPool for CcehIndex<PmNodes> {
    type Settings = CcehSettings;

    fn create(
        space: Arc<Space>,
        settings: CcehSettings,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<CcehIndex<PmNodes>, IndexError> {
        let mut settings = settings.in_range();
        let nodes = PmNodes::new(Chain::create(space.clone(), MAGIC, leave), settings)?;
        settings.initial_depth = settings.initial_depth.min(nodes.carving.segments.ilog2());
        let zone = nodes.chain.take_zone()?;
        nodes.write_head(zone, 0, settings.initial_names());
        let first = space.zone_offset(zone) + nodes.carving.first;
        let segments: Vec<(Name, u64)> =
            settings.initial_names().zip((first..).step_by(nodes.carving.segment as usize)).collect();
        segments
            .iter()
            .for_each(|(_, place)| nodes.write_words(*place, &settings.empty_segment(PmNodes::MARK)));
        nodes.region.fence();
        nodes.chain.begin(zone, keep);
        let used = segments.len() as u64;
        nodes.note(&mut nodes.zones.lock(), zone, |segment| segment >= used);
        let index = CcehIndex::over(nodes, settings, &segments);
        index.counts_all.store(true, Ordering::Relaxed);
        Ok(index)
    }

    /// Reads one word for each segment.
    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<CcehIndex<PmNodes>, IndexError> {
        let (nodes, segments) = PmNodes::examine(space, root, leave)?;
        let settings = nodes.settings;
        Ok(CcehIndex::over(nodes, settings, &segments))
    }

    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError> {
        self.memory.repair(begin);
        Ok(())
    }
}

impl PmNodes {
    fn new(chain: Chain, settings: CcehSettings) -> Result<PmNodes, IndexError> {
        let (bytes, zone) = (settings.segment_bytes(), chain.zone_size());
        let carving = Carving::new(zone, settings).ok_or(IndexError::ZoneTooSmall { bytes, zone })?;
        Ok(PmNodes {
            region: chain.region.clone(),
            key: chain.certifier.life_key(0, chain.nonce),
            chain,
            settings,
            carving,
            zones: SpinLock::default(),
            orphans: SpinLock::default(),
        })
    }

    /// The memory of the index of this root, and its segments in the order of their names. Nothing is
    /// changed; [`repair`](NodeMemory::repair) must follow.
    ///
    /// # Errors
    /// As for [`InPool::examine`].
    pub fn examine(
        space: Arc<Space>,
        root: IndexRoot,
        leave: u32,
    ) -> Result<(PmNodes, Vec<(Name, u64)>), IndexError> {
        let (chain, linked) = Chain::examine(space, MAGIC, root, leave)?;
        let nodes = PmNodes::new(chain, layout::settings(linked[0].shape))?;
        let Partition { segments, orphans } = partition(nodes.read_names(&linked)?)?;
        for Linked { zone, .. } in linked {
            let names = nodes.chain.space.zone_offset(zone) + NAMES;
            let is_free = |segment| nodes.region.load(names + segment * WORD) == EMPTY;
            nodes.note(&mut nodes.zones.lock(), zone, is_free);
        }
        *nodes.orphans.lock() = orphans;
        Ok((nodes, segments))
    }

    /// The names of all segments, durable.
    fn read_names(&self, zones: &[Linked]) -> Result<Vec<Named>, IndexError> {
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
                let Some(name) = self.name_of(word, named) else {
                    return Ok(damaged("the name of a segment of the index", named)?);
                };
                let place = start + self.carving.first + segment * self.carving.segment;
                found.push(Named { name, place, named });
            }
        }
        self.region.fence();
        Ok(found)
    }
}

/// Segments in use and orphans, as their names tell.
struct Partition {
    /// The segments that divide all hashes among them, in order.
    segments: Vec<(Name, u64)>,
    /// The others: siblings of splits that have not happened, which other names cover.
    orphans: Vec<Named>,
}

/// Tells segments in use from siblings of splits that did not happen; refuses names that no splits leave.
fn partition(mut found: Vec<Named>) -> Result<Partition, SpaceError> {
    const SET: &str = "the set of segments of the index";
    found.sort_unstable_by_key(|named| named.name);
    if let Some(twice) = found.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return damaged(SET, twice[1].named);
    }
    let (mut segments, mut orphans) = (Vec::<(Name, u64)>::new(), Vec::new());
    // The lowest hash that no segment covers.
    let mut next = Some(0);
    for named in found {
        let name = named.name;
        match segments.last() {
            _ if next == Some(name.start) => {
                segments.push((name, named.place));
                next = following(name.start, name.depth);
            }
            Some((covering, _)) if covering.halves()[1] == name => orphans.push(named),
            _ => return damaged(SET, named.named),
        }
    }
    let limit = deepest(segments.len() as u64);
    match segments.iter().find(|(name, _)| name.depth > limit) {
        Some((_, place)) => damaged(SET, *place),
        None if next.is_some() => damaged(SET, 0),
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
