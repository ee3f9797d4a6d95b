//! The costs of operations, counted exactly, and an estimate in time.
//!
//! A clock measures the machine at hand, which has no persistent memory and other guests. Counts measure the
//! program: words stored, lines made durable, fences waited for, lines read, and the share of other nodes in
//! these. They are the same on every machine and in every run of a seed, so claims of the papers become exact
//! tests. The estimate multiplies the counts with published figures. It is a model, not a measurement.

use std::ops::Sub;

/// Most DIMMs over all nodes that are counted apart.
pub const MAX_DIMMS: usize = 32;

/// Most nodes that are modelled.
pub const MAX_NODES: usize = 4;

/// Counts by the node of the task, then by that of the bytes.
pub type ByNodes = [[u64; MAX_NODES]; MAX_NODES];

/// Counts since the region was made. The difference of two is the cost of the operations between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Words written, by any route; part of a word counts as one.
    pub words_stored: u64,
    /// Compare-and-swaps that found another value; they write nothing.
    pub failed_swaps: u64,
    /// Flush instructions: lines named by flushes, dirty or clean.
    pub flushes: u64,
    /// Fences, whether or not they had anything to wait for.
    pub fences: u64,
    /// Fences that made at least one line durable.
    pub persists: u64,
    /// Of those, the ones with a line on another node than the task's.
    pub remote_persists: u64,
    /// Dirty lines made durable by a flush and a fence; once per fence, however often they were flushed.
    pub lines_flushed: u64,
    /// Lines made durable by non-temporal stores and a fence; once per fence, unless counted as flushed
    /// already.
    pub lines_streamed: u64,
    /// Read calls.
    pub reads: u64,
    /// Of those, the ones whose first line is on another node.
    pub remote_reads: u64,
    /// Lines read, each once per call; there is no model of the processor's caches.
    pub lines_read: u64,
    /// Of those, lines on another node.
    pub remote_lines_read: u64,
    /// Lines written, each once per call, when the store is issued.
    pub lines_written: u64,
    /// Of those, lines on another node.
    pub remote_lines_written: u64,
    /// Lines read, by nodes.
    pub read_by_nodes: ByNodes,
    /// Lines written, by nodes.
    pub written_by_nodes: ByNodes,
    /// Bytes that the media write: 256 for each block that enters a DIMM's write-combining buffer.
    pub media_write_bytes: u64,
    /// Lines that arrived at each DIMM, nodes one after the other.
    pub dimm_lines: [u64; MAX_DIMMS],
}

impl Cost {
    /// Lines made durable, by either route.
    pub fn lines_persisted(&self) -> u64 {
        self.lines_flushed + self.lines_streamed
    }

    /// DIMMs that received at least one line.
    pub fn dimms_touched(&self) -> usize {
        self.dimm_lines.iter().filter(|lines| **lines != 0).count()
    }

    /// The time in nanoseconds that one thread would wait, by a model. Not a measurement.
    ///
    /// The model is first-generation Optane as two papers measured it: latencies of 32-byte accesses, local
    /// and remote, from NStore (section II, "NUMA Effects on PM"); peak bandwidths of one socket from Viper
    /// (VLDB'21, table 1).
    pub fn estimate_ns(&self) -> f64 {
        const LOCAL_READ_NS: f64 = 113.4;
        const REMOTE_READ_NS: f64 = 180.65;
        const READ_BYTES_PER_NS: f64 = 40.0;
        const LOCAL_WRITE_NS: f64 = 310.52;
        const REMOTE_WRITE_NS: f64 = 496.83;
        const MEDIA_WRITE_BYTES_PER_NS: f64 = 13.0;
        let further_lines = self.lines_read - self.reads.min(self.lines_read);
        (self.reads - self.remote_reads) as f64 * LOCAL_READ_NS
            + self.remote_reads as f64 * REMOTE_READ_NS
            + (further_lines * crate::LINE) as f64 / READ_BYTES_PER_NS
            + (self.persists - self.remote_persists) as f64 * LOCAL_WRITE_NS
            + self.remote_persists as f64 * REMOTE_WRITE_NS
            + self.media_write_bytes as f64 / MEDIA_WRITE_BYTES_PER_NS
    }
}

impl Sub for Cost {
    type Output = Cost;

    fn sub(self, earlier: Cost) -> Cost {
        let mut dimm_lines = self.dimm_lines;
        for (lines, before) in dimm_lines.iter_mut().zip(earlier.dimm_lines) {
            *lines -= before;
        }
        let by_nodes = |now: ByNodes, before: ByNodes| {
            std::array::from_fn(|from| std::array::from_fn(|to| now[from][to] - before[from][to]))
        };
        Cost {
            read_by_nodes: by_nodes(self.read_by_nodes, earlier.read_by_nodes),
            written_by_nodes: by_nodes(self.written_by_nodes, earlier.written_by_nodes),
            words_stored: self.words_stored - earlier.words_stored,
            failed_swaps: self.failed_swaps - earlier.failed_swaps,
            flushes: self.flushes - earlier.flushes,
            fences: self.fences - earlier.fences,
            persists: self.persists - earlier.persists,
            remote_persists: self.remote_persists - earlier.remote_persists,
            lines_flushed: self.lines_flushed - earlier.lines_flushed,
            lines_streamed: self.lines_streamed - earlier.lines_streamed,
            reads: self.reads - earlier.reads,
            remote_reads: self.remote_reads - earlier.remote_reads,
            lines_read: self.lines_read - earlier.lines_read,
            remote_lines_read: self.remote_lines_read - earlier.remote_lines_read,
            lines_written: self.lines_written - earlier.lines_written,
            remote_lines_written: self.remote_lines_written - earlier.remote_lines_written,
            media_write_bytes: self.media_write_bytes - earlier.media_write_bytes,
            dimm_lines,
        }
    }
}
