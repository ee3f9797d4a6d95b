//! Recovery, closing and checking of a store of slots (section 4.7 of the paper).
//!
//! The paper recovers after a crash and after a shutdown alike, and so does this. All threads scan all blocks
//! that were ever handed out. Where two records of a key are marked, the heap decides which counts, and the
//! other is released. Nothing is changed before everything has been found sound. A crash may cut off all of
//! it, and the next open repeats it.
//!
//! # With the index in the pool
//!
//! The index is there, so it is compared with the records, not built again. The scan stays, since only it
//! tells how full each block is. The marks of the records are the truth, as with an index in DRAM, and the
//! index follows. A crash leaves at most one of these of each write that had not returned:
//!
//! | cut off | left | settled by |
//! |---|---|---|
//! | a put of a new key, before the index | a record that the index does not name | naming or releasing it |
//! | a put of an old key, before the index | two records, the older named | naming the newer, as below |
//! | a put of an old key, behind the index | two records, the newer named | releasing the older |
//! | a deletion, between mark and index | an entry that names no record | removing the entry |
//! | a move, before or behind the index | two copies | as for puts; they are equal |
//! | a move of a replaced record | two copies and a newer record, which is named | releasing the copies |
//!
//! A put without room in the index is released. No other state is possible: a place is reused only after its
//! page is unlocked, and by then the index has durably forgotten its record. So an entry of another record
//! with the same hash is damage, and is removed too. After a crash of the process alone the index may be
//! ahead of its durable state, so all of it is made durable.
//!
//! The scan counts the records that the index names and notes the others. If the index has as many entries as
//! named records, each entry names a record of its own, and none has to be looked up.

use super::SlotSpine;
use crate::background;
use crate::engine::site::Existing;
use crate::engine::site::Holes;
use crate::types::error::{Damage, DamagedPlace, Error, damaged_at};
use crate::types::reports::{CheckReport, RecoveryReport};
use crate::walk::proof::{all_damage, damage_of_space, refuse_number};
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{self, FoundSlot, Location, SizedOffset, Stands};
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::sync::SpinLock;
use quipu_parts::twin;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks that a thread scans at a time.
const PIECE: u64 = 64;

/// Records whose misses in the index overlap.
const AHEAD: usize = 16;

/// Findings of all scanning threads.
#[derive(Default)]
struct Findings {
    records: u64,
    /// Records that do not count, each with the one that does.
    losers: Vec<(Location, Option<Location>)>,
    /// Words of tombstones that the index named during the scan, with their hashes.
    tombstones: Vec<(u64, u64)>,
    /// Records that an index in the pool names, and those that it does not.
    named: u64,
    unnamed: Vec<Location>,
    damage: Vec<DamagedPlace>,
    /// Why the index could not take a record.
    refused: Option<Error>,
    highest: u64,
}

/// The last found records, whose lines of the index are on their way.
#[derive(Default)]
struct Ahead {
    ring: [Option<Waiting>; AHEAD],
    /// The place of the record that has waited longest, once all places are taken.
    next: usize,
    /// The record that has left.
    left: Option<Waiting>,
}

struct Waiting {
    location: Location,
    place: SizedOffset,
    stands: Stands,
    hash: u64,
    key: Vec<u8>,
}

impl Ahead {
    /// Takes a record in, and hands out the one that has waited longest, if all places are taken.
    fn exchange(&mut self, found: &FoundSlot<'_>, hash: u64) -> Option<&Waiting> {
        // The memory of its key is reused for the next.
        let mut key = self.left.take().map(|left| left.key).unwrap_or_default();
        key.clear();
        key.extend_from_slice(found.key);
        let (location, stands) = (found.location(), found.stands);
        let waiting = Waiting { location, place: found.sized(), stands, hash, key };
        self.left = self.ring[self.next].replace(waiting);
        self.next = (self.next + 1) % AHEAD;
        self.left.as_ref()
    }

    /// The records that still wait.
    fn rest(&self) -> impl Iterator<Item = &Waiting> {
        self.ring.iter().flatten()
    }
}

fn place_of(damage: slots::Damage) -> DamagedPlace {
    DamagedPlace { what: damage.what.into(), offset: damage.offset, len: 0 }
}

