//! The mechanisms of a persistent-memory store, each usable and tested alone.
//!
//! The rooms stand on floors, and imports only go down:
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | [`mod@table`], [`mod@twin`] |
//! | 1 | [`record`], [`sync`] |
//! | 2 | [`commit`], [`epoch`], `locks`, [`space`] |
//! | 3 | [`cache`], [`heap`], [`index`] |
//! | 4 | [`reclaim`], [`versions`] |
//! | 5 | [`runs`] |

pub mod cache;
pub mod commit;
pub mod epoch;
pub mod heap;
pub mod index;
pub(crate) mod locks;
pub mod reclaim;
pub mod record;
pub mod runs;
pub mod space;
pub mod sync;
pub mod table;
pub mod twin;
pub mod versions;
