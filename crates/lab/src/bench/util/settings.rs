//! What is asked for.

use crate::bench::config::setting;
use crate::bench::error::BenchError;
use crate::workload::ScrambledZipfian;
use std::fmt;
use std::ops::RangeInclusive;

/// Shares of the segments, in per cent, that can be filled with live records: some of each is lost to its end.
const UTILIZATIONS: RangeInclusive<u64> = 1..=95;

/// How records to overwrite are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keys {
    /// Each as likely as any other.
    Uniform,
    /// By YCSB's scrambled zipfian distribution with this theta.
    Zipf(f64),
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keys::Uniform => f.write_str("uniform"),
            Keys::Zipf(theta) => write!(f, "zipf {theta}"),
        }
    }
}

/// What is overwritten, and for how long.
#[derive(Clone, Debug)]
pub struct Overwrites {
    /// Utilizations in per cent, each measured in a pool of its own.
    pub utilizations: Vec<u64>,
    /// Choices of records, each measured at each utilization.
    pub keys: Vec<Keys>,
    /// Seconds that the windows last at least. A run that is not steady by then goes on to a limit of its own.
    pub seconds: f64,
}

impl Overwrites {
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let (least, most) = (UTILIZATIONS.start(), UTILIZATIONS.end());
        if self.utilizations.is_empty() || self.utilizations.iter().any(|asked| !UTILIZATIONS.contains(asked))
        {
            return Err(setting("utilization", format!("must be {least} to {most}, in per cent")));
        }
        if self.keys.is_empty() {
            return Err(setting("keys", "must name at least one distribution"));
        }
        for keys in &self.keys {
            if let Keys::Zipf(theta) = keys
                && ScrambledZipfian::new(1, *theta).is_none()
            {
                return Err(setting("zipf", "must be above 0 and below 1"));
            }
        }
        Ok(())
    }
}
