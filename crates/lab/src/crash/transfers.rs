//! The work of a run of transfers: transactions of every isolation level move amounts between the accounts of
//! several tables.

use super::bank::MOST;
use super::oracle::Action;
use super::workload::{Step, Work};
use quipu::Isolation;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Tables that have the accounts.
pub(super) const TABLES: usize = 3;

/// Accounts that half of all transfers meet at.
const HOT: usize = 5;

/// The way in which a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `transact` repeats it until it has committed.
    Transact,
    /// `commit`. One that met another is given up.
    Commit,
    /// It is rolled back.
    RollBack,
}

/// A transfer of an amount from one account to others.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Of its transaction.
    pub isolation: Isolation,
    /// Of its transaction.
    pub end: End,
    /// The account that gives; one that has more takes its place if accounts are looked through.
    pub from: usize,
    /// Those that get.
    pub to: Vec<usize>,
    /// The amount, if the first account has so much; otherwise all that it has.
    pub amount: u64,
    /// Accounts of a table that are looked through for the richest: the first, and how many.
    pub range: Option<(usize, usize)>,
    /// Accounts are read by `get_for_update`.
    pub for_update: bool,
    /// Other writes come before its own, and after them, and are rolled back to savepoints.
    pub has_savepoints: bool,
    /// The transaction sums up all accounts after its writes.
    pub sums_up: bool,
}

/// The steps of each task.
pub fn generate(seed: u64, work: &Work) -> Vec<Vec<Step>> {
    let mut random = SmallRng::seed_from_u64(seed);
    let accounts = work.records.keys;
    let mut step = |_| {
        let key = random.random_range(0..accounts);
        match random.random_range(0..40) {
            0 => Step::Compact,
            1 | 2 => Step::Hold,
            3 | 4 => Step::Look,
            5 => Step::Leave,
            6 => Step::Scan(key % TABLES),
            7 => Step::GetMany((key..accounts.min(key + 4)).collect()),
            8 => Step::One(key, Action::Get),
            9 | 10 => Step::SumUp,
            _ => Step::Transfer(transfer(&mut random, accounts)),
        }
    };
    (0..work.threads).map(|_| (0..work.steps).map(&mut step).collect()).collect()
}

fn transfer(random: &mut SmallRng, accounts: usize) -> Transfer {
    let isolation = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
    let isolation = *isolation.choose(random).expect("there are some");
    let end = match random.random_range(0..8) {
        0 => End::RollBack,
        1..4 => End::Commit,
        _ => End::Transact,
    };
    let accounts = if random.random_ratio(1, 2) { HOT } else { accounts };
    let mut chosen = Vec::new();
    let count = random.random_range(2..=3);
    while chosen.len() < count {
        let account = random.random_range(0..accounts);
        if !chosen.contains(&account) {
            chosen.push(account);
        }
    }
    // All of an account goes in one of three transfers, which deletes it.
    let amount = if random.random_ratio(1, 3) { MOST } else { random.random_range(1..16) };
    let ranges = random.random_ratio(1, 3);
    Transfer {
        isolation,
        end,
        from: chosen[0],
        to: chosen[1..].to_vec(),
        amount,
        range: ranges.then(|| (random.random_range(0..accounts), random.random_range(2..7))),
        for_update: random.random_ratio(1, 3),
        has_savepoints: random.random_ratio(1, 4),
        sums_up: isolation != Isolation::ReadCommitted && random.random_ratio(1, 12),
    }
}
