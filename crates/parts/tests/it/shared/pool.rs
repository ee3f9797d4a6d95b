//! Small pools for parts that live in one.

use quipu_medium::Region;
use quipu_medium::sim::SimOptions;
use quipu_parts::space::{FormatOptions, FreeListKind, PoolSpec, SETTINGS_LEN, Space};
use std::sync::Arc;

/// A pool in a region, with zones of so many bytes.
pub fn format_in(region: Region, zone_size: u64) -> Arc<Space> {
    format_with(region, zone_size, vec![])
}

/// The same, with object pools.
pub fn format_with(region: Region, zone_size: u64, pools: Vec<PoolSpec>) -> Arc<Space> {
    let options = FormatOptions {
        zone_size,
        design: 1,
        settings: [0; SETTINGS_LEN],
        pools,
        free_list: FreeListKind::Volatile,
        secret: [3; 32],
        boot_id: [0; 16],
    };
    Arc::new(Space::format(region, &options).expect("room for a pool"))
}

/// A simulated pool of so many bytes.
pub fn format(len: u64, zone_size: u64, seed: u64) -> Arc<Space> {
    format_in(Region::sim(SimOptions { len, seed, ..SimOptions::default() }), zone_size)
}
