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

use crate::epoch::Holder;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::twin;
use std::sync::Arc;

/// The snapshots of a pool.
#[derive(Clone, Default)]
pub struct Snapshots(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Changes of the list, those under way included.
    generation: AtomicU64,
    list: SpinLock<List>,
}

#[derive(Default)]
struct List {
    /// Those who took them, by their numbers.
    holders: Vec<(u64, Holder)>,
    /// The numbers, ascending.
    numbers: Arc<[u64]>,
}

/// The state at a number, until it drops.
pub struct Snapshot {
    number: u64,
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
}

impl Snapshots {
    /// The state that is visible now.
    pub fn take(&self, holder: Holder, visible: impl FnOnce() -> u64) -> Snapshot {
        let mut list = self.0.list.lock();
        let announce = || {
            self.0.generation.fetch_add(1, Ordering::Relaxed);
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
        let at = list.holders.partition_point(|(other, _)| *other <= number);
        list.holders.insert(at, (number, holder));
        list.publish();
        drop(list);
        Snapshot { number, shared: self.0.clone() }
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
        self.0.list.lock().holders.first().map(|(_, holder)| *holder)
    }
}

impl List {
    fn publish(&mut self) {
        self.numbers = self.holders.iter().map(|(number, _)| *number).collect();
    }
}

impl Snapshot {
    /// Its number.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut list = self.shared.list.lock();
        // Of several at a number, any: the oldest of them is named for as long as one is there.
        let at = list.holders.partition_point(|(other, _)| *other <= self.number) - 1;
        list.holders.remove(at);
        list.publish();
        // A purge that sees this takes the lock, and comes after all that the snapshot has read. One that
        // does not see it keeps more.
        self.shared.generation.fetch_add(1, Ordering::Relaxed);
    }
}
