//! The proofs of Quipu: of its promises, and of its speed.
//!
//! - [`contract`]: what every design promises on every medium.
//! - [`calls`]: any call of the interface, its performer, and the exact model that judges the answer.
//! - [`model`]: random calls of one thread that must agree with the exact model.
//! - [`crash`]: the images that a failure could leave, recovered and held against the history.
//! - [`damage`]: damage to any byte of a pool is reported, or changes no answer.
//! - [`kill`]: acknowledged writes survive `kill -9`, proved on real processes.
//! - [`soak`]: real threads for long, beside dumps, cleaners and reopenings, each with its exact model.
//! - [`linear`]: the answers that real threads got must fit one order of their calls.
//! - [`isolation`]: transactions see of each other what their level promises.
//! - [`action`]: the effect of a call on a key, and its answer, by which histories and crashes are judged.
//! - [`run`]: the common parts of `kill`, `soak`, `linear` and `isolation`.
//! - [`sim_levels`]: levels in memory that can crash, in place of files.
//! - [`mod@bench`]: benchmarks of the mechanisms, and the evaluations of papers. Basic operations, YCSB and
//!   what all benchmarks are made of are the crate `quipu-bench`.

pub mod action;
pub mod bench;
mod breaks;
pub mod calls;
pub mod contract;
pub mod crash;
pub mod damage;
pub mod isolation;
pub mod kill;
pub mod linear;
pub mod model;
pub mod run;
pub mod sim_levels;
pub mod soak;
