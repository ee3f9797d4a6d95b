//! The number up to which items may have left the pool: an object with two copies, of which the older is
//! always the one that is written.

use super::layout::MemtableAnchor;
use super::walk::ChainError;
use crate::record::Certifier;
use crate::sync::SpinLock;
use quipu_medium::{LINE, Region};
use zerocopy::{FromBytes, IntoBytes};

/// The pool's memory of items whose chunks are gone.
pub struct Anchor {
    offset: u64,
    current: SpinLock<Current>,
    /// Whether both copies told the same number when it was read.
    agrees: bool,
}

struct Current {
    copy: MemtableAnchor,
    /// Which of the two it is.
    which: u64,
}

impl Anchor {
    /// Writes the anchor of a new pool into an object. Durable when this returns.
    pub fn create(region: &Region, certifier: &Certifier, offset: u64) {
        region.zero(offset, super::ANCHOR_LEN);
        region.fence();
        let first = MemtableAnchor::new(certifier, 1, 0);
        region.write_nt(offset, first.as_bytes());
        region.fence();
    }

    /// Reads the anchor.
    ///
    /// # Errors
    /// If neither copy proves itself.
    pub fn open(region: &Region, certifier: &Certifier, offset: u64) -> Result<Anchor, ChainError> {
        let read = |which: u64| {
            let mut bytes = [0; LINE as usize];
            region.read_racing(offset + which * LINE, &mut bytes);
            let copy = MemtableAnchor::read_from_bytes(&bytes).expect("as long as a copy");
            copy.is_valid(certifier).then_some(Current { copy, which })
        };
        // The number only grows, so it tells the newer copy; generations may wrap.
        let copies = [0, 1].map(read);
        let [one, other] = copies.each_ref().map(|copy| copy.as_ref().map(|read| read.copy.through.get()));
        let newest = copies.into_iter().flatten().max_by_key(|current| current.copy.through.get());
        let current = newest.ok_or(ChainError::Damaged { what: "the anchor of the memtables", offset })?;
        Ok(Anchor { offset, current: SpinLock::new(current), agrees: one == other })
    }

    /// An anchor that cannot be read, of a pool that is not written to.
    pub fn illegible(certifier: &Certifier) -> Anchor {
        let copy = MemtableAnchor::new(certifier, 0, 0);
        Anchor { offset: 0, current: SpinLock::new(Current { copy, which: 0 }), agrees: false }
    }

    /// Whether both copies told the same number when it was read, as they do in a pool that was closed.
    pub(super) fn agrees(&self) -> bool {
        self.agrees
    }

    /// Whether it could be read.
    pub fn is_legible(&self) -> bool {
        self.current.lock().copy.generation.get() != 0
    }

    /// Makes durable what [`open`](Anchor::open) has read, with the next fence: after a crash of the process
    /// alone it may be only in the processor's cache.
    pub(super) fn flush(&self, region: &Region) {
        region.flush(self.offset, 2 * LINE);
    }

    /// All items up to this number are durable, though parts of them may have left the pool.
    pub fn through(&self) -> u64 {
        self.current.lock().copy.through.get()
    }

    /// Raises that number. Durable when this returns; a crash before leaves the old one or the new.
    pub fn raise(&self, region: &Region, certifier: &Certifier, through: u64) {
        let mut current = self.current.lock();
        let MemtableAnchor { generation, through: old, .. } = current.copy;
        let which = 1 - current.which;
        let generation = generation.get().wrapping_add(1).max(1);
        let copy = MemtableAnchor::new(certifier, generation, through.max(old.get()));
        region.write_nt(self.offset + which * LINE, copy.as_bytes());
        region.fence();
        *current = Current { copy, which };
    }
}
