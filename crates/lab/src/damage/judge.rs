//! The answers of a damaged pool, held against its contents.

use super::ground::{Ground, LEN, bytes_of};
use super::place::Place;
use super::strike::{Blow, Strike};
use quipu::{Client, Error, ErrorKind, Store};
use quipu_medium::{Pages, Region};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The tool that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Opening.
    Open,
    /// A get of one key.
    Get,
    /// A get of many, as an export reads.
    GetMany,
    /// An iteration.
    Iterate,
    /// A scan in order.
    Scan,
    /// The check.
    Check,
    /// A get after the pool was written on, compacted and opened again.
    Later,
}

/// A wrong answer that came without a word of damage.
#[derive(Clone, Debug)]
pub struct Silent {
    tool: Tool,
    key: Option<Vec<u8>>,
    what: String,
    is_own: bool,
}

impl Silent {
    /// Whether it is about a key whose own bytes were struck.
    pub fn is_own(&self) -> bool {
        self.is_own
    }
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Silent { tool, key, what, is_own } = self;
        let whose = if *is_own { "own" } else { "another" };
        match key {
            Some(key) => write!(f, "{tool:?}: {what} ({whose} key {})", key[..8].escape_ascii()),
            None => write!(f, "{tool:?}: {what}"),
        }
    }
}

/// The outcome of a strike.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The pool was refused, and is unchanged.
    Refused,
    /// It was opened, and something was said to be damaged or lost.
    Told,
    /// It was opened, and all answers are the truth.
    Harmless,
    /// Some are not.
    Silent(Vec<Silent>),
}

struct Judge<'g> {
    ground: &'g Ground,
    own: BTreeSet<usize>,
    silent: Vec<Silent>,
    told: bool,
}

/// Whether an error says that something is damaged.
fn tells(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Damaged | ErrorKind::NotAPool)
}

/// Opens the damaged pool and asks for everything in every way.
pub(super) fn judge(ground: &Ground, strike: &Strike) -> Verdict {
    let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
    region.write(0, &strike.image);
    let own = ground.own_keys(&strike.image, strike.range.clone(), strike.blow == Blow::OldPage);
    let mut judge = Judge { ground, own, silent: Vec::new(), told: false };
    let judged = catch_unwind(AssertUnwindSafe(|| judge.all(&region, strike)));
    match judged {
        Err(_) => Verdict::Silent(vec![judge.alone(Tool::Open, "a panic".into())]),
        Ok(Some(verdict)) if judge.silent.is_empty() => verdict,
        Ok(_) if !judge.silent.is_empty() => Verdict::Silent(judge.silent),
        Ok(_) if judge.told => Verdict::Told,
        Ok(_) => Verdict::Harmless,
    }
}

