//! Epochs tell when memory that readers reach without a lock may be reused.
//!
//! Lookups take no lock, so a writer that unlinks a record, a zone or an array cannot know whether a reader
//! still looks at it. Epoch-based reclamation answers that without a cost per object. A *pinned* reader
//! announces the global epoch for as long as it reads. A writer *retires* an unlinked thing with the epoch of
//! that moment. A collection begins a new epoch, looks at all announcements, and releases everything that was
//! retired before the oldest of them. A reader that stays pinned holds back all later retirements, and no
//! earlier ones.
//!
//! Garbage waits with the participant that retired it. Garbage that other threads wait for goes to any
//! collection.
//!
//! Handles are explicit and nothing is global: a [`Collector`] for a store, a [`Participant`] for a client
//! thread, a [`Guard`] for a stretch of reading. A thread may hold participants of several stores.
//!
//! # Why this suffices
//!
//! Let a reader store its announcement `S`, followed by a full barrier of its own or a lent one (`barrier`),
//! and later load a link that still names `x`. The writer that retires `x` stores the unlinking `U`, passes a
//! full fence, and then reads the global epoch as `E`. A collection that releases `x` has begun or seen an
//! epoch above `E`, has then passed a full barrier, and has found no announcement of `E` or before. `E` was
//! read before any later epoch began, so `U` came before the collection's barrier.
//!
//! *`S` announces `E` or an earlier epoch.* With the reader's own barrier: if it precedes the collection's,
//! the collection found `S` and did not release `x`. If it follows, the reader's load follows `U` and sees
//! it. With a lent barrier, the collection makes the reader pass a barrier at some moment. If `S` came before
//! that moment, the collection found `S`. If it came later, the load came later too, and saw `U`.
//!
//! *`S` announces an epoch above `E`.* The reader read that epoch before its load, and in this order: its own
//! barrier is in between, or the processor executes loads in order. That epoch began after `E` was read
//! behind `U`, so the load sees `U`.
//!
//! The store that unpins only has to follow the reads, so release suffices.
//!
//! Thread safety: a [`Collector`] is shared; a [`Participant`] moves between threads but serves one at a
//! time; a [`Guard`] stays with its thread. All waits go through [`crate::sync`].

mod barrier;
mod collector;
mod current;
mod holder;
mod participant;

pub use collector::Collector;
pub use current::Current;
pub use holder::{Holder, What};
pub use participant::{Guard, Held, Participant};
