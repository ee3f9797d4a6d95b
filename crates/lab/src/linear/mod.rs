//! Linearizability: what several threads were told at once must fit one order of what they did.
//!
//! Threads that use a store at the same time are promised that every call takes effect at one moment between
//! its beginning and its end. Tests of single calls cannot see that promise broken: a stale read looks like
//! an old one, a lost update like one that came earlier. So real threads work on few keys, every call is
//! recorded with stamps around it, and a checker searches for an order that explains all results and
//! contradicts no stamp (Herlihy & Wing, TOPLAS 1990). If there is none, the store is at fault, whatever the
//! timing was; the checker cannot be wrong in that direction.
//!
//! - [`Operation`]: one call on one key, and the sequential specification of a key.
//! - [`check`]: the checker. Keys are judged one by one, which loses nothing since no call spans two of them
//!   atomically.
//! - [`Log`] and [`Clock`]: recording calls on anything that is a [`Subject`].
//! - [`explore`]: thousands of small histories of a store, on memory or on files, each judged.
//! - [`Broken`]: stores broken on purpose, which the checker must convict.

mod check;
mod config;
mod contents;
mod drive;
mod explore;
mod lot;
mod operation;
mod record;
mod search;
mod subject;
mod twins;
mod values;
mod window;

#[cfg(test)]
mod check_tests;

pub use check::{BUDGET, History, Verdict, Violation, check};
pub use config::{LinearConfig, LinearReport};
pub(crate) use contents::{Contents, contents};
pub use explore::explore;
pub use operation::{Caller, Operation};
pub use record::{Clock, Log};
pub(crate) use subject::perform;
pub use subject::{Subject, Timing};
pub(crate) use twins::broken;
pub use twins::{Broken, Lie};
pub use values::{decode, encode};
pub(crate) use values::{key_bytes, key_number};
