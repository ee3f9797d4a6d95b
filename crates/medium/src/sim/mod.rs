//! The simulated medium: the heart of the proof that the store keeps its word.
//!
//! Real persistent memory shows one of the many states that a power failure may leave, and a clock on a
//! shared machine measures the neighbours. The simulator keeps two images, of the visible and of the durable
//! bytes, and the pending words of each dirty line. So every allowed state can be formed and reopened. It
//! also counts the cost of operations. Nothing above `Region` knows whether it is simulated.
//!
//! - [`Sim`] is the simulator behind a region, made by [`crate::Region::sim`] from [`SimOptions`]. `memory`
//!   holds its two images, and `line` the rules of arrival.
//! - [`sched`] runs tasks one at a time on one OS thread, in an order drawn from a seed.
//! - [`Snapshot`] freezes a crash point. [`Snapshot::images`] lists the possible durable states, and
//!   [`SimArena`] boots regions from such [`Image`]s, thousands a second.
//! - [`Cost`] counts; [`Cost::estimate_ns`] turns counts into an estimate in time.
//!
//! Thread-safety: a simulated region may be shared like any other; a latch makes operations take turns. But
//! an observer is confined to the OS thread that set it, and all threads outside of a simulated run count as
//! one task, number 0.

mod arena;
mod cost;
mod dimm;
mod image;
mod images;
mod latch;
mod line;
mod memory;
mod observer;
mod options;
mod outcomes;
mod page;
mod plan;
mod random;
pub mod sched;
mod simulator;
mod snapshot;

pub use arena::SimArena;
pub use cost::{ByNodes, Cost, MAX_DIMMS, MAX_NODES};
pub use dimm::MEDIA_BLOCK;
pub use image::{Difference, Image};
pub use observer::{Event, EventKind, Observer};
pub use options::{Fault, SimOptions};
pub use simulator::{START_OF_TIME, Sim};
pub use snapshot::Snapshot;
