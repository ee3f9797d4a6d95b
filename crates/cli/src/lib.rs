//! The part of the `quipu` program that is useful without it: the forms in which records leave a pool and
//! come back.
//!
//! A library, so that tests and fuzzers reach the parsers without a process between.

pub mod transfer;
