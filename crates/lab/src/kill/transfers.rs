//! Transfers: the calls of writers that move amounts between accounts, and the sum that must be right.
//!
//! An account is a key, and its value the amount; an empty one is absent. With the accounts, each transfer
//! writes into the journal of its thread, in the same transaction: its number, and what each account got. So
//! the judge knows from the pool whether a transfer in flight has taken effect, and by how much. It adds up
//! all transfers that count, and then each account must have exactly this amount.

use super::config::WriterConfig;
use super::frame::Acknowledgement;
use super::plan::{Extent, MOST_THREADS};
use crate::action::{Outcome, Value};
use crate::linear::{Broken, Contents, Lie, decode, key_number};
use quipu::{Design, Error, Isolation, Store};
use quipu_bench::workload::mix;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;

/// Accounts of a pool, and those among which one of three is chosen.
pub(super) const ACCOUNTS: u64 = 240;
const HOT: u64 = 5;

/// The first amount of each account. Its bytes are few, so that one batch has room for all.
pub(super) const FIRST: Value = 1000;

/// The sum of all accounts.
const TOTAL: Value = ACCOUNTS * FIRST;

/// Most of a usual transfer.
const USUAL: Value = 300;

/// Bits of an amount that goes to one account; no sum has more.
const BITS: u32 = 24;

/// Keys of all accounts and journals.
pub(super) const KEYS: u64 = ACCOUNTS + 2 * MOST_THREADS as u64;

/// Holds transfers against a design, which needs transactions, or batches with conditions, and against the
/// way in which it is broken.
pub(super) fn check(design: Design, twin: Option<Broken>) -> Result<(), Error> {
    let can = design.can();
    if !(can.transactions || can.batches && can.versions) {
        return Err(Error::Option(format!(
            "{design} has neither transactions nor batches, which transfers need"
        )));
    }
    match twin.and_then(Broken::lie) {
        None | Some(Lie::LatePut | Lie::SplitUpdate) => Ok(()),
        Some(_) => Err(Error::Option("transfers are broken by late-put, split-update, or a rule".into())),
    }
}

/// Sums up all accounts by one transaction, in a design that has them.
pub(super) fn sum_up(store: &Store) -> Result<(), String> {
    if !store.design().can().transactions {
        return Ok(());
    }
    let extent = Extent::of_transfers(store.design());
    let sum = store.transact(Isolation::Serializable, |transaction| {
        let mut sum = 0;
        for name in extent.tables {
            let on = transaction.on(&store.table(name)?)?;
            for pair in on.range(Bound::Unbounded, Bound::Unbounded) {
                let (key, value) = pair?;
                let account = key_number(&key).filter(|key| *key < ACCOUNTS);
                sum += account.map_or(0, |account| decode(account, &value));
            }
        }
        Ok(sum)
    });
    let sum = sum.map_err(|error| format!("the accounts cannot be summed up: {error}"))?;
    if matches!(sum, 0 | TOTAL) { Ok(()) } else { Err(format!("a transaction finds the sum {sum}")) }
}

/// The keys of a thread's journal: the name of its last transfer, and its parts.
pub(super) fn journal(thread: u64) -> [u64; 2] {
    [ACCOUNTS + 2 * thread, ACCOUNTS + 2 * thread + 1]
}

/// The name of a transfer.
pub(super) fn name(round: u64, number: u64) -> Value {
    (round + 1) << 32 | number
}

/// A transfer as it was drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// The account that gives.
    pub from: u64,
    /// The accounts that get.
    pub to: [u64; 2],
    /// The amount, if there is as much.
    wanted: Value,
}

/// The amounts that accounts get by a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts(pub [Value; 2]);

impl Parts {
    /// In one number.
    pub fn packed(self) -> Value {
        self.0[0] | self.0[1] << BITS
    }

    /// Read back.
    pub fn of(packed: Value) -> Parts {
        Parts([packed & ((1 << BITS) - 1), packed >> BITS])
    }
}

impl Transfer {
    /// The parts that the account can give which has so much.
    pub fn parts(&self, has: Value) -> Parts {
        let all = self.wanted.min(has);
        Parts([all.div_ceil(3), all - all.div_ceil(3)])
    }

    /// The amounts that all accounts have afterwards, which had these before.
    pub fn after(&self, has: Value, to: [Value; 2], Parts(parts): Parts) -> [(u64, Value); 3] {
        let [first, second] = self.to;
        [(self.from, has - parts[0] - parts[1]), (first, to[0] + parts[0]), (second, to[1] + parts[1])]
    }
}

/// The transfers of one thread of one round, without end.
pub(super) struct Plan(SmallRng);

impl Plan {
    pub fn new(seed: u64, round: u64, thread: u64) -> Plan {
        Plan(SmallRng::seed_from_u64(mix(mix(!seed) ^ mix(round << 8 | thread))))
    }
}

impl Iterator for Plan {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        let random = &mut self.0;
        let mut chosen = Vec::with_capacity(3);
        while chosen.len() < 3 {
            let accounts = if random.random_ratio(1, 3) { HOT } else { ACCOUNTS };
            let account = random.random_range(0..accounts);
            if !chosen.contains(&account) {
                chosen.push(account);
            }
        }
        let (from, to) = (chosen[0], [chosen[1], chosen[2]]);
        // All that there is in one of six: the account is deleted.
        let wanted = if random.random_ratio(1, 6) { Value::MAX } else { random.random_range(1..USUAL) };
        Some(Transfer { from, to, wanted })
    }
}

