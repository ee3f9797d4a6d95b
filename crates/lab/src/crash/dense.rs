//! The plans of a history: short, on few keys, and each of another leaning. A mixture of everything would
//! seldom have much of the two or three kinds of calls that a fault needs.

use super::oracle::{Action, LAST_EXPIRY, State, Time, ValueId, expiring};
use super::records::{LARGE, Records};
use super::tables::{BRIEF, range};
use super::workload::Step;
use rand::RngExt;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// The weights that a kind of calls may have in a history.
const WEIGHTS: [u32; 6] = [0, 0, 1, 2, 4, 8];

/// Kinds of calls that all designs have, and of those with one order over all writes.
const KINDS: usize = 12;
const KINDS_ORDERED: usize = KINDS + 5;

/// Keys that calls meet at, of each table, at most.
const HOT: usize = 4;

/// The parameters of the plans of one life.
pub(super) struct Dense {
    /// Tasks that write and read, if not all are the same.
    pub(super) threads: usize,
    /// The name of the first value.
    pub(super) first_value: ValueId,
    pub(super) records: Records,
    /// There are tables, snapshots and range deletes.
    pub(super) is_ordered: bool,
    /// The time of the clock, if it is to move.
    pub(super) clock: Option<Time>,
}

/// The plans of all tasks.
pub(super) fn plans(random: &mut SmallRng, dense: &Dense) -> Vec<Vec<Step>> {
    let kinds = if dense.is_ordered { KINDS_ORDERED } else { KINDS };
    let mut weights: Vec<u32> =
        (0..kinds).map(|_| *WEIGHTS.choose(random).expect("there are some")).collect();
    // Without puts and reads there is nothing to see.
    weights[0] += 2;
    weights[1] += 2;
    let tables = random.random_range(1..=dense.records.tables.min(BRIEF));
    let mut draw = Draw {
        dense,
        next: dense.first_value,
        weights,
        hot: random.random_range(1..=HOT),
        tables,
        filling: random.random_range(0..3),
        expiring: random.random_range(0..3),
        written: vec![None],
    };
    let steps = random.random_range(6..=28);
    let mut plans: Vec<Vec<Step>> =
        (0..dense.threads).map(|_| (0..steps).map(|_| draw.step(random)).collect()).collect();
    if dense.is_ordered {
        plans[0].splice(0..0, (1..tables).map(Step::Create));
    }
    // Such a step again and again, behind some reads.
    let beside = |draw: &Draw<'_>, random: &mut SmallRng, count: usize, work: &[Step]| {
        let mut plan = Vec::new();
        for _ in 0..count {
            let reads = random.random_range(1..6);
            plan.extend((0..reads).map(|_| Step::One(draw.key(random), Action::Get)));
            plan.extend_from_slice(work);
        }
        plan
    };
    if let Some(now) = dense.clock {
        let left = LAST_EXPIRY.saturating_sub(now) as usize;
        let ticks = random.random_range(0..=left.min(6));
        let mut plan = beside(&draw, random, ticks, &[Step::Tick]);
        if random.random_ratio(1, 2) {
            plan = (1..=ticks as Time).flat_map(|tick| draw.renewal(random, now + tick)).collect();
        }
        plans.push(plan);
    }
    if random.random_ratio(1, 2) {
        let compactions = random.random_range(1..5);
        plans.push(beside(&draw, random, compactions, &[Step::Compact]));
    }
    if dense.records.tables > BRIEF && random.random_ratio(1, 3) {
        let drops = random.random_range(1..4);
        plans.push(beside(&draw, random, drops, &[Step::Create(BRIEF), Step::Drop(BRIEF)]));
    }
    plans
}

/// The source of the steps of a life.
struct Draw<'d> {
    dense: &'d Dense,
    next: ValueId,
    weights: Vec<u32>,
    hot: usize,
    tables: usize,
    /// How many steps, of four, fill memtables and files.
    filling: u32,
    /// How many puts, of three, expire.
    expiring: u32,
    written: Vec<State>,
}

