//! [`Witness`]: the one that hears of every access to a region, if any does. That is the simulator, or, where
//! the bytes lie on several nodes, the counts of near and far lines. All other regions pay for neither.

use crate::arch::LINE;
use crate::node::{Node, Span};
use crate::region::{Region, WORD};
use crate::sim::Sim;
use crate::topology::Topology;
use std::cell::Cell;
use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Accesses of a thread between two looks at where it runs.
const STRIDE: u32 = 64;

/// Copies of the counts, so that threads seldom count in the same line.
const SHARDS: usize = 16;

/// The one that hears of every access to a region.
#[derive(Clone)]
pub(crate) enum Witness {
    Sim(Arc<Sim>),
    Nodes(Arc<Nodes>),
}

/// Operations of a region with a witness, all out of the way of those without. The simulator carries out its
/// own; on several nodes the lines are counted, and a region without a witness does the work.
impl Witness {
    pub(crate) fn write(&self, offset: u64, src: &[u8]) {
        match self {
            Witness::Sim(sim) => sim.write(offset, src),
            Witness::Nodes(nodes) => nodes.writing(offset, src.len() as u64).write(offset, src),
        }
    }

    pub(crate) fn write_nt(&self, offset: u64, src: &[u8]) {
        match self {
            Witness::Sim(sim) => sim.write_nt(offset, src),
            Witness::Nodes(nodes) => nodes.writing(offset, src.len() as u64).write_nt(offset, src),
        }
    }

    pub(crate) fn write_lines_nt(&self, offset: u64, lines: &[u8], known: usize) {
        match self {
            Witness::Sim(sim) => sim.write_nt(offset, lines),
            Witness::Nodes(nodes) => {
                nodes.writing(offset, lines.len() as u64).write_lines_nt(offset, lines, known);
            }
        }
    }

    pub(crate) fn store_line_nt(&self, offset: u64, line: &[u8; LINE as usize], word: usize) {
        match self {
            Witness::Sim(sim) => sim.write_nt(offset, line),
            Witness::Nodes(nodes) => nodes.writing(offset, LINE).store_line_nt(offset, line, word),
        }
    }

    pub(crate) fn store(&self, offset: u64, value: u64) {
        match self {
            Witness::Sim(sim) => sim.store(offset, value),
            Witness::Nodes(nodes) => nodes.writing(offset, WORD).store(offset, value),
        }
    }

    pub(crate) fn compare_exchange(&self, offset: u64, current: u64, new: u64) -> Result<u64, u64> {
        match self {
            Witness::Sim(sim) => sim.compare_exchange(offset, current, new),
            Witness::Nodes(nodes) => nodes.writing(offset, WORD).compare_exchange(offset, current, new),
        }
    }

    pub(crate) fn note_read(&self, offset: u64, len: u64) {
        match self {
            Witness::Sim(sim) => sim.note_read(offset, len),
            Witness::Nodes(nodes) => nodes.count(Access::Read, offset, len),
        }
    }
}

/// Lines that threads have accessed on their own nodes and on others. A line counts once for each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nearness {
    /// Lines read on the node of the reader.
    pub near_lines_read: u64,
    /// Lines read on another.
    pub far_lines_read: u64,
    /// Lines written on the node of the writer.
    pub near_lines_written: u64,
    /// Lines written on another.
    pub far_lines_written: u64,
}

impl Sub for Nearness {
    type Output = Nearness;

    fn sub(self, earlier: Nearness) -> Nearness {
        Nearness {
            near_lines_read: self.near_lines_read - earlier.near_lines_read,
            far_lines_read: self.far_lines_read - earlier.far_lines_read,
            near_lines_written: self.near_lines_written - earlier.near_lines_written,
            far_lines_written: self.far_lines_written - earlier.far_lines_written,
        }
    }
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// One copy of the counts, in lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Shard([AtomicU64; 4]);

/// The nodes that the bytes of a region lie on, and the counts.
pub(crate) struct Nodes {
    pub(crate) topology: Topology,
    spans: Vec<Span>,
    /// The same bytes without a witness.
    plain: Region,
    shards: [Shard; SHARDS],
}

thread_local! {
    /// Where this thread runs, and for how many accesses it may be taken for granted.
    static HERE: Cell<(Node, u32)> = const { Cell::new((Node(0), 0)) };
    /// The copy of the counts to which this thread adds.
    static SHARD: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
}

/// Threads that have counted so far.
static THREADS: AtomicUsize = AtomicUsize::new(0);

impl Nodes {
    pub(crate) fn new(topology: Topology, plain: Region) -> Nodes {
        let shards = std::array::from_fn(|_| Shard::default());
        Nodes { topology, spans: plain.spans(), plain, shards }
    }

    /// The region that carries a write out, which is counted.
    fn writing(&self, offset: u64, len: u64) -> &Region {
        self.count(Access::Write, offset, len);
        &self.plain
    }

    fn count(&self, access: Access, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let here = HERE.get();
        let here = if here.1 > 0 { here } else { (self.topology.current(), STRIDE) };
        HERE.set((here.0, here.1 - 1));
        let span = self.spans.iter().find(|span| offset < span.end());
        let is_far = span.is_some_and(|span| span.node.unwrap_or_default() != here.0);
        let lines = (offset + len - 1) / LINE - offset / LINE + 1;
        let Shard(counts) = &self.shards[SHARD.with(|shard| *shard)];
        counts[2 * access as usize + usize::from(is_far)].fetch_add(lines, Ordering::Relaxed);
    }

    pub(crate) fn nearness(&self) -> Nearness {
        let sum = |at: usize| self.shards.iter().map(|shard| shard.0[at].load(Ordering::Relaxed)).sum();
        Nearness {
            near_lines_read: sum(0),
            far_lines_read: sum(1),
            near_lines_written: sum(2),
            far_lines_written: sum(3),
        }
    }
}

/// Makes this thread look again where it runs.
pub(crate) fn forget_here() {
    HERE.set((Node(0), 0));
}
