//! Figures 13 and 14: index, log and clusters.

use super::super::statements::{best, says, setting_of};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{
    FLATSTORE_M, LEAST_ZONE, MIXED, Mix, NSTORE, SOCKETS, VIPER, ZONES, most, nstore, simulated, words,
};
use quipu::Design;
use quipu_bench::config::Config;
use quipu_bench::ops::OpsPhase;
use quipu_bench::report::Row;

pub(super) const PARTS: Preset = Preset {
    figure: "13",
    section: "V-F",
    title: "index and log",
    about: "Puts of records of 8 + 8 bytes, then as many gets, with each number of threads: nstore is c-ALEX over Nlog. Another log below \
            c-ALEX is that of FlatStore, in the place of the paper's Viper-A; with Masstree it has a tree in DRAM, in the place of \
            µTree. Viper is a hash index over its own pages. NStore-B, a B+-tree over Nlog, is not built. Modelled rows have two nodes.",
    runs: parts,
    statements: &[
        says("put, c-ALEX, Nlog over another log (Viper's)", "(above 1)")
            .times(most(NSTORE, NLOG, PUT), most(FLATSTORE_M, OTHER_LOG, PUT)),
        says("get, c-ALEX, Nlog over another log (Viper's)", "(above 1)")
            .times(most(NSTORE, NLOG, GET), most(FLATSTORE_M, OTHER_LOG, GET)),
        says("put, the same log, c-ALEX over a tree (of Nlog)", "(above 1)")
            .times(most(FLATSTORE_M, OTHER_LOG, PUT), most(FLATSTORE_M, TREE, PUT)),
        says("get, the same log, c-ALEX over a tree (of Nlog)", "(above 1)")
            .times(most(FLATSTORE_M, OTHER_LOG, GET), most(FLATSTORE_M, TREE, GET)),
        says("put, over Viper", "(above 1)").times(most(NSTORE, NLOG, PUT), most(VIPER, SLOTS, PUT)),
        says("fences of a put (modelled)", "1 (one local write)")
            .value("fences", best("modelled, c-ALEX + Nlog", PUT).of(NSTORE).value(|row| row.fences_per_op)),
    ],
    carries_over: "That a learned index finds a key in fewer lines of DRAM than a tree does, the more the larger it is. While it grows from \
                   nothing it splits and trains leaves, which a put pays for. A put of Nlog looks up its key before it is \
                   placed, to name the record before it, and shares the tail of its cluster with all threads of the node; a log for each \
                   client, as FlatStore's, needs neither, and on one node nothing makes up for that.",
};

const NLOG: &str = "c-ALEX + Nlog";
const OTHER_LOG: &str = "c-ALEX + FlatStore's log";
const TREE: &str = "Masstree + FlatStore's log";
const SLOTS: &str = "CCEH + Viper's pages";

const PUT: &str = "insert";
const GET: &str = "get";

fn parts(scale: &Scale) -> Vec<Run> {
    let of = |config: Config, mark: &str| {
        let config = Config { phases: vec![OpsPhase::Get], ..config };
        let design = |design: Design| Config { designs: vec![design], ..config.clone() };
        let all = [
            (NLOG, nstore(config.clone())),
            (OTHER_LOG, design(Design::FLATSTORE_M).with("index", "alex")),
            (TREE, design(Design::FLATSTORE_M).with("index", "masstree")),
            (SLOTS, design(Design::VIPER)),
        ];
        all.map(|(setting, config)| Run::new(format!("{mark}{setting}"), config, Benchmark::Ops))
    };
    let timed = scale.over_threads().filter(|_| !scale.is_simulated());
    let timed = timed.flat_map(|config| of(words(config, scale.records), ""));
    let (sim, records) = simulated(scale, SOCKETS);
    timed.chain(of(words(sim, records), "modelled, ")).collect()
}

pub(super) const CLUSTERS: Preset = Preset {
    figure: "14",
    section: "V-F",
    title: "clusters",
    about: "16 to 256 clusters, each with files of its own, with each number of threads: puts and gets of records chosen uniformly, then on \
            a store of its own updates by zipf 0.9. A cluster takes at least eight zones of a node; pools have so many on one node.",
    runs: clusters,
    statements: &[
        says("clusters with the best puts, most threads", "16 (2 threads), 64 (16), 128 (32)")
            .found("clusters", |rows| best_of(rows, PUT)),
        says("clusters with the best updates, most threads", "(more with more threads)")
            .found("clusters", |rows| best_of(rows, MIXED)),
        says("put, 256 clusters over 16, most threads", "(below 1 with 2 threads)")
            .times(most(NSTORE, "256 clusters", PUT), most(NSTORE, "16 clusters", PUT)),
        says("get, 256 clusters over 16, most threads", "1 (no effect)")
            .times(most(NSTORE, "256 clusters", GET), most(NSTORE, "16 clusters", GET)),
    ],
    carries_over: "That clusters matter to writers alone. With two threads there is nobody to contend with, and each cluster is one more \
                   place that is written: the paper's best number for two threads is the least. What many threads gain takes many \
                   processors. Few records begin few files in each cluster, and the files that are open count the more.",
};

const NUMBERS: [u32; 5] = [16, 32, 64, 128, 256];

/// Bytes of a pool on the simulator that has zones for all clusters.
const POOL_SIM: u64 = (ZONES + 64) * LEAST_ZONE;

/// The number of clusters with the best throughput of a phase, with the most threads.
fn best_of(rows: &[Row], phase: &str) -> Option<f64> {
    let of_phase = || rows.iter().filter(|row| row.phase == phase);
    let most = of_phase().map(|row| row.threads).max()?;
    let of_most = of_phase().filter(|row| row.threads == most);
    let best = of_most.max_by(|one, other| one.mops.unwrap_or(0.0).total_cmp(&other.mops.unwrap_or(0.0)))?;
    setting_of(best)?.split(' ').next()?.parse().ok()
}

fn clusters(scale: &Scale) -> Vec<Run> {
    let of = |config: Config| {
        let pool_size = scale.is_simulated().then_some(POOL_SIM);
        let config = Config { pool_size, ..words(config, scale.records) };
        NUMBERS.into_iter().flat_map(move |clusters| {
            let config = nstore(config.clone()).with("clusters", &clusters.to_string());
            let setting = format!("{clusters} clusters");
            let alone = Config { phases: vec![OpsPhase::Get], ..config.clone() };
            let updates = Mix { zipf: Some("0.9"), ..Mix::uniform(0, 100, 0) };
            [Run::new(setting.clone(), alone, Benchmark::Ops), updates.run(setting, config)].map(Run::of_ours)
        })
    };
    scale.over_threads().flat_map(of).collect()
}