/// Builds the index of a pool that was just mapped, or compares it with the records, and settles what a crash
/// left open.
pub(super) fn recover<M: NodeMemory, const REDUCED: bool>(
    spine: &SlotSpine<M, REDUCED>,
    damage: Vec<slots::Damage>,
    threads: usize,
    pool: Existing<'_>,
) -> Result<RecoveryReport, Error> {
    let Existing { holes, found: mut space, progress } = pool;
    let mut findings = scan_all(spine, threads, progress);
    findings.damage.extend(damage.into_iter().map(place_of));
    if let Some(error) = findings.refused {
        return Err(error);
    }
    findings.highest = findings.highest.max(spine.heap.newest_life());
    refuse_number(spine.heap.space(), findings.highest)?;
    if holes == Holes::AreLost {
        // Nothing in a page proves its records, so lost ones could not be found.
        findings.damage.push(DamagedPlace::after_a_crash(spine.heap.space()));
    }
    damaged_at(all_damage(spine.heap.space(), std::mem::take(&mut findings.damage)))?;
    spine.heap.clock().pass(findings.highest);
    // Each record of a page may be changed where it stands.
    spine.heap.space().back_zones(spine.heap.space().committed_zones())?;
    // Nothing was changed until here.
    spine.heap.space().repair(&mut space);
    spine.settle_index(&mut findings)?;
    let participant = spine.common.epochs.register();
    for (hash, word) in &findings.tombstones {
        spine.index.remove(&participant.pin(), *hash, *word);
    }
    if !findings.losers.is_empty() {
        spine.heap.clock().begin(spine.heap.space());
    }
    for (loser, winner) in &findings.losers {
        spine.heap.discard(*loser, *winner)?;
    }
    spine.heap.open_blocks()?;
    Ok(RecoveryReport {
        was_clean: space.was_clean,
        segments: spine.heap.blocks() as usize,
        records: findings.records,
        reclaimed: space.leaked_reclaimed as usize,
        ..RecoveryReport::default()
    })
}

fn scan_all<M: NodeMemory, const REDUCED: bool>(
    spine: &SlotSpine<M, REDUCED>,
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Findings {
    let blocks = spine.heap.blocks();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let all = SpinLock::new(Findings::default());
    background::in_parallel(threads.clamp(1, blocks.div_ceil(PIECE).max(1) as usize), |_| {
        let participant = spine.common.epochs.register();
        loop {
            let first = next.fetch_add(PIECE, Ordering::Relaxed);
            if first >= blocks {
                break;
            }
            let piece = first..blocks.min(first + PIECE);
            let scanned = piece.end - piece.start;
            let guard = participant.pin();
            let mut findings = Findings::default();
            let mut ahead = Ahead::default();
            let damage = spine.heap.scan(piece, |found| {
                let hash = spine.hash(found.key);
                spine.index.prefetch_to_write(hash);
                spine.note(&guard, ahead.exchange(found, hash), &mut findings);
            });
            ahead.rest().for_each(|waiting| spine.note(&guard, Some(waiting), &mut findings));
            findings.damage.extend(damage.into_iter().map(place_of));
            all.lock().merge(findings);
            let done = done.fetch_add(scanned, Ordering::Relaxed) + scanned;
            progress(done as usize, blocks as usize);
        }
    });
    std::mem::take(&mut *all.lock())
}

impl Findings {
    fn merge(&mut self, other: Findings) {
        self.records += other.records;
        self.losers.extend(other.losers);
        self.tombstones.extend(other.tombstones);
        self.named += other.named;
        self.unnamed.extend(other.unnamed);
        self.damage.extend(other.damage);
        self.refused = self.refused.take().or(other.refused);
        self.highest = self.highest.max(other.highest);
    }
}

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Lets an index in DRAM name this record; notes what one in the pool says of it.
    fn note(&self, guard: &Guard<'_>, waiting: Option<&Waiting>, findings: &mut Findings) {
        let Some(waiting) = waiting else { return };
        let Waiting { location, place, hash, ref key, .. } = *waiting;
        findings.records += 1;
        findings.highest = findings.highest.max(location.sequence);
        if M::MARK == 0 {
            self.adopt(guard, waiting, findings);
        } else if self.index.names(hash, Self::word_of(place, key)) {
            findings.named += 1;
        } else {
            findings.unnamed.push(location);
        }
    }

    /// Makes an index in the pool agree with the records; see the module's documentation.
    fn settle_index(&self, findings: &mut Findings) -> Result<(), Error> {
        let begin = || self.heap.clock().begin(self.heap.space());
        self.index.memory().repair(begin);
        if M::MARK == 0 {
            return Ok(());
        }
        let participant = self.common.epochs.register();
        let guard = participant.pin();
        let mut buffer = Vec::new();
        if self.index.retain(|_, _| true) != findings.named {
            begin();
            self.index.retain(|hash, word| {
                let offset = Self::offset_of(word);
                let record = self.heap.holds_records(offset).then(|| self.heap.read(offset, &mut buffer));
                let record = record.and_then(|record| record.ok().flatten());
                record.is_some_and(|record| self.hash(record.key) == hash)
            });
        }
        for location in std::mem::take(&mut findings.unnamed) {
            begin();
            let Some(record) = self.heap.read(location.offset, &mut buffer)? else { continue };
            let Some(stands) = self.heap.stands(location.offset)? else { continue };
            let (hash, key) = (self.hash(record.key), record.key.to_vec());
            let place = SizedOffset::new(location.offset, 0);
            self.adopt(&guard, &Waiting { location, place, stands, hash, key }, findings);
            if let Some(Error::PoolFull { .. }) = findings.refused {
                findings.refused = None;
                findings.losers.push((location, None));
            }
        }
        findings.refused.take().map_or(Ok(()), Err)
    }

    /// Lets the index name the found record, unless it names another record of the same key that counts.
    ///
    /// A tombstone is named too during the scan, so that no older record of its key counts; at the end it is
    /// removed from the index.
    fn adopt(&self, guard: &Guard<'_>, found: &Waiting, findings: &mut Findings) {
        let Waiting { location, place, stands, hash, ref key } = *found;
        let new = Self::word_of(place, key);
        // Locked until the index names the new record: other threads bring records of the key, add keys and
        // split segments. Of an exact key of eight bytes the word alone would not tell that its entry is
        // another key's by now.
        loop {
            let segment = self.index.lock(hash);
            if let Some(word) = segment.named(|word| self.is_record_of(word, key)) {
                // It was found a moment ago, and nobody else changes records meanwhile.
                let Ok(Some(other)) = self.heap.stands(Self::offset_of(word)) else { return };
                let named = Location { offset: Self::offset_of(word), sequence: other.sequence };
                if !self.heap.supersedes(location, named) {
                    drop(segment);
                    return self.lose(location, stands, named, findings);
                }
                let replaced = segment.upsert(guard, new, |found| found == word);
                debug_assert!(matches!(replaced, Ok(Some(_))), "the segment was locked");
                self.lose(named, other, location, findings);
                break;
            }
            let added = match segment.add(guard, new) {
                Ok(false) if twin!(AbsentBeforeSplit) => self.index.insert(guard, hash, new).map(|()| true),
                added => added,
            };
            match added {
                Ok(true) => break,
                // Another thread may have brought a record of the key while the segment was unlocked.
                Ok(false) => {}
                Err(error) => {
                    findings.refused = findings.refused.take().or(Some(error.into()));
                    break;
                }
            }
        }
        if stands.is_tombstone {
            findings.tombstones.push((hash, new));
        }
    }

    /// Notes that the record at one place does not count because of the record at another. Bits in DRAM take
    /// that without a change of the pool (`parts/src/heap/slots/pacman/dead.rs`). Otherwise the loser is
    /// released durably, and so are the blocks of a value.
    fn lose(&self, loser: Location, stands: Stands, winner: Location, findings: &mut Findings) {
        let Stands { len, is_tombstone, has_blocks, .. } = stands;
        if !REDUCED || has_blocks {
            findings.losers.push((loser, Some(winner)));
        } else if is_tombstone {
            self.heap.note_tombstone_gone(SizedOffset::new(loser.offset, len));
        } else {
            self.heap.note_dead(loser.offset, len, winner.sequence);
        }
    }
}

