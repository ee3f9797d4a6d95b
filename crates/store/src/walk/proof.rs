//! Questions that every recovery asks about the numbers and headers of a pool.

use crate::types::error::DamagedPlace;
use quipu_parts::space::Space;

/// The damage of a pool that was closed and now has other headers, each of which may prove itself.
pub(crate) fn changed_headers(space: &Space) -> Option<DamagedPlace> {
    let what = "the header of a zone, which is not the one that the pool was closed with,".into();
    (!space.has_headers_of_close()).then_some(DamagedPlace { what, offset: 0, len: 0 })
}

/// How far beyond the ceiling in the superblock a record or a life may have a number. A crash of the system
/// may have lost the last raises of the ceiling, each of one block. A writer that knows the pool's secret can
/// give any number. A clock that continued from such a number would come to the end of all numbers.
const AHEAD: u64 = 1 << 40;

/// No record and no life of a pool with this ceiling has a number from here on.
pub(crate) fn drawn_end(ceiling: u64) -> u64 {
    ceiling.saturating_add(AHEAD)
}