impl Draw<'_> {
    /// A key that calls meet at.
    fn key(&self, random: &mut SmallRng) -> usize {
        let table = random.random_range(0..self.tables);
        random.random_range(0..self.hot) * self.dense.records.tables + table
    }

    /// A value of one length.
    fn short(&mut self) -> ValueId {
        self.next += 1;
        while self.next % 16 < 6 {
            self.next += 1;
        }
        self.next
    }

    /// A value for a hot key, seldom a large one.
    fn value(&mut self, random: &mut SmallRng) -> ValueId {
        let value = self.short() | if random.random_ratio(1, 24) { LARGE } else { 0 };
        self.written.push(Some(value));
        value
    }

    /// A value for a put, the one call that lets it expire.
    fn put(&mut self, random: &mut SmallRng) -> ValueId {
        match self.dense.clock {
            Some(now) if random.random_ratio(self.expiring, 3) => {
                let value = expiring(self.short(), now + random.random_range(1..6));
                self.written.push(Some(value));
                value
            }
            _ => self.value(random),
        }
    }

    /// A value that is renewed just before it expires at this time, which then comes.
    fn renewal(&mut self, random: &mut SmallRng, end: Time) -> Vec<Step> {
        let (key, brief) = (self.key(random), expiring(self.short(), end));
        let reads = (0..random.random_range(0..4)).map(|_| Step::One(key, Action::Get));
        let first = std::iter::once(Step::One(key, Action::Put(brief)));
        let renewed = [Step::One(key, Action::Put(self.short())), Step::Tick];
        first.chain(reads).chain(renewed).collect()
    }

    /// A value that fills a good part of a zone.
    fn filler(&mut self) -> ValueId {
        self.next = (self.next / 16 + 1) * 16 + 3;
        self.next
    }

    fn step(&mut self, random: &mut SmallRng) -> Step {
        let records = self.dense.records;
        if random.random_ratio(self.filling, 6) {
            let hot = self.hot * records.tables;
            let key = random.random_range(hot..records.keys.max(hot + 1)).min(records.keys - 1);
            return Step::One(key - key % records.tables, Action::Put(self.filler()));
        }
        let key = self.key(random);
        let of_table = |other: usize| other * records.tables + key % records.tables;
        let mut kind = random.random_range(0..self.weights.iter().sum());
        let chosen = self.weights.iter().position(|weight| {
            let is_it = kind < *weight;
            kind = kind.saturating_sub(*weight);
            is_it
        });
        match chosen.expect("weights have a sum") {
            0 => Step::One(key, Action::Get),
            1 => Step::One(key, Action::Put(self.put(random))),
            2 => Step::One(key, Action::Delete),
            3 => Step::One(key, Action::Remove),
            4 => Step::One(key, Action::Update(Some(self.value(random)))),
            5 => Step::One(key, Action::PutIfAbsent(self.value(random))),
            6 => {
                let expected = *self.written.choose(random).expect("nothing is a state");
                let new = if random.random_ratio(1, 3) { None } else { Some(self.value(random)) };
                Step::One(key, Action::Swap(expected, new))
            }
            7 => Step::GetMany((0..self.hot).map(of_table).collect()),
            8 => Step::PutMany((0..self.hot).map(|other| (of_table(other), self.short())).collect()),
            9 => {
                let (tables, hot) = (self.tables, self.hot);
                let mut write = |at: usize| {
                    let is_put = random.random_ratio(3, 4);
                    let action = if is_put { Action::Put(self.short()) } else { Action::Delete };
                    (at / tables * records.tables + at % tables, action)
                };
                Step::Write((0..hot * tables).map(&mut write).collect())
            }
            10 => Step::Scan(key % records.tables),
            11 => Step::Compact,
            12 => Step::Hold,
            13 => Step::Look,
            14 => Step::Leave,
            15 => range(random, records),
            _ => Step::DeleteRange(key, Some(key + records.tables)),
        }
    }
}
