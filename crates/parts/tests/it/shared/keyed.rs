//! Indexes by hashes alone or by keys alone, for tests in which nothing else of a key matters.

use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::{Hint, InOrder, Index, IndexError, Key};
use quipu_parts::space::ZoneId;

/// A key that is its hash.
pub fn by_hash(hash: u64) -> Key<'static> {
    Key { bytes: &[], hash }
}

/// A key that is its bytes.
pub fn by_bytes(bytes: &[u8]) -> Key<'_> {
    Key { bytes, hash: 0 }
}

/// Longer than any key of an index.
const NO_KEY: Key<'_> = Key { bytes: &[0; 1 << 17], hash: 0 };

/// A sound index of hashes.
pub trait ByHash: Index {
    fn get(&self, guard: &Guard<'_>, hash: u64, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        Index::get(self, guard, by_hash(hash), matches).expect("sound")
    }

    fn upsert(
        &self,
        guard: &Guard<'_>,
        hash: u64,
        new: u64,
        matches: impl FnMut(u64) -> bool,
        rehash: &dyn Fn(u64) -> u64,
    ) -> Option<u64> {
        Index::upsert(self, guard, by_hash(hash), new, None, matches, &rehash).expect("room")
    }

    /// Adds a key that is absent.
    fn insert(&self, guard: &Guard<'_>, hash: u64, new: u64, rehash: &dyn Fn(u64) -> u64) {
        assert_eq!(ByHash::upsert(self, guard, hash, new, |_| false, rehash), None);
    }

    fn replace(&self, guard: &Guard<'_>, hash: u64, old: u64, new: u64) -> bool {
        Index::replace(self, guard, by_hash(hash), old, new).expect("sound")
    }

    fn take(&self, guard: &Guard<'_>, hash: u64, matches: impl FnMut(u64) -> bool) -> Option<u64> {
        Index::take(self, guard, by_hash(hash), None, matches).expect("sound")
    }

    /// Removes a key if it has this reference.
    fn remove(&self, guard: &Guard<'_>, hash: u64, old: u64) -> bool {
        ByHash::take(self, guard, hash, |reference| reference == old).is_some()
    }

    fn candidate(&self, guard: &Guard<'_>, hash: u64) -> Option<u64> {
        Index::candidate(self, guard, by_hash(hash), None)
    }

    fn prefetch(&self, guard: &Guard<'_>, hash: u64) {
        Index::prefetch(self, guard.participant(), by_hash(hash));
    }

    fn next_batch(&self, guard: &Guard<'_>, cursor: &mut Self::Cursor, out: &mut Vec<u64>) -> bool {
        Index::next_batch(self, guard, cursor, out).expect("sound")
    }

    fn len(&self) -> u64 {
        Index::len(self, &Collector::new().register().pin()).expect("sound")
    }

    fn is_empty(&self) -> bool {
        ByHash::len(self) == 0
    }

    fn growing(&self) -> bool {
        Index::growing(self)
    }
}

impl<I: Index> ByHash for I {}

/// An index of keys.
pub trait ByKey: Index {
    fn get(&self, guard: &Guard<'_>, key: &[u8]) -> Result<Option<u64>, IndexError> {
        Index::get(self, guard, by_bytes(key), |_| unreachable!("it has the keys"))
    }

    fn names(&self, guard: &Guard<'_>, key: &[u8], word: u64) -> Result<bool, IndexError> {
        Index::names(self, guard, by_bytes(key), word)
    }

    fn upsert(&self, guard: &Guard<'_>, key: &[u8], new: u64) -> Result<Option<u64>, IndexError> {
        let (key, matches) = (by_bytes(key), |_| unreachable!("it has the keys"));
        let near = Index::prefetch_to_write(self, guard.participant(), key);
        Index::upsert(self, guard, key, new, near, matches, &|_| unreachable!("it has the keys"))
    }

    /// Adds a key that is absent, and tells where it stands.
    fn insert(&self, guard: &Guard<'_>, key: &[u8], new: u64) -> Result<Hint, IndexError> {
        ByKey::upsert(self, guard, key, new)?;
        self.locate(guard, key)
    }

    fn replace(&self, guard: &Guard<'_>, key: &[u8], old: u64, new: u64) -> Result<bool, IndexError> {
        Index::replace(self, guard, by_bytes(key), old, new)
    }

