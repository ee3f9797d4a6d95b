//! From a crashed pool to memtables that hold a prefix of all items.
//!
//! 1. Flush what is acted upon: the anchor, the objects, the zone headers. After a crash of the process alone
//!    they may be only in the processor's cache; a later power failure would take back what recovery built
//!    upon.
//! 2. Walk over the memtables, and find the [cut](super::cut).
//! 3. Flush the chunks that count and may not be durable yet.
//! 4. Write the cut to the anchor. From here on it decides for all memtables of these runs.
//! 5. Release open memtables of which nothing counts, end the others, give back zones without a chunk.
//!
//! A crash before step 4 repeats on the same evidence: a missing chunk never appears. After it, the anchor
//! gives the same answer again, whatever has been released or ended since.

use super::anchor::{Anchor, Bounds};
use super::cut::Evidence;
use super::layout::{FIRST_CHUNK, MEMTABLE_LEN, MemtableObject, MemtableZone};
use super::memtable::{ChainHeap, ChainTwin, Memtable};
use super::walk::{ChainError, ChunkFound};
use crate::space::{ObjectId, ZoneId};
use quipu_medium::LINE;
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::FromBytes;

/// A memtable that holds accepted chunks. It has ended, and nobody appends to it again.
pub struct RecoveredMemtable {
    /// The memtable.
    pub memtable: Memtable,
    /// Where it ends.
    pub end: u32,
    /// Its last number.
    pub last: u64,
}

/// The memtables of a pool, by rising numbers.
pub struct Recovered {
    /// All items up to it count, and no other.
    pub cut: u64,
    /// Those that hold something of it.
    pub memtables: Vec<RecoveredMemtable>,
}

/// A memtable as its object and its zones describe it.
struct Found {
    memtable: Memtable,
    /// Its end mark: the place, and the last number.
    end: Option<(u32, u64)>,
    /// Zones whose slots do not follow on the others.
    surplus: Vec<ZoneId>,
    trail: Trail,
}

/// The chunks of a memtable, as far as the cut may lie among them.
#[derive(Default)]
struct Trail {
    /// The last chunk that is certainly below the cut.
    settled: Option<ChunkFound>,
    /// Those behind it.
    recent: Vec<ChunkFound>,
}

impl Trail {
    /// Notes a chunk, and forgets those that a floor settles.
    fn add(&mut self, chunk: &ChunkFound, floor: u64) {
        if self.recent.len() >= self.recent.capacity().max(64) {
            let settled = self.recent.partition_point(|chunk| chunk.fact.last() <= floor);
            self.settled = self.recent.drain(..settled).next_back().or(self.settled);
        }
        self.recent.push(*chunk);
    }

    fn last(&self) -> Option<&ChunkFound> {
        self.recent.last().or(self.settled.as_ref())
    }

    /// Forgets the chunks above the cut.
    fn cut(&mut self, cut: u64) {
        self.recent.truncate(self.recent.partition_point(|chunk| chunk.fact.last() <= cut));
    }
}

impl ChainHeap {
    /// Recovers all memtables. The caller has the pool for itself, and all its zones are of memtables.
    ///
    /// # Errors
    /// Damage; nothing has been changed then.
    pub fn recover(&self, anchor: &Anchor) -> Result<Recovered, ChainError> {
        let bounds = anchor.bounds();
        let (found, orphans) = self.find()?;
        let tables: BTreeSet<u64> = self.subtables()?.into_iter().map(|table| table.created).collect();
        let is_named = |found: &Found| tables.contains(&found.memtable.subtable());
        let (mut found, unnamed): (Vec<_>, Vec<_>) = found.into_iter().partition(is_named);
        anchor.flush(self.region());
        self.region().fence();
        let mut evidence = Evidence::default();
        let ended = found.iter().filter_map(|found| found.end).map(|(_, last)| last);
        [bounds.cut, bounds.through].into_iter().chain(ended).for_each(|known| evidence.known(known));
        for found in &mut found {
            self.look(found, bounds, &mut evidence)?;
        }
        let highest =
            found.iter().filter_map(|found| found.trail.last()).map(|chunk| chunk.fact.last()).max();
        let cut = evidence.cut(bounds.through, self.twin)?;
        self.clock.pass(highest.unwrap_or_default().max(cut));
        found.iter_mut().for_each(|found| found.trail.cut(cut));
        self.settle(anchor, bounds, cut, &found);
        // Their subtables have been dropped.
        unnamed.into_iter().for_each(|found| self.clear_away(found));
        orphans.into_iter().for_each(|zone| self.space.release_zone(zone));
        let memtables = found.into_iter().filter_map(|found| self.tidied(found)).collect();
        Ok(Recovered { cut, memtables })
    }

