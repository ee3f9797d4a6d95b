//! Words: loaded, stored and exchanged atomically, and changed durably in one step.
//!
//! A durable change could also be made of [`Region::load`], [`Region::store`] and [`Region::persist`], each
//! with its own checks of the bounds and of the kind of medium.
//! `docs/decisions/misses-overlap-across-calls.md` says why one call does it: the processor overlaps the
//! misses of the next call only as far as its window goes.

use crate::region::{WORD, witnessed};
use crate::{LINE, Region, arch};
use std::sync::atomic::Ordering;

impl Region {
    /// Loads an aligned word atomically (acquire).
    #[inline(always)]
    pub fn load(&self, offset: u64) -> u64 {
        let word = self.word(offset);
        if let Some(witness) = &self.witness {
            return witnessed(move || {
                witness.note_read(offset, WORD);
                u64::from_le(word.load(Ordering::Acquire))
            });
        }
        u64::from_le(word.load(Ordering::Acquire))
    }

    /// Stores an aligned word atomically (release). Never torn; in its line ordered after this thread's
    /// earlier writes and with other atomic stores.
    #[inline]
    pub fn store(&self, offset: u64, value: u64) {
        let word = self.word(offset);
        if let Some(witness) = &self.witness {
            return witnessed(move || witness.store(offset, value));
        }
        // On Arm, release orders visibility, not arrival; the barrier orders both (`docs/DURABILITY.md`).
        #[cfg(target_arch = "aarch64")]
        arch::fence(self.flush_kind());
        word.store(value.to_le(), Ordering::Release);
    }

    /// Compares and swaps an aligned word. Like every locked instruction it is *not* a persistence fence.
    ///
    /// # Errors
    /// The value found, if it is not `current`.
    #[inline]
    pub fn compare_exchange(&self, offset: u64, current: u64, new: u64) -> Result<u64, u64> {
        let word = self.word(offset);
        if let Some(witness) = &self.witness {
            return witnessed(move || witness.compare_exchange(offset, current, new));
        }
        #[cfg(target_arch = "aarch64")]
        arch::fence(self.flush_kind());
        word.compare_exchange(current.to_le(), new.to_le(), Ordering::AcqRel, Ordering::Acquire)
            .map(u64::from_le)
            .map_err(u64::from_le)
    }

    /// Changes an aligned word durably, and returns the old one. The word is stored as by
    /// [`store`](Region::store), and not compared and swapped: the caller keeps other writers away.
    #[inline(always)]
    pub fn change_durably(&self, offset: u64, change: impl FnOnce(u64) -> u64) -> u64 {
        // On Arm a store has a barrier of its own.
        if cfg!(target_arch = "aarch64") || self.witness.is_some() {
            return self.change_by_steps(offset, change);
        }
        let word = self.word(offset);
        let old = u64::from_le(word.load(Ordering::Acquire));
        word.store(change(old).to_le(), Ordering::Release);
        let line = std::ptr::from_ref(word) as usize & !(LINE as usize - 1);
        // SAFETY: the line of a word of a live mapping, which consists of whole pages.
        unsafe { arch::flush_line(self.flush_kind(), line as *const u8) };
        arch::fence(self.flush_kind());
        old
    }

    #[inline(never)]
    fn change_by_steps(&self, offset: u64, change: impl FnOnce(u64) -> u64) -> u64 {
        let old = self.load(offset);
        self.store(offset, change(old));
        self.persist(offset, 8);
        old
    }
}

#[cfg(test)]
mod tests {
    use crate::Region;
    use crate::map::Pages;
    use crate::sim::SimOptions;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn change(region: &Region) {
        region.store(4088, 7);
        assert_eq!(region.change_durably(4088, |old| old * 6), 7);
        assert_eq!((region.load(4088), region.load(4080)), (42, 0));
        for at in [4092, region.len(), u64::MAX - 7] {
            let refused = catch_unwind(AssertUnwindSafe(|| region.change_durably(at, |old| old)));
            assert!(refused.is_err(), "at {at}");
        }
    }

    #[test]
    fn a_word_is_changed_alike_on_the_machine_and_on_the_simulator() {
        change(&Region::dram(4096, Pages::Ordinary).expect("memory"));
        change(&Region::sim(SimOptions { len: 4096, ..SimOptions::default() }));
    }
}
