//! [`check`]: whether a history keeps the promises of its level, and what to show if it does not.
//!
//! Two ways of looking at it must agree. Read by read: each value was committed, and all values of a
//! transaction are of one state that was there when the transaction began. And as a graph of who comes before
//! whom, in which each level forbids some cycles ([`Rule`]).
//!
//! *The judge errs on the side of the store.* Where several states explain the reads of a transaction, an
//! edge to the reader starts at the earliest of them, and an edge from the reader ends at the latest. So each
//! edge follows whichever state it was, and a cycle is always a fault.

use super::chains::{Chains, States};
use super::graph::{Graph, Rule, Step, Why};
use super::history::{End, Event, History, Key, Level, Look, Read, Shown, Transaction, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A fault of a history, which its level forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// Bytes that nobody wrote.
    Foreign,
    /// A transaction did not see its own write, or saw one that it had taken back.
    OwnWrite,
    /// A value that was never committed (G1a).
    Aborted,
    /// A value that its transaction wrote over before the commit (G1b).
    Intermediate,
    /// A cycle of writes (G0).
    DirtyWrite,
    /// A cycle without anti-dependencies (G1c).
    Circular,
    /// A value that was not there any more, or not yet.
    OutOfTime,
    /// Reads of different states (G-single).
    ReadSkew,
    /// A write over a version that the transaction has not seen (P4).
    LostUpdate,
    /// A cycle with anti-dependencies (G2, of keys and of ranges).
    Skew,
    /// A commit that was refused although nobody had written what it relied on.
    Needless,
}

/// A fault, in words.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Its kind.
    pub anomaly: Anomaly,
    /// It in words, with the transactions that have part in it.
    pub what: String,
}

/// The judge's findings in a history.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Faults.
    pub violations: Vec<Violation>,
    /// Updates that were lost, where the level allows it.
    pub lost_updates: u64,
    /// Whether there is a cycle that only a higher level forbids.
    pub has_skew: bool,
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let mut judge = Judge { history, chains: Chains::of(history), verdict: Verdict::default() };
    judge.numbers();
    let states: Vec<_> = (0..history.transactions.len()).map(|number| judge.transaction(number)).collect();
    judge.cycles(&states);
    judge.verdict
}

/// The reads of a transaction, as far as they are explained.
#[derive(Default)]
struct Reads {
    /// Those that no write of its own answers, and whose values were committed.
    sound: Vec<Read>,
    /// The states that explain them together; `None` if nothing does, or if each read has a state of its own.
    states: Option<States>,
}

struct Judge<'h> {
    history: &'h History,
    chains: Chains,
    verdict: Verdict,
}

