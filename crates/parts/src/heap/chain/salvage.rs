//! Reading a damaged pool, which is not changed: chunks are looked for line by line where their order breaks
//! off.
//!
//! A chunk that proves itself counts if its item was durable once, or has all its pieces. So an item that was
//! never acknowledged is there wholly or not at all, and one that lost a piece to damage is there in part.

use super::cut::Evidence;
use super::layout::{FIRST_CHUNK, MEMTABLE_LEN, MemtableObject, MemtableZone};
use super::memtable::ChainHeap;
use super::subtable::Subtable;
use super::view::{RecordFound, parse};
use super::walk::{ChainError, ChunkFound, MOST_EFFORT};
use crate::heap::Reference;
use crate::record::LifeKey;
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

/// The zones of a memtable by their slots, with the key of its checks.
struct Remains {
    key: LifeKey,
    header: MemtableZone,
    zones: BTreeMap<u32, ZoneId>,
}

/// A chunk that may count, with its place in the pool.
struct Pending {
    subtable: u64,
    chunk: ChunkFound,
    zone: ZoneId,
    offset: u64,
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
        let (mut holes, mut pending) = (Vec::new(), Vec::new());
        let mut evidence = Evidence::default();
        evidence.known(through.unwrap_or_default());
        for ((object, _), remains) in self.remains(&mut holes) {
            let Some((subtable, end)) = self.owner_of(object, &remains, tables, &mut holes) else { continue };
            end.iter().for_each(|(_, last)| evidence.known(*last));
            let note = |found: Pending| {
                evidence.add(found.chunk.fact, found.chunk.floor, through.unwrap_or_default());
                pending.push(found);
            };
            // SAFETY: as the caller promises.
            unsafe { self.search(&remains, (subtable, end.map(|(place, _)| place)), &mut holes, note) }?;
            let floor = evidence.floor();
            for durable in pending.extract_if(.., |found| found.chunk.fact.last() <= floor) {
                // SAFETY: as the caller promises.
                unsafe { self.show(&durable, &mut each) }?;
            }
        }
        let floor = evidence.floor();
        if let Some(Err(missing)) = through.map(|through| evidence.cut(through, None)) {
            holes.push(Hole { what: missing.to_string(), subtable: None, offset: 0, len: 0 });
        }
        pending.sort_unstable_by_key(|found| (found.chunk.fact.first, found.chunk.fact.piece));
        for item in pending.chunk_by(|one, next| one.chunk.fact.first == next.chunk.fact.first) {
            let is_whole = item.len() == usize::from(item[0].chunk.fact.pieces);
            for found in item.iter().filter(|found| is_whole || found.chunk.fact.last() <= floor) {
                // SAFETY: as the caller promises.
                unsafe { self.show(found, &mut each) }?;
            }
        }
        Ok(holes)
    }

    /// The subtables whose objects prove themselves. If others do not, a subtable that memtables name and no
    /// object does is given the name that `named` has for its number.
    pub fn legible_subtables(&self, named: impl Fn(&[Subtable], u64) -> String) -> Vec<Subtable> {
        let described: Vec<_> = self.described_subtables().collect();
        let is_damaged = described.iter().any(Result::is_err);
        let mut tables: Vec<Subtable> = described.into_iter().flatten().collect();
        let read = |object| {
            let bytes: MemtableObject = self.read_unflushed(self.object_offset(object), MEMTABLE_LEN);
            bytes.is_valid(&self.certifier, object).then(|| bytes.subtable())
        };
        let mut numbers: Vec<u64> = self.pool().committed().into_iter().filter_map(read).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers.into_iter().filter(|_| is_damaged) {
            if tables.iter().all(|table| table.created != number) {
                let name = named(&tables, number);
                tables.push(Subtable { created: number, name, object: ObjectId(0) });
            }
        }
        tables.sort_by_key(|table| table.created);
        tables
    }

    /// The zones of memtables by their objects and lives.
    fn remains(&self, holes: &mut Vec<Hole>) -> BTreeMap<(ObjectId, u64), Remains> {
        let mut remains = BTreeMap::new();
        for zone in self.space.committed_zones() {
            let offset = self.space.zone_offset(zone);
            let header: MemtableZone = self.read_unflushed(offset, FIRST_CHUNK);
            if !header.is_valid(&self.certifier, zone) {
                let what = "the header of a memtable's zone".into();
                holes.push(Hole { what, subtable: None, offset, len: self.space.zone_size() });
                continue;
            }
            let ((owner, slot), key) = (header.owner(), header.life_key(&self.certifier));
            let new = || Remains { key, header, zones: BTreeMap::new() };
            remains.entry((owner, header.life())).or_insert_with(new).zones.insert(slot, zone);
        }
        remains
    }

    /// The subtable of a memtable, and its end mark; `None` if it was released, or nothing tells its
    /// subtable.
    fn owner_of(
        &self,
        object: ObjectId,
        remains: &Remains,
        tables: &[Subtable],
        holes: &mut Vec<Hole>,
    ) -> Option<(u64, Option<(u32, u64)>)> {
        let offset = self.pool().object_offset(object).filter(|_| self.pool().check(object))?;
        let bytes: MemtableObject = self.read_unflushed(offset, MEMTABLE_LEN);
        let mut damaged = |what: &str, subtable| {
            holes.push(Hole { what: what.into(), subtable, offset, len: MEMTABLE_LEN });
        };
        if !bytes.is_valid(&self.certifier, object) {
            damaged("the object of a memtable", None);
            // With one table, there is no doubt.
            return <&[Subtable; 1]>::try_from(tables).ok().map(|[only]| (only.created, None));
        }
        let is_known = tables.iter().any(|table| table.created == bytes.subtable());
        if !is_known || !remains.header.is_of(&bytes.life()) {
            return None;
        }
        let end = bytes.end(&self.certifier, remains.key).unwrap_or_else(|()| {
            damaged("the end mark of a memtable", Some(bytes.subtable()));
            None
        });
        Some((bytes.subtable(), end))
    }

    /// Looks for the chunks of a memtable up to its end.
    ///
    /// # Safety
    /// Nobody writes to it.
    unsafe fn search(
        &self,
        remains: &Remains,
        (subtable, end): (u64, Option<u32>),
        holes: &mut Vec<Hole>,
        mut note: impl FnMut(Pending),
    ) -> Result<(), ChainError> {
        let (zone_size, mut scratch) = (self.space.zone_size(), Vec::new());
        // The place of the last chunk found, and the one where the next is expected.
        let (mut last, mut expected) = (0, (FIRST_CHUNK / LINE) as u32);
        let mut lost_from = |expected: u32| {
            let (slot, offset) =
                (u64::from(expected) * LINE / zone_size, u64::from(expected) * LINE % zone_size);
            let zone = remains.zones.get(&(slot as u32)).copied();
            let start = zone.map_or(0, |zone| self.space.zone_offset(zone) + offset);
            let what = "a chunk of a memtable".into();
            holes.push(Hole { what, subtable: Some(subtable), offset: start, len: zone_size - offset });
        };
        for (slot, zone) in &remains.zones {
            let (start, first) = (self.space.zone_offset(*zone), u64::from(*slot) * zone_size);
            let (mut offset, mut effort) = (FIRST_CHUNK, MOST_EFFORT * zone_size);
            while offset < zone_size {
                let (place, room) = (((first + offset) / LINE) as u32, zone_size - offset);
                if end.is_some_and(|end| place >= end) {
                    break;
                }
                // SAFETY: as the caller promises.
                let claimed = unsafe { self.claimed_len(start + offset, room) };
                let found = match claimed.filter(|len| *len <= effort) {
                    Some(len) => {
                        effort -= len;
                        // SAFETY: as the caller promises.
                        unsafe { self.prove(remains.key, place, start + offset, room, &mut scratch) }?
                    }
                    None => None,
                };
                let Some(chunk) = found else {
                    offset += LINE;
                    continue;
                };
                if chunk.prev != last {
                    lost_from(expected);
                }
                (last, expected) = (place, chunk.end());
                note(Pending { subtable, chunk, zone: *zone, offset });
                offset += chunk.len;
            }
        }
        if end.is_some_and(|end| expected != end) {
            lost_from(expected);
        }
        Ok(())
    }

    /// Shows the records of a chunk.
    ///
    /// # Safety
    /// Nobody writes to it.
    unsafe fn show<'m>(
        &'m self,
        found: &Pending,
        each: &mut impl FnMut(u64, RecordFound<'m>),
    ) -> Result<(), ChainError> {
        let Pending { subtable, chunk, zone, offset } = found;
        // SAFETY: as the caller promises; the chunk has been proved.
        unsafe { self.records_of(chunk, *zone, *offset, |record| each(*subtable, record)) }
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