/// Judges the contents of the pool of a dead writer: the transfers in flight that show, if nothing is wrong.
pub(super) fn judge(
    told: &WriterConfig,
    before: &Contents,
    acknowledged: &[Acknowledgement],
    found: &Contents,
) -> Result<u64, String> {
    let mut wanted = before.clone();
    if before.is_empty() {
        if found.is_empty() && acknowledged.is_empty() {
            return Ok(0);
        }
        wanted.extend((0..ACCOUNTS).map(|account| (account, FIRST)));
    }
    let mut in_flight = 0;
    for thread in 0..told.threads as u64 {
        let [last, parts] = journal(thread);
        let mut counts = |transfer: &Transfer, number, moved: Parts| {
            let mut add = |account, amount: Value| {
                let amount = wanted.get(&account).copied().unwrap_or_default().wrapping_add(amount);
                if amount == 0 {
                    wanted.remove(&account)
                } else {
                    wanted.insert(account, amount)
                };
            };
            add(transfer.from, moved.0.iter().sum::<Value>().wrapping_neg());
            transfer.to.iter().zip(moved.0).for_each(|(account, part)| add(*account, part));
            wanted.extend([(last, name(told.round, number)), (parts, moved.packed())]);
        };
        let own = acknowledged.iter().filter(|acknowledgement| acknowledgement.thread == thread);
        let (mut plan, mut number) = (Plan::new(told.seed, told.round, thread), 0);
        for (acknowledgement, transfer) in own.zip(&mut plan) {
            if acknowledgement.number != number {
                return Err(format!(
                    "thread {thread} acknowledged transfer {} early",
                    acknowledgement.number
                ));
            }
            if let Some(Outcome::Saw(Some(moved))) = acknowledgement.outcome {
                counts(&transfer, number, Parts::of(moved));
            }
            number += 1;
        }
        // Behind the last acknowledgement one more may have taken effect.
        if found.get(&last) == Some(&name(told.round, number))
            && let (Some(transfer), Some(moved)) =
                (Plan::new(told.seed, told.round, thread).nth(number as usize), found.get(&parts))
        {
            counts(&transfer, number, Parts::of(*moved));
            in_flight += 1;
        }
    }
    let sum = found.range(..ACCOUNTS).map(|(_, amount)| *amount).sum::<Value>();
    let summed = (sum != TOTAL).then(|| format!("the sum of all accounts is {sum}, and was {TOTAL}; "));
    let differs = |key: &u64| found.get(key) != wanted.get(key);
    let fault = |key: u64| {
        let [found, wanted] =
            [found, &wanted].map(|contents| contents.get(&key).copied().unwrap_or_default());
        let what = match key.checked_sub(ACCOUNTS) {
            None => format!("account {key}"),
            Some(at) => format!("the journal of thread {}", at / 2),
        };
        format!("{what} has {found} in place of {wanted}")
    };
    let faults: Vec<_> = (0..KEYS).filter(differs).map(fault).collect();
    if faults.is_empty() && summed.is_none() {
        return Ok(in_flight);
    }
    Err(format!(
        "{}by all transfers that were acknowledged, and those in flight that show: {}",
        summed.unwrap_or_default(),
        faults.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::encode;
    use std::path::PathBuf;

    fn told() -> WriterConfig {
        WriterConfig { pool: PathBuf::new(), seed: 1, round: 0, threads: 1, transfers: true, twin: None }
    }

    /// The contents after so many transfers of one thread, and their acknowledgements.
    fn after(count: u64) -> (Contents, Vec<Acknowledgement>) {
        let mut contents: Contents = (0..ACCOUNTS).map(|account| (account, FIRST)).collect();
        let mut acknowledged = Vec::new();
        for (number, transfer) in (0..count).zip(Plan::new(1, 0, 0)) {
            let amount = |account| contents.get(&account).copied().unwrap_or_default();
            let (has, to) = (amount(transfer.from), transfer.to.map(amount));
            let parts = transfer.parts(has);
            contents.extend(transfer.after(has, to, parts));
            contents.extend(journal(0).into_iter().zip([name(0, number), parts.packed()]));
            contents.retain(|key, amount| *key >= ACCOUNTS || *amount > 0);
            let outcome = Some(Outcome::Saw(Some(parts.packed())));
            acknowledged.push(Acknowledgement { thread: 0, number, invoked: 0, returned: 0, outcome });
        }
        (contents, acknowledged)
    }

    #[test]
    fn one_in_flight_may_be_there_and_nothing_may_be_missing_or_be_there_in_part() {
        let none = Contents::new();
        let judge =
            |acknowledged: &[Acknowledgement], found: &Contents| judge(&told(), &none, acknowledged, found);
        for count in 1..200 {
            let ((found, acknowledged), (less, _)) = (after(count), after(count - 1));
            assert_eq!(judge(&acknowledged, &found), Ok(0));
            assert_eq!(judge(&acknowledged[..count as usize - 1], &found), Ok(1));
            assert!(judge(&acknowledged, &less).unwrap_err().contains("the journal of thread 0"));
            if count > 1 {
                assert!(judge(&acknowledged[..count as usize - 2], &found).is_err(), "two in flight");
            }
            let change = found.iter().find(|(key, amount)| **key < ACCOUNTS && less.get(key) != Some(amount));
            if let Some((account, _)) = change {
                let mut in_part = found.clone();
                in_part.remove(account);
                in_part.extend(less.get_key_value(account));
                assert!(judge(&acknowledged, &in_part).unwrap_err().contains("the sum of all accounts"));
            }
        }
    }

    #[test]
    fn the_first_amounts_have_few_bytes_and_parts_are_read_back() {
        assert!((0..ACCOUNTS).all(|account| encode(account, FIRST).len() < 100));
        let most = Parts([0, ACCOUNTS * FIRST]);
        assert_eq!(Parts::of(most.packed()), most);
    }
}
