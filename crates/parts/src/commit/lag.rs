//! The writes of a client that are parked (see [the protocol](super)).
//!
//! The client's next late write but one publishes a write. In between, its index lines and then the old
//! record's lines arrive, each while another write is on its way to the medium, so nothing waits for them. A
//! client that writes no more publishes nothing more; the next to look for those keys does it.

use super::parked::Parked;
use super::roster::Place;

/// Writes of a client that may be parked: the index lines of one are on the way, the old record of the other.
pub(super) const DEPTH: usize = 2;

/// A client's last writes, parked or about to be, in the order of a ring.
#[derive(Default)]
pub struct Lag<T> {
    entries: [Entry<T>; DEPTH],
    oldest: usize,
    /// Where it tells walks in order of them.
    place: Option<Place>,
}

/// One of them.
#[derive(Default)]
pub struct Entry<T> {
    /// None once it has been published, or left to another thread.
    pub parked: Option<Parked>,
    /// The key, which would have to be read back from the medium otherwise.
    pub key: Vec<u8>,
    /// The walk's notes for its publication.
    pub more: T,
}

impl<T: Default> Lag<T> {
    /// The lag of a client that has nothing parked, and tells of what it parks in this place.
    pub fn told(place: Place) -> Lag<T> {
        Lag { place: Some(place), ..Lag::default() }
    }
}

impl<T> Lag<T> {
    /// Notes a write that is parked or about to be, in place of the oldest, which has been published.
    #[inline]
    pub fn note(&mut self, parked: Parked, key: &[u8], more: T) {
        let entry = &mut self.entries[self.oldest];
        if let Some(place) = &self.place {
            place.note(self.oldest, parked.hash);
        }
        entry.parked = Some(parked);
        entry.key.clear();
        entry.key.extend_from_slice(key);
        entry.more = more;
        self.oldest = (self.oldest + 1) % DEPTH;
    }

    /// The write that is published next.
    #[inline]
    pub fn oldest(&mut self) -> &mut Entry<T> {
        &mut self.entries[self.oldest]
    }

    /// The last that was noted.
    #[inline]
    pub fn youngest(&self) -> &Entry<T> {
        &self.entries[(self.oldest + DEPTH - 1) % DEPTH]
    }

    /// The same, to note more of it.
    #[inline]
    pub fn youngest_mut(&mut self) -> &mut Entry<T> {
        &mut self.entries[(self.oldest + DEPTH - 1) % DEPTH]
    }

    /// Passes all to `publish`, the oldest first.
    pub fn catch_up(&mut self, mut publish: impl FnMut(&mut Entry<T>)) {
        for behind in 0..DEPTH {
            publish(&mut self.entries[(self.oldest + behind) % DEPTH]);
        }
    }
}
