//! Figure 9: scans.

use super::super::statements::{best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{FLATSTORE_FF, FLATSTORE_M, NSTORE, SOCKETS, most, nstore, simulated, words};
use crate::bench::config::Config;
use crate::bench::ops::OpsPhase;
use quipu::Design;

pub(super) const SCANS: Preset = Preset {
    figure: "9",
    section: "V-B, V-F",
    title: "scans, and sizes of values",
    about: "Scans of 100 records from a random one on. Values of 8 bytes with each number of threads, of the designs that keep keys in \
            order; then values of several sizes with the most threads, of nstore. Each scan is one operation; there are a 100th as many as \
            records. Modelled rows have two nodes with a client on each, and half of the records that a scan names are on the other one.",
    runs: scans,
    statements: &[
        says("values of 8 bytes, over µTree (flatstore-m), most threads (32)", "1.1")
            .times(most(NSTORE, OVER_THREADS, SCAN), most(FLATSTORE_M, OVER_THREADS, SCAN)),
        says("values of 8 bytes, over FAST+FAIR (flatstore-ff), most threads (32)", "below 1")
            .times(most(NSTORE, OVER_THREADS, SCAN), most(FLATSTORE_FF, OVER_THREADS, SCAN)),
        says("values of 512 bytes over those of 8", "(below 1)")
            .times(most(NSTORE, "512 B", SCAN), most(NSTORE, "8 B", SCAN)),
        says("lines of the other node that a scan of 100 reads, 8 B (modelled)", "(half of them)")
            .value("lines", best("modelled, 8 B", SCAN).of(NSTORE).value(|row| row.remote_reads_per_op)),
    ],
    carries_over: "That a scan of a log reads as many places as it finds records, and so costs more than one of a tree with values in \
                   its leaves. FAST+FAIR has them there, and flatstore-ff does not, so that the paper's order of the two is not to be \
                   expected.",
};

const OVER_THREADS: &str = "over threads";
const SCAN: &str = "scan";

/// Bytes of values. The paper names 8 and 512.
const SIZES: [usize; 4] = [8, 64, 256, 512];

fn run(setting: impl Into<String>, config: Config) -> Run {
    Run::new(setting, Config { phases: vec![OpsPhase::Scan], ..config }, Benchmark::Ops)
}

fn scans(scale: &Scale) -> Vec<Run> {
    let ordered = |config: Config| {
        let others = Config { designs: vec![Design::FLATSTORE_M, Design::FLATSTORE_FF], ..config.clone() };
        [nstore(config), others].map(|config| run(OVER_THREADS, config))
    };
    let sized = |config: &Config, value_size: usize| nstore(Config { value_size, ..config.clone() });
    let (sim, records) = simulated(scale, SOCKETS);
    let sim = words(sim, records);
    let modelled = SIZES.map(|size| run(format!("modelled, {size} B"), sized(&sim, size)));
    if scale.is_simulated() {
        return modelled.into();
    }
    let over_threads = scale.over_threads().flat_map(|config| ordered(words(config, scale.records)));
    let most = words(scale.most_threads(), scale.records);
    let sizes = SIZES.map(|size| run(format!("{size} B"), sized(&most, size)));
    over_threads.chain(sizes).chain(modelled).collect()
}
