//! NStore's evaluation (Wang et al., "NStore: A High-Performance NUMA-Aware Key-Value Store for Hybrid
//! Memory", IEEE Transactions on Computers, 2025, section V). Figures 1 to 3 measure Optane and other
//! systems, and are left out.
//!
//! The paper's subject is a machine with two sockets. A machine with one node shows what the design costs
//! where there is nothing to gain, and those rows have times. Accesses near and far are counted on the
//! simulator. Its rows, called modelled, have two nodes with one client at home on each. They have exact
//! counts, and an estimate of the time from the latencies that the paper itself gives (section II-A).
//!
//! Of its rivals, Viper is ours. FAST+FAIR and µTree have relatives here: `flatstore-ff`, whose tree in PM
//! is FAST&FAIR, and `flatstore-m`, whose trees are in DRAM; both keep records in logs, and not in the tree
//! or in a list. PACTree, APEX, DPTree and Nap-FF are not built.

mod overall;
mod parts;
mod scan;
mod skew;
mod sockets;
mod space;

use super::statements::{Cell, best};
use super::{Benchmark, Paper, Run, Scale};
use quipu::{Design, MediumKind};
use quipu_bench::config::Config;
use quipu_bench::workload::{KeySet, Workload};

pub(super) static PAPER: Paper = Paper {
    name: "nstore",
    title: "Wang et al.: NStore: A High-Performance NUMA-Aware Key-Value Store for Hybrid Memory. IEEE Transactions on Computers, 2025",
    machine: "two Xeon Gold 5218, 16 cores and two 128 GB Optane DIMMs a socket (ext4-DAX), 64 GB DRAM; 200 million records of 8 + 8 \
              bytes, then 10 million operations, 32 threads, half of them on each socket",
    presets: &[
        overall::YCSB,
        overall::LONGLAT,
        scan::SCANS,
        skew::SKEW,
        skew::CACHES,
        sockets::SOCKETS,
        parts::PARTS,
        parts::CLUSTERS,
        space::CLEANING,
        space::RECOVERY,
    ],
    compared: None,
    batches: false,
};

/// The designs, as rows call them.
const NSTORE: &str = "nstore";
const VIPER: &str = "viper";
const FLATSTORE_M: &str = "flatstore-m";
const FLATSTORE_FF: &str = "flatstore-ff";

/// Bytes of a key and, mostly, of a value.
const WORD: usize = 8;

/// Nodes of the simulated machine, as many as the paper's sockets.
const SOCKETS: u16 = 2;

/// Zones of a pool at least, so that there are as many clusters as the paper has: each takes eight a node.
const ZONES: u64 = 256 * 8 * SOCKETS as u64;

/// Sizes of zones that pools can have.
const LEAST_ZONE: u64 = 16 << 10;
const LARGEST_ZONE: u64 = 4 << 20;

/// Bytes of a record of two words in a file, with what names its parent.
const ENTRY: u64 = 56;

/// Records of two words, as many operations as records, and no cache unless a figure is about it.
fn words(config: Config, records: u64) -> Config {
    Config { records, operations: records, key_size: WORD, value_size: WORD, ..config }
}

/// Clusters on the simulator. The paper's files have room for 150,000 records each. With all its clusters the
/// few records there would be lost among files that begin.
const CLUSTERS_SIM: &str = "4";

/// NStore itself, in zones small enough for all its clusters. Without a setting it has a cache on a machine
/// with several nodes, and none on others: the figures that have one name it.
fn nstore(config: Config) -> Config {
    let config = match config.medium {
        MediumKind::Sim => config.with("clusters", CLUSTERS_SIM),
        _ => config,
    };
    let bytes = config.records * (ENTRY + config.value_size as u64 - WORD as u64);
    let zone = (bytes / ZONES).next_power_of_two().clamp(LEAST_ZONE, LARGEST_ZONE);
    let config = Config { designs: vec![Design::NSTORE], zone_size: Some(zone), ..config };
    config.with("cache", "off")
}

/// The stores beside it.
fn rivals(config: Config) -> Config {
    let designs = vec![Design::VIPER, Design::FLATSTORE_M, Design::FLATSTORE_FF, Design::MPKV];
    Config { designs, ..config }
}

/// A machine of so many simulated nodes with a client on each, and the records of a run on it.
fn simulated(scale: &Scale, nodes: u16) -> (Config, u64) {
    let sim = scale.on_sim();
    let config = Config { nodes: Some(nodes), threads: usize::from(nodes), counts_dimms: false, ..sim.base };
    (config, sim.records)
}

/// Shares of the operations in per cent, and how records are chosen.
#[derive(Clone, Copy)]
struct Mix {
    get: u64,
    update: u64,
    put: u64,
    /// The constant of a zipfian choice; uniform without it.
    zipf: Option<&'static str>,
}

impl Mix {
    const fn uniform(get: u64, update: u64, put: u64) -> Mix {
        Mix { get, update, put, zipf: None }
    }

    /// So many records, and operations, with records of words.
    fn workload(self, config: &Config) -> Benchmark {
        let share = |percent: u64| percent as f64 / 100.0;
        let choice = match self.zipf {
            Some(theta) => format!("requestdistribution=zipfian\nzipfianconstant={theta}"),
            None => "requestdistribution=uniform".to_owned(),
        };
        let text = format!(
            "recordcount={}\noperationcount={}\nreadproportion={}\nupdateproportion={}\ninsertproportion={}\n\
             fieldcount=1\nfieldlength={}\nwordkeys=true\n{choice}",
            config.records,
            config.operations,
            share(self.get),
            share(self.update),
            share(self.put),
            config.value_size,
        );
        Benchmark::Ycsb(Box::new(Workload::parse("mix", &text).expect("all its properties are known")))
    }

    fn run(self, setting: impl Into<String>, config: Config) -> Run {
        let workload = self.workload(&config);
        Run::new(setting, config, workload)
    }
}

/// The phase of a mix.
const MIXED: &str = "run_mix";

/// The throughput of a design with the most threads.
const fn most(design: &'static str, setting: &'static str, phase: &'static str) -> Cell {
    best(setting, phase).of(design).most()
}

/// Keys of eight bytes from a set.
fn of_set(config: Config, key_set: KeySet) -> Config {
    Config { key_set, ..config }
}
