//! Images of hash indexes: saved and loaded they are the same, and other bytes are loaded without a panic.

use crate::shared::image::{InPieces, bytes_of};
use crate::shared::keyed::ByHash;
use proptest::prelude::*;
use quipu_parts::epoch::Collector;
use quipu_parts::index::hash::{Cursor, HashIndex, HashIndexSettings};
use quipu_parts::index::{ImageError, Imaged};
use std::collections::BTreeSet;

/// Bytes of the shape of an image.
const HEAD: usize = 32;

/// Scatters a number over 64 bits, one to one.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// An index of the keys from 1 on, each its own reference; with `few` hashes, so that chains overflow.
fn index_of(settings: HashIndexSettings, keys: u64, few: Option<u64>) -> (HashIndex, impl Fn(u64) -> u64) {
    let hash = move |key: u64| mix(few.map_or(key, |few| key % few));
    let index = HashIndex::new(settings);
    let collector = Collector::new();
    let participant = collector.register();
    for key in 1..=keys {
        index.insert(&participant.pin(), hash(key), key, &hash);
    }
    (index, hash)
}

/// Loads an image, segments in pieces, as where they lie across two zones.
fn load(bytes: &[u8], is_word: impl Fn(u64) -> bool + Sync) -> Result<HashIndex, ImageError> {
    HashIndex::of_image(&InPieces { bytes, piece: 56, is_word })
}

fn references(index: &HashIndex) -> BTreeSet<u64> {
    let collector = Collector::new();
    let participant = collector.register();
    let (mut cursor, mut all) = (Cursor::default(), Vec::new());
    while index.next_batch(&participant.pin(), &mut cursor, &mut all) {}
    let unique: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(unique.len(), all.len(), "a reference twice");
    unique
}

#[test]
fn a_loaded_index_is_the_one_that_was_saved_and_grows_on() {
    for (settings, keys, few) in [
        (HashIndexSettings::default(), 0, None),
        (HashIndexSettings::default(), 200_000, None),
        (HashIndexSettings::tiny(), 0, None),
        (HashIndexSettings::tiny(), 1, None),
        (HashIndexSettings::tiny(), 100_000, None),
        (HashIndexSettings::tiny(), 3_000, Some(5)),
    ] {
        let (index, hash) = index_of(settings, keys, few);
        let bytes = bytes_of(&index);
        let loaded = load(&bytes, |reference| reference <= keys).expect("an image");
        // Chains are pushed in another order.
        assert!(few.is_some() || bytes_of(&loaded) == bytes, "it is saved as it was loaded");
        assert!(loaded.len() == keys && references(&loaded).into_iter().eq(1..=keys));
        let (before, after) = (index.stats(), loaded.stats());
        assert_eq!((before.segments, before.depth), (after.segments, after.depth));
        assert_eq!((before.slots, before.overflowing), (after.slots, after.overflowing));
        drop(index);
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let found = |key| loaded.get(&guard, hash(key), |reference| reference == key) == Some(key);
        assert!((1..=keys).all(found));
        // Splits need the tags and windows that were loaded.
        for key in keys + 1..=2 * keys {
            loaded.insert(&guard, hash(key), key, &hash);
        }
        assert!((1..=2 * keys).all(found));
        for key in 1..=2 * keys {
            assert!(loaded.remove(&guard, hash(key), key));
        }
        assert!(loaded.is_empty() && loaded.stats().strays == 0);
    }
}

#[test]
fn what_is_no_reference_is_refused() {
    let (index, _) = index_of(HashIndexSettings::tiny(), 1000, Some(3));
    let bytes = bytes_of(&index);
    assert!(load(&bytes, |reference| reference != 777).is_err());
    assert!(load(&bytes[..bytes.len() - 8], |_| true).is_err());
    for version in [0, 1, 3] {
        let mut other = bytes.clone();
        other[0] = version;
        assert!(load(&other, |_| true).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Images that were changed anywhere load or do not load, and an index that loaded can be worked with.
    #[test]
    fn changed_images_bring_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0u8..4, any::<bool>()), 1..30),
        few in prop::option::of(2u64..20),
    ) {
        let (index, hash) = index_of(HashIndexSettings::tiny(), 300, few);
        let mut bytes = bytes_of(&index);
        // What describes the four segments that there are at least.
        let head = HEAD + 4 * 8;
        for (place, word, kind, in_head) in changes {
            let at = place.index(if in_head { head } else { bytes.len() });
            let new = match kind {
                0 => word as u8,
                1 => 0,
                2 => bytes[at].wrapping_add(1),
                _ => bytes[at] ^ 1 << (word % 8),
            };
            bytes[at] = new;
        }
        let Ok(loaded) = load(&bytes, |reference| reference < 1 << 40) else { return Ok(()) };
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        for key in 1..=600u64 {
            loaded.get(&guard, hash(key), |reference| reference == key);
            loaded.upsert(&guard, hash(key), key, |reference| reference == key, &hash);
            prop_assert!(loaded.get(&guard, hash(key), |reference| reference == key).is_some());
        }
        for key in (1..=600u64).step_by(2) {
            loaded.take(&guard, hash(key), |reference| reference == key);
        }
        loaded.stats();
        let (mut cursor, mut all) = (Cursor::default(), Vec::new());
        while loaded.next_batch(&guard, &mut cursor, &mut all) {}
        prop_assert_eq!(all.len() as u64, loaded.len());
    }
}
