//! Questions that every recovery asks about the numbers and headers of a pool.

use crate::types::error::{DamagedPlace, Error};
use quipu_parts::space::{Space, SpaceError};

/// This damage of a pool in the order of its places. Without any, that of a pool that was closed and now has
/// other headers, each of which may prove itself.
pub(crate) fn all_damage(space: &Space, mut places: Vec<DamagedPlace>) -> Vec<DamagedPlace> {
    if places.is_empty() && !space.has_headers_of_close() {
        let what = "the header of a zone, which is not the one that the pool was closed with,".into();
        places.push(DamagedPlace { what, offset: 0, len: 0 });
    }
    places.sort_by_key(|place| place.offset);
    places
}

/// The damage of the allocator's structures, and what it has lost track of.
pub(crate) fn damage_of_space(space: &Space) -> Option<String> {
    match space.audit() {
        Err(error) => Some(error.to_string()),
        Ok(audit) => {
            let lost = audit.zones.gotten + audit.pools.iter().map(|(_, pool)| pool.gotten).sum::<u64>();
            let third = "the third copy of the superblock is damaged, which only a salvage needs; an opening for writing mends it";
            match lost {
                0 => (!space.has_third_copy()).then(|| third.to_owned()),
                _ => Some(format!("{lost} zones or objects are neither in use nor free: they leak")),
            }
        }
    }
}

/// The places of known damage of a pool's metadata.
pub(crate) fn places_of(wrong: &[SpaceError]) -> impl Iterator<Item = DamagedPlace> {
    wrong.iter().map(|error| {
        let offset = if let SpaceError::Damaged { offset, .. } = error { *offset } else { 0 };
        DamagedPlace { what: error.to_string(), offset, len: 0 }
    })
}

/// Refuses a pool in which this is the highest number of a record or a life, if no run draws it.
pub(crate) fn refuse_number(space: &Space, highest: u64) -> Result<(), Error> {
    if highest < drawn_end(space.superblock().clock_ceiling.get()) {
        return Ok(());
    }
    Err(SpaceError::Geometry { what: "a record or a life has a number that no run draws" }.into())
}

/// How far beyond the ceiling in the superblock a record or a life may have a number. A crash of the system
/// may have lost the last raises of the ceiling, each of one block. A writer that knows the pool's secret can
/// give any number. A clock that continued from such a number would come to the end of all numbers.
const AHEAD: u64 = 1 << 40;

/// No record and no life of a pool with this ceiling has a number from here on.
pub(crate) fn drawn_end(ceiling: u64) -> u64 {
    ceiling.saturating_add(AHEAD)
}
