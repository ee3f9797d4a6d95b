//! Striped locks in DRAM, which a writer may leave with its last step still to do.
//!
//! An update waits for two cache misses that depend on each other: the index slot, then the old record. Neither is needed
//! to make the new record durable. So a writer may fence its record, *park* what is still to be published at the stripe of
//! its key, and return; it publishes a few operations later, when both lines have arrived. Until then the parked word is
//! as good as published, because whoever comes to the stripe for that key publishes it first:
//!
//! ```text
//!            lock                    park
//!   FREE ------------> LOCKED -----------------> PARKED
//!    ^                  | ^                        |  whoever comes next:
//!    |     unlock       | |      stay locked       v  the writer itself, another writer, a reader
//!    +------------------+ +------------------- PUBLISHING
//!    |                                             |
//!    +---------------------------------------------+
//! ```
//!
//! *Linearizability.* A parked write took effect when it was parked, before it was acknowledged; nobody may come upon it earlier,
//! which is for who parks it to see to: places in a log are not used again while a reader is there, and who uses slots again at
//! once holds their page until it has parked. A reader looks at the stripe before it looks at the index. If it finds its key's word
//! parked, it publishes it; if it finds it being published, it waits for that, or finds it parked again, by somebody who took it
//! and saw that it was not theirs. If it finds the stripe free or locked, everything that was acknowledged before the reader began
//! has been published, for a stripe leaves PARKED only through PUBLISHING. So what one reader saw no later one misses.
//!
//! *Who waits.* Writers of one stripe for each other, as with any lock; readers only while another thread is publishing
//! a write of the very hash they look for: a few stores to DRAM, and in a store over slots a fence or two. (If others go on
//! writing that hash, a reader may wait for a later one, or publish what has been parked since.)
//!
//! *Panics.* If a publication panics, nobody knows how much of it has been done, so it can neither be left out nor be done again. Its
//! stripe has FAILED then, for good: a reader gets an error, and a writer that waits for the lock panics as well.
//!
//! *Reuse.* A parked word is reachable from here and not from the index, so an epoch alone does not protect what it names:
//! who wants to reuse that must have had everything published that was parked before.
//!
//! The idea that a later operation completes an earlier one's second phase is MPKV's (section 3.2), where the phase is a
//! bit in PM.
//!
//! *Elimination* (MPKV, section 3.3). Of two blind writes of one key that meet, one may return as if the other had overwritten it. The
//! holder of a stripe *offers* to be that other one as long as nobody can have seen what it writes: the stripe is UNSEEN then, which
//! is LOCKED for all other purposes. Who waits meanwhile notes the holder's number, and finds out with the lock in hand whether its
//! key's record is the one of that number. Both calls overlapped before the record could be seen, so the waiter's write may be
//! ordered directly before it, and nobody can have read in between. The paper lets who waits note the number until the lock is free:
//! then a reader may have returned the new value before the eliminated write began, which no order explains.
//!
//! The paper gives every write a number for this, and every record eight bytes for it. Sequence numbers are unique as they are.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Waiter, panicking, point};
use quipu_medium::arch::prefetch_to_write;
use std::cell::Cell;
use std::mem;

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const UNSEEN: u32 = 2;
const PARKED: u32 = 3;
const PUBLISHING: u32 = 4;
const FAILED: u32 = 5;

/// One lock, and what was parked at it; two to a cache line.
#[derive(Default)]
#[repr(align(32))]
struct Stripe {
    state: AtomicU32,
    /// Hash of the parked word's key. Valid while parked or publishing; written only while locked.
    hash: AtomicU64,
    /// The parked word, likewise.
    word: AtomicU64,
    /// The highest sequence number that was given to a record of this stripe; read and written while locked.
    newest: AtomicU64,
}

/// Something durable that is not published yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The hash of its key.
    pub hash: u64,
    /// What is to be published.
    pub word: u64,
}

/// What was parked at a stripe is neither published nor not: who published it panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a thread that published a write has panicked")]
pub struct Failed;

/// Locks for more keys than one could keep locks for: a key locks the stripe that its hash names.
pub struct Stripes {
    stripes: Box<[Stripe]>,
}

