//! [`Common`]: the parts that every engine has.

use super::site::Site;
use crate::background::{Admission, Bell};
use crate::types::stats::Stats;
use quipu_medium::Region;
use quipu_parts::commit::Stripes;
use quipu_parts::epoch::Collector;
use quipu_parts::space::Space;
use std::sync::Arc;

/// Stripes of key locks: enough that writers of different keys seldom meet, few enough to stay in the L2
/// cache.
pub(crate) const STRIPES: usize = 4096;

/// The parts that every engine has.
pub(crate) struct Common {
    /// The pool.
    pub(crate) space: Arc<Space>,
    /// The locks of keys.
    pub(crate) stripes: Stripes,
    pub(crate) epochs: Collector,
    /// Decides who may write.
    pub(crate) admission: Arc<Admission>,
    /// The bell of the job that cleans, and raises the clock ahead of need.
    pub(crate) bell: Arc<Bell>,
}

impl Common {
    pub(crate) fn of(site: &Site<'_>) -> Common {
        Common {
            space: site.space.clone(),
            stripes: Stripes::new(site.options.testing.stripes.unwrap_or(STRIPES)),
            epochs: Collector::new(),
            admission: Arc::default(),
            bell: Arc::default(),
        }
    }

    pub(crate) fn region(&self) -> &Region {
        self.space.region()
    }

    /// The sizes of the pool; puts leave this number of zones free.
    pub(crate) fn stats(&self, reserve: u32) -> Stats {
        let (space, reserve) = (&self.space, u64::from(reserve));
        Stats {
            pool_bytes: space.region().len(),
            zone_bytes: space.zone_size(),
            zones: space.zone_count().into(),
            free_zones: space.free_zones().into(),
            spills: space.spills(),
            reserve_zones: reserve,
            reserved_bytes: reserve * space.zone_size(),
            segments: u64::from(space.zone_count()).saturating_sub(reserve),
            segment_bytes: space.zone_size(),
            ..Stats::default()
        }
    }
}
