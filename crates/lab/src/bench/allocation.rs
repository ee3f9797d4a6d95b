//! The allocator of a pool alone: objects and zones are taken and given back (figure 17 of the paper on an
//! LSM engine for transactions on persistent memory, VLDB'21).
//!
//! Taking is Get and Commit, after which they are durably their owner's; giving back is Release. Nothing is
//! written to them. Beside them stands the system's `malloc`, in DRAM, of which nothing is durable.

use quipu_bench::config::Config;
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Phase, drive};
use quipu_bench::error::BenchError;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::target::{bare, format_of_parts};
use quipu_medium::Region;
use quipu_parts::space::{
    FormatOptions, FreeListKind, ObjectId, ObjectPool, PoolSpec, Space, SpaceError, ZoneId,
};
use std::sync::{Mutex, PoisonError};

/// The allocators, as rows name them.
pub(super) const POOL: &str = "Halloc-pool";
pub(super) const ZONES: &str = "Halloc-zone";
pub(super) const MALLOC: &str = "malloc (DRAM)";

/// Those of the paper that are not run.
const NOT_RUN: [(&str, &str); 2] = [
    ("Ralloc", "a C++ library, of which there is no crate"),
    ("pmemobj", "a C library, of which there is no maintained crate"),
];

/// Bytes of all objects together, at most.
const MOST: u64 = 512 << 20;

/// Bytes of the smallest zone.
const PAGE: u64 = 4096;

/// Bytes of metadata for an object or a zone, and for a pool, at most.
const EACH: u64 = 128;
const FIXED: u64 = 8 << 20;

const OBJECTS: u32 = 1;

/// Takes as many objects of each size as the settings have records, and gives them back. A row says of each
/// allocator of the paper that is not run why it is not.
pub fn allocation(
    config: &Config,
    sizes: &[u64],
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    for &size in sizes {
        let count = config.records.min(MOST / size).max(config.threads as u64);
        let run = Run { config, size, count, progress };
        let (region, space) = run.space(POOL, PAGE)?;
        run.measure(POOL, Some(&region), Objects(space.pool(OBJECTS).expect("it was asked for")), sink)?;
        if size >= PAGE {
            let (region, space) = run.space(ZONES, size)?;
            run.measure(ZONES, Some(&region), Zones(&space), sink)?;
        }
        if config.medium != quipu::MediumKind::Sim {
            run.measure(MALLOC, None, Malloc::new(size, count), sink)?;
        }
    }
    for (name, why) in NOT_RUN.iter().filter(|_| config.medium != quipu::MediumKind::Sim) {
        sink(Row { not_run: Some(*why), ..Row::of(name, "take", config) });
    }
    Ok(())
}

struct Run<'a> {
    config: &'a Config,
    size: u64,
    count: u64,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    /// A new pool with room for all: for objects, or for zones if these have the size.
    fn space(&self, name: &'static str, zone_size: u64) -> Result<(Region, Space), BenchError> {
        let region = bare(self.config, self.count * (self.size + EACH) + FIXED)?;
        let spec = PoolSpec { id: OBJECTS, object_size: self.size, count: self.count };
        let options = FormatOptions {
            pools: if name == POOL { vec![spec] } else { Vec::new() },
            free_list: FreeListKind::Persistent,
            ..format_of_parts(&region, zone_size)
        };
        let space = Space::format(region.clone(), &options).map_err(BenchError::refused(name, "create"))?;
        Ok((region, space))
    }

    fn measure<A: Allocator>(
        &self,
        name: &'static str,
        region: Option<&Region>,
        allocator: A,
        sink: Sink<'_>,
    ) -> Result<(), BenchError> {
        let Run { config, size, count, progress } = *self;
        let (sim, allocator) = (region.and_then(Region::simulator), &allocator);
        let row = |phase: &str| Row { records: count, ..Row::of(name, phase, config) };
        let stage = format!("take {size} B");
        let meter = Meter::start(sim);
        let outcome = drive(&Phase::new(&stage, config.threads, count, progress), |_| {
            let refused = BenchError::refused(name, "take");
            Ok(move |call: u64| allocator.take(call).map_err(&refused))
        })?;
        sink(meter.stop(row(&stage), &outcome));

        let stage = format!("give back {size} B");
        let taken = allocator.taken();
        let meter = Meter::start(sim);
        let outcome = drive(&Phase::new(&stage, config.threads, count, progress), |_| {
            let taken = &taken;
            Ok(move |call: u64| {
                allocator.give_back(&taken[call as usize]);
                Ok(())
            })
        })?;
        sink(meter.stop(row(&stage), &outcome));
        Ok(())
    }
}

/// An allocator under measurement.
trait Allocator: Sync {
    /// An object that was taken.
    type Taken: Sync;

    /// Takes one object in the call of this number.
    fn take(&self, call: u64) -> Result<(), SpaceError>;

    /// All that were taken.
    fn taken(&self) -> Vec<Self::Taken>;

    /// Gives one back.
    fn give_back(&self, taken: &Self::Taken);
}

struct Objects<'a>(&'a ObjectPool);

impl Allocator for Objects<'_> {
    type Taken = ObjectId;

    #[inline]
    fn take(&self, _call: u64) -> Result<(), SpaceError> {
        self.0.commit(self.0.get()?.expect("there is one for each call"));
        Ok(())
    }

    fn taken(&self) -> Vec<ObjectId> {
        self.0.committed()
    }

    #[inline]
    fn give_back(&self, taken: &ObjectId) {
        self.0.release(*taken);
    }
}

struct Zones<'a>(&'a Space);

impl Allocator for Zones<'_> {
    type Taken = ZoneId;

    #[inline]
    fn take(&self, _call: u64) -> Result<(), SpaceError> {
        self.0.commit_zone(self.0.get_zone(None, 0)?.expect("there is one for each call"));
        Ok(())
    }

    fn taken(&self) -> Vec<ZoneId> {
        self.0.committed_zones()
    }

    #[inline]
    fn give_back(&self, taken: &ZoneId) {
        self.0.release_zone(*taken);
    }
}

/// The program's allocator, which is the system's.
struct Malloc {
    size: usize,
    /// The memory that each call has taken. No two threads meet at a lock.
    places: Vec<Mutex<Vec<u8>>>,
}

impl Malloc {
    fn new(size: u64, count: u64) -> Malloc {
        Malloc { size: size as usize, places: (0..count).map(|_| Mutex::default()).collect() }
    }

    #[inline]
    fn replace(&self, call: usize, memory: Vec<u8>) {
        *self.places[call].lock().unwrap_or_else(PoisonError::into_inner) = memory;
    }
}

impl Allocator for Malloc {
    type Taken = usize;

    #[inline]
    fn take(&self, call: u64) -> Result<(), SpaceError> {
        self.replace(call as usize, Vec::with_capacity(self.size));
        Ok(())
    }

    fn taken(&self) -> Vec<usize> {
        (0..self.places.len()).collect()
    }

    #[inline]
    fn give_back(&self, taken: &usize) {
        self.replace(*taken, Vec::new());
    }
}
