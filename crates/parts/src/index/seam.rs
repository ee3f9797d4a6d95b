//! The seam between a store over logs and its index, by hash or by key, in DRAM or in PM.
//!
//! A store over logs walks one path (locate, place, persist, publish, release) with any index. The constants
//! of [`Index`] say the differences: whether a word has room for the size of its record, whether the index
//! survives a crash by itself, whether it knows where an entry stands. They are constants, so that each
//! store is compiled for its index.
//!
//! # Words
//!
//! An index keeps a word other than zero for each key: the lowest [`WORD_BITS`](Index::WORD_BITS) bits of 64
//! are the store's, and the others are the index's own. Two keys never have the same word at the same time,
//! which makes a word proof of its entry.
//!
//! # Concurrency
//!
//! Two threads must not [upsert](Index::upsert) or [take](Index::take) one key at the same time: the store
//! holds the key's lock. [Replacing](Index::replace) a word compares it first and needs no lock; a cleaner
//! publishes its copies in this way.

use super::chain::IndexRoot;
use crate::epoch::{Guard, Participant};
use crate::record::Certifier;
use crate::space::{Shortage, Space, SpaceError, ZoneId};
use std::ops::Bound;
use std::sync::Arc;

/// A key as indexes look for it: by its hash, or by its bytes in their order.
#[derive(Clone, Copy, Debug)]
pub struct Key<'k> {
    /// The key.
    pub bytes: &'k [u8],
    /// Its hash, as [`Index::key_hash`] gives it.
    pub hash: u64,
}

/// The records that words lead to, for an index that does not have their keys. One that is damaged may tell
/// anything.
pub trait Records {
    /// The hash of a word's key, for an index that has used up the bits it keeps.
    fn hash_of(&self, word: u64) -> u64;

    /// Adds a word's key to `out`, for an index that has kept its beginning alone.
    fn key_of(&self, word: u64, out: &mut Vec<u8>);
}

/// A function that tells hashes, for an index that asks for nothing else.
impl<F: Fn(u64) -> u64> Records for F {
    fn hash_of(&self, word: u64) -> u64 {
        self(word)
    }

    fn key_of(&self, _word: u64, _out: &mut Vec<u8>) {
        unreachable!("an index that asks for keys is given records");
    }
}

/// Where the old word of a key was replaced by a cleaner.
#[derive(Debug)]
pub struct Repointed<U> {
    /// To be given to [`Index::persist`].
    pub unflushed: U,
    /// The hint led to it, so that no inner node was read.
    pub by_hint: bool,
}

/// Statistics of an index: its size, and its work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Bytes of DRAM.
    pub bytes: u64,
    /// Bytes of zones in PM.
    pub pm_bytes: u64,
    /// Nodes or segments split since it was made or opened.
    pub splits: u64,
    /// Records that were read for the sake of splits.
    pub records_read: u64,
}

/// How far an index has grown, told without a lock: for tests, which ask in the middle of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexGrowth {
    /// A node or segment is being split, for so long that it shows.
    pub is_splitting: bool,
    /// A zone is being linked to the others.
    pub is_linking: bool,
    /// Nodes or segments split since it was made or opened.
    pub splits: u64,
    /// Nodes that became empty and left it since then.
    pub removals: u64,
    /// Zones of the pool that it has.
    pub zones: u32,
}

/// Why an index cannot take a key, answer, or be made or opened. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// It had to grow, and there is no zone left for it.
    #[error("no zone is left for the index: {0}")]
    Full(Shortage),
    /// All numbers of nodes in DRAM are in use.
    #[error("the index has no number left for another node; remove keys, or divide them among several pools")]
    OutOfNumbers,
    /// The buckets of this key are full of others whose hashes differ too late for a split.
    #[error(
        "too many keys have nearly the same hash; with the keyed hash of a pool that is no accident: \
         rebuild the pool, which draws another secret"
    )]
    Crowded,
    /// The key is longer than the index takes.
    #[error("a key of {len} bytes is too long for the index, which takes {max}; choose a shorter one")]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
        /// Bytes of the longest key.
        max: usize,
    },
    /// Zones are too small for the nodes or segments of the index.
    #[error(
        "{bytes} bytes of the index do not fit a zone of {zone}; choose larger zones or smaller segments"
    )]
    ZoneTooSmall {
        /// Bytes of a node or segment.
        bytes: u64,
        /// Bytes of a zone.
        zone: u64,
    },
    /// The root names no index: its creation was interrupted, and has left nothing.
    #[error("no index has been created here; create one")]
    Absent,
    /// The index is damaged, or the allocator or the medium failed.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// See the module's documentation. A method that can fail tells damage as [`IndexError::Space`], in any