/// Checks a store that nobody else uses: every page, that the index names each record once and nothing else,
/// and that no zone leaks.
pub(crate) fn check<M: NodeMemory, const REDUCED: bool>(
    spine: &SlotSpine<M, REDUCED>,
    progress: &dyn Fn(usize, usize),
) -> Result<CheckReport, Error> {
    spine.settle_all(&spine.common.epochs.register().pin())?;
    spine.recycle_all();
    let space = spine.heap.space();
    let mut places = Vec::new();
    let mut complain = |what: String, offset| places.push(DamagedPlace { what, offset, len: 0 });
    damage_of_space(space).into_iter().for_each(|what| complain(what, 0));
    let (known, used) =
        (spine.heap.zones() + spine.index.memory().zones().len(), space.committed_zones().len());
    if known != used {
        complain(format!("of {used} zones in use the heap and the index have {known}: the others leak"), 0);
    }
    let participant = spine.common.epochs.register();
    let guard = participant.pin();
    let (mut records, mut unnamed) = (0, 0u64);
    let damage = spine.heap.verify(|found| {
        if found.stands.is_tombstone {
            return;
        }
        records += 1;
        let word = SlotSpine::<M, REDUCED>::word_of(found.sized(), found.key);
        let hash = spine.hash(found.key);
        if spine.index.get(&guard, hash, |named| named == word).is_none() {
            unnamed += 1;
        }
    });
    damage.into_iter().for_each(|damage| complain(damage.what.into(), damage.offset));
    if unnamed > 0 {
        complain(format!("{unnamed} records count that the index does not name: they leak"), 0);
    }
    let keys = spine.index.len();
    if keys != records - unnamed {
        complain(format!("the index names {keys} records, of which {} are there", records - unnamed), 0);
    }
    let seen = spine.each(&guard, SlotSpine::record_of)?.filter(Result::is_ok).count() as u64;
    if seen != keys {
        complain(format!("of {keys} records {seen} can be read"), 0);
    }
    let blocks = spine.heap.blocks() as usize;
    progress(blocks, blocks);
    Ok(CheckReport {
        segments: blocks,
        values: 0,
        records,
        keys,
        free_zones: u64::from(space.free_zones()),
        damage: Damage { places },
        unproved: &[],
    })
}
