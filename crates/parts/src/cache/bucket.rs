//! One line of the table: six slots and what their pairs are worth.

use super::block::{Block, Head};
use super::policy::Policy;
use crate::epoch::Guard;
use crate::sync::atomic::{AtomicPtr, AtomicU16, Ordering};

/// Pairs of a bucket.
pub(super) const SLOTS: usize = 6;

/// A bucket is even if its worths differ by at most this part, as a divisor, of their mean.
const EVEN_DIVISOR: u32 = 4;

/// A line. Slots change by compare-and-swap alone, so it has no lock; what pairs are worth is a guess, which
/// may be lost to another thread's.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Bucket {
    /// The level of the policies that have one.
    level: AtomicU16,
    worths: [AtomicU16; SLOTS],
    slots: [AtomicPtr<Head>; SLOTS],
}

/// The words of a model are larger.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64);

/// The place of a pair in a bucket.
#[derive(Clone, Copy)]
pub(super) struct Place {
    slot: usize,
    word: *mut Head,
}

impl Place {
    /// Whether a pair is there.
    pub(super) fn is_filled(self) -> bool {
        !self.word.is_null()
    }

    /// The word that was seen there.
    pub(super) fn word(self) -> *mut Head {
        self.word
    }
}

impl Bucket {
    /// The pair with this hash.
    #[inline]
    pub(super) fn find<'g>(&'g self, _guard: &'g Guard<'_>, hash: u64) -> Option<(Place, Block<'g>)> {
        self.slots.iter().enumerate().find_map(|(slot, own)| {
            let word = own.load(Ordering::Acquire);
            // SAFETY: the guard keeps this thread pinned, since before the word was read.
            let block = unsafe { Block::tagged(word, hash) }?;
            (block.hash() == hash).then_some((Place { slot, word }, block))
        })
    }

    /// The pairs, with their hashes.
    pub(super) fn places<'g>(&'g self, _guard: &'g Guard<'_>) -> impl Iterator<Item = (Place, u64)> + 'g {
        self.slots.iter().enumerate().filter_map(|(slot, own)| {
            let word = own.load(Ordering::Acquire);
            // SAFETY: as in `find`.
            let block = unsafe { Block::of_word(word) }?;
            Some((Place { slot, word }, block.hash()))
        })
    }

    /// Takes a pair out, and returns its word; `None` if another thread has.
    pub(super) fn take(&self, place: Place) -> Option<*mut Head> {
        self.change(place, std::ptr::null_mut()).then_some(place.word)
    }

    /// Puts a word into a place, for the one that was seen there.
    pub(super) fn change(&self, place: Place, word: *mut Head) -> bool {
        let slot = &self.slots[place.slot];
        slot.compare_exchange(place.word, word, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// An empty place.
    pub(super) fn empty(&self) -> Option<Place> {
        let slot = self.slots.iter().position(|own| own.load(Ordering::Relaxed).is_null())?;
        Some(Place { slot, word: std::ptr::null_mut() })
    }

    /// The place of the pair that is worth least, and its worth.
    pub(super) fn least(&self) -> Option<(u16, Place)> {
        let places = self.slots.iter().enumerate();
        let filled = places.map(|(slot, own)| Place { slot, word: own.load(Ordering::Acquire) });
        let worth = |place: Place| (self.worths[place.slot].load(Ordering::Relaxed), place);
        filled.filter(|place| place.is_filled()).map(worth).min_by_key(|(worth, _)| *worth)
    }

    /// Notes a read of this weight of the pair in a place: a pair that was there, or a new one.
    pub(super) fn note(&self, place: Place, policy: Policy, weight: u16, is_new: bool) {
        let own = &self.worths[place.slot];
        let before = (!is_new).then(|| own.load(Ordering::Relaxed));
        let worth = |before| policy.worth(before, weight, self.level.load(Ordering::Relaxed));
        let new = match u16::try_from(worth(before)) {
            Ok(new) => new,
            Err(_) => {
                for count in self.worths.iter().chain([&self.level]) {
                    count.store(count.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
                }
                worth(before.map(|worth| worth / 2)).min(u32::from(u16::MAX)) as u16
            }
        };
        own.store(new, Ordering::Relaxed);
        if policy.raises_level() {
            self.level.store(new, Ordering::Relaxed);
        }
    }

    /// Notes that the pair of a place goes for another one.
    pub(super) fn note_left(&self, place: Place, policy: Policy) {
        if policy.remembers_worth() {
            self.level.store(self.worths[place.slot].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Whether all pairs are worth about the same; `None` if it is not full.
    pub(super) fn is_even(&self) -> Option<bool> {
        if self.slots.iter().any(|own| own.load(Ordering::Relaxed).is_null()) {
            return None;
        }
        let worths: [u16; SLOTS] = std::array::from_fn(|slot| self.worths[slot].load(Ordering::Relaxed));
        let sum: u32 = worths.iter().copied().map(u32::from).sum();
        let (least, most) = (worths.into_iter().min()?, worths.into_iter().max()?);
        Some(u32::from(most - least) * EVEN_DIVISOR * SLOTS as u32 <= sum)
    }

    /// Takes all pairs out, and passes their words on.
    pub(super) fn empty_all(&self, mut each: impl FnMut(*mut Head)) {
        for slot in &self.slots {
            each(slot.swap(std::ptr::null_mut(), Ordering::AcqRel));
        }
    }
}
