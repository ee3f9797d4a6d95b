//! The contract: what every design promises on every medium, as named checks.
//!
//! A promise that is tested in the room of one design is forgotten by the next. So the checks know designs
//! and media only through a [`Fixture`], and a new design or medium is held to all of them as soon as it is
//! listed in [`Design::ALL`](quipu::Design::ALL) or [`Medium`].
//!
//! A check panics where the store breaks a promise, and returns an error where a call fails that should not.
//! [`judge`] turns both into [`Failure`]s, so that one broken promise does not hide the others. Threads of a
//! check are threads of the system, except on the simulated medium, where they are tasks of its seeded
//! scheduler.

mod batches;
mod calls;
mod closures;
mod concurrency;
mod contents;
mod durability;
mod expiry;
mod fixture;
mod large;
mod limits;
mod order;
mod slots;
mod space;
mod suite;

pub use contents::{Contents, value_of, verify};
pub use fixture::{Ending, Fixture, Medium, Outcome};
pub use suite::{CHECKS, Check, Failure, judge, message};
