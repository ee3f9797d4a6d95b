//! A store that runs and is restarted: YCSB (figure 13), reclamation and recovery (sections 5.3.8 and 5.3.9).

use super::super::rows::Which;
use super::super::{Benchmark, Preset, Run, Scale, Statement};
use super::{as_in_paper, usual};
use crate::bench::config::Config;
use crate::bench::report::Row;
use crate::workload::Workload;
use quipu::Design;

pub(super) const YCSB: Preset = Preset {
    figure: "13",
    section: "5.4",
    title: "YCSB, reads to writes 50:50 and 10:90, uniform and zipfian",
    about: "Keys of 8 bytes, values of 200; writes put whole values over old ones. The text does not say whether its writes \
            are of new records; keys chosen by a zipfian distribution can only be there already.",
    runs: ycsb,
    statements: &[
        Statement {
            what: "50:50 uniform, mean time, one thread",
            paper: "1.2",
            unit: "µs",
            ours: |rows| rows.mean_us("50:50 uniform", "run_50:50", Which::One),
        },
        Statement {
            what: "10:90 uniform, mean time, most threads (36)",
            paper: "at most 2",
            unit: "µs",
            ours: |rows| rows.mean_us("10:90 uniform", "run_10:90", Which::Most),
        },
        Statement {
            what: "50:50 uniform, 99.9 % of calls within",
            paper: "25",
            unit: "µs",
            ours: |rows| {
                let within = |row: &Row| Some(row.p999_ns? as f64 / 1e3);
                rows.value(("50:50 uniform", "run_50:50"), Which::Most, within)
            },
        },
        Statement {
            what: "50:50 uniform, 36 threads",
            paper: "about 20",
            unit: "Mops/s",
            ours: |rows| rows.mops("50:50 uniform", "run_50:50"),
        },
        Statement {
            what: "10:90 uniform, 36 threads",
            paper: "over 19",
            unit: "Mops/s",
            ours: |rows| rows.mops("10:90 uniform", "run_10:90"),
        },
        Statement {
            what: "50:50, mean time of zipfian over uniform, one thread",
            paper: "slightly below 1",
            unit: "times",
            ours: |rows| {
                let zipfian = rows.mean_us("50:50 zipfian", "run_50:50", Which::One)?;
                Some(zipfian / rows.mean_us("50:50 uniform", "run_50:50", Which::One)?)
            },
        },
    ],
    carries_over: "That zipfian choices are faster, by the processor's caches, and that writes are dearer than reads. Mean times \
                   here are threads over throughput, with the making of keys and the checking of values in them.",
};

fn ycsb(scale: &Scale) -> Vec<Run> {
    let mut runs = Vec::new();
    for (name, read) in [("50:50", 0.5), ("10:90", 0.1)] {
        for distribution in ["uniform", "zipfian"] {
            let operations = (scale.records / 2).max(1);
            let text = format!(
                "recordcount={}\noperationcount={operations}\nreadproportion={read}\nupdateproportion={}\n\
                 requestdistribution={distribution}\nfieldcount=1\nfieldlength=200\nwordkeys=true",
                scale.records,
                1.0 - read,
            );
            let workload = Workload::parse(name, &text).expect("all its properties are known");
            runs.extend(scale.over_threads().map(|config| Run {
                setting: format!("{name} {distribution}"),
                config: Config { designs: vec![Design::VIPER], ..as_in_paper(config) },
                benchmark: Benchmark::Ycsb(Box::new(workload.clone())),
            }));
        }
    }
    runs
}

pub(super) const RECLAMATION: Preset = Preset {
    figure: "5.3.8",
    section: "5.3.8",
    title: "reclamation under load",
    about: "A third of the records deleted at random; gets, and on another store inserts, alone and beside one thread that \
            reclaims every block with a tenth free. Reclamation begins with them and may end earlier or later: see its \
            seconds. On the simulator, reclamation alone.",
    runs: |scale| {
        let run = |config: Config| {
            let config = usual(config, scale.records).with("reclaim-percent", "10");
            Run {
                setting: "a third deleted".to_owned(),
                config: Config { records: scale.records, prefilled: 0, ..config },
                benchmark: Benchmark::Reclaim,
            }
        };
        scale.over_threads().map(run).collect()
    },
    statements: &[
        Statement {
            what: "get beside reclamation over get alone, 32 threads of 36",
            paper: "0.98",
            unit: "times",
            ours: |rows| rows.times((DELETED, "get beside reclaim"), (DELETED, "get")),
        },
        Statement {
            what: "insert beside reclamation over insert alone, 32 threads of 36",
            paper: "1",
            unit: "times",
            ours: |rows| rows.times((DELETED, "insert beside reclaim"), (DELETED, "insert")),
        },
    ],
    carries_over: "Only where a processor is free for the thread that reclaims: with as many threads at work as there are \
                   processors, it takes its share of their time.",
};

const DELETED: &str = "a third deleted";

pub(super) const RECOVERY: Preset = Preset {
    figure: "5.3.9",
    section: "5.3.9",
    title: "recovery over threads",
    about: "Records loaded, the store abandoned and opened again by so many threads (recovery), then closed and opened \
            (reopen, which is the same: as in the paper there is no checkpoint).",
    runs: |scale| {
        let run = |config: Config| Run {
            setting: "fixed".to_owned(),
            config: Config { records: scale.records, prefilled: 0, ..usual(config, scale.records) },
            benchmark: Benchmark::Recovery,
        };
        scale.over_threads().map(run).collect()
    },
    statements: &[
        Statement {
            what: "100 million records with 1, 2, 4, 8, 16, 36 threads: ours for as many, with the most threads",
            paper: "38, 19, 10, 5, 4, 2.3",
            unit: "s",
            ours: |rows| Some(100.0 / rows.mops("fixed", "recovery")?),
        },
        Statement {
            what: "records a second, one thread",
            paper: "2.6",
            unit: "million",
            ours: |rows| rows.value(("fixed", "recovery"), Which::One, |row| row.mops),
        },
        Statement {
            what: "most threads over one",
            paper: "2.0 (2), 17 (36)",
            unit: "times",
            ours: |rows| rows.scaling("fixed", "recovery"),
        },
    ],
    carries_over: "Scaling, as far as the index is built by all threads; PM is read more slowly than DRAM, but in long runs.",
};
