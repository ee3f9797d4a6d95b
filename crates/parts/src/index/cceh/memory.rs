//! The seam between the algorithm and the memory of its segments. Defaults are for memory without durability.

use super::entry::Name;
use crate::index::IndexError;
use crate::space::ZoneId;

/// Memory for segments. A *place* is the first byte of something in it: an address, or an offset.
///
/// A segment consists of words. A segment in use changes by single aligned stores, under its lock.
pub trait NodeMemory: Send + Sync + 'static {
    /// The bit of a hash word that says that the entry is durable as it stands: bit 0, or none where nothing
    /// has to be made durable. It is no part of the hash then.
    const MARK: u64;

    /// Loads a word (acquire).
    fn load(&self, place: u64) -> u64;

    /// Stores a word (release). Stores to one line arrive in their order.
    fn store(&self, place: u64, word: u64);

    /// Starts writing back every line that the range touches.
    #[inline]
    fn flush(&self, _place: u64, _len: u64) {
        const { assert!(Self::MARK == 0, "memory with marks is flushed") };
    }

    /// Waits until the lines that this thread has flushed are durable.
    #[inline]
    fn fence(&self) {
        const { assert!(Self::MARK == 0, "memory with marks is flushed") };
    }

    /// Makes so many bytes durable before it returns.
    #[inline]
    fn persist(&self, place: u64, len: u64) {
        self.flush(place, len);
        self.fence();
    }

    /// For a reader: makes bytes durable that another thread has left undone.
    fn help(&self, place: u64, len: u64) {
        self.persist(place, len);
    }

    /// Asks for a line ahead of its use.
    fn prefetch(&self, place: u64);

    /// Asks for a line ahead of a change.
    fn prefetch_to_write(&self, place: u64);

    /// A new segment that holds these words, all of its own: durable when this returns, and without effect
    /// after a crash as long as another segment's name covers its own.
    ///
    /// # Errors
    /// [`IndexError::Full`] or [`IndexError::Space`]; nothing is changed then.
    fn allocate(&self, name: Name, words: &[u64]) -> Result<u64, IndexError>;

    /// Lets a segment be for fewer hashes, durably when this returns: now the split takes effect.
    fn narrow(&self, _segment: u64, _name: Name) {
        const { assert!(Self::MARK == 0, "memory with marks has names") };
    }

    /// Makes sure that `segments` more can be allocated, as far as other callers leave them.
    ///
    /// # Errors
    /// As for [`allocate`](NodeMemory::allocate).
    fn make_room(&self, _segments: usize) -> Result<(), IndexError> {
        Ok(())
    }

    /// Whether more memory will be needed soon, which a thread in the background may
    /// [prepare](NodeMemory::prepare_memory).
    #[inline]
    fn wants_memory(&self) -> bool {
        false
    }

    /// Makes memory ready for segments to come.
    fn prepare_memory(&self) {}

    /// Takes back the changes that a crash has interrupted, durably when this returns; `begin` is called
    /// before the first change, if there is one. To be called before anything is allocated, if the memory has
    /// been opened without.
    fn repair(&self, _begin: impl FnOnce()) {}

    /// Zones of the pool that this takes.
    fn zones(&self) -> Vec<ZoneId> {
        Vec::new()
    }

    /// The number of these zones, and whether one is being added; told without a lock.
    fn chained(&self) -> (u32, bool) {
        (0, false)
    }

    /// Bytes of DRAM that this takes.
    fn dram_bytes(&self) -> u64;

    /// Bytes of PM that this takes.
    fn pm_bytes(&self) -> u64 {
        0
    }
}
