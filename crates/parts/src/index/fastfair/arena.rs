//! Nodes and chunks by their numbers, and where they come from.
//!
//! A zone of the index holds nodes or chunks, and never anything else: a number that once named a node names
//! a node for ever, so a hint may be followed at any time. A number is the zone's place in the chain and the
//! unit's place in the zone, which both stay as they are when the index is opened again.
//!
//! Which units are free stands in DRAM only. After a restart all units of earlier runs are unknown; a walk
//! over the tree (see `sweep`) finds those in use, and the others are free. So allocating costs no write to
//! PM, no crash can leave a wrong list, and units in flight at a crash are free again.

use super::key::CHUNK_BITS;
use super::node::{NODE, Node};
use super::settings::{NUMBER_BITS, Result, damaged};
use super::state::State;
use crate::index::IndexError;
use crate::index::chain::{Chain, HEADER, Shape};
use crate::index::words::Words;
use crate::space::ZoneId;
use crate::sync::SpinLock;
use quipu_medium::LINE;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The units of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nodes,
    Chunks,
}

/// The first byte of a shape: the kind of the zone. The second is the size of a node as a power of two.
const NODES: u8 = 1;
const CHUNKS: u8 = 2;

impl Kind {
    /// The shape of zones of this kind.
    pub(super) fn shape(self) -> Shape {
        let kind = if self == Kind::Nodes { NODES } else { CHUNKS };
        [kind, NODE.ilog2() as u8, 0, 0]
    }

    pub(super) fn of(shape: Shape) -> Option<Kind> {
        [Kind::Nodes, Kind::Chunks].into_iter().find(|kind| kind.shape() == shape)
    }

    fn unit(self) -> u64 {
        if self == Kind::Nodes { NODE } else { LINE }
    }
}

/// How zones of one kind are divided. The first unit of a zone is its header's.
#[derive(Clone, Copy)]
struct Units {
    count: u64,
    /// Bits of a number that say which unit of the zone it is.
    shift: u32,
}

impl Units {
    fn new(kind: Kind, zone_size: u64) -> Units {
        let count = zone_size / kind.unit();
        Units { count, shift: count.next_power_of_two().ilog2() }
    }
}

/// The notes on the units of a zone.
enum Cells {
    Nodes(Box<[State]>),
    /// A bit for each chunk: whether it is known what becomes of it.
    Chunks(Box<[AtomicU64]>),
}

struct Zone {
    start: u64,
    cells: Cells,
}

/// Units that can be had.
#[derive(Default)]
struct Free {
    /// Used before.
    again: Vec<u64>,
    /// Never used, in the last zone of this kind.
    fresh: Range<u64>,
}

/// The lists behind their lock.
#[derive(Default)]
struct Lists {
    chain: Vec<ZoneId>,
    nodes: Free,
    chunks: Free,
}

impl Lists {
    fn of(&mut self, kind: Kind) -> &mut Free {
        if kind == Kind::Nodes { &mut self.nodes } else { &mut self.chunks }
    }
}

/// All zones of an index.
pub(super) struct Arena<W> {
    pub(super) words: W,
    pub(super) chain: Chain,
    units: [Units; 2],
    /// In the order of the chain; as many as the pool has zones.
    zones: Box<[OnceLock<Zone>]>,
    /// Zones of earlier runs, whose units may not be known.
    earlier: AtomicUsize,
    lists: SpinLock<Lists>,
}

impl<W: Words> Arena<W> {
    /// An arena without zones.
    pub(super) fn new(words: W, chain: Chain) -> Result<Arena<W>> {
        let zone = chain.zone_size();
        let units = [Kind::Nodes, Kind::Chunks].map(|kind| Units::new(kind, zone));
        if units.iter().any(|units| units.count < 2) {
            return Err(IndexError::ZoneTooSmall { bytes: 2 * NODE, zone });
        }
        if !numbers_fit(chain.space.zone_count(), units) {
            return Err(IndexError::OutOfNumbers);
        }
        let zones = (0..chain.space.zone_count()).map(|_| OnceLock::new()).collect();
        let (earlier, lists) = (AtomicUsize::new(0), SpinLock::default());
        Ok(Arena { words, chain, units, zones, earlier, lists })
    }

