//! The settings of a benchmark.

use super::error::BenchError;
use super::ops::OpsPhase;
use crate::settings::{self, capabilities};
use crate::workload::{KeySet, KeyShape, SHORTEST_KEY, SHORTEST_VALUE, Values, Workload};
use quipu::internals::{NodePlace, RecordForm};
use quipu::{Design, MediumKind, Options, Topology};
use quipu_medium::sim::MAX_NODES;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Bytes of YCSB's longest key: `user` and nineteen digits.
const LONGEST_KEY: usize = 23;

/// Bytes of a key that is a number.
const WORD_KEY: usize = 8;

/// Nodes of a simulated machine.
const NODES: RangeInclusive<u16> = 1..=MAX_NODES as u16;

/// Puts of a batch.
const BATCHES: RangeInclusive<usize> = 1..=1024;

/// A benchmark's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Designs to measure, one after another.
    pub designs: Vec<Design>,
    /// Where the pools are. On `sim`, rows hold costs in place of times.
    pub medium: MediumKind,
    /// The pool's file, which must not exist: the benchmark creates and removes it. Needed for `file` and
    /// `dax`.
    pub pool: Option<PathBuf>,
    /// Bytes of a pool; without it, room for everything that the benchmark writes, so that nothing need be
    /// reclaimed.
    pub pool_size: Option<u64>,
    /// A folder for the levels of a design that has some; without it, one beside the pool's file, or where
    /// temporary files are. Levels are used only if the size of the pool is given.
    pub levels: Option<PathBuf>,
    /// Bytes of a zone, which is a segment; without it, what the store takes for a pool of this size.
    pub zone_size: Option<u64>,
    /// Threads, for operations and for recovery.
    pub threads: usize,
    /// On the simulator, the nodes of the machine; threads are tasks then, at home on them in turn. Without
    /// it there are two nodes and one client.
    pub nodes: Option<u16>,
    /// Parts of the pool behind its own file, which must not exist either.
    pub parts: Vec<PathBuf>,
    /// The nodes of the pool's own file and of its parts, if nobody else knows them.
    pub part_nodes: Vec<u16>,
    /// The nodes of the machine, if the user tells.
    pub topology: Option<Topology>,
    /// Whether threads are kept on the nodes of a pool with parts on several, in turn.
    pub pins: bool,
    /// Whether a thread of the store's own compacts ahead of the clients.
    pub cleaner: bool,
    /// Records loaded.
    pub records: u64,
    /// Of these, records that are there before the inserts that `ops` measures.
    pub prefilled: u64,
    /// The phases of `ops` after the inserts, in this order.
    pub phases: Vec<OpsPhase>,
    /// Operations of each phase.
    pub operations: u64,
    /// Seconds that the run of `ycsb` lasts, in place of a number of operations; pools still have room for
    /// [`operations`](Config::operations).
    pub seconds: Option<u64>,
    /// Bytes of a key.
    pub key_size: usize,
    /// The set that the first eight bytes of keys are drawn from.
    pub key_set: KeySet,
    /// Bytes of a value.
    pub value_size: usize,
    /// Standard deviations of key and value, in bytes, if both vary around their sizes.
    pub spread: Option<(f64, f64)>,
    /// Whether every key and every value has just that size, for designs that can make use of it.
    pub fixed_sizes: bool,
    /// Whether memory of medium `dram` has persistence instructions; without them, what they cost can be
    /// seen.
    pub persists: bool,
    /// On the simulator, whether to count the DIMMs that each operation touches, for which every call is
    /// looked at.
    pub counts_dimms: bool,
    /// [Settings](quipu::Setting) by name, with their values, each for the designs that have it.
    pub settings: Vec<(String, String)>,
    /// Puts that a thread of `ops`, of `util` or of the load of `ycsb` collects and issues together; 1 for
    /// each alone.
    pub batch: usize,
    /// The seed of all choices.
    pub seed: u64,
    /// Whether the medium's own limits are measured too, and results given as shares of them.
    pub roofline: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            designs: vec![Design::default()],
            medium: MediumKind::Dram,
            pool: None,
            pool_size: None,
            levels: None,
            zone_size: None,
            threads: 1,
            nodes: None,
            parts: Vec::new(),
            part_nodes: Vec::new(),
            topology: None,
            pins: false,
            cleaner: Options::default().cleaner,
            records: 1_000_000,
            prefilled: 0,
            phases: OpsPhase::DEFAULT.to_vec(),
            operations: 1_000_000,
            seconds: None,
            key_size: 16,
            key_set: KeySet::Uniform,
            value_size: 200,
            spread: None,
            fixed_sizes: true,
            persists: true,
            counts_dimms: false,
            settings: Vec::new(),
            batch: 1,
            seed: 1,
            roofline: false,
        }
    }
}

