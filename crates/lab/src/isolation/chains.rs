//! [`Chains`]: the versions of each key in their order, and the states that a read may have shown.

use super::history::{History, Key, Read, Span, Version};
use std::collections::BTreeMap;

/// A version of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub number: u64,
    pub writer: usize,
    /// The write that it is of; `None` for a deletion.
    pub write: Option<usize>,
}

impl Link {
    pub fn version(&self) -> Option<Version> {
        self.write.map(|write| Version { writer: self.writer, write })
    }
}

/// A commit that left something.
struct Commit {
    writer: usize,
    first: u64,
    last: u64,
    at: Span,
}

/// The versions of all keys.
pub(super) struct Chains {
    keys: BTreeMap<Key, Vec<Link>>,
    commits: Vec<Commit>,
    /// Those of all versions, ascending.
    numbers: Vec<u64>,
}

/// The states that explain some reads: no one below the first, and none above the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct States {
    pub first: u64,
    pub last: u64,
}

impl Chains {
    pub fn of(history: &History) -> Chains {
        let mut chains = Chains { keys: BTreeMap::new(), commits: Vec::new(), numbers: Vec::new() };
        for (writer, transaction) in history.transactions.iter().enumerate() {
            let Some(numbers) = transaction.numbers().filter(|numbers| !numbers.is_empty()) else { continue };
            let writes = transaction.last_writes();
            for (key, number) in numbers {
                let write = writes.get(key).copied().flatten();
                chains.keys.entry(*key).or_default().push(Link { number: *number, writer, write });
                chains.numbers.push(*number);
            }
            let (first, last) = (numbers.values().min(), numbers.values().max());
            let (first, last) = (first.copied().unwrap_or(0), last.copied().unwrap_or(0));
            chains.commits.push(Commit { writer, first, last, at: transaction.ended });
        }
        chains.keys.values_mut().for_each(|links| links.sort_by_key(|link| link.number));
        chains.commits.sort_by_key(|commit| commit.first);
        chains.numbers.sort_unstable();
        chains.numbers.dedup();
        chains
    }

    /// All keys that were written.
    pub fn all(&self) -> impl Iterator<Item = (Key, &[Link])> {
        self.keys.iter().map(|(key, links)| (*key, &links[..]))
    }

    /// The versions of a key.
    pub fn links(&self, key: Key) -> &[Link] {
        self.keys.get(&key).map_or(&[], |links| links)
    }

    /// The version of a key in the state of a number; `None` if it was never written until then.
    pub fn at(&self, key: Key, number: u64) -> Option<&Link> {
        let links = self.links(key);
        links[..links.partition_point(|link| link.number <= number)].last()
    }

    /// The first version of a key above a number.
    pub fn above(&self, key: Key, number: u64) -> Option<&Link> {
        let links = self.links(key);
        links.get(links.partition_point(|link| link.number <= number))
    }

    /// The value of a key in the state of a number.
    pub fn state(&self, key: Key, number: u64) -> Option<Version> {
        self.at(key, number)?.version()
    }

    /// The states that may be the newest between two stamps: all that had been committed before is there, and
    /// nothing whose commit began later. They are below the number of the reader's own commit.
    fn bounds(&self, at: Span, own: Option<u64>) -> (u64, u64) {
        let before = self.commits.iter().filter(|commit| commit.at.1 < at.0).map(|commit| commit.last);
        let behind = self.commits.iter().filter(|commit| commit.at.0 > at.1).map(|commit| commit.first);
        (before.max().unwrap_or(0), behind.chain(own).min().map_or(u64::MAX, |number| number - 1))
    }

    /// The states that show all of these reads and may be the newest between two stamps.
    pub fn states(&self, reads: &[Read], at: Span, own: Option<u64>) -> Option<States> {
        let (first, last) = self.bounds(at, own);
        let numbers = &self.numbers[self.numbers.partition_point(|number| *number <= first)..];
        let within = numbers.iter().copied().take_while(|number| *number <= last);
        let candidates = (first <= last).then_some(first).into_iter().chain(within);
        let shows = |number: &u64| reads.iter().all(|read| self.state(read.key, *number) == read.saw);
        let found = candidates.filter(shows).map(|number| States { first: number, last: number });
        found.reduce(|one, other| States { first: one.first, last: other.last })
    }

    /// Whether some number shows these reads, whenever that was.
    pub fn is_state(&self, reads: &[Read]) -> bool {
        let shows = |number: u64| reads.iter().all(|read| self.state(read.key, number) == read.saw);
        shows(0) || self.numbers.iter().any(|number| shows(*number))
    }

    /// Two commits whose numbers contradict time: the first had ended before the second began, and has the
    /// higher number.
    pub fn out_of_time(&self) -> Option<(usize, usize)> {
        self.commits.iter().enumerate().find_map(|(at, later)| {
            let earlier = self.commits[..at].iter().find(|earlier| earlier.at.0 > later.at.1)?;
            Some((later.writer, earlier.writer))
        })
    }
}
