//! The machine's NUMA nodes, because memory of another node costs several times as much to reach.
//!
//! A store that places records by node asks two things: which node a device belongs to ([`crate::Region::node_at`])
//! and which node the calling thread runs on ([`Topology::current_node`]). Both can be wrong inside a container or a
//! virtual machine, so the topology can be overridden by a string, and tests invent one.
//!
//! A topology never changes once made, so it is shared between threads without locks. Processors brought online
//! later are unknown to it and count as node 0's; that costs time, never correctness.

use crate::error::MediumError;
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// A NUMA node, by the number that the system gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u16);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Processors a topology may name; a larger number in a list is taken for a mistake.
const PROCESSORS_MAX: u32 = 1 << 16;
/// The firmware's distance of a node to itself, by definition of the table that reports distances.
const DISTANCE_LOCAL: u32 = 10;
/// The customary distance between two nodes of which nothing else is known.
const DISTANCE_REMOTE: u32 = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    node: Node,
    cpus: Vec<u32>,
    /// To every node, in the order of the entries; empty if unknown.
    distances: Vec<u32>,
}

/// Which nodes there are, which processors they have, how far they are from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<Node>,
    entries: Vec<Entry>,
    node_of_cpu: Vec<Node>,
}

impl Topology {
    /// What the system reports, or one node with every processor if it reports nothing usable.
    pub fn discover() -> Topology {
        Topology::discover_in(Path::new("/sys/devices/system/node")).unwrap_or_else(|| {
            let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
            Topology::uniform(1, cpus.try_into().unwrap_or(1))
        })
    }

    /// Reads a directory in the form of `/sys/devices/system/node`.
    pub(crate) fn discover_in(folder: &Path) -> Option<Topology> {
        let mut entries = Vec::new();
        for item in fs::read_dir(folder).ok()?.flatten() {
            let name = item.file_name();
            let Some(number) = name.to_str().and_then(|name| name.strip_prefix("node")) else { continue };
            let Ok(number) = number.parse::<u16>() else { continue };
            let list = fs::read_to_string(item.path().join("cpulist")).ok()?;
            let distances = fs::read_to_string(item.path().join("distance")).unwrap_or_default();
            entries.push(Entry {
                node: Node(number),
                cpus: cpu_list(list.trim())?,
                distances: distances.split_whitespace().map_while(|word| word.parse().ok()).collect(),
            });
        }
        Topology::from_entries(entries)
    }

    /// `nodes` nodes with `cpus_per_node` processors each, numbered in order: for tests and for machines that hide
    /// theirs. A count of 0 is taken as 1.
    pub fn uniform(nodes: u16, cpus_per_node: u32) -> Topology {
        let cpus_per_node = cpus_per_node.clamp(1, PROCESSORS_MAX / u32::from(nodes.max(1)));
        let entries = (0..nodes.max(1))
            .map(|node| {
                let first = u32::from(node) * cpus_per_node;
                Entry {
                    node: Node(node),
                    cpus: (first..first + cpus_per_node).collect(),
                    distances: Vec::new(),
                }
            })
            .collect();
        Topology::from_entries(entries).expect("distinct nodes with distinct processors")
    }

    /// `None` if there is no node, or a node or a processor occurs twice.
    fn from_entries(mut entries: Vec<Entry>) -> Option<Topology> {
        entries.sort_by_key(|entry| entry.node);
        let nodes: Vec<Node> = entries.iter().map(|entry| entry.node).collect();
        if nodes.is_empty() || nodes.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let cpus = entries.iter().flat_map(|entry| &entry.cpus).max().map_or(0, |last| *last as usize + 1);
        let mut owner = vec![None; cpus];
        for entry in &entries {
            for cpu in &entry.cpus {
                if owner[*cpu as usize].replace(entry.node).is_some() {
                    return None;
                }
            }
        }
        let node_of_cpu = owner.into_iter().map(|node| node.unwrap_or(nodes[0])).collect();
        Some(Topology { nodes, entries, node_of_cpu })
    }

    /// The nodes, in ascending order; at least one. Their numbers may have gaps.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The processors of a node: none if it has only memory, or is unknown.
    pub fn cpus(&self, node: Node) -> &[u32] {
        self.position(node).map_or(&[], |position| &self.entries[position].cpus)
    }

    /// How far `to` is from `from`: 10 for a node to itself, 20 where the system says nothing.
    pub fn distance(&self, from: Node, to: Node) -> u32 {
        let unknown = if from == to { DISTANCE_LOCAL } else { DISTANCE_REMOTE };
        let (Some(row), Some(column)) = (self.position(from), self.position(to)) else { return unknown };
        self.entries[row].distances.get(column).copied().unwrap_or(unknown)
    }

