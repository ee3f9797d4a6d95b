//! Storage behind zones that an owner stores to: those that it has just taken, and those of an earlier run.
//!
//! A zone in use has all storage that its owner has asked for, unless the file is a copy with holes. Nobody
//! can tell. So each handle that writes asks once for the zones in which it will store: whole zones of
//! indexes and slots, records of a log that may be marked, and segments that recovery seals. Other sealed
//! segments are not stored to, except that their headers are
//! [overwritten](quipu_medium::Region::overwrite) at their end.

use super::error::SpaceError;
use super::handle::{Space, is_written_to};
use super::zone_pool::ZoneId;

impl Space {
    /// Ensures that there is storage behind bytes `from..to` of a zone that the caller has.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full.
    ///
    /// # Panics
    /// If there is no such zone.
    pub(crate) fn back_zone(&self, zone: ZoneId, from: u64, to: u64) -> Result<(), SpaceError> {
        Ok(self.region().reserve(self.zone_offset(zone) + from, to - from)?)
    }

    /// Ensures that there is storage behind zones of an earlier run that their owner stores to, where a copy
    /// of the file has left holes. Zones that stand behind each other are asked for together.
    ///
    /// # Errors
    /// [`SpaceError::Medium`] if the disk is full.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn back_zones(&self, zones: impl IntoIterator<Item = ZoneId>) -> Result<(), SpaceError> {
        let all = zones.into_iter().map(|zone| (zone, self.zone_size()));
        self.back_zones_up_to(all)
    }

    /// As [`back_zones`](Space::back_zones), behind so many bytes from the start of each zone.
    ///
    /// # Errors
    /// As for [`back_zones`](Space::back_zones).
    ///
    /// # Panics
    /// As for [`back_zones`](Space::back_zones).
    pub fn back_zones_up_to(&self, zones: impl IntoIterator<Item = (ZoneId, u64)>) -> Result<(), SpaceError> {
        if !is_written_to(self.region()) {
            return Ok(());
        }
        let mut zones: Vec<_> = zones.into_iter().collect();
        zones.sort_unstable();
        let ranges = zones.into_iter().map(|(zone, len)| {
            let start = self.zone_offset(zone);
            start..start + len.min(self.zone_size())
        });
        let mut run = 0..0;
        for range in ranges.chain(std::iter::once(u64::MAX..u64::MAX)) {
            if range.start == run.end {
                run.end = range.end;
            } else {
                self.region().reserve(run.start, run.end - run.start)?;
                run = range;
            }
        }
        Ok(())
    }
}
