//! The proofs of Quipu: of its promises, and of its speed.
//!
//! - [`workload`]: keys, values that prove themselves, and YCSB's requests.
//! - [`contract`]: what every design promises on every medium.
//! - [`calls`]: any call of the interface, its performer, and the exact model that judges the answer.
//! - [`model`]: random calls of one thread that must agree with the exact model.
//! - [`damage`]: damage to any byte of a pool is told, or harms nobody.
//! - [`kill`]: acknowledged writes survive `kill -9`, proved on real processes.
//! - [`soak`]: real threads for long, beside dumps, cleaners and reopenings, each with its exact model.
//! - [`linear`]: what real threads were told must fit one order of what they did.
//! - [`action`]: the effect of a call on a key, and its answer, by which histories and crashes are judged.
//! - [`run`]: what the last three share.
//! - [`settings`]: settings of designs, where several designs are at hand.
//! - [`arguments`], [`choice`], [`distinct`], [`size`], [`suggest`]: arguments of command lines.
//! - [`mod@bench`]: benchmarks that check what they read, and the limits they are compared with.

pub mod action;
pub mod arguments;
pub mod bench;
pub mod calls;
pub mod choice;
pub mod contract;
pub mod crash;
pub mod damage;
pub mod distinct;
pub mod kill;
pub mod linear;
pub mod model;
pub mod run;
pub mod settings;
pub mod size;
pub mod soak;
pub mod suggest;
pub mod workload;
