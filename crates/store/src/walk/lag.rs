//! What a client has yet to publish.
//!
//! A blind write ends with its record durable and parked at the stripe of its key (see [`quipu_parts::stripes`]). The client's
//! next write but one publishes it. In between, its index lines and then the old record's lines arrive, each while another
//! write is on its way to the medium, so nothing waits for them. A client that writes no more publishes nothing more; whoever
//! looks for those keys does it.

use quipu_parts::stripes::Parked;

/// Writes of a client that may be parked: one whose index lines are on the way, one whose old record is.
pub(crate) const DEPTH: usize = 2;

/// A client's writes that are durable and may not be published yet, in the order of a ring.
#[derive(Default)]
pub(crate) struct Lag<T> {
    entries: [Entry<T>; DEPTH],
    oldest: usize,
}

/// One of them.
#[derive(Default)]
pub(crate) struct Entry<T> {
    /// None once it has been published.
    pub(crate) parked: Option<Parked>,
    /// The key, which would have to be read back from the medium otherwise.
    pub(crate) key: Vec<u8>,
    /// What else its publication needs.
    pub(crate) more: T,
}

impl<T> Lag<T> {
    /// Notes a write that is parked or about to be, in place of the oldest, which has been published.
    #[inline]
    pub(crate) fn note(&mut self, parked: Parked, key: &[u8], more: T) {
        let entry = &mut self.entries[self.oldest];
        entry.parked = Some(parked);
        entry.key.clear();
        entry.key.extend_from_slice(key);
        entry.more = more;
        self.oldest = (self.oldest + 1) % DEPTH;
    }

    /// The write that is published next.
    #[inline]
    pub(crate) fn oldest(&mut self) -> &mut Entry<T> {
        &mut self.entries[self.oldest]
    }

    /// The last that was noted.
    #[inline]
    pub(crate) fn youngest(&self) -> &Entry<T> {
        &self.entries[(self.oldest + DEPTH - 1) % DEPTH]
    }

    /// The same, to note more of it.
    #[inline]
    pub(crate) fn youngest_mut(&mut self) -> &mut Entry<T> {
        &mut self.entries[(self.oldest + DEPTH - 1) % DEPTH]
    }

    /// Passes all to `publish`, in their order.
    pub(crate) fn catch_up(&mut self, mut publish: impl FnMut(&mut Entry<T>)) {
        for behind in 0..DEPTH {
            publish(&mut self.entries[(self.oldest + behind) % DEPTH]);
        }
    }
}
