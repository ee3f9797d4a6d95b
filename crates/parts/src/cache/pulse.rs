//! Whether a cache is of use. It turns itself off where it is not (NStore section III-B), and tries again
//! later.
//!
//! Three signals turn it off: few reads are hits; the pairs of nearly every bucket are worth the same, so all
//! keys are read alike; few operations are reads. The paper does not say how it comes back. This one tries
//! again after some windows, twice as many each time that it was of no use at once.
//!
//! While it is off, writers pass it by. So it is emptied before it can turn on again: when all threads have
//! left that were pinned as it turned off, nobody is in the table, and the next sampled read empties it. To
//! turn on takes no such care. A pair is put in by a holder of the stripe of its key. The next writer of the
//! key holds it after that, and sees that the cache is on.
//!
//! Windows end with reads: where there are writes alone, they go on taking keys out of a cache that is on.

use crate::epoch::Guard;
use crate::sync::Padded;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const ON: u32 = 0;
/// Everybody passes by.
const GOING_OFF: u32 = 1;
/// Nobody is in the table, and it is to be emptied.
const TO_SWEEP: u32 = 2;
const SWEEPING: u32 = 3;
const OFF: u32 = 4;

/// Windows at least that a cache is on: it begins empty.
pub(super) const LEAST: u32 = 8;

/// Windows that it rests at first, and at most.
const REST: u32 = 16;
const LONGEST_REST: u32 = 1024;

/// Of 100 reads, the hits that make it worth while.
const LEAST_HITS: u64 = 10;

/// Of 100 operations, the reads that keep it on, and those that bring it back.
const LEAST_READS: u64 = 10;
const READS_TO_RETURN: u64 = 20;

/// Reads of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads by key.
    pub reads: u32,
    /// Of these, those that the cache has answered.
    pub hits: u32,
}

/// The meaning of reads that were noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing.
    None,
    /// They end the window of this number of a cache that stays on.
    Window(u32),
    /// The cache begins to turn off.
    GoesOff,
}

/// Counts of writes.
const SHARDS: usize = 16;

/// The state of a cache and the counts of its window.
#[derive(Default)]
pub(super) struct Pulse {
    /// Operations after which the counts are looked at.
    window: u64,
    /// Each window is a reason for a turn.
    is_restless: bool,
    state: AtomicU32,
    reads: AtomicU64,
    hits: AtomicU64,
    /// Writes, by the address of their clients: few clients share one.
    writes: [Padded<AtomicU32>; SHARDS],
    /// Windows since the last turn.
    windows: AtomicU32,
    /// Windows that the next rest takes.
    rest: AtomicU32,
    /// Reads and hits of earlier windows.
    reads_before: AtomicU64,
    hits_before: AtomicU64,
}

impl Pulse {
    pub(super) fn new(window: u64, is_restless: bool) -> Pulse {
        Pulse { window, is_restless, ..Pulse::default() }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.state.load(Ordering::Acquire) == ON
    }

    /// Reads and hits that were noted.
    pub(super) fn reads(&self) -> (u64, u64) {
        let sum = |a: &AtomicU64, b: &AtomicU64| a.load(Ordering::Relaxed) + b.load(Ordering::Relaxed);
        (sum(&self.reads, &self.reads_before), sum(&self.hits, &self.hits_before))
    }

    /// Notes a write.
    pub(super) fn note_write(&self, guard: &Guard<'_>) {
        let client = std::ptr::from_ref(guard.participant()).addr() / align_of::<Padded<u8>>();
        self.writes[client % SHARDS].0.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes reads. If the window that they end is a reason for it, the cache turns on, or begins to turn
    /// off.
    pub(super) fn note(&self, counts: Counts, is_even: impl FnOnce() -> bool) -> Beat {
        let Counts { reads, hits } = counts;
        self.hits.fetch_add(u64::from(hits), Ordering::Relaxed);
        let reads = self.reads.fetch_add(u64::from(reads), Ordering::Relaxed) + u64::from(reads);
        let writes = self.writes.iter().map(|count| u64::from(count.0.load(Ordering::Relaxed))).sum::<u64>();
        if reads + writes < self.window {
            return Beat::None;
        }
        // One of several threads that come here at once takes nearly all, and ends the window.
        let [reads, hits] = [&self.reads, &self.hits].map(|count| count.swap(0, Ordering::Relaxed));
        let writes =
            self.writes.iter().map(|count| u64::from(count.0.swap(0, Ordering::Relaxed))).sum::<u64>();
        self.reads_before.fetch_add(reads, Ordering::Relaxed);
        self.hits_before.fetch_add(hits, Ordering::Relaxed);
        if reads + writes < self.window / 2 {
            return Beat::None;
        }
        let windows = self.windows.fetch_add(1, Ordering::Relaxed) + 1;
        let share_of_reads = reads * 100 / (reads + writes);
        match self.state.load(Ordering::Acquire) {
            ON => {
                let is_useless =
                    || hits * 100 < reads * LEAST_HITS || share_of_reads < LEAST_READS || is_even();
                let goes_off = self.is_restless || windows >= LEAST && is_useless();
                if !goes_off || !self.begin(ON, GOING_OFF) {
                    return Beat::Window(windows);
                }
                let is_at_once = windows < 2 * LEAST;
                let rest = self.rest.load(Ordering::Relaxed);
                let next = if is_at_once { (rest * 2).clamp(REST, LONGEST_REST) } else { REST };
                self.rest.store(next, Ordering::Relaxed);
                Beat::GoesOff
            }
            OFF => {
                let has_rested = windows >= self.rest.load(Ordering::Relaxed);
                let returns = has_rested && share_of_reads >= READS_TO_RETURN;
                if (returns || self.is_restless) && self.begin(OFF, ON) {
                    self.windows.store(0, Ordering::Relaxed);
                }
                Beat::None
            }
            _ => Beat::None,
        }
    }

    fn begin(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether it is turning off.
    pub(super) fn is_turning(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), GOING_OFF | TO_SWEEP)
    }

    /// All threads have left that were pinned when the cache began to turn off.
    pub(super) fn let_sweep(&self) {
        self.state.store(TO_SWEEP, Ordering::Release);
    }

    /// Whether the caller is to empty the table, and then to [end](Pulse::end) the turn.
    pub(super) fn is_to_sweep(&self) -> bool {
        self.state.load(Ordering::Relaxed) == TO_SWEEP && self.begin(TO_SWEEP, SWEEPING)
    }

    /// The table is empty: the cache is off.
    pub(super) fn end(&self) {
        self.windows.store(0, Ordering::Relaxed);
        self.state.store(OFF, Ordering::Release);
    }
}
