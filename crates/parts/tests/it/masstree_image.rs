//! Images of Masstrees: the index that is loaded is the one that was saved, and grows on; any other image is
//! refused, or loads exactly as its bytes say.

use crate::masstree::pair::{Pair, participant};
use crate::shared::image::{InPieces, bytes_of};
use crate::shared::keyed::{ByKey, Walked};
use crate::shared::keys::{Keys, mix};
use proptest::prelude::*;
use quipu_parts::index::masstree::{Cursor, Masstree};
use quipu_parts::index::{ImageError, Imaged};

/// Bytes of an image's head, and of the fields before each key.
const HEAD: usize = 32;
const ENTRY: usize = 12;

fn load(bytes: &[u8]) -> Result<Masstree, ImageError> {
    Masstree::of_image(&InPieces { bytes, piece: 56, is_word: |_| true })
}

/// Lets a pair go on with the index that is made of its image.
fn reload(pair: &mut Pair) {
    let (before, bytes) = (pair.index.stats(), bytes_of(&pair.index));
    pair.index = load(&bytes).expect("an image");
    let participant = participant();
    let guard = participant.pin();
    pair.check(&guard);
    assert!(bytes_of(&pair.index) == bytes, "it is saved as it was loaded");
    let after = pair.index.stats();
    // Nodes that keys in their order have filled have room again, three places of fifteen.
    let most = |nodes: u64| nodes + nodes / 4 + before.layers + 1;
    assert!(after.layers <= before.layers && after.borders <= most(before.borders), "{before:?} {after:?}");
    // More of them may need a level more, which is a root beside one.
    assert!(after.inners <= most(before.inners) + before.layers + 1, "{before:?} {after:?}");
}

/// An image of these keys, which need not be in order, each with its place as its word. No key has anything
/// of the one before.
fn image_of(keys: &[&[u8]]) -> Vec<u8> {
    let mut bytes =
        [&b"SORT"[..], &1u32.to_le_bytes(), &(keys.len() as u64).to_le_bytes(), &[0; 16]].concat();
    for (key, word) in keys.iter().zip(1u64..) {
        bytes.extend(word.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend((key.len() as u16).to_le_bytes());
        bytes.extend_from_slice(key);
    }
    bytes
}

#[test]
fn an_index_is_the_one_that_its_image_was_made_of_and_grows_on() {
    for keys in Keys::ALL {
        // Around one node, around one inner node, and three levels.
        for count in [0, 1, 2, 14, 15, 16, 17, 239, 240, 241, 255, 256, 3_000, 5_000] {
            let participant = participant();
            let mut pair = Pair::default();
            for number in 0..count {
                pair.put(&participant.pin(), &keys.key(number));
            }
            reload(&mut pair);
            // Full nodes split, layers come and go.
            for number in 0..count + 40 {
                let (guard, key) = (participant.pin(), keys.key(number + count / 2));
                match mix(number) % 4 {
                    0 => pair.remove(&guard, &key),
                    1 => pair.replace(&guard, &key),
                    2 => pair.replace_at(&guard, &key),
                    _ => _ = pair.put(&guard, &key),
                }
            }
            pair.check(&participant.pin());
            reload(&mut pair);
            for key in pair.map.keys().cloned().collect::<Vec<_>>() {
                pair.remove(&participant.pin(), &key);
            }
            // Two epochs must pass.
            (0..3).for_each(|_| _ = participant.collect());
            let stats = pair.index.stats();
            let left = (pair.index.keys(), stats.layers, stats.borders, stats.inners, stats.suffix_bytes);
            assert_eq!(left, (0, 0, 1, 0, 0), "{keys:?} {count}");
        }
    }
}

/// Or the first keys of a run would split every node that they come to.
#[test]
fn loaded_nodes_have_room_for_some_keys() {
    let mut pair = Pair::default();
    let participant = participant();
    const KEYS: u64 = 20_000;
    (0..KEYS).for_each(|number| _ = pair.put(&participant.pin(), &Keys::Random8.key(number)));
    reload(&mut pair);
    let stats = pair.index.stats();
    assert_eq!((stats.borders, stats.splits), (KEYS.div_ceil(12), 0));
    assert!(stats.inners < stats.borders / 15 + 5, "{stats:?}");
    (KEYS..KEYS + KEYS / 20).for_each(|number| _ = pair.put(&participant.pin(), &Keys::Random8.key(number)));
    let splits = pair.index.stats().splits;
    assert!(splits < stats.borders / 20, "{splits} of {} nodes have split", stats.borders);
}

#[test]
fn the_longest_keys_share_thousands_of_layers() {
    let (mut pair, participant) = (Pair::default(), participant());
    let guard = participant.pin();
    let longest = vec![9; Masstree::MAX_KEY];
    for len in [0, 1, 8, 65_000, Masstree::MAX_KEY] {
        pair.put(&guard, &longest[..len]);
    }
    pair.put(&guard, &[&longest[..65_533], &[8]].concat());
    reload(&mut pair);
    assert_eq!(pair.index.stats().layers, 8_191);
}

/// The checkpoint proves the bytes. But an index of any bytes has the keys and words that they say, in order.
#[test]
fn of_an_image_with_a_flipped_bit_comes_what_it_says_or_nothing() {
    let participant = participant();
    for keys in Keys::ALL {
        let mut pair = Pair::default();
        (0..20).for_each(|number| _ = pair.put(&participant.pin(), &keys.key(number)));
        let bytes = bytes_of(&pair.index);
        let mut loaded = 0;
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let Ok(index) = load(&flipped) else { continue };
            loaded += 1;
            let guard = participant.pin();
            assert!(bytes_of(&index) == flipped, "{keys:?} bit {bit}");
            let mut told = 0;
            index.next_batch(&guard, &mut Cursor::default(), usize::MAX, |key, word| {
                assert_eq!(index.get(&guard, key).expect("sound"), Some(word), "{keys:?} bit {bit}");
                told += 1;
            });
            assert_eq!(told, index.keys());
            pair.map.keys().for_each(|key| _ = index.take(&guard, key).expect("sound"));
        }
        // Most bits of words and of the ends of keys make another index.
        assert!(loaded > pair.map.len() * 60, "{keys:?}: {loaded} loaded");
    }
}