    fn units(&self, kind: Kind) -> Units {
        self.units[usize::from(kind == Kind::Chunks)]
    }

    /// Adds the next zone of the chain to the table. Its units are fresh, or of earlier runs and
    /// unknown.
    pub(super) fn add(&self, zone: ZoneId, kind: Kind, is_fresh: bool) {
        self.add_to(&mut self.lists.lock(), zone, kind, is_fresh);
    }

    fn add_to(&self, lists: &mut Lists, zone: ZoneId, kind: Kind, is_fresh: bool) {
        let (units, place) = (self.units(kind), lists.chain.len());
        let cells = match kind {
            Kind::Nodes => Cells::Nodes((0..units.count).map(|_| State::default()).collect()),
            Kind::Chunks => Cells::Chunks((0..units.count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()),
        };
        let added = Zone { start: self.chain.space.zone_offset(zone), cells };
        let is_new = self.zones[place].set(added).is_ok();
        debug_assert!(is_new, "a place in the chain is filled once");
        lists.chain.push(zone);
        if is_fresh {
            let first = (place as u64) << units.shift;
            lists.of(kind).fresh = first + 1..first + units.count;
        } else {
            self.earlier.store(place + 1, Ordering::Relaxed);
        }
    }

    fn unit(&self, kind: Kind, number: u64) -> Option<(&Zone, u64)> {
        let units = self.units(kind);
        let index = number & ((1 << units.shift) - 1);
        let zone = self.zones.get(usize::try_from(number >> units.shift).ok()?)?.get()?;
        (index != 0 && index < units.count).then_some((zone, index))
    }

    /// The node of this number, if there is one.
    #[inline]
    pub(super) fn find_node(&self, number: u64) -> Option<Node<'_, W>> {
        let (zone, index) = self.unit(Kind::Nodes, number)?;
        let Cells::Nodes(states) = &zone.cells else { return None };
        Some(Node { arena: self, number, place: zone.start + index * NODE, state: &states[index as usize] })
    }

