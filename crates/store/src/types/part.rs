//! [`Part`]: a part of a pool.

use std::path::PathBuf;

/// A part of a pool: a file or device, on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Its file or device; `None` for memory.
    pub path: Option<PathBuf>,
    /// The NUMA node of its bytes; 0 if it is not known.
    pub node: u16,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its zones.
    pub zones: u64,
    /// Of these, zones that are free.
    pub free_zones: u64,
}