#[test]
fn what_is_no_image_is_refused() {
    let (mut pair, participant) = (Pair::default(), participant());
    (0..100).for_each(|number| _ = pair.put(&participant.pin(), &Keys::Names.key(number)));
    let bytes = bytes_of(&pair.index);
    for len in 0..bytes.len() {
        assert_eq!(load(&bytes[..len]).err(), Some(ImageError), "cut off at {len}");
    }
    assert!(load(&[&bytes[..], &[0]].concat()).is_err());
    // The magic word, the version, the bytes that are zero; keys more or fewer.
    for at in 0..HEAD {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(load(&other).is_err(), "byte {at}");
    }
    let first: [u8; 8] = bytes[HEAD..HEAD + 8].try_into().expect("a word");
    let highest = u64::from_le_bytes(first).max(1) - 1;
    let source = InPieces { bytes: &bytes, piece: 64, is_word: |word| word <= highest };
    assert!(Masstree::of_image(&source).is_err(), "a word that the source does not know");

    assert!(load(&image_of(&[b"", b"a", b"b"])).is_ok());
    let mut zero = image_of(&[b"a", b"b"]);
    zero[HEAD + ENTRY + 1] = 0;
    assert!(load(&zero).is_err(), "zero is no word");
    for keys in [&[&b"b"[..], b"a"][..], &[b"a", b"a"], &[b"", b""], &[b"a", b""], &[b"a", b"b", b"ab"]] {
        assert!(load(&image_of(keys)).is_err(), "{keys:?} are not in order");
    }
    assert!(load(&image_of(&[b"a", b"ab"])).is_err(), "a byte in common that the image has twice");
    // A key that takes more of the one before than that has, and one that is too long.
    let long = [7; Masstree::MAX_KEY];
    let mut longer = image_of(&[&long, b"8"]);
    let common = HEAD + ENTRY + Masstree::MAX_KEY + 8;
    longer[common..common + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    assert!(load(&longer).is_err(), "a key of 65,536 bytes");
    let mut beyond = image_of(&[b"a", b"b"]);
    let common = HEAD + ENTRY + 1 + 8;
    beyond[common] = 2;
    assert!(load(&beyond).is_err(), "two bytes of a key of one");
}

/// Keys of 0 to 70 bytes that share prefixes of all lengths.
fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"\0\0\0\0\0\0\0\0"[..]),
        Just(&b"abcdefgh"[..]),
        Just(&b"abcdefg\0"[..]),
        Just(&b"abc"[..]),
        Just(&b"\xff\xff\xff\xff\xff\xff\xff\xff"[..]),
    ];
    let byte = prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()];
    (prop::collection::vec(piece, 0..9), prop::collection::vec(byte, 0..9)).prop_map(|(pieces, rest)| {
        let mut key = [pieces.concat(), rest].concat();
        key.truncate(70);
        key
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn equals_a_map_after_each_load(
        rounds in prop::collection::vec(prop::collection::vec((any_key(), any::<bool>()), 0..300), 1..4),
    ) {
        let participant = participant();
        let mut pair = Pair::default();
        for round in rounds {
            for (key, puts) in round {
                let guard = participant.pin();
                if puts { _ = pair.put(&guard, &key) } else { pair.remove(&guard, &key) }
            }
            pair.check(&participant.pin());
            reload(&mut pair);
        }
    }

    /// The order of the bytes is all that decides: keys that a map has in order are loaded, whatever they
    /// are.
    #[test]
    fn changed_images_bring_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        shape in 0..Keys::ALL.len(),
    ) {
        let participant = participant();
        let mut pair = Pair::default();
        (0..100).for_each(|number| _ = pair.put(&participant.pin(), &Keys::ALL[shape].key(number)));
        let mut bytes = bytes_of(&pair.index);
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let Ok(index) = load(&bytes) else { return Ok(()) };
        prop_assert!(bytes_of(&index) == bytes);
    }
}
