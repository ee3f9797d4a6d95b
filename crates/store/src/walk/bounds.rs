//! Bounds of a scan.

use std::borrow::Cow;
use std::ops::Bound;

/// Whether a key is not before the first of a scan.
#[inline]
pub(crate) fn is_above(from: &Bound<Cow<'_, [u8]>>, key: &[u8]) -> bool {
    match from {
        Bound::Included(first) => key >= &**first,
        Bound::Excluded(before) => key > &**before,
        Bound::Unbounded => true,
    }
}

/// Whether a key is not behind the last of a scan.
#[inline]
pub(crate) fn is_below(to: &Bound<Cow<'_, [u8]>>, key: &[u8]) -> bool {
    match to {
        Bound::Included(last) => key <= &**last,
        Bound::Excluded(end) => key < &**end,
        Bound::Unbounded => true,
    }
}
