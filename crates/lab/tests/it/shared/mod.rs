//! What several tests have in common.

pub mod cost;
pub mod schedule;
