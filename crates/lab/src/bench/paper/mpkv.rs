//! MPKV's evaluation (Wang, Zhu, Shu: "A Multicore-Friendly Persistent Memory Key-Value Store", in Chinese,
//! section 4), and what it does not show: writers that meet.
//!
//! Its rival pmemkv is not ours to run: `quipu-rivals paper mpkv` runs the same figures with it in the same
//! run. The mix of a figure is a workload of YCSB's kind, with keys of eight bytes chosen uniformly.

use super::statements::{Cell, best, says};
use super::{Benchmark, Paper, Preset, Run, Scale};
use quipu::Design;
use quipu_bench::config::Config;
use quipu_bench::workload::Workload;

pub(super) static PAPER: Paper = Paper {
    name: "mpkv",
    title: "Wang, Zhu, Shu: A Multicore-Friendly Persistent Memory Key-Value Store. Tsinghua University (in Chinese)",
    machine: "Xeon Gold 6240M, one socket, 18 cores, six 256 GB Optane DIMMs, 192 GB DRAM; 100 million keys of 8 bytes, chosen \
              uniformly, values of 64, 18 threads",
    presets: &[QUERIES, SIZES, WRITE_INTENSIVE, READ_INTENSIVE, CONTENTION],
    compared: None,
    batches: false,
};

const MPKV: &str = "mpkv";
const BASELINE: &str = "mpkv-baseline";
/// As `quipu-rivals` calls it.
const PMEMKV: &str = "pmemkv:process";

/// The phase that all figures run and compare.
const PHASE: &str = "run_mix";

/// The paper's number for pmemkv, of no figure in particular.
const OVER_PMEMKV: &str = "1.7 to 6.2 in all figures";

const USUAL_VALUE: usize = 64;

fn designs() -> Vec<Design> {
    vec![Design::MPKV, Design::MPKV_BASELINE, Design::QUIPU]
}

/// So many keys, and of the calls so many per cent queries.
fn mix(keys: u64, operations: u64, queries: u64, value_size: usize) -> Workload {
    let text = format!(
        "recordcount={keys}\noperationcount={operations}\nreadproportion={}\nupdateproportion={}\n\
         requestdistribution=uniform\nfieldcount=1\nfieldlength={value_size}\nwordkeys=true",
        queries as f64 / 100.0,
        (100 - queries) as f64 / 100.0,
    );
    Workload::parse("mix", &text).expect("all its properties are known")
}

fn run(setting: String, config: Config, workload: &Workload) -> Run {
    Run::new(setting, Config { designs: designs(), ..config }, Benchmark::Ycsb(Box::new(workload.clone())))
}

/// One mix over all numbers of threads.
fn over_threads(scale: &Scale, queries: u64) -> Vec<Run> {
    let workload = mix(scale.records, scale.records, queries, USUAL_VALUE);
    scale.over_threads().map(|config| run(percent(queries), config, &workload)).collect()
}

fn percent(queries: u64) -> String {
    format!("{queries} % queries")
}

/// The throughput of a design in a mix.
const fn of(setting: &'static str, design: &'static str) -> Cell {
    best(setting, PHASE).of(design)
}

const QUERIES: Preset = Preset {
    figure: "4",
    section: "4.2",
    title: "throughput over the share of queries",
    about: "Values of 64 bytes; what is no query is an update. Each with every number of threads; the paper has 18.",
    runs: |scale| {
        let of = |queries: u64| over_threads(scale, queries);
        [0, 20, 40, 50, 60, 80, 100].into_iter().flat_map(of).collect()
    },
    statements: &[
        says("no queries, MPKV over its baseline, most threads (18)", "1.18")
            .times(of("0 % queries", MPKV).most(), of("0 % queries", BASELINE).most()),
        says("queries alone, MPKV over its baseline, most threads (18)", "1.99")
            .times(of("100 % queries", MPKV).most(), of("100 % queries", BASELINE).most()),
        says("no queries, MPKV over pmemkv, most threads (18)", OVER_PMEMKV)
            .times(of("0 % queries", MPKV).most(), of("0 % queries", PMEMKV).most()),
        says("queries alone, MPKV over pmemkv, most threads (18)", OVER_PMEMKV)
            .times(of("100 % queries", MPKV).most(), of("100 % queries", PMEMKV).most()),
    ],
    carries_over: "That pmemkv pays for its transactions and for keys without fingerprints. The baseline's locks cost writes to PM, which \
                   memory has enough bandwidth for, and lines that go from core to core, which takes many cores.",
};

