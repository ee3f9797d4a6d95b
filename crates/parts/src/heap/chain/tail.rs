//! Where the next chunk of a subtable goes: the part of a grant that is serial. Only words in DRAM change
//! here, and nothing can fail.

use super::memtable::{Memtable, NewMemtable, Spare};
use crate::record::LifeKey;
use crate::space::ZoneId;
use quipu_medium::LINE;
use std::sync::Arc;

/// The end of the active memtable of a subtable, with the zone or memtable that is ready for when it is full.
pub struct Tail {
    active: Arc<Memtable>,
    zone: ZoneId,
    slot: u32,
    /// Offset of the next chunk in its zone.
    next: u64,
    /// Place of the last chunk; 0 for none.
    prev: u32,
    /// Last number of the item of the last chunk; 0 for none.
    last: u64,
    ready: Ready,
}

/// The room that is ready for when a zone is full.
#[derive(Default)]
enum Ready {
    #[default]
    Nothing,
    /// The memtable's next zone.
    Zone(Spare),
    /// Another memtable; the active one has all its zones.
    Memtable(NewMemtable),
}

/// The next thing that a tail needs.
#[derive(Clone)]
pub enum Need {
    /// A zone for this slot of the active memtable.
    Zone(Arc<Memtable>, u32),
    /// Another memtable of this subtable.
    Memtable(u64),
}

/// The place of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Its zone.
    pub zone: ZoneId,
    /// Its offset there.
    pub offset: u64,
    /// The number of its memtable.
    pub memtable: u64,
    pub(super) life: LifeKey,
    pub(super) place: u32,
    pub(super) prev: u32,
}

/// A memtable that is full: it is ended once all of it is visible.
#[derive(Clone)]
pub struct Full {
    /// The memtable.
    pub memtable: Arc<Memtable>,
    /// Last number of the item of its last chunk.
    pub last: u64,
    pub(super) end: u32,
}

impl Tail {
    /// The beginning of a memtable.
    pub fn new(memtable: NewMemtable) -> Tail {
        let NewMemtable { memtable: active, first } = memtable;
        let (zone, next) = (first.zone, super::FIRST_CHUNK);
        Tail { active, zone, slot: 0, next, prev: 0, last: 0, ready: Ready::Nothing }
    }

    /// Whether there is a place for a chunk of so many bytes, at most those of a zone.
    #[inline]
    pub fn fits(&self, len: u64) -> bool {
        debug_assert!(len.is_multiple_of(LINE) && len <= self.active.longest_chunk(), "refused before");
        self.next + len <= self.active.zone_size() || self.is_ready()
    }

    /// Bytes behind the last chunk in its zone.
    pub fn left(&self) -> u64 {
        self.active.zone_size() - self.next
    }

    /// Whether something is ready for when the zone is full.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !matches!(self.ready, Ready::Nothing)
    }

    /// The thing that should be made ready, if none is.
    pub fn needs(&self) -> Option<Need> {
        match self.ready {
            Ready::Nothing if self.slot + 1 < self.active.slots() => {
                Some(Need::Zone(self.active.clone(), self.slot + 1))
            }
            Ready::Nothing => Some(Need::Memtable(self.active.subtable())),
            _ => None,
        }
    }

    /// Takes the zone that was [needed](Tail::needs).
    pub fn add_zone(&mut self, spare: Spare) {
        debug_assert!(spare.slot == self.slot + 1 && Arc::ptr_eq(&spare.memtable, &self.active));
        self.ready = Ready::Zone(spare);
    }

    /// Takes the memtable that was [needed](Tail::needs).
    pub fn add_memtable(&mut self, standby: NewMemtable) {
        self.ready = Ready::Memtable(standby);
    }

    /// The place of a chunk of so many bytes, which [fits](Tail::fits), of an item up to `last`; and the
    /// memtable that is full, if it is the first of another one.
    #[inline]
    pub fn place(&mut self, len: u64, last: u64) -> (Spot, Option<Full>) {
        let full = if self.next + len > self.active.zone_size() { self.advance() } else { None };
        let place = self.active.place(self.slot, self.next);
        let (zone, offset, life, prev) = (self.zone, self.next, self.active.key, self.prev);
        let memtable = self.active.number();
        (self.prev, self.last) = (place, last);
        self.next += len;
        (Spot { zone, offset, memtable, life, place, prev }, full)
    }

    /// Goes on to the next zone, or to the next memtable.
    #[cold]
    fn advance(&mut self) -> Option<Full> {
        match std::mem::take(&mut self.ready) {
            Ready::Nothing => unreachable!("the caller has asked whether it fits"),
            Ready::Zone(spare) => {
                self.active.add_zone(spare.zone);
                (self.zone, self.slot, self.next) = (spare.zone, spare.slot, super::FIRST_CHUNK);
                None
            }
            Ready::Memtable(standby) => {
                let full = std::mem::replace(self, Tail::new(standby));
                Some(full.close().0)
            }
        }
    }

    /// The last number of the item of the last chunk; 0 for none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether its memtable has a chunk.
    pub fn has_chunks(&self) -> bool {
        self.prev != 0
    }

    /// The zone that is ready, if one is.
    pub fn spare_zone(&self) -> Option<ZoneId> {
        match &self.ready {
            Ready::Zone(spare) => Some(spare.zone),
            Ready::Nothing | Ready::Memtable(_) => None,
        }
    }

    /// The place behind the last chunk of a memtable, if that is the active one and has a chunk.
    pub fn end_of(&self, memtable: &Arc<Memtable>) -> Option<u32> {
        let is_it = Arc::ptr_eq(&self.active, memtable) && self.prev != 0;
        is_it.then(|| self.active.place(self.slot, self.next))
    }

    /// Ends the appending to the active memtable, and returns another one that was ready. A zone that was
    /// ready is the memtable's, behind its end.
    pub fn close(self) -> (Full, Option<NewMemtable>) {
        let end = self.active.place(self.slot, self.next);
        let standby = match self.ready {
            Ready::Memtable(standby) => Some(standby),
            Ready::Zone(spare) => {
                self.active.add_zone(spare.zone);
                None
            }
            Ready::Nothing => None,
        };
        (Full { memtable: self.active, last: self.last, end }, standby)
    }
}
