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

/// The fault of an error that is about something else.
const UNSAID: &str = "an error that says nothing of damage";

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
    /// Numbers of the keys that were answered silently and wrongly.
    wrong: BTreeSet<usize>,
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
    let mut judge = Judge { ground, own, silent: Vec::new(), wrong: BTreeSet::new(), told: false };
    let judged = catch_unwind(AssertUnwindSafe(|| judge.all(&region, strike)));
    if judged.is_err() {
        judge.silent.clear();
        judge.blame(Tool::Open, "a panic", false);
    }
    match judged {
        _ if !judge.silent.is_empty() => Verdict::Silent(judge.silent),
        Ok(Some(verdict)) => verdict,
        _ if judge.told => Verdict::Told,
        _ => Verdict::Harmless,
    }
}

impl Judge<'_> {
    /// The verdict, if the pool is refused.
    fn all(&mut self, region: &Region, strike: &Strike) -> Option<Verdict> {
        let mut store = match Store::open_on(region.clone(), &self.ground.options) {
            Ok(store) => store,
            Err(error) => {
                self.hear_error(Tool::Open, &error);
                if bytes_of(region) != strike.image {
                    self.blame(Tool::Open, format!("a pool changed and yet refused: {error}"), false);
                }
                return Some(Verdict::Refused);
            }
        };
        let recovery = store.recovery();
        self.told |= !recovery.lost.is_empty() || !recovery.torn.is_empty();
        self.ask(&store.client());
        let wrong = self.wrong.len();
        match store.check(&|_, _| {}) {
            Ok(report) if report.is_sound() => {
                if wrong > 0 && !self.told {
                    let is_own = self.wrong.is_subset(&self.own);
                    self.blame(Tool::Check, format!("sound, but {wrong} keys are wrong"), is_own);
                }
            }
            Ok(_) => self.told = true,
            Err(error) => self.hear_error(Tool::Check, &error),
        }
        if strike.place == Place::SlotBits && strike.blow == Blow::Bit && wrong > 1 {
            self.blame(Tool::Get, format!("one bit, but {wrong} keys are wrong"), false);
        }
        let later = self.live_on(&store);
        drop(store);
        if let Ok(store) = Store::open_on(region.clone(), &self.ground.options) {
            self.ask_later(&store.client(), &later);
        }
        None
    }

    /// Notes a silent wrong answer that is about no single key.
    fn blame(&mut self, tool: Tool, what: impl Into<String>, is_own: bool) {
        self.silent.push(Silent { tool, key: None, what: what.into(), is_own });
    }

    /// Hears an error that is about no single key.
    fn hear_error(&mut self, tool: Tool, error: &Error) {
        if tells(error) {
            self.told = true;
        } else {
            self.blame(tool, format!("{UNSAID}: {error}"), false);
        }
    }

    /// Compares an answer about a key.
    fn hear(
        &mut self,
        tool: Tool,
        key: usize,
        answer: Result<Option<&[u8]>, &Error>,
        expected: Option<&[u8]>,
    ) {
        let what = match answer {
            Ok(found) if found == expected => return,
            Err(error) if tells(error) => return self.told = true,
            Err(error) => format!("{UNSAID}: {error}"),
            Ok(None) => "absent".into(),
            Ok(Some(_)) if expected.is_none() => "back".into(),
            Ok(Some(_)) => "another value".into(),
        };
        let is_own = self.own.contains(&key);
        self.silent.push(Silent { tool, key: Some(self.ground.keys[key].clone()), what, is_own });
        self.wrong.insert(key);
    }

    /// Asks for all keys in all ways.
    fn ask(&mut self, client: &Client) {
        let ground = self.ground;
        let truth = |key: usize| ground.truth.get(&ground.keys[key]).map(Vec::as_slice);
        for (number, key) in ground.keys.iter().enumerate() {
            let found = client.get(key);
            self.hear(Tool::Get, number, found.as_ref().map(|found| found.as_deref()), truth(number));
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
        self.hear_all(Tool::Iterate, &found, ended.err().as_ref());
        if let Ok(range) = guard.range(Bound::Unbounded, Bound::Unbounded) {
            let (mut found, mut damage) = (BTreeMap::new(), None);
            for pair in range {
                match pair {
                    Ok((key, value)) => drop(found.insert(key.to_vec(), value.to_vec())),
                    Err(error) => damage = Some(error),
                }
            }
            self.hear_all(Tool::Scan, &found, damage.as_ref());
        }
    }

    /// Compares what a walk over all keys has shown, and whether it said that something was left out.
    fn hear_all(&mut self, tool: Tool, found: &BTreeMap<Vec<u8>, Vec<u8>>, damage: Option<&Error>) {
        let ground = self.ground;
        for (number, key) in ground.keys.iter().enumerate() {
            let answer = match (found.get(key), damage) {
                (None, Some(error)) => Err(error),
                (found, _) => Ok(found.map(Vec::as_slice)),
            };
            self.hear(tool, number, answer, ground.truth.get(key).map(Vec::as_slice));
        }
        let strange = found.keys().filter(|key| !ground.keys.contains(key)).count();
        if strange > 0 {
            let is_own = strange == 1 && !self.own.is_empty();
            self.blame(tool, format!("{strange} keys that never were"), is_own);
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

    fn ask_later(&mut self, client: &Client, later: &BTreeMap<usize, Option<Vec<u8>>>) {
        for (number, expected) in later {
            // Keys that were wrong before, and were not written since, are known.
            let is_fresh = number % 4 < 2;
            if is_fresh || !self.wrong.contains(number) {
                let found = client.get(&self.ground.keys[*number]);
                let answer = found.as_ref().map(|found| found.as_deref());
                self.hear(Tool::Later, *number, answer, expected.as_deref());
            }
        }
    }
}
