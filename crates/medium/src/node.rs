//! [`Node`]: a NUMA node, because memory of another node costs several times as much to reach. [`Span`]: the
//! bytes of a region that lie on one.

use crate::error::MediumError;
use crate::region::Region;
use crate::topology::{self, Topology};
use crate::witness::{self, Nearness, Nodes, Witness};
use std::fmt;
use std::sync::Arc;

/// A NUMA node, by the number that the system gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u16);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A stretch of a region on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its node; `None` if neither the system nor the user tells.
    pub node: Option<Node>,
    /// Its first byte.
    pub start: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl Span {
    /// The first byte behind it.
    pub fn end(&self) -> u64 {
        self.start + self.len
    }
}

impl Region {
    /// This region, whose bytes lie on several nodes of a machine.
    pub(crate) fn spread(mut self, topology: Topology) -> Region {
        let nodes = Nodes::new(topology, self.clone());
        self.witness = Some(Witness::Nodes(Arc::new(nodes)));
        self
    }

    /// The stretches of the region, each on one node: its parts, in their order. Their first bytes are
    /// multiples of 4096.
    pub fn spans(&self) -> Vec<Span> {
        match self.simulator() {
            Some(sim) => sim.spans(),
            None => self.mapping().spans(),
        }
    }

    /// The node that the caller runs on, where that makes a difference: `None` if all bytes are on one node.
    pub fn current_node(&self) -> Option<Node> {
        match &self.witness {
            Some(Witness::Sim(sim)) => Some(Node(sim.home_node())),
            Some(Witness::Nodes(nodes)) => Some(nodes.topology.current()),
            None => None,
        }
    }

    /// How far it is from the processors of a node to the bytes of another; see [`Topology::distance`].
    pub fn distance(&self, from: Node, to: Node) -> u16 {
        match &self.witness {
            Some(Witness::Nodes(nodes)) => nodes.topology.distance(from, to),
            _ => topology::untold(from, to),
        }
    }

    /// Keeps this thread on the processors of a node. Nothing happens where all bytes are on one node; on the
    /// simulator, the node becomes the task's home.
    ///
    /// # Errors
    /// [`MediumError::NoProcessors`].
    pub fn pin(&self, node: Node) -> Result<(), MediumError> {
        match &self.witness {
            Some(Witness::Sim(sim)) if node.0 < sim.options().nodes => sim.move_home(node.0),
            Some(Witness::Sim(_)) => return Err(MediumError::NoProcessors { node }),
            Some(Witness::Nodes(nodes)) => {
                nodes.topology.pin(node)?;
                witness::forget_here();
            }
            None => {}
        }
        Ok(())
    }

    /// Lines that threads have accessed on their own nodes and on others, so far. All zero where all bytes
    /// are on one node, and on the simulator, which counts more exactly ([`crate::sim::Cost`]). A thread that
    /// is not pinned counts for a moment as where it was.
    pub fn nearness(&self) -> Nearness {
        match &self.witness {
            Some(Witness::Nodes(nodes)) => nodes.nearness(),
            _ => Nearness::default(),
        }
    }
}
