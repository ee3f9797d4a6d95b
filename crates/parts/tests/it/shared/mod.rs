//! What several tests have in common.

pub mod image;
pub mod keyed;
pub mod keys;
pub mod mix;
pub mod pool;
pub mod random;
pub mod world;
pub mod zipf;