    /// The node of a processor; the first node for one that the topology does not know.
    #[inline]
    pub fn node_of_cpu(&self, cpu: usize) -> Node {
        self.node_of_cpu.get(cpu).copied().unwrap_or(self.nodes[0])
    }

    /// The node that the calling thread runs on at this moment. A thread that is not pinned may move right after.
    #[inline]
    pub fn current_node(&self) -> Node {
        self.node_of_cpu(rustix::thread::sched_getcpu())
    }

    fn position(&self, node: Node) -> Option<usize> {
        self.nodes.binary_search(&node).ok()
    }
}

/// The form that an override takes: `0:0-3;1:4-7` is two nodes of four processors each.
impl FromStr for Topology {
    type Err = MediumError;

    fn from_str(text: &str) -> Result<Topology, MediumError> {
        let parse = || {
            let entries = text.split(';').map(|part| {
                let (node, cpus) = part.split_once(':')?;
                let node = Node(node.trim().parse().ok()?);
                Some(Entry { node, cpus: cpu_list(cpus.trim())?, distances: Vec::new() })
            });
            Topology::from_entries(entries.collect::<Option<Vec<Entry>>>()?)
        };
        parse().ok_or_else(|| MediumError::Topology { text: text.to_owned() })
    }
}

/// Prints the form that [`FromStr`] reads.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, entry) in self.entries.iter().enumerate() {
            let separator = if position == 0 { "" } else { ";" };
            write!(f, "{separator}{}:", entry.node.0)?;
            let runs = entry.cpus.chunk_by(|a, b| a + 1 == *b);
            for (position, run) in runs.enumerate() {
                let separator = if position == 0 { "" } else { "," };
                match run {
                    [only] => write!(f, "{separator}{only}")?,
                    [first, .., last] => write!(f, "{separator}{first}-{last}")?,
                    [] => {}
                }
            }
        }
        Ok(())
    }
}

/// A list such as `0-3,8`, as the kernel prints it; empty for a node of memory only.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last >= PROCESSORS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(nodes: &[(u16, &str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("online"), "0-1\n").unwrap();
        for (node, cpus, distances) in nodes {
            let node = folder.path().join(format!("node{node}"));
            fs::create_dir(&node).unwrap();
            fs::write(node.join("cpulist"), format!("{cpus}\n")).unwrap();
            fs::write(node.join("distance"), format!("{distances}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn reads_what_the_kernel_reports() {
        // Interleaved processors, a gap in the numbers, and a node of memory only, as PM and CXL memory appear.
        let folder = fixture(&[(0, "0-1,4", "10 21 14"), (2, "2-3,5", "21 10 24"), (8, "", "14 24 10")]);
        let topology = Topology::discover_in(folder.path()).unwrap();
        assert_eq!(topology.nodes(), [Node(0), Node(2), Node(8)]);
        assert_eq!(topology.cpus(Node(2)), [2, 3, 5]);
        assert!(topology.cpus(Node(8)).is_empty() && topology.cpus(Node(3)).is_empty());
        assert_eq!((topology.node_of_cpu(4), topology.node_of_cpu(5)), (Node(0), Node(2)));
        assert_eq!(topology.node_of_cpu(900), Node(0));
        assert_eq!(topology.distance(Node(2), Node(8)), 24);
        assert_eq!(topology.distance(Node(8), Node(8)), 10);
        assert_eq!(topology.distance(Node(0), Node(7)), 20);
        assert_eq!(topology.to_string(), "0:0-1,4;2:2-3,5;8:");
    }

    #[test]
    fn a_machine_that_reports_nothing_has_one_node() {
        assert!(Topology::discover_in(Path::new("/nonexistent")).is_none());
        assert!(Topology::discover_in(fixture(&[]).path()).is_none());
        let here = Topology::discover();
        assert!(here.nodes().contains(&here.current_node()));
    }

    #[test]
    fn an_override_round_trips() {
        let topology: Topology = "0:0-3;1:4-7".parse().unwrap();
        assert_eq!(topology, Topology::uniform(2, 4));
        assert_eq!(topology.to_string().parse::<Topology>().unwrap(), topology);
        assert_eq!("1:4,6; 0: 0-3".parse::<Topology>().unwrap().to_string(), "0:0-3;1:4,6");
        assert_eq!(Topology::uniform(0, 0), "0:0".parse().unwrap());
    }

    #[test]
    fn a_wrong_override_is_refused_with_its_text() {
        for text in ["", "0", "0:3-1", "0:0-3;0:4", "0:0-3;1:3", "x:0", "0:0-99999999", "0:0;", "0:-1"] {
            let error = text.parse::<Topology>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("0:0-3;1:4-7"), "{error}");
        }
    }
}
