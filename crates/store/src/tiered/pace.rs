//! The pace of writers while a layer is being dumped, so that none of them meets a full pool.
//!
//! One half of the pool fills while the other is dumped. A writer that is ahead of the dump pauses after its
//! writes, by the time that the dump takes for as many bytes, times a factor that grows with the lead. So the
//! rate of writes comes down to that of the dump, however many writers there are, and no write waits long.
//! First levels that compaction has not merged yet count likewise.
//!
//! The paper has one frozen index at most, and says nothing of writers that have to wait for its dump.

use quipu_medium::Region;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A lead that costs nothing, in parts of 64 of a half, and one that doubles the pause.
const FREE: i64 = 4;
const STEP: i64 = 8;
/// The factor has a limit.
const MOST: u64 = 16;
/// Shorter pauses are saved up, in microseconds; longer ones are cut.
const LEAST: u64 = 250;
const LONGEST: u64 = 20_000;
/// Runs of a first level at which writers are slowed like those that are half a pool ahead.
const MOST_RUNS: u64 = 16;
/// The rate of a dump before one has been measured, in bytes for each millisecond.
const RATE: u64 = 300_000;

/// The progress of dumps, and the pauses of writers.
#[derive(Default)]
pub(super) struct Pace {
    /// Zones of the layer that is being dumped; 0 if none is.
    frozen: AtomicU32,
    /// Bytes of its records, and those of them that are written.
    goal: AtomicU64,
    done: AtomicU64,
    began: AtomicU64,
    /// Bytes for each millisecond of the last dump; 0 before the first.
    rate: AtomicU64,
    /// Runs of the fullest first level, in parts of 64 of the most.
    unmerged: AtomicU32,
    pauses: AtomicU64,
    paused_us: AtomicU64,
}

impl Pace {
    /// A dump of so many zones with so many bytes begins.
    pub(super) fn begin(&self, zones: u32, bytes: u64, now: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.goal.store(bytes.max(1), Ordering::Relaxed);
        self.began.store(now, Ordering::Relaxed);
        self.frozen.store(zones, Ordering::Relaxed);
    }

    /// So many bytes more are written.
    pub(super) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of the present dump, or the last one, that are written.
    pub(super) fn written(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// The dump has ended.
    pub(super) fn end(&self, now: u64) {
        let (done, began) = (self.done.load(Ordering::Relaxed), self.began.load(Ordering::Relaxed));
        let took = now.saturating_sub(began).max(1);
        // The rate of a short one is that of its synchronisations.
        if took >= 10 {
            self.rate.store((done / took).max(1), Ordering::Relaxed);
        }
        self.frozen.store(0, Ordering::Relaxed);
    }

    /// Pauses a writer that has written `written` bytes since its last pause, if that is due. `used` zones of
    /// `all` are in use.
    pub(super) fn keep(&self, region: &Region, written: &mut u64, used: u32, all: u32) {
        let factor = self.factor(used, all);
        if factor == 0 {
            *written = 0;
            return;
        }
        let rate = match self.rate.load(Ordering::Relaxed) {
            0 => RATE,
            rate => rate,
        };
        let pause = *written * factor * 1000 / rate;
        if pause >= LEAST {
            *written = 0;
            let pause = pause.min(LONGEST);
            region.pause(pause);
            self.pauses.fetch_add(1, Ordering::Relaxed);
            self.paused_us.fetch_add(pause, Ordering::Relaxed);
        }
    }

    /// The factor of a pause: 0 for none.
    fn factor(&self, used: u32, all: u32) -> u64 {
        let unmerged = i64::from(self.unmerged.load(Ordering::Relaxed)) - 32;
        let frozen = self.frozen.load(Ordering::Relaxed);
        let lead = match frozen {
            0 => 0,
            _ => {
                let filled =
                    i64::from(used.saturating_sub(frozen)) * 64 / i64::from(all - frozen.min(all - 1));
                let (done, goal) = (self.done.load(Ordering::Relaxed), self.goal.load(Ordering::Relaxed));
                filled - (done.min(goal) as i64 * 64 / goal as i64)
            }
        };
        let ahead = lead.max(unmerged) - FREE;
        if ahead <= 0 { 0 } else { (1 + (ahead / STEP) as u64).min(MOST) }
    }

    /// So many runs are in the fullest first level.
    pub(super) fn unmerged(&self, runs: u64) {
        self.unmerged.store((runs * 64 / MOST_RUNS).min(256) as u32, Ordering::Relaxed);
    }

    /// Pauses so far, and how long they took together, in milliseconds.
    pub(super) fn paused(&self) -> (u64, u64) {
        (self.pauses.load(Ordering::Relaxed), self.paused_us.load(Ordering::Relaxed) / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_ahead_of_the_dump_pauses_the_longer_the_further() {
        let pace = Pace::default();
        let factors = |used: &[u32]| used.iter().map(|used| pace.factor(*used, 128)).collect::<Vec<_>>();
        assert_eq!(factors(&[0, 64, 127]), [0, 0, 0], "nothing is being dumped");
        pace.begin(64, 1000, 0);
        assert_eq!(factors(&[64, 68, 69, 80, 127]), [0, 0, 1, 2, 8]);
        pace.advance(500);
        assert_eq!(factors(&[96, 100, 101, 127]), [0, 0, 1, 4]);
        pace.end(100);
        assert_eq!(pace.factor(127, 128), 0);
        pace.unmerged(MOST_RUNS);
        assert_eq!(pace.factor(0, 128), 4, "first levels that are not merged");
    }
}
