//! Memtables: an object of the pool each, and zones that name it. Opening them, giving them zones, ending
//! them, releasing them.
//!
//! Order of persistence: the object's first line is durable before the object is committed, and a zone's
//! header before the zone is. So committed ones prove themselves, and one that does not is damage. A zone
//! whose object has no such life any more is released at open.

use super::chunk::{Chunk, Piece};
use super::layout::{END_AT, FIRST_CHUNK, LAST_AT, Life, MemtableObject, MemtableZone, end_mark};
use super::tail::Spot;
use super::usage::Usage;
use super::walk::ChainError;
use crate::commit::ring::Place;
use crate::heap::{Clock, Reference};
use crate::record::{Certifier, LifeKey};
use crate::space::{ObjectId, ObjectPool, Space, ZoneId};
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use quipu_medium::{LINE, Node, Region};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The object pools of a chain, by their identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPools {
    /// Memtables, of [`MEMTABLE_LEN`](super::MEMTABLE_LEN) bytes.
    pub memtables: u32,
    /// Subtables, of [`SUBTABLE_LEN`](super::SUBTABLE_LEN) bytes.
    pub subtables: u32,
}

/// The zones and objects of all memtables.
pub struct ChainHeap {
    pub(super) space: Arc<Space>,
    pub(super) certifier: Certifier,
    pub(super) clock: Clock,
    pub(super) pools: ChainPools,
    /// Zones of a memtable.
    slots: u32,
    usage: Usage,
    /// Zones that were taken, but not to move records to.
    takes: AtomicU64,
}

/// Where zones for writes come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Supply {
    /// The node that they are to be on.
    pub node: Option<Node>,
    /// How many zones of the pool are left free: none if records are to be moved there.
    pub leave: u32,
}

/// A memtable in use.
pub struct Memtable {
    pub(super) object: ObjectId,
    pub(super) life: Life,
    pub(super) key: LifeKey,
    subtable: u64,
    slots: u32,
    zone_size: u64,
    zones: SpinLock<Vec<ZoneId>>,
    /// Where it ends; 0 as long as it has not.
    end: AtomicU32,
    /// Whether it is released: 1, or 0.
    released: AtomicU32,
}

/// A memtable without a chunk, with its first zone.
pub struct NewMemtable {
    /// The memtable.
    pub memtable: Arc<Memtable>,
    pub(super) first: Spare,
}

/// A zone that is ready for a memtable.
pub struct Spare {
    pub(super) memtable: Arc<Memtable>,
    pub(super) slot: u32,
    pub(super) zone: ZoneId,
}

impl Memtable {
    /// Its number: those of a subtable rise, and none is used twice.
    pub fn number(&self) -> u64 {
        self.life.number
    }

    /// Its subtable.
    pub fn subtable(&self) -> u64 {
        self.subtable
    }

    /// Its zones, in the order of its chunks.
    pub fn zones(&self) -> Vec<ZoneId> {
        self.zones.lock().clone()
    }

    /// Where it ends, once it has: nobody appends to it any more.
    pub fn end(&self) -> Option<u32> {
        Some(self.end.load(Ordering::Acquire)).filter(|end| *end != 0)
    }

    pub(super) fn note_end(&self, end: u32) {
        self.end.store(end, Ordering::Release);
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    #[inline]
    pub(super) fn zone_size(&self) -> u64 {
        self.zone_size
    }

    /// Bytes of the longest chunk.
    #[inline]
    pub fn longest_chunk(&self) -> u64 {
        self.zone_size - FIRST_CHUNK
    }

    /// A place in the memtable, in units of a line.
    #[inline]
    pub(super) fn place(&self, slot: u32, offset: u64) -> u32 {
        ((u64::from(slot) * self.zone_size + offset) / LINE) as u32
    }

    pub(super) fn add_zone(&self, zone: ZoneId) {
        self.zones.lock().push(zone);
    }

    /// Takes away the zones behind the first `slots`, the last one first.
    pub(super) fn give_back(&self, slots: usize) -> Vec<ZoneId> {
        let mut zones = self.zones.lock();
        let kept = slots.min(zones.len());
        zones.drain(kept..).rev().collect()
    }
}

impl ChainHeap {
    /// The one heap of a pool with these object pools, for memtables of `slots` zones.
    pub fn new(
        space: Arc<Space>,
        certifier: Certifier,
        clock: Clock,
        pools: ChainPools,
        slots: u32,
    ) -> ChainHeap {
        assert!(space.zone_size().is_power_of_two(), "references need a power of two for a zone size");
        let places = u64::from(slots) * space.zone_size() / LINE;
        assert!(places <= u64::from(u32::MAX), "a place has 32 bits");
        let usage = Usage::new(space.zone_count());
        ChainHeap { space, certifier, clock, pools, slots, usage, takes: AtomicU64::new(0) }
    }

    /// The allocator beneath.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// The region beneath.
    #[inline]
    pub fn region(&self) -> &Region {
        self.space.region()
    }

    /// The pool's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The counts of its zones.
    #[inline]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The pool's certifier.
    #[inline]
    pub fn certifier(&self) -> &Certifier {
        &self.certifier
    }

    pub(super) fn pool(&self) -> &ObjectPool {
        self.space.pool(self.pools.memtables).expect("the pool was created with it")
    }

    pub(super) fn object_offset(&self, object: ObjectId) -> u64 {
        self.pool().object_offset(object).expect("an object of this pool")
    }

    /// Bytes of the longest chunk.
    pub fn longest_chunk(&self) -> u64 {
        self.space.zone_size() - FIRST_CHUNK
    }

