//! The DIMMs behind a region: which one stores a line, and the bytes that the media write for it.
//!
//! The media write blocks of 256 bytes. A small buffer in each DIMM combines lines of a block that arrive
//! close to each other (Viper, VLDB'21, section 2.1). Nodes own equal, page-aligned slices of the region.
//! Within a node pages of 4 KiB go round the DIMMs, as interleaved Optane does.
//!
//! A block is charged when it enters the buffer: it will be written once when it leaves, and charging early
//! attributes the bytes to the operation that caused them. A block that comes back after it left is charged
//! again.

use super::cost::{Cost, MAX_DIMMS, MAX_NODES};
use crate::arch::LINE;
use crate::node::{Node, Span};

/// Bytes that the media write at once (an Optane "XPLine").
pub const MEDIA_BLOCK: u64 = 256;
const INTERLEAVE: u64 = 4096;
/// Blocks in the write-combining buffer of a DIMM: 16 KiB of them.
const BUFFER_BLOCKS: usize = 64;

/// Where lines live.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    nodes: u16,
    dimms: u16,
    slice: u64,
    len: u64,
}

impl Geometry {
    pub(crate) fn new(len: u64, nodes: u16, dimms: u16) -> Geometry {
        assert!(nodes > 0 && dimms > 0, "a region has at least one node and one DIMM");
        assert!(usize::from(nodes) <= MAX_NODES, "at most {MAX_NODES} nodes are modelled");
        assert!(
            usize::from(nodes) * usize::from(dimms) <= MAX_DIMMS,
            "at most {MAX_DIMMS} DIMMs are modelled"
        );
        let slice = (len / u64::from(nodes)).next_multiple_of(INTERLEAVE).max(INTERLEAVE);
        Geometry { nodes, dimms, slice, len }
    }

    #[inline]
    pub(crate) fn node(&self, offset: u64) -> u16 {
        if self.nodes == 1 { 0 } else { ((offset / self.slice) as u16).min(self.nodes - 1) }
    }

    /// The slices of the nodes, in their order.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let start = |node: u16| (self.slice * u64::from(node)).min(self.len);
        let end = |node: u16| if node + 1 == self.nodes { self.len } else { start(node + 1) };
        let span = |node: u16| {
            let (start, end) = (start(node), end(node));
            Span { node: Some(Node(node)), start, len: end - start }
        };
        (0..self.nodes).map(span).collect()
    }

    fn dimm(&self, offset: u64) -> usize {
        let node = self.node(offset);
        let within = (offset - self.slice * u64::from(node)) / INTERLEAVE % u64::from(self.dimms);
        usize::from(node) * usize::from(self.dimms) + within as usize
    }
}

/// The write-combining buffers.
pub(crate) struct Dimms {
    /// By DIMM, the blocks in its buffer, the most recently used one last.
    buffers: Vec<Vec<u64>>,
}

impl Dimms {
    pub(crate) fn new(geometry: &Geometry) -> Dimms {
        Dimms { buffers: vec![Vec::new(); usize::from(geometry.nodes) * usize::from(geometry.dimms)] }
    }

    /// A line arrives.
    pub(crate) fn write(&mut self, geometry: &Geometry, line: u32, cost: &mut Cost) {
        let offset = u64::from(line) * LINE;
        let dimm = geometry.dimm(offset);
        cost.dimm_lines[dimm] += 1;
        let block = offset / MEDIA_BLOCK;
        let buffer = &mut self.buffers[dimm];
        if buffer.last() == Some(&block) {
            return;
        }
        match buffer.iter().rposition(|held| *held == block) {
            Some(position) => buffer[position..].rotate_left(1),
            None => {
                if buffer.len() == BUFFER_BLOCKS {
                    buffer.remove(0);
                }
                buffer.push(block);
                cost.media_write_bytes += MEDIA_BLOCK;
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.buffers.iter_mut().for_each(Vec::clear);
    }
}
