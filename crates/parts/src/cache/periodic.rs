//! The hot set of Nap (Wang et al., OSDI 2021), with which NStore compares its cache (section V-D). The keys
//! that were read most in one period are cached in the next, and the set changes as a whole.
//!
//! It is a baseline. Here it counts sampled reads, as the other policies do; the counts are not part of the
//! cache's budget. Nap's views of hot keys in each node's persistent memory are left out: they serve writes.

use crate::sync::SpinLock;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Sampled reads of a period for each key that has room.
const READS_OF_A_KEY: usize = 8;

/// Keys at most that a period tells apart.
const MOST_KEYS: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Periodic(SpinLock<Period>);

#[derive(Default)]
struct Period {
    /// Sampled reads of this period, by hash.
    counts: HashMap<u64, u32>,
    reads: usize,
    /// The hashes of keys that may be cached in this period.
    hot: Arc<HashSet<u64>>,
}

impl Periodic {
    /// Notes a sampled read. If it ends a period, returns the set of the next one: the `room` keys that were
    /// read most.
    pub(super) fn note(&self, hash: u64, room: usize) -> Option<Arc<HashSet<u64>>> {
        let mut period = self.0.lock();
        if period.counts.len() < MOST_KEYS || period.counts.contains_key(&hash) {
            *period.counts.entry(hash).or_default() += 1;
        }
        period.reads += 1;
        if period.reads < room * READS_OF_A_KEY {
            return None;
        }
        let mut counts: Vec<(u64, u32)> = period.counts.drain().collect();
        counts.sort_unstable_by_key(|(_, reads)| std::cmp::Reverse(*reads));
        period.reads = 0;
        period.hot = Arc::new(counts.into_iter().take(room).map(|(hash, _)| hash).collect());
        Some(period.hot.clone())
    }

    /// Whether a key may be cached.
    pub(super) fn is_hot(&self, hash: u64) -> bool {
        self.0.lock().hot.contains(&hash)
    }
}