impl Judge<'_> {
    /// The verdict, if the pool is refused.
    fn all(&mut self, region: &Region, strike: &Strike) -> Option<Verdict> {
        let store = Store::open_on(region.clone(), self.ground.options());
        let mut store = match store {
            Ok(store) => store,
            Err(error) => {
                if !tells(&error) {
                    let silent =
                        self.alone(Tool::Open, format!("an error that says nothing of damage: {error}"));
                    self.silent.push(silent);
                }
                if bytes_of(region) != strike.image {
                    let silent = self.alone(Tool::Open, format!("a pool changed and yet refused: {error}"));
                    self.silent.push(silent);
                }
                return Some(Verdict::Refused);
            }
        };
        let recovery = store.recovery();
        self.told |= !recovery.lost.is_empty() || !recovery.torn.is_empty();
        let client = store.client();
        let wrong = self.ask(&client);
        drop(client);
        match store.check(&|_, _| {}) {
            Ok(report) if report.is_sound() => {
                if !wrong.is_empty() && !self.told {
                    let mut silent =
                        self.alone(Tool::Check, format!("sound, but {} keys are wrong", wrong.len()));
                    silent.is_own = wrong.iter().all(|key| self.own.contains(key));
                    self.silent.push(silent);
                }
            }
            Ok(_) => self.told = true,
            Err(error) if tells(&error) => self.told = true,
            Err(error) => {
                let silent =
                    self.alone(Tool::Check, format!("an error that says nothing of damage: {error}"));
                self.silent.push(silent);
            }
        }
        if strike.place == Place::SlotBits && strike.blow == Blow::Bit && wrong.len() > 1 {
            let what = format!("one bit, but {} keys are wrong", wrong.len());
            let silent = self.alone(Tool::Get, what);
            self.silent.push(silent);
        }
        let later = self.live_on(&store);
        drop(store);
        if let Ok(store) = Store::open_on(region.clone(), self.ground.options()) {
            self.ask_later(&store.client(), &later, &wrong);
        }
        None
    }

    fn alone(&self, tool: Tool, what: String) -> Silent {
        Silent { tool, key: None, what, is_own: false }
    }

    /// Compares an answer about a key; whether it is silent and wrong.
    fn hear(
        &mut self,
        tool: Tool,
        key: usize,
        answer: Result<Option<&[u8]>, &Error>,
        expected: Option<&[u8]>,
    ) -> bool {
        let what = match answer {
            Ok(found) if found == expected => return false,
            Err(error) if tells(error) => {
                self.told = true;
                return false;
            }
            Err(error) => format!("an error that says nothing of damage: {error}"),
            Ok(None) => "absent".into(),
            Ok(Some(_)) if expected.is_none() => "back".into(),
            Ok(Some(_)) => "another value".into(),
        };
        let is_own = self.own.contains(&key);
        self.silent.push(Silent { tool, key: Some(self.ground.keys[key].clone()), what, is_own });
        true
    }

    /// Asks for all keys in all ways; the numbers of those that were answered silently and wrongly.
    fn ask(&mut self, client: &Client) -> BTreeSet<usize> {
        let ground = self.ground;
        let mut wrong = BTreeSet::new();
        let truth = |key: usize| ground.truth.get(&ground.keys[key]).map(Vec::as_slice);
        for (number, key) in ground.keys.iter().enumerate() {
            let found = client.get(key);
            let answer = found.as_ref().map(|found| found.as_deref());
            if self.hear(Tool::Get, number, answer, truth(number)) {
                wrong.insert(number);
            }
        }
        let mut done = 0;
        while done < ground.keys.len() {
            let begun = done;
            let mut answers = Vec::new();
            let read =
                client.get_many(&ground.keys[begun..], |_, value| answers.push(value.map(<[u8]>::to_vec)));
            for answer in answers {
                self.hear(Tool::GetMany, done, Ok(answer.as_deref()), truth(done));
                done += 1;
            }
            if let Err(error) = &read {
                self.hear(Tool::GetMany, done, Err(error), None);
                done += 1;
            }
        }
        let guard = client.pin();
        let mut pairs = guard.iter();
        let found: BTreeMap<Vec<u8>, Vec<u8>> =
            pairs.by_ref().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let ended = pairs.ended();
        self.hear_all(Tool::Iterate, &found, ended.err().as_ref(), &mut wrong);
        if let Ok(range) = guard.range(Bound::Unbounded, Bound::Unbounded) {
            let (mut found, mut damage) = (BTreeMap::new(), None);
            for pair in range {
                match pair {
                    Ok((key, value)) => drop(found.insert(key.to_vec(), value.to_vec())),
                    Err(error) => damage = Some(error),
                }
            }
            self.hear_all(Tool::Scan, &found, damage.as_ref(), &mut wrong);
        }
        wrong
    }

    /// Compares what a walk over all keys has shown, and whether it said that something was left out.
    fn hear_all(
        &mut self,
        tool: Tool,
        found: &BTreeMap<Vec<u8>, Vec<u8>>,
        damage: Option<&Error>,
        wrong: &mut BTreeSet<usize>,
    ) {
        let ground = self.ground;
        for (number, key) in ground.keys.iter().enumerate() {
            let answer = match (found.get(key), damage) {
                (None, Some(error)) => Err(error),
                (found, _) => Ok(found.map(Vec::as_slice)),
            };
            if self.hear(tool, number, answer, ground.truth.get(key).map(Vec::as_slice)) {
                wrong.insert(number);
            }
        }
        let strange = found.keys().filter(|key| !ground.keys.contains(key)).count();
        if strange > 0 {
            let mut silent = self.alone(tool, format!("{strange} keys that never were"));
            silent.is_own = strange == 1 && !self.own.is_empty();
            self.silent.push(silent);
        }
    }

    /// Overwrites and deletes some keys, compacts, and returns what the pool should then hold, as far as the
    /// calls told.
    fn live_on(&mut self, store: &Store) -> BTreeMap<usize, Option<Vec<u8>>> {
        let ground = self.ground;
        let mut later = BTreeMap::new();
        let mut client = store.client();
        for (number, key) in ground.keys.iter().enumerate() {
            let (written, value) = match number % 4 {
                0 => {
                    let value = ground.truth.get(key).cloned().unwrap_or_else(|| vec![number as u8; 120]);
                    (client.put(key, &value), Some(value))
                }
                1 => (client.delete(key), None),
                _ => (Ok(()), ground.truth.get(key).cloned()),
            };
            // A key whose write failed may be either way.
            if written.is_ok() {
                later.insert(number, value);
            }
        }
        drop(client);
        // It leaves alone what it cannot read.
        let _ = store.compact();
        later
    }

    fn ask_later(
        &mut self,
        client: &Client,
        later: &BTreeMap<usize, Option<Vec<u8>>>,
        wrong: &BTreeSet<usize>,
    ) {
        let ground = self.ground;
        for (number, expected) in later {
            // Keys that were wrong before, and were not written since, are known.
            let is_fresh = number % 4 < 2;
            if is_fresh || !wrong.contains(number) {
                let found = client.get(&ground.keys[*number]);
                self.hear(
                    Tool::Later,
                    *number,
                    found.as_ref().map(|found| found.as_deref()),
                    expected.as_deref(),
                );
            }
        }
    }
}