    /// Refuses a chunk that is longer than a zone.
    #[inline]
    pub(super) fn check_len(&self, len: u64) -> Result<(), ChainError> {
        let limit = self.longest_chunk();
        if len <= limit { Ok(()) } else { Err(ChainError::TooLong { len, limit }) }
    }

    /// A memtable with these zones.
    pub(super) fn memtable(
        &self,
        object: ObjectId,
        subtable: u64,
        life: Life,
        zones: Vec<ZoneId>,
    ) -> Memtable {
        let key = self.certifier.life_key(life.number, life.nonce);
        let (slots, zone_size) = (self.slots, self.space.zone_size());
        let (zones, [end, released]) = (SpinLock::new(zones), [AtomicU32::new(0), AtomicU32::new(0)]);
        Memtable { object, life, key, subtable, slots, zone_size, zones, end, released }
    }

    /// Counts the zones that were taken, but not to move records to.
    pub fn takes(&self) -> u64 {
        self.takes.load(Ordering::Acquire)
    }

    /// Opens a memtable of a subtable, with its first zone.
    ///
    /// # Errors
    /// [`ChainError::NoMemtable`] or [`ChainError::Full`]; nothing has been taken then.
    pub fn open(&self, subtable: u64, supply: Supply) -> Result<NewMemtable, ChainError> {
        if self.space.free_zones() <= supply.leave {
            return Err(self.full(supply));
        }
        // Drawn first: the draw may begin the run, which must be durable before anything else changes.
        let number = self.clock.draw(&self.space);
        let mut nonce = [0; 8];
        self.region().entropy(&mut nonce);
        let run = self.space.superblock().run.get();
        let life = Life { number, nonce: u64::from_le_bytes(nonce), run };
        let object = self.pool().get()?.ok_or(ChainError::NoMemtable { count: self.pool().count() })?;
        let bytes = MemtableObject::new(&self.certifier, object, subtable, &life);
        let at = self.object_offset(object);
        self.region().write(at, bytes.as_bytes());
        self.region().persist(at, size_of::<MemtableObject>() as u64);
        self.pool().commit(object);
        let memtable = Arc::new(self.memtable(object, subtable, life, Vec::new()));
        match self.prepare_zone(&memtable, 0, supply) {
            Ok(first) => {
                memtable.add_zone(first.zone);
                Ok(NewMemtable { memtable, first })
            }
            Err(error) => {
                self.pool().release(object);
                Err(error)
            }
        }
    }

    fn full(&self, supply: Supply) -> ChainError {
        ChainError::Full(self.space.shortage(self.space.zone_size(), supply.leave))
    }

    /// Makes a zone ready for that slot of a memtable.
    ///
    /// # Errors
    /// [`ChainError::Full`] if zones are short.
    pub fn prepare_zone(
        &self,
        memtable: &Arc<Memtable>,
        slot: u32,
        supply: Supply,
    ) -> Result<Spare, ChainError> {
        let zone = self.space.get_zone(supply.node, supply.leave)?;
        let zone = zone.ok_or_else(|| self.full(supply))?;
        let header = MemtableZone::new(&self.certifier, zone, memtable.object, slot, &memtable.life);
        self.region().write_nt(self.space.zone_offset(zone), header.as_bytes());
        self.region().fence();
        self.space.commit_zone(zone);
        self.takes.fetch_add(u64::from(supply.leave > 0), Ordering::AcqRel);
        Ok(Spare { memtable: memtable.clone(), slot, zone })
    }

    /// Writes a chunk to its place. Durable after the next fence of this thread. Returns the reference of
    /// the chunk; those of its records are so many [bytes further on](Chunk::starts).
    #[inline]
    pub(super) fn write(&self, chunk: &mut Chunk, spot: &Spot, place: &Place, piece: Piece) -> Reference {
        let at = self.space.zone_offset(spot.zone) + spot.offset;
        let lines = chunk.stamp(&self.certifier, spot, place, piece);
        self.region().write_lines_nt(at, lines, 0);
        Reference::new(spot.zone, spot.offset, self.space.zone_size().trailing_zeros())
    }

    /// Ends a memtable that nobody appends to any more, behind its last chunk, whose item's last number is
    /// `last`. All up to that number is durable. The end is, after the next fence of this thread.
    pub(super) fn mark_end(&self, memtable: &Memtable, place: u32, last: u64) {
        let at = self.object_offset(memtable.object);
        self.region().store(at + LAST_AT, last);
        // Words of a line become durable in the order of their stores.
        self.region().store(at + END_AT, end_mark(&self.certifier, memtable.key, place, last));
        self.region().flush(at + END_AT, LINE);
        memtable.note_end(place);
    }

    /// The last number in a memtable that has ended. It is not proved.
    pub fn last_of(&self, memtable: &Memtable) -> u64 {
        self.region().load(self.object_offset(memtable.object) + LAST_AT)
    }

    /// Releases the zones of a memtable behind its end.
    pub(super) fn trim(&self, memtable: &Memtable, end: u32) {
        // The end is behind a line of the last zone that has one, so the place before it is in that zone.
        let slots = u64::from(end).saturating_sub(1) * LINE / self.space.zone_size() + 1;
        memtable.give_back(slots as usize).into_iter().for_each(|zone| self.release_zone(zone));
    }

    /// Releases a memtable: its object, so that it is gone, and then its zones. A second release does
    /// nothing.
    pub fn release(&self, memtable: &Memtable) {
        if memtable.released.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        self.pool().release(memtable.object);
        memtable.zones.lock().drain(..).for_each(|zone| self.release_zone(zone));
    }

    fn release_zone(&self, zone: ZoneId) {
        self.usage.forget(zone);
        self.space.release_zone(zone);
    }
}
