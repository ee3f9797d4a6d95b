//! Reading a damaged pool, which is not changed: chunks are looked for line by line where their order breaks
//! off.
//!
//! A chunk that proves itself counts if its item was durable once, or has all its pieces. So an item that was
//! never acknowledged is there wholly or not at all, and one that lost a piece to damage is there in part.
//! Behind the end of a memtable there may be chunks that an earlier recovery has cut off. If the end mark is
//! damaged, their numbers give them away: they lie in a gap before an item, which no item uses.

use super::cut::{Evidence, Fact};
use super::layout::{FIRST_CHUNK, MEMTABLE_LEN, MemtableObject, MemtableZone};
use super::memtable::ChainHeap;
use super::subtable::Subtable;
use super::view::{RecordFound, parse};
use super::walk::{ChainError, ChunkFound, MOST_EFFORT};
use crate::heap::Reference;
use crate::space::{ObjectId, ZoneId};
use quipu_medium::LINE;
use std::collections::BTreeMap;

/// Bytes that do not prove themselves and should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Their name.
    pub what: String,
    /// The subtable whose records stood there, as far as that is known.
    pub subtable: Option<u64>,
    /// Where they begin.
    pub offset: u64,
    /// How many they are; 0 if that is not known.
    pub len: u64,
}

/// The zones of a memtable by their slots, with the header of one of them.
struct Remains {
    header: MemtableZone,
    zones: BTreeMap<u32, ZoneId>,
    subtable: u64,
    /// The end mark, if it is legible: the place, and the last number.
    end: Option<(u32, u64)>,
}

impl ChainHeap {
    /// Shows the records that prove themselves and count, each with the number of its subtable, and tells the
    /// damage. `tables` are the subtables known; `through` is the number of the anchor, if that is legible.
    ///
    /// # Errors
    /// [`ChainError::Unknown`].
    ///
    /// # Safety
    /// Nobody writes to the pool.
    pub unsafe fn salvage<'m>(
        &'m self,
        tables: &[Subtable],
        through: Option<u64>,
        mut each: impl FnMut(u64, RecordFound<'m>),
    ) -> Result<Vec<Hole>, ChainError> {
        let mut holes = Vec::new();
        let mut memtables = self.remains(&mut holes);
        memtables.retain_mut(|remains| self.finds_owner(remains, tables, &mut holes));
        // First all is looked at, and then shown.
        let (mut evidence, mut gaps, mut pieces) = (Evidence::default(), Vec::new(), BTreeMap::new());
        evidence.known(through.unwrap_or_default());
        for remains in &memtables {
            remains.end.iter().for_each(|(_, last)| evidence.known(*last));
            let mut lost = |hole| holes.push(hole);
            let note = |chunk: &ChunkFound, _, _| {
                let Fact { first, before, .. } = chunk.fact;
                if chunk.fact.piece == 0 && first - before > 1 {
                    gaps.push((before, first));
                }
                evidence.add(chunk.fact, chunk.floor, through.unwrap_or_default());
                if chunk.fact.last() > evidence.floor() {
                    *pieces.entry(first).or_insert(0u64) += 1;
                }
                Ok(())
            };
            // SAFETY: as the caller promises.
            unsafe { self.search(remains, &mut lost, note) }?;
            let floor = evidence.floor();
            pieces = pieces.split_off(&floor.saturating_add(1));
        }
        gaps.sort_unstable();
        let floor = evidence.floor();
        if let Some(Err(missing)) = through.map(|through| evidence.cut(through)) {
            holes.push(Hole { what: missing.to_string(), subtable: None, offset: 0, len: 0 });
        }
        let counts = |fact: &Fact| {
            // Gaps do not overlap, so only the last one that begins before may have it.
            let gap = gaps[..gaps.partition_point(|(before, _)| *before < fact.first)].last();
            let is_cut_off = gap.is_some_and(|(_, next)| fact.first < *next);
            let is_whole = pieces.get(&fact.first) == Some(&fact.pieces.into());
            !is_cut_off && (fact.last() <= floor || is_whole)
        };
        for remains in &memtables {
            let show = |chunk: &ChunkFound, zone: ZoneId, offset: u64| {
                if !counts(&chunk.fact) {
                    return Ok(());
                }
                let each = |record| each(remains.subtable, record);
                // SAFETY: as the caller promises; the chunk has been proved.
                match unsafe { self.records_of(chunk, zone, offset, each) } {
                    Err(ChainError::Damaged { .. }) => Ok(()),
                    shown => shown,
                }
            };
            // SAFETY: as the caller promises.
            unsafe { self.search(remains, &mut |_| (), show) }?;
        }
        Ok(holes)
    }

