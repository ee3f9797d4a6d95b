//! The bucket index: what its tests share, and the oracle of its crashes.

pub mod crash;
pub mod support;
