//! The indexes of this house, by name.

use super::IndexKind;
use super::ours::{OfHouse, Ours};
use super::run::IndexRun;
use crate::bench::chain::zone_size;
use quipu::MediumKind;
use quipu_bench::choice::Named;
use quipu_bench::error::BenchError;
use quipu_bench::report::Sink;
use quipu_bench::target::{INDEX_PER_RECORD, bare, format_of_parts};
use quipu_medium::Region;
use quipu_parts::index::alex::Alex;
use quipu_parts::index::buckets::{BucketIndex, BucketLocks, BucketSettings, TableLocks};
use quipu_parts::index::cceh::{CcehIndex, CcehSettings, PmNodes};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::hash::{HashIndex, HashIndexSettings};
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{InPool, PmWords};
use quipu_parts::space::Space;
use std::sync::Arc;

/// Zones of a pool besides those for records: the format, and those that an index begins with.
const SPARE: u64 = 8;

/// An index of this house.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HouseIndex {
    /// c-ALEX, in DRAM and in order.
    Alex,
    /// Masstree, in DRAM and in order.
    Masstree,
    /// The extendible hash index of `quipu`, in DRAM.
    Hash,
    /// CCEH in DRAM.
    Cceh,
    /// CCEH in the pool.
    CcehPm,
    /// FAST&FAIR, in the pool and in order.
    FastFair,
    /// Buckets in the pool, with a table of locks.
    Buckets,
    /// Buckets in the pool, each with a lock in it.
    BucketsLocks,
}

impl Named for HouseIndex {
    const KIND: &'static str = "index";
    const EVERY: &'static [HouseIndex] = &[
        HouseIndex::Alex,
        HouseIndex::Masstree,
        HouseIndex::Hash,
        HouseIndex::Cceh,
        HouseIndex::CcehPm,
        HouseIndex::FastFair,
        HouseIndex::Buckets,
        HouseIndex::BucketsLocks,
    ];

    fn name(&self) -> &'static str {
        match self {
            HouseIndex::Alex => "alex",
            HouseIndex::Masstree => "masstree",
            HouseIndex::Hash => "hash",
            HouseIndex::Cceh => "cceh",
            HouseIndex::CcehPm => "cceh-pm",
            HouseIndex::FastFair => "fastfair",
            HouseIndex::Buckets => "buckets",
            HouseIndex::BucketsLocks => "buckets-locks",
        }
    }
}

impl IndexKind for HouseIndex {
    fn measure(&self, run: &IndexRun<'_>, sink: Sink<'_>) -> Result<(), BenchError> {
        match self {
            HouseIndex::Alex => self.in_dram(run, Alex::new, sink),
            HouseIndex::Masstree => self.in_dram(run, Masstree::new, sink),
            HouseIndex::Hash => self.in_dram(run, || HashIndex::new(HashIndexSettings::default()), sink),
            HouseIndex::Cceh => self.in_dram(run, || CcehIndex::in_dram(CcehSettings::default()), sink),
            HouseIndex::CcehPm => self.in_pool::<CcehIndex<PmNodes>>(run, CcehSettings::default(), sink),
            HouseIndex::FastFair => self.in_pool::<FastFairIndex>(run, (), sink),
            HouseIndex::Buckets => {
                self.in_pool::<BucketIndex<PmWords, TableLocks>>(run, BucketSettings::default(), sink)
            }
            HouseIndex::BucketsLocks => {
                self.in_pool::<BucketIndex<PmWords, BucketLocks>>(run, BucketSettings::default(), sink)
            }
        }
    }
}

impl HouseIndex {
    fn in_dram<I: OfHouse>(
        self,
        run: &IndexRun<'_>,
        make: impl FnOnce() -> I,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        // The simulator has to be there to show that nothing in it is touched.
        let region = match run.config.medium {
            MediumKind::Sim => Some(bare(run.config, zone_size(run.config))?),
            _ => None,
        };
        let make = || Ok(Ours::new(self.name(), make(), &run.records));
        run.measure_on(self.name(), region.as_ref(), make, sink)
    }

    fn in_pool<I: OfHouse + InPool>(
        self,
        run: &IndexRun<'_>,
        settings: I::Settings,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        let zone_size = zone_size(run.config);
        // A tree in the pool keeps text beside its nodes, in chunks.
        let each = INDEX_PER_RECORD + 2 * run.records.length() as u64;
        let bytes = run.config.records * each + SPARE * zone_size;
        let region = bare(run.config, bytes)?;
        let make = || {
            let index = self.create::<I>(&region, zone_size, settings)?;
            Ok(Ours::new(self.name(), index, &run.records))
        };
        run.measure_on(self.name(), Some(&region), make, sink)
    }

    fn create<I: InPool>(
        self,
        region: &Region,
        zone_size: u64,
        settings: I::Settings,
    ) -> Result<I, BenchError> {
        const CREATE: &str = "create";
        let space = Space::format(region.clone(), &format_of_parts(region, zone_size))
            .map_err(BenchError::refused(self.name(), CREATE))?;
        I::create(Arc::new(space), settings, 0, |_| ()).map_err(BenchError::refused(self.name(), CREATE))
    }
}
