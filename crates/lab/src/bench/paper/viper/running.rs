//! A store that runs and is restarted: YCSB (figure 13), reclamation and recovery (sections 5.3.8 and 5.3.9).

use super::super::statements::{best, mean_us, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{as_in_paper, usual};
use quipu::Design;
use quipu_bench::config::Config;
use quipu_bench::report::Row;
use quipu_bench::workload::Workload;

pub(super) const YCSB: Preset = Preset {
    figure: "13",
    section: "5.4",
    title: "YCSB, reads to writes 50:50 and 10:90, uniform and zipfian",
    about: "Keys of 8 bytes, values of 200; writes put whole values over old ones. The text does not say whether its writes \
            are of new records; keys chosen by a zipfian distribution can only be there already.",
    runs: ycsb,
    statements: &[
        says("50:50 uniform, mean time, one thread", "1.2")
            .value("µs", best("50:50 uniform", "run_50:50").one().value(mean_us)),
        says("10:90 uniform, mean time, most threads (36)", "at most 2")
            .value("µs", best("10:90 uniform", "run_10:90").most().value(mean_us)),
        says("50:50 uniform, 99.9 % of calls within", "25")
            .value("µs", best("50:50 uniform", "run_50:50").most().value(within_us)),
        says("50:50 uniform, 36 threads", "about 20").value("Mops/s", best("50:50 uniform", "run_50:50")),
        says("10:90 uniform, 36 threads", "over 19").value("Mops/s", best("10:90 uniform", "run_10:90")),
        says("50:50, mean time of zipfian over uniform, one thread", "slightly below 1")
            .times(best("50:50 uniform", "run_50:50").one(), best("50:50 zipfian", "run_50:50").one()),
    ],
    carries_over: "That zipfian choices are faster, by the processor's caches, and that writes are dearer than reads. Mean times \
                   here are threads over throughput, with the making of keys and the checking of values in them.",
};

/// The time that 99.9 % of the calls stay within, in microseconds.
fn within_us(row: &Row) -> Option<f64> {
    Some(row.p999_ns? as f64 / 1e3)
}

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
            runs.extend(scale.over_threads().map(|config| {
                let config = Config { designs: vec![Design::VIPER], ..as_in_paper(config) };
                let benchmark = Benchmark::Ycsb(Box::new(workload.clone()));
                Run::new(format!("{name} {distribution}"), config, benchmark)
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
            let config = Config { records: scale.records, prefilled: 0, ..config };
            Run::new(DELETED, config, Benchmark::Reclaim)
        };
        scale.over_threads().map(run).collect()
    },
    statements: &[
        says("get beside reclamation over get alone, 32 threads of 36", "0.98")
            .times(best(DELETED, "get beside reclaim"), best(DELETED, "get")),
        says("insert beside reclamation over insert alone, 32 threads of 36", "1")
            .times(best(DELETED, "insert beside reclaim"), best(DELETED, "insert")),
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
        let run = |config: Config| {
            let config = Config { records: scale.records, prefilled: 0, ..usual(config, scale.records) };
            Run::new("fixed", config, Benchmark::Recovery)
        };
        scale.over_threads().map(run).collect()
    },
    statements: &[
        says(
            "100 million records with 1, 2, 4, 8, 16, 36 threads: ours for as many, with the most threads",
            "38, 19, 10, 5, 4, 2.3",
        )
        .value("s", best("fixed", "recovery").most().value(|row| Some(100.0 / row.mops?))),
        says("records a second, one thread", "2.6")
            .value("million", best("fixed", "recovery").one().value(|row| row.mops)),
        says("most threads over one", "2.0 (2), 17 (36)").scaling("fixed", "recovery"),
    ],
    carries_over: "Scaling, as far as the index is built by all threads; PM is read more slowly than DRAM, but in long runs.",
};
