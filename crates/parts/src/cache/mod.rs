//! A cache of pairs in DRAM, in front of an index whose records lie in slower memory, on several nodes: RAF,
//! *remote access first* (NStore section III-B).
//!
//! A table of buckets, each a line with six slots. A slot has a tag and names a block, which never changes.
//! A hit reads the line and the block, and neither locks nor stores anything. An epoch keeps a block that has
//! left from reuse while a reader may have it: all guards of a cache are of one collector.
//!
//! **Coherence.** A writer holds the lock of its key's stripe. With that lock in hand it
//! [takes the key out](Cache::forget), before anybody can see its write; and only with that lock is a pair
//! [put in](Cache::fill), as the index has it then. So the cache never has a pair that the index has not,
//! once a write of the key can be seen. A reader that had the pair before began before.
//!
//! **Sampling.** Of 32 reads of a client one counts, in the mean: it makes a pair worth more, or brings it in
//! for the one of its bucket that is [worth least](Policy). The [steps](Steps) between two are random, since
//! a client may go round a number of keys that has a factor in common with any fixed one.
//!
//! **Off.** Where reads have nothing to gain, the cache turns itself off (`pulse.rs`).
//!
//! Departures from the paper: slots change without a lock. A write takes a pair out where the paper's changes
//! it, which would cost a block, and cache what may never be read.

mod block;
mod bucket;
mod periodic;
mod policy;
mod pulse;
mod steps;

pub use policy::Policy;
pub use pulse::Counts;
pub use steps::Steps;

use crate::epoch::Guard;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::twin;
use block::{Block, Evicted, TAG_BITS};
use bucket::{Bucket, Place};
use periodic::{PERIOD, Periodic};
use policy::Weights;
use pulse::{Beat, Pulse};
use quipu_medium::arch::prefetch;
use std::sync::Arc;

/// Pairs with a longer key or value are not cached.
const LONGEST: usize = 4096;

/// Bytes of a pair with its block, by which the number of buckets is chosen.
const TYPICAL: u64 = 256;

/// Least and most bytes that a cache may take.
pub const BUDGETS: std::ops::RangeInclusive<u64> = 4096..=1 << 40;

/// The choices that a cache leaves.
#[derive(Clone, Copy, Debug)]
pub struct CacheSettings {
    /// Bytes of DRAM that it may take, all in; one of [`BUDGETS`].
    pub budget: u64,
    /// Which pairs it keeps.
    pub policy: Policy,
    /// Reads of a client of which one counts, in the mean.
    pub sample: u32,
    /// Operations after which the cache looks whether it is of use.
    pub window: u64,
    /// For proofs: it turns off or on after each window.
    #[doc(hidden)]
    pub is_restless: bool,
}

impl CacheSettings {
    /// A cache of so many bytes, as in the paper.
    pub const fn of(budget: u64) -> CacheSettings {
        CacheSettings { budget, policy: Policy::Raf, sample: 32, window: 1 << 16, is_restless: false }
    }
}

/// A pair, to be cached.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The hash of its key.
    pub hash: u64,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// When it expires, as its record has it; 0 for never.
    pub expires: u64,
    /// The number of the node that its record lies on.
    pub node: u16,
}

/// A cached pair.
#[derive(Clone, Copy)]
pub struct Hit<'g> {
    bucket: &'g Bucket,
    place: Place,
    block: Block<'g>,
}

impl<'g> Hit<'g> {
    /// The value.
    #[inline]
    pub fn value(&self) -> &'g [u8] {
        self.block.pair().1
    }

    /// When it expires; 0 for never.
    #[inline]
    pub fn expires(&self) -> u64 {
        self.block.expires()
    }
}

/// See the [module](self).
pub struct Cache {
    buckets: Box<[Bucket]>,
    settings: CacheSettings,
    weights: Weights,
    /// Bytes that the blocks may take beside the buckets.
    room: u64,
    /// Bytes of all blocks, of those too that wait for readers.
    used: Arc<AtomicU64>,
    /// Of these, bytes of the blocks that slots name.
    live: AtomicU64,
    /// Where the next pair is looked for that is to go for one of another bucket.
    hand: AtomicU32,
    /// Clients that were given their steps.
    clients: AtomicU64,
    pulse: Pulse,
    /// The keys that a policy admits, if it does not admit all.
    periodic: Option<Periodic>,
}

