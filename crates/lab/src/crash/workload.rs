//! Workloads for crash runs. Most have few keys, so that operations meet; half of all runs delete and
//! reinsert. In one of eight every third value is large, so that zones go from values to segments and back.
//! In two others hardly anything is read, so that a deferred put is published by its own client's later
//! writes.
//!
//! A *wide* run has many keys, and fills the index before it changes, deletes and puts again whole ranges of
//! them. In a run that moves the clock some values expire a few steps after they were put.

use super::oracle::{Action, ChangeId, State, Time, ValueId, expiring, lasting};
use super::records::{EMPTY, KEYS, LARGE, Records};
use super::transfers::Transfer;
use quipu::designs::Capabilities;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Draws of a step that stand for a batch and for a put.
const BATCH: u32 = 93;
const PUT: u32 = 60;

/// The name of the first value of a run; one that goes on after a crash begins with another.
pub const FIRST_VALUE: ValueId = 1;

/// Keys of a run that hardly reads: more than a client has writes that may be parked.
const KEYS_HARDLY_READ: usize = 5;

/// One call of a client.
#[derive(Clone, Debug)]
pub enum Step {
    /// One action on one key.
    One(usize, Action),
    /// `put_many`.
    PutMany(Vec<(usize, ValueId)>),
    /// `write` of a batch of puts, deletions and expired puts; no key comes twice.
    Write(Vec<(usize, Action)>),
    /// `get_many`.
    GetMany(Vec<usize>),
    /// The client leaves its segment, and the store is compacted.
    Compact,
    /// `delete_range` from a key on and below another one of its table, which may be beyond the last; or
    /// `delete_prefix` of what its name begins with.
    DeleteRange(usize, Option<usize>),
    /// Time passes.
    Tick,
    /// Reads all keys of a table by iteration.
    Scan(usize),
    /// The task takes a snapshot, if it holds none.
    Hold,
    /// It reads all tables at its snapshot.
    Look,
    /// It gives its snapshot back.
    Leave,
    /// A table is created, if it is not there.
    Create(usize),
    /// A table is dropped.
    Drop(usize),
    /// Accounts get their first amounts, unless they have them.
    Deposit,
    /// A transaction moves an amount between accounts.
    Transfer(Transfer),
    /// A transaction sums up all accounts.
    SumUp,
}

/// The parameters of a generated run.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Threads.
    pub threads: usize,
    /// Steps of each, if not of a wide run, which has more.
    pub steps: usize,
    /// The name of the first value.
    pub first_value: ValueId,
    /// Keys and values.
    pub records: Records,
    /// The time of the clock, if it is to move.
    pub clock: Option<Time>,
}

impl Step {
    /// The step, or what comes closest to it in a design that lacks batches or expiry. Where records can be
    /// changed in place, some are.
    pub fn for_design(self, design: &Capabilities, records: Records) -> Step {
        let in_place = design.updates_in_place && records.are_of_one_size();
        let step = if design.large_values { self } else { self.without_large() };
        match step {
            Step::One(key, Action::Update(Some(value)) | Action::Put(value))
                if in_place && value % 4 == 1 =>
            {
                Step::One(key, Action::Change(value as ChangeId))
            }
            Step::One(key, Action::PutIfAbsent(value) | Action::Expire(value))
                if in_place && value % 4 != 0 =>
            {
                Step::One(key, Action::Change(value as ChangeId))
            }
            Step::One(key, Action::Expire(_)) if !design.expiry => Step::One(key, Action::Delete),
            Step::Write(batch) if !design.batches => {
                let put = |(key, action)| match action {
                    Action::Put(value) => Some((key, lasting(value))),
                    _ => None,
                };
                Step::PutMany(batch.into_iter().filter_map(put).collect())
            }
            step => step,
        }
    }

    /// The step with values of the usual length in place of large ones.
    fn without_large(mut self) -> Step {
        let usual = |value: &mut ValueId| *value &= !LARGE;
        let changed = |action: &mut Action| match action {
            Action::Put(value)
            | Action::Expire(value)
            | Action::Update(Some(value))
            | Action::PutIfAbsent(value) => {
                usual(value);
            }
            Action::Swap(expected, new) => expected.iter_mut().chain(new).for_each(usual),
            _ => {}
        };
        match &mut self {
            Step::One(_, action) => changed(action),
            Step::PutMany(pairs) => pairs.iter_mut().for_each(|(_, value)| usual(value)),
            Step::Write(batch) => batch.iter_mut().for_each(|(_, action)| changed(action)),
            _ => {}
        }
        self
    }
}