    /// The committed memtables by rising numbers, and the zones that none of them has. All that is read here
    /// is durable after the next fence.
    fn find(&self) -> Result<(Vec<Found>, Vec<ZoneId>), ChainError> {
        let (mut zones, mut orphans) = (BTreeMap::new(), Vec::new());
        for zone in self.space.committed_zones() {
            let at = self.space.zone_offset(zone);
            let header: MemtableZone = self.read(at, FIRST_CHUNK);
            let damaged = |what| ChainError::Damaged { what, offset: at };
            if !header.is_valid(&self.certifier, zone) {
                return Err(damaged("the header of a memtable's zone"));
            }
            let owner = self.described(header.owner().0)?;
            let is_any = !self.holds(ChainTwin::LivesIgnored);
            if !owner.is_some_and(|object| is_any || header.is_of(&object.life())) {
                orphans.push(zone);
            } else if zones.insert(header.owner(), zone).is_some() {
                return Err(damaged("the header of one of two zones in one place of a memtable"));
            }
        }
        let mut found = Vec::new();
        for object in self.pool().committed() {
            let bytes = self.described(object)?.expect("it is committed");
            let own = zones.range((object, 0)..=(object, u32::MAX)).zip(0..);
            let (in_a_row, surplus): (Vec<_>, Vec<_>) = own.partition(|(((_, slot), _), nth)| slot == nth);
            let [in_a_row, surplus] =
                [in_a_row, surplus].map(|part| part.into_iter().map(|((_, zone), _)| *zone).collect());
            let memtable = self.memtable(object, bytes.subtable(), bytes.life(), in_a_row);
            let end = bytes.end(&self.certifier, memtable.key).map_err(|()| ChainError::Damaged {
                what: "the end mark of a memtable",
                offset: self.object_offset(object),
            })?;
            found.push(Found { memtable, end, surplus, trail: Trail::default() });
        }
        found.sort_by_key(|found| found.memtable.number());
        Ok((found, orphans))
    }

    /// The bytes of a committed memtable.
    fn described(&self, object: ObjectId) -> Result<Option<MemtableObject>, ChainError> {
        let Some(at) = self.pool().object_offset(object).filter(|_| self.pool().check(object)) else {
            return Ok(None);
        };
        let bytes: MemtableObject = self.read(at, MEMTABLE_LEN);
        if !bytes.is_valid(&self.certifier, object) {
            return Err(ChainError::Damaged { what: "the object of a memtable", offset: at });
        }
        Ok(Some(bytes))
    }

    /// Reads a structure, and flushes it.
    pub(super) fn read<T: FromBytes>(&self, at: u64, len: u64) -> T {
        let mut bytes = vec![0; len as usize];
        self.region().read_racing(at, &mut bytes);
        self.region().flush(at, len);
        T::read_from_bytes(&bytes).expect("as long as the structure")
    }

    /// Walks over a memtable.
    fn look(&self, found: &mut Found, bounds: Bounds, evidence: &mut Evidence) -> Result<(), ChainError> {
        let Found { memtable, end, trail, .. } = found;
        // An earlier recovery has cut off the chunks above; they stay off.
        let most = if memtable.life.run <= bounds.run { bounds.cut } else { u64::MAX };
        self.walk(memtable, end.map(|(place, _)| place), |chunk, _, _| {
            let counts = chunk.fact.last() <= most;
            if counts {
                evidence.add(chunk.fact, chunk.floor, bounds.through);
                trail.add(chunk, evidence.floor());
            }
            Ok(counts)
        })?;
        match end {
            Some((place, _)) if trail.last().map(ChunkFound::end) != Some(*place) => {
                let offset = self.object_offset(memtable.object);
                Err(ChainError::Damaged { what: "a chunk before the end of the memtable", offset })
            }
            _ => Ok(()),
        }
    }

    /// Steps 3 and 4, and the ends of step 5.
    fn settle(&self, anchor: &Anchor, bounds: Bounds, cut: u64, found: &[Found]) {
        let open = || found.iter().filter(|found| found.end.is_none());
        if open().next().is_none() && cut == bounds.cut {
            return;
        }
        self.clock.begin(&self.space);
        for Found { memtable, trail, .. } in open() {
            for chunk in &trail.recent {
                self.region().flush(self.offset_of(memtable, chunk.place), chunk.len);
            }
        }
        self.region().fence();
        let run = found.iter().map(|found| found.memtable.life.run).fold(bounds.run, u64::max);
        if self.holds(ChainTwin::CutNotDurable) {
            anchor.update(self.region(), &self.certifier, |bounds| (bounds.run, bounds.cut) = (run, cut));
        }
        if !self.holds(ChainTwin::NotEnded) {
            return;
        }
        for Found { memtable, trail, .. } in open() {
            if let Some(chunk) = trail.last() {
                self.mark_end(memtable, chunk.end(), chunk.last_here());
            }
        }
        self.region().fence();
    }

    /// Releases a memtable of a subtable that has been dropped.
    fn clear_away(&self, found: Found) {
        self.clock.begin(&self.space);
        self.release(&found.memtable);
        found.surplus.into_iter().for_each(|zone| self.space.release_zone(zone));
    }

    /// Releases a memtable of which nothing counts. Of another one, it gives back the zones behind the end.
    fn tidied(&self, found: Found) -> Option<RecoveredMemtable> {
        let Found { memtable, end, surplus, trail } = found;
        surplus.into_iter().for_each(|zone| self.space.release_zone(zone));
        let Some((end, last)) = end.or(trail.last().map(|chunk| (chunk.end(), chunk.last_here()))) else {
            self.release(&memtable);
            return None;
        };
        self.trim(&memtable, end);
        Some(RecoveredMemtable { memtable, end, last })
    }

    fn offset_of(&self, memtable: &Memtable, place: u32) -> u64 {
        let (at, zone_size) = (u64::from(place) * LINE, self.space.zone_size());
        self.space.zone_offset(memtable.zones()[(at / zone_size) as usize]) + at % zone_size
    }
}