impl Cache {
    /// A cache for pairs on so many nodes. `distance` tells how far it is from the processors of a node to
    /// the bytes of another one.
    pub fn new(settings: CacheSettings, nodes: usize, distance: impl Fn(usize, usize) -> u16) -> Cache {
        let CacheSettings { budget, policy, .. } = settings;
        let a_bucket = size_of::<Bucket>() as u64;
        let buckets = (budget / (a_bucket + TYPICAL * bucket::SLOTS as u64)).max(1);
        Cache {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            settings,
            weights: Weights::new(policy, nodes, distance),
            room: budget.saturating_sub(buckets * a_bucket),
            used: Arc::default(),
            live: AtomicU64::new(0),
            hand: AtomicU32::new(0),
            clients: AtomicU64::new(0),
            pulse: Pulse::new(settings.window, settings.is_restless),
            periodic: policy.has_periods().then(Periodic::default),
        }
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &Bucket {
        // By the bits below the tag.
        let place = u128::from(hash << TAG_BITS) * self.buckets.len() as u128;
        &self.buckets[(place >> u64::BITS) as usize]
    }

    /// Asks the processor for the bucket of a hash ahead of [`get`](Cache::get).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(self.bucket(hash));
    }

    /// The steps of a new client's reads from one that counts to the next.
    pub fn steps(&self) -> Steps {
        Steps::new(self.clients.fetch_add(1, Ordering::Relaxed), self.settings.sample)
    }

