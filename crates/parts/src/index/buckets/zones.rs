//! The zones of a bucket index: where a bucket lies, and where further ones come from.
//!
//! A zone holds buckets of the table, in the order of their numbers, or *overflow* buckets, which are handed
//! out one after the other and stay where they are for good. Two lists in DRAM tell where zones lie. So
//! neither a number nor a link has to be a place, and a damaged link leads to an overflow bucket or nowhere.

use super::layout::{Kind, Seal, Usage, shape};
use super::lock::Locking;
use super::settings::BucketSettings;
use super::slot::{FREE, PERSIST, link};
use crate::index::IndexError;
use crate::index::chain::{Chain, HEAD, HEADER, damaged};
use crate::index::words::{LINE_WORDS, Words};
use crate::space::{SpaceError, ZoneId};
use crate::sync::SpinLock;
use quipu_medium::{LINE, WORD};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::IntoBytes;

/// Most buckets of a zone: as many as a link can tell apart.
const PER_ZONE_MAX: u64 = (1 << 24) - 1;
/// Most overflow zones, likewise.
const OVERFLOW_ZONES_MAX: usize = 1 << 21;
/// Buckets that are written at a time when a zone is emptied.
const PER_WRITE: u64 = 64;
/// Offset of the slot in which a bucket has its link.
pub(super) const LAST_SLOT: u64 = LINE - WORD;

/// See the module's documentation.
pub(super) struct Zones<W, L> {
    pub(super) words: W,
    pub(super) chain: Chain,
    pub(super) seal: Seal,
    pub(super) settings: BucketSettings,
    /// Buckets of a zone, and the factor that replaces a division by it.
    per_zone: u64,
    reciprocal: u64,
    /// First bytes of the zones of the table, by their places in it; 0 where there is none.
    table: Box<[AtomicU64]>,
    /// Those of the overflow zones.
    overflow: Box<[AtomicU64]>,
    /// Overflow buckets handed out.
    in_use: AtomicU64,
    taken: SpinLock<Taken>,
    locks: PhantomData<L>,
}

/// The zones that the index has taken.
#[derive(Default)]
pub(super) struct Taken {
    /// In the order of the chain.
    zones: Vec<ZoneId>,
    tables: usize,
    /// Of each overflow zone.
    usages: Vec<Usage>,
    /// The overflow zone from which the next bucket comes, or those behind it.
    filling: usize,
    /// Overflow buckets that splits leave to writers that add keys.
    promised: u64,
}

impl<W: Words, L: Locking> Zones<W, L> {
    pub(super) fn new(words: W, chain: Chain, settings: BucketSettings) -> Zones<W, L> {
        let per_zone = (chain.zone_size() / LINE - 1).min(PER_ZONE_MAX);
        let none = || (0..chain.space.zone_count()).map(|_| AtomicU64::new(0)).collect();
        Zones {
            words,
            seal: Seal::new(chain.certifier.clone(), chain.nonce),
            settings,
            per_zone,
            // Exact for numbers of 32 bits: it is too large by less than one part in 2^32.
            reciprocal: u64::MAX / per_zone + 1,
            table: none(),
            overflow: none(),
            in_use: AtomicU64::new(0),
            taken: SpinLock::default(),
            locks: PhantomData,
            chain,
        }
    }

    /// The first byte of a bucket of the table.
    #[inline]
    pub(super) fn place(&self, bucket: u64) -> Result<u64, SpaceError> {
        let zone = (u128::from(bucket) * u128::from(self.reciprocal)) >> 64;
        match self.table.get(zone as usize).map_or(0, |start| start.load(Ordering::Acquire)) {
            0 => damaged("the table of the index, in which zones are missing,", 0),
            start => Ok(start + (bucket - zone as u64 * self.per_zone + 1) * LINE),
        }
    }

    /// The first byte of the bucket to which a link in the slot at `slot` leads.
    pub(super) fn overflow(&self, slot: u64, (zone, line): (u64, u64)) -> Result<u64, SpaceError> {
        let start = self.overflow.get(zone as usize).map_or(0, |start| start.load(Ordering::Acquire));
        match start != 0 && (1..=self.per_zone).contains(&line) {
            true => Ok(start + line * LINE),
            false => damaged("a link between buckets of the index", slot),
        }
    }

