//! c-ALEX against a `BTreeMap`, one thread: operations over keys of awkward shapes, which proptest can
//! shrink.

use crate::shared::image::{InPieces, bytes_of};
use proptest::prelude::*;
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::{BothWays, ImageError, Imaged, Index, Key, Records};
use std::collections::BTreeMap;
use std::ops::Bound;

/// An index, and what should be in it. A word is the number of a key in `keys`, and of a version.
struct Pair {
    index: Alex,
    map: BTreeMap<Vec<u8>, u64>,
    keys: Vec<Vec<u8>>,
    participant: Participant,
}

/// The keys of words.
struct Keys<'k>(&'k [Vec<u8>]);

const VERSION: u64 = 1 << 32;

impl Keys<'_> {
    fn of(&self, word: u64) -> &[u8] {
        &self.0[(word % VERSION - 1) as usize]
    }
}

impl Records for Keys<'_> {
    fn hash_of(&self, _word: u64) -> u64 {
        unreachable!("it asks for keys")
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.of(word));
    }
}

fn sought(bytes: &[u8]) -> Key<'_> {
    Key { bytes, hash: bytes.len() as u64 }
}

impl Pair {
    fn new(index: Alex) -> Pair {
        let participant = Collector::new().register();
        Pair { index, map: BTreeMap::new(), keys: Vec::new(), participant }
    }

    fn put(&mut self, key: &[u8]) {
        let old = self.map.get(key).copied();
        let new = old.map_or_else(
            || {
                self.keys.push(key.to_vec());
                self.keys.len() as u64
            },
            |old| old + VERSION,
        );
        let keys = Keys(&self.keys);
        let matches = |word| keys.of(word) == key;
        let found = self.index.upsert(&self.participant.pin(), sought(key), new, None, matches, &keys);
        assert_eq!(found.expect("room"), old, "{key:?}");
        self.map.insert(key.to_vec(), new);
    }

    fn take(&mut self, key: &[u8]) {
        let keys = Keys(&self.keys);
        let found = self.index.take(&self.participant.pin(), sought(key), None, |word| keys.of(word) == key);
        assert_eq!(found.expect("sound"), self.map.remove(key), "{key:?}");
    }

    fn replace(&mut self, key: &[u8]) {
        let old = self.map.get(key).copied();
        let (was, new) = (old.unwrap_or(VERSION - 1), old.unwrap_or(1) + VERSION);
        let done = self.index.replace(&self.participant.pin(), sought(key), was, new).expect("sound");
        assert_eq!(done, old.is_some(), "{key:?}");
        if done {
            self.map.insert(key.to_vec(), new);
        }
    }

    fn get(&self, guard: &Guard<'_>, key: &[u8]) -> Option<u64> {
        let keys = Keys(&self.keys);
        self.index.get(guard, sought(key), |word| keys.of(word) == key).expect("sound")
    }

    /// Walks from a key on, and back from it.
    fn walk(&self, from: &[u8], limit: usize) {
        let keys = Keys(&self.keys);
        let (mut scan, mut found) = (self.index.scan_from(from), Vec::new());
        while self
            .index
            .next_words(&self.participant.pin(), &mut scan, limit, |word| found.push(word))
            .expect("sound")
        {}
        let first = found.iter().take_while(|word| keys.of(**word) < from).count();
        assert!(first <= 1, "one key shares a slice with that one");
        let expected: Vec<u64> = self.map.range(from.to_vec()..).map(|(_, word)| *word).collect();
        assert_eq!(found[first..], expected, "from {from:?}");
        for bound in [Bound::Included(from), Bound::Excluded(from), Bound::Unbounded] {
            let (mut scan, mut found) = (self.index.scan_back_from(bound), Vec::new());
            while self
                .index
                .prev_words(&self.participant.pin(), &mut scan, limit, |word| found.push(word))
                .expect("sound")
            {}
            let is_beyond = |word: &&u64| match bound {
                Bound::Included(to) => keys.of(**word) > to,
                Bound::Excluded(to) => keys.of(**word) >= to,
                Bound::Unbounded => false,
            };
            let first = found.iter().take_while(is_beyond).count();
            assert!(first <= 1, "likewise");
            let below = self.map.range::<[u8], _>((Bound::Unbounded, bound));
            let expected: Vec<u64> = below.rev().map(|(_, word)| *word).collect();
            assert_eq!(found[first..], expected, "back from {bound:?}");
        }
    }

