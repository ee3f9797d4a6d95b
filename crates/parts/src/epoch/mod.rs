//! Epochs: when may memory that readers reach without a lock be reused?
//!
//! Lookups take no lock, so a writer that unlinks a record, a zone or an array cannot know whether a reader still looks
//! at it. Epoch-based reclamation answers that without a cost per object: a reader announces the global epoch for
//! as long as it reads (it is *pinned*); what is unlinked is *retired* with the epoch of that moment. A collection
//! begins a new epoch, looks at all announcements, and releases what was retired before the oldest of them. A
//! reader that stays pinned holds back what is retired from then on, and nothing that was retired before.
//!
//! What a participant retires waits with it, unless others wait for it: that goes to whoever collects next.
//!
//! Handles are explicit and nothing is global: a [`Collector`] per store, a [`Participant`] per client thread, a
//! [`Guard`] per stretch of reading. A thread may hold participants of several stores.
//!
//! # Why that is enough
//!
//! Let a reader's announcement be `S`, behind which there is a full barrier, its own or one that was lent (`barrier`);
//! and let it later load a link that still names `x`. The writer that retires `x` stores the unlinking `U`, passes a
//! full fence, and then reads the global epoch as `E`. A collection that releases `x` has seen an epoch above `E`, its own
//! or a later one; behind that it passed a full barrier and looked at the announcements. It found none of `E` or
//! before. `E` was read before any later epoch began, so `U` came before that barrier.
//!
//! *`S` announces `E` or an earlier epoch.* With a barrier of the reader's own: if that comes before the collection's, the
//! collection found `S`, and did not release `x`. If it comes later, the reader's load comes behind `U` and would
//! have seen it. With a barrier that is lent, the collection's makes the reader pass one at some moment: if `S` came before
//! that moment, `S` was found; if it came later, then so did the load, which would have seen `U`.
//!
//! *`S` announces an epoch above `E`.* The reader read that epoch before it made its load, and in that order (with a
//! barrier of its own in between, or because the processor makes loads in order). That epoch began after `E` was read
//! behind `U`, so the load would have seen `U`.
//!
//! The unpinning store only has to come after the reads: release suffices.
//!
//! Thread safety: [`Collector`] is shared; a [`Participant`] moves between threads but serves one at a time; a
//! [`Guard`] stays where it was made. All waiting goes through [`crate::sync`].

mod barrier;
mod collector;
mod participant;

pub use collector::Collector;
pub use participant::{Guard, Participant};
