//! How throughput falls as the pool fills up (figures 2 and 5), and YCSB in a full one (figure 6).

use super::super::statements::{at, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{FF, H, M, PACMAN, PH, RAW, USUAL, VIPER, both, designs, mixed, switched, usual};
use crate::bench::util::Overwrites;
use quipu::Design;
use quipu_bench::Row;
use quipu_bench::config::Config;
use quipu_bench::workload::Workload;

pub(super) const UTILIZATION: Preset = Preset {
    figure: "5",
    section: "2.2, 4.2.1",
    title: "throughput over utilization, raw (as in figure 2) and with PACMAN",
    about: "Half puts, half gets, zipfian with 0.99, until throughput is steady; one pool for each utilization, of the size that the \
            records fill up to it. Figure 2 is the raw half of this; its eight cleaners and its store all in DRAM are not run.",
    runs: |scale| {
        let overwrites = Overwrites { utilizations: vec![50, 60, 70, 80, 90], ..mixed() };
        designs().flat_map(|design| both("", &usual(scale, design), &overwrites)).collect()
    },
    statements: &[
        says("raw, 80 % over 50 %, the worst of all", "0.25").other(worst_kept),
        says("-M with PACMAN, 90 % over 50 %", "above 0.9").kept(M, PACMAN, 90),
        says("-PH with PACMAN, 80 % over 50 %", "below 0.8").kept(PH, PACMAN, 80),
        says("-FF with PACMAN, 80 % over 50 %", "below 0.8").kept(FF, PACMAN, 80),
        says("-H, PACMAN over raw at 50 %", "above 1").over(H, [PACMAN, RAW], 50),
        says("Viper, PACMAN over raw at 50 %", "above 1, more than FlatStore").over(VIPER, [PACMAN, RAW], 50),
    ],
    carries_over: "That the raw stores fall, and that moving fewer records for each byte cleaned helps on any medium. How steeply does \
                   not: the paper's four cleaners share the write bandwidth of three DIMMs with twelve service threads, and each \
                   index access in PM waits for its latency; in memory, one cleaner keeps up with one thread for longer.",
};

/// The share of its throughput at 50 % that the worst of the raw stores keeps at 80 %.
fn worst_kept(rows: &[Row]) -> Option<f64> {
    let mops = |design: Design, percent| at(design.name(), RAW, percent).find(rows);
    let kept = |design| Some(mops(design, 80)? / mops(design, 50)?);
    designs().filter_map(kept).reduce(f64::min)
}

pub(super) const YCSB: Preset = Preset {
    figure: "6",
    section: "4.2.2",
    title: "YCSB A, B, C and E at 80 %",
    about: "A is half puts, B 5 per cent, C none, over a pool that has been overwritten once; 24 threads there. Where puts are rare, a \
            window is of four operations for each write of a pool volume. E scans 95 times of a hundred, 1 to 100 records, and inserts \
            5 times; the figure has it for the trees. It runs in a pool with room, since inserts would not leave it at 80 %, with a scan \
            for every 20 records; the two tables print why they have nothing.",
    runs: ycsb,
    statements: &[
        says("A on -H, PACMAN over raw", "1.5 to 1.8").over(H, ["A, PACMAN", "A, raw"], USUAL),
        says("A on -M, PACMAN over raw", "1.5 to 1.8").over(M, ["A, PACMAN", "A, raw"], USUAL),
        says("A on Viper, PACMAN over raw", "1.5 to 1.8, the most").over(
            VIPER,
            ["A, PACMAN", "A, raw"],
            USUAL,
        ),
        says("B on -H, PACMAN over raw", "similar").over(H, ["B, PACMAN", "B, raw"], USUAL),
        says("C on -H, PACMAN over raw", "similar").over(H, ["C, PACMAN", "C, raw"], USUAL),
        says("E on -M, PACMAN over raw", "similar")
            .times(best("E, PACMAN", "run_e").of(M), best("E, raw", "run_e").of(M)),
        says("E on -FF, PACMAN over raw", "similar")
            .times(best("E, PACMAN", "run_e").of(FF), best("E, raw", "run_e").of(FF)),
    ],
    carries_over: "That nothing changes where there is little to compact. The gain of A depends on whether the cleaners are the \
                   bottleneck, as the paper's raw ones are (above 95 % busy).",
};

/// YCSB E over such records.
fn scans(config: &Config) -> Workload {
    let e = Workload::published("e").expect("YCSB has it");
    let operations = (config.records / RECORDS_PER_SCAN).max(1);
    Workload { records: config.records, operations, value_size: config.value_size, word_keys: true, ..e }
}

/// Records loaded for each scan of the run, which reads 50 of them.
const RECORDS_PER_SCAN: u64 = 20;

fn ycsb(scale: &Scale) -> Vec<Run> {
    let of = |design| {
        let config = usual(scale, design);
        let mixes = [("A", 50), ("B", 5), ("C", 0)];
        let mut runs: Vec<Run> = mixes
            .iter()
            .flat_map(|(name, put)| both(name, &config, &Overwrites { put: *put, ..mixed() }))
            .collect();
        if !design.can().ordered {
            runs.push(Run::new("E", config, Benchmark::NoScans));
            return runs;
        }
        let scans = Box::new(scans(&config));
        runs.extend(switched("E", config, || Benchmark::Ycsb(scans.clone())));
        runs
    };
    designs().flat_map(of).collect()
}
