//! The number up to which items may have left the pool, and the states of its levels: an object with two
//! copies, of which the older is always the one that is written.

use super::layout::MemtableAnchor;
use super::walk::ChainError;
use crate::record::Certifier;
use crate::sync::SpinLock;
use quipu_medium::{LINE, MediumError, Region};
use zerocopy::{FromBytes, IntoBytes};

/// The pool's memory of items whose chunks are gone.
pub struct Anchor {
    offset: u64,
    current: SpinLock<Current>,
    /// Whether both copies told the same number when it was read.
    agrees: bool,
}

/// A state of the levels of a pool. They have another one after each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LevelsState {
    /// Counts the changes; 0 before the first.
    pub number: u64,
    /// Random bits of the run that made the change.
    pub mark: u64,
}

/// The states of its levels that a pool knows. Both only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Paired {
    /// The highest one that the levels may have reached.
    pub raised: LevelsState,
    /// The one that they have reached at least, since the pool relies on it.
    pub confirmed: LevelsState,
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
        let first = MemtableAnchor::new(certifier, 1, 0, Paired::default());
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
        // The numbers only grow, so they tell the newer copy; generations may wrap.
        let copies = [0, 1].map(read);
        let [one, other] = copies.each_ref().map(|copy| copy.as_ref().map(|read| read.copy.through.get()));
        let newest = copies
            .into_iter()
            .flatten()
            .max_by_key(|current| (current.copy.through.get(), current.copy.levels()));
        let current = newest.ok_or(ChainError::Damaged { what: "the anchor of the memtables", offset })?;
        Ok(Anchor { offset, current: SpinLock::new(current), agrees: one == other })
    }

    /// An anchor that cannot be read, of a pool that is not written to.
    pub fn illegible(certifier: &Certifier) -> Anchor {
        let copy = MemtableAnchor::new(certifier, 0, 0, Paired::default());
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

    /// The states of the levels.
    pub fn levels(&self) -> Paired {
        self.current.lock().copy.levels()
    }

    /// Raises that number. Durable when this returns; a crash before leaves the old one or the new.
    pub fn raise(&self, region: &Region, certifier: &Certifier, through: u64) {
        self.write(region, certifier, |old, levels| (old.max(through), levels));
    }

    /// Changes the states of the levels. Durable when this returns; a crash before leaves the old ones or the
    /// new.
    pub fn pair(&self, region: &Region, certifier: &Certifier, levels: Paired) {
        self.write(region, certifier, |through, old| {
            let (raised, confirmed) = (old.raised.max(levels.raised), old.confirmed.max(levels.confirmed));
            (through, Paired { raised, confirmed })
        });
    }

    /// Writes the anchor back to the device beneath a file, where a crash of the system cannot take it.
    ///
    /// # Errors
    /// The system could not.
    pub fn write_back(&self, region: &Region) -> Result<(), MediumError> {
        region.write_back(self.offset, 2 * LINE)
    }

    fn write(
        &self,
        region: &Region,
        certifier: &Certifier,
        change: impl FnOnce(u64, Paired) -> (u64, Paired),
    ) {
        let mut current = self.current.lock();
        let (through, levels) = change(current.copy.through.get(), current.copy.levels());
        let which = 1 - current.which;
        let generation = current.copy.generation.get().wrapping_add(1).max(1);
        let copy = MemtableAnchor::new(certifier, generation, through, levels);
        region.write_nt(self.offset + which * LINE, copy.as_bytes());
        region.fence();
        *current = Current { copy, which };
    }
}
