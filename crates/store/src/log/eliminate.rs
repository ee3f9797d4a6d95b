//! Of two puts that meet at a key, one may return without a record, an allocation or a fence, as if the other
//! had overwritten it (MPKV, section 3.3).
//!
//! [`quipu_parts::commit`] has the protocol, and why the one that the paper publishes is not linearizable.
//! This file says which writes take part. The put that returns is ordered directly before the other one, so
//! both must be *blind*: neither reads a value that could differ. A deletion may leave no record to tell its
//! number. A put that expires could take part without harm, but the rule is shorter without it. A large value
//! fills its zones before it locks the stripe, and its zones would leak. Writes that decide on the old value,
//! and atomic batches, take no part.
//!
//! The put that returns holds the stripe then, so the other one is as durable as any write that has returned.

use super::Spine;
use quipu_parts::commit::StripeGuard;
use quipu_parts::epoch::Guard;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::{Content, Kind};
use quipu_parts::sync::Padded;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether puts are eliminated, and how many were.
pub(super) struct Elimination {
    is_on: bool,
    writes: Padded<AtomicU64>,
}

impl Elimination {
    pub(super) fn new(is_on: bool) -> Elimination {
        Elimination { is_on, writes: Padded::default() }
    }

    /// Whether a write may return for another one, and another one for it.
    #[inline]
    fn concerns(&self, content: &Content<'_>) -> bool {
        self.is_on && content.kind == Kind::Value && content.expires == 0
    }

    /// Puts that returned for another one, since open.
    pub(super) fn count(&self) -> u64 {
        self.writes.0.load(Ordering::Relaxed)
    }
}

impl<I: Index> Spine<I> {
    /// Whether puts that meet are eliminated.
    pub(crate) fn eliminates(&self) -> bool {
        self.elimination.is_on
    }

    /// Offers a blind write to the puts that wait for its key, if it may be the one that overwrites theirs.
    /// Its number was noted.
    #[inline]
    pub(super) fn offer(&self, stripe: &StripeGuard<'_>, number: u64, content: &Content<'_>) {
        if self.elimination.concerns(content) {
            stripe.offer(number);
        }
    }

    /// Whether a blind write, whose stripe is held, was overwritten by an offered write, and need not be
    /// carried out.
    #[inline]
    pub(super) fn is_overwritten(
        &self,
        guard: &Guard<'_>,
        stripe: &StripeGuard<'_>,
        key: Key<'_>,
        content: &Content<'_>,
    ) -> bool {
        stripe
            .met()
            .is_some_and(|number| self.elimination.concerns(content) && self.is_of(guard, key, number))
    }

    /// Whether the key's record is the one of this number. Counts it if so. A damaged index eliminates
    /// nothing; the write itself then meets the damage.
    #[cold]
    fn is_of(&self, guard: &Guard<'_>, key: Key<'_>, number: u64) -> bool {
        let located = self.locate::<false>(guard, key).ok().flatten();
        let is_of = located.is_some_and(|located| located.record.header.sequence.get() == number);
        if is_of {
            self.elimination.writes.0.fetch_add(1, Ordering::Relaxed);
        }
        is_of
    }
}
