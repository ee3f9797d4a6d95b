//! How many keys there are, counted without a word that all writers share.

use quipu_medium::LINE;
use std::sync::atomic::{AtomicI64, Ordering};

const PARTS: usize = 64;

/// Alone on its line.
#[derive(Default)]
#[repr(align(64))]
struct Part(AtomicI64);

const _: () = assert!(size_of::<Part>() as u64 == LINE);

/// Keys added less keys removed, by parts that different nodes use.
pub(super) struct Count {
    parts: Box<[Part]>,
    /// Whether all keys have been counted: not those that were there when the index was opened.
    is_whole: bool,
}

impl Count {
    pub(super) fn new(is_whole: bool) -> Count {
        Count { parts: (0..PARTS).map(|_| Part::default()).collect(), is_whole }
    }

    /// A key more, or less, in a node.
    #[inline]
    pub(super) fn add(&self, node: u64, keys: i64) {
        self.parts[node as usize % PARTS].0.fetch_add(keys, Ordering::Relaxed);
    }

    /// All keys, if they have been counted.
    pub(super) fn get(&self) -> Option<u64> {
        let sum = || self.parts.iter().map(|part| part.0.load(Ordering::Relaxed)).sum::<i64>();
        self.is_whole.then(|| sum().max(0).unsigned_abs())
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val::<[Part]>(&self.parts) as u64
    }
}