    /// The subtables whose objects prove themselves. If others do not, one of these `known` numbers, or one
    /// that memtables name, is given the name that `named` has for its number.
    pub fn legible_subtables(
        &self,
        known: &[u64],
        named: impl Fn(&[Subtable], u64) -> String,
    ) -> Vec<Subtable> {
        let described: Vec<_> = self.described_subtables().collect();
        let is_damaged = described.iter().any(Result::is_err);
        let mut tables: Vec<Subtable> = described.into_iter().flatten().collect();
        let read = |object| {
            let bytes: MemtableObject = self.read_unflushed(self.object_offset(object), MEMTABLE_LEN);
            bytes.is_valid(&self.certifier, object).then(|| bytes.subtable())
        };
        let of_memtables = self.pool().committed().into_iter().filter_map(read);
        let mut numbers: Vec<u64> = known.iter().copied().chain(of_memtables).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers.into_iter().filter(|_| is_damaged) {
            if tables.iter().all(|table| table.created != number) {
                let name = named(&tables, number);
                tables.push(Subtable { created: number, name, flushed: 0, object: ObjectId(0) });
            }
        }
        tables.sort_by_key(|table| table.created);
        tables
    }

    /// The zones of memtables, by their objects and lives.
    fn remains(&self, holes: &mut Vec<Hole>) -> Vec<Remains> {
        let mut remains = BTreeMap::new();
        for zone in self.space.committed_zones() {
            let offset = self.space.zone_offset(zone);
            let header: MemtableZone = self.read_unflushed(offset, FIRST_CHUNK);
            if offset + self.space.zone_size() > self.region().len() {
                let what = "a memtable's zone that a truncated pool ends in, or before".into();
                holes.push(Hole { what, subtable: None, offset, len: self.space.zone_size() });
                continue;
            }
            if !header.is_valid(&self.certifier, zone) {
                let what = "the header of a memtable's zone".into();
                holes.push(Hole { what, subtable: None, offset, len: self.space.zone_size() });
                continue;
            }
            let (owner, slot) = header.owner();
            let new = || Remains { header, zones: BTreeMap::new(), subtable: 0, end: None };
            remains.entry((owner, header.life())).or_insert_with(new).zones.insert(slot, zone);
        }
        remains.into_values().collect()
    }

    /// Finds the subtable of a memtable, and its end mark. `false` if it was released, or nothing tells its
    /// subtable.
    fn finds_owner(&self, remains: &mut Remains, tables: &[Subtable], holes: &mut Vec<Hole>) -> bool {
        let (object, _) = remains.header.owner();
        let Some(offset) = self.pool().object_offset(object).filter(|_| self.pool().check(object)) else {
            return false;
        };
        let bytes: MemtableObject = self.read_unflushed(offset, MEMTABLE_LEN);
        let mut damaged = |what: &str, subtable| {
            holes.push(Hole { what: what.into(), subtable, offset, len: MEMTABLE_LEN });
        };
        if !bytes.is_valid(&self.certifier, object) {
            damaged("the object of a memtable", None);
            // It is the only table's, unless a table was dropped just before the end.
            let [only] = tables else { return false };
            remains.subtable = only.created;
            return true;
        }
        // One on the levels may have been released in part.
        let counts =
            |table: &Subtable| table.created == bytes.subtable() && table.flushed < bytes.life().number;
        let is_known = tables.iter().any(counts);
        if !is_known || !remains.header.is_of(&bytes.life()) {
            return false;
        }
        remains.subtable = bytes.subtable();
        remains.end =
            bytes.end(&self.certifier, remains.header.life_key(&self.certifier)).unwrap_or_else(|()| {
                damaged("the end mark of a memtable", Some(bytes.subtable()));
                None
            });
        true
    }

