//! Watching a simulated region: a call before every operation that changes the region or its durable state.
//!
//! Those are the only moments at which a crash can leave something new, so a crash explorer takes its
//! snapshots there. An observer may take snapshots, boot other regions from them and even run tasks there (it
//! is called as if outside of the run). It must not touch the region that it watches.
//!
//! Thread-safety: an observer need not be `Send`. It stays on the OS thread that set it. Operations of other
//! threads on the region panic while it is set, and if the region is dropped elsewhere the observer is
//! leaked, not dropped.

use super::simulator::Sim;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// The operation that is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The operation.
    pub kind: EventKind,
    /// The task that performs it; 0 outside of a simulated run.
    pub task: u32,
    /// First byte, 0 for fences and syncs.
    pub offset: u64,
    /// Bytes, 0 for fences and syncs.
    pub len: u64,
}

/// Operations that change a region or its durable state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A bulk write through the caches.
    Write,
    /// A bulk write past the caches.
    WriteNt,
    /// An 8-byte atomic store.
    Store,
    /// A compare-and-swap, which may still fail.
    CompareExchange,
    /// A write-back of lines.
    Flush,
    /// A fence.
    Fence,
    /// Everything becomes durable.
    Sync,
}

/// Called with the simulator and the operation before it happens.
pub type Observer = Box<dyn FnMut(&Sim, Event)>;

thread_local! {
    static TOKEN: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other OS thread has or will have; never 0.
fn token() -> u64 {
    static TOKENS: AtomicU64 = AtomicU64::new(1);
    if TOKEN.get() == 0 {
        TOKEN.set(TOKENS.fetch_add(1, Ordering::Relaxed));
    }
    TOKEN.get()
}

/// The place of the observer.
pub(super) struct ObserverSlot {
    /// Token of the thread that set the observer, 0 if there is none. Only that thread touches the other
    /// fields.
    owner: AtomicU64,
    called: Cell<bool>,
    observer: UnsafeCell<Option<Observer>>,
}

// SAFETY: `called` and `observer` are touched only by the thread whose token is in `owner`, which it put
// there by a compare-and-swap from 0 and which it alone takes away; `drop` leaks an observer of another
// thread.
unsafe impl Send for ObserverSlot {}
// SAFETY: as for Send.
unsafe impl Sync for ObserverSlot {}

impl ObserverSlot {
    pub(super) fn new() -> ObserverSlot {
        ObserverSlot { owner: AtomicU64::new(0), called: Cell::new(false), observer: UnsafeCell::new(None) }
    }

    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.owner.load(Ordering::Acquire) != 0
    }

    /// Panics unless the calling thread owns the slot and is not inside its observer.
    fn check(&self) {
        assert!(
            self.owner.load(Ordering::Acquire) == token(),
            "an observed region is used by one OS thread only, the one that set the observer"
        );
        assert!(!self.called.get(), "an observer must not change the region it watches");
    }

    /// Puts an observer in place, or takes it away.
    pub(super) fn set(&self, observer: Option<Observer>) {
        let free = self.owner.compare_exchange(0, token(), Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !free {
            self.check();
        }
        let keeps = observer.is_some();
        // SAFETY: this thread owns the slot and is not inside the observer.
        let previous = unsafe { std::mem::replace(&mut *self.observer.get(), observer) };
        if !keeps {
            self.owner.store(0, Ordering::Release);
        }
        drop(previous);
    }

    #[cold]
    pub(super) fn call(&self, sim: &Sim, event: Event) {
        struct Called<'a>(&'a Cell<bool>);
        impl Drop for Called<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        self.check();
        self.called.set(true);
        let _called = Called(&self.called);
        // SAFETY: the observer belongs to this thread, and `called` keeps this reference the only one.
        if let Some(observer) = unsafe { &mut *self.observer.get() } {
            super::sched::outside(|| observer(sim, event));
        }
    }
}

impl Drop for ObserverSlot {
    fn drop(&mut self) {
        let foreign = *self.owner.get_mut() != token();
        if let Some(observer) = self.observer.get_mut().take()
            && foreign
        {
            std::mem::forget(observer);
        }
    }
}