impl Stripes {
    /// `count` stripes, a power of two.
    pub fn new(count: usize) -> Stripes {
        assert!(count.is_power_of_two(), "a stripe is chosen by masking the hash");
        Stripes { stripes: (0..count).map(|_| Stripe::default()).collect() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.stripes.len()
    }

    /// The stripe of a hash. Its middle bits choose, which neither the directory nor the bucket of a hash index uses.
    #[inline]
    pub fn of(&self, hash: u64) -> usize {
        (hash >> 24) as usize & (self.stripes.len() - 1)
    }

    /// Asks the processor for the stripe of a hash ahead of [`lock`](Stripes::lock).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch_to_write(&raw const self.stripes[self.of(hash)]);
    }

    /// Locks a stripe, once what was parked there has been published. Who locks several does so in rising order.
    ///
    /// # Panics
    /// If the stripe has [failed](Failed). A caller that can tell from elsewhere is not to come here any more.
    #[inline]
    pub fn lock(&self, stripe: usize, publish: impl FnOnce(Parked)) -> StripeGuard<'_> {
        let stripe = &self.stripes[stripe];
        point();
        if stripe.change(FREE, LOCKED) {
            return StripeGuard { stripe, met: None, is_parked: Cell::new(false) };
        }
        stripe.lock_contended(publish)
    }

    /// Publishes what was parked for this hash, if anything was: a reader calls it before it looks.
    ///
    /// # Errors
    /// If the stripe has failed.
    #[inline]
    pub fn settle(&self, hash: u64, publish: impl FnOnce(Parked)) -> Result<(), Failed> {
        let stripe = &self.stripes[self.of(hash)];
        if stripe.state.load(Ordering::Acquire) >= PARKED { stripe.settle(hash, publish) } else { Ok(()) }
    }

    /// Publishes what is parked at the stripe of this hash, without waiting: for who parked something there. If nothing is
    /// parked now, someone else has taken it over. If something is, it may be a later word, of another thread, even if it is the same
    /// word: the place of a record that was published is used again. So `publish` is told the [newest](StripeGuard::newest) number of
    /// the stripe too. The parked word is the caller's as long as that is the number of its own record: a writer of the stripe
    /// publishes first what was parked there, and notes a higher one.
    #[inline]
    pub fn finish(&self, hash: u64, publish: impl FnOnce(Parked, u64)) {
        let stripe = &self.stripes[self.of(hash)];
        point();
        if stripe.change(PARKED, PUBLISHING) {
            stripe.publish(|parked| publish(parked, stripe.newest.load(Ordering::Relaxed)));
            stripe.free();
        }
    }

    /// Takes over what somebody parked, if it still is. Until what is returned drops it is being published. Does not wait; who
    /// may not publish a word of somebody else's at this moment calls it in place of [`finish`](Stripes::finish).
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

    /// Publishes all that was parked before the call.
    ///
    /// # Errors
    /// If a stripe has failed; those of all others are published.
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
    #[inline]
    fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn free(&self) {
        self.state.store(FREE, Ordering::Release);
    }

    /// Publishes the parked word, for a caller that has taken it over. The caller then frees the stripe or keeps it.
    #[inline]
    fn publish(&self, publish: impl FnOnce(Parked)) {
        let failing = Failing(self);
        publish(self.parked());
        mem::forget(failing);
    }

    /// What is parked; for who has taken it over.
    #[inline]
    fn parked(&self) -> Parked {
        Parked { hash: self.hash.load(Ordering::Relaxed), word: self.word.load(Ordering::Relaxed) }
    }

    #[cold]
    fn lock_contended(&self, publish: impl FnOnce(Parked)) -> StripeGuard<'_> {
        let (mut waiter, mut met) = (Waiter::default(), None);
        loop {
            match self.state.load(Ordering::Relaxed) {
                FREE if self.change(FREE, LOCKED) => break,
                UNSEEN => {
                    met = self.unseen().or(met);
                    waiter.wait();
                }
                PARKED if self.change(PARKED, PUBLISHING) => {
                    self.publish(publish);
                    // Readers of the published key need not wait any longer for whatever the new holder does.
                    self.state.store(LOCKED, Ordering::Release);
                    break;
                }
                FAILED => panic!("{Failed}"),
                _ => waiter.wait(),
            }
        }
        StripeGuard { stripe: self, met, is_parked: Cell::new(false) }
    }

    /// The number of the write that holds the stripe and that nobody can have seen at some moment of this call. Numbers of a stripe
    /// only rise: one that has not changed around that moment was the holder's. Who sees it sees also that the stripe was left before.
    fn unseen(&self) -> Option<u64> {
        let number = self.newest.load(Ordering::Acquire);
        let is_unseen = self.state.load(Ordering::Acquire) == UNSEEN;
        (is_unseen && self.newest.load(Ordering::Relaxed) == number).then_some(number)
    }

    #[cold]
    fn settle(&self, hash: u64, publish: impl FnOnce(Parked)) -> Result<(), Failed> {
        let mut waiter = Waiter::default();
        loop {
            point();
            let state = self.state.load(Ordering::Acquire);
            // Another hash, or one parked since: whatever was parked for ours when we came has been published.
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

/// A publication under way, which drops only if it panics.
struct Failing<'a>(&'a Stripe);

impl Drop for Failing<'_> {
    #[cold]
    fn drop(&mut self) {
        self.0.state.store(FAILED, Ordering::Release);
    }
}