    /// Looks for the chunks of a memtable up to its end, and tells what is missing between them.
    ///
    /// # Safety
    /// Nobody writes to it.
    unsafe fn search(
        &self,
        remains: &Remains,
        lost: &mut impl FnMut(Hole),
        mut each: impl FnMut(&ChunkFound, ZoneId, u64) -> Result<(), ChainError>,
    ) -> Result<(), ChainError> {
        let Remains { header, zones, subtable, end } = remains;
        let (zone_size, key, mut scratch) =
            (self.space.zone_size(), header.life_key(&self.certifier), Vec::new());
        let end = end.map(|(place, _)| place);
        // The place of the last chunk found, and the one where the next is expected.
        let (mut last, mut expected) = (0, (FIRST_CHUNK / LINE) as u32);
        let mut lost_between = |expected: u32, found: u32| {
            let (mut at, end) = (u64::from(expected) * LINE, u64::from(found.max(expected)) * LINE);
            loop {
                let len = (zone_size - at % zone_size).min(end - at);
                let (what, subtable) = ("a chunk of a memtable".into(), Some(*subtable));
                lost(match zones.get(&((at / zone_size) as u32)) {
                    Some(zone) => {
                        Hole { what, subtable, offset: self.space.zone_offset(*zone) + at % zone_size, len }
                    }
                    None => Hole { what, subtable, offset: 0, len: 0 },
                });
                // The end of a zone may be empty, and the chunk be in the next one.
                at += len;
                if at + FIRST_CHUNK >= end {
                    break;
                }
                at += FIRST_CHUNK;
            }
        };
        for (slot, zone) in zones {
            let (start, first) = (self.space.zone_offset(*zone), u64::from(*slot) * zone_size);
            let (mut offset, mut effort) = (FIRST_CHUNK, MOST_EFFORT * zone_size);
            while offset < zone_size {
                let (place, room) = (((first + offset) / LINE) as u32, zone_size - offset);
                if end.is_some_and(|end| place >= end) {
                    break;
                }
                // SAFETY: as the caller promises.
                let claimed = unsafe { self.claimed_len(start + offset, room) };
                let Some(len) = claimed.filter(|len| *len <= effort) else {
                    offset += LINE;
                    continue;
                };
                // SAFETY: as the caller promises.
                let chunk = match unsafe { self.prove(key, place, start + offset, room, &mut scratch) } {
                    Ok(Some(chunk)) => chunk,
                    Err(error @ ChainError::Unknown { .. }) => return Err(error),
                    _ => {
                        effort -= len;
                        offset += LINE;
                        continue;
                    }
                };
                if chunk.prev != last {
                    lost_between(expected, place);
                }
                (last, expected) = (place, chunk.end());
                each(&chunk, *zone, offset)?;
                offset += chunk.len;
            }
        }
        if let Some(end) = end.filter(|end| *end != expected) {
            lost_between(expected, end);
        }
        Ok(())
    }

    /// Shows what looks like records of a hole: a known kind, lengths that fit, and a number below `ceiling`.
    /// Few other bytes do.
    ///
    /// # Safety
    /// Nobody writes to it.
    pub unsafe fn legible(&self, hole: &Hole, ceiling: u64, mut each: impl FnMut(RecordFound<'_>)) {
        // SAFETY: as the caller promises.
        let Some(bytes) = (unsafe { self.region().bytes_in_pieces(hole.offset, hole.len) }) else { return };
        let mut next = 0;
        while next < bytes.len() {
            // References lead nowhere here.
            let record = parse(&bytes[next..], Reference::from_word(0), hole.offset + next as u64).ok();
            let record =
                record.filter(|record| (1..ceiling).contains(&record.sequence) && !record.key.is_empty());
            next += record.map_or(size_of::<u64>(), |record| record.len as usize);
            record.into_iter().for_each(&mut each);
        }
    }
}
