//! The pool's one clock, which numbers records (sequence numbers) and segments (life numbers).
//!
//! With one clock for both, compaction decides by numbers alone whether a segment was opened before a record
//! was written. The clock never goes back. Its ceiling is in the superblock and is raised durably before any
//! number beyond it is drawn, a whole block at a time, so that the cost vanishes. After a crash the clock
//! continues from the ceiling.
//!
//! If every write drew from one counter, the counter's cache line would move between processors with each
//! write. So a client draws batches ([`Numbers`]) and gives their numbers to its puts. Compaction and
//! recovery still get the order that they need:
//! - *For each key, numbers increase with the writes.* The stripe of the key remembers its newest number. A
//!   client whose next number is not above it discards its batch and draws a new one, which is above all
//!   numbers drawn before.
//! - *A record's number is above the life of its segment*, by the same comparison.
//! - *Lives and tombstones draw from the counter itself*, so a tombstone's number is above the lives of all
//!   segments that were opened before it was written.
//!
//! On a file, raising the ceiling waits for the device. There another thread [raises it
//! ahead](Clock::raise_ahead), asked when half of a block is used up. A writer waits only if that thread has
//! not finished when the other half is used up.
//!
//! Every change of a pool draws a number first. So the first raise of a run is also where the run durably
//! begins: before anything else changes, the run number advances and the pool is no longer marked clean.

use crate::space::Space;
use crate::sync::{Padded, SpinLock};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's documentation.
pub struct Clock {
    /// Every writer draws from it, though seldom.
    next: Padded<AtomicU64>,
    ceiling: AtomicU64,
    /// From this number on, the ceiling must be raised. It is the ceiling, or less if a helper can raise it
    /// ahead.
    due: AtomicU64,
    /// The last value of [`due`](Clock::due) for which the helper was asked.
    asked: AtomicU64,
    helper: OnceLock<Helper>,
    begun: SpinLock<bool>,
    block: u64,
    handful: u64,
}

/// Has another thread [raise the ceiling ahead](Clock::raise_ahead), and tells whether there is one.
type Helper = Box<dyn Fn() -> bool + Send + Sync>;

/// How the clock hands out numbers.
#[derive(Clone, Copy, Debug)]
pub struct ClockSettings {
    /// Numbers between two durable raises of the ceiling.
    pub block: u64,
    /// Numbers in a client's batch: enough to make draws rare, and few enough that clients that alternate on
    /// the same stripes seldom have to discard them.
    pub handful: u64,
}

/// Numbers that a client has drawn and not given to a record yet.
#[derive(Debug, Default)]
pub struct Numbers {
    next: u64,
    end: u64,
}

impl Clock {
    /// The clock of a pool, continued from its ceiling. If a copy of the superblock is lost, it may have held
    /// a ceiling one block higher, plus a batch for every thread that drew meanwhile. Recovery finds records
    /// with such numbers and [advances the clock past them](Clock::pass).
    pub fn resume(space: &Space, settings: ClockSettings, copy_lost: bool) -> Clock {
        let ClockSettings { block, handful } = settings;
        let skipped = if copy_lost { 2 * (block + handful) } else { 0 };
        let ceiling = space.superblock().clock_ceiling.get() + skipped;
        Clock {
            next: Padded(AtomicU64::new(ceiling)),
            ceiling: AtomicU64::new(ceiling),
            due: AtomicU64::new(ceiling),
            asked: AtomicU64::new(0),
            helper: OnceLock::new(),
            begun: SpinLock::new(false),
            block,
            handful,
        }
    }

    /// From the next raise on, asks `helper` ahead of each. If it has no thread, the asking writer raises the
    /// ceiling itself.
    pub fn ask_ahead(&self, helper: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.helper.set(Box::new(helper));
    }

    /// Draws the next number.
    #[inline]
    pub fn draw(&self, space: &Space) -> u64 {
        let number = self.next.0.fetch_add(1, Ordering::Relaxed);
        if number >= self.due.load(Ordering::Acquire) {
            self.approach(space, number);
        }
        number
    }

