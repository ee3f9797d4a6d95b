//! [`Graph`]: which transaction comes before which, and the shortest cycle that a level forbids.
//!
//! After Adya's thesis (MIT, 1999): a history is judged by the cycles among its transactions. An edge says
//! that one of them must come first: it wrote what the other replaced or read, or it read what the other
//! replaced (an *anti-dependency*), or it had ended when the other began.

use std::collections::VecDeque;
use std::fmt;

use super::history::Key;

/// Why a transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It wrote a version, and the other the next one.
    WriteWrite(Key),
    /// It wrote the version that the other read.
    WriteRead(Key),
    /// It read a version, and the other wrote the next one.
    ReadWrite(Key),
    /// It had ended when the other began.
    Time,
}

/// The cycles that are forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Those of writes alone, and of time.
    Writes,
    /// Those without anti-dependencies.
    NoAntiDependency,
    /// Those without two anti-dependencies behind each other.
    NoTwoInARow,
    /// All.
    Any,
}

/// An edge of a cycle: from this transaction to that of the next edge.
pub type Step = (usize, Why);

/// Transactions by their numbers, and who comes before whom.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    edges: Vec<Vec<(usize, Why)>>,
}

impl Graph {
    /// So many transactions, and no edges.
    pub fn new(transactions: usize) -> Graph {
        Graph { edges: vec![Vec::new(); transactions] }
    }

    /// Adds an edge. One from a transaction to itself says nothing.
    pub fn add(&mut self, from: usize, to: usize, why: Why) {
        if from != to && !self.edges[from].contains(&(to, why)) {
            self.edges[from].push((to, why));
        }
    }

    /// A shortest cycle that a rule forbids.
    ///
    /// Nodes of the search are transactions, each twice: as they are come to by an anti-dependency, and
    /// otherwise. Where only cycles without two anti-dependencies in a row are forbidden, the search never
    /// takes a second one. A walk back to its start may so pass a transaction twice. One of the two loops is
    /// then a cycle without two in a row by itself, so the shortest walk has no loops.
    pub fn cycle(&self, rule: Rule) -> Option<Vec<Step>> {
        let mut left = self.kept(rule);
        let mut shortest: Option<Vec<Step>> = None;
        while let Some(start) = left.pop() {
            let most = shortest.as_ref().map_or(usize::MAX, Vec::len);
            let found = self.shortest_from(start, rule, most);
            shortest = found.or(shortest);
        }
        shortest
    }

    fn next(&self, (node, by_anti): (usize, bool), rule: Rule) -> impl Iterator<Item = ((usize, bool), Why)> {
        self.edges[node].iter().filter_map(move |(to, why)| {
            let is_anti = matches!(why, Why::ReadWrite(_));
            let counts = match rule {
                Rule::Writes => matches!(why, Why::WriteWrite(_) | Why::Time),
                Rule::NoAntiDependency => !is_anti,
                Rule::NoTwoInARow => !(is_anti && by_anti),
                Rule::Any => true,
            };
            counts.then_some(((*to, is_anti && rule == Rule::NoTwoInARow), *why))
        })
    }

    /// The nodes that are left when those without a predecessor go, again and again: all that are in a cycle.
    fn kept(&self, rule: Rule) -> Vec<(usize, bool)> {
        let nodes: Vec<_> =
            (0..self.edges.len()).flat_map(|node| [false, true].map(|by_anti| (node, by_anti))).collect();
        let at = |(node, by_anti): (usize, bool)| node * 2 + usize::from(by_anti);
        let mut befores = vec![0u32; nodes.len()];
        nodes.iter().for_each(|node| self.next(*node, rule).for_each(|(to, _)| befores[at(to)] += 1));
        let mut free: Vec<_> = nodes.iter().copied().filter(|node| befores[at(*node)] == 0).collect();
        let mut is_gone = vec![false; nodes.len()];
        while let Some(node) = free.pop() {
            is_gone[at(node)] = true;
            for (to, _) in self.next(node, rule) {
                befores[at(to)] -= 1;
                if befores[at(to)] == 0 {
                    free.push(to);
                }
            }
        }
        nodes.into_iter().filter(|node| !is_gone[at(*node)]).collect()
    }

