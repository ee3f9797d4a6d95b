//! The mechanisms of a persistent-memory store, each usable and tested alone.
//!
//! The rooms stand on floors, and imports only go down:
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | [`sync`], [`record`] |
//! | 1 | [`epoch`], [`locks`], [`space`], [`stripes`] |
//! | 2 | [`heap`], [`index`] |
//! | 3 | [`reclaim`] |

pub mod epoch;
pub mod heap;
pub mod index;
pub mod locks;
pub mod reclaim;
pub mod record;
pub mod space;
pub mod stripes;
pub mod sync;