/// A generated run: the steps of each thread.
pub fn generate(seed: u64, work: &Work) -> Vec<Vec<Step>> {
    let plans = if work.records.keys > KEYS { wide(seed, work) } else { narrow(seed, work) };
    let mut random = SmallRng::seed_from_u64(!seed);
    match work.clock {
        Some(now) => plans.into_iter().map(|plan| timed(plan, &mut random, now)).collect(),
        None => plans,
    }
}

/// The steps of a thread with ticks of the clock between them, and with puts of values that expire.
fn timed(plan: Vec<Step>, random: &mut SmallRng, mut now: Time) -> Vec<Step> {
    let mut timed = Vec::with_capacity(plan.len() * 2);
    for mut step in plan {
        if random.random_ratio(1, 12) {
            now += 1;
            timed.push(Step::Tick);
        }
        let expire = |action: &mut Action, random: &mut SmallRng| {
            if let Action::Put(value) = action
                && *value != EMPTY
                && random.random_ratio(1, 2)
            {
                *value = expiring(*value, now + random.random_range(1..4));
            }
        };
        match &mut step {
            Step::One(_, action) => expire(action, random),
            Step::Write(batch) => batch.iter_mut().for_each(|(_, action)| expire(action, random)),
            _ => {}
        }
        timed.push(step);
    }
    timed
}

/// A run over many keys. At its start the threads put all of them, in no order. Then they put, delete and
/// read some here and there, and now and then delete a whole range, so that nodes of an ordered index become
/// empty.
fn wide(seed: u64, work: &Work) -> Vec<Vec<Step>> {
    let Work { threads, steps, first_value, records, .. } = *work;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut next = first_value;
    let mut value = || {
        next += 1;
        // Most values have the usual length; none is so long that the keys do not fit.
        while matches!(next % 16, 2 | 3) {
            next += 1;
        }
        next
    };
    let mut keys: Vec<usize> = (0..records.keys).collect();
    keys.shuffle(&mut random);
    let mut fill: Vec<_> = match first_value {
        FIRST_VALUE => keys.chunks(4).map(|keys| keys.iter().map(|key| (*key, value())).collect()).collect(),
        _ => Vec::new(),
    };
    let mut plan = |thread| {
        let first = fill.len().div_ceil(threads - thread);
        let mut plan: Vec<_> = fill.drain(..first).map(Step::PutMany).collect();
        for _ in 0..steps {
            let key = random.random_range(0..records.keys);
            match random.random_range(0..40) {
                0 | 1 => {
                    let range = key..(key + random.random_range(6..24)).min(records.keys);
                    plan.extend(range.map(|key| Step::One(key, Action::Delete)));
                }
                2 => plan.push(Step::Compact),
                3..8 => {
                    let range = key..(key + random.random_range(2..7)).min(records.keys);
                    plan.push(Step::PutMany(range.map(|key| (key, value())).collect()));
                }
                8 | 9 => {
                    let range = key..(key + 4).min(records.keys);
                    plan.push(Step::Write(range.map(|key| (key, Action::Put(value()))).collect()));
                }
                10 => plan.push(Step::One(key, Action::Remove)),
                11..15 => plan.push(Step::One(key, Action::Delete)),
                15 | 16 => plan.push(Step::One(key, Action::Update(Some(value())))),
                17..20 => plan.push(Step::One(key, Action::PutIfAbsent(value()))),
                20..23 => plan.push(Step::GetMany((key..(key + 4).min(records.keys)).collect())),
                23 => plan.push(Step::One(key, Action::Get)),
                // Two keys that all threads meet at.
                24..28 => plan.push(Step::One(key % 2, Action::Put(value()))),
                28 => plan.push(Step::One(key % 2, Action::Get)),
                _ => plan.push(Step::One(key, Action::Put(value()))),
            }
        }
        plan
    };
    (0..threads).map(&mut plan).collect()
}

