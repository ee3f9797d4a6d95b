//! Bounds of keys in order.

use std::ops::Bound;

/// The key at which a walk from this bound begins.
pub(crate) fn first_of<K: AsRef<[u8]>>(from: &Bound<K>) -> &[u8] {
    match from {
        Bound::Included(key) | Bound::Excluded(key) => key.as_ref(),
        Bound::Unbounded => &[],
    }
}

/// Whether a key is not before the first of a walk.
#[inline]
pub(crate) fn is_above<K: AsRef<[u8]>>(from: &Bound<K>, key: &[u8]) -> bool {
    match from {
        Bound::Included(first) => key >= first.as_ref(),
        Bound::Excluded(before) => key > before.as_ref(),
        Bound::Unbounded => true,
    }
}

/// Whether a key is not behind the last of a walk.
#[inline]
pub(crate) fn is_below<K: AsRef<[u8]>>(to: &Bound<K>, key: &[u8]) -> bool {
    match to {
        Bound::Included(last) => key <= last.as_ref(),
        Bound::Excluded(end) => key < end.as_ref(),
        Bound::Unbounded => true,
    }
}
