//! The seam between the algorithm of an index and the medium: all that it does to bytes in PM.

use crate::twin;
use quipu_medium::{LINE, Region, WORD};

/// Words of a line.
pub(super) const LINE_WORDS: usize = (LINE / WORD) as usize;

/// The words of a pool. A place is an offset in it.
///
/// Stores use [`PmWords`]; other implementations are broken on purpose, for tests that must notice.
pub trait Words: Send + Sync + 'static {
    /// Loads a word (acquire).
    fn load(&self, place: u64) -> u64;

    /// Stores a word (release). Stores to one line arrive in their order.
    fn store(&self, place: u64, word: u64);

    /// Loads the words of a line, each as [`load`](Words::load) does.
    #[inline]
    fn load_line(&self, place: u64) -> [u64; LINE_WORDS] {
        std::array::from_fn(|word| self.load(place + word as u64 * WORD))
    }

    /// Lets a word be `new` if it is `old`; says whether it was.
    fn swap(&self, place: u64, old: u64, new: u64) -> bool;

    /// Writes bytes that nobody can find, past the caches. A fence follows.
    fn write(&self, place: u64, bytes: &[u8]);

    /// Starts writing back every line that the range touches.
    fn flush(&self, place: u64, len: u64);

    /// Waits until this thread's flushes and writes are durable.
    fn fence(&self);

    /// Makes so many bytes durable before it returns.
    fn persist(&self, place: u64, len: u64) {
        self.flush(place, len);
        self.fence();
    }

    /// Makes a line durable that a shift leaves, before entries copied to it are overwritten where they were.
    fn leave(&self, place: u64, len: u64) {
        self.persist(place, len);
    }

    /// For a reader: makes bytes durable that another thread may have left undone.
    fn help(&self, place: u64, len: u64) {
        self.persist(place, len);
    }

    /// Asks for a line ahead of its use.
    fn prefetch(&self, place: u64);
}

/// The words of a region.
pub struct PmWords {
    region: Region,
}

impl PmWords {
    /// The words of this region.
    pub fn new(region: Region) -> PmWords {
        PmWords { region }
    }
}

impl Words for PmWords {
    #[inline]
    fn load(&self, place: u64) -> u64 {
        self.region.load(place)
    }

    #[inline]
    fn store(&self, place: u64, word: u64) {
        self.region.store(place, word);
    }

    #[inline]
    fn load_line(&self, place: u64) -> [u64; LINE_WORDS] {
        self.region.load_line(place)
    }

    #[inline]
    fn swap(&self, place: u64, old: u64, new: u64) -> bool {
        self.region.compare_exchange(place, old, new).is_ok()
    }

    #[inline]
    fn write(&self, place: u64, bytes: &[u8]) {
        self.region.write_nt(place, bytes);
    }

    #[inline]
    fn flush(&self, place: u64, len: u64) {
        self.region.flush(place, len);
    }

    #[inline]
    fn fence(&self) {
        self.region.fence();
    }

    fn help(&self, place: u64, len: u64) {
        if !twin!(ReadersDoNotHelp) {
            self.persist(place, len);
        }
    }

    #[inline]
    fn prefetch(&self, place: u64) {
        self.region.prefetch(place);
    }
}
