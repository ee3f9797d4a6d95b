//! What the tests of the FAST&FAIR index share: pools, and keys of every kind.

use crate::shared::mix as numbers;
use crate::shared::pool;

use crate::shared::keyed::ByKey;
pub use numbers::mix;
pub use pool::format;
use pool::format_in;
use quipu_medium::{Pages, Region};
use quipu_parts::epoch::{Collector, Guard, Participant};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::{InPool, IndexRoot};
use quipu_parts::space::Space;
use std::sync::Arc;

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

/// A pool in plain memory, which is quick.
pub fn quick(len: u64, zone_size: u64) -> Arc<Space> {
    let region = Region::dram(len, Pages::Ordinary).expect("memory");
    format_in(region, zone_size)
}

/// A new index in a pool, with its root.
pub fn create(space: &Arc<Space>) -> (FastFairIndex, IndexRoot) {
    let mut root = None;
    let index = FastFairIndex::create(space.clone(), (), 0, |made| root = Some(made)).expect("room");
    (index, root.expect("the root is given before the index is"))
}

/// Inserts keys, each with the number above its own.
pub fn fill(index: &FastFairIndex, guard: &Guard<'_>, keys: Keys, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| _ = index.insert(guard, &keys.of(number), number + 1).expect("room"));
}

pub fn participant() -> Participant {
    Collector::new().register()
}