    /// Draws a number above `floor` from a client's batch, or from a new one. `floor` must have been drawn.
    #[inline]
    pub fn draw_above(&self, space: &Space, numbers: &mut Numbers, floor: u64) -> u64 {
        if numbers.next <= floor || numbers.next == numbers.end {
            self.refill(space, numbers);
        }
        numbers.next += 1;
        numbers.next - 1
    }

    fn refill(&self, space: &Space, numbers: &mut Numbers) {
        let Range { start: next, end } = self.draw_block(space, self.handful);
        *numbers = Numbers { next, end };
    }

    /// Draws so many numbers at once.
    pub fn draw_block(&self, space: &Space, count: u64) -> Range<u64> {
        let start = self.next.0.fetch_add(count, Ordering::Relaxed);
        let end = start + count;
        if end > self.due.load(Ordering::Acquire) {
            self.approach(space, end - 1);
        }
        start..end
    }

    /// Ensures that a number may be drawn, and that the next ones soon may.
    #[cold]
    fn approach(&self, space: &Space, number: u64) {
        let due = self.due.load(Ordering::Acquire);
        if number >= self.ceiling.load(Ordering::Acquire) {
            self.raise(space, number);
        } else if self.asked.swap(due, Ordering::Relaxed) != due
            && !self.helper.get().is_some_and(|helper| helper())
        {
            self.raise_ahead(space);
        }
    }

    /// Raises the ceiling if it is due.
    pub fn raise_ahead(&self, space: &Space) {
        let next = self.next.0.load(Ordering::Relaxed);
        if next < self.ceiling.load(Ordering::Acquire) && next >= self.due.load(Ordering::Acquire) {
            self.raise(space, next);
        }
    }

    /// Advances past a number that was found in the pool: it was drawn, even if the superblock's ceiling is
    /// lower. A file's pages reach the disk in any order, so after a crash of the system records can be newer
    /// than the superblock.
    pub fn pass(&self, number: u64) {
        self.next.0.fetch_max(number + 1, Ordering::Relaxed);
        self.ceiling.fetch_max(number + 1, Ordering::Release);
    }

    /// Durably begins the run, if it has not begun. It comes before the first change that needs no number.
    pub fn begin(&self, space: &Space) {
        if !*self.begun.lock() {
            self.raise(space, self.ceiling.load(Ordering::Acquire));
        }
    }

    #[cold]
    fn raise(&self, space: &Space, number: u64) {
        let mut begun = self.begun.lock();
        if number < self.due.load(Ordering::Acquire) && *begun {
            return;
        }
        let ceiling = number + self.block;
        space.update_superblock(|superblock| {
            superblock.clock_ceiling.set(ceiling);
            if !*begun {
                superblock.run.set(superblock.run.get() + 1);
                // Where a run crashed, [`Space::settle`] notes the place at the end of recovery.
                if superblock.is_clean() {
                    superblock.note_place(space.region());
                }
                superblock.set_clean(false);
            }
        });
        // On a file, a clean mark or an old ceiling must not survive on the device beside pages that this run
        // changes, which a crash of the system may lose. If the device refuses, only such a crash is
        // affected.
        let _ = space.write_back_superblock();
        *begun = true;
        self.ceiling.store(ceiling, Ordering::Release);
        let lead = if self.helper.get().is_some() { self.block / 2 } else { 0 };
        self.due.store(ceiling - lead, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{FormatOptions, FreeListKind};
    use quipu_medium::{Pages, Region};

    fn space() -> Space {
        let options = FormatOptions {
            zone_size: 16 << 10,
            design: 1,
            settings: [0; _],
            pools: Vec::new(),
            free_list: FreeListKind::Persistent,
            secret: [1; 32],
            boot_id: [7; 16],
        };
        Space::format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), &options).expect("a new pool")
    }

