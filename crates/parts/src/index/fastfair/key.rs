//! Keys: as callers give them, and as they stand in nodes.
//!
//! A key of exactly eight bytes stands in the key word, as the number that it is in big-endian order. Any
//! other is kept in chunks (see `blob`). Its key word names the first chunk and has sixteen bits of a hash,
//! by which a lookup tells almost all other keys apart without reading them. Which of the two it is, the
//! highest bit of the word beside it says: of the value, the child or the sibling.

use super::settings::{KEY_MAX, Result};
use crate::index::IndexError;
use twox_hash::XxHash3_64;

/// Bits of a chunk's number.
pub(super) const CHUNK_BITS: u32 = 48;

/// A key as it stands in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) word: u64,
    /// Whether the word names chunks.
    pub(super) is_kept: bool,
}

impl Stored {
    /// A key kept in chunks, the first of which has this number.
    pub(super) fn kept(chunk: u64, bytes: &[u8]) -> Stored {
        Stored { word: fingerprint(bytes) << CHUNK_BITS | chunk, is_kept: true }
    }

    /// Whether the fingerprint is that of this key. It is kept in chunks.
    pub(super) fn may_be(self, bytes: &[u8]) -> bool {
        self.word >> CHUNK_BITS == fingerprint(bytes)
    }

    /// The first chunk of a key that is kept in chunks.
    pub(super) fn chunk(self) -> u64 {
        self.word & ((1 << CHUNK_BITS) - 1)
    }
}

fn fingerprint(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes) >> CHUNK_BITS
}

/// A key as it is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key<'a> {
    /// Of eight bytes.
    Word(u64),
    /// Of any other length, with its fingerprint.
    Bytes(&'a [u8], u64),
}

impl Key<'_> {
    /// The lowest key.
    pub(super) const MIN: Key<'static> = Key::Bytes(&[], 0);

    /// The key of these bytes.
    pub(super) fn new(bytes: &[u8]) -> Result<Key<'_>> {
        if bytes.len() > KEY_MAX {
            return Err(IndexError::KeyTooLong { len: bytes.len(), max: KEY_MAX });
        }
        Ok(Key::of(bytes))
    }

    fn of(bytes: &[u8]) -> Key<'_> {
        match bytes.try_into() {
            Ok(word) => Key::Word(u64::from_be_bytes(word)),
            Err(_) => Key::Bytes(bytes, fingerprint(bytes)),
        }
    }

    /// Whether a key in a node may be this one; if it is not kept in chunks, it is.
    #[inline]
    pub(super) fn is_likely(&self, stored: Stored) -> bool {
        match self {
            Key::Word(word) => !stored.is_kept && stored.word == *word,
            Key::Bytes(_, fingerprint) => stored.is_kept && stored.word >> CHUNK_BITS == *fingerprint,
        }
    }

    /// The key as it stands in a node if it need not be kept in chunks.
    pub(super) fn stored(&self) -> Option<Stored> {
        match self {
            Key::Word(word) => Some(Stored { word: *word, is_kept: false }),
            Key::Bytes(..) => None,
        }
    }

    pub(super) fn to_buf(self) -> KeyBuf {
        match self {
            Key::Word(word) => KeyBuf::Word(word),
            Key::Bytes(bytes, _) => KeyBuf::Bytes(bytes.to_vec()),
        }
    }
}

/// A key of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyBuf {
    Word(u64),
    Bytes(Vec<u8>),
}

impl KeyBuf {
    /// A copy of these bytes, which are no more than a key has.
    pub(super) fn of(bytes: &[u8]) -> KeyBuf {
        Key::of(bytes).to_buf()
    }

    pub(super) fn as_key(&self) -> Key<'_> {
        match self {
            KeyBuf::Word(word) => Key::Word(*word),
            KeyBuf::Bytes(bytes) => Key::of(bytes),
        }
    }

    /// Calls `act` with the bytes of the key.
    pub(super) fn with_bytes<T>(&self, act: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            KeyBuf::Word(word) => act(&word.to_be_bytes()),
            KeyBuf::Bytes(bytes) => act(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_are_a_word_in_order() {
        let word = |bytes: &[u8; 8]| match Key::new(bytes).expect("short") {
            Key::Word(word) => word,
            Key::Bytes(..) => panic!("eight bytes"),
        };
        assert!(word(b"aaaaaaab") < word(b"aaaaaaba") && word(&[0xFF; 8]) == u64::MAX);
        for len in [0, 7, 9, KEY_MAX] {
            assert!(matches!(Key::new(&vec![0; len]), Ok(Key::Bytes(..))));
        }
        assert!(Key::new(&vec![0; KEY_MAX + 1]).is_err());
        let stored = Stored::kept(77, b"key");
        assert_eq!(stored.chunk(), 77);
        assert!(Key::of(b"key").is_likely(stored) && !Key::of(b"yek").is_likely(stored));
        assert!(!Key::Word(stored.word).is_likely(stored));
    }
}
