//! [`Topology`]: the nodes of a machine, their processors, and the distances between them.
//!
//! Linux describes them in sysfs. A user may describe others, since a container may hide them, and a machine
//! with one node can then try what a pool of several parts does. Distances are as firmware states them: 10 is
//! a node's own memory, 21 takes 2.1 times as long.

use crate::error::MediumError;
use crate::node::Node;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// The distance of a node to itself.
const OWN: u16 = 10;
/// The distance of two nodes of which none is told, as the standard (ACPI's SLIT) has it.
const OTHER: u16 = 20;
/// Where Linux describes nodes.
const SYSTEM: &str = "/sys/devices/system/node";
/// The environment variable that describes them instead.
const GIVEN: &str = "QUIPU_TOPOLOGY";
/// No machine has more processors that Linux can pin a thread to with one call.
const PROCESSORS: usize = CpuSet::MAX_CPU;
const SHAPE: &str =
    "NODE:PROCESSORS;... or NODE:PROCESSORS;...@DISTANCES/... such as \"0:0-3;1:4-7@10,21/21,10\"";

/// The nodes of a machine. A node may have no processor, such as memory behind CXL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<Site>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Site {
    node: Node,
    processors: Vec<usize>,
    /// To each node, in their order.
    distances: Vec<u16>,
}

/// The distance of two nodes of which none is told.
pub(crate) fn untold(from: Node, to: Node) -> u16 {
    if from == to { OWN } else { OTHER }
}

impl Topology {
    /// The nodes of this machine: as the environment variable `QUIPU_TOPOLOGY` describes them, or as the
    /// system does.
    ///
    /// # Errors
    /// [`MediumError::UnknownWord`] if the variable cannot be read.
    pub fn of_machine() -> Result<Topology, MediumError> {
        match std::env::var(GIVEN) {
            Ok(text) => text.parse(),
            Err(_) => Ok(Topology::of_system(Path::new(SYSTEM))),
        }
    }

    /// The nodes that a folder like `/sys/devices/system/node` describes; where there is none, one node with
    /// all processors.
    fn of_system(folder: &Path) -> Topology {
        let numbers = list(&read(folder, "online").unwrap_or_default()).unwrap_or_default();
        let described = numbers.iter().filter_map(|number| {
            let own = folder.join(format!("node{number}"));
            let distances = read(&own, "distance").unwrap_or_default();
            Some(Site {
                node: Node(u16::try_from(*number).ok()?),
                processors: read(&own, "cpulist").and_then(|text| list(&text)).unwrap_or_default(),
                distances: distances.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            })
        });
        let nodes: Vec<Site> = described.collect();
        if nodes.is_empty() {
            return Topology::of_one();
        }
        Topology { nodes }
    }

    fn of_one() -> Topology {
        let processors = (0..PROCESSORS).collect();
        Topology { nodes: vec![Site { node: Node(0), processors, distances: vec![OWN] }] }
    }

    /// The nodes, in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        self.nodes.iter().map(|site| site.node)
    }

    /// The processors of a node.
    pub fn processors(&self, node: Node) -> &[usize] {
        self.site(node).map_or(&[], |site| &site.processors)
    }

    /// How far it is from the processors of a node to the memory of another, in tenths of its own.
    pub fn distance(&self, from: Node, to: Node) -> u16 {
        let position = self.nodes.iter().position(|site| site.node == to);
        let told = self.site(from).zip(position).and_then(|(site, position)| site.distances.get(position));
        told.copied().unwrap_or(untold(from, to))
    }

    /// The node of this thread, at this moment.
    #[inline]
    pub fn current(&self) -> Node {
        let processor = sched_getcpu();
        let site = self.nodes.iter().find(|site| site.processors.binary_search(&processor).is_ok());
        site.map_or(Node(0), |site| site.node)
    }

    /// Keeps this thread on the processors of a node.
    ///
    /// # Errors
    /// [`MediumError::NoProcessors`] if the node has none that this process may use.
    pub fn pin(&self, node: Node) -> Result<(), MediumError> {
        let mut set = CpuSet::new();
        let usable = self.processors(node).iter().filter(|processor| **processor < PROCESSORS);
        usable.for_each(|processor| set.set(*processor));
        let pinned = set.count() > 0 && sched_setaffinity(None, &set).is_ok();
        if pinned { Ok(()) } else { Err(MediumError::NoProcessors { node }) }
    }

    fn site(&self, node: Node) -> Option<&Site> {
        self.nodes.iter().find(|site| site.node == node)
    }
}

/// As in [`FromStr`].
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |words: Vec<String>, by: &str| words.join(by);
        let sites = self.nodes.iter().map(|site| format!("{}:{}", site.node.0, ranges(&site.processors)));
        let row = |from: Node| self.nodes().map(move |to| self.distance(from, to).to_string()).collect();
        let rows = self.nodes().map(|from| join(row(from), ","));
        write!(f, "{}@{}", join(sites.collect(), ";"), join(rows.collect(), "/"))
    }
}

/// `0:0-3;1:4-7@10,21/21,10`: each node with its processors, then a row of distances for each. Without rows,
/// another node is twice as far as the own.
impl FromStr for Topology {
    type Err = MediumError;

    fn from_str(text: &str) -> Result<Topology, MediumError> {
        parse(text).ok_or_else(|| MediumError::UnknownWord {
            text: text.to_owned(),
            what: "topology",
            choices: SHAPE,
        })
    }
}

fn parse(text: &str) -> Option<Topology> {
    let (sites, rows) = match text.split_once('@') {
        Some((sites, rows)) => (sites, Some(rows)),
        None => (text, None),
    };
    let mut nodes = Vec::new();
    for site in sites.split(';') {
        let (node, processors) = site.split_once(':')?;
        nodes.push(Site {
            node: Node(node.trim().parse().ok()?),
            processors: list(processors)?,
            distances: Vec::new(),
        });
    }
    if let Some(rows) = rows {
        let rows: Vec<&str> = rows.split('/').collect();
        for (site, row) in nodes.iter_mut().zip(&rows) {
            site.distances = row.split(',').map(|word| word.trim().parse().ok()).collect::<Option<_>>()?;
        }
        let count = nodes.len();
        if rows.len() != count || nodes.iter().any(|site| site.distances.len() != count) {
            return None;
        }
    }
    let is_new = |(number, site): (usize, &Site)| {
        nodes[..number].iter().all(|earlier| {
            earlier.node != site.node && earlier.processors.iter().all(|one| !site.processors.contains(one))
        })
    };
    nodes.iter().enumerate().all(is_new).then_some(Topology { nodes })
}

/// The numbers of a list such as `0-3,8`.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<usize>().ok()?);
        if last >= PROCESSORS || first > last {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// A list of rising numbers, as [`list`] reads it.
fn ranges(numbers: &[usize]) -> String {
    let pieces = numbers.chunk_by(|one, next| one + 1 == *next);
    let words = pieces.map(|piece| match piece {
        [first, .., last] => format!("{first}-{last}"),
        piece => piece.iter().map(usize::to_string).collect(),
    });
    words.collect::<Vec<_>>().join(",")
}

fn read(folder: &Path, name: &str) -> Option<String> {
    fs::read_to_string(folder.join(name)).ok()
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
