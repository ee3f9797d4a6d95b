//! The shared side of reclamation: the epoch, the announcements, and the garbage of participants that left.

use super::barrier::Barrier;
use super::holder::{Holder, HolderWords};
use super::participant::Participant;
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Padded, SpinLock, point};
use std::sync::Arc;

/// The announcement of a participant that is not pinned: that of a new slot. Epochs start above it.
pub(super) const UNPINNED: u64 = 0;
const FIRST_EPOCH: u64 = 1;
/// Stands for the oldest orphan's epoch if there is no orphan.
const NOTHING_WAITS: u64 = u64::MAX;

/// The announcement of a participant.
#[derive(Default)]
pub(super) struct Announced {
    /// The epoch in which it is pinned, or [`UNPINNED`].
    pub(super) epoch: AtomicU64,
    /// The one that keeps it pinned for long, if somebody [said so](super::Participant::hold).
    pub(super) holder: HolderWords,
}

/// A participant's announcement, alone on its lines.
pub(super) type Slot = Padded<Announced>;

pub(super) struct Retired {
    /// The global epoch, read after the thing was unlinked.
    pub(super) epoch: u64,
    pub(super) release: Box<dyn FnOnce() + Send>,
}

impl Retired {
    /// Whether no thread can reach the thing any more, if no participant is pinned in an epoch before
    /// `horizon`.
    pub(super) fn is_ripe(&self, horizon: u64) -> bool {
        self.epoch < horizon
    }
}

struct Entry {
    slot: Arc<Slot>,
    taken: bool,
}

pub(super) struct Shared {
    epoch: AtomicU64,
    pub(super) barrier: Barrier,
    entries: SpinLock<Vec<Entry>>,
    orphans: SpinLock<Vec<Retired>>,
    /// Epoch of the oldest orphan, or [`NOTHING_WAITS`]; read without the lock.
    oldest_orphan: AtomicU64,
}

/// Decides when retired things may be released; one per store, cheap to clone.
///
/// ```
/// use quipu_parts::epoch::Collector;
/// let collector = Collector::new();
/// let participant = collector.register();
/// let guard = participant.pin();
/// // ... read and unlink shared things, then hand them over:
/// guard.defer(Box::new(|| ()));
/// drop(guard);
/// participant.collect();
/// ```
#[derive(Clone)]
pub struct Collector {
    shared: Arc<Shared>,
}

impl Collector {
    /// A collector without participants.
    pub fn new() -> Collector {
        Collector {
            shared: Arc::new(Shared {
                epoch: AtomicU64::new(FIRST_EPOCH),
                barrier: Barrier::choose(),
                entries: SpinLock::default(),
                orphans: SpinLock::default(),
                oldest_orphan: AtomicU64::new(NOTHING_WAITS),
            }),
        }
    }

    /// A participant for one client thread. Slots of dropped participants are reused, so the cost of a
    /// collection is bounded by the largest number of participants that were alive at once.
    pub fn register(&self) -> Participant {
        Participant::new(Arc::clone(&self.shared), self.shared.take_slot())
    }

    /// The holder of the oldest epoch that any participant is pinned in: of several this thread. `None` if
    /// nobody is pinned, or if it is a call that returns soon.
    pub fn oldest_holder(&self, this_thread: u32) -> Option<Holder> {
        let entries = self.shared.entries.lock();
        let pinned = entries.iter().filter_map(|entry| {
            let epoch = entry.slot.0.epoch.load(Ordering::Acquire);
            (epoch != UNPINNED).then(|| (epoch, entry.slot.0.holder.get()))
        });
        let is_other = |holder: &Option<Holder>| holder.is_none_or(|holder| holder.thread != this_thread);
        pinned.min_by_key(|(epoch, holder)| (*epoch, is_other(holder)))?.1
    }

