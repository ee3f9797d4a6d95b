//! PACMAN's evaluation (Wang, Lu, Wang, Xie, Huang, Shu: "Pacman: An Efficient Compaction Approach for
//! Log-Structured Key-Value Store on Persistent Memory", USENIX ATC 2022, section 4).
//!
//! Every figure is run with the techniques and without them, one pool after the other, so that what the
//! machine does meanwhile happens to both: the ratio is what counts. The paper binds twelve service threads
//! and four cleaners to one socket; here there is one cleaner, and so as few service threads as were asked
//! for, except where threads are varied.

mod production;
mod sensitivity;
mod techniques;
mod utilization;

use super::{Benchmark, Paper, Run, Scale};
use crate::bench::util::{Keys, Overwrites};
use quipu::{Design, Setting};
use quipu_bench::config::Config;

pub(super) static PAPER: Paper = Paper {
    name: "pacman",
    title: "Wang, Lu, Wang, Xie, Huang, Shu: Pacman: An Efficient Compaction Approach for Log-Structured Key-Value Store on \
            Persistent Memory. USENIX ATC 2022",
    machine: "Xeon Gold 6240, one socket, 36 threads on 18 cores, three 128 GB Optane DIMMs, 96 GB DRAM; 200 million records of \
              8 + 48 bytes, 12 service threads and 4 cleaners, 80 % utilization",
    presets: &[
        utilization::UTILIZATION,
        utilization::YCSB,
        sensitivity::UNIFORM,
        sensitivity::THREADS,
        sensitivity::SIZES,
        sensitivity::WRITES,
        sensitivity::OBJECTS,
        techniques::TECHNIQUES,
        production::ETC,
        production::RECOVERY,
    ],
    compared: Some((PACMAN, RAW)),
    batches: true,
};

/// With all techniques, and without any.
const PACMAN: &str = "PACMAN";
const RAW: &str = "raw";

/// The switch of all techniques.
const SWITCH: &str = "pacman";

/// The names of designs in rows.
const H: &str = "flatstore-h";
const M: &str = "flatstore-m";
const FF: &str = "flatstore-ff";
const PH: &str = "flatstore-ph";
const VIPER: &str = "viper-pacman";

/// The skew of most figures.
const SKEWED: Keys = Keys::Zipf(0.99);

/// Per cent of the space that is live, where that is not varied.
const USUAL: u64 = 80;

/// The designs that can do without the techniques.
fn designs() -> impl Iterator<Item = Design> {
    Design::ALL.iter().copied().filter(|design| Setting::of(*design).any(|setting| setting.name == SWITCH))
}

/// The settings of most figures for a design.
fn usual(scale: &Scale, design: Design) -> Config {
    let (records, operations) = (scale.records, scale.records);
    let config = scale.fewest_threads();
    Config { designs: vec![design], records, operations, key_size: 8, value_size: 48, ..config }
}

/// Half puts, half gets, at the usual utilization.
fn mixed() -> Overwrites {
    Overwrites { utilizations: vec![USUAL], keys: vec![SKEWED], put: 50, ..Overwrites::default() }
}

/// A load with the techniques and without, at one utilization after the other. `of` sets the rows apart from
/// others of the figure.
fn both(of: &str, config: &Config, overwrites: &Overwrites) -> Vec<Run> {
    let both = |(config, overwrites): (Config, Overwrites)| {
        switched(of, config, || Benchmark::Util(overwrites.clone()))
    };
    overwrites.clone().apart(config).into_iter().flat_map(both).collect()
}

/// A benchmark with the techniques and without.
fn switched(of: &str, config: Config, benchmark: impl Fn() -> Benchmark) -> [Run; 2] {
    [(PACMAN, "on"), (RAW, "off")].map(|(kind, value)| {
        let setting = if of.is_empty() { kind.to_owned() } else { format!("{of}, {kind}") };
        Run::new(setting, config.clone().with(SWITCH, value), benchmark())
    })
}
