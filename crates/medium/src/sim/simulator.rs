//! [`Sim`]: the simulator behind a region, and how a region is made of it.
//!
//! Every operation goes the same way: pass a switch point of the scheduler, tell the observer, then act under
//! the latch, in one piece. So an observer sees exactly the state before the announced operation.

use super::cost::Cost;
use super::dimm::Geometry;
use super::latch::Latch;
use super::line::Kind;
use super::memory::Memory;
use super::observer::{Event, EventKind, Observer, ObserverSlot};
use super::options::{Fault, SimOptions};
use super::page::PAGE;
use super::random::Random;
use super::sched::{self, Access, Identity};
use super::snapshot::Snapshot;
use crate::arch::LINE;
use crate::error::MediumError;
use crate::map::Mapping;
use crate::node::Span;
use crate::region::{Region, WORD};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The simulator behind a region. The proofs of the store reach it through [`Region::simulator`].
pub struct Sim {
    options: SimOptions,
    pub(super) mapping: Arc<Mapping>,
    pub(super) memory: Latch<Memory>,
    pub(super) boot: Latch<Boot>,
    observer: ObserverSlot,
    /// Calls of `reserve` that still succeed.
    reserves_left: AtomicU64,
    /// The time of the clock, and the latest that it ever had.
    now: AtomicU64,
    latest: AtomicU64,
}

/// The time at which the clock of a machine starts, in milliseconds since 1970. It stands until it is set.
pub const START_OF_TIME: u64 = 1_000_000;

/// The state that changes when the machine starts again.
pub(super) struct Boot {
    pub(super) id: [u8; 16],
    pub(super) random: Random,
}

impl Boot {
    pub(super) fn new(seed: u64) -> Boot {
        let mut random = Random::new(seed);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&random.next().to_le_bytes());
        id[8..].copy_from_slice(&random.next().to_le_bytes());
        Boot { id, random }
    }
}

impl Region {
    /// A simulated region of zeros, all durable.
    ///
    /// # Panics
    /// If memory for it cannot be mapped, or if it asks for more DIMMs than are modelled.
    pub fn sim(options: SimOptions) -> Region {
        Sim::region(&Arc::new(Sim::new(options)))
    }
}

impl Sim {
    pub(super) fn new(options: SimOptions) -> Sim {
        let options = SimOptions { len: options.len.max(1).next_multiple_of(PAGE), ..options };
        assert!(options.len / LINE <= u64::from(u32::MAX), "a simulated region has at most 2^32 lines");
        let mapping = Arc::new(Mapping::anonymous(options.len).expect("memory for a simulated region"));
        let geometry = Geometry::new(options.len, options.nodes, options.dimms);
        Sim {
            options,
            memory: Latch::new(Memory::new(Arc::clone(&mapping), geometry)),
            boot: Latch::new(Boot::new(options.seed)),
            mapping,
            observer: ObserverSlot::new(),
            reserves_left: AtomicU64::new(u64::MAX),
            now: AtomicU64::new(START_OF_TIME),
            latest: AtomicU64::new(START_OF_TIME),
        }
    }

    pub(super) fn region(sim: &Arc<Sim>) -> Region {
        Region::simulated(Arc::clone(&sim.mapping), Arc::clone(sim))
    }

    /// The shape of the region, its length rounded up to pages.
    pub fn options(&self) -> SimOptions {
        self.options
    }

    /// Counts since the region was made or booted.
    pub fn cost(&self) -> Cost {
        self.memory.hold().cost
    }

    /// Gives a task its home node; tasks start at node 0. The number stays assigned over runs.
    pub fn set_node(&self, task: u32, node: u16) {
        assert!(node < self.options.nodes, "node {node} of {}", self.options.nodes);
        self.memory.hold().set_node(task, node);
    }

    /// Gives the calling task a home node.
    pub(crate) fn move_home(&self, node: u16) {
        self.set_node(sched::task_id(), node);
    }

