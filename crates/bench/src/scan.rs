//! Scans in the order of keys, and what proves that they read what they claim.
//!
//! A scan names a record, which must come first. Each pair tells by itself of which record it is; that record
//! must have this key and this value, and each key must be above the one before. A scan may end early only
//! behind the last key that was loaded. That none was left out is shown once, in the end, by a scan of all.
//!
//! A scan that is measured copies its pairs, as a user's would, and nothing else. A check between two of them
//! would stand between two misses of the cache, and cost more there than it does alone. So all are checked
//! behind the call, inside of the phase's time but not of the call's.

use super::drive::{Answer, Caller};
use super::engine::{Engine, EngineClient, OpenEngine};
use super::error::{BenchError, Fault};
use super::session::Session;
use crate::workload::{KeyShape, Mismatch, Values};
use std::ops::Range;

/// How records are named, and which one a pair is of.
pub trait Names {
    /// Writes the key of a record over `key`.
    fn fill(&self, number: u64, key: &mut Vec<u8>);

    /// The record that a pair seems to be of. The caller checks that.
    fn number_of(&self, key: &[u8], value: &[u8]) -> u64;
}

/// Keys of a set do not tell their numbers, but values do, as long as nothing is updated.
impl Names for KeyShape {
    fn fill(&self, number: u64, key: &mut Vec<u8>) {
        KeyShape::fill(self, number, key);
    }

    fn number_of(&self, key: &[u8], value: &[u8]) -> u64 {
        if self.is_of_set() { Values::number_of_first(value) } else { KeyShape::number_of(self, key) }
    }
}

/// The last key of so many records.
pub fn last_key(names: &impl Names, records: u64) -> Vec<u8> {
    let (mut key, mut last) = (Vec::new(), Vec::new());
    for number in 0..records {
        names.fill(number, &mut key);
        if key > last {
            last.clone_from(&key);
        }
    }
    last
}

/// Pairs that were shown, copied.
#[derive(Default)]
pub(super) struct Pairs {
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    /// Where the key of each ends, and where its value does.
    ends: Vec<(usize, usize)>,
}

impl Pairs {
    /// Forgets all, and keeps the room.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Copies a pair.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((end, self.bytes.len()));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |(key, value)| {
            let pair = (&self.bytes[begin..*key], &self.bytes[*key..*value]);
            begin = *value;
            pair
        })
    }
}

/// Proves the pairs of a scan, one by one.
struct Proof<'a, E: Engine, N> {
    session: &'a Session<'a, E>,
    phase: &'a str,
    names: &'a N,
    /// Pairs of this scan so far, and the key of the last.
    found: u64,
    before: Vec<u8>,
    /// The key of the record that a pair seems to be of.
    named: Vec<u8>,
}

impl<E: Engine, N: Names> Proof<'_, E, N> {
    /// Checks the next pair.
    fn check(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        let number = self.names.number_of(key, value);
        self.names.fill(number, &mut self.named);
        if self.named.as_slice() != key {
            return Err(self.session.fault(self.phase, Fault::WrongValue(number, Mismatch::Foreign)));
        }
        if self.found > 0 && key <= self.before.as_slice() {
            return Err(self.session.fault(self.phase, Fault::Disorder(number)));
        }
        self.session.verify(self.phase, number, Some(value))?;
        std::mem::swap(&mut self.named, &mut self.before);
        self.found += 1;
        Ok(())
    }
}

/// One thread's scans.
pub struct Scan<'a, E: Engine, N> {
    proof: Proof<'a, E, N>,
    /// The last key of those that were loaded.
    last: &'a [u8],
    from: Vec<u8>,
    pairs: Pairs,
    /// The record and the count that the pairs were asked for with, until they are checked.
    asked: Option<(u64, u64)>,
}

impl<'a, E: Engine, N: Names> Scan<'a, E, N> {
    /// Scans of a phase, of records with these names, of which this is the last key.
    pub fn new(session: &'a Session<'a, E>, phase: &'a str, names: &'a N, last: &'a [u8]) -> Self {
        let (named, before, from) = Default::default();
        let proof = Proof { session, phase, names, found: 0, before, named };
        Scan { proof, last, from, pairs: Pairs::default(), asked: None }
    }

    /// Calls that scan, or do other work, and are followed by the check of what they have read.
    pub fn calls<C>(self, call: C) -> impl Caller + use<'a, E, N, C>
    where
        C: FnMut(&mut Self, u64) -> Result<(), BenchError>,
    {
        Scanning { scan: self, call }
    }

    /// Reads so many records from one on that is there, or all that there are behind it. They are checked
    /// later.
    pub fn run(
        &mut self,
        client: &mut <E::Opened as OpenEngine>::Client,
        record: u64,
        count: u64,
    ) -> Result<(), BenchError> {
        let Scan { proof, from, pairs, asked, .. } = self;
        proof.names.fill(record, from);
        pairs.clear();
        let scanned = client.scan(from, count as usize, |key, value| pairs.push(key, value));
        scanned.map_err(proof.session.refused(proof.phase))?;
        *asked = Some((record, count));
        Ok(())
    }

    /// Checks what the last scan has read, unless that is done.
    fn check(&mut self) -> Result<(), BenchError> {
        let Scan { proof, last, from, pairs, asked } = self;
        let Some((record, count)) = asked.take() else { return Ok(()) };
        proof.found = 0;
        pairs.iter().try_for_each(|(key, value)| proof.check(key, value))?;
        let is_whole = proof.found == count || proof.found < count && proof.before.as_slice() >= *last;
        let is_first = pairs.iter().next().is_some_and(|(key, _)| key == from);
        if is_whole && is_first {
            return Ok(());
        }
        Err(proof.session.fault(proof.phase, Fault::Missing(record)))
    }

    /// Reads all that there is, which must be so many records.
    pub fn all(mut self, opened: &E::Opened, records: u64) -> Result<(), BenchError> {
        let (proof, mut verdict) = (&mut self.proof, Ok(()));
        let scanned = opened.client().scan(&[], usize::MAX, |key, value| {
            if verdict.is_ok() {
                verdict = proof.check(key, value);
            }
        });
        scanned.map_err(proof.session.refused(proof.phase))?;
        verdict?;
        let found = proof.found;
        if found == records {
            return Ok(());
        }
        Err(proof.session.fault(proof.phase, Fault::Count { found, expected: records }))
    }
}

/// Calls with scans among them.
struct Scanning<'a, E: Engine, N, C> {
    scan: Scan<'a, E, N>,
    call: C,
}

impl<'a, E, N, C> Caller for Scanning<'a, E, N, C>
where
    E: Engine,
    N: Names,
    C: FnMut(&mut Scan<'a, E, N>, u64) -> Result<(), BenchError>,
{
    #[inline]
    fn prepare(&mut self, _calls: Range<u64>) {}

    #[inline(always)]
    fn call(&mut self, number: u64) -> Result<Answer, BenchError> {
        (self.call)(&mut self.scan, number).map(Answer::from)
    }

    #[inline]
    fn check(&mut self) -> Result<(), BenchError> {
        self.scan.check()
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
