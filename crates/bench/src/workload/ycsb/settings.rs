//! The workload of a property file.
//!
//! A misspelt key would otherwise run a different workload under the same name, so an unknown one is an
//! error. Keys of YCSB that have no meaning here (its database, its measurements, its threads) are known and
//! ignored.

use crate::workload::{Naming, Property, PropertyError, parse_properties};

/// How records are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Few are popular, and those lie scattered.
    Zipfian,
    /// The newest are popular.
    Latest,
}

/// Whether consecutive records have scattered or consecutive keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOrder {
    /// Scattered: the key holds the hash of the record's number.
    Hashed,
    /// Consecutive: the key holds the number.
    Ordered,
}

/// Weights of the operations; only their ratios count, as in YCSB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Reads of one record.
    pub read: f64,
    /// Replacements of one record's value.
    pub update: f64,
    /// New records.
    pub insert: f64,
    /// Ranges in key order.
    pub scan: f64,
    /// Reads followed by a replacement.
    pub read_modify_write: f64,
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name in reports: `a` to `f`, or the name of its file.
    pub name: String,
    /// Records loaded before the run.
    pub records: u64,
    /// Operations of the run.
    pub operations: u64,
    /// The operations' weights.
    pub mix: Mix,
    /// How records are chosen.
    pub distribution: Distribution,
    /// The constant of zipfian choices, between 0 and 1. The key `zipfianconstant` is an addition to YCSB,
    /// which has it fixed at 0.99.
    pub theta: f64,
    /// Bytes of a record's value: fields times bytes of a field.
    pub value_size: usize,
    /// How keys follow from numbers.
    pub insert_order: InsertOrder,
    /// Digits that numbers in keys are padded to.
    pub zero_padding: usize,
    /// Whether keys are numbers of eight bytes in place of text. The key `wordkeys` is an addition to YCSB.
    pub word_keys: bool,
    /// Fewest and most records of a scan.
    pub scan_length: (u64, u64),
    /// Whether short scans are the likelier.
    pub zipfian_scans: bool,
}

/// A property file that is not a workload.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Not a property file.
    #[error("the workload is not a property file: {0}")]
    Syntax(#[from] PropertyError),
    /// A key that neither YCSB's core workload nor this program has.
    #[error("line {line}: unknown key `{key}`; check its spelling against YCSB's core properties")]
    UnknownKey {
        /// The key.
        key: String,
        /// The line, from 1.
        line: usize,
    },
    /// A value that does not fit its key.
    #[error("line {line}: `{key}` is `{value}`, but it must be {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The line, from 1.
        line: usize,
        /// The values that fit.
        expected: &'static str,
    },
    /// All weights are zero.
    #[error(
        "no operation has a proportion above zero; set at least one of the keys that end in `proportion`"
    )]
    NoOperation,
    /// A required key is absent.
    #[error("the key `{key}` is missing; YCSB requires it")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// Scans between bounds that contradict each other.
    #[error("minscanlength is {least} and maxscanlength is {most}; the least must not exceed the most")]
    ScanBounds {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
}

/// Keys of YCSB that say nothing about the requests made here.
const IGNORED: &str = "\
    workload db table columnfamily threadcount target status exporter exportfile maxexecutiontime \
    measurementtype histogram.buckets timeseries.granularity measurement.raw.output_file \
    measurement.trackjvm measurement.interval hdrhistogram.percentiles reportlatencyforeacherror \
    latencytrackederrors dataintegrity core_workload_insertion_retry_limit \
    core_workload_insertion_retry_interval";

/// The published files, each with the name that reports use.
const PUBLISHED: [(&str, &str); 6] = [
    ("a", include_str!("../../../workloads/workloada")),
    ("b", include_str!("../../../workloads/workloadb")),
    ("c", include_str!("../../../workloads/workloadc")),
    ("d", include_str!("../../../workloads/workloadd")),
    ("e", include_str!("../../../workloads/workloade")),
    ("f", include_str!("../../../workloads/workloadf")),
];

impl Workload {
    /// One of YCSB's six core workloads, by its letter, or `None` if there is no such letter.
    pub fn published(letter: &str) -> Option<Workload> {
        let (name, text) = PUBLISHED.iter().find(|(name, _)| name.eq_ignore_ascii_case(letter))?;
        Some(Workload::parse(name, text).expect("the published workloads are tested"))
    }