    /// See [`crate::Region::spans`].
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.memory.hold().geometry.spans()
    }

    /// The home node of the calling task.
    pub fn home_node(&self) -> u16 {
        self.memory.hold().home_node(sched::task_id())
    }

    /// Lets the medium misbehave, or behave again.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.memory.hold().omit_fence_every = match fault {
            Some(Fault::FenceOmitted { every }) => every.max(1),
            None => 0,
        };
    }

    /// Lets the next `calls` reservations of storage succeed and all later ones fail as on a full disk.
    pub fn fail_reserve_after(&self, calls: u64) {
        self.reserves_left.store(calls, Ordering::Relaxed);
    }

    /// Has `observer` called before every operation that changes the region or its durable state.
    ///
    /// # Panics
    /// From inside an observer, or from an OS thread other than that of the present observer.
    pub fn set_observer(&self, observer: Option<Observer>) {
        self.observer.set(observer);
    }

    /// The durable image and everything that may still arrive, as of now.
    pub fn snapshot(&self) -> Snapshot {
        let boot_id = self.boot.hold().id;
        Snapshot::take(self.options, boot_id, &self.memory.hold())
    }

    /// Identifies the boot of the simulated machine: a power failure changes it, a crash of the process does
    /// not.
    pub fn boot_id(&self) -> [u8; 16] {
        self.boot.hold().id
    }

    /// The time of the clock, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Sets the clock.
    pub fn set_now(&self, milliseconds: u64) {
        self.now.store(milliseconds, Ordering::Relaxed);
        self.latest.fetch_max(milliseconds, Ordering::Relaxed);
    }

    /// The latest time that the clock has had.
    pub fn ticks(&self) -> u64 {
        self.latest.load(Ordering::Relaxed)
    }

    /// Fills `out` with seeded randomness.
    pub fn entropy(&self, out: &mut [u8]) {
        let mut boot = self.boot.hold();
        for chunk in out.chunks_mut(8) {
            let word = boot.random.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    pub(super) fn revive(&mut self) {
        *self.reserves_left.get_mut() = u64::MAX;
        *self.now.get_mut() = START_OF_TIME;
        self.observer.set(None);
    }

    /// The way into every operation that changes something. `None` if it must not happen.
    #[inline]
    fn enter(&self, kind: EventKind, offset: u64, len: u64) -> Option<Identity> {
        let who = sched::step(Access::Store)?;
        if self.observer.is_set() {
            self.observer.call(self, Event { kind, task: who.task, offset, len });
        }
        Some(who)
    }

    pub(crate) fn write(&self, offset: u64, src: &[u8]) {
        if let Some(who) = self.enter(EventKind::Write, offset, src.len() as u64) {
            self.memory.hold().write(who, offset, src, Kind::Plain);
        }
    }

    /// The unaligned ends of a real non-temporal write take the cached route with a flush; here they are
    /// non-temporal like the rest, which allows more outcomes and forbids none. Without `streams`, all of it
    /// takes that route.
    pub(crate) fn write_nt(&self, offset: u64, src: &[u8]) {
        if let Some(who) = self.enter(EventKind::WriteNt, offset, src.len() as u64) {
            let mut memory = self.memory.hold();
            if self.options.streams {
                memory.write(who, offset, src, Kind::NonTemporal);
            } else {
                memory.write(who, offset, src, Kind::Plain);
                memory.flush(who, offset, src.len() as u64);
            }
        }
    }

    pub(crate) fn store(&self, offset: u64, value: u64) {
        if let Some(who) = self.enter(EventKind::Store, offset, WORD) {
            self.memory.hold().store(who, offset, value.to_le());
        }
    }

    /// While a failed run is torn down it changes nothing but claims success, so that retry loops in
    /// destructors end.
    pub(crate) fn compare_exchange(&self, offset: u64, current: u64, new: u64) -> Result<u64, u64> {
        match self.enter(EventKind::CompareExchange, offset, WORD) {
            Some(who) => self
                .memory
                .hold()
                .compare_exchange(who, offset, current.to_le(), new.to_le())
                .map(u64::from_le)
                .map_err(u64::from_le),
            None => Ok(current),
        }
    }

    pub(crate) fn flush(&self, offset: u64, len: u64) {
        if let Some(who) = self.enter(EventKind::Flush, offset, len) {
            self.memory.hold().flush(who, offset, len);
        }
    }

    pub(crate) fn fence(&self) {
        if let Some(who) = self.enter(EventKind::Fence, 0, 0) {
            self.memory.hold().fence(who);
        }
    }

    #[inline]
    pub(crate) fn note_read(&self, offset: u64, len: u64) {
        if let Some(who) = sched::step(Access::Load) {
            self.memory.hold().note_read(who, offset, len);
        }
    }

    pub(crate) fn sync(&self) {
        if self.enter(EventKind::Sync, 0, 0).is_some() {
            self.memory.hold().sync();
        }
    }

    pub(crate) fn reserve(&self, len: u64) -> Result<(), MediumError> {
        let left = self.reserves_left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(MediumError::DiskFull { path: "the simulated medium".into(), needed: len });
        }
        if left != u64::MAX {
            self.reserves_left.store(left - 1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim").field("options", &self.options).finish_non_exhaustive()
    }
}
