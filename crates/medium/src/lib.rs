//! The one door to persistent memory (PM).
//!
//! Everything above this crate reaches PM through a [`Region`]: a mapped stretch of bytes on some medium. No
//! other code stores to PM. That makes three things possible which prototypes of PM stores lack:
//!
//! - The persistence instructions are chosen once, when a pool is mapped, by the abilities of the medium.
//! - The simulated medium ([`sim`]) sees every store, flush and fence, and can tear them as a power failure
//!   would.
//! - The cost of an operation is counted exactly, on any machine under any load.
//!
//! A medium promises this and nothing else (`docs/DURABILITY.md`):
//!
//! - a store is durable after a flush of its line and a later fence *of the same thread*; before that it may
//!   or may not have arrived;
//! - aligned 8-byte stores never tear;
//! - within a line only 8-byte atomic stores and compare-and-swaps are ordered, with each other and after
//!   earlier plain writes of that thread;
//! - the words of one bulk write are unordered; non-temporal words are unordered against everything until the
//!   fence.

pub mod arch;
mod barrier;
mod copy;
mod durability;
mod error;
pub mod folder;
mod lines;
mod map;
mod node;
mod region;
mod reserve;
pub mod sim;
mod topology;
mod witness;
mod words;

pub use arch::{FlushKind, LINE};
pub use barrier::{all_threads_pass, lends_barriers};
pub use durability::{Answer, Durability, Statement, Survives};
pub use error::MediumError;
pub use map::{
    Claim, FileIdentity, Mapping, MediumKind, Pages, PmDevice, Probe, ignore_file_limit_signal,
    prefer_huge_pages, probe,
};
pub use node::{Node, Span};
pub use region::{Region, WORD};
pub use topology::Topology;
pub use witness::Nearness;