    /// Overflow buckets handed out: no chain is longer.
    pub(super) fn overflow_in_use(&self) -> u64 {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Where the word of the table's size stands.
    pub(super) fn state_place(&self) -> u64 {
        let first = self.table[0].load(Ordering::Acquire);
        first + HEAD
    }

    /// Buckets that the zones of the table have room for.
    pub(super) fn capacity(&self) -> u64 {
        self.taken.lock().tables as u64 * self.per_zone
    }

    /// Notes a zone that has been linked.
    pub(super) fn note(&self, zone: ZoneId, kind: Kind, usage: Usage) {
        self.note_in(&mut self.taken.lock(), zone, kind, usage);
    }

    fn note_in(&self, taken: &mut Taken, zone: ZoneId, kind: Kind, usage: Usage) {
        let start = self.chain.space.zone_offset(zone);
        let entry = match kind {
            Kind::Table => &self.table[taken.tables],
            Kind::Overflow => &self.overflow[taken.usages.len()],
        };
        entry.store(start, Ordering::Release);
        taken.zones.push(zone);
        match kind {
            Kind::Table => taken.tables += 1,
            Kind::Overflow => taken.usages.push(usage),
        }
        self.in_use.fetch_add(usage.buckets, Ordering::Relaxed);
    }

    /// Buckets of a zone.
    pub(super) fn per_zone(&self) -> u64 {
        self.per_zone
    }

    /// Writes the header of a zone, not yet durable.
    pub(super) fn write_header(&self, zone: ZoneId, number: u32, kind: Kind, head: u64) {
        let header = self.chain.header(zone, number, shape(kind, self.settings), head);
        self.words.write(self.chain.space.zone_offset(zone), &header);
    }

    /// Empties the buckets of a zone, not yet durably.
    pub(super) fn clear(&self, zone: ZoneId) {
        let buckets = vec![Self::empty(); PER_WRITE.min(self.per_zone) as usize];
        let (bytes, start) = (buckets.as_bytes(), self.chain.space.zone_offset(zone) + HEADER);
        let end = self.per_zone * LINE;
        for at in (0..end).step_by(bytes.len()) {
            self.chain.region.write_nt(start + at, &bytes[..bytes.len().min((end - at) as usize)]);
        }
    }

    /// The words of a bucket in which nothing is, little-endian.
    fn empty() -> [u64; LINE_WORDS] {
        let mut words = [FREE.to_le(); LINE_WORDS];
        // No lock is taken.
        words[..L::SLOTS].fill(0);
        words
    }

    /// Links a zone whose buckets have been written, if that is needed, and commits it.
    fn add(&self, taken: &mut Taken, zone: ZoneId, kind: Kind) {
        let head = self.chain.space.zone_offset(zone) + HEAD;
        let word = match kind {
            Kind::Table => 0,
            Kind::Overflow => self.seal.usage(Usage::default(), head),
        };
        self.chain.link(&taken.zones, zone, |number| self.write_header(zone, number, kind, word));
        self.note_in(taken, zone, kind, Usage::default());
    }

    /// Makes sure that the table has room for so many buckets.
    pub(super) fn extend_table(&self, buckets: u64) -> Result<(), IndexError> {
        while self.capacity() < buckets {
            let zone = self.chain.take_zone()?;
            // Not under the lock: it takes as long as thousands of changes.
            self.clear(zone);
            self.add(&mut self.taken.lock(), zone, Kind::Table);
        }
        Ok(())
    }

    /// Makes sure that so many overflow buckets are free.
    fn ensure(&self, taken: &mut Taken, buckets: u64) -> Result<(), IndexError> {
        while taken.usages.len() as u64 * self.per_zone < self.overflow_in_use() + buckets {
            if taken.usages.len() == OVERFLOW_ZONES_MAX {
                return Err(self.chain.full(1));
            }
            let zone = self.chain.take_zone()?;
            self.add(taken, zone, Kind::Overflow);
        }
        Ok(())
    }

    /// Promises overflow buckets for so many keys: none of them needs more than one.
    pub(super) fn make_room(&self, keys: u64) -> Result<(), IndexError> {
        let mut taken = self.taken.lock();
        taken.promised = taken.promised.max(keys);
        self.ensure(&mut taken, keys)
    }

    /// Makes sure that so many overflow buckets are free besides those that are promised.
    pub(super) fn make_room_for_split(&self, buckets: u64) -> Result<(), IndexError> {
        let mut taken = self.taken.lock();
        let promised = taken.promised;
        if buckets == 0 { Ok(()) } else { self.ensure(&mut taken, buckets + promised) }
    }

    /// Lets a full bucket at the end of the chain of `owner` have another one behind it, durably when this
    /// returns, and tells its place. The new one gets the word of the last slot, where the link takes its
    /// place, and then `words`. The caller holds the chain.
    ///
    /// One thread at a time does this, so a crash leaves at most the last bucket handed out and not linked.
    ///
    /// # Errors
    /// [`IndexError::Full`] or [`IndexError::Space`]; nothing is changed then.
    pub(super) fn append(&self, tail: u64, owner: u64, words: &[u64]) -> Result<u64, IndexError> {
        let mut taken = self.taken.lock();
        self.ensure(&mut taken, 1)?;
        while taken.usages[taken.filling].buckets == self.per_zone {
            taken.filling += 1;
        }
        let zone = taken.filling;
        let start = self.overflow[zone].load(Ordering::Acquire);
        let usage = Usage { buckets: taken.usages[zone].buckets + 1, last_owner: Some(owner) };
        let slot = tail + LAST_SLOT;
        let mut line = Self::empty().map(u64::from_le);
        // Other threads change only the mark of the word, and here it is durable before anything leads to it.
        line[L::SLOTS] = self.words.load(slot) | PERSIST;
        line[L::SLOTS + 1..][..words.len()].copy_from_slice(words);
        let place = start + usage.buckets * LINE;
        self.words.write(place, line.map(u64::to_le_bytes).as_bytes());
        self.store_usage(zone, usage);
        self.words.fence();
        taken.usages[zone] = usage;
        self.in_use.fetch_add(1, Ordering::Relaxed);
        let link = link(zone as u64, usage.buckets);
        self.words.store(slot, link);
        self.words.persist(slot, WORD);
        self.words.store(slot, link | PERSIST);
        Ok(place)
    }

    /// Writes the usage of an overflow zone. A fence follows.
    fn store_usage(&self, zone: usize, usage: Usage) {
        let place = self.overflow[zone].load(Ordering::Acquire) + HEAD;
        self.words.store(place, self.seal.usage(usage, place));
        self.words.flush(place, WORD);
    }

    /// The bucket that was handed out last, if it may not be linked: the bucket for whose chain it was, and
    /// its overflow zone and line.
    pub(super) fn last_appended(&self) -> Option<(u64, (u64, u64))> {
        let taken = self.taken.lock();
        let zone = taken.usages.iter().rposition(|usage| usage.buckets > 0)?;
        let Usage { buckets, last_owner } = taken.usages[zone];
        last_owner.map(|owner| (owner, (zone as u64, buckets)))
    }

    /// Takes back the bucket that [`last_appended`](Zones::last_appended) tells, durably when this returns.
    pub(super) fn take_back(&self, (zone, line): (u64, u64)) {
        let mut taken = self.taken.lock();
        let usage = Usage { buckets: line - 1, last_owner: None };
        self.store_usage(zone as usize, usage);
        self.words.fence();
        taken.usages[zone as usize] = usage;
        self.in_use.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the bucket of a link has been handed out.
    pub(super) fn is_in_use(&self, (zone, line): (u64, u64)) -> bool {
        self.taken.lock().usages.get(zone as usize).is_some_and(|usage| line <= usage.buckets)
    }

    /// The zones, in the order of the chain.
    pub(super) fn all(&self) -> Vec<ZoneId> {
        self.taken.lock().zones.clone()
    }

    /// Bytes of DRAM.
    pub(super) fn dram_bytes(&self) -> u64 {
        let taken = self.taken.lock();
        size_of_val(&self.table[..]) as u64
            + size_of_val(&self.overflow[..]) as u64
            + size_of_val(&taken.zones[..]) as u64
            + size_of_val(&taken.usages[..]) as u64
    }
}
