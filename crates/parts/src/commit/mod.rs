//! How a durable write becomes the one that readers find, by three protocols; the [third](ring) has its file.
//!
//! *Now* ends a write whose key is locked: its record is durable behind one fence, then the index names it,
//! then the old record is released, then the key is unlocked. It needs only [locks](Stripes).
//!
//! *Late* takes two cache misses off a put: the index slot and the old record depend on each other, and
//! neither is needed to make the new record durable. So the writer fences its record, *parks* the word that
//! the index is to have at the stripe of its key, and returns. It publishes the word two late writes later
//! ([`Lag`]), when both lines have arrived. Until then the parked word is as good as published, because
//! everyone who comes to the stripe for that key publishes it first:
//!
//! ```text
//!            lock                    park
//!   FREE ------------> LOCKED -----------------> PARKED
//!    ^                  | ^                        |  the next to come:
//!    |     unlock       | |      stay locked       v  the writer itself, another writer, a reader
//!    +------------------+ +------------------- PUBLISHING
//!    +---------------------------------------------+
//! ```
//!
//! UNSEEN is LOCKED with a write [on offer](StripeGuard::offer). PUBLISHING goes back to PARKED if the word
//! is not the one that its thread looked for ([`Stripes::take`]), and to FAILED by a panic.
//!
//! *Linearizability.* A parked write takes effect when it is parked, before it is acknowledged. Its record is
//! not visible earlier: a log does not use a place again while a reader is there, and a slot's page is held
//! until its record is parked. A reader looks at the stripe before it looks at the index. It publishes a word
//! of its key that it finds parked, and waits for one that is being published. A free or locked stripe tells
//! that every write acknowledged before the reader began has been published, since a stripe leaves PARKED
//! only through PUBLISHING. So no later reader misses what an earlier one saw. A walk in order has no hash to
//! look for, and first settles those of the [`Roster`].
//!
//! *Waiting.* Writers of one stripe wait for each other. A reader waits only while another thread publishes
//! a write of its very hash: for a few stores to DRAM, and over slots until the publishing put returns. So
//! does a walk in order, and a client of the roster for whoever publishes its write.
//!
//! *Panics.* Nobody knows how much a publication had done when it panicked. So readers of a FAILED stripe get
//! an error, and a writer that waits for its lock panics too.
//!
//! *Reuse.* No epoch protects a parked record: all that is parked is published before space is used again.
//! Source: MPKV (section 3.2), where a later operation completes the second phase of an earlier one.

mod lag;
mod parked;
pub mod ring;
mod roster;
mod stripes;

pub use lag::{Entry, Lag};
pub use parked::{Failed, Parked, Taken};
pub use ring::Ring;
pub use roster::{Place, Roster};
pub use stripes::{StripeGuard, Stripes};
