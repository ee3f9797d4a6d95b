//! The `quipu` program, and what another program on this machine's command line shares with it.
//!
//! A library, so that tests and fuzzers reach the parsers of [`transfer`] without a process between, and so
//! that the program of the lab reads arguments, prints results and fails in the same way.

mod args;
mod commands;
pub mod failure;
mod leftover;
pub mod output;
mod pool;
pub mod program;
mod text;
pub mod transfer;

pub use args::main;
pub use commands::bench;
