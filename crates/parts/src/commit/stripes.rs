//! Striped locks of keys in DRAM, and elimination: of two puts that meet at a lock, one may return for the
//! other.
//!
//! *Elimination* (MPKV, section 3.3). Of two blind writes of one key that meet, one may return as if the
//! other had overwritten it. The holder of a stripe *offers* to be that other one as long as nobody can have
//! seen its write. The stripe is UNSEEN then, which is LOCKED for all other purposes. A waiting write notes
//! the holder's number, and finds out with the lock in hand whether its key's record is the one of that
//! number. Both calls overlapped before the record could be seen, so the waiter's write may be ordered
//! directly before it, and nobody can have read in between. The paper lets a waiter note the number until the
//! lock is free: then a reader may have returned the new value before the eliminated write began, which no
//! order explains.
//!
//! The paper gives every write a number for this, and every record eight bytes for it. Sequence numbers are
//! unique as they are.

use super::parked::{Failed, Parked};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Waiter, point};
use quipu_medium::arch::prefetch_to_write;
use std::cell::Cell;

pub(super) const FREE: u32 = 0;
const LOCKED: u32 = 1;
const UNSEEN: u32 = 2;
pub(super) const PARKED: u32 = 3;
pub(super) const PUBLISHING: u32 = 4;
pub(super) const FAILED: u32 = 5;

/// One lock, and the word parked at it; two to a cache line.
#[derive(Default)]
#[repr(align(32))]
pub(super) struct Stripe {
    pub(super) state: AtomicU32,
    /// Hash of the parked word's key. Valid while parked or publishing; written only while locked.
    pub(super) hash: AtomicU64,
    /// The parked word, likewise.
    pub(super) word: AtomicU64,
    /// The highest sequence number that was given to a record of this stripe. Written while locked; read by
    /// the holder, by a publisher, and by waiters ([`Stripe::unseen`]).
    pub(super) newest: AtomicU64,
}

/// Locks of keys. A key locks the stripe that its hash names, so there are far fewer locks than keys.
pub struct Stripes {
    pub(super) stripes: Box<[Stripe]>,
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

    /// The stripe of a hash. Its middle bits choose, which neither the directory nor the bucket of a hash
    /// index uses.
    #[inline]
    pub fn of(&self, hash: u64) -> usize {
        (hash >> 24) as usize & (self.stripes.len() - 1)
    }

    /// Asks the processor for the stripe of a hash ahead of [`lock`](Stripes::lock).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch_to_write(&raw const self.stripes[self.of(hash)]);
    }

    /// Locks a stripe if it is free, and no word is parked there.
    pub fn try_lock(&self, stripe: usize) -> Option<StripeGuard<'_>> {
        let stripe = &self.stripes[stripe];
        point();
        let is_locked = stripe.change(FREE, LOCKED);
        is_locked.then(|| StripeGuard { stripe, met: None, is_parked: Cell::new(false) })
    }

    /// Locks a stripe, once the word that was parked there has been published. A caller locks several in
    /// rising order.
    ///
    /// # Panics
    /// If the stripe has [failed](Failed). The publisher's store is to refuse writes from then on, so that
    /// only writers that were already under way come here.
    #[inline]
    pub fn lock(&self, stripe: usize, publish: impl FnOnce(Parked)) -> StripeGuard<'_> {
        let stripe = &self.stripes[stripe];
        point();
        if stripe.change(FREE, LOCKED) {
            return StripeGuard { stripe, met: None, is_parked: Cell::new(false) };
        }
        stripe.lock_contended(publish)
    }
}

impl Stripe {
    #[inline]
    pub(super) fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub(super) fn free(&self) {
        self.state.store(FREE, Ordering::Release);
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
                    // Readers of the published key wait no longer for the new holder.
                    self.state.store(LOCKED, Ordering::Release);
                    break;
                }
                FAILED => panic!("{Failed}"),
                _ => waiter.wait(),
            }
        }
        StripeGuard { stripe: self, met, is_parked: Cell::new(false) }
    }

    /// The number of the holder's write, which nobody can have seen at some moment of this call. Numbers of a
    /// stripe only rise: one that has not changed around that moment was the holder's. A thread that sees it
    /// sees also that the stripe was left before.
    fn unseen(&self) -> Option<u64> {
        let number = self.newest.load(Ordering::Acquire);
        let is_unseen = self.state.load(Ordering::Acquire) == UNSEEN;
        (is_unseen && self.newest.load(Ordering::Relaxed) == number).then_some(number)
    }
}

/// Holds a stripe until it drops or parks something.
pub struct StripeGuard<'a> {
    pub(super) stripe: &'a Stripe,
    met: Option<u64>,
    /// Whether it has parked: then the stripe may be another's, and is not to be unlocked.
    pub(super) is_parked: Cell<bool>,
}

impl StripeGuard<'_> {
    /// The number of a write that was on offer, unseen, at a moment when this guard's owner already waited.
    #[inline]
    pub fn met(&self) -> Option<u64> {
        self.met
    }

    /// Asserts that a guard is not used after it has parked.
    #[inline]
    pub(super) fn assert_held(&self) {
        debug_assert!(!self.is_parked.get(), "a guard holds nothing once it has parked");
    }

    /// Offers the write of this number, which was [noted](StripeGuard::note_newest), to writers that wait:
    /// from now on it may be the one that has overwritten theirs.
    #[inline]
    pub fn offer(&self, number: u64) {
        self.assert_held();
        debug_assert_eq!(
            number,
            self.newest(),
            "a waiter would take the number of an earlier write for this one's"
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
}

impl Drop for StripeGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_parked.get() {
            self.stripe.free();
        }
    }
}
