//! What of the `quipu` program is of use without it: the forms in which records leave a pool and come back.
//!
//! A library, so that tests and fuzzers reach the parsers without a process between.

pub mod hex;
pub mod transfer;