    /// Slots ever made: the largest number of participants that were alive at once.
    pub fn slots(&self) -> usize {
        self.shared.entries.lock().len()
    }
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

impl Shared {
    /// The epoch to announce. It may be outdated when it is announced, which only delays reclamation.
    #[inline]
    pub(super) fn epoch_to_announce(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The epoch that a thing unlinked before this call is retired with.
    pub(super) fn epoch_of_retirement(&self) -> u64 {
        // The unlinking store must be visible before the epoch is read. Otherwise a reader that pins in
        // between could announce a later epoch than the retirement's and still find the thing.
        fence(Ordering::SeqCst);
        self.epoch.load(Ordering::SeqCst)
    }

    /// Begins a new epoch, and returns the oldest one in which a participant may be pinned: everything
    /// retired before it may be released. `oldest` is the epoch of the oldest retired thing. If a participant
    /// is seen to be pinned in it or before, there is nothing to gain, and no thread is interrupted. Then,
    /// and if the system refuses the barrier, the result is 0: nothing may be released, not even older things
    /// that other participants have left meanwhile.
    pub(super) fn horizon(&self, oldest: u64) -> u64 {
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        point();
        let entries = self.entries.lock();
        let seen = oldest_announced(&entries, epoch);
        if seen <= oldest || !self.barrier.before_looking() {
            return 0;
        }
        oldest_announced(&entries, epoch)
    }

    fn take_slot(&self) -> Arc<Slot> {
        let mut entries = self.entries.lock();
        if let Some(free) = entries.iter_mut().find(|entry| !entry.taken) {
            free.taken = true;
            return Arc::clone(&free.slot);
        }
        let slot = Arc::<Slot>::default();
        entries.push(Entry { slot: Arc::clone(&slot), taken: true });
        slot
    }

    pub(super) fn return_slot(&self, slot: &Arc<Slot>) {
        // A guard that was forgotten has left its holder.
        slot.0.holder.clear();
        slot.0.epoch.store(UNPINNED, Ordering::Release);
        let mut entries = self.entries.lock();
        let entry = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.slot, slot));
        entry.expect("a participant's slot stays registered").taken = false;
    }

    /// Takes over garbage that a leaving participant could not release yet, or that any collection may
    /// release.
    pub(super) fn adopt(&self, retired: impl Iterator<Item = Retired>) {
        let mut orphans = self.orphans.lock();
        let added = orphans.len();
        orphans.extend(retired);
        self.note_oldest(self.oldest_orphan(), &orphans[added..]);
    }

    /// The epoch of the oldest of these.
    pub(super) fn oldest_orphan(&self) -> Option<u64> {
        Some(self.oldest_orphan.load(Ordering::Acquire)).filter(|oldest| *oldest != NOTHING_WAITS)
    }

    fn note_oldest(&self, before: Option<u64>, orphans: &[Retired]) {
        let oldest = orphans.iter().map(|retired| retired.epoch).chain(before).min().unwrap_or(NOTHING_WAITS);
        self.oldest_orphan.store(oldest, Ordering::Release);
    }

    /// Removes and returns those of them that may be released.
    pub(super) fn ripe_orphans(&self, horizon: u64) -> Vec<Retired> {
        if self.oldest_orphan().is_none_or(|oldest| oldest >= horizon) {
            return Vec::new();
        }
        let mut orphans = self.orphans.lock();
        let ripe = orphans.extract_if(.., |retired| retired.is_ripe(horizon)).collect();
        self.note_oldest(None, &orphans);
        ripe
    }
}

/// The oldest epoch in which a participant is seen to be pinned; `epoch` if none is pinned before it.
fn oldest_announced(entries: &[Entry], epoch: u64) -> u64 {
    let announced = entries.iter().map(|entry| entry.slot.0.epoch.load(Ordering::Acquire));
    announced.filter(|announced| *announced != UNPINNED).fold(epoch, u64::min)
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Participants keep this alive, so there is none left, and no thread is pinned.
        for retired in self.orphans.get_mut().drain(..) {
            (retired.release)();
        }
    }
}