    /// A recovery that is interrupted must find the same excuse for lost pages again.
    #[test]
    fn recovery_begins_a_run_and_keeps_the_boot_id_until_it_is_settled() {
        let space = space();
        let clock = Clock::resume(&space, ClockSettings { block: 10, handful: 4 }, false);
        clock.begin(&space);
        let begun = space.superblock();
        assert_eq!((begun.run.get(), begun.boot_id), (1, [7; 16]));
        space.settle();
        assert_eq!(space.superblock().boot_id, space.region().boot_id());
        assert_eq!(space.superblock().run.get(), 1);
    }

    /// A closed pool has lost nothing that needs an excuse: its first change notes this boot and this file.
    #[test]
    fn the_run_of_a_closed_pool_notes_its_place_as_it_begins() {
        for draws in [false, true] {
            let space = space();
            space.update_superblock(|superblock| superblock.set_clean(true));
            let clock = Clock::resume(&space, ClockSettings { block: 10, handful: 4 }, false);
            if draws {
                _ = clock.draw(&space)
            } else {
                clock.begin(&space)
            }
            let begun = space.superblock();
            assert_eq!((begun.is_clean(), begun.boot_id), (false, space.region().boot_id()));
        }
    }

    /// Without a helper, a writer waits for the device at the end of each block.
    #[test]
    fn a_helper_raises_the_ceiling_before_anybody_needs_it() {
        use std::sync::Arc;
        use std::sync::atomic::AtomicU32;
        let space = space();
        let clock = Clock::resume(&space, ClockSettings { block: 100, handful: 4 }, false);
        let (asked, is_there) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(1)));
        let (noted, answer) = (asked.clone(), is_there.clone());
        clock.ask_ahead(move || {
            noted.fetch_add(1, Ordering::Relaxed);
            answer.load(Ordering::Relaxed) != 0
        });
        // The run begins at once.
        clock.draw(&space);
        let (mut numbers, mut newest) = (Numbers::default(), 0);
        for block in 1..5 {
            let before = space.superblock();
            while newest + 10 < before.clock_ceiling.get() {
                newest = clock.draw_above(&space, &mut numbers, newest);
            }
            assert_eq!(
                space.superblock().generation(),
                before.generation(),
                "nobody who draws has raised it"
            );
            assert_eq!(asked.load(Ordering::Relaxed), block, "asked once for each block");
            clock.raise_ahead(&space);
            clock.raise_ahead(&space);
            assert_eq!(space.superblock().generation(), before.generation() + 1);
            assert!(space.superblock().clock_ceiling.get() > newest + 90);
        }
        // First a helper that is asked and does not act in time; then one without a thread.
        for is_due in [0, 1] {
            for _ in 0..500 {
                newest = clock.draw_above(&space, &mut numbers, newest);
                assert!(newest < space.superblock().clock_ceiling.get());
            }
            is_there.store(is_due, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_number_is_drawn_beyond_the_durable_ceiling_or_twice() {
        const SETTINGS: ClockSettings = ClockSettings { block: 3, handful: 5 };
        let space = space();
        let clock = Clock::resume(&space, SETTINGS, false);
        let drawn: Vec<u64> = (0..10)
            .map(|_| {
                let number = clock.draw(&space);
                assert!(number < space.superblock().clock_ceiling.get());
                number
            })
            .collect();
        let mut numbers = Numbers::default();
        let mut newest = 0;
        for i in 0..300 {
            // Sometimes another client, or a segment's life, has gone ahead.
            newest = if i % 7 == 0 { clock.draw(&space) } else { newest };
            let number = clock.draw_above(&space, &mut numbers, newest);
            assert!(number > newest && number < space.superblock().clock_ceiling.get());
            newest = number;
        }
        let drawn = drawn.into_iter().chain([newest]).collect::<Vec<_>>();
        let resumed = Clock::resume(&space, SETTINGS, false);
        let next = resumed.draw(&space);
        assert!(drawn.iter().all(|number| *number < next));
        resumed.pass(1000);
        assert!(resumed.draw(&space) > 1000);
    }
}
