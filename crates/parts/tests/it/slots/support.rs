//! A heap with the simplest index that keeps the rules of the heap's documentation, and its recovery.

use quipu_medium::Region;
use quipu_medium::sim::SimOptions;
use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::heap::slots::{
    Damage, FoundSlot, Location, Neighbor, Offset, Owner, Reclaimed, RecordForm, SlotError, SlotHeap,
    SlotSettings,
};
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::record::Certifier;
use quipu_parts::space::{FormatOptions, FreeListKind, Space};
use quipu_parts::sync::SpinLock;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const CLOCK: ClockSettings = ClockSettings { block: 1000, handful: 4 };

/// Settings of the records that most tests use.
pub fn fixed() -> SlotSettings {
    SlotSettings { form: RecordForm::Fixed { key: 8, value: 504 }, ..variable() }
}

/// Small blocks, of which a small zone holds some.
pub fn variable() -> SlotSettings {
    SlotSettings { pages_per_block: 1, form: RecordForm::Variable, ..SlotSettings::default() }
}

pub fn region(len: u64) -> Region {
    region_of(len, 1)
}

/// A region on so many nodes.
pub fn region_of(len: u64, nodes: u16) -> Region {
    Region::sim(SimOptions { len, nodes, ..SimOptions::default() })
}

pub fn space(region: &Region, zone_size: u64) -> Space {
    let options = FormatOptions {
        zone_size,
        design: 2,
        settings: [0; _],
        pools: Vec::new(),
        free_list: FreeListKind::Volatile,
        secret: [1; 32],
        boot_id: region.boot_id(),
    };
    Space::format(region.clone(), &options).expect("a new pool")
}

/// A new heap in a new pool.
pub fn heap(region: &Region, zone_size: u64, settings: SlotSettings, reserve: usize) -> SlotHeap {
    let space = space(region, zone_size);
    let certifier = Certifier::new(space.superblock().secret());
    let clock = Clock::resume(&space, CLOCK, false);
    let (heap, damages) =
        SlotHeap::new(&Neighbor::default(), space, certifier, clock, settings, reserve).expect("settings");
    assert!(damages.is_empty());
    heap.open_blocks().expect("room");
    heap
}

/// What recovery has found.
pub struct Recovered {
    pub heap: SlotHeap,
    /// The records that count, by key.
    pub records: BTreeMap<Vec<u8>, Location>,
    /// How many did not.
    pub losers: usize,
    pub damages: Vec<Damage>,
}

/// Opens a pool as a store would.
pub fn recover(region: &Region, settings: SlotSettings, reserve: usize) -> Recovered {
    let (space, found) = Space::open(region.clone()).expect("the pool opens");
    let certifier = Certifier::new(space.superblock().secret());
    let clock = Clock::resume(&space, CLOCK, found.superblock_copy_lost);
    let (heap, mut damages) =
        SlotHeap::new(&Neighbor::default(), space, certifier, clock, settings, reserve).expect("settings");
    heap.clock().pass(heap.newest_life());
    let mut records: BTreeMap<Vec<u8>, Location> = BTreeMap::new();
    let mut losers = Vec::new();
    let middle = heap.blocks() / 2;
    for range in [middle..heap.blocks(), 0..middle] {
        damages.extend(heap.scan(range, |found: &FoundSlot<'_>| {
            let (location, key) = (found.location(), found.key);
            heap.clock().pass(location.sequence);
            match records.get_mut(key) {
                None => drop(records.insert(key.to_vec(), location)),
                Some(other) if heap.supersedes(location, *other) => {
                    losers.push((std::mem::replace(other, location), key.to_vec()));
                }
                Some(_) => losers.push((location, key.to_vec())),
            }
        }));
    }
    if !losers.is_empty() {
        heap.clock().begin(heap.space());
    }
    for (loser, key) in &losers {
        heap.discard(*loser, Some(records[key])).expect("the loser is a record");
    }
    heap.open_blocks().expect("room");
    Recovered { heap, records, losers: losers.len(), damages }
}

/// A heap and an index, for several clients.
pub struct Table {
    pub heap: Arc<SlotHeap>,
    index: SpinLock<BTreeMap<Vec<u8>, Offset>>,
    keys: Vec<SpinLock<()>>,
    collector: Collector,
}

/// A client of a [`Table`].
pub struct Client<'t> {
    table: &'t Table,
    pub owner: Option<Owner>,
    participant: Participant,
    buffer: Vec<u8>,
}

impl Table {
    pub fn new(heap: SlotHeap) -> Table {
        Table::of(heap, BTreeMap::new())
    }

