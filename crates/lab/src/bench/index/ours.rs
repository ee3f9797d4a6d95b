//! An index of this house behind [`Contender`]: called as a store over logs calls it.

use super::image::Bytes;
use super::records::Records;
use super::{Access, BATCH, Contender, SCANNED};
use quipu_bench::error::BenchError;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::buckets::{BucketIndex, Locking};
use quipu_parts::index::cceh::{CcehIndex, DramNodes, PmNodes};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::hash::HashIndex;
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{self, BothWays, ImageError, Imaged, Index, IndexError, IndexStats, Key, PmWords};
use quipu_parts::record::Certifier;
use std::fmt;

const INSERT: &str = "insert";
const GET: &str = "get";
const SCAN: &str = "scan";
const REMOVE: &str = "remove";
const LOAD: &str = "bulk_load";

/// An index, as far as this benchmark has to tell one from the other.
pub(super) trait OfHouse: Index {
    /// Whether it keeps keys in order.
    const ORDERED: bool = false;
    /// Whether it finds a key of this length without the record.
    fn proves(_length: usize) -> bool {
        false
    }

    /// Tells the words of the next keys from this one on, as many as a scan has. Where it does not prove such
    /// keys, `is_lower` tells of a word whether its key comes before.
    fn scan(
        &self,
        _guard: &Guard<'_>,
        _from: &[u8],
        _is_lower: impl Fn(u64) -> bool,
        _words: &mut Vec<u64>,
    ) -> Result<(), IndexError> {
        unreachable!("it keeps no order")
    }

    /// The index as bytes, if it can be loaded again.
    fn bytes(&self, _guard: &Guard<'_>, _words: u64) -> Option<Bytes> {
        None
    }

    /// The index of these bytes.
    fn of_bytes(_bytes: &Bytes) -> Result<Self, ImageError>
    where
        Self: Sized,
    {
        Err(ImageError)
    }
}

fn scan_in_order<I: BothWays + OfHouse>(
    index: &I,
    guard: &Guard<'_>,
    from: &[u8],
    is_lower: impl Fn(u64) -> bool,
    words: &mut Vec<u64>,
) -> Result<(), IndexError> {
    let proves = I::proves(from.len());
    let mut scan = index.scan_from(from);
    while words.len() < SCANNED {
        let left = SCANNED - words.len();
        let each = |word| {
            if proves || !words.is_empty() || !is_lower(word) {
                words.push(word);
            }
        };
        if !index.next_words(guard, &mut scan, left, each)? {
            break;
        }
    }
    Ok(())
}

macro_rules! ordered {
    ($proves:expr) => {
        const ORDERED: bool = true;

        #[inline]
        fn proves(length: usize) -> bool {
            $proves(length)
        }

        #[inline]
        fn scan(
            &self,
            guard: &Guard<'_>,
            from: &[u8],
            is_lower: impl Fn(u64) -> bool,
            words: &mut Vec<u64>,
        ) -> Result<(), IndexError> {
            scan_in_order(self, guard, from, is_lower, words)
        }
    };
}

macro_rules! imaged {
    () => {
        fn bytes(&self, guard: &Guard<'_>, words: u64) -> Option<Bytes> {
            Bytes::of(self, guard, words)
        }

        fn of_bytes(bytes: &Bytes) -> Result<Self, ImageError> {
            Self::of_image(bytes)
        }
    };
}

impl OfHouse for Alex {
    // It has the first eight bytes of a key, as far as these tell it apart.
    ordered!(|length| length == 8);
    imaged!();
}

impl OfHouse for Masstree {
    ordered!(|_| true);
    imaged!();
}

impl OfHouse for FastFairIndex {
    ordered!(|_| true);
}

impl OfHouse for HashIndex {
    imaged!();
}

impl OfHouse for CcehIndex<DramNodes> {}
impl OfHouse for CcehIndex<PmNodes> {}
impl<L: Locking> OfHouse for BucketIndex<PmWords, L> {}

/// An index of the house, with the records that its words name.
pub(super) struct Ours<'r, I> {
    name: &'static str,
    index: I,
    records: &'r Records,
    certifier: Certifier,
    epochs: Collector,
}

impl<'r, I: OfHouse> Ours<'r, I> {
    pub(super) fn new(name: &'static str, index: I, records: &'r Records) -> Ours<'r, I> {
        Ours { name, index, records, certifier: Certifier::new(&[7; 32]), epochs: Collector::new() }
    }
}

/// The records as the index asks for them.
impl<I: Index> index::Records for Ours<'_, I> {
    fn hash_of(&self, word: u64) -> u64 {
        let key = self.records.key_of(word).unwrap_or_default();
        I::key_hash(&self.certifier, key)
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.records.key_of(word).unwrap_or_default());
    }
}

/// An index as bytes, with what stands beside it.
pub(super) struct OurBulk<'r> {
    name: &'static str,
    bytes: Bytes,
    records: &'r Records,
}

