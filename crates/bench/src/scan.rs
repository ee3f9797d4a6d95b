//! Scans in the order of keys, and what proves that they read what they claim.
//!
//! A scan names a record, which must come first. Each pair tells by itself of which record it is; that record
//! must have this key and this value, and each key must be above the one before. A scan may end early only
//! behind the last key that was loaded. That none was left out is shown once, in the end, by a scan of all.

use super::engine::{Engine, EngineClient, OpenEngine};
use super::error::{BenchError, Fault};
use super::session::Session;
use crate::workload::{KeyShape, Mismatch, Values};

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

/// One thread's scans.
pub struct Scan<'a, E: Engine, N> {
    session: &'a Session<'a, E>,
    phase: &'a str,
    names: &'a N,
    /// The last key of those that were loaded.
    last: &'a [u8],
    from: Vec<u8>,
    /// The first key that was found.
    first: Vec<u8>,
    /// The key of the record that a pair seems to be of, and the key of the pair before.
    key: Vec<u8>,
    before: Vec<u8>,
}

impl<'a, E: Engine, N: Names> Scan<'a, E, N> {
    /// Scans of a phase, of records with these names, of which this is the last key.
    pub fn new(session: &'a Session<'a, E>, phase: &'a str, names: &'a N, last: &'a [u8]) -> Self {
        let [from, first, key, before] = [const { Vec::new() }; 4];
        Scan { session, phase, names, last, from, first, key, before }
    }

    /// Reads so many records from one on that is there, or all that there are behind it.
    pub fn run(
        &mut self,
        client: &mut <E::Opened as OpenEngine>::Client,
        record: u64,
        count: u64,
    ) -> Result<(), BenchError> {
        self.names.fill(record, &mut self.from);
        let found = self.checked(client, count as usize)?;
        let is_whole = found == count || (found > 0 && self.before.as_slice() >= self.last);
        if is_whole && self.first == self.from {
            return Ok(());
        }
        Err(self.session.fault(self.phase, Fault::Missing(record)))
    }

    /// Reads all that there is, which must be so many records.
    pub fn all(mut self, opened: &E::Opened, records: u64) -> Result<(), BenchError> {
        self.from.clear();
        let found = self.checked(&mut opened.client(), usize::MAX)?;
        if found == records {
            return Ok(());
        }
        Err(self.session.fault(self.phase, Fault::Count { found, expected: records }))
    }

    /// Scans from `from` on.
    fn checked(
        &mut self,
        client: &mut <E::Opened as OpenEngine>::Client,
        count: usize,
    ) -> Result<u64, BenchError> {
        let Scan { session, phase, names, from, first, key: named, before, .. } = self;
        let (mut verdict, mut found) = (Ok(()), 0u64);
        first.clear();
        let scanned = client.scan(from, count, |key, value| {
            if verdict.is_err() {
                return;
            }
            let number = names.number_of(key, value);
            names.fill(number, named);
            verdict = if named.as_slice() != key {
                Err(session.fault(phase, Fault::WrongValue(number, Mismatch::Foreign)))
            } else if found > 0 && key <= before.as_slice() {
                Err(session.fault(phase, Fault::Disorder(number)))
            } else {
                session.verify(phase, number, Some(value))
            };
            if found == 0 {
                first.extend_from_slice(key);
            }
            before.clear();
            before.extend_from_slice(key);
            found += 1;
        });
        scanned.map_err(session.refused(phase))?;
        verdict.map(|()| found)
    }
}
