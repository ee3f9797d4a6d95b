//! Reads as the session of a walk passes them on.

use super::scan::Ordered;
use super::{Core, Points};
use crate::engine::{Head, Pinned};
use crate::types::change::Expiry;
use crate::types::error::Error;
use crate::types::iter::Pair;
use quipu_parts::index::BothWays;
use std::borrow::Cow;
use std::ops::Bound;

/// The ordered walk of a store whose index keeps an order.
pub(crate) type RangeOf<I> = for<'g> fn(
    &'g Core<I>,
    &'g Pinned<'g>,
    Bound<Cow<'g, [u8]>>,
    Bound<Cow<'g, [u8]>>,
) -> Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g>;

/// The ordered walk for any such index.
pub(crate) fn range_of<'g, I: BothWays>(
    core: &'g Core<I>,
    pinned: &'g Pinned<'g>,
    from: Bound<Cow<'g, [u8]>>,
    to: Bound<Cow<'g, [u8]>>,
) -> Box<dyn DoubleEndedIterator<Item = Pair<'g>> + 'g> {
    Box::new(Ordered::new(core, pinned.to_read(), from, to))
}

/// The value of a key, in place where it can be.
pub(crate) fn get<'g, W: Points>(
    walk: &'g W,
    pinned: &'g Pinned<'_>,
    key: &[u8],
) -> Result<Option<Cow<'g, [u8]>>, Error> {
    let guard = pinned.to_read();
    let record = walk.get::<true>(guard, key)?;
    record.map(|record| walk.core().value(guard, &record)).transpose()
}

/// The metadata of a key.
pub(crate) fn head<W: Points>(walk: &W, pinned: &Pinned<'_>, key: &[u8]) -> Result<Option<Head>, Error> {
    let record = walk.get::<false>(pinned.to_read(), key)?;
    Ok(record.map(|record| Head {
        expiry: Expiry::of_field(record.expires),
        version: Some(record.header.sequence.get()),
    }))
}
