//! FAST&FAIR: what its tests share, and the oracle of its crashes.

pub mod crash;
pub mod support;
