//! The numbers at which somebody reads, for purges.
//!
//! *No purge under a snapshot.* A purge reads the visible number, passes a full fence, and then
//! looks for snapshots. A snapshot announces itself, passes a full fence, and then reads the visible number,
//! at which it will read. If the purge misses the announcement, its fence came before that of the snapshot.
//! So the snapshot reads at the number that the purge has seen, or at a higher one, and needs no version that
//! the purge takes away. The language orders it so; only a model shows the purge that lacks its fence.
//!
//! *A write copies no list.* Each change of the list has a number, the *generation*, which is also the
//! announcement. A writer keeps the list that it saw last, and takes the lock only for a later one: it waits
//! there for a snapshot that is announced and has no number yet.
//!
//! A number is announced by the thread that has just read it, and by no other: at an older one, versions may
//! be gone already.
//!
//! *A snapshot may have an end.* When its time has come, a cleaner takes it off the list, and says so first.
//! Its owner asks behind each read: if the read has missed a version that a purge took, the answer is yes.

use crate::epoch::Holder;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::twin;
use std::sync::Arc;

/// The snapshots of a pool.
#[derive(Clone, Default)]
pub struct Snapshots(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Changes of the list, those under way included.
    generation: AtomicU64,
    /// See [`Snapshots::earliest_time`]; 0 while nobody has taken one.
    earliest: AtomicU64,
    list: SpinLock<List>,
}

#[derive(Default)]
struct List {
    /// Those that were taken, by their numbers.
    taken: Vec<Taken>,
    /// The numbers, ascending.
    numbers: Arc<[u64]>,
}

struct Taken {
    number: u64,
    /// Of this one alone.
    id: u64,
    holder: Holder,
    terms: Terms,
    has_ended: Option<Arc<AtomicBool>>,
}

/// The terms of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The time at which it sees values expire, in milliseconds since 1970. [`u64::MAX`] if it sees the time
    /// go on.
    pub time: u64,
    /// When it [ends](Snapshots::end_due), in milliseconds of the medium's clock; [`u64::MAX`] for never.
    pub end: u64,
}

impl Terms {
    /// Those of a snapshot that sees the time go on, and has no end.
    pub const NONE: Terms = Terms { time: u64::MAX, end: u64::MAX };
}

/// The state at a number, until it drops.
pub struct Snapshot {
    number: u64,
    id: u64,
    end: u64,
    has_ended: Option<Arc<AtomicBool>>,
    shared: Arc<Shared>,
}

/// The versions that somebody may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    /// A number that was visible: readers without a snapshot look there, or above.
    pub visible: u64,
    /// The numbers of snapshots, ascending.
    pub snapshots: Arc<[u64]>,
    /// That of the list; 0 for the empty list of the beginning.
    generation: u64,
}

impl Horizon {
    /// For readers at this number or above, and at those of snapshots, which ascend.
    pub fn new(visible: u64, snapshots: impl Into<Arc<[u64]>>) -> Horizon {
        Horizon { visible, snapshots: snapshots.into(), generation: 0 }
    }

    /// Leaves out a snapshot at which nobody will read any more, until the horizon is asked for again.
    pub fn leave_out(&mut self, snapshot: &Snapshot) {
        let Some(at) = self.snapshots.iter().position(|number| *number == snapshot.number) else { return };
        let others = self.snapshots.iter().enumerate().filter(|(other, _)| *other != at);
        self.snapshots = others.map(|(_, number)| *number).collect();
        // That of no list.
        self.generation = u64::MAX;
    }
}

impl Snapshots {
    /// The state that is visible now.
    pub fn take(&self, holder: Holder, terms: Terms, visible: impl FnOnce() -> u64) -> Snapshot {
        let has_ended = (terms.end != u64::MAX).then(Arc::default);
        let mut list = self.0.list.lock();
        let mut id = 0;
        let mut announce = || {
            id = self.0.generation.fetch_add(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        };
        let number = if twin!(ReadUnannounced) {
            let number = visible();
            announce();
            number
        } else {
            announce();
            visible()
        };
        let at = list.taken.partition_point(|other| other.number <= number);
        list.taken.insert(at, Taken { number, id, holder, terms, has_ended: has_ended.clone() });
        self.0.publish(&mut list);
        drop(list);
        Snapshot { number, id, end: terms.end, has_ended, shared: self.0.clone() }
    }

    /// Takes one off the list, as if it were not there.
    #[cfg(feature = "twins")]
    pub fn forget(&self, snapshot: &Snapshot) {
        let mut list = self.0.list.lock();
        list.taken.retain(|taken| taken.id != snapshot.id);
        self.0.publish(&mut list);
        self.0.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the snapshots whose time has come.
    pub fn end_due(&self, now: u64) {
        let mut list = self.0.list.lock();
        let before = list.taken.len();
        list.taken.retain(|taken| {
            let is_due = taken.terms.end <= now;
            taken.has_ended.iter().filter(|_| is_due).for_each(|ended| ended.store(true, Ordering::SeqCst));
            !is_due
        });
        if list.taken.len() < before {
            self.0.publish(&mut list);
            self.0.generation.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The versions that somebody may read from now on. `horizon` is that of an earlier call, or a new one.
    #[inline]
    pub fn horizon(&self, visible: impl FnOnce() -> u64, horizon: &mut Horizon) {
        horizon.visible = visible();
        fence(Ordering::SeqCst);
        if self.0.generation.load(Ordering::Relaxed) != horizon.generation {
            self.renew(horizon);
        }
    }

    #[cold]
    fn renew(&self, horizon: &mut Horizon) {
        let list = self.0.list.lock();
        horizon.snapshots = list.numbers.clone();
        horizon.generation = self.0.generation.load(Ordering::Relaxed);
    }

    /// Whether a snapshot was taken here.
    pub fn have(&self, snapshot: &Snapshot) -> bool {
        Arc::ptr_eq(&self.0, &snapshot.shared)
    }

    /// The oldest number at which somebody reads.
    pub fn oldest(&self) -> Option<u64> {
        self.0.list.lock().numbers.first().copied()
    }

    /// The holder of the oldest number.
    pub fn oldest_holder(&self) -> Option<Holder> {
        self.0.list.lock().taken.first().map(|taken| taken.holder)
    }

    /// The earliest time at which one of them sees values expire; [`u64::MAX`] if all see the time go on.
    pub fn earliest_time(&self) -> u64 {
        match self.0.earliest.load(Ordering::Acquire) {
            0 => u64::MAX,
            time => time,
        }
    }
}

impl Shared {
    fn publish(&self, list: &mut List) {
        list.numbers = list.taken.iter().map(|taken| taken.number).collect();
        let earliest = list.taken.iter().map(|taken| taken.terms.time).min();
        self.earliest.store(earliest.unwrap_or(u64::MAX), Ordering::Release);
    }
}

impl Snapshot {
    /// Its number.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether its time has come, by the medium's clock in milliseconds. Asked behind a read: if not, nothing
    /// of it was gone.
    #[inline]
    pub fn has_ended(&self, now: impl FnOnce() -> u64) -> bool {
        let is_over = |ended: &Arc<AtomicBool>| ended.load(Ordering::SeqCst) || self.end <= now();
        self.has_ended.as_ref().is_some_and(is_over)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut list = self.shared.list.lock();
        let Some(at) = list.taken.iter().position(|taken| taken.id == self.id) else { return };
        list.taken.remove(at);
        self.shared.publish(&mut list);
        // A purge that sees this takes the lock, and comes after all that the snapshot has read. One that
        // does not see it keeps more.
        self.shared.generation.fetch_add(1, Ordering::Relaxed);
    }
}
