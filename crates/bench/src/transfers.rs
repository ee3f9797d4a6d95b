//! Amounts that move between accounts: two reads and two writes in one transaction.
//!
//! The same four calls without a transaction come first, to tell what that costs. Each thread has accounts of
//! its own there. Then all threads move amounts between the same few accounts, for some seconds. One that
//! meets another begins again, and the thread that gets on least is told. At the end the sum must be as it
//! was.

use super::config::{Config, setting};
use super::drive::Phase;
use super::engine::{Engine, EngineClient, OpenEngine};
use super::error::{BenchError, Fault};
use super::memory::Memory;
use super::progress::Progress;
use super::report::{Row, Sink};
use super::session::{Session, in_new_place};
use super::target::{Target, room};
use crate::workload::SHORTEST_KEY;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicU64, Ordering};

/// The amount of each account at the beginning.
const AMOUNT: u64 = 1000;

/// Versions of a record that the pool has room for, before anything is cleaned.
const TIMES: u64 = 4;

/// Seconds that few accounts are fought for, if no number is given.
const SECONDS: u64 = 2;

/// Puts the settings' records, and moves amounts between them: by four calls, by transactions, and between
/// so many accounts by all threads. Hands over a row for each, and for each design.
///
/// # Errors
/// [`BenchError`] as of other benchmarks, and if a design has no transactions, or a sum is wrong.
pub fn transfers(
    config: &Config,
    few: u64,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check()?;
    for &design in &config.designs {
        if !design.can().transactions {
            return Err(setting("design", format!("{} has no transactions; use xp", design.name())));
        }
        let target = Target::new(config, design, room(config, TIMES * config.records, 0))?;
        transfers_of(config, few, &target, progress, sink)?;
    }
    Ok(())
}

/// The same on any engine, whatever designs the settings name.
///
/// # Errors
/// As for [`transfers`].
pub fn transfers_of<E: Engine>(
    config: &Config,
    few: u64,
    engine: &E,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    if config.key_size < SHORTEST_KEY || config.value_size < size_of::<u64>() {
        return Err(setting("key size", format!("must be at least {SHORTEST_KEY}, and values hold 8 bytes")));
    }
    let least = 2 * config.threads as u64;
    if config.records < least || few < 2 || few > config.records {
        return Err(setting("records", format!("must be at least {least}, and the few from 2 up to these")));
    }
    let before = Memory::baseline(config.medium);
    let session = Session { config, progress, target: engine, values: config.values()?, newest: 0, before };
    let all = |opened: E::Opened| {
        if !opened.has_transactions() {
            return Err(setting("engine", format!("{} has no transactions", session.design())));
        }
        let bank = Bank { session: &session, opened: &opened };
        bank.open_accounts()?;
        let rows = vec![bank.four_calls()?, bank.transactions()?, bank.fight(few)?];
        bank.check_sum()?;
        Ok(rows)
    };
    in_new_place(engine, config.records, all)?.into_iter().for_each(sink);
    Ok(())
}

struct Bank<'a, E: Engine> {
    session: &'a Session<'a, E>,
    opened: &'a E::Opened,
}

/// The accounts that a thread chooses from.
struct Choice {
    random: SmallRng,
    first: u64,
    count: u64,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Choice {
    /// Two different ones.
    fn draw(&mut self, key_size: usize) {
        let Choice { random, first, count, from, to } = self;
        let one = random.random_range(0..*count);
        let other = (one + random.random_range(1..*count)) % *count;
        fill(*first + one, key_size, from);
        fill(*first + other, key_size, to);
    }
}

impl<E: Engine> Bank<'_, E> {
    fn open_accounts(&self) -> Result<(), BenchError> {
        const PHASE: &str = "fill";
        let Config { records, key_size, value_size, .. } = *self.session.config;
        let (mut client, mut key, mut value) = (self.opened.client(), Vec::new(), vec![0; value_size]);
        set(&mut value, AMOUNT);
        for number in 0..records {
            fill(number, key_size, &mut key);
            client.put(&key, &value).map_err(self.session.refused(PHASE))?;
        }
        Ok(())
    }

    /// A thread's accounts, which no other has.
    fn own(&self, thread: usize) -> Choice {
        let Config { records, threads, seed, .. } = *self.session.config;
        let count = records / threads as u64;
        let (first, random) = (thread as u64 * count, SmallRng::seed_from_u64(seed + thread as u64));
        Choice { random, first, count, from: Vec::new(), to: Vec::new() }
    }

