//! Masstree: what its tests share.

pub mod pair;