    /// Looks for a key.
    #[inline]
    pub fn get<'g>(&'g self, guard: &'g Guard<'_>, hash: u64, key: &[u8]) -> Option<Hit<'g>> {
        if !self.pulse.is_on() {
            return None;
        }
        let bucket = self.bucket(hash);
        let (place, block) = bucket.find(guard, hash)?;
        (block.pair().0 == key).then_some(Hit { bucket, place, block })
    }

    /// Takes a key out, for a write of it that nobody can see yet. The caller holds the lock of its stripe.
    #[inline]
    pub fn forget(&self, guard: &Guard<'_>, hash: u64) {
        self.pulse.note_write(guard);
        if self.pulse.is_on() {
            self.take_out(guard, hash);
        }
    }

    #[inline(never)]
    fn take_out(&self, guard: &Guard<'_>, hash: u64) {
        let bucket = self.bucket(hash);
        let Some((place, _)) = bucket.find(guard, hash) else { return };
        self.evict(guard, bucket, place);
    }

    /// Takes the pair of a place out, unless it has left for another one.
    fn evict(&self, guard: &Guard<'_>, bucket: &Bucket, place: Place) {
        if let Some(word) = bucket.take(place) {
            self.retire(guard, word);
        }
    }

    /// Frees a block that this thread has taken out of its slot, when no reader can have it. Nothing is
    /// released here: locks may be held.
    fn retire(&self, guard: &Guard<'_>, word: *mut block::Head) {
        // SAFETY: this thread has taken the word out, and the guard's epoch keeps the block.
        let Some(evicted) = (unsafe { Evicted::of_word(word, &self.used) }) else { return };
        self.live.fetch_sub(evicted.size(), Ordering::Relaxed);
        if !twin!(BlockFreedEarly) {
            guard.defer_to_anyone(Box::new(move || drop(evicted)));
        }
    }

    /// Puts a pair in, for one that is worth less if there is no room. The caller holds the lock of its
    /// stripe, and has read it under that lock; `reader` is the node that it runs on.
    pub fn fill(&self, guard: &Guard<'_>, item: &Item<'_>, reader: u16) {
        let bucket = self.bucket(item.hash);
        let size = block::size(item);
        let is_too_long = item.key.len() > LONGEST || item.value.len() > LONGEST || size > self.room / 8;
        if !self.pulse.is_on() || is_too_long || bucket.find(guard, item.hash).is_some() {
            return;
        }
        let policy = self.settings.policy;
        if !self.admits(item.hash, size) {
            return;
        }
        if self.live.load(Ordering::Relaxed) + size > self.room {
            self.make_room(guard);
        }
        // Blocks that wait for readers take room too: then this one comes in another time.
        if self.used.fetch_add(size, Ordering::Relaxed) + size > self.room {
            self.used.fetch_sub(size, Ordering::Relaxed);
            return;
        }
        let place = bucket.empty().or_else(|| bucket.least().map(|(_, place)| place));
        let (Some(place), Some(word)) = (place, block::make(item)) else {
            self.used.fetch_sub(size, Ordering::Relaxed);
            return;
        };
        // Before another thread can take it out, and count that.
        self.live.fetch_add(size, Ordering::Relaxed);
        if !bucket.change(place, word) {
            self.live.fetch_sub(size, Ordering::Relaxed);
            // SAFETY: no slot has had the word.
            drop(unsafe { Evicted::of_word(word, &self.used) });
            return;
        }
        if place.is_filled() {
            bucket.note_left(place, policy);
            self.retire(guard, place.word());
        }
        bucket.note(place, policy, self.weights.of(item.node, reader), true);
    }

    /// Notes a sampled read for a policy of periods, of a pair with so many bytes. Whether the pair may be
    /// cached now; any other policy admits all.
    fn admits(&self, hash: u64, size: u64) -> bool {
        self.periodic.as_ref().is_none_or(|periodic| {
            periodic.note(hash, size);
            periodic.is_hot(hash)
        })
    }

    /// Begins a period, and takes out what may not be cached in it. The cache was on when the guard was
    /// pinned already.
    fn begin_period(&self, guard: &Guard<'_>, periodic: &Periodic) {
        let hot = periodic.end((self.buckets.len() * bucket::SLOTS) as u64, self.room);
        for bucket in &self.buckets {
            let cold = bucket.places(guard).filter(|(_, hash)| !hot.contains(hash));
            cold.for_each(|(place, _)| self.evict(guard, bucket, place));
        }
    }

    /// Takes out the pair that is worth least of some buckets.
    fn make_room(&self, guard: &Guard<'_>) {
        /// Buckets to choose from, and those that are looked at for them.
        const CHOICE: usize = 4;
        const MOST: usize = 256;
        let from = self.hand.fetch_add(CHOICE as u32, Ordering::Relaxed) as usize;
        let buckets = (from..from + MOST).map(|i| &self.buckets[i % self.buckets.len()]);
        let filled = buckets.filter_map(|bucket| Some((bucket, bucket.least()?)));
        let least = filled.take(CHOICE).min_by_key(|(_, (worth, _))| *worth);
        if let Some((bucket, (_, place))) = least {
            bucket.note_left(place, self.settings.policy);
            self.evict(guard, bucket, place);
        }
    }

    /// Notes a sampled hit by a reader on this node.
    pub fn note_hit(&self, hit: &Hit<'_>, reader: u16) {
        self.admits(hit.block.hash(), hit.block.size());
        let weight = self.weights.of(hit.block.node(), reader);
        hit.bucket.note(hit.place, self.settings.policy, weight, false);
    }

    /// Notes the reads of a client since it last reported, a sampled one among them. The caller holds no lock
    /// of a stripe. `true` if it is to collect garbage when it is not pinned: much of it waits, or the cache
    /// turns on or off.
    pub fn report(self: &Arc<Self>, guard: &Guard<'_>, counts: Counts) -> bool {
        if self.pulse.is_to_sweep() {
            if !twin!(CacheNotEmptied) {
                self.sweep();
            }
            self.pulse.end();
        }
        match (self.pulse.note(counts, || self.is_even()), &self.periodic) {
            (Beat::GoesOff, _) if twin!(SweptWhilePinned) => self.pulse.let_sweep(),
            (Beat::GoesOff, _) => {
                let cache = Arc::clone(self);
                // Nobody is pinned any more then who did not see that the turn has begun.
                guard.defer_to_anyone(Box::new(move || cache.pulse.let_sweep()));
            }
            (Beat::Window(number), Some(periodic)) if number % PERIOD == 0 => {
                self.begin_period(guard, periodic);
            }
            (Beat::Window(_) | Beat::None, _) => {}
        }
        let garbage = self.used.load(Ordering::Relaxed).saturating_sub(self.live.load(Ordering::Relaxed));
        self.pulse.is_turning() || garbage > self.room / 16
    }

    /// Whether the pairs of nearly all buckets are worth about the same: then all are read alike.
    fn is_even(&self) -> bool {
        /// Buckets to look at, and the share of them, in per cent, that must be even.
        const SAMPLE: usize = 64;
        const MOST: usize = 90;
        if !self.settings.policy.counts_reads() {
            return false;
        }
        let from = self.hand.load(Ordering::Relaxed) as usize;
        let each = (0..self.buckets.len()).map(|i| &self.buckets[(from + i) % self.buckets.len()]);
        let found: Vec<bool> = each.take(SAMPLE * 16).filter_map(Bucket::is_even).take(SAMPLE).collect();
        let even = found.iter().filter(|is_even| **is_even).count();
        found.len() == SAMPLE && even * 100 >= found.len() * MOST
    }

    /// Empties the table, which nobody is in.
    fn sweep(&self) {
        for bucket in &self.buckets {
            // SAFETY: the words were taken out of their slots, and nobody is pinned who could have them.
            bucket.empty_all(|word| drop(unsafe { Evicted::of_word(word, &self.used) }));
        }
        self.live.store(0, Ordering::Relaxed);
    }

    /// Bytes of DRAM that it takes.
    pub fn bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + (self.buckets.len() * size_of::<Bucket>()) as u64
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.pulse.is_on()
    }

    /// Reads since it was made, as far as clients have reported, and how many of them were hits.
    pub fn reads(&self) -> (u64, u64) {
        self.pulse.reads()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.sweep();
    }
}

#[cfg(test)]
mod tests;
