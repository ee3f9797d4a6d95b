//! The settings of overwriting.

use quipu_bench::config::{Config, refuse, setting};
use quipu_bench::error::BenchError;
use quipu_bench::workload::{EtcChoice, ScrambledZipfian, Values};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::fmt;
use std::ops::RangeInclusive;

/// Shares of the segments, in per cent, that can be filled with live records: some of each is lost to its
/// end.
const UTILIZATIONS: RangeInclusive<u64> = 1..=95;

/// Segments that a pool has at least: with fewer, the choice of what to clean is a matter of luck.
const SEGMENTS: u64 = 1000;

/// How skewed requests for small and medium objects of the ETC pool are.
const ETC_THETA: f64 = 0.99;

/// How records are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keys {
    /// Each as likely as any other.
    Uniform,
    /// By YCSB's scrambled zipfian distribution with this theta.
    Zipf(f64),
    /// As in Facebook's ETC pool, with its sizes in place of the one that is asked for; see [`EtcChoice`].
    Etc,
}

impl Keys {
    /// The values that go with it.
    pub(in crate::bench) fn values(self, config: &Config) -> Result<Values, BenchError> {
        if self == Keys::Etc { Ok(Values::etc()) } else { config.values() }
    }

    /// A choice among so many records.
    pub(in crate::bench) fn choice(self, records: u64) -> Choice {
        let choice = match self {
            Keys::Zipf(theta) => ScrambledZipfian::new(records, theta).map(Choice::Zipf),
            Keys::Etc => EtcChoice::new(records, ETC_THETA).map(Choice::Etc),
            Keys::Uniform => None,
        };
        choice.unwrap_or(Choice::Uniform(records))
    }

    pub(in crate::bench) fn check(self) -> Result<(), BenchError> {
        let is_choice = match self {
            Keys::Uniform => true,
            Keys::Zipf(theta) => ScrambledZipfian::new(1, theta).is_some(),
            Keys::Etc => EtcChoice::new(1, ETC_THETA).is_some(),
        };
        if is_choice { Ok(()) } else { Err(setting("zipf", "must be above 0 and below 1")) }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keys::Uniform => f.write_str("uniform"),
            Keys::Zipf(theta) => write!(f, "zipf {theta}"),
            Keys::Etc => f.write_str("etc"),
        }
    }
}

/// Chooses among records by their positions.
pub(in crate::bench) enum Choice {
    Uniform(u64),
    Zipf(ScrambledZipfian),
    Etc(EtcChoice),
}

impl Choice {
    /// The position of a record. `record` tells the record's number, which decides its size.
    #[inline]
    pub(in crate::bench) fn draw(&self, random: &mut SmallRng, record: impl Fn(u64) -> u64) -> u64 {
        match self {
            Choice::Uniform(records) => random.random_range(0..*records),
            Choice::Zipf(zipfian) => zipfian.draw(random),
            Choice::Etc(etc) => etc.draw(random, record),
        }
    }
}

/// The records to overwrite, the share of puts, and the least time.
#[derive(Clone, Debug)]
pub struct Overwrites {
    /// Utilizations in per cent, each measured in a pool of its own.
    pub utilizations: Vec<u64>,
    /// Choices of records, each measured at each utilization.
    pub keys: Vec<Keys>,
    /// Per cent of the operations that are puts; the others are gets.
    pub put: u64,
    /// Seconds that the windows last at least. A run that is not steady by then goes on to a limit of its
    /// own.
    pub seconds: f64,
    /// Segments that a pool has at least.
    pub segments: u64,
}

impl Default for Overwrites {
    fn default() -> Overwrites {
        Overwrites {
            utilizations: vec![50, 70, 80, 90],
            keys: vec![Keys::Zipf(0.99)],
            put: 100,
            seconds: 0.0,
            segments: SEGMENTS,
        }
    }
}

impl Overwrites {
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let is_beyond = |asked: &u64| !UTILIZATIONS.contains(asked);
        let no_utilization = self.utilizations.is_empty() || self.utilizations.iter().any(is_beyond);
        refuse([
            (no_utilization, "utilization", "must be 1 to 95, in per cent"),
            (self.put > 100, "put", "must be 0 to 100, in per cent"),
            (self.keys.is_empty(), "keys", "must name at least one distribution"),
        ])?;
        self.keys.iter().try_for_each(|keys| keys.check())
    }
}
