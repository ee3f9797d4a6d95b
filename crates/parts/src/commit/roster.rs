//! The writes that all clients may have parked, for a walk in order, which has no hash to look for.
//!
//! A client writes down the hash of a write before it parks it, over that of an earlier one whose publication
//! has ended. So the hashes that a thread reads here are those of all writes that were parked before and are
//! not published yet. Others are among them, which cost a look at their stripes.

use super::lag::DEPTH;
use crate::sync::Padded;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::iter::successors;
use std::sync::{Arc, OnceLock};

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// The hashes of one client.
struct Hashes {
    state: AtomicU32,
    hashes: [AtomicU64; DEPTH],
}

/// The places of all clients, which others use again: a list that only grows, so that readers lock nothing.
#[derive(Default)]
pub struct Roster {
    first: Link,
}

type Link = OnceLock<Box<Entry>>;

struct Entry {
    place: Arc<Padded<Hashes>>,
    next: Link,
}

/// A client's place, until it drops.
pub struct Place(Arc<Padded<Hashes>>);

impl Roster {
    /// A place for a client.
    pub fn register(&self) -> Place {
        let mut link = &self.first;
        loop {
            let entry = link.get_or_init(Box::default);
            let state = &entry.place.0.state;
            let is_free = state.load(Ordering::Relaxed) == FREE;
            if is_free && state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Place(Arc::clone(&entry.place));
            }
            link = &entry.next;
        }
    }

    /// The hashes of all writes that were parked before the call and are not published yet, and some others.
    #[inline]
    pub fn hashes(&self) -> impl Iterator<Item = u64> {
        let entries = successors(self.first.get(), |entry| entry.next.get());
        // Acquired: a publication has ended for whoever sees the hash that was written over its own.
        entries.flat_map(|entry| entry.place.0.hashes.iter().map(|hash| hash.load(Ordering::Acquire)))
    }
}

impl Default for Entry {
    fn default() -> Entry {
        let hashes = std::array::from_fn(|_| AtomicU64::new(0));
        let place = Arc::new(Padded(Hashes { state: AtomicU32::new(FREE), hashes }));
        Entry { place, next: Link::new() }
    }
}

impl Place {
    /// Writes down the hash of a write that is about to be parked, over the one that was written down here
    /// before. The publication of that one has ended.
    #[inline]
    pub fn note(&self, position: usize, hash: u64) {
        self.0.0.hashes[position].store(hash, Ordering::Release);
    }
}

impl Drop for Place {
    /// The client has seen the publications of all its writes end, or one has failed: then its store is
    /// written no more.
    fn drop(&mut self) {
        self.0.0.state.store(FREE, Ordering::Release);
    }
}
