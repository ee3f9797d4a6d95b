//! The common parts of several tests.

pub mod cost;
pub mod misleading;
pub mod page;
pub mod schedule;
pub mod small_disk;
