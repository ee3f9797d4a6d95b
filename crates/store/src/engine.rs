//! [`Engine`]: the one enum that the façade holds, which says how the store's design walks.

use crate::background::{Bell, Progress};
use crate::check::{self, CheckReport};
use crate::checkpoint;
use crate::error::Error;
use crate::slotted::{self, Slots, with_slots};
use crate::spine::{Logs, with_logs};
use crate::stats::Stats;
use quipu_medium::{MediumKind, Region};
use quipu_parts::heap::Clock;
use quipu_parts::index::{Index, IndexGrowth};
use quipu_parts::space::Space;
use std::sync::Arc;

/// An open store, shared by its handle, its clients and its cleaner.
#[derive(Clone)]
pub(crate) enum Engine {
    /// Records in segments that are logs.
    Log(Logs),
    /// Records in slots of pages.
    Slots(Slots),
}

impl Engine {
    pub(crate) fn space(&self) -> &Space {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.heap.space()),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.heap().space()),
        }
    }

    pub(crate) fn region(&self) -> &Region {
        self.space().region()
    }

    pub(crate) fn clock(&self) -> &Clock {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.heap.clock()),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.heap().clock()),
        }
    }

    /// Who shares it, itself included.
    pub(crate) fn owners(&self) -> usize {
        match self {
            Engine::Log(logs) => logs.owners(),
            Engine::Slots(slots) => slots.owners(),
        }
    }

    /// Where its cleaner is called.
    pub(crate) fn bell(&self) -> &Arc<Bell> {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.compactor.bell()),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.bell()),
        }
    }

    /// A piece of the cleaner's work.
    pub(crate) fn clean_ahead(&self) -> Progress {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.clean_ahead()),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.clean_ahead()),
        }
    }

    /// Longest key and longest value, in bytes.
    pub(crate) fn limits(&self) -> (u64, u64) {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => (spine.key_limit(), spine.value_limit())),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.limits()),
        }
    }

    /// Whether of two puts that meet at a key one may return for the other.
    pub(crate) fn eliminates(&self) -> bool {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.eliminates()),
            Engine::Slots(_) => false,
        }
    }

    /// Whether puts may be published by later writes of their client.
    pub(crate) fn publishes_late(&self) -> bool {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.publishes_late),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.publishes_late()),
        }
    }

    /// Whether the index or the heap is growing at this moment.
    pub(crate) fn growing(&self) -> bool {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.index.growing() || spine.heap.growing()),
            Engine::Slots(slots) => {
                with_slots!(slots, spine => spine.index().growing() || spine.heap().growing())
            }
        }
    }

    /// How far the index has grown.
    pub(crate) fn index_growth(&self) -> IndexGrowth {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.index.growth()),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.index().growth()),
        }
    }

    /// Whether space is being won back at this moment.
    pub(crate) fn compacting(&self) -> bool {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.compactor.is_busy()),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.is_reclaiming()),
        }
    }

    /// Whether it is not known yet what is dead in segments of earlier runs.
    pub(crate) fn surveying(&self) -> bool {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.heap.unsurveyed().is_some()),
            Engine::Slots(_) => false,
        }
    }

    /// Wins all space back that there is; segments or blocks that became free, and bytes that had to move.
    pub(crate) fn compact(&self) -> Result<(u64, u64), Error> {
        match self {
            Engine::Log(logs) => {
                with_logs!(logs, spine => spine.compact().map(|done| (done.segments, done.moved)))
            }
            Engine::Slots(slots) => with_slots!(slots, spine => spine.compact()),
        }
    }

    /// Gives the storage of free zones back to the file system. The caller has the store for itself.
    pub(crate) fn trim(&self) -> Result<u64, Error> {
        self.bell().admit()?;
        // The checkpoint of the last close lies in such zones. A run that has begun leaves another when it ends.
        self.clock().draw(self.space());
        // The zone table that says they are free must not be lost to a crash of the system that leaves them without their headers.
        self.sync()?;
        Ok(self.space().discard_free_zones()?)
    }

    pub(crate) fn stats(&self) -> Stats {
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => spine.stats()),
            Engine::Slots(slots) => with_slots!(slots, spine => spine.stats()),
        }
    }

    /// An error if a thread has panicked at its work. What is in DRAM may be wrong then.
    fn fail_with_background(&self) -> Result<(), Error> {
        if self.bell().has_failed() { Err(Error::BackgroundFailed) } else { Ok(()) }
    }

    /// Proves everything. The caller has the store for itself.
    pub(crate) fn check(&self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        self.fail_with_background()?;
        match self {
            Engine::Log(logs) => with_logs!(logs, spine => check::check(spine, progress)),
            Engine::Slots(slots) => with_slots!(slots, spine => slotted::check(spine, progress)),
        }
    }

    /// Leaves the pool so that the next open knows that nothing is missing, unless it was only read. The caller has the store for
    /// itself.
    pub(crate) fn close(&self) -> Result<(), Error> {
        self.fail_with_background()?;
        if self.region().is_read_only() {
            return Ok(());
        }
        if let Engine::Log(logs) = self {
            with_logs!(logs, spine => spine.retire())?;
        }
        let space = self.space();
        if !space.superblock().is_clean() {
            match self {
                Engine::Log(logs) => with_logs!(logs, spine => spine.end_all_open())?,
                Engine::Slots(slots) => with_slots!(slots, spine => spine.retire())?,
            }
            let checkpoint = match self {
                Engine::Log(Logs::Quipu(spine)) => checkpoint::save(spine),
                Engine::Log(Logs::FlatstoreM(spine)) => checkpoint::save(spine),
                _ => None,
            }
            .unwrap_or_default();
            self.sync()?;
            let boot_id = self.region().boot_id();
            space.update_superblock(|superblock| {
                superblock.set_clean(true);
                superblock.boot_id = boot_id;
                superblock.checkpoint = checkpoint;
            });
        }
        self.sync()
    }

    /// Writes a file back to its device. What a persistent module or the simulator holds is durable when it is fenced.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        if self.region().kind() == MediumKind::File { Ok(self.region().sync()?) } else { Ok(()) }
    }
}