/// Something parked that is being published until this drops.
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

/// Holds a stripe until it drops or parks something.
pub struct StripeGuard<'a> {
    stripe: &'a Stripe,
    met: Option<u64>,
    /// Whether it has parked: then the stripe may be somebody else's, and is not to be unlocked.
    is_parked: Cell<bool>,
}

impl StripeGuard<'_> {
    /// The number of a write on offer that had not been seen by anybody yet when this stripe was already waited for.
    #[inline]
    pub fn met(&self) -> Option<u64> {
        self.met
    }

    /// That nothing is done with a guard that has parked.
    #[inline]
    fn assert_held(&self) {
        debug_assert!(!self.is_parked.get(), "a guard holds nothing once it has parked");
    }

    /// Offers the write of this number, which was [noted](StripeGuard::note_newest), to those who wait: from now on it may be the one
    /// that has overwritten theirs.
    #[inline]
    pub fn offer(&self, number: u64) {
        self.assert_held();
        debug_assert_eq!(
            number,
            self.newest(),
            "who waits would take the number of an earlier write for that of this one"
        );
        self.stripe.state.store(UNSEEN, Ordering::Release);
    }

    /// Ends the offer. From now on the write may be seen.
    #[inline]
    pub fn withdraw(&self) {
        self.assert_held();
        self.stripe.state.store(LOCKED, Ordering::Release);
    }

    /// The highest sequence number of this stripe's records, since the store was opened.
    #[inline]
    pub fn newest(&self) -> u64 {
        self.stripe.newest.load(Ordering::Relaxed)
    }

    /// Notes a record's sequence number, which is above [`newest`](StripeGuard::newest).
    #[inline]
    pub fn note_newest(&self, sequence: u64) {
        self.assert_held();
        debug_assert!(sequence > self.newest(), "numbers of a key follow its writes");
        // Released, for `unseen`.
        self.stripe.newest.store(sequence, Ordering::Release);
    }

    /// Unlocks the stripe and leaves `parked` there, once `persist` has made it durable. All but one of the stores come
    /// before: those behind a fence wait in the processor until it has ended.
    ///
    /// From then on the guard holds nothing. It is not moved in here, by whole words, since it may have been stored by single ones
    /// behind a fence.
    #[inline]
    pub fn park(&self, parked: Parked, persist: impl FnOnce()) {
        self.assert_held();
        point();
        self.stripe.word.store(parked.word, Ordering::Relaxed);
        // Released, so that who reads this hash knows that whatever was parked here before has been published.
        self.stripe.hash.store(parked.hash, Ordering::Release);
        persist();
        self.is_parked.set(true);
        self.stripe.state.store(PARKED, Ordering::Release);
        point();
    }
}

impl Drop for StripeGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_parked.get() {
            self.stripe.free();
        }
    }
}
