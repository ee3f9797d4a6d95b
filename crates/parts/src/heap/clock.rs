//! The pool's one clock: sequence numbers of records and life numbers of segments come from it.
//!
//! One clock for both lets compaction decide from numbers alone whether a segment was opened before a record was
//! written. The clock never goes back: a ceiling stands in the superblock and is raised, durably, before a number
//! beyond it is drawn, a block at a time so that the cost vanishes. After a crash it goes on from the ceiling.
//!
//! If every write took its number from one counter, the counter's cache line would go from processor to processor with
//! each. So a client takes numbers in handfuls ([`Numbers`]) and gives them to its puts. That keeps what compaction
//! and recovery need of the order:
//! - *Per key it is that of the writes.* The stripe of the key remembers its newest number; a client whose next number
//!   is not above it throws its handful away and takes a fresh one, which is above all that were drawn before.
//! - *A record's number is above the life of its segment*, by the same comparison.
//! - *Lives and tombstones draw from the counter itself*, so that a tombstone's number is above the lives of all segments
//!   that were opened before it was written.
//!
//! Every change of a pool draws a number first, so the first raise of a run is also where a run durably begins:
//! the run number advances and the mark of a clean shutdown falls, before anything else changes.

use crate::space::Space;
use crate::sync::{Padded, SpinLock};
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's documentation.
pub struct Clock {
    /// All writers come to it, if seldom.
    next: Padded<AtomicU64>,
    ceiling: AtomicU64,
    begun: SpinLock<bool>,
    block: u64,
    handful: u64,
}

/// How the clock deals its numbers out.
#[derive(Clone, Copy, Debug)]
pub struct ClockSettings {
    /// Numbers between two durable raises of the ceiling.
    pub block: u64,
    /// Numbers that a client takes at once: enough to make taking them rare, few enough that clients that write the same
    /// stripes by turns seldom have to throw them away.
    pub handful: u64,
}

/// Numbers that a client has taken and not given to a record yet.
#[derive(Debug, Default)]
pub struct Numbers {
    next: u64,
    end: u64,
}

impl Clock {
    /// The clock of a pool, going on from its ceiling. If a copy of the superblock is lost, its ceiling may have been a block
    /// higher, and as much as a handful for every thread that drew meanwhile; what was written with such numbers recovery
    /// finds and [passes](Clock::pass).
    pub fn resume(space: &Space, settings: ClockSettings, copy_lost: bool) -> Clock {
        let ClockSettings { block, handful } = settings;
        let skipped = if copy_lost { 2 * (block + handful) } else { 0 };
        let ceiling = space.superblock().clock_ceiling.get() + skipped;
        Clock {
            next: Padded(AtomicU64::new(ceiling)),
            ceiling: AtomicU64::new(ceiling),
            begun: SpinLock::new(false),
            block,
            handful,
        }
    }

    /// Draws the next number.
    #[inline]
    pub fn draw(&self, space: &Space) -> u64 {
        let number = self.next.0.fetch_add(1, Ordering::Relaxed);
        if number >= self.ceiling.load(Ordering::Acquire) {
            self.raise(space, number, space.region().boot_id());
        }
        number
    }

    /// Draws a number above `floor` out of a client's handful, or a fresh one. `floor` must have been drawn.
    #[inline]
    pub fn draw_above(&self, space: &Space, numbers: &mut Numbers, floor: u64) -> u64 {
        if numbers.next <= floor || numbers.next == numbers.end {
            self.refill(space, numbers);
        }
        numbers.next += 1;
        numbers.next - 1
    }

    fn refill(&self, space: &Space, numbers: &mut Numbers) {
        let next = self.next.0.fetch_add(self.handful, Ordering::Relaxed);
        *numbers = Numbers { next, end: next + self.handful };
        if numbers.end > self.ceiling.load(Ordering::Acquire) {
            self.raise(space, numbers.end - 1, space.region().boot_id());
        }
    }

    /// Goes on beyond a number that was found in the pool: it was drawn, whatever the superblock says. A file's pages
    /// reach the disk in no order, so a crash of the system can leave records that are newer than the superblock.
    pub fn pass(&self, number: u64) {
        self.next.0.fetch_max(number + 1, Ordering::Relaxed);
        self.ceiling.fetch_max(number + 1, Ordering::Release);
    }

    /// Durably begins the run, if nothing has yet, for recovery: the boot id stays that of the run that crashed until
    /// [`settled`](Clock::settled), so that a recovery that is cut off finds the same excuse for lost pages again.
    pub fn begin(&self, space: &Space) {
        if !*self.begun.lock() {
            self.raise(space, self.ceiling.load(Ordering::Acquire), space.superblock().boot_id);
        }
    }

    /// Recovery is over: from here on the pool's pages are those of this boot.
    pub fn settled(&self, space: &Space) {
        let boot_id = space.region().boot_id();
        if space.superblock().boot_id != boot_id {
            space.update_superblock(|superblock| superblock.boot_id = boot_id);
        }
    }

    #[cold]
    fn raise(&self, space: &Space, number: u64, boot_id: [u8; 16]) {
        let mut begun = self.begun.lock();
        if number < self.ceiling.load(Ordering::Acquire) && *begun {
            return;
        }
        let ceiling = number + self.block;
        space.update_superblock(|superblock| {
            superblock.clock_ceiling.set(ceiling);
            if !*begun {
                superblock.run.set(superblock.run.get() + 1);
                superblock.mark_from(superblock.run.get());
                superblock.boot_id = boot_id;
                superblock.set_clean(false);
            }
        });
        // On a file, neither the mark of a clean shutdown nor an old ceiling may outlive the pages that this run will
        // change and that a crash of the system may lose. Should the device refuse, only such a crash is concerned.
        let _ = space.write_back_superblock();
        *begun = true;
        self.ceiling.store(ceiling, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{FormatOptions, FreeListKind};
    use quipu_medium::{Node, Pages, Region};

    fn space() -> Space {
        let options = FormatOptions {
            zone_size: 16 << 10,
            design: 1,
            settings: [0; _],
            features: &[],
            pools: Vec::new(),
            nodes: vec![Node(0)],
            free_list: FreeListKind::Persistent,
            secret: [1; 32],
            boot_id: [7; 16],
        };
        Space::format(Region::dram(1 << 20, Pages::Ordinary).expect("memory"), &options).expect("a new pool")
    }

    /// Recovery after a crash of the system may be cut off and must find the same excuse for lost pages again.
    #[test]
    fn recovery_begins_a_run_and_keeps_the_boot_id_until_it_is_settled() {
        let space = space();
        let clock = Clock::resume(&space, ClockSettings { block: 10, handful: 4 }, false);
        clock.begin(&space);
        let begun = space.superblock();
        assert_eq!((begun.run.get(), begun.boot_id), (1, [7; 16]));
        clock.settled(&space);
        assert_eq!(space.superblock().boot_id, space.region().boot_id());
        assert_eq!(space.superblock().run.get(), 1);
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
