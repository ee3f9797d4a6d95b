//! The evaluation of Viper (Benson, Makait and Rabl, "Viper: An Efficient Hybrid PMem-DRAM Key-Value Store",
//! PVLDB 14(9), 2021): figure 1 and section 5.
//!
//! The paper prefills 100 million records of 16 + 200 bytes and does 50 million operations; here `--records`
//! stands for the 100 million, and the other numbers follow in proportion. Its rivals are not run.

mod design;
mod operations;
mod running;

use super::{Benchmark, Paper, Run};
use quipu::Design;
use quipu_bench::config::Config;
use quipu_bench::ops::OpsPhase;

pub(super) static PAPER: Paper = Paper {
    name: "viper",
    title: "Benson, Makait, Rabl: Viper: An Efficient Hybrid PMem-DRAM Key-Value Store. PVLDB 14(9), 2021",
    machine: "Xeon Gold 5220S, one socket, 36 threads on 18 cores, six 128 GB Optane DIMMs (devdax), 96 GB DRAM; 100 million \
              records of 16 + 200 bytes, 50 million operations",
    presets: &[
        design::PATTERNS,
        operations::OPERATIONS,
        operations::SIZES,
        operations::VARIABLE,
        operations::MEMORY,
        design::UPDATES,
        design::VERSIONS,
        design::BREAKDOWN,
        running::YCSB,
        running::RECLAMATION,
        running::RECOVERY,
    ],
    compared: None,
    batches: false,
};

/// Rows that have times, and rows of the simulator beside them.
const TIMED: &str = "timed";
const MODELLED: &str = "modelled";
/// The same with puts that are published late.
const TIMED_LATE: &str = "timed, late";
const MODELLED_LATE: &str = "modelled, late";

/// Puts are published before they return, as in the paper, unless the settings say otherwise.
fn as_in_paper(config: Config) -> Config {
    let settings = [("late".to_owned(), "off".to_owned())].into_iter().chain(config.settings).collect();
    Config { settings, ..config }
}

/// The settings of most figures: records prefilled, half as many inserted, and as many operations.
fn usual(config: Config, records: u64) -> Config {
    let operations = (records / 2).max(1);
    Config {
        designs: vec![Design::VIPER],
        records: records + operations,
        prefilled: records,
        operations,
        key_size: 16,
        value_size: 200,
        phases: Vec::new(),
        ..as_in_paper(config)
    }
}

fn ops(setting: impl Into<String>, config: Config, phases: &[OpsPhase]) -> Run {
    Run::new(setting, Config { phases: phases.to_vec(), ..config }, Benchmark::Ops)
}
