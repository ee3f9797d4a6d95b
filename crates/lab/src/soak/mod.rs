//! Soak: threads on real memory, each with keys of its own and an exact model of them.
//!
//! Some faults show only when much runs at once and for long. A tombstone that is dropped too early brings
//! back a value that was deleted long ago, after segments have been cleaned and reused many times. Memory
//! that is released while readers look into it shows only if a dump, a compaction and a reader meet. The
//! crash explorer with its forty operations seldom gets there, and its threads take turns.
//!
//! Here real threads make all [calls](crate::calls) of the interface, each on keys of its own beside the
//! others', in tables that they share and in one that comes and goes. Cleaners, dumps and compactions work
//! beside them. Snapshots and scans go over everybody's keys. Each answer must be exactly that of the
//! thread's [model](crate::calls::Model).
//!
//! Again and again the pool is closed, dropped, or abandoned. Abandoned, it is copied in the midst of the
//! work, with segments open and a victim half moved, and the copy is recovered. Each time every structure
//! must be sound and the contents those of the models. In the end compaction must leave hardly a tombstone.
//! Pool after pool is of another make, in memory or in files.
//!
//! - [`explore`]: the run.

mod config;
mod make;
mod run;

pub use config::{SoakConfig, SoakReport};
pub use run::explore;
