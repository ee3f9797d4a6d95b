//! Bytes of each zone's records that have expired, counted in DRAM and rebuilt by recovery.
//!
//! Nothing happens when a record expires, so compaction must be able to tell where records have expired. A
//! segment fills within a short time, and records with similar times to live expire together. So bytes are
//! counted by their time to live, in steps of a factor of 8, each with the latest time of expiry. When that
//! has passed, all of them have expired.

use crate::space::ZoneId;
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of times to live: under 1 s, 8 s, 1 min, 9 min, 68 min, 9 h, 3 days, and longer.
pub const EXPIRY_STEPS: usize = 8;
const FIRST_STEP_MS: u64 = 1000;

/// Bytes of records with similar times to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiring {
    /// All of them.
    pub bytes: u64,
    /// When the last of them expires, in milliseconds since 1970.
    pub last: u64,
}

#[derive(Default)]
struct Cohort {
    bytes: AtomicU64,
    last: AtomicU64,
}

pub(super) struct Expiries {
    zones: Box<[[Cohort; EXPIRY_STEPS]]>,
}

impl Expiries {
    pub(super) fn new(zones: u32) -> Expiries {
        Expiries { zones: (0..zones).map(|_| Default::default()).collect() }
    }

    /// Counts bytes of a record that expires.
    pub(super) fn add(&self, zone: ZoneId, len: u64, expires: u64, now: u64) {
        let steps = (expires.saturating_sub(now) / FIRST_STEP_MS).checked_ilog(8).map_or(0, |log| log + 1);
        let cohort = &self.zones[zone.0 as usize][(steps as usize).min(EXPIRY_STEPS - 1)];
        cohort.bytes.fetch_add(len, Ordering::Relaxed);
        cohort.last.fetch_max(expires, Ordering::Relaxed);
    }

    /// Bytes of records that have certainly expired; some of them may be superseded as well.
    pub(super) fn expired(&self, zone: ZoneId, now: u64) -> u64 {
        let cohorts = self.of_zone(zone).into_iter();
        cohorts.filter(|cohort| cohort.last <= now).map(|cohort| cohort.bytes).sum()
    }

    pub(super) fn of_zone(&self, zone: ZoneId) -> [Expiring; EXPIRY_STEPS] {
        self.zones[zone.0 as usize].each_ref().map(|cohort| Expiring {
            bytes: cohort.bytes.load(Ordering::Relaxed),
            last: cohort.last.load(Ordering::Relaxed),
        })
    }

    /// Sets the cohorts of a zone that no client counts for.
    pub(super) fn restore(&self, zone: ZoneId, expiring: &[Expiring; EXPIRY_STEPS]) {
        for (cohort, known) in self.zones[zone.0 as usize].iter().zip(expiring) {
            cohort.bytes.store(known.bytes, Ordering::Relaxed);
            cohort.last.store(known.last, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_long_does_not_hide_what_has_expired() {
        let (expiries, zone, now) = (Expiries::new(2), ZoneId(1), 5_000_000);
        expiries.add(zone, 100, now + 500, now);
        expiries.add(zone, 10, now + 900, now + 100);
        expiries.add(zone, 7, now + 3_600_000, now);
        expiries.add(zone, 1, u64::MAX, now);
        assert_eq!(expiries.expired(zone, now), 0);
        assert_eq!(expiries.expired(zone, now + 899), 0, "the last of the cohort is still there");
        assert_eq!(expiries.expired(zone, now + 900), 110);
        assert_eq!(expiries.expired(zone, now + 3_600_000), 117);
        assert_eq!(expiries.expired(ZoneId(0), u64::MAX - 1), 0);
        expiries.add(zone, 3, now - 1, now);
        assert_eq!(expiries.expired(zone, now + 900), 113, "what had expired when it was written");
        expiries.restore(zone, &Default::default());
        assert_eq!(expiries.expired(zone, u64::MAX), 0);
    }
}
