//! Epochs: when may memory that readers reach without a lock be reused?
//!
//! Lookups take no lock, so whoever unlinks a record, a zone or an array cannot know whether a reader still looks
//! at it. Epoch-based reclamation answers that without a cost per object: a reader announces the global epoch for
//! as long as it reads (it is *pinned*); what is unlinked is *retired* with the epoch of that moment; and the
//! global epoch advances only when every pinned reader has announced the current one. When it is two ahead of a
//! retirement, nobody who could have seen the retired thing is still reading.
//!
//! What a participant retires waits with it, unless others wait for it: that goes to whoever collects next.
//!
//! Handles are explicit and nothing is global: a [`Collector`] per store, a [`Participant`] per client thread, a
//! [`Guard`] per stretch of reading. A thread may hold participants of several stores.
//!
//! # Why two epochs suffice
//!
//! Let a reader's announcement be `S`, behind which there is a full barrier, its own or one that was lent (`barrier`); and let
//! it later load a link that still names `x`. The one who retires `x` stores the unlinking `U`, passes a full fence, and then
//! reads the global epoch as `E`.
//!
//! With a barrier of its own, `S` was visible to all before that load was made; the load did not see `U`; so `S` was visible before
//! the read of `E`, and announces at most `E`, since the epoch never goes back. With one that is lent, `S` may become visible
//! late. But the reader reads the epoch that it announces before that load, and loads are made in order: had it
//! read more than `E`, the read would have been made after that of `E`, and the load would have seen `U`.
//!
//! The advance from `E + 1` to `E + 2` looks at every slot after `E + 1` was stored, which is after `E` was read, hence, with
//! a barrier of its own, after `S`: it finds the announcement, which is not `E + 1`, and refuses. If the barrier is lent, the
//! reader passes one in between, after `E + 1` was stored and before its slot is looked at. If it comes behind `S`, then `S` is
//! found. If it comes before `S`, then also before that load, which would have seen `U`. So the epoch cannot reach `E + 2`, where
//! `x` is released, before the reader unpins. The advance to `E + 1` may have missed `S`; that is why one epoch is not enough.
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