    /// A shortest walk from a node back to it, of fewer than `most` steps.
    fn shortest_from(&self, start: (usize, bool), rule: Rule, most: usize) -> Option<Vec<Step>> {
        let at = |(node, by_anti): (usize, bool)| node * 2 + usize::from(by_anti);
        let mut from = vec![None; self.edges.len() * 2];
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((node, steps)) = queue.pop_front() {
            if steps + 1 >= most {
                return None;
            }
            for (to, why) in self.next(node, rule) {
                if from[at(to)].is_none() {
                    from[at(to)] = Some((node, why));
                    queue.push_back((to, steps + 1));
                }
                if to == start {
                    return Some(walk(start, |node| from[at(node)].expect("it was come to")));
                }
            }
        }
        None
    }
}

/// The steps of a walk that comes back to its start.
fn walk(start: (usize, bool), from: impl Fn((usize, bool)) -> ((usize, bool), Why)) -> Vec<Step> {
    let (mut node, mut steps) = (start, Vec::new());
    loop {
        let (before, why) = from(node);
        steps.push((before.0, why));
        node = before;
        if node == start {
            break;
        }
    }
    steps.reverse();
    steps
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::WriteWrite(key) => write!(f, "wrote key {key} before"),
            Why::WriteRead(key) => write!(f, "wrote what was read of key {key} by"),
            Why::ReadWrite(key) => write!(f, "read of key {key} what was replaced by"),
            Why::Time => f.write_str("had ended before the beginning of"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Why::{ReadWrite, Time, WriteRead, WriteWrite};

    fn graph(edges: &[(usize, usize, Why)]) -> Graph {
        let mut graph = Graph::new(6);
        edges.iter().for_each(|(from, to, why)| graph.add(*from, *to, *why));
        graph
    }

    /// Which rules forbid a cycle of it, from the weakest on.
    fn forbidden(edges: &[(usize, usize, Why)]) -> [bool; 4] {
        let rules = [Rule::Writes, Rule::NoAntiDependency, Rule::NoTwoInARow, Rule::Any];
        rules.map(|rule| graph(edges).cycle(rule).is_some())
    }

    #[test]
    fn cycles_are_told_apart_by_their_anti_dependencies() {
        assert_eq!(forbidden(&[]), [false; 4]);
        assert_eq!(forbidden(&[(0, 1, WriteWrite(0)), (1, 2, WriteRead(0)), (0, 2, Time)]), [false; 4]);
        assert_eq!(forbidden(&[(0, 1, WriteWrite(0)), (1, 0, WriteWrite(1))]), [true; 4]);
        assert_eq!(forbidden(&[(0, 1, WriteWrite(0)), (1, 0, Time)]), [true; 4]);
        assert_eq!(forbidden(&[(0, 1, WriteRead(0)), (1, 0, WriteRead(1))]), [false, true, true, true]);
        assert_eq!(forbidden(&[(0, 1, ReadWrite(0)), (1, 0, WriteRead(1))]), [false, false, true, true]);
        assert_eq!(forbidden(&[(0, 1, ReadWrite(0)), (1, 0, ReadWrite(1))]), [false, false, false, true]);
        // The two are neighbours over the end of the walk, too.
        let three = [(0, 1, ReadWrite(0)), (1, 2, WriteRead(1)), (2, 0, ReadWrite(2))];
        assert_eq!(forbidden(&three), [false, false, false, true]);
        // And not if something else is between them on both sides.
        let four = [(0, 1, ReadWrite(0)), (1, 2, WriteRead(1)), (2, 3, ReadWrite(2)), (3, 0, WriteWrite(3))];
        assert_eq!(forbidden(&four), [false, false, true, true]);
    }

    #[test]
    fn the_shortest_cycle_is_told() {
        let long = [(0, 1, WriteRead(0)), (1, 2, WriteRead(0)), (2, 0, WriteRead(0))];
        let short = [(3, 4, WriteRead(1)), (4, 3, ReadWrite(2)), (2, 3, Time)];
        let graph = graph(&[long, short].concat());
        assert_eq!(graph.cycle(Rule::NoAntiDependency).map(|cycle| cycle.len()), Some(3));
        let mut cycle = graph.cycle(Rule::Any).unwrap();
        cycle.sort_by_key(|(from, _)| *from);
        assert_eq!(cycle, [(3, WriteRead(1)), (4, ReadWrite(2))]);
    }
}