impl Judge<'_> {
    fn convict(&mut self, anomaly: Anomaly, what: impl fmt::Display, of: &[usize]) {
        let mut what = format!("{anomaly}: {what}");
        for number in of.iter().collect::<BTreeSet<_>>() {
            what += &format!("\n  t{number}, {}", self.history.transactions[*number]);
        }
        self.verdict.violations.push(Violation { anomaly, what });
    }

    fn numbers(&mut self) {
        if let Some((one, other)) = self.chains.out_of_time() {
            let what =
                format!("t{one} had ended before the commit of t{other} began, and has a higher number");
            self.convict(Anomaly::OutOfTime, what, &[one, other]);
        }
    }

    fn transaction(&mut self, number: usize) -> Reads {
        let history = self.history;
        let transaction = &history.transactions[number];
        let mut reads = Reads { sound: self.values(number, transaction), states: None };
        let own = transaction.first_number();
        if history.level == Level::ReadCommitted && !transaction.is_plain {
            for read in &reads.sound {
                if self.chains.states(&[*read], read.at, own).is_none() {
                    self.out_of_time(number, read);
                }
            }
        } else {
            reads.states = self.chains.states(&reads.sound, transaction.begun, own);
            if reads.states.is_none() {
                self.no_state(number, &reads.sound);
            }
        }
        match transaction.end {
            End::Committed(_) => self.writes(number, transaction, &reads),
            End::Conflict => self.conflict(number, transaction, &reads),
            End::GivenUp => {}
        }
        reads
    }

    /// Looks at each read by itself. Those whose values were committed are the result.
    fn values(&mut self, number: usize, transaction: &Transaction) -> Vec<Read> {
        let mut sound = Vec::new();
        for (read, own) in transaction.reads() {
            let Read { key, saw, .. } = read;
            if let Some(write) = own {
                let expected = write.map(|write| Version { writer: number, write });
                if saw != expected {
                    let what = format!("key {key} is {}, read as {}", Shown(expected), Shown(saw));
                    self.convict(Anomaly::OwnWrite, what, &[number]);
                }
                continue;
            }
            let Some(version) = saw else {
                sound.push(read);
                continue;
            };
            let writer = self.history.transactions.get(version.writer);
            let write = Event::Write { key, write: Some(version.write) };
            let Some(writer) = writer.filter(|writer| writer.events.contains(&write)) else {
                self.convict(Anomaly::Foreign, format!("key {key} read as {version}"), &[number]);
                continue;
            };
            let of = [number, version.writer];
            let what = format!("key {key} read as {version}");
            if version.writer == number {
                self.convict(Anomaly::OwnWrite, what, &of);
            } else if writer.numbers().is_none() {
                self.convict(Anomaly::Aborted, what, &of);
            } else if writer.last_writes().get(&key) != Some(&Some(version.write)) {
                self.convict(Anomaly::Intermediate, what, &of);
            } else {
                sound.push(read);
            }
        }
        sound
    }

    fn out_of_time(&mut self, number: usize, read: &Read) {
        let what =
            format!("key {} read as {} between {} and {}", read.key, Shown(read.saw), read.at.0, read.at.1);
        let writer = read.saw.map_or(number, |version| version.writer);
        self.convict(Anomaly::OutOfTime, what, &[number, writer]);
    }

    /// Says why no state of the time explains these reads.
    fn no_state(&mut self, number: usize, reads: &[Read]) {
        let transaction = &self.history.transactions[number];
        let own = transaction.first_number();
        let is_late = |read: &&Read| self.chains.states(&[**read], transaction.begun, own).is_none();
        if let Some(read) = reads.iter().find(is_late) {
            let what = match self.chains.is_state(reads) {
                true => "all its reads are of one state, of another time",
                false => "a read is of another time than the beginning",
            };
            let writer = read.saw.map_or(number, |version| version.writer);
            let what = format!("{what}: key {} read as {}", read.key, Shown(read.saw));
            let anomaly = if self.chains.is_state(reads) { Anomaly::OutOfTime } else { Anomaly::ReadSkew };
            return self.convict(anomaly, what, &[number, writer]);
        }
        let writers = reads.iter().filter_map(|read| read.saw).map(|version| version.writer);
        let of: Vec<_> = writers.chain([number]).collect();
        self.convict(Anomaly::ReadSkew, format!("no one state shows all that t{number} has read"), &of);
    }

    /// Looks whether a commit wrote over something that it should have seen.
    fn writes(&mut self, number: usize, transaction: &Transaction, reads: &Reads) {
        let Some(first) = transaction.first_number() else { return };
        for read in reads.sound.iter().filter(|read| read.look == Look::ForUpdate) {
            let there = self.chains.at(read.key, first - 1);
            if there.and_then(|link| link.version()) != read.saw {
                let what = format!("key {} was read for update, and written before the commit", read.key);
                let writer = there.map_or(number, |link| link.writer);
                self.convict(Anomaly::LostUpdate, what, &[number, writer]);
            }
        }
        let numbers: BTreeMap<Key, u64> = transaction.numbers().cloned().unwrap_or_default();
        for (key, own) in numbers {
            let Some(before) = self.chains.at(key, own - 1).copied() else { continue };
            if let Some(states) = reads.states.filter(|_| !transaction.is_plain) {
                if before.number > states.last {
                    let what = format!("key {key} was written between the beginning and the commit");
                    self.convict(Anomaly::LostUpdate, what, &[number, before.writer]);
                }
            } else if !transaction.is_plain {
                let mut seen = reads.sound.iter().filter(|read| read.key == key);
                self.verdict.lost_updates += u64::from(seen.any(|read| read.saw != before.version()));
            }
        }
    }

    /// Looks whether somebody else has written what a refused commit relied on.
    fn conflict(&mut self, number: usize, transaction: &Transaction, reads: &Reads) {
        let counts = |read: &&Read| match self.history.level {
            Level::Serializable => true,
            Level::ReadCommitted | Level::Snapshot => read.look == Look::ForUpdate,
        };
        let read = reads.sound.iter().filter(counts);
        let has_reason = if self.history.level == Level::ReadCommitted {
            read.clone().any(|read| self.is_written(number, read.key, |_, returned| returned > read.at.0))
        } else {
            let Some(states) = reads.states else { return };
            let keys = read.map(|read| read.key).chain(transaction.last_writes().into_keys());
            keys.into_iter().any(|key| self.is_written(number, key, |number, _| number > states.first))
        };
        if !has_reason {
            self.convict(Anomaly::Needless, "nobody had written what it relied on", &[number]);
        }
    }

    /// Whether another commit that began before the end of this one has written a key, with such a number
    /// and such an end.
    fn is_written(&self, number: usize, key: Key, is_it: impl Fn(u64, u64) -> bool) -> bool {
        let ended = self.history.transactions[number].ended.1;
        self.chains.links(key).iter().any(|link| {
            let (invoked, returned) = self.history.transactions[link.writer].ended;
            link.writer != number && invoked < ended && is_it(link.number, returned)
        })
    }

    /// Looks for cycles.
    fn cycles(&mut self, reads: &[Reads]) {
        let graph = self.graph(reads);
        let rules = match self.history.level {
            Level::ReadCommitted => &[Rule::Writes, Rule::NoAntiDependency][..],
            Level::Snapshot => &[Rule::Writes, Rule::NoAntiDependency, Rule::NoTwoInARow],
            Level::Serializable => &[Rule::Writes, Rule::NoAntiDependency, Rule::NoTwoInARow, Rule::Any],
        };
        let any = graph.cycle(Rule::Any);
        self.verdict.has_skew = any.is_some();
        // Without any cycle there is none of any kind.
        let rules = if any.is_some() { rules } else { &[] };
        let found = rules.iter().find_map(|rule| Some((*rule, graph.cycle(*rule)?)));
        if let Some((rule, cycle)) = found {
            let anomaly = match rule {
                Rule::Writes => Anomaly::DirtyWrite,
                Rule::NoAntiDependency => Anomaly::Circular,
                Rule::NoTwoInARow => Anomaly::ReadSkew,
                Rule::Any => Anomaly::Skew,
            };
            let of: Vec<_> = cycle.iter().map(|(from, _)| *from).collect();
            self.convict(anomaly, told(&cycle), &of);
        }
    }

    fn graph(&self, reads: &[Reads]) -> Graph {
        let all = &self.history.transactions;
        let mut graph = Graph::new(all.len());
        for (key, links) in self.chains.all() {
            links.windows(2).for_each(|pair| graph.add(pair[0].writer, pair[1].writer, Why::WriteWrite(key)));
        }
        let committed = |number: &usize| all[*number].numbers().is_some();
        for number in (0..all.len()).filter(committed) {
            for read in &reads[number].sound {
                let states = reads[number].states;
                let writer = match read.saw {
                    Some(version) => Some(version.writer),
                    None => states.and_then(|states| Some(self.chains.at(read.key, states.first)?.writer)),
                };
                if let Some(writer) = writer {
                    graph.add(writer, number, Why::WriteRead(read.key));
                }
                if let Some(next) = states.and_then(|states| self.chains.above(read.key, states.last)) {
                    graph.add(number, next.writer, Why::ReadWrite(read.key));
                }
            }
            let later = (0..all.len()).filter(|later| all[number].ended.1 < all[*later].begun.0);
            later.filter(committed).for_each(|later| graph.add(number, later, Why::Time));
        }
        graph
    }
}

/// A cycle in words.
fn told(cycle: &[Step]) -> String {
    let steps: Vec<_> = cycle.iter().map(|(from, why)| format!("t{from} {why}")).collect();
    format!("{} t{}", steps.join(" "), cycle[0].0)
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Anomaly::Foreign => "bytes that nobody wrote",
            Anomaly::OwnWrite => "an own write not seen",
            Anomaly::Aborted => "a read of an aborted write (G1a)",
            Anomaly::Intermediate => "an intermediate read (G1b)",
            Anomaly::DirtyWrite => "a cycle of writes (G0)",
            Anomaly::Circular => "circular information flow (G1c)",
            Anomaly::OutOfTime => "a state of another time",
            Anomaly::ReadSkew => "read skew (G-single)",
            Anomaly::LostUpdate => "a lost update (P4)",
            Anomaly::Skew => "a cycle with anti-dependencies (G2)",
            Anomaly::Needless => "a conflict with nobody",
        })
    }
}
