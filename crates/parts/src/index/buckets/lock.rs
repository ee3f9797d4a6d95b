//! Where the locks of the buckets are: in a table in DRAM, or, as a variant to compare with, in the buckets.
//!
//! A chain has one lock, that of its first bucket: with one a bucket, two writers could place a key twice.
//! Writers take it; readers take none with [`TableLocks`], the point of the system (MPKV, sections 3.1 and
//! 3.2).
//!
//! [`BucketLocks`] is the paper's baseline (section 4.1), in which readers and writers lock. The lock is the
//! first word of the bucket, so there are seven slots. It shares the line of the slots, as the paper says of
//! such designs (3.1); a line of its own would add a miss that none of them has. Its stores go to PM as all
//! others do. It is no more durable than it happens to be, and cleared in all buckets when the index is
//! opened, which takes as long as there are buckets.

use crate::index::words::Words;
use crate::locks::{LockGuard, LockTable};
use crate::sync::{Waiter, point};

/// A kind of locks.
pub trait Locking: Default + Send + Sync + 'static {
    /// Slots at the beginning of each bucket that are the lock's.
    const SLOTS: usize;
    /// Tells zones of an index with such locks from others.
    const MAGIC: [u8; 4];
    /// Holds a chain for a change.
    type Exclusive<'l, W: Words>;
    /// Holds a chain for reading.
    type Shared<'l, W: Words>;

    /// Waits for the lock of the chain that begins here.
    fn lock<'l, W: Words>(&'l self, words: &'l W, place: u64) -> Self::Exclusive<'l, W>;

    /// Waits for the locks of two chains. The caller holds no other lock.
    fn lock_both<'l, W: Words>(
        &'l self,
        words: &'l W,
        places: [u64; 2],
    ) -> (Self::Exclusive<'l, W>, Option<Self::Exclusive<'l, W>>);

    /// Waits until the chain that begins here may be read.
    fn share<'l, W: Words>(&'l self, words: &'l W, place: u64) -> Self::Shared<'l, W>;

    /// Prefetches the words that locking reads.
    fn prefetch(&self, place: u64);

    /// Frees the lock that an earlier run may have left taken; `begin` is called before that.
    fn clear<W: Words>(words: &W, place: u64, begin: impl FnOnce());

    /// Bytes of DRAM.
    fn bytes(&self) -> u64;
}

/// Locks for writers, in DRAM.
#[derive(Default)]
pub struct TableLocks(LockTable);

impl Locking for TableLocks {
    const SLOTS: usize = 0;
    const MAGIC: [u8; 4] = *b"QBKT";
    type Exclusive<'l, W: Words> = LockGuard<'l>;
    type Shared<'l, W: Words> = ();

    #[inline]
    fn lock<'l, W: Words>(&'l self, _words: &'l W, place: u64) -> LockGuard<'l> {
        self.0.lock(place)
    }

    fn lock_both<'l, W: Words>(
        &'l self,
        _words: &'l W,
        places: [u64; 2],
    ) -> (LockGuard<'l>, Option<LockGuard<'l>>) {
        self.0.lock_both(places)
    }

    #[inline]
    fn share<'l, W: Words>(&'l self, _words: &'l W, _place: u64) {}

    #[inline]
    fn prefetch(&self, place: u64) {
        self.0.prefetch(place);
    }

    fn clear<W: Words>(_words: &W, _place: u64, _begin: impl FnOnce()) {}

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

/// Reader-writer locks in the buckets: readers in the lower bits of the word, and a writer in the highest.
#[derive(Default)]
pub struct BucketLocks;

const WRITER: u64 = 1 << 63;

/// Holds a [`BucketLocks`] lock for a change.
#[must_use = "the lock is given back when this drops"]
pub struct Writer<'l, W: Words> {
    words: &'l W,
    place: u64,
}

impl<W: Words> Drop for Writer<'_, W> {
    fn drop(&mut self) {
        self.words.store(self.place, 0);
    }
}

/// Holds a [`BucketLocks`] lock for reading.
#[must_use = "the lock is given back when this drops"]
pub struct Reader<'l, W: Words> {
    words: &'l W,
    place: u64,
}

impl<W: Words> Drop for Reader<'_, W> {
    fn drop(&mut self) {
        let mut waiter = Waiter::default();
        loop {
            let readers = self.words.load(self.place);
            if self.words.swap(self.place, readers, readers.saturating_sub(1)) {
                return;
            }
            waiter.wait();
        }
    }
}

impl Locking for BucketLocks {
    const SLOTS: usize = 1;
    const MAGIC: [u8; 4] = *b"QBKL";
    type Exclusive<'l, W: Words> = Writer<'l, W>;
    type Shared<'l, W: Words> = Reader<'l, W>;

    fn lock<'l, W: Words>(&'l self, words: &'l W, place: u64) -> Writer<'l, W> {
        point();
        let mut waiter = Waiter::default();
        while words.load(place) != 0 || !words.swap(place, 0, WRITER) {
            waiter.wait();
        }
        Writer { words, place }
    }

    fn lock_both<'l, W: Words>(
        &'l self,
        words: &'l W,
        places: [u64; 2],
    ) -> (Writer<'l, W>, Option<Writer<'l, W>>) {
        let [one, other] = places;
        let first = self.lock(words, one.min(other));
        (first, (one != other).then(|| self.lock(words, one.max(other))))
    }

    fn share<'l, W: Words>(&'l self, words: &'l W, place: u64) -> Reader<'l, W> {
        point();
        let mut waiter = Waiter::default();
        loop {
            let readers = words.load(place);
            if readers & WRITER == 0 && words.swap(place, readers, readers + 1) {
                return Reader { words, place };
            }
            waiter.wait();
        }
    }

    fn prefetch(&self, _place: u64) {}

    fn clear<W: Words>(words: &W, place: u64, begin: impl FnOnce()) {
        if words.load(place) != 0 {
            begin();
            words.store(place, 0);
        }
    }

    fn bytes(&self) -> u64 {
        0
    }
}
