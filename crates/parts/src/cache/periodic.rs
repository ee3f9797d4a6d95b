//! The hot set of Nap (Wang et al., OSDI 2021), with which NStore compares its cache (section V-D). The keys
//! that were read most in one period are cached in the next, and the set changes as a whole.
//!
//! It is a baseline. Here it counts sampled reads, as the other policies do; the counts are not part of the
//! cache's budget. Nap's views of hot keys in each node's persistent memory are left out: they serve writes.

use super::pulse::LEAST;
use crate::sync::SpinLock;
use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::sync::Arc;

/// Windows of a period. So there is a set before the cache asks whether it is of use.
pub(super) const PERIOD: u32 = 4;

const _: () = assert!(PERIOD < LEAST);

/// Keys at most that a period tells apart.
const MOST_KEYS: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Periodic(SpinLock<Period>);

#[derive(Default)]
struct Period {
    /// Sampled reads of this period, by hash.
    counts: HashMap<u64, u32>,
    /// Sampled reads of this period, and bytes of the pairs that they found.
    reads: u64,
    bytes: u64,
    /// The hashes of keys that may be cached in this period.
    hot: Arc<HashSet<u64>>,
}

impl Periodic {
    /// Notes a sampled read of a pair with so many bytes.
    pub(super) fn note(&self, hash: u64, size: u64) {
        let mut period = self.0.lock();
        if period.counts.len() < MOST_KEYS || period.counts.contains_key(&hash) {
            *period.counts.entry(hash).or_default() += 1;
        }
        period.reads += 1;
        period.bytes += size;
    }

    /// Ends a period, and returns the set of the next one: the keys that were read most, for so many slots
    /// and so many bytes.
    pub(super) fn end(&self, slots: u64, room: u64) -> Arc<HashSet<u64>> {
        // Without the set, which serves until the next one is found.
        let (counts, reads, bytes) = {
            let Period { counts, reads, bytes, .. } = &mut *self.0.lock();
            (take(counts), take(reads), take(bytes))
        };
        let most = slots.min(room * reads / bytes.max(1)) as usize;
        let mut counts: Vec<(u64, u32)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(_, reads)| std::cmp::Reverse(*reads));
        let hot: Arc<HashSet<u64>> = Arc::new(counts.into_iter().take(most).map(|(hash, _)| hash).collect());
        self.0.lock().hot = hot.clone();
        hot
    }

    /// Whether a key may be cached.
    pub(super) fn is_hot(&self, hash: u64) -> bool {
        self.0.lock().hot.contains(&hash)
    }
}
