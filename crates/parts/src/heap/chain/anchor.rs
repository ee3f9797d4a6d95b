//! The durable cut: an object with two copies, of which the older is always the one that is written.

use super::layout::MemtableAnchor;
use super::walk::ChainError;
use crate::record::Certifier;
use crate::sync::SpinLock;
use quipu_medium::{LINE, Region};
use zerocopy::{FromBytes, IntoBytes};

/// The pool's memory of the order of its items, beside the chunks themselves.
pub struct Anchor {
    offset: u64,
    current: SpinLock<Current>,
}

struct Current {
    copy: MemtableAnchor,
    /// Which of the two it is.
    which: u64,
}

/// The words of an anchor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The cut bounds the memtables of runs up to this one.
    pub run: u64,
    /// No chunk above it counts in those.
    pub cut: u64,
    /// All items up to it are durable, though parts of them may have left the pool.
    pub through: u64,
}

impl Anchor {
    /// Writes the anchor of a new pool into an object. Durable when this returns.
    pub fn create(region: &Region, certifier: &Certifier, offset: u64) {
        region.zero(offset, super::ANCHOR_LEN);
        region.fence();
        let first = MemtableAnchor::new(certifier, 1, 0, 0, 0);
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
        let newest = [0, 1].into_iter().filter_map(read).max_by_key(|current| current.copy.generation.get());
        let current = newest.ok_or(ChainError::Damaged { what: "the anchor of the memtables", offset })?;
        Ok(Anchor { offset, current: SpinLock::new(current) })
    }

    /// Makes durable what [`open`](Anchor::open) has read, with the next fence: after a crash of the process
    /// alone it may be only in the processor's cache.
    pub(super) fn flush(&self, region: &Region) {
        region.flush(self.offset, 2 * LINE);
    }

    /// Its words.
    pub fn bounds(&self) -> Bounds {
        let MemtableAnchor { run, cut, through, .. } = self.current.lock().copy;
        Bounds { run: run.get(), cut: cut.get(), through: through.get() }
    }

    /// Changes it. Durable when this returns; a crash before leaves the old one or the new.
    pub fn update(&self, region: &Region, certifier: &Certifier, change: impl FnOnce(&mut Bounds)) {
        let mut current = self.current.lock();
        let MemtableAnchor { run, cut, through, generation, .. } = current.copy;
        let mut bounds = Bounds { run: run.get(), cut: cut.get(), through: through.get() };
        change(&mut bounds);
        debug_assert!(bounds.through >= through.get(), "what is durable stays so");
        let which = 1 - current.which;
        let copy =
            MemtableAnchor::new(certifier, generation.get() + 1, bounds.run, bounds.cut, bounds.through);
        region.write_nt(self.offset + which * LINE, copy.as_bytes());
        region.fence();
        *current = Current { copy, which };
    }
}
