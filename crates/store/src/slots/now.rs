//! Publishing a put before it returns, as the paper does (section 4.2, listing 1).
//!
//! ```text
//! put   page held | lock segment | write | fence | mark | fence | publish | release old record | page free
//!                   +------------------------------------------------+
//! ```
//!
//! The segment of the index is locked before the fences, although the put does not need it there. A locked
//! instruction behind a fence waits until the fence has ended, and all later loads wait with it. The
//! segment's holder waits for no page. Behind the second fence follow plain stores, unless the segment
//! splits, up to the release, which has a fence of its own. So the index is searched during the fences.
//!
//! The page of the new record is held until the old record is durably gone. So nobody reads a value that a
//! crash could take back in favour of the old one, where the paper's tie break decides.

use super::SlotSpine;
use crate::types::error::Error;
use quipu_parts::heap::slots::Claim;
use quipu_parts::index::cceh::NodeMemory;
use quipu_parts::twin;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Releases the record that the index named by `old` before it named the claimed one, which has this
    /// number.
    #[inline]
    pub(super) fn release(&self, claim: &Claim<'_, '_>, old: u64, sequence: u64) -> Result<(), Error> {
        if REDUCED {
            return self.bury(claim, old, sequence);
        }
        let old = Self::offset_of(old);
        // The old place may be that of the new record: its mark had been lost, so the heap took the named
        // place for free.
        if old != claim.offset() {
            claim.release_old(old)?;
        }
        Ok(())
    }

    /// Releases a replaced record in a store that may be broken on purpose.
    #[cold]
    pub(super) fn release_as_twin(&self, claim: Claim<'_, '_>, old: u64) -> Result<(), Error> {
        if twin!(OldNotReleased) {
            return Ok(());
        }
        if (twin!(PageFreeBeforeRelease) || twin!(TiesByBlock)) && Self::offset_of(old) != claim.offset() {
            drop(claim);
            drop(self.heap.delete(Self::offset_of(old))?);
            return Ok(());
        }
        self.release(&claim, old, 0)
    }
}
