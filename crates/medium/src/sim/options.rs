//! The shape of a simulated medium, and its faults.

/// The shape of a simulated region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Length in bytes; rounded up to whole pages.
    pub len: u64,
    /// Seed of the values that a real region draws from the system: its boot id and its entropy. The schedule
    /// of tasks has its own seed ([`super::sched::run`]).
    pub seed: u64,
    /// NUMA nodes, which own equal slices of the region.
    pub nodes: u16,
    /// DIMMs of each node, interleaved by pages.
    pub dimms: u16,
    /// Whether the processor has writes past its caches. On others, as ARM64, those are writes with a flush,
    /// and what a dead process wrote so may be in the caches still.
    pub streams: bool,
}

impl Default for SimOptions {
    /// One MiB on one node with six DIMMs, the usual population of a socket.
    fn default() -> SimOptions {
        SimOptions { len: 1 << 20, seed: 0, nodes: 1, dimms: 6, streams: true }
    }
}

/// A fault of the medium, to see whether a proof notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Every so many fences, counted over all tasks, one does nothing; 1 omits all.
    FenceOmitted {
        /// The distance between omitted fences; at least 1.
        every: u64,
    },
}