    fn four_calls(&self) -> Result<Row, BenchError> {
        const PHASE: &str = "four_calls";
        let (session, key_size) = (self.session, self.session.config.key_size);
        let phase = session.warmed(session.phase(PHASE, session.config.operations));
        session.measure(
            self.opened,
            &phase,
            || session.config.records,
            |thread| {
                let (mut client, mut choice) = (self.opened.client(), self.own(thread));
                let (mut left, mut right) = (Vec::new(), Vec::new());
                Ok(move |_| {
                    choice.draw(key_size);
                    let refused = session.refused(PHASE);
                    let there = client.get_into(&choice.from, &mut left).map_err(&refused)?
                        && client.get_into(&choice.to, &mut right).map_err(&refused)?;
                    if !there {
                        return Err(session.fault(PHASE, Fault::Missing(0)));
                    }
                    shift(&mut left, &mut right);
                    client.put(&choice.from, &left).map_err(&refused)?;
                    client.put(&choice.to, &right).map_err(&refused)
                })
            },
        )
    }

    fn transactions(&self) -> Result<Row, BenchError> {
        const PHASE: &str = "transaction";
        let (session, key_size, tries) = (self.session, self.session.config.key_size, AtomicU64::new(0));
        let phase = session.warmed(session.phase(PHASE, session.config.operations));
        let row = session.measure(
            self.opened,
            &phase,
            || session.config.records,
            |thread| {
                let (mut client, mut choice, tries) = (self.opened.client(), self.own(thread), &tries);
                Ok(move |_| {
                    choice.draw(key_size);
                    let tried = client.transfer(&choice.from, &choice.to, &mut shift);
                    tries.fetch_add(tried.map_err(session.refused(PHASE))?, Ordering::Relaxed);
                    Ok::<_, BenchError>(())
                })
            },
        )?;
        let made = row.ops + phase.warm_up * phase.threads as u64;
        Ok(Row { tries_per_op: Some(tries.into_inner() as f64 / made as f64), ..row })
    }

    /// All threads between a few accounts, until the clock ends it.
    fn fight(&self, few: u64) -> Result<Row, BenchError> {
        const PHASE: &str = "few_accounts";
        let Config { threads, key_size, seed, seconds, .. } = *self.session.config;
        let (session, tries) = (self.session, AtomicU64::new(0));
        let made: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
        let phase: Phase<'_> = session.phase(PHASE, 0).lasting(Some(seconds.unwrap_or(SECONDS)));
        let row = session.measure(
            self.opened,
            &phase,
            || session.config.records,
            |thread| {
                let random = SmallRng::seed_from_u64(!seed - thread as u64);
                let mut choice = Choice { random, first: 0, count: few, from: Vec::new(), to: Vec::new() };
                let (mut client, tries, made) = (self.opened.client(), &tries, &made[thread]);
                Ok(move |_| {
                    choice.draw(key_size);
                    let tried = client.transfer(&choice.from, &choice.to, &mut shift);
                    tries.fetch_add(tried.map_err(session.refused(PHASE))?, Ordering::Relaxed);
                    made.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, BenchError>(())
                })
            },
        )?;
        let least = made.iter().map(|made| made.load(Ordering::Relaxed)).min().unwrap_or_default();
        Ok(Row {
            tries_per_op: Some(tries.into_inner() as f64 / row.ops as f64),
            least_share: Some(least as f64 * threads as f64 / row.ops as f64),
            ..row
        })
    }

    /// Checks that nothing was lost and nothing made.
    fn check_sum(&self) -> Result<(), BenchError> {
        const PHASE: &str = "sum";
        let Config { records, key_size, .. } = *self.session.config;
        let (mut client, mut key, mut value) = (self.opened.client(), Vec::new(), Vec::new());
        let mut sum = 0u64;
        for number in 0..records {
            fill(number, key_size, &mut key);
            if !client.get_into(&key, &mut value).map_err(self.session.refused(PHASE))? {
                return Err(self.session.fault(PHASE, Fault::Missing(number)));
            }
            sum = sum.wrapping_add(amount(&value));
        }
        let expected = records.wrapping_mul(AMOUNT);
        if sum == expected {
            Ok(())
        } else {
            Err(self.session.fault(PHASE, Fault::Count { found: sum, expected }))
        }
    }
}

/// The key of an account.
fn fill(number: u64, key_size: usize, key: &mut Vec<u8>) {
    key.clear();
    key.resize(key_size - size_of::<u64>(), 0);
    key.extend_from_slice(&number.to_be_bytes());
}

fn amount(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn set(value: &mut [u8], amount: u64) {
    value[..size_of::<u64>()].copy_from_slice(&amount.to_le_bytes());
}

/// Moves one unit; an account may be overdrawn.
fn shift(left: &mut [u8], right: &mut [u8]) {
    let (from, to) = (amount(left), amount(right));
    set(left, from.wrapping_sub(1));
    set(right, to.wrapping_add(1));
}