    /// Reads a property file; `name` is what reports call the workload.
    ///
    /// # Errors
    /// [`WorkloadError`] names the key at fault.
    pub fn parse(name: &str, text: &str) -> Result<Workload, WorkloadError> {
        let mut workload = Workload {
            name: name.to_owned(),
            records: 0,
            operations: 0,
            mix: Mix { read: 0.95, update: 0.05, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
            distribution: Distribution::Uniform,
            theta: 0.99,
            value_size: 0,
            insert_order: InsertOrder::Hashed,
            zero_padding: 1,
            word_keys: false,
            scan_length: (1, 1000),
            zipfian_scans: false,
        };
        let (mut field_count, mut field_length) = (10, 100);
        for property in parse_properties(text)? {
            let p = &property;
            match p.key.as_str() {
                "recordcount" => workload.records = count(p)?,
                "operationcount" => workload.operations = count(p)?,
                "readproportion" => workload.mix.read = proportion(p)?,
                "updateproportion" => workload.mix.update = proportion(p)?,
                "insertproportion" => workload.mix.insert = proportion(p)?,
                "scanproportion" => workload.mix.scan = proportion(p)?,
                "readmodifywriteproportion" => workload.mix.read_modify_write = proportion(p)?,
                "requestdistribution" => workload.distribution = distribution(p)?,
                "zipfianconstant" => workload.theta = theta(p)?,
                "fieldcount" => field_count = count(p)? as usize,
                "fieldlength" => field_length = count(p)? as usize,
                "insertorder" => workload.insert_order = insert_order(p)?,
                "wordkeys" => workload.word_keys = bool_of(p)?,
                "zeropadding" => workload.zero_padding = padding(p)?,
                "minscanlength" => workload.scan_length.0 = count(p)?,
                "maxscanlength" => workload.scan_length.1 = count(p)?,
                "scanlengthdistribution" => workload.zipfian_scans = zipfian_scans(p)?,
                // Values of one size and whole reads are what this program does; another wish must not pass
                // unseen.
                "fieldlengthdistribution" => {
                    one_of(p, &[("constant", ())], "`constant`: values of one run have one size")?
                }
                "readallfields" => one_of(p, &[("true", ())], "`true`: a record is read whole")?,
                "writeallfields" => bool_of(p).map(drop)?,
                key if IGNORED.split_whitespace().any(|ignored| ignored == key) => {}
                _ => return Err(WorkloadError::UnknownKey { key: property.key, line: property.line }),
            }
        }
        workload.value_size = field_count * field_length;
        workload.complete()
    }

    fn complete(self) -> Result<Workload, WorkloadError> {
        if self.records == 0 {
            return Err(WorkloadError::Missing { key: "recordcount" });
        }
        if self.operations == 0 {
            return Err(WorkloadError::Missing { key: "operationcount" });
        }
        if self.mix.weights().iter().sum::<f64>() <= 0.0 {
            return Err(WorkloadError::NoOperation);
        }
        let (least, most) = self.scan_length;
        if least > most {
            return Err(WorkloadError::ScanBounds { least, most });
        }
        Ok(self)
    }

    /// How the workload names its records.
    pub fn naming(&self) -> Naming {
        let Workload { zero_padding, word_keys: is_word, .. } = *self;
        Naming { hashed: self.insert_order == InsertOrder::Hashed, zero_padding, is_word }
    }

    /// Whether the workload reads ranges, which needs a design with key order.
    pub fn scans(&self) -> bool {
        self.mix.scan > 0.0
    }
}

impl Mix {
    pub(super) fn weights(&self) -> [f64; 5] {
        [self.read, self.update, self.insert, self.scan, self.read_modify_write]
    }
}

fn bad(p: &Property, expected: &'static str) -> WorkloadError {
    WorkloadError::BadValue { key: p.key.clone(), value: p.value.clone(), line: p.line, expected }
}

fn count(p: &Property) -> Result<u64, WorkloadError> {
    const EXPECTED: &str = "a whole number from 1 to 2^40";
    p.value.parse().ok().filter(|n| (1..=1 << 40).contains(n)).ok_or_else(|| bad(p, EXPECTED))
}

fn padding(p: &Property) -> Result<usize, WorkloadError> {
    p.value.parse().ok().filter(|n| *n <= 200).ok_or_else(|| bad(p, "a whole number up to 200"))
}

fn proportion(p: &Property) -> Result<f64, WorkloadError> {
    p.value.parse().ok().filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| bad(p, "a number from 0 to 1"))
}

fn theta(p: &Property) -> Result<f64, WorkloadError> {
    p.value.parse().ok().filter(|n| *n > 0.0 && *n < 1.0).ok_or_else(|| bad(p, "above 0 and below 1"))
}

/// The meaning of one of these words.
fn one_of<T: Copy>(p: &Property, words: &[(&str, T)], expected: &'static str) -> Result<T, WorkloadError> {
    let found = words.iter().find(|(word, _)| *word == p.value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| bad(p, expected))
}

fn distribution(p: &Property) -> Result<Distribution, WorkloadError> {
    use Distribution::{Latest, Uniform, Zipfian};
    let words = [("uniform", Uniform), ("zipfian", Zipfian), ("latest", Latest)];
    one_of(p, &words, "`uniform`, `zipfian` or `latest`")
}

fn insert_order(p: &Property) -> Result<InsertOrder, WorkloadError> {
    let words = [("hashed", InsertOrder::Hashed), ("ordered", InsertOrder::Ordered)];
    one_of(p, &words, "`hashed` or `ordered`")
}

fn zipfian_scans(p: &Property) -> Result<bool, WorkloadError> {
    one_of(p, &[("uniform", false), ("zipfian", true)], "`uniform` or `zipfian`")
}

fn bool_of(p: &Property) -> Result<bool, WorkloadError> {
    one_of(p, &[("true", true), ("false", false)], "`true` or `false`")
}