/// Refuses the value of a setting, with what would do.
pub fn setting(setting: &'static str, reason: impl Into<String>) -> BenchError {
    BenchError::Setting { setting, reason: reason.into() }
}

/// Refuses the first setting whose fault is there.
pub fn refuse<const N: usize>(faults: [(bool, &'static str, &str); N]) -> Result<(), BenchError> {
    let found = faults.into_iter().find(|(is_there, ..)| *is_there);
    found.map_or(Ok(()), |(_, name, reason)| Err(setting(name, reason)))
}

/// Why a simulated run has one thread.
pub const ONE_CLIENT: &str =
    "must be 1 on the simulator, where costs are those of one client; `bench ops` has several with --nodes";

/// Whether a pool with these options keeps its keys in order.
pub fn keeps_order(design: Design, options: &Options) -> bool {
    capabilities(options, design).ordered
}

impl Config {
    /// Checks what every benchmark of designs needs.
    pub fn check(&self) -> Result<(), BenchError> {
        if self.designs.is_empty() {
            return Err(setting("designs", "must name at least one design"));
        }
        settings::check(&self.settings, &self.designs).map_err(|error| setting("set", error.to_string()))?;
        self.designs.iter().try_for_each(|design| self.options(*design).map(drop))?;
        self.check_run()
    }

    /// The options of a design's pool, except its size.
    ///
    /// # Errors
    /// [`BenchError::Setting`] for a value that a setting does not take.
    pub fn options(&self, design: Design) -> Result<Options, BenchError> {
        let mut options = settings::apply(&self.settings, design, self.plain_options())
            .map_err(|error| setting("set", error.to_string()))?;
        if design.can().updates_in_place {
            options.slots.form = self.form(options.slots.page_size);
        }
        Ok(options)
    }

    /// The same with this setting of designs.
    pub fn with(mut self, name: &str, value: &str) -> Config {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    fn plain_options(&self) -> Options {
        let options = Options::new()
            .medium(self.medium)
            .cleaner(self.cleaner)
            .recovery_threads(self.threads)
            .topology(self.topology.clone())
            .nodes(self.part_nodes.iter().copied())
            .with(|options| options.zone_size = self.zone_size);
        self.parts.iter().fold(options, |options, part| options.part(part))
    }

    /// Checks that each design keeps the order of keys, which the workload of this name needs.
    ///
    /// # Errors
    /// [`BenchError::NoOrder`], or [`BenchError::Setting`] for a value that a setting does not take.
    pub fn check_order(&self, workload: &str) -> Result<(), BenchError> {
        for &design in &self.designs {
            if !keeps_order(design, &self.options(design)?) {
                let (design, workload) = (design.to_string(), workload.to_owned());
                return Err(BenchError::NoOrder { design, workload });
            }
        }
        Ok(())
    }

    /// Whether the pool of a design holds its index too.
    pub fn has_index_in_pm(&self) -> bool {
        let is_in_pm = |design: &Design| {
            design.can().index_in_pool
                || self.options(*design).is_ok_and(|options| options.offset_map.nodes == NodePlace::Pm)
        };
        self.designs.iter().any(is_in_pm)
    }

    /// Checks what a benchmark of any engine needs.
    pub fn check_run(&self) -> Result<(), BenchError> {
        let is_simulated = self.medium == MediumKind::Sim;
        let needs_pool = matches!(self.medium, MediumKind::File | MediumKind::Dax);
        refuse([
            (self.threads == 0, "threads", "must be at least 1"),
            (!BATCHES.contains(&self.batch), "batch", "must be 1 to 1024"),
            (self.records == 0 || self.operations == 0, "records and operations", "must be at least 1"),
            (self.seconds == Some(0), "seconds", "must be at least 1"),
            (self.prefilled >= self.records, "prefilled", "must leave records to be inserted"),
            (needs_pool && self.pool.is_none(), "pool", "must name a new file for such a medium"),
            (is_simulated && self.threads > 1 && self.nodes.is_none(), "threads", ONE_CLIENT),
            (
                !is_simulated && self.nodes.is_some(),
                "nodes",
                "is for the simulator; elsewhere --part makes nodes",
            ),
            (self.nodes.is_some_and(|nodes| !NODES.contains(&nodes)), "nodes", "must be 1 to 4"),
            (!self.parts.is_empty() && self.pool.is_none(), "part", "is a part of a pool that --pool names"),
            (
                is_simulated && self.roofline,
                "roofline",
                "has no meaning on the simulator, which takes no times",
            ),
            (
                is_simulated && self.pool.is_some(),
                "pool",
                "has no meaning on the simulator, which keeps no file",
            ),
        ])
    }

    /// How a heap of slots stores such records: as slots if they have one size and some fit a page.
    fn form(&self, page_size: u32) -> RecordForm {
        let fits = self.record_bytes() <= u64::from(page_size) / 4;
        let varies = !self.fixed_sizes || self.spread.is_some();
        match (u16::try_from(self.key_size), u32::try_from(self.value_size)) {
            (Ok(key), Ok(value)) if !varies && fits => RecordForm::Fixed { key, value },
            _ => RecordForm::Variable,
        }
    }

    /// The same settings, with records, operations and sizes as the workload says.
    pub fn of_workload(&self, workload: &Workload) -> Config {
        Config {
            records: workload.records,
            operations: workload.operations,
            value_size: workload.value_size,
            key_size: if workload.word_keys {
                WORD_KEY
            } else {
                LONGEST_KEY.max("user".len() + workload.zero_padding)
            },
            fixed_sizes: workload.word_keys,
            ..self.clone()
        }
    }

    /// The shape of the keys of all records.
    pub fn keys(&self) -> Result<KeyShape, BenchError> {
        self.keys_of(self.records)
    }

    /// The same of so many records.
    pub fn keys_of(&self, records: u64) -> Result<KeyShape, BenchError> {
        let shape = KeyShape::new(self.key_size, self.seed).ok_or_else(|| {
            setting("key size", format!("must be at least {SHORTEST_KEY}, to keep records apart"))
        })?;
        // Uniform keys are computed from their numbers, which takes no memory.
        let shape = match self.key_set {
            KeySet::Uniform => shape,
            set => shape.of_set(set, records),
        };
        Ok(match self.spread {
            Some((deviation, _)) => shape.spread(deviation),
            None => shape,
        })
    }

    /// The values' shape.
    pub fn values(&self) -> Result<Values, BenchError> {
        let values = Values::new(self.value_size).ok_or_else(|| {
            setting("value size", format!("must be at least {SHORTEST_VALUE}, so that it can be checked"))
        })?;
        Ok(self.spread.map_or(values, |(_, deviation)| values.spread(deviation)))
    }

    /// Bytes of a record as the limits count them: key and value.
    pub fn record_bytes(&self) -> u64 {
        (self.key_size + self.value_size) as u64
    }
}
