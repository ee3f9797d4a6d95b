//! The ring and its chain alone, without an index: the price and the gain of order and batching (figure
//! 16 of the paper on an LSM engine for transactions on persistent memory, VLDB'21).
//!
//! Every thread writes items of so many records to one memtable after another, and waits until each is
//! visible. The limit beside is that of items of the same bytes: each thread streams them to a place of its
//! own, with a fence each. It is taken before and after, and the mean counts.

use super::chain::{bytes_of_items, chain_log, is_too_long, item_len, zone_size};
use quipu_bench::config::{Config, refuse};
use quipu_bench::cost::Meter;
use quipu_bench::drive::{Outcome, Phase, drive};
use quipu_bench::error::BenchError;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::roofline::{Limits, Roof};
use quipu_bench::target::bare;
use quipu_medium::{LINE, Region};
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::chain::{ChainLog, Chunk, GroupSettings, Groups, Item, Supply, Written};
use quipu_parts::record::Content;
use std::error::Error;
use std::hint::black_box;

/// How items are formed and granted.
#[derive(Clone, Debug)]
pub struct Items {
    /// Records of an item; each makes a row.
    pub batches: Vec<u64>,
    /// How threads take turns at the grant; each makes a row.
    pub grants: Vec<Grants>,
    /// If given, threads write one record each, and meet in so many buckets: an item has up to the batch.
    pub buckets: Option<usize>,
}

const NAME: &str = "ring";
/// The ring as rows name it, by its way of granting.
pub(super) const LOCK: &str = "ring (lock)";
pub(super) const TICKET: &str = "ring (ticket)";
/// Records that a thread makes.
const MADE: u64 = 1000;

/// Writes the records of the settings, once for each batch and each way of granting.
pub fn ring(
    config: &Config,
    items: &Items,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    refuse([
        (items.batches.is_empty() || items.batches.contains(&0), "batch", "must be at least 1"),
        (items.grants.is_empty(), "grants", "must be lock, ticket or both"),
        (items.buckets == Some(0), "buckets", "must be at least 1"),
    ])?;
    refuse([(
        items.batches.iter().any(|batch| is_too_long(config, *batch)),
        "batch",
        "must be shorter: an item takes at most a quarter of a zone",
    )])?;
    for batch in &items.batches {
        for grants in &items.grants {
            sink(Run { config, items, batch: *batch, grants: *grants, progress }.measure()?);
        }
    }
    Ok(())
}

fn refused<E: Error + Send + Sync + 'static>(phase: &str) -> impl Fn(E) -> BenchError {
    BenchError::refused(NAME, phase)
}

struct Run<'a> {
    config: &'a Config,
    items: &'a Items,
    batch: u64,
    grants: Grants,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    /// Records of a call: those of an item, or those that a thread adds to one.
    fn each(&self) -> u64 {
        if self.items.buckets.is_some() { 1 } else { self.batch }
    }

    fn calls(&self) -> u64 {
        (self.config.records / self.each()).max(self.config.threads as u64)
    }

    fn phase<'p>(&'p self, stage: &'p str) -> Phase<'p> {
        let phase = Phase::new(stage, self.config.threads, self.calls(), self.progress);
        Phase { operations_per_call: self.each(), ..phase }
    }

    fn measure(&self) -> Result<Row, BenchError> {
        let config = self.config;
        // Clients that meet may also write alone, a line more each.
        let bytes = bytes_of_items(config, self.calls(), self.each());
        let region = bare(config, bytes + 2 * zone_size(config))?;
        let times = region.simulator().is_none();
        let before = if times { Some(self.limit(&region)?) } else { None };
        let log = chain_log(config, &region, bytes, self.grants, NAME)?;
        let phase = match self.items.buckets {
            Some(_) => format!("groups of up to {}", self.batch),
            None => format!("items of {}", self.batch),
        };
        let name = if self.grants == Grants::Lock { LOCK } else { TICKET };
        let meter = Meter::start(region.simulator());
        let outcome = match self.items.buckets {
            Some(buckets) => self.groups(&phase, &log, buckets)?,
            None => self.alone(&phase, &log)?,
        };
        let row = meter.stop(Row::of(name, &phase, config), &outcome);
        let Some(before) = before else { return Ok(row) };
        drop(log);
        let write_mops = (before + self.limit(&region)?) / 2.0;
        let ordinary = Limits { write_mops, read_mops: 0.0 };
        Ok(row.against(Some(Roof { ordinary, huge: None }), |limits| limits.write_mops))
    }

    /// Every thread writes items of its own.
    fn alone(&self, stage: &str, log: &ChainLog) -> Result<Outcome, BenchError> {
        drive(&self.phase(stage), |thread| {
            let (mut made, mut item) = (self.made(thread)?, Item::default());
            Ok(move |_| {
                made.add(self.batch, item.chunk(0));
                log.commit(&mut item, Supply::default(), |_| {}, look).map(drop).map_err(refused(stage))
            })
        })
    }

    /// Threads meet.
    fn groups(&self, stage: &str, log: &ChainLog, buckets: usize) -> Result<Outcome, BenchError> {
        let settings = GroupSettings { buckets, records: self.batch, bytes: 64 << 10, linger: 0 };
        let groups = Groups::new(settings);
        drive(&self.phase(stage), |thread| {
            let (mut made, mut client, groups) = (self.made(thread)?, groups.client(thread), &groups);
            Ok(move |_| {
                client.fill(|item| made.add(1, item.chunk(0)));
                groups
                    .commit(log, &mut client, Supply::default(), |_| {}, look)
                    .map(drop)
                    .map_err(refused(stage))
            })
        })
    }

    fn made(&self, thread: usize) -> Result<Made, BenchError> {
        let (keys, values) = (self.config.keys()?, self.config.values()?);
        let (mut bytes, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for number in (0..MADE).map(|number| thread as u64 * MADE + number) {
            keys.fill(number, &mut key);
            values.fill(number, 0, &mut value);
            bytes.extend(key.iter().chain(&value));
        }
        let Config { key_size, value_size, .. } = *self.config;
        Ok(Made { bytes, key_size, record: key_size + value_size, next: 0 })
    }

    /// The limit for items of these bytes, in million records a second.
    fn limit(&self, region: &Region) -> Result<f64, BenchError> {
        let len = item_len(self.config, self.each());
        let share = region.len() / self.config.threads as u64 / LINE * LINE;
        let outcome = drive(&self.phase("write limit"), |thread| {
            let (first, mut next, mut bytes) = (thread as u64 * share, 0, vec![0; len as usize]);
            Ok(move |call: u64| {
                bytes[0] = call as u8;
                region.write_lines_nt(first + next, &bytes, 0);
                region.fence();
                next += len;
                if next + len > share {
                    next = 0;
                }
                Ok(())
            })
        })?;
        Ok(outcome.mops())
    }
}

/// Records that were made beforehand, so that making them is not measured; a thread goes round them.
struct Made {
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
    key_size: usize,
    record: usize,
    next: usize,
}

impl Made {
    fn add(&mut self, count: u64, chunk: &mut Chunk) {
        for _ in 0..count {
            if self.next == self.bytes.len() {
                self.next = 0;
            }
            let (key, value) = self.bytes[self.next..][..self.record].split_at(self.key_size);
            chunk.push(&Content::value(key, value));
            self.next += self.record;
        }
    }
}

/// Stands for the index.
fn look(written: &Written<'_>) {
    written.references().for_each(|reference| {
        black_box(reference);
    });
}
