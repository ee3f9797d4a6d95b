//! The *Ring*: one order over all writes of a pool.
//!
//! Writes go in *items*, each of one or more records. An item passes five stages:
//!
//! ```text
//!  turn ──> GRANTED ──> WRITTEN ──> PUBLISHED ──> DONE ──> VISIBLE
//!           number and    one fence   readers may    slot n    all before it
//!           places, under of its      find it, if    holds n   are done too
//!           the lock      owner       it is visible
//! ```
//!
//! Only the first stage is serial: a few words of DRAM under a lock. Owners write, fence and publish side by
//! side. The ring puts their ends back in order. Up to the number [`visible`](Ring::visible), *all* items
//! are durable and published. It is the position of reads, of acknowledgements and of durability at once. So
//! a crash leaves a prefix, and nobody has seen more than that prefix.
//!
//! - Numbers rise with the order of the grants. The numbers of an item are contiguous.
//! - Item n is granted only when item n − capacity is visible, so that its slot is free.
//! - A slot holds the number of the item that is done there, not a flag: no round is taken for another.
//! - `visible` is only ever raised to the last number of an item below `head`, in any order.
//!
//! *No lost wake-up.* Let a thread A advance `head` to n and then find slot n not done. Its owner B stores
//! slot n, then changes `head` by adding nothing. If B's change comes after A's, B sees n there and goes on
//! itself. If it comes before, A's change reads the one of B, and so A sees the slot. A plain load in place
//! of B's change orders nothing, nor does a comparison that fails, as in the paper: both may miss the slot,
//! and the item is never visible. The model in `tests/loom_ring.rs` finds that.
//!
//! *Nothing fails behind a grant.* All sizes are checked, and all room is made, before it. A thread that
//! panics between its grant and its end leaves a hole in the order that nobody can fill. So the ring is
//! *poisoned* then, and everyone is told. Acknowledged writes are safe; the next open cuts the log there.
//!
//! Source: section 3.2.3 of the paper on an LSM engine for transactions on persistent memory (VLDB 2021).
//! Its `bid` and `sid` are the [turn](Grants), its `hid` is `head`. Its `commit_id` in persistent memory is
//! not needed, since [chunks](crate::heap::chain) prove themselves.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Padded, SpinGuard, SpinLock, Waiter, point};
use crate::twin;

/// How threads take turns at the grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grants {
    /// By a lock: the first of the threads that run.
    #[default]
    Lock,
    /// In the order in which they came, as in the paper. A thread that sleeps holds up all behind it.
    Ticket,
}

/// A thread panicked between the grant of its writes and their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a thread panicked while it wrote; acknowledged writes are safe, but the store must be opened anew")]
pub struct Poisoned;

/// The place of an item in the order of all writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The last number of the item granted before.
    pub before: u64,
    /// The number of its first record.
    pub first: u64,
    /// The number of its last record.
    pub last: u64,
    /// A number that was visible when it was granted: up to there, all is durable.
    pub floor: u64,
}

/// See the module's documentation. Grants change the `T`, which tells where the next bytes go.
pub struct Ring<T> {
    granted: SpinLock<Granted<T>>,
    /// Tickets handed out, and the one whose turn it is.
    tickets: Option<Padded<[AtomicU64; 2]>>,
    slots: Box<[Slot]>,
    /// Items below it are done.
    head: Padded<AtomicU64>,
    visible: Padded<AtomicU64>,
    poisoned: AtomicU64,
}

/// The end of an item.
#[derive(Default)]
struct Slot {
    /// The item that is done.
    done: AtomicU64,
    /// Its last number; written with the grant, and ordered by `done`.
    last: AtomicU64,
}

/// The state that the last grant left.
struct Granted<T> {
    next_item: u64,
    last: u64,
    /// Numbers that the pool's clock has given to the ring.
    numbers: std::ops::Range<u64>,
    state: T,
}

impl<T> Ring<T> {
    /// A ring for `capacity` items at once, a power of two, behind the number `last`.
    pub fn new(capacity: usize, grants: Grants, last: u64, state: T) -> Ring<T> {
        assert!(capacity.is_power_of_two(), "a slot is chosen by masking the item's number");
        Ring {
            granted: SpinLock::new(Granted { next_item: 1, last, numbers: 0..0, state }),
            tickets: (grants == Grants::Ticket).then(Padded::default),
            slots: (0..capacity).map(|_| Slot::default()).collect(),
            head: Padded(AtomicU64::new(1)),
            visible: Padded(AtomicU64::new(last)),
            poisoned: AtomicU64::new(0),
        }
    }

    /// The number up to which all writes are durable and published.
    #[inline]
    pub fn visible(&self) -> u64 {
        self.visible.0.load(Ordering::Acquire)
    }

