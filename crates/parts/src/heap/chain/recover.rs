//! From a crashed pool to memtables that hold a prefix of all items.
//!
//! 1. Flush the bytes that are acted upon: the anchor, the objects, the zone headers. After a crash of the
//!    process alone they may be only in the processor's cache, and a later power failure would change them.
//! 2. Walk over the memtables, and find the [cut](super::cut).
//! 3. Flush the chunks that count and may not be durable yet.
//! 4. End the open memtables of which something counts, and release the others, and those that are on the
//!    levels of their subtable. Give back zones without a chunk.
//!
//! *Recovery may crash.* An item that does not count lacks a piece, or the item before it does not count
//! either. Steps 3 and 4 only take chunks away that do not count, so that none of these items ever becomes
//! whole. All chunks that count are there and durable, and F has not passed the cut. So the next recovery
//! finds the same cut, with whatever memtables have ended by then. When all have, nothing above it is read
//! again, and numbers may be granted. The paper needs a word for the cut, since it takes only words back.

use super::anchor::Anchor;
use super::cut::Evidence;
use super::layout::{FIRST_CHUNK, MEMTABLE_LEN, MemtableObject, MemtableZone};
use super::memtable::{ChainHeap, Memtable};
use super::walk::{ChainError, ChunkFound, MISSING};
use crate::space::{ObjectId, ZoneId};
use crate::twin;
use quipu_medium::LINE;
use std::collections::BTreeMap;
use zerocopy::FromBytes;

/// A memtable that holds accepted chunks. It has ended, and nobody appends to it again.
pub struct RecoveredMemtable {
    /// The memtable.
    pub memtable: Memtable,
    /// Where it ends.
    pub end: u32,
}

/// The memtables of a pool, by rising numbers.
pub struct Recovered {
    /// All items up to it count, and no other.
    pub cut: u64,
    /// Those that hold something of it.
    pub memtables: Vec<RecoveredMemtable>,
    /// The findings.
    pub survey: Survey,
}

/// Findings of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The highest number of anything.
    pub highest: u64,
    /// Memtables that the last run has left open.
    pub left_open: usize,
}

/// A memtable as its object and its zones describe it.
struct Found {
    memtable: Memtable,
    /// Its end mark: the place, and the last number.
    end: Option<(u32, u64)>,
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
    /// Recovers all memtables. All zones of the pool are of memtables. `begin` is told the findings before
    /// anything is changed.
    ///
    /// # Errors
    /// Damage, and those of `begin`; nothing has been changed then.
    pub fn recover<E: From<ChainError>>(
        &mut self,
        anchor: &Anchor,
        begin: impl FnOnce(&Survey) -> Result<(), E>,
    ) -> Result<Recovered, E> {
        let through = anchor.through();
        let (found, orphans) = self.find()?;
        let tables = self.flushed()?;
        let is_left = |found: &Found| self.is_left(&found.memtable, &tables);
        let (mut found, gone): (Vec<_>, Vec<_>) = found.into_iter().partition(is_left);
        if !twin!(AnchorNotFlushed) {
            anchor.flush(self.region());
        }
        self.region().fence();
        let mut evidence = Evidence::default();
        let ended = found.iter().filter_map(|found| found.end).map(|(_, last)| last);
        ended.chain([through]).for_each(|known| evidence.known(known));
        for found in &mut found {
            self.look(found, through, &mut evidence)?;
        }
        let numbers = found.iter().flat_map(|found| {
            let last = found.trail.last().map(|chunk| chunk.fact.last());
            last.into_iter().chain([found.memtable.number()])
        });
        let known = tables.iter().flat_map(|(created, flushed)| [*created, *flushed]);
        let highest = numbers.chain(known).max().unwrap_or_default();
        let cut = evidence.cut(through).map_err(ChainError::from)?;
        let left_open = found.iter().filter(|found| found.end.is_none()).count();
        let survey = Survey { highest: highest.max(cut), left_open };
        begin(&survey)?;
        self.clock.pass(survey.highest);
        found.iter_mut().for_each(|found| found.trail.cut(cut));
        self.end_open(&found);
        // The oldest first, so that no older version of a key is left without a newer one.
        gone.into_iter().for_each(|found| self.release_again(&found.memtable));
        orphans.into_iter().for_each(|zone| self.space.release_zone(zone));
        let memtables = found.into_iter().filter_map(|found| self.tidied(found)).collect();
        Ok(Recovered { cut, memtables, survey })
    }

    /// The memtables of a pool that was closed, without a look at their chunks, which all count. `None` if
    /// one has not ended, or a crash has left something to do.
    ///
    /// # Errors
    /// Damage of objects and headers.
    pub fn closed(&self, anchor: &Anchor) -> Result<Option<Recovered>, ChainError> {
        let (found, orphans) = self.find()?;
        let tables = self.flushed()?;
        let known = tables.iter().flat_map(|(created, flushed)| [*created, *flushed]);
        let (mut cut, mut highest) = (anchor.through(), known.max().unwrap_or_default());
        let mut memtables = Vec::with_capacity(found.len());
        for Found { memtable, end, .. } in found {
            let Some((end, last)) = end.filter(|_| self.is_left(&memtable, &tables)) else { return Ok(None) };
            (cut, highest) = (cut.max(last), highest.max(memtable.number()));
            memtable.note_end(end);
            memtables.push(RecoveredMemtable { memtable, end });
        }
        let survey = Survey { highest: highest.max(cut), left_open: 0 };
        // One copy may be damaged, and the other one older.
        Ok((orphans.is_empty() && anchor.agrees()).then_some(Recovered { cut, memtables, survey }))
    }

