//! Words that are parked at a stripe: durable, and yet to be published (see [the protocol](super)).

use super::stripes::{FAILED, PARKED, PUBLISHING, Stripe, StripeGuard, Stripes};
use crate::sync::atomic::Ordering;
use crate::sync::{Waiter, panicking, point};
use std::mem;

/// A word that is to be published. Its record is durable before any thread can see the word parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The hash of its key.
    pub hash: u64,
    /// The word that the index is to have.
    pub word: u64,
}

/// Nobody knows whether the word that was parked at a stripe is published: its publisher panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a thread that published a write has panicked")]
pub struct Failed;

impl Stripes {
    /// Publishes the word that was parked for this hash, if there is one: a reader calls it before it looks.
    ///
    /// # Errors
    /// If the stripe has failed.
    #[inline]
    pub fn settle(&self, hash: u64, publish: impl FnOnce(Parked)) -> Result<(), Failed> {
        let stripe = &self.stripes[self.of(hash)];
        if stripe.state.load(Ordering::Acquire) >= PARKED { stripe.settle(hash, publish) } else { Ok(()) }
    }

    /// Publishes the word that is parked at the stripe of this hash, without waiting; for a thread that
    /// parked one there. If none is parked now, another thread has it, or is about to put it back. One that
    /// is parked may be a later one, of another thread, even if the words are equal: the place of a record
    /// that was published is used again. So `publish` is told the [newest](StripeGuard::newest) number of the
    /// stripe too. The parked word is the caller's as long as that is the number of its own record: a thread
    /// that parks here later notes a higher number first. Says whether one was parked.
    #[inline]
    pub fn finish(&self, hash: u64, publish: impl FnOnce(Parked, u64)) -> bool {
        let stripe = &self.stripes[self.of(hash)];
        point();
        let is_parked = stripe.change(PARKED, PUBLISHING);
        if is_parked {
            stripe.publish(|parked| publish(parked, stripe.newest.load(Ordering::Relaxed)));
            stripe.free();
        }
        is_parked
    }

    /// Takes over a parked word, if it still is parked. It is being published until the answer drops. Does
    /// not wait. A caller that may not publish another's word at this moment calls it in place of
    /// [`finish`](Stripes::finish).
    #[inline]
    pub fn take(&self, own: Parked) -> Option<Taken<'_>> {
        let stripe = &self.stripes[self.of(own.hash)];
        point();
        if !stripe.change(PARKED, PUBLISHING) {
            return None;
        }
        if stripe.parked() == own {
            return Some(Taken { stripe });
        }
        stripe.state.store(PARKED, Ordering::Release);
        None
    }

    /// Publishes every word that was parked before the call.
    ///
    /// # Errors
    /// If a stripe has failed; the words of all others are published.
    pub fn settle_all(&self, mut publish: impl FnMut(Parked)) -> Result<(), Failed> {
        let mut outcome = Ok(());
        for stripe in &self.stripes {
            if stripe.state.load(Ordering::Acquire) >= PARKED {
                let hash = stripe.hash.load(Ordering::Acquire);
                outcome = outcome.and(stripe.settle(hash, &mut publish));
            }
        }
        outcome
    }
}

impl Stripe {
    /// Publishes the parked word, for a caller that has taken it over. The caller then frees the stripe or
    /// keeps it.
    #[inline]
    pub(super) fn publish(&self, publish: impl FnOnce(Parked)) {
        let failing = Failing(self);
        publish(self.parked());
        mem::forget(failing);
    }

    /// The parked word; for a caller that has taken it over.
    #[inline]
    fn parked(&self) -> Parked {
        Parked { hash: self.hash.load(Ordering::Relaxed), word: self.word.load(Ordering::Relaxed) }
    }

    #[cold]
    fn settle(&self, hash: u64, publish: impl FnOnce(Parked)) -> Result<(), Failed> {
        let mut waiter = Waiter::default();
        loop {
            point();
            let state = self.state.load(Ordering::Acquire);
            // Another hash, or one parked since: every word of ours that was parked when we came has been
            // published.
            if state < PARKED || self.hash.load(Ordering::Acquire) != hash {
                return Ok(());
            }
            if state == FAILED {
                return Err(Failed);
            }
            if state == PARKED && self.change(PARKED, PUBLISHING) {
                self.publish(publish);
                self.free();
                return Ok(());
            }
            waiter.wait();
        }
    }
}

impl StripeGuard<'_> {
    /// Unlocks the stripe and leaves `parked` there, once `persist` has made it durable. All but one of the
    /// stores come before: stores behind a fence wait in the processor until it has ended.
    ///
    /// From then on the guard holds nothing. It is not moved in here: a move reads it by longer words than
    /// those by which it was stored, and waits for the fence so.
    #[inline]
    pub fn park(&self, parked: Parked, persist: impl FnOnce()) {
        self.assert_held();
        point();
        self.stripe.word.store(parked.word, Ordering::Relaxed);
        // Released: a reader that still sees the state of an earlier parking, and this hash, knows by the
        // hash that the earlier word has been published.
        self.stripe.hash.store(parked.hash, Ordering::Release);
        persist();
        self.is_parked.set(true);
        self.stripe.state.store(PARKED, Ordering::Release);
        point();
    }
}

/// A publication under way. It drops only by a panic.
struct Failing<'a>(&'a Stripe);

impl Drop for Failing<'_> {
    #[cold]
    fn drop(&mut self) {
        self.0.state.store(FAILED, Ordering::Release);
    }
}

/// A parked word that is being published until this drops.
#[must_use = "it is published when this drops"]
pub struct Taken<'a> {
    stripe: &'a Stripe,
}

impl Taken<'_> {
    /// As [`StripeGuard::newest`].
    #[inline]
    pub fn newest(&self) -> u64 {
        self.stripe.newest.load(Ordering::Relaxed)
    }
}

impl Drop for Taken<'_> {
    /// A publisher that panics leaves a stripe that has failed: its write may be published in part.
    #[inline]
    fn drop(&mut self) {
        if panicking() { drop(Failing(self.stripe)) } else { self.stripe.free() }
    }
}
