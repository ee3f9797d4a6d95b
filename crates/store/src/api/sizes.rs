//! Sizes that a pool and its zones may have.

use crate::designs::Design;
use crate::options::Options;
use crate::types::error::Error;
use std::ops::RangeInclusive;

/// Zone sizes that a pool may have.
const ZONE_SIZES: RangeInclusive<u64> = 16 << 10..=4 << 20;

/// Whether zones may have so many bytes.
pub(crate) fn is_zone_size(size: u64) -> bool {
    size.is_power_of_two() && ZONE_SIZES.contains(&size)
}

/// The zone size of a new pool of `pool` bytes.
pub(crate) fn zone_size(pool: u64, options: &Options) -> Result<u64, Error> {
    let least = options.design.unwrap_or_default().can().least_zone;
    let default = || (pool / 256).next_power_of_two().clamp(least, *ZONE_SIZES.end());
    let size = options.zone_size.unwrap_or_else(default);
    if is_zone_size(size) {
        return Ok(size);
    }
    let (least, most) = (ZONE_SIZES.start(), ZONE_SIZES.end());
    Err(Error::Option(format!("the zone size is {size}; it must be a power of two from {least} to {most}")))
}

/// Refuses a pool that has places beyond the reach of its index's words.
pub(crate) fn check_len(design: Design, len: u64) -> Result<(), Error> {
    let below = design.can().pools_below;
    if len >= below {
        let text = format!("a pool of design {design} has less than {below} bytes, not {len}");
        return Err(Error::Option(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No machine has so many bytes that one could be created.
    #[test]
    fn a_pool_is_refused_whose_places_its_index_cannot_name() {
        for design in Design::ALL.iter().copied() {
            let below = design.can().pools_below;
            assert!(check_len(design, below - 1).is_ok(), "{design}");
            let error = check_len(design, below).expect_err("too large").to_string();
            assert!(error.contains(design.name()) && error.contains(&below.to_string()), "{error}");
        }
        assert!(Design::MPKV.limits().any(|limit| limit == "pools of less than 256 TiB"));
    }
}