/// A run over few keys.
fn narrow(seed: u64, work: &Work) -> Vec<Vec<Step>> {
    let Work { threads, steps, first_value, .. } = *work;
    let after_crash = first_value != FIRST_VALUE;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut next = first_value;
    // In most runs every value has the usual length; see `value_bytes`.
    let usual = random.random_ratio(3, 4);
    // Decided by the seed alone: runs without large values are what they were before there were any.
    let often_large = seed.is_multiple_of(8);
    let mut value = |random: &mut SmallRng| {
        if !usual && random.random_ratio(1, 16) {
            return EMPTY;
        }
        next += 1;
        while next % 16 < 6 && (usual || random.random_ratio(1, 2)) {
            next += 1;
        }
        if often_large && random.random_ratio(1, 3) { next | LARGE } else { next }
    };
    if seed % 4 == 3 {
        let hardly_read = |thread| (0..steps).map(|_| blind(&mut random, thread, &mut value)).collect();
        return (0..threads).map(hardly_read).collect();
    }
    let reinserting = random.random_ratio(1, 2);
    let keys = if reinserting { 20 } else { KEYS };
    let mut written: Vec<State> = vec![None];
    (0..threads)
        .map(|_| {
            (0..steps)
                .map(|step| {
                    let random = &mut random;
                    // Half of all operations meet at two keys: most faults need two operations on one.
                    let hot = step == 0 || random.random_ratio(1, 2);
                    let key = random.random_range(0..if hot { 2 } else { keys });
                    // A batch into a fresh segment is where records can survive that stand behind a torn one,
                    // and a put after recovery is what could fill the gap before them.
                    let first = step == 0 && random.random_ratio(3, 4);
                    let roll = match (first, after_crash) {
                        (true, false) => BATCH,
                        (true, true) => PUT,
                        (false, _) => random.random_range(0..100),
                    };
                    if matches!(roll, 2 | 22 | 46 | 86) {
                        return Step::Compact;
                    }
                    if hot && roll % 3 == 2 {
                        // A state that a reader saw must stay: faults that only a reader notices want one at
                        // the right moment.
                        return Step::GetMany(vec![0, 1]);
                    }
                    if reinserting && roll < 45 {
                        let action = match random.random_range(0..6) {
                            0 => Action::Delete,
                            1 => Action::Expire(value(random)),
                            2 => Action::Remove,
                            _ => Action::Put(value(random)),
                        };
                        return Step::One(key, action);
                    }
                    match roll % 20 {
                        0..6 => {
                            let value = value(random);
                            written.push(Some(value));
                            Step::One(key, Action::Put(value))
                        }
                        6 => Step::One(key, Action::Delete),
                        7 => Step::One(key, Action::Remove),
                        8 | 9 => Step::One(key, Action::Update(Some(value(random)))),
                        10 => Step::One(key, Action::PutIfAbsent(value(random))),
                        11 | 12 => {
                            let expected = written[random.random_range(0..written.len())];
                            let new = if random.random_ratio(1, 3) { None } else { Some(value(random)) };
                            Step::One(key, Action::Swap(expected, new))
                        }
                        13..16 => {
                            let count = random.random_range(2..7);
                            Step::PutMany(
                                (0..count).map(|_| (random.random_range(0..keys), value(random))).collect(),
                            )
                        }
                        16 => {
                            let count = random.random_range(2..9);
                            Step::GetMany((0..count).map(|_| random.random_range(0..keys)).collect())
                        }
                        17 => {
                            let count = random.random_range(2..7);
                            let mut batch: Vec<(usize, Action)> = Vec::new();
                            for _ in 0..count {
                                let key = random.random_range(0..if hot { 4 } else { keys });
                                // No batch takes a large value.
                                let action = match random.random_range(0..6) {
                                    0 => Action::Delete,
                                    1 => Action::Expire(value(random) & !LARGE),
                                    _ => Action::Put(value(random) & !LARGE),
                                };
                                if batch.iter().all(|(other, _)| *other != key) {
                                    batch.push((key, action));
                                }
                            }
                            Step::Write(batch)
                        }
                        _ => Step::One(key, Action::Get),
                    }
                })
                .collect()
        })
        .collect()
}

/// A step of a run that hardly reads: one thread puts, the others delete most of the time.
fn blind(random: &mut SmallRng, thread: usize, value: &mut impl FnMut(&mut SmallRng) -> ValueId) -> Step {
    let key = random.random_range(0..KEYS_HARDLY_READ);
    let deletions = if thread == 0 { 1 } else { 12 };
    match random.random_range(0..16) {
        roll if roll < deletions => Step::One(key, Action::Delete),
        15 => Step::One(key, Action::Get),
        roll if roll % 2 == 0 => Step::One(key, Action::Put(value(random))),
        _ => Step::PutMany((0..4).map(|next| ((key + next) % KEYS_HARDLY_READ, value(random))).collect()),
    }
}
