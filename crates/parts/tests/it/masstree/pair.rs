//! An index, and the map that it should equal, one thread.

use crate::shared::keyed::{ByKey, Walked};
use crate::shared::keys::mix;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::index::masstree::{BackCursor, Cursor, Masstree};
use quipu_parts::index::{BothWays, Hint};
use std::collections::BTreeMap;

/// An index and the map that it should equal.
#[derive(Default)]
pub struct Pair {
    pub index: Masstree,
    pub map: BTreeMap<Vec<u8>, u64>,
    /// Words are never used twice.
    words: u64,
}

impl Pair {
    fn next_word(&mut self) -> u64 {
        self.words += 1;
        // Words of all sizes, some of which could be taken for links.
        if self.words.is_multiple_of(2) { self.words } else { mix(self.words) | 1 << 63 }
    }

    /// Lets a key have the next word.
    pub fn put(&mut self, guard: &Guard<'_>, key: &[u8]) -> Hint {
        let word = self.next_word();
        let old = self.map.insert(key.to_vec(), word);
        assert_eq!(self.index.get(guard, key).expect("sound"), old);
        assert_eq!(self.index.upsert(guard, key, word).expect("room"), old, "{key:?}");
        assert_eq!(self.index.get(guard, key).expect("sound"), Some(word), "{key:?}");
        self.index.locate(guard, key).expect("a hint")
    }

    /// Lets a key have the next word in place of its own, if it is there.
    pub fn replace(&mut self, guard: &Guard<'_>, key: &[u8]) {
        let new = self.next_word();
        match self.map.get_mut(key) {
            Some(word) => {
                assert!(!self.index.replace(guard, key, *word ^ 1 << 62, new).expect("sound"));
                assert!(self.index.replace(guard, key, *word, new).expect("sound"));
                *word = new;
            }
            None => assert!(!self.index.replace(guard, key, 1, new).expect("sound")),
        }
    }

    /// The same, by its hint.
    pub fn replace_at(&mut self, guard: &Guard<'_>, key: &[u8]) {
        let new = self.next_word();
        let hint = self.index.locate(guard, key).expect("a hint");
        assert!(hint.bits() != 0 && hint.bits() < 1 << Hint::BITS);
        if let Some(word) = self.map.get_mut(key) {
            self.index.prefetch_at(guard, hint);
            assert!(self.index.replace_at(guard, Hint::from_bits(hint.bits()), *word, new));
            assert!(!self.index.replace_at(guard, hint, *word, new), "replaced twice");
            *word = new;
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, guard: &Guard<'_>, key: &[u8]) {
        let old = self.map.remove(key);
        if let Some(old) = old
            && old.is_multiple_of(3)
        {
            assert!(!self.index.remove_if(guard, key, old ^ 1 << 62).expect("sound"), "removed another word");
            assert!(self.index.remove_if(guard, key, old).expect("sound"));
        } else {
            assert_eq!(self.index.take(guard, key).expect("sound"), old, "{key:?}");
        }
        assert_eq!(self.index.get(guard, key).expect("sound"), None);
    }

    /// The walk from a cursor, in batches of `limit`, equals the map from there on, for so many keys.
    fn check_walk<'m>(
        &self,
        guard: &Guard<'_>,
        mut cursor: Cursor,
        limit: usize,
        keys: usize,
        mut expected: impl Iterator<Item = (&'m Vec<u8>, &'m u64)>,
    ) {
        let mut left = keys;
        loop {
            let asked = limit.min(left);
            let visited = self.index.next_batch(guard, &mut cursor, asked, |key, word| {
                let expected = expected.next().map(|(key, word)| (key.as_slice(), *word));
                assert_eq!(Some((key, word)), expected);
            });
            left -= visited;
            if left == 0 {
                return;
            }
            if visited < asked {
                assert!(expected.next().is_none(), "the walk ends too early");
                assert_eq!(self.index.next_batch(guard, &mut cursor, 1, |_, _| panic!("behind the end")), 0);
                return;
            }
        }
    }

    /// The walk back from a cursor, in batches of `limit`, equals the map from there on, for at least so many
    /// keys.
    fn check_walk_back<'m>(
        &self,
        guard: &Guard<'_>,
        mut cursor: BackCursor,
        limit: usize,
        keys: usize,
        mut expected: impl Iterator<Item = (&'m Vec<u8>, &'m u64)>,
    ) {
        let mut seen = 0;
        while seen < keys {
            let visited = self.index.prev_batch(guard, &mut cursor, limit, |key, word| {
                let expected = expected.next().map(|(key, word)| (key.as_slice(), *word));
                assert_eq!(Some((key, word)), expected);
            });
            seen += visited;
            if visited < limit {
                assert!(expected.next().is_none(), "the walk ends too early");
                assert_eq!(self.index.prev_batch(guard, &mut cursor, 1, |_, _| panic!("behind the end")), 0);
                return;
            }
        }
    }

    /// The index equals the map.
    pub fn check(&self, guard: &Guard<'_>) {
        for (key, word) in &self.map {
            assert_eq!(self.index.get(guard, key).expect("sound"), Some(*word), "{key:?}");
        }
        assert_eq!(self.index.keys(), self.map.len() as u64);
        assert_eq!(self.index.keys() == 0, self.map.is_empty());
        for limit in [1, 7, usize::MAX] {
            self.check_walk(guard, Cursor::default(), limit, usize::MAX, self.map.iter());
            self.check_walk_back(guard, BackCursor::default(), limit, usize::MAX, self.map.iter().rev());
            let (mut cursor, mut words) = (Cursor::default(), Vec::new());
            while self.index.next_words(guard, &mut cursor, limit, |word| words.push(word)).expect("sound") {}
            assert!(words.iter().eq(self.map.values()), "the words of a walk by {limit}");
            let (mut cursor, mut words) = (BackCursor::default(), Vec::new());
            while self.index.prev_words(guard, &mut cursor, limit, |word| words.push(word)).expect("sound") {}
            assert!(words.iter().eq(self.map.values().rev()), "the words of a walk back by {limit}");
        }
    }

    /// Walks that begin at and behind a key.
    pub fn check_from(&self, guard: &Guard<'_>, key: &[u8]) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = |bound| self.map.range::<[u8], _>((bound, Unbounded));
        self.check_walk(guard, Cursor::at(key), 3, 20, from(Included(key)));
        let to = |bound| self.map.range::<[u8], _>((Unbounded, bound)).rev();
        self.check_walk_back(guard, BackCursor::at(key), 5, 20, to(Included(key)));
        self.check_walk_back(guard, BackCursor::before(key), 6, 20, to(Excluded(key)));
    }
}

/// A participant that works on an index by itself.
pub fn participant() -> Participant {
    Collector::new().register()
}
