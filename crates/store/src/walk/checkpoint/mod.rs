//! The bytes of a checkpoint: the findings of a recovery by scan, written down when a pool is closed, in
//! zones that are free and stay free. The contents are the affair of each walk.
//!
//! Later writes may overwrite it: it counts only while the superblock says that the pool was closed. The
//! first change of a run takes that back, durably, before anything else changes. The checkpoint is durable
//! before the superblock that is marked clean and names it. On a file each is written back to the device
//! before the next, so that a crash of the system cannot reorder them.

mod chain;
mod head;

pub(crate) use chain::{Chain, Writer};
pub(crate) use head::head_table;
