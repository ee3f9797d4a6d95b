//! The numbers at which somebody reads, for purges.
//!
//! *No purge under a snapshot.* A purge reads the visible number, passes a full fence, and then
//! looks for snapshots. A snapshot counts itself, passes a full fence, and then reads the visible number, at
//! which it will read. If the purge misses the count, its fence came before that of the snapshot. So the
//! snapshot reads at the number that the purge has seen, or at a higher one, and needs no version that the
//! purge takes away. The language orders it so; only a model shows the purge that lacks its fence.
//!
//! A number is announced by the thread that has just read it, and by no other: at an older one, versions may
//! be gone already. Several readers share a snapshot by a count.

use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::twin;
use std::sync::Arc;

/// The snapshots of a pool.
#[derive(Clone, Default)]
pub struct Snapshots(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Snapshots that are announced, or about to be.
    count: AtomicU64,
    /// Their numbers, ascending.
    numbers: SpinLock<Vec<u64>>,
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
    pub snapshots: Vec<u64>,
}

impl Snapshots {
    /// The state that is visible now.
    pub fn take(&self, visible: impl FnOnce() -> u64) -> Snapshot {
        let mut numbers = self.0.numbers.lock();
        let announce = || {
            self.0.count.fetch_add(1, Ordering::Relaxed);
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
        let at = numbers.partition_point(|other| *other <= number);
        numbers.insert(at, number);
        drop(numbers);
        Snapshot { number, shared: self.0.clone() }
    }

    /// The versions that somebody may read from now on.
    #[inline]
    pub fn horizon(&self, visible: impl FnOnce() -> u64, horizon: &mut Horizon) {
        horizon.snapshots.clear();
        horizon.visible = visible();
        fence(Ordering::SeqCst);
        if self.0.count.load(Ordering::Relaxed) != 0 {
            horizon.snapshots.extend_from_slice(&self.0.numbers.lock());
        }
    }

    /// Whether a snapshot was taken here.
    pub fn have(&self, snapshot: &Snapshot) -> bool {
        Arc::ptr_eq(&self.0, &snapshot.shared)
    }

    /// The oldest number at which somebody reads.
    pub fn oldest(&self) -> Option<u64> {
        self.0.numbers.lock().first().copied()
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
        let mut numbers = self.shared.numbers.lock();
        let at = numbers.binary_search(&self.number).expect("it was announced");
        numbers.remove(at);
        // Released with the lock: a purge that sees the count without this one may take its versions away,
        // and what this one has read, it has read before.
        self.shared.count.fetch_sub(1, Ordering::Release);
    }
}
