//! What the tests of the bucket index share: pools, hashes that crowd, and an index broken on purpose.

use crate::shared::keyed::by_hash;
use crate::shared::mix as numbers;
use crate::shared::pool;

pub use numbers::mix;
use quipu_parts::epoch::Guard;
use quipu_parts::index::buckets::{BucketCursor, BucketIndex, BucketSettings, Locking};
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::index::{Index as _, IndexError, PmWords, Words};
use quipu_parts::space::Space;
use std::sync::Arc;

/// A simulated pool of so many bytes with zones of 4 KiB.
pub fn format(len: u64, seed: u64) -> Arc<Space> {
    pool::format(len, 4 << 10, seed)
}

/// A new index in a pool, with its root.
pub fn create<L: Locking>(
    space: &Arc<Space>,
    settings: BucketSettings,
) -> (BucketIndex<PmWords, L>, IndexRoot) {
    let mut root = None;
    let index = BucketIndex::create(space.clone(), settings, 0, |made| root = Some(made)).expect("room");
    (index, root.expect("the root is given before the index is"))
}

const VERSIONS: u64 = 1 << 20;
/// Set in references to copies that a cleaner has made.
pub const COPY: u64 = 1 << 44;

pub fn reference(key: u64, version: u64) -> u64 {
    (key + 1) * VERSIONS + version
}

pub fn key_of(reference: u64) -> u64 {
    (reference & !COPY) / VERSIONS - 1
}

/// Eight fingerprints, and sixteen buckets at most, some of which have most of the keys.
pub fn hash_of(key: u64) -> u64 {
    let drawn = mix(key);
    drawn << 32 | (drawn >> 40 & drawn >> 50 & 15) << 16 | drawn >> 60 & 7
}

pub fn rehash(reference: u64) -> u64 {
    hash_of(key_of(reference))
}

pub fn get<W: Words, L: Locking>(
    index: &BucketIndex<W, L>,
    guard: &Guard<'_>,
    key: u64,
) -> Result<Option<u64>, IndexError> {
    let found = index.get(guard, by_hash(hash_of(key)), |reference| key_of(reference) == key)?;
    Ok(found.map(|reference| reference & !COPY))
}

/// The references that a walk finds, in their order.
pub fn walk<W: Words, L: Locking>(
    index: &BucketIndex<W, L>,
    guard: &Guard<'_>,
) -> Result<Vec<u64>, IndexError> {
    let (mut cursor, mut walked) = (BucketCursor::default(), Vec::new());
    while index.next_batch(guard, &mut cursor, &mut walked)? {}
    walked.iter_mut().for_each(|reference| *reference &= !COPY);
    walked.sort_unstable();
    Ok(walked)
}

/// How the index is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// Not at all.
    Sound,
    /// Readers act on words without a mark.
    NoHelp,
    /// Writers do not make words durable.
    NoFlush,
    /// Words have their mark from the beginning.
    MarkedAtOnce,
    /// Words that are changed by the batch are not flushed.
    NoBatch,
    /// A slot is freed without having said that its key is deleted.
    NoDeletedMark,
    /// What a split has moved stays where it was.
    LeftBehind,
    /// A bucket is linked that is not durable.
    BucketNotFlushed,
}

/// The words of a pool, broken or not.
pub struct BrokenWords {
    words: PmWords,
    twin: Twin,
}

const PERSIST: u64 = 1;
const DELETED: u64 = 2;
const LINK: u64 = 4;
/// The word of a slot that is free.
const FREE: u64 = 0x9D3A_06C5_58E1_2B4F;

impl Words for BrokenWords {
    fn load(&self, place: u64) -> u64 {
        self.words.load(place)
    }

    fn store(&self, place: u64, word: u64) {
        match self.twin {
            Twin::MarkedAtOnce if word != 0 => self.words.store(place, word | PERSIST),
            Twin::NoDeletedMark if word & (LINK | DELETED | PERSIST) == DELETED => {}
            Twin::LeftBehind if word == FREE => {}
            _ => self.words.store(place, word),
        }
    }

    fn swap(&self, place: u64, old: u64, new: u64) -> bool {
        self.words.swap(place, old, new)
    }

    fn write(&self, place: u64, bytes: &[u8]) {
        if self.twin == Twin::BucketNotFlushed {
            let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("words")));
            (place..).step_by(8).zip(words).for_each(|(place, word)| self.words.store(place, word));
        } else {
            self.words.write(place, bytes);
        }
    }

    fn flush(&self, place: u64, len: u64) {
        if self.twin != Twin::NoBatch {
            self.words.flush(place, len);
        }
    }

    fn fence(&self) {
        self.words.fence();
    }

    fn persist(&self, place: u64, len: u64) {
        if self.twin != Twin::NoFlush {
            self.words.persist(place, len);
        }
    }

    fn help(&self, place: u64, len: u64) {
        if self.twin != Twin::NoHelp {
            self.words.help(place, len);
        }
    }

    fn prefetch(&self, place: u64) {
        self.words.prefetch(place);
    }
}

/// The index of a root as it is after a crash, or as a twin of it would be.
pub fn open<L: Locking>(
    space: &Arc<Space>,
    root: IndexRoot,
    twin: Twin,
) -> Result<BucketIndex<BrokenWords, L>, IndexError> {
    let words = BrokenWords { words: PmWords::new(space.region().clone()), twin };
    let index = BucketIndex::examine_over(words, space.clone(), root, 0)?;
    index.mend(|| ())?;
    Ok(index)
}