/// index.
pub trait Index: Send + Sync + 'static {
    /// Bits of a word that are the store's: those of a plain reference, or 62; 45 are enough for a plain
    /// reference without a tag, in a region of less than 2^48 bytes.
    const WORD_BITS: u32;
    /// Whether it survives a crash: then each change except [`repoint`](Index::repoint) is durable when it
    /// returns, and so is each answer.
    const DURABLE: bool;
    /// Whether no change of it fails, so that a later operation may publish it.
    const NEVER_FAILS: bool;
    /// Whether it has hints: numbers of 48 bits that say where an entry most likely stands.
    const HINTS: bool;
    /// Whether it has the keys, so that a [candidate](Index::candidate) is no guess.
    const HAS_KEYS: bool = false;
    /// Bits of the hash that a word of the index has with it. A word that `matches` is shown is one whose
    /// key has the same there, always, so that any other record tells that the index is damaged.
    const FINGERPRINT: u64 = 0;

    /// How far a walk over all words has come.
    type Cursor: Default + Send;
    /// A word that was replaced and is not durable yet.
    type Unflushed: Send;

    /// The hash of a key, by which its writers exclude each other too. It tells keys of eight bytes apart by
    /// itself, and is sooner computed for them.
    #[inline(always)]
    fn key_hash(certifier: &Certifier, key: &[u8]) -> u64 {
        match key.try_into() {
            Ok(number) => certifier.permuted(u64::from_le_bytes(number)),
            Err(_) => certifier.key_hash(key),
        }
    }

    /// Asks for the lines that a lookup of the key reads. Tells a hint to where it most likely stands, if
    /// that was seen on the way: it may save another way there. It proves nothing, and never gets too old.
    /// An index whose nodes may go meanwhile pins the participant for that.
    fn prefetch(&self, participant: &Participant, key: Key<'_>) -> Option<u64>;

    /// Asks for the lines that a change of the key reads and writes. The answer is that of
    /// [`prefetch`](Index::prefetch).
    fn prefetch_to_write(&self, participant: &Participant, key: Key<'_>) -> Option<u64>;

    /// The word that most likely is the key's. An index that is not [durable](Index::DURABLE) certainly had
    /// it for a key when it was asked; most likely for this one. `near` is the answer of
    /// [`prefetch`](Index::prefetch).
    fn candidate(&self, guard: &Guard<'_>, key: Key<'_>, near: Option<u64>) -> Option<u64>;

    /// The word of a key. `matches` says whether a word is the key's, where the index cannot tell by itself;
    /// it may be shown one that has just been replaced, whose record the guard keeps.
    fn get(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError>;

    /// As [`get`](Index::get), with the answer of [`prefetch`](Index::prefetch) or of
    /// [`prefetch_to_write`](Index::prefetch_to_write).
    #[inline(always)]
    fn get_near(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        _near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError> {
        self.get(guard, key, matches)
    }

    /// Whether a key has this word. Flushes nothing and waits for nobody.
    fn names(&self, guard: &Guard<'_>, key: Key<'_>, word: u64) -> Result<bool, IndexError> {
        Ok(self.get(guard, key, |found| found == word)? == Some(word))
    }

    /// Where the key's entry stands or would be put; `None` without [`HINTS`](Index::HINTS).
    #[inline]
    fn hint(&self, _guard: &Guard<'_>, _key: Key<'_>) -> Result<Option<u64>, IndexError> {
        Ok(None)
    }

    /// Makes room for so many keys, as far as other callers leave it: they fit without [`IndexError::Full`].
    ///
    /// # Errors
    /// [`IndexError::Full`] or [`IndexError::Space`].
    #[inline]
    fn make_room(&self, _guard: &Guard<'_>, _keys: usize, _key_len: usize) -> Result<(), IndexError> {
        const { assert!(Self::NEVER_FAILS, "an index that may be full has to say so ahead") };
        Ok(())
    }

    /// Lets the key have this word, and returns the one that it had, for which `matches` said yes if the
    /// index had to ask. `near` is the answer of [`hint`](Index::hint) or
    /// [`prefetch_to_write`](Index::prefetch_to_write) for the key: it may save the way there. `records`
    /// tell of the keys of other words.
    ///
    /// # Errors
    /// Any [`IndexError`]; nothing is changed then.
    fn upsert(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        new: u64,
        near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
        records: &dyn Records,
    ) -> Result<Option<u64>, IndexError>;

    /// Lets the key have `new` if it still has `old`; says whether it did.
    fn replace(&self, guard: &Guard<'_>, key: Key<'_>, old: u64, new: u64) -> Result<bool, IndexError>;

    /// Removes a key and returns its word, for which `matches` said yes if the index had to ask. `near` is
    /// as for [`upsert`](Index::upsert).
    fn take(
        &self,
        guard: &Guard<'_>,
        key: Key<'_>,
        near: Option<u64>,
        matches: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, IndexError>;

    /// Prefetches the words that [`repoint`](Index::repoint) needs. Returns the hint to give it: this one,
    /// or one to where the key was seen to stand.
    #[inline]
    fn prefetch_repoint(&self, participant: &Participant, _hint: Option<u64>, key: Key<'_>) -> Option<u64> {
        self.prefetch_to_write(participant, key)
    }

    /// As [`replace`](Index::replace), where the hint says if that is right, and not durable before
    /// [`persist`](Index::persist). `None` if the key has another word.
    fn repoint(
        &self,
        guard: &Guard<'_>,
        hint: Option<u64>,
        key: Key<'_>,
        old: u64,
        new: u64,
    ) -> Result<Option<Repointed<Self::Unflushed>>, IndexError>;

    /// Makes repointed words durable, with one fence for all, and empties the list. Without
    /// [`DURABLE`](Index::DURABLE) it does nothing else. The guard keeps the new words from being those of
    /// other records before this returns.
    fn persist(&self, _guard: &Guard<'_>, unflushed: &mut Vec<Self::Unflushed>) {
        const { assert!(!Self::DURABLE, "an index in the pool has words to flush") };
        unflushed.clear();
    }

    /// Adds the words of the next few entries; `false` at the end. A key that is there throughout is told
    /// once.
    fn next_batch(
        &self,
        guard: &Guard<'_>,
        cursor: &mut Self::Cursor,
        out: &mut Vec<u64>,
    ) -> Result<bool, IndexError>;

    /// Keys; exact when nobody writes.
    fn len(&self, guard: &Guard<'_>) -> Result<u64, IndexError>;

    /// Proves as far as an index in PM can by itself that every word in it is one that a run or a crash
    /// leaves. `is_word` says whether a word may be one of the store's. Nobody writes meanwhile, and nothing
    /// is changed.
    ///
    /// # Errors
    /// [`IndexError::Space`] where it is not so.
    fn audit(&self, _guard: &Guard<'_>, _is_word: &dyn Fn(u64) -> bool) -> Result<(), IndexError> {
        Ok(())
    }

    /// The place of an entry that names this word under a key that differs from this one in one flipped bit.
    /// For an index in PM whose [`audit`](Index::audit) may miss such an entry.
    fn nearly_names(&self, _key: Key<'_>, _word: u64) -> Option<u64> {
        None
    }

    /// Its size, and its work so far.
    fn stats(&self) -> IndexStats;

    /// How far it has grown.
    fn growth(&self) -> IndexGrowth;

    /// Whether it is growing at this moment.
    fn growing(&self) -> bool {
        let IndexGrowth { is_splitting, is_linking, .. } = self.growth();
        is_splitting || is_linking
    }

    /// Zones of the pool that it has.
    fn zones(&self) -> Vec<ZoneId> {
        const { assert!(!Self::DURABLE, "an index in the pool has zones") };
        Vec::new()
    }
}

/// An index in the pool, which its owner finds again by a root.
pub trait InPool: Index + Sized {
    /// The shape of a new one.
    type Settings;

    /// An empty index in zones of `space`, of which it always leaves `leave` free. Settings out of range are
    /// brought into range. `keep` makes the root durable. After a crash before the return, the root names an
    /// empty index or, by [`IndexError::Absent`], none.
    ///
    /// # Errors
    /// [`IndexError::ZoneTooSmall`], [`IndexError::Full`] or [`IndexError::Space`]; nothing is changed then,
    /// unless other threads take zones at the same time.
    fn create(
        space: Arc<Space>,
        settings: Self::Settings,
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<Self, IndexError>;

    /// The index of this root, for an owner that has more to verify: nothing is changed. No zone of the pool
    /// has been taken since the pool was opened. Before anything but [`names`](Index::names) is called,
    /// [`repair`](InPool::repair) must follow.
    ///
    /// # Errors
    /// [`IndexError::Absent`] if the root names none; [`IndexError::Space`] if the index is damaged.
    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Self, IndexError>;

    /// Takes back or finishes the changes that a crash has interrupted, durably when this returns. `begin`
    /// is called before the first change, if there is one. May be repeated, and crash.
    ///
    /// # Errors
    /// [`IndexError::Full`] if an interrupted creation cannot be finished; [`IndexError::Space`] for damage.
    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError>;

    /// The index of this root, usable at once.
    ///
    /// # Errors
    /// As for [`examine`](InPool::examine) and [`repair`](InPool::repair).
    fn open(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<Self, IndexError> {
        let index = Self::examine(space, root, leave)?;
        index.repair(|| ())?;
        Ok(index)
    }
}

/// An index that keeps its keys in the order of their bytes, and can be walked in it and against it.
pub trait BothWays: Index {
    /// How far a walk in order has come.
    type Scan: Send;
    /// How far a walk against the order has come.
    type ScanBack: Send;

    /// A walk that begins with the first key that is not lower than this one. An index that does not
    /// [have](Index::HAS_KEYS) its keys may tell some that are lower before it.
    fn scan_from(&self, key: &[u8]) -> Self::Scan;

    /// Tells the words of the next keys, in order, at most `limit`; `false`, without a call, at the end.
    fn next_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut Self::Scan,
        limit: usize,
        each: impl FnMut(u64),
    ) -> Result<bool, IndexError>;

    /// A walk against the order that begins with the last key below this bound, or at it if it is included.
    /// An index that does not [have](Index::HAS_KEYS) its keys may tell some that are beyond it before.
    fn scan_back_from(&self, bound: Bound<&[u8]>) -> Self::ScanBack;

    /// Tells the words of the next keys, the highest first, at most `limit`; `false`, without a call, at the
    /// end. A key that is there from the first call to the last is told exactly once, as by
    /// [`next_words`](BothWays::next_words).
    fn prev_words(
        &self,
        guard: &Guard<'_>,
        scan: &mut Self::ScanBack,
        limit: usize,
        each: impl FnMut(u64),
    ) -> Result<bool, IndexError>;
}

/// An index that can be walked in order and has the keys themselves.
pub trait InOrder: BothWays {
    /// Tells the next keys with their words, in order, at most `limit`; `false`, without a call, at the end.
    fn next_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut Self::Scan,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError>;

    /// Tells the next keys with their words, the highest first, at most `limit`; `false`, without a call, at
    /// the end. A key that is there from the first call to the last is told exactly once, as by
    /// [`next_in_order`](InOrder::next_in_order).
    fn prev_in_order(
        &self,
        guard: &Guard<'_>,
        scan: &mut Self::ScanBack,
        limit: usize,
        each: impl FnMut(&[u8], u64),
    ) -> Result<bool, IndexError>;
}
