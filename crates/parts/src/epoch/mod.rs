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
//! Let a reader's announcement be the exchange `S`, and let it later load a link that still names `x`. The one
//! who retires `x` stores the unlinking `U`, passes a full fence, and then reads the global epoch as `E`.
//! The exchange is a full barrier (below), so `S` was visible to all before that load was made; the load did
//! not see `U`; so `S` was visible before the read of `E`, and announces at most `E`, since the epoch never goes
//! back. The advance from `E + 1` to `E + 2` looks at every slot after `E + 1` was stored, which is after `E` was
//! read, hence after `S`: it finds the announcement, which is not `E + 1`, and refuses. So the epoch cannot
//! reach `E + 2`, where `x` is released, before the reader unpins. The advance to `E + 1` may have missed `S`;
//! that is why one epoch is not enough.
//!
//! # Why an exchange and not a fence
//!
//! The announcement must be visible before the first load that it protects: a store followed by loads, which every
//! processor may reorder. On x86-64 a locked exchange to a line that this thread alone writes orders it at about
//! a tenth of the price of a store and `mfence`, since it does not wait for unrelated loads. On Arm a `swpal` (both
//! acquire and release) is a full barrier by the architecture's memory model, but its fallback loop of exclusive
//! loads and stores is not, nor is an exchange in the language's own model; so everywhere but on x86-64 a
//! sequentially consistent fence follows, which on Arm is one `dmb ish`. The unpinning store only has to come
//! after the reads: release suffices.
//!
//! Thread safety: [`Collector`] is shared; a [`Participant`] moves between threads but serves one at a time; a
//! [`Guard`] stays where it was made. All waiting goes through [`crate::sync`].

mod collector;
mod participant;

pub use collector::Collector;
pub use participant::{Guard, Participant};
