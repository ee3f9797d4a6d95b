//! The settings of a handle for the files of Nlog.

/// How clients write to files of clusters, and how these are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSettings {
    /// A power of two: keys of so many clusters have files of their own on each node, where the pool has room
    /// for that (NStore III-C).
    pub clusters: u32,
    /// Per cent of a file that must be dead before it is cleaned ahead of need (III-F).
    pub gc_threshold: u32,
    /// Cleaners at a time on each node (III-F).
    pub cleaners: u32,
}

/// The most clusters: a key's stripe tells its cluster, and there are so many stripes.
pub(crate) const CLUSTERS_MAX: u32 = 4096;

/// The most cleaners of a node: with more, the paper expects too many remote writes.
pub(crate) const CLEANERS_MAX: u32 = 8;

impl Default for FileSettings {
    /// Those of the paper's evaluation (V-A, V-F).
    fn default() -> FileSettings {
        FileSettings { clusters: 256, gc_threshold: 50, cleaners: 1 }
    }
}