impl<'r, I: OfHouse> Contender for Ours<'r, I> {
    const ORDERED: bool = I::ORDERED;

    type Access<'c>
        = OurAccess<'c, 'r, I>
    where
        Self: 'c;
    type Bulk = OurBulk<'r>;

    fn access(&self) -> OurAccess<'_, 'r, I> {
        OurAccess { ours: self, participant: self.epochs.register() }
    }

    fn pm_bytes(&self) -> u64 {
        let IndexStats { pm_bytes, .. } = self.index.stats();
        pm_bytes
    }

    fn bulk(&self) -> Option<OurBulk<'r>> {
        let participant = self.epochs.register();
        let bytes = self.index.bytes(&participant.pin(), self.records.count())?;
        Some(OurBulk { name: self.name, bytes, records: self.records })
    }

    fn load(bulk: &OurBulk<'r>) -> Result<Ours<'r, I>, BenchError> {
        let index =
            I::of_bytes(&bulk.bytes).map_err(|ImageError| BenchError::refused(bulk.name, LOAD)(NoImage))?;
        Ok(Ours::new(bulk.name, index, bulk.records))
    }
}

/// The index does not take back what it has written.
#[derive(Debug)]
struct NoImage;

impl fmt::Display for NoImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the index refuses its own image")
    }
}

impl std::error::Error for NoImage {}

/// One thread's use of an index.
pub(super) struct OurAccess<'c, 'r, I> {
    ours: &'c Ours<'r, I>,
    participant: Participant,
}

impl<I: OfHouse> OurAccess<'_, '_, I> {
    /// A key as the index takes it.
    #[inline(always)]
    fn hashed<'k>(&self, key: &'k [u8]) -> Key<'k> {
        Key { bytes: key, hash: I::key_hash(&self.ours.certifier, key) }
    }

    #[cold]
    fn refused(&self, phase: &str, error: IndexError) -> BenchError {
        BenchError::refused(self.ours.name, phase)(error)
    }
}

impl<I: OfHouse> Access for OurAccess<'_, '_, I> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8], word: u64) -> Result<Option<u64>, BenchError> {
        let Ours { index, records, .. } = self.ours;
        let (hashed, guard) = (self.hashed(key), self.participant.pin());
        let matches = |word| records.is_key(word, key);
        let old = index.upsert(&guard, hashed, word, None, matches, self.ours);
        old.map_err(|error| self.refused(INSERT, error))
    }

    #[inline(always)]
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        let Ours { index, records, .. } = self.ours;
        let (hashed, guard) = (self.hashed(key), self.participant.pin_to_read());
        let found = index.get(&guard, hashed, |word| records.is_key(word, key));
        found.map_err(|error| self.refused(GET, error))
    }

    /// In stages, as a store over logs does it: lines of the index, then words and the lines of the records
    /// that must be looked at, then these.
    #[inline(always)]
    fn get_many(&mut self, keys: &[&[u8]], words: &mut Vec<Option<u64>>) -> Result<(), BenchError> {
        let Ours { index, records, .. } = self.ours;
        let guard = self.participant.pin_to_read();
        let mut near = [None; BATCH];
        for (near, key) in near.iter_mut().zip(keys) {
            *near = index.prefetch(&self.participant, self.hashed(key));
        }
        let mut likely = [None; BATCH];
        if !I::proves(records.length()) {
            for ((likely, near), key) in likely.iter_mut().zip(near).zip(keys) {
                *likely = index.candidate(&guard, self.hashed(key), near);
                if let Some(word) = *likely {
                    records.prefetch(word);
                }
            }
        }
        for ((likely, near), key) in likely.into_iter().zip(near).zip(keys) {
            // The answer of an index in the pool has to be durable, and a guess is not.
            if !I::DURABLE && likely.is_some_and(|word| records.is_key(word, key)) {
                words.push(likely);
                continue;
            }
            let matches = |word| records.is_key(word, key);
            let found = index.get_near(&guard, self.hashed(key), near, matches);
            words.push(found.map_err(|error| self.refused(GET, error))?);
        }
        Ok(())
    }

    #[inline(always)]
    fn scan(&mut self, from: &[u8], words: &mut Vec<u64>) -> Result<(), BenchError> {
        let guard = self.participant.pin_to_read();
        let Ours { index, records, .. } = self.ours;
        let is_lower = |word| records.key_of(word) < Some(from);
        let scanned = index.scan(&guard, from, is_lower, words);
        scanned.map_err(|error| self.refused(SCAN, error))
    }

    #[inline(always)]
    fn remove(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        let Ours { index, records, .. } = self.ours;
        let (hashed, guard) = (self.hashed(key), self.participant.pin());
        let taken = index.take(&guard, hashed, None, |word| records.is_key(word, key));
        taken.map_err(|error| self.refused(REMOVE, error))
    }
}
