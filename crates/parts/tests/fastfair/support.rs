//! What the tests of the FAST&FAIR index share: pools, and keys of every kind.

use quipu_medium::sim::SimOptions;
use quipu_medium::{Node, Pages, Region};
use quipu_parts::index::fastfair::{FastFairIndex, FastFairRoot};
use quipu_parts::space::{FormatOptions, FreeListKind, SETTINGS_LEN, Space};
use std::sync::Arc;

/// A bijection of 64-bit numbers whose outputs look random.
pub fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// How keys are made of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Eight bytes, in no order.
    Words,
    /// Eight bytes, in order.
    Rising,
    /// Lengths from 0 to 130, with much in common.
    Long,
    /// All of these.
    Mixed,
}

impl Keys {
    /// The key of this number; no two are equal.
    pub fn of(self, number: u64) -> Vec<u8> {
        match self {
            Keys::Words => mix(number).to_be_bytes().to_vec(),
            Keys::Rising => number.to_be_bytes().to_vec(),
            // No number but 0 has no bytes.
            Keys::Long if number == 0 => Vec::new(),
            Keys::Long => {
                let mut key = vec![b'k'; (mix(number) % 120) as usize];
                key.extend(number.to_be_bytes().iter().skip_while(|byte| **byte == 0));
                key.push(0xFF);
                if key.len() == 8 {
                    key.insert(0, b'k');
                }
                key
            }
            Keys::Mixed => match number % 3 {
                0 => Keys::Rising.of(number << 40),
                1 => Keys::Words.of(number),
                _ => Keys::Long.of(number),
            },
        }
    }
}

fn options(zone_size: u64) -> FormatOptions {
    FormatOptions {
        zone_size,
        design: 1,
        settings: [0; SETTINGS_LEN],
        pools: vec![],
        nodes: vec![Node(0)],
        free_list: FreeListKind::Volatile,
        secret: [3; 32],
        boot_id: [0; 16],
    }
}

/// A simulated pool of so many bytes with zones of so many.
pub fn format(len: u64, zone_size: u64, seed: u64) -> Arc<Space> {
    let region = Region::sim(SimOptions { len, seed, ..SimOptions::default() });
    Arc::new(Space::format(region, &options(zone_size)).expect("room for a pool"))
}

/// A pool in plain memory, which is quick.
pub fn quick(len: u64, zone_size: u64) -> Arc<Space> {
    let region = Region::dram(len, Pages::Ordinary).expect("memory");
    Arc::new(Space::format(region, &options(zone_size)).expect("room for a pool"))
}

/// A new index in a pool, with its root.
pub fn create(space: &Arc<Space>) -> (FastFairIndex, FastFairRoot) {
    let mut root = None;
    let index = FastFairIndex::create(space.clone(), 0, |made| root = Some(made)).expect("room");
    (index, root.expect("the root is given before the index is"))
}
