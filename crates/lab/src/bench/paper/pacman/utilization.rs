//! How throughput falls as the pool fills up (figures 2 and 5), and YCSB in a full one (figure 6).

use super::super::{Benchmark, Preset, Run, Scale, Statement};
use super::{PACMAN, RAW, SWITCH, USUAL, both, designs, mixed, usual};
use crate::bench::config::Config;
use crate::bench::util::Overwrites;
use crate::workload::Workload;

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
        Statement {
            what: "raw, 80 % over 50 %, the worst of all",
            paper: "0.25",
            unit: "times",
            ours: |rows| designs().filter_map(|design| rows.kept(design.name(), RAW, 80)).reduce(f64::min),
        },
        Statement {
            what: "-M with PACMAN, 90 % over 50 %",
            paper: "above 0.9",
            unit: "times",
            ours: |rows| rows.kept("flatstore-m", PACMAN, 90),
        },
        Statement {
            what: "-PH with PACMAN, 80 % over 50 %",
            paper: "below 0.8",
            unit: "times",
            ours: |rows| rows.kept("flatstore-ph", PACMAN, 80),
        },
        Statement {
            what: "-FF with PACMAN, 80 % over 50 %",
            paper: "below 0.8",
            unit: "times",
            ours: |rows| rows.kept("flatstore-ff", PACMAN, 80),
        },
        Statement {
            what: "-H, PACMAN over raw at 50 %",
            paper: "above 1",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", PACMAN, RAW, 50),
        },
        Statement {
            what: "Viper, PACMAN over raw at 50 %",
            paper: "above 1, more than FlatStore",
            unit: "times",
            ours: |rows| rows.over("viper-pacman", PACMAN, RAW, 50),
        },
    ],
    carries_over: "That the raw stores fall, and that moving fewer records for each byte cleaned helps on any medium. How steeply does \
                   not: the paper's four cleaners share the write bandwidth of three DIMMs with twelve service threads, and each \
                   index access in PM waits for its latency; in memory, one cleaner keeps up with one thread for longer.",
};

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
        Statement {
            what: "A on -H, PACMAN over raw",
            paper: "1.5 to 1.8",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "A, PACMAN", "A, raw", USUAL),
        },
        Statement {
            what: "A on -M, PACMAN over raw",
            paper: "1.5 to 1.8",
            unit: "times",
            ours: |rows| rows.over("flatstore-m", "A, PACMAN", "A, raw", USUAL),
        },
        Statement {
            what: "A on Viper, PACMAN over raw",
            paper: "1.5 to 1.8, the most",
            unit: "times",
            ours: |rows| rows.over("viper-pacman", "A, PACMAN", "A, raw", USUAL),
        },
        Statement {
            what: "B on -H, PACMAN over raw",
            paper: "similar",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "B, PACMAN", "B, raw", USUAL),
        },
        Statement {
            what: "C on -H, PACMAN over raw",
            paper: "similar",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "C, PACMAN", "C, raw", USUAL),
        },
        Statement {
            what: "E on -M, PACMAN over raw",
            paper: "similar",
            unit: "times",
            ours: |rows| rows.over_in("run_e", "flatstore-m", "E, PACMAN", "E, raw"),
        },
        Statement {
            what: "E on -FF, PACMAN over raw",
            paper: "similar",
            unit: "times",
            ours: |rows| rows.over_in("run_e", "flatstore-ff", "E, PACMAN", "E, raw"),
        },
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
            runs.push(Run { setting: "E".to_owned(), config, benchmark: Benchmark::NoScans });
            return runs;
        }
        runs.extend([(PACMAN, "on"), (RAW, "off")].map(|(kind, value)| Run {
            setting: format!("E, {kind}"),
            config: config.clone().with(SWITCH, value),
            benchmark: Benchmark::Ycsb(Box::new(scans(&config))),
        }));
        runs
    };
    designs().flat_map(of).collect()
}