    pub fn of(heap: SlotHeap, records: BTreeMap<Vec<u8>, Location>) -> Table {
        let index = records.into_iter().map(|(key, location)| (key, location.offset)).collect();
        Table {
            heap: Arc::new(heap),
            index: SpinLock::new(index),
            keys: (0..16).map(|_| SpinLock::new(())).collect(),
            collector: Collector::new(),
        }
    }

    pub fn client(&self, seed: u64) -> Client<'_> {
        let (owner, participant) = (Some(self.heap.owner(seed)), self.collector.register());
        Client { table: self, owner, participant, buffer: Vec::new() }
    }

    pub fn cleaner(&self, seed: u64) -> Client<'_> {
        Client { owner: Some(self.heap.cleaner(seed)), ..self.client(seed) }
    }

    /// Someone who may hold readers' epochs.
    pub fn reader(&self) -> Participant {
        self.collector.register()
    }

    pub fn offset(&self, key: &[u8]) -> Option<Offset> {
        self.index.lock().get(key).copied()
    }

    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.index.lock().keys().cloned().collect()
    }

    fn lock_of(&self, key: &[u8]) -> &SpinLock<()> {
        let hash = key.iter().fold(0u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(*byte));
        &self.keys[usize::from(hash) % self.keys.len()]
    }
}

impl Client<'_> {
    /// Puts a record and returns its sequence number.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<u64, SlotError> {
        let _pin = self.participant.pin();
        let _key = self.table.lock_of(key).lock();
        let heap = &self.table.heap;
        let sequence = heap.draw();
        let placed = heap.place(self.owner.as_mut().expect("not left"), key, value, sequence)?;
        assert!(heap.key_is(placed.offset(), key), "asked with the page in hand");
        let old = self.table.index.lock().insert(key.to_vec(), placed.offset());
        if let Some(old) = old {
            placed.release_old(old)?;
        }
        Ok(sequence)
    }

    pub fn get(&mut self, key: &[u8]) -> Option<(Vec<u8>, u64)> {
        let _pin = self.participant.pin();
        loop {
            let offset = self.table.offset(key)?;
            let read = self.table.heap.read(offset, &mut self.buffer).expect("sound");
            if let Some(record) = read.filter(|record| record.key == key) {
                return Some((record.value.to_vec(), record.sequence));
            }
            quipu_parts::sync::Waiter::default().wait();
        }
    }

    pub fn delete(&mut self, key: &[u8]) -> bool {
        let _pin = self.participant.pin();
        let _key = self.table.lock_of(key).lock();
        loop {
            let Some(offset) = self.table.offset(key) else { return false };
            if let Some(deleted) = self.table.heap.delete(offset).expect("sound") {
                let removed = self.table.index.lock().remove(key);
                assert_eq!(removed, Some(offset), "the page was held");
                drop(deleted);
                return true;
            }
        }
    }

    /// Reclaims one block, if one is worth it.
    pub fn reclaim(&mut self, percent: u8) -> Result<bool, SlotError> {
        let Some(block) = self.table.heap.victim(percent) else { return Ok(false) };
        let cleaner = self.owner.as_mut().expect("not left");
        let index = &self.table.index;
        let reclaimed = self.table.heap.reclaim(cleaner, block, |moved| {
            let mut index = index.lock();
            let entry = index.get_mut(moved.key).filter(|offset| **offset == moved.from);
            entry.map(|offset| *offset = moved.to).is_some()
        })?;
        if let Reclaimed::Freed(freed) = reclaimed {
            let heap = self.table.heap.clone();
            self.participant.pin().defer_to_anyone(Box::new(move || heap.recycle(freed)));
        }
        self.participant.collect();
        Ok(true)
    }

    /// Releases what waits for readers.
    pub fn collect(&self) {
        for _ in 0..3 {
            self.participant.collect();
        }
    }

    pub fn leave(&mut self) {
        self.table.heap.leave(self.owner.take().expect("not left"));
    }
}

/// Small, seeded, good enough to choose operations.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 11) % bound
    }
}

/// A value whose bytes follow from a number, so that a torn or foreign one is noticed.
pub fn value(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (number.wrapping_mul(0x9e37_79b9) ^ at.wrapping_mul(29)) as u8).collect()
}

/// Holds usage and free blocks against what the records say, and the space's zones against the chunks.
pub fn audit(heap: &SlotHeap, per_chunk: u64) {
    let audit = heap.space().audit().expect("sound");
    assert_eq!(audit.zones.gotten, 0, "a zone is leaked");
    let usage = heap.usage();
    assert_eq!(audit.zones.committed * per_chunk, usage.allocated_blocks);
}