    /// Waits until it is this thread's turn and the ring has room for an item. The caller then sees whether
    /// it has all that its item needs. If not, it drops the turn, makes ready, and comes again.
    ///
    /// # Errors
    /// If the ring is poisoned.
    #[inline(always)]
    pub fn turn(&self) -> Result<Turn<'_, T>, Poisoned> {
        let queue = self.tickets.as_ref().map(Queue::wait);
        let mut waiter = Waiter::default();
        loop {
            let granted = self.granted.lock();
            self.ask_poisoned()?;
            let under_way = granted.next_item - self.head.0.load(Ordering::Acquire);
            if under_way < self.slots.len() as u64 + u64::from(twin!(SlotShared)) {
                return Ok(Turn { ring: self, granted, _queue: queue });
            }
            drop(granted);
            waiter.wait();
        }
    }

    /// Waits until a number is visible.
    ///
    /// # Errors
    /// If the ring is poisoned before.
    #[inline]
    pub fn wait(&self, number: u64) -> Result<(), Poisoned> {
        let mut waiter = Waiter::default();
        while self.visible() < number {
            self.ask_poisoned()?;
            point();
            waiter.wait();
        }
        Ok(())
    }

    fn ask_poisoned(&self) -> Result<(), Poisoned> {
        if self.poisoned.load(Ordering::Acquire) == 0 { Ok(()) } else { Err(Poisoned) }
    }

    #[inline]
    fn slot(&self, item: u64) -> &Slot {
        &self.slots[item as usize & (self.slots.len() - 1)]
    }

    /// Moves the head over all items that are done; for a thread that has just stored one.
    #[inline]
    fn advance(&self) {
        // A change that changes nothing, not a load: see the module's documentation.
        let mut head = match twin!(HeadNotChanged) {
            false => self.head.0.fetch_add(0, Ordering::AcqRel),
            true => self.head.0.load(Ordering::Acquire),
        };
        while self.slot(head).done.load(Ordering::Acquire) == head {
            // Before the head moves: behind it, the slot may be another item's.
            let mut last = self.slot(head).last.load(Ordering::Relaxed);
            point();
            match self.head.0.compare_exchange(head, head + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if twin!(LastReadLate) {
                        last = self.slot(head).last.load(Ordering::Relaxed);
                    }
                    self.visible.0.fetch_max(last, Ordering::AcqRel);
                    head += 1;
                }
                Err(found) => head = found,
            }
        }
    }
}

/// A thread's place in the queue for the turn, until it drops.
struct Queue<'r>(&'r AtomicU64);

impl<'r> Queue<'r> {
    fn wait(tickets: &'r Padded<[AtomicU64; 2]>) -> Queue<'r> {
        let [next, turn] = &tickets.0;
        let (own, mut waiter) = (next.fetch_add(1, Ordering::Relaxed), Waiter::default());
        while turn.load(Ordering::Acquire) != own {
            point();
            waiter.wait();
        }
        Queue(turn)
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// The turn of a thread: nobody else grants until it drops.
pub struct Turn<'r, T> {
    ring: &'r Ring<T>,
    granted: SpinGuard<'r, Granted<T>>,
    /// Behind `granted`, and so dropped after it.
    _queue: Option<Queue<'r>>,
}

impl<'r, T> Turn<'r, T> {
    /// The state that grants change.
    #[inline]
    pub fn state(&mut self) -> &mut T {
        &mut self.granted.state
    }

    /// The last number of the item granted last.
    pub fn last(&self) -> u64 {
        self.granted.last
    }

    /// Whether the ring has so many numbers. If not, the caller draws a block for it from the pool's clock,
    /// without the turn, since that may write to the medium.
    #[inline]
    pub fn has_numbers(&self, count: u64) -> bool {
        self.granted.numbers.end - self.granted.numbers.start >= count
    }

    /// Gives the ring a block of numbers, which nobody else has. One that was drawn before the ring's last
    /// grant is dropped.
    #[inline]
    pub fn add_numbers(&mut self, block: std::ops::Range<u64>) {
        if block.start > self.granted.last && block.start >= self.granted.numbers.end {
            self.granted.numbers = block;
        }
    }

    /// Grants an item of `count` records, for which there are numbers, and has `place` choose where its
    /// bytes go. Nothing may fail in there, nor from here to [`InFlight::done`].
    #[inline]
    pub fn grant<R>(mut self, count: u64, place: impl FnOnce(&mut T, &Place) -> R) -> (InFlight<'r, T>, R) {
        assert!(count > 0 && self.has_numbers(count), "an item has records, and the ring numbers for them");
        let (ring, granted) = (self.ring, &mut *self.granted);
        let (item, before, first) = (granted.next_item, granted.last, granted.numbers.start);
        let last = first + count - 1;
        granted.next_item += 1;
        granted.last = last;
        granted.numbers.start = first + count;
        let place_of = Place { before, first, last, floor: ring.visible() };
        let flight = InFlight { ring, item, place: place_of };
        ring.slot(item).last.store(last, Ordering::Relaxed);
        let answer = place(&mut granted.state, &place_of);
        if twin!(VisibleWhenGranted) {
            ring.visible.0.fetch_max(last, Ordering::AcqRel);
        }
        (flight, answer)
    }
}

/// An item between its grant and its end. If it drops without an end, the ring is poisoned.
#[must_use = "an item that is dropped poisons the ring"]
pub struct InFlight<'r, T> {
    ring: &'r Ring<T>,
    item: u64,
    place: Place,
}

impl<T> InFlight<'_, T> {
    /// Its place in the order.
    #[inline]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Ends the item, once it is durable and published. It is visible when all before it are, which
    /// [`Ring::wait`] waits for.
    #[inline]
    pub fn done(self) {
        let InFlight { ring, item, .. } = *std::mem::ManuallyDrop::new(self);
        point();
        let order = if twin!(EndNotReleased) { Ordering::Relaxed } else { Ordering::Release };
        ring.slot(item).done.store(item, order);
        ring.advance();
    }
}

impl<T> Drop for InFlight<'_, T> {
    #[cold]
    fn drop(&mut self) {
        self.ring.poisoned.store(1, Ordering::Release);
    }
}
