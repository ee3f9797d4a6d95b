//! What several tests have in common.

pub mod cost;
pub mod misleading;
pub mod schedule;