    /// The subtables by the numbers that they were created with, each with the number up to which its
    /// memtables are on its levels.
    fn flushed(&self) -> Result<BTreeMap<u64, u64>, ChainError> {
        Ok(self.subtables()?.into_iter().map(|table| (table.created, table.flushed)).collect())
    }

    /// Whether a memtable counts: its subtable has not been dropped, and it is not on the levels of that.
    fn is_left(&self, memtable: &Memtable, tables: &BTreeMap<u64, u64>) -> bool {
        let number = match twin!(FlushedByObject) {
            false => memtable.number(),
            true => u64::from(memtable.object.0) + 1,
        };
        tables.get(&memtable.subtable()).is_some_and(|flushed| number > *flushed)
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
            let is_any = twin!(LivesIgnored);
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
            if let Some(((_, zone), _)) = own.clone().find(|(((_, slot), _), nth)| slot != nth) {
                let offset = self.space.zone_offset(*zone);
                return Err(ChainError::Damaged { what: "the zone before one of a memtable", offset });
            }
            let own = own.map(|((_, zone), _)| *zone).collect();
            let memtable = self.memtable(object, bytes.subtable(), bytes.life(), own);
            let end = bytes.end(&self.certifier, memtable.key).map_err(|()| ChainError::Damaged {
                what: "the end mark of a memtable",
                offset: self.object_offset(object),
            })?;
            found.push(Found { memtable, end, trail: Trail::default() });
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
        if !twin!(FoundNotFlushed) {
            self.region().flush(at, len);
        }
        self.read_unflushed(at, len)
    }

    /// Reads a structure.
    pub(super) fn read_unflushed<T: FromBytes>(&self, at: u64, len: u64) -> T {
        let mut bytes = vec![0; len as usize];
        let there = len.min(self.region().len().saturating_sub(at));
        self.region().read_racing(at, &mut bytes[..there as usize]);
        T::read_from_bytes(&bytes).expect("as long as the structure")
    }

    /// Walks over a memtable.
    fn look(&mut self, found: &mut Found, through: u64, evidence: &mut Evidence) -> Result<(), ChainError> {
        let Found { memtable, end, trail } = found;
        let end = end.map(|(place, _)| place);
        let note = |chunk: &ChunkFound, _, _| {
            evidence.add(chunk.fact, chunk.floor, through);
            trail.add(chunk, evidence.floor());
            Ok(())
        };
        // SAFETY: writers share the heap, and this one is borrowed for its caller alone.
        let reached = unsafe { self.walk(memtable, end, note) }?;
        if end.is_none() {
            // SAFETY: as above.
            unsafe { self.floors_behind(memtable, reached, |floor| evidence.known(floor)) };
        }
        if end.is_some() && reached != end {
            let offset = self.object_offset(memtable.object);
            return Err(ChainError::Damaged { what: MISSING, offset });
        }
        Ok(())
    }

    /// Step 3, and the ends of step 4.
    fn end_open(&self, found: &[Found]) {
        let open = || found.iter().filter(|found| found.end.is_none());
        if open().next().is_none() || twin!(NotEnded) {
            return;
        }
        self.clock.begin(&self.space);
        for Found { memtable, trail, .. } in open().filter(|_| !twin!(ChunksNotFlushed)) {
            for chunk in &trail.recent {
                self.region().flush(self.offset_of(memtable, chunk.place), chunk.len);
            }
        }
        self.region().fence();
        for Found { memtable, trail, .. } in open() {
            if let Some(chunk) = trail.last() {
                self.mark_end(memtable, chunk.end(), chunk.fact.last());
            }
        }
        self.region().fence();
    }

    /// Releases a memtable that a crash has left.
    fn release_again(&self, memtable: &Memtable) {
        self.clock.begin(&self.space);
        self.release(memtable);
    }

    /// Releases a memtable of which nothing counts. Of another one, it gives back the zones behind the end.
    fn tidied(&self, found: Found) -> Option<RecoveredMemtable> {
        let Found { memtable, end, trail } = found;
        let end = end.map(|(place, _)| place).or(trail.last().map(ChunkFound::end));
        let Some(end) = end else {
            self.release_again(&memtable);
            return None;
        };
        self.trim(&memtable, end);
        memtable.note_end(end);
        Some(RecoveredMemtable { memtable, end })
    }

    fn offset_of(&self, memtable: &Memtable, place: u32) -> u64 {
        let (at, zone_size) = (u64::from(place) * LINE, self.space.zone_size());
        self.space.zone_offset(memtable.zones()[(at / zone_size) as usize]) + at % zone_size
    }
}