    /// The node of this number, which stood at `place`.
    #[inline]
    pub(super) fn node(&self, number: u64, place: u64) -> Result<Node<'_, W>> {
        match self.find_node(number) {
            Some(node) => Ok(node),
            None => damaged("the number of a node of the index", place),
        }
    }

    fn find_chunk(&self, number: u64) -> Option<(u64, &AtomicU64, u64)> {
        let (zone, index) = self.unit(Kind::Chunks, number)?;
        let Cells::Chunks(known) = &zone.cells else { return None };
        Some((zone.start + index * LINE, &known[index as usize / 64], 1 << (index % 64)))
    }

    /// The first byte of the chunk of this number.
    #[inline]
    pub(super) fn chunk(&self, number: u64) -> Result<u64> {
        match self.find_chunk(number) {
            Some((place, ..)) => Ok(place),
            None => damaged("the number of a chunk of the index", self.first_zone()),
        }
    }

    /// Notes that it is known what becomes of a chunk.
    pub(super) fn know_chunk(&self, number: u64) {
        if let Some((_, known, bit)) = self.find_chunk(number) {
            known.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// A unit, if one is free.
    pub(super) fn take(&self, kind: Kind) -> Option<u64> {
        let number = {
            let mut lists = self.lists.lock();
            let free = lists.of(kind);
            free.again.pop().or_else(|| free.fresh.next())?
        };
        match kind {
            Kind::Nodes => self.find_node(number)?.state.reuse(),
            Kind::Chunks => self.know_chunk(number),
        }
        Some(number)
    }

    /// Gives back units that nobody can reach any more.
    pub(super) fn give(&self, kind: Kind, numbers: impl IntoIterator<Item = u64>) {
        self.lists.lock().of(kind).again.extend(numbers);
    }

    /// Another zone, unless there are free units by now.
    pub(super) fn extend(&self, kind: Kind) -> Result<()> {
        let mut lists = self.lists.lock();
        let free = lists.of(kind);
        if !free.again.is_empty() || !free.fresh.is_empty() {
            return Ok(());
        }
        // A zone that others have made room for is not in the table, and is not for us.
        if lists.chain.len() == self.zones.len() {
            return Err(self.chain.full(1));
        }
        let zone = self.chain.take_zone()?;
        self.chain.link(&lists.chain, zone, |place| {
            let header = self.chain.header(zone, place, kind.shape(), 0);
            self.words.write(self.chain.space.zone_offset(zone), &header);
        });
        self.add_to(&mut lists, zone, kind, true);
        Ok(())
    }

    /// Free units, as far as they are known.
    pub(super) fn free(&self, kind: Kind) -> u64 {
        let mut lists = self.lists.lock();
        let free = lists.of(kind);
        free.again.len() as u64 + free.fresh.end.saturating_sub(free.fresh.start)
    }

    /// Units for which the zones have room.
    pub(super) fn capacity(&self, kind: Kind) -> u64 {
        let is_of_kind = |zone: &&Zone| matches!(zone.cells, Cells::Nodes(_)) == (kind == Kind::Nodes);
        let zones = self.zones.iter().filter_map(|zone| zone.get()).filter(is_of_kind).count() as u64;
        zones * (self.units(kind).count - 1)
    }

    /// Adds the units of earlier runs of which nothing is known to the free ones: the end of a sweep.
    pub(super) fn free_unknown(&self) {
        let earlier = self.earlier.swap(0, Ordering::AcqRel);
        for place in 0..earlier as u64 {
            for kind in [Kind::Nodes, Kind::Chunks] {
                let Units { count, shift, .. } = self.units(kind);
                let numbers = (1..count).map(|index| place << shift | index);
                let unknown = numbers.filter(|number| self.is_unknown(kind, *number));
                self.give(kind, unknown.collect::<Vec<_>>());
            }
        }
    }

    fn is_unknown(&self, kind: Kind, number: u64) -> bool {
        match kind {
            Kind::Nodes => self.find_node(number).is_some_and(|node| !node.state.before().is_known()),
            Kind::Chunks => {
                let found = self.find_chunk(number);
                found.is_some_and(|(_, known, bit)| known.load(Ordering::Acquire) & bit == 0)
            }
        }
    }

    /// The zones, in the order of the chain.
    pub(super) fn zones(&self) -> Vec<ZoneId> {
        self.lists.lock().chain.clone()
    }

    /// More units than there are: a walk that has passed so many goes round in a circle.
    pub(super) fn nodes_max(&self) -> u64 {
        self.zones.len() as u64 * self.units(Kind::Nodes).count
    }

    /// Bytes of DRAM that this takes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let of_zone = |zone: &Zone| match &zone.cells {
            Cells::Nodes(states) => size_of_val::<[State]>(states),
            Cells::Chunks(known) => size_of_val::<[AtomicU64]>(known),
        };
        let cells: usize = self.zones.iter().filter_map(|zone| zone.get()).map(of_zone).sum();
        let lists = self.lists.lock();
        let listed = lists.nodes.again.capacity() + lists.chunks.again.capacity();
        (cells + size_of_val::<[OnceLock<Zone>]>(&self.zones) + listed * size_of::<u64>()) as u64
    }

    /// First byte of the first zone, if there is one yet.
    pub(super) fn first_zone(&self) -> u64 {
        self.zones.first().and_then(|zone| zone.get()).map_or(0, |zone| zone.start)
    }
}

/// The parts of the numbers fit their words for every pool that the space allows.
const _: () = assert!(HEADER <= LINE && NUMBER_BITS >= 43 && CHUNK_BITS == 48);

/// Whether numbers of all units of so many zones fit their words.
fn numbers_fit(zones: u32, units: [Units; 2]) -> bool {
    let [nodes, chunks] = units.map(|units| units.shift + u64::from(zones).next_power_of_two().ilog2());
    zones <= 1 << 31 && nodes <= NUMBER_BITS && chunks <= CHUNK_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_zones_than_numbers_are_refused() {
        let fit = |zones, zone_size| {
            numbers_fit(zones, [Kind::Nodes, Kind::Chunks].map(|kind| Units::new(kind, zone_size)))
        };
        assert!(fit(1 << 20, 4 << 20) && fit(1 << 31, 16 << 10));
        assert!(!fit((1 << 31) + 1, 16 << 10) && !fit(u32::MAX, 16 << 10));
    }
}
