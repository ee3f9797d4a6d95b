//! What several tests have in common.

pub mod mix;
pub mod pool;
pub mod zipf;
