//! What the tests of the CCEH index share: hashes, and indexes in every memory.

use quipu_medium::sim::SimOptions;
use quipu_medium::{Node, Region};
use quipu_parts::index::cceh::{CcehIndex, CcehRoot, CcehSettings, PmNodes};
use quipu_parts::space::{FormatOptions, FreeListKind, SETTINGS_LEN, Space};
use std::sync::Arc;

/// A bijection of 64-bit numbers whose outputs look random.
pub fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A simulated pool of so many bytes with zones of 4 KiB.
pub fn format(len: u64, seed: u64) -> Arc<Space> {
    let region = Region::sim(SimOptions { len, seed, ..SimOptions::default() });
    let options = FormatOptions {
        zone_size: 4 << 10,
        design: 1,
        settings: [0; SETTINGS_LEN],
        pools: vec![],
        nodes: vec![Node(0)],
        free_list: FreeListKind::Volatile,
        secret: [3; 32],
        boot_id: [0; 16],
    };
    Arc::new(Space::format(region, &options).expect("room for a pool"))
}

/// A new index in a pool, with its root.
pub fn create(space: &Arc<Space>, settings: CcehSettings) -> (CcehIndex<PmNodes>, CcehRoot) {
    let mut root = None;
    let index = CcehIndex::create(space.clone(), settings, 0, |made| root = Some(made)).expect("room");
    (index, root.expect("the root is given before the index is"))
}
