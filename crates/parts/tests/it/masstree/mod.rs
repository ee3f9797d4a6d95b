//! Masstree: what its tests share, and the world that they run in.

pub mod pair;
pub mod support;
pub mod world;