    /// Goes on with the index that is made of this one's image.
    fn reload(&mut self) {
        let bytes = bytes_of(&self.index);
        self.index = load(&bytes).expect("an image");
        assert!(bytes_of(&self.index) == bytes, "it is saved as it was loaded");
    }

    fn check(&self) {
        let guard = self.participant.pin();
        for key in &self.keys {
            assert_eq!(self.get(&guard, key), self.map.get(key).copied(), "{key:?}");
        }
        assert_eq!(self.index.len(&guard).expect("sound"), self.map.len() as u64);
        self.walk(b"", 1_000);
    }
}

fn load(bytes: &[u8]) -> Result<Alex, ImageError> {
    Alex::of_image(&InPieces { bytes, piece: 56, is_word: |word| word % VERSION < 1_000_000 })
}

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>),
    Take(Vec<u8>),
    Replace(Vec<u8>),
    Walk(Vec<u8>, usize),
    Reload,
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()];
    let slice = prop_oneof![
        4 => Just([0; 8]),
        4 => Just([255; 8]),
        4 => Just(*b"abcdefgh"),
        2 => Just(*b"abcdefg\0"),
        1 => any::<[u8; 8]>()
    ];
    (prop::collection::vec(slice, 0..8), prop::collection::vec(byte, 0..9))
        .prop_map(|(slices, rest)| [slices.concat(), rest].concat())
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_key().prop_map(Step::Put),
        3 => any_key().prop_map(Step::Take),
        1 => any_key().prop_map(Step::Replace),
        1 => Just(Step::Reload),
        1 => (any_key(), 1..40usize).prop_map(|(key, limit)| Step::Walk(key, limit)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn behaves_like_a_map(steps in prop::collection::vec(any_step(), 0..400), in_chunks in any::<bool>()) {
        let mut pair = Pair::new(if in_chunks { Alex::tiny_in_chunks() } else { Alex::tiny() });
        for step in steps {
            match step {
                Step::Put(key) => pair.put(&key),
                Step::Take(key) => pair.take(&key),
                Step::Replace(key) => pair.replace(&key),
                Step::Walk(key, limit) => pair.walk(&key, limit),
                Step::Reload => pair.reload(),
            }
        }
        pair.check();
    }

    /// Of other bytes it makes an index whose walks come to an end, or none.
    #[test]
    fn other_bytes_are_no_image_or_a_sound_index(
        keys in prop::collection::vec(any_key(), 0..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut pair = Pair::new(Alex::tiny());
        keys.iter().for_each(|key| pair.put(key));
        let mut bytes = bytes_of(&pair.index);
        prop_assert!(load(&bytes[..cut.index(bytes.len())]).is_err());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(index) = load(&bytes) {
            let (mut walk, mut words) = (index.scan_from(b""), Vec::new());
            while index.next_words(&pair.participant.pin(), &mut walk, 7, |word| words.push(word)).expect("sound") {}
            prop_assert_eq!(words.len() as u64, index.len(&pair.participant.pin()).expect("sound"));
        }
    }
}

#[test]
fn the_shortest_and_the_longest_keys() {
    let mut pair = Pair::new(Alex::new());
    let longest = vec![9; 65_535];
    let mut other = longest.clone();
    other[65_533] = 8;
    for key in [&longest, &other, &longest[..65_000].to_vec(), &Vec::new()] {
        pair.put(key);
        pair.check();
    }
    pair.walk(&longest[..30_000], 1);
    pair.reload();
    pair.check();
    for key in [&longest, &other, &longest[..65_000].to_vec(), &Vec::new()] {
        pair.take(key);
        pair.check();
    }
}

/// Keys of 16 bytes of which two share each first half.
#[test]
fn pairs_of_keys_take_little_memory() {
    let mut pair = Pair::new(Alex::new());
    let mix = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
    for number in 0..50_000u64 {
        for half in 0..2u64 {
            let rest = mix(number * 2 + half + 1);
            pair.put(&[mix(number).to_be_bytes(), rest.to_be_bytes()].concat());
        }
    }
    let bytes = pair.index.stats().bytes / 100_000;
    assert!(bytes <= 80, "{bytes} bytes a key");
    pair.check();
}