    fn take(&self, guard: &Guard<'_>, key: &[u8]) -> Result<Option<u64>, IndexError> {
        let near = Index::prefetch_to_write(self, guard.participant(), by_bytes(key));
        Index::take(self, guard, by_bytes(key), near, |_| unreachable!("it has the keys"))
    }

    /// Removes a key if it has this word.
    fn remove_if(&self, guard: &Guard<'_>, key: &[u8], old: u64) -> Result<bool, IndexError> {
        let has_it = ByKey::get(self, guard, key)? == Some(old);
        Ok(has_it && ByKey::take(self, guard, key)? == Some(old))
    }

    /// Where a key stands or would be put.
    fn locate(&self, guard: &Guard<'_>, key: &[u8]) -> Result<Hint, IndexError> {
        let hint = Index::hint(self, guard, by_bytes(key))?;
        Ok(Hint::from_bits(hint.expect("there are hints")))
    }

    fn prefetch_at(&self, guard: &Guard<'_>, hint: Hint) {
        let kept = Index::prefetch_repoint(self, guard.participant(), Some(hint.bits()), NO_KEY);
        assert_eq!(kept, Some(hint.bits()));
    }

    /// Replaces a word where a hint leads to it, and nowhere else.
    fn replace_at_unflushed(
        &self,
        guard: &Guard<'_>,
        hint: Hint,
        old: u64,
        new: u64,
    ) -> Option<Self::Unflushed> {
        let done = Index::repoint(self, guard, Some(hint.bits()), NO_KEY, old, new).ok().flatten()?;
        assert!(done.by_hint, "nobody has such a key");
        Some(done.unflushed)
    }

    fn replace_at(&self, guard: &Guard<'_>, hint: Hint, old: u64, new: u64) -> bool {
        let Some(replaced) = self.replace_at_unflushed(guard, hint, old, new) else { return false };
        self.persist_all([replaced]);
        true
    }

    fn replace_unflushed(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        old: u64,
        new: u64,
    ) -> Result<Option<Self::Unflushed>, IndexError> {
        let done = Index::repoint(self, guard, None, by_bytes(key), old, new)?;
        Ok(done.map(|done| done.unflushed))
    }

    fn persist_all(&self, unflushed: impl IntoIterator<Item = Self::Unflushed>) {
        let mut unflushed = unflushed.into_iter().collect();
        Index::persist(self, &Collector::new().register().pin(), &mut unflushed);
        assert!(unflushed.is_empty());
    }

    fn len(&self, guard: &Guard<'_>) -> Result<u64, IndexError> {
        Index::len(self, guard)
    }

    /// Keys, of a sound index.
    fn keys(&self) -> u64 {
        Index::len(self, &Collector::new().register().pin()).expect("sound")
    }

    fn zones(&self) -> Vec<ZoneId> {
        Index::zones(self)
    }
}

impl<I: Index> ByKey for I {}

/// Keys of an index.
pub fn len(index: &impl Index) -> Result<u64, IndexError> {
    index.len(&Collector::new().register().pin())
}

/// Lets a key have another reference, not yet durable, as a cleaner does.
pub fn repoint<I: Index>(
    index: &I,
    guard: &Guard<'_>,
    hash: u64,
    old: u64,
    new: u64,
) -> Option<I::Unflushed> {
    let done = index.repoint(guard, None, by_hash(hash), old, new).expect("sound");
    done.map(|done| done.unflushed)
}

/// A sound index that is walked in batches, of which only the last has fewer keys than were asked for.
pub trait Walked: InOrder {
    fn next_batch(
        &self,
        guard: &Guard<'_>,
        scan: &mut Self::Scan,
        limit: usize,
        mut each: impl FnMut(&[u8], u64),
    ) -> usize {
        let mut told = 0;
        let count = |key: &[u8], word| {
            told += 1;
            each(key, word);
        };
        let any = self.next_in_order(guard, scan, limit, count).expect("sound");
        assert_eq!(any, told > 0);
        told
    }

    fn prev_batch(
        &self,
        guard: &Guard<'_>,
        scan: &mut Self::ScanBack,
        limit: usize,
        mut each: impl FnMut(&[u8], u64),
    ) -> usize {
        let mut told = 0;
        let count = |key: &[u8], word| {
            told += 1;
            each(key, word);
        };
        let any = self.prev_in_order(guard, scan, limit, count).expect("sound");
        assert_eq!(any, told > 0);
        told
    }
}

impl<I: InOrder> Walked for I {}