const SIZES: Preset = Preset {
    figure: "5",
    section: "4.3",
    title: "value sizes",
    about: "Half queries; as many records of each size. With the most threads.",
    runs: |scale| {
        let of = |value_size: usize| {
            let workload = mix(scale.records, scale.records, 50, value_size);
            run(format!("{value_size} B"), scale.most_threads(), &workload)
        };
        [64, 128, 256, 512, 1024].map(of).into()
    },
    statements: &[
        says("smallest values, MPKV over its baseline", "1.22")
            .times(of("64 B", MPKV).most(), of("64 B", BASELINE).most()),
        says("largest values, MPKV over its baseline", "1.12")
            .times(of("1024 B", MPKV).most(), of("1024 B", BASELINE).most()),
        says("values of 128 bytes over those of 64, MPKV", "slightly below 1")
            .times(of("128 B", MPKV).most(), of("64 B", MPKV).most()),
    ],
    carries_over: "That larger values cost more. Optane writes 256 bytes at a time, so that 64 and 128 cost it the same; memory writes lines.",
};

const WRITE_INTENSIVE: Preset = Preset {
    figure: "6",
    section: "4.4",
    title: "threads, half queries",
    about: "Values of 64 bytes.",
    runs: |scale| over_threads(scale, 50),
    statements: &[
        says("MPKV over its baseline, one thread (up to four)", "about 1.08")
            .times(of("50 % queries", MPKV).one(), of("50 % queries", BASELINE).one()),
        says("MPKV over its baseline, most threads (18)", "1.22")
            .times(of("50 % queries", MPKV).most(), of("50 % queries", BASELINE).most()),
        says("MPKV over pmemkv, most threads (18)", OVER_PMEMKV)
            .times(of("50 % queries", MPKV).most(), of("50 % queries", PMEMKV).most()),
    ],
    carries_over: "What few threads show: the baseline is saturated by twelve there.",
};

const READ_INTENSIVE: Preset = Preset {
    figure: "7",
    section: "4.4",
    title: "threads, 95 % queries",
    about: "Values of 64 bytes.",
    runs: |scale| over_threads(scale, 95),
    statements: &[says("MPKV over pmemkv, most threads (18)", OVER_PMEMKV)
        .times(of("95 % queries", MPKV).most(), of("95 % queries", PMEMKV).most())],
    carries_over: "That readers scale, as far as there are processors. That the baseline's scale worse takes more of them.",
};

/// Whether puts that meet are eliminated, as settings end.
const SWITCH: &str = "eliminate";

const CONTENTION: Preset = Preset {
    figure: "contention",
    section: "3.3",
    title: "updates of few keys, with and without elimination",
    about: "No figure of the paper's, whose keys are uniform: updates alone of one key and of 16, with the most threads.",
    runs: |scale| {
        let mut runs = Vec::new();
        for keys in [1, 16] {
            let workload = mix(keys, scale.records * 4, 0, USUAL_VALUE);
            for value in ["on", "off"] {
                let setting = format!("{}, {value}", hot(keys));
                runs.push(run(setting, scale.most_threads().with(SWITCH, value), &workload));
            }
        }
        runs
    },
    statements: &[
        says("MPKV, one key, eliminating over not", "(more than 1)")
            .times(of("1 hot key, on", MPKV), of("1 hot key, off", MPKV)),
        says("quipu, one key, eliminating over not", "(not built)")
            .times(of("1 hot key, on", "quipu"), of("1 hot key, off", "quipu")),
        says("MPKV, 16 keys, eliminating over not", "(more than 1)")
            .times(of("16 hot keys, on", MPKV), of("16 hot keys, off", MPKV)),
    ],
    carries_over: "How often writers meet depends on how many there are and on how long a write takes: on PM longer than in memory.",
};

fn hot(keys: u64) -> String {
    if keys == 1 { "1 hot key".into() } else { format!("{keys} hot keys") }
}
