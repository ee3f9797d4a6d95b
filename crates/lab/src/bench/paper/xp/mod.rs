//! The evaluation of XP (Yan et al., "Revisiting the Design of LSM-tree Based OLTP Storage Engine with
//! Persistent Memory", PVLDB 14(10), 2021).
//!
//! Its rival XS is not ours to run: `quipu-rivals paper xp` puts RocksDB and fjall in its place, in the same
//! run, where a figure is about whole stores. Without them a figure compares `xp` with itself: with its
//! levels and without, and at other sizes. Figures 11 and 13 have systems and a workload that are not built.

mod index;
mod overall;
mod parts;
mod space;

use super::Paper;
use quipu::Design;
use quipu_bench::config::Config;

pub(super) static PAPER: Paper = Paper {
    name: "xp",
    title: "Yan et al.: Revisiting the Design of LSM-tree Based OLTP Storage Engine with Persistent Memory. PVLDB 14(10), 2021",
    machine: "two Xeon Platinum 8269CY, 187 GB DRAM, 1 TB Optane, 4 interleaved DIMMs a node (ext4-DAX), 2 TB cloud SSD; YCSB of \
              800 million records of 8 + 500 bytes with 200 GB of PM and 32 threads, 30 million of 8 + 32 bytes in memtables, a \
              million of 24 bytes a thread through the ring",
    presets: &[
        overall::YCSB,
        overall::SIZES,
        parts::MEMTABLES,
        index::INDEX,
        index::DUMPS,
        parts::RING,
        space::ALLOCATION,
        space::RECOVERY,
    ],
    compared: None,
    batches: false,
};

/// Rows of the simulator beside rows that have times.
const MODELLED: &str = "modelled";

/// The designs, as rows call them: ours, and those of `quipu-rivals` in the place of the paper's XS.
const XP: &str = "xp";
const ROCKSDB: &str = "rocksdb:process";

/// The paper's records.
const KEY: usize = 8;
const VALUE: usize = 500;
const RECORD: u64 = (KEY + VALUE) as u64;

/// The smallest pool that is made for data that shall not fit it.
const LEAST_POOL: u64 = 4 << 20;

/// Puts of a batch of the load, and bytes of a pool for each: a batch is one item, and takes a quarter of a
/// zone at most.
const BATCH: u64 = 1000;
const POOL_OF_A_PUT: u64 = 160 << 10;

/// Bytes of a pool that all data fit, at least.
const LEAST_FULL: u64 = 64 << 20;

/// Settings for `xp`, with a pool of so many bytes and levels below it; without a size, all data fit the
/// pool, and there are no levels.
fn with_pool(config: Config, pool: Option<u64>) -> Config {
    let pool_size = pool.map(|bytes| bytes.next_multiple_of(4096).max(LEAST_POOL));
    Config { designs: vec![Design::XP], pool_size, ..config }
}

/// The same for so many records, loaded in batches.
fn in_batches(config: Config, records: u64) -> Config {
    let pool = config.pool_size.unwrap_or((records * RECORD).max(LEAST_FULL));
    Config { batch: (pool / POOL_OF_A_PUT).clamp(1, BATCH) as usize, ..config }
}
