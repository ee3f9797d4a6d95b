//! The model: random sequences of calls, on the store and on a `BTreeMap`, must agree at every step.
//!
//! A seed decides everything: the calls, which client makes them, when the store is closed or dropped and
//! opened again. A sequence that fails is shortened before it is shown, so that a person can follow it.

mod run;
mod shrink;
mod step;

pub use run::{Disagreement, explore};
pub use shrink::shrink;
pub use step::{Step, generate};
