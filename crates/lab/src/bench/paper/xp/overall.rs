//! Figures 10 and 12: YCSB on whole stores, with data larger than the pool.

use super::super::statements::{Cell, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{RECORD, ROCKSDB, VALUE, XP, in_batches, with_pool};
use quipu_bench::report::Row;
use quipu_bench::workload::{Distribution, Workload};

/// Data over the pool, in the mean of the paper's 500 GB over 200 GB, and of larger databases.
const DATA_OVER_POOL: u64 = 6;

/// Records that a scan reads in the mean.
const SCANNED: u64 = 50;

pub(super) const YCSB: Preset = Preset {
    figure: "10",
    section: "4.1",
    title: "YCSB, data larger than the pool",
    about: "Records of 8 + 500 bytes in one table, six times the pool, loaded in batches of up to 1000, with the most threads (the \
            paper has 32); as many operations as records, of E a 50th. The paper has 500 GB in 16 subtables over 200 GB of PM, and \
            runs for 30 minutes. Then xp alone with a pool that all data fit (XP-PM). RocksDB and fjall in place of XS: \
            quipu-rivals paper xp --figure 10. Their cache is as large as the pool, unless --cache says otherwise; xp has one of \
            256 MiB for its levels. D inserts records and reads the newest, as YCSB has it, and so has one choice of keys.",
    runs: ycsb,
    statements: &[
        says("A, uniform, XP over XS (RocksDB)", "3.8")
            .times(run("A uniform", "run_a"), xs("A uniform", "run_a")),
        says("F, uniform, XP over XS (RocksDB)", "2.7")
            .times(run("F uniform", "run_f"), xs("F uniform", "run_f")),
        says("B, uniform, XP over XS (RocksDB)", "1.7")
            .times(run("B uniform", "run_b"), xs("B uniform", "run_b")),
        says("D, XP over XS (RocksDB)", "1.4").times(run("D latest", "run_d"), xs("D latest", "run_d")),
        says("C, uniform, XP over XS (RocksDB)", "about 1")
            .times(run("C uniform", "run_c"), xs("C uniform", "run_c")),
        says("E, uniform, XP over XS (RocksDB)", "about 1")
            .times(run("E uniform", "run_e"), xs("E uniform", "run_e")),
        says("A, zipfian, XP over XS (RocksDB)", "(less than uniform)")
            .times(run("A zipfian", "run_a"), xs("A zipfian", "run_a")),
        says("B, zipfian, XP over XS (RocksDB)", "1.1")
            .times(run("B zipfian", "run_b"), xs("B zipfian", "run_b")),
        says("A, uniform, time of an operation, XP over XS (RocksDB; here the median)", "0.64")
            .times(run("A uniform", "run_a").value(p50), xs("A uniform", "run_a").value(p50)),
        says("A, uniform, bytes written to disks, XP over XS (RocksDB)", "0.06")
            .times(run("A uniform", "run_a").value(written), xs("A uniform", "run_a").value(written)),
        says("A, uniform, XP over XP-PM", "(less than 1)")
            .times(run("A uniform", "run_a"), run("A uniform, all in PM", "run_a")),
        says("C, uniform, XP over XP-PM", "(less than 1)")
            .times(run("C uniform", "run_c"), run("C uniform, all in PM", "run_c")),
    ],
    carries_over: "That updates of keys which are in PM are absorbed there, and that a store with a log writes each of them to \
                   it. The bytes are the kernel's count: reads that its page cache answers are none, and as long as the files \
                   fit memory all but the first are so, where the paper's direct I/O goes to the SSD. So reads cost less here \
                   than there, in all stores. A store with its log unsynced, as the rivals' level is here, does not wait for \
                   the disk as XS does. RocksDB has 64 MiB of memtables beside its cache: of fewer than a million records that is a \
                   great part, and a small pool of xp dumps small runs, which are merged the more often.",
};

/// The throughput of `xp` in a run.
const fn run(setting: &'static str, phase: &'static str) -> Cell {
    best(setting, phase).of(XP)
}

/// The same of the rival in the place of XS.
const fn xs(setting: &'static str, phase: &'static str) -> Cell {
    best(setting, phase).of(ROCKSDB)
}

fn p50(row: &Row) -> Option<f64> {
    row.p50_ns.map(|ns| ns as f64)
}

/// Bytes that an operation sends to disks.
fn written(row: &Row) -> Option<f64> {
    Some(row.disk_written_bytes? as f64 / row.ops as f64)
}

/// The workloads of a figure: letter, choice of keys, and the word for it.
const MIXES: [(&str, Distribution, &str); 11] = [
    ("a", Distribution::Uniform, "uniform"),
    ("b", Distribution::Uniform, "uniform"),
    ("c", Distribution::Uniform, "uniform"),
    ("d", Distribution::Latest, "latest"),
    ("e", Distribution::Uniform, "uniform"),
    ("f", Distribution::Uniform, "uniform"),
    ("a", Distribution::Zipfian, "zipfian"),
    ("b", Distribution::Zipfian, "zipfian"),
    ("c", Distribution::Zipfian, "zipfian"),
    ("e", Distribution::Zipfian, "zipfian"),
    ("f", Distribution::Zipfian, "zipfian"),
];

/// A workload of YCSB over the paper's records.
fn published(letter: &str, records: u64, distribution: Distribution) -> Workload {
    let published = Workload::published(letter).expect("it is one of the six");
    let each = if published.scans() { SCANNED } else { 1 };
    let operations = (records / each).max(1);
    Workload { records, operations, value_size: VALUE, word_keys: true, distribution, ..published }
}

fn ycsb(scale: &Scale) -> Vec<Run> {
    let records = scale.records;
    let of = |(letter, distribution, word): (&str, Distribution, &str), pool: Option<u64>| {
        let place = if pool.is_some() { "" } else { ", all in PM" };
        let setting = format!("{} {word}{place}", letter.to_uppercase());
        let config = in_batches(with_pool(scale.most_threads(), pool), records);
        let run = Run::new(setting, config, Benchmark::Ycsb(published(letter, records, distribution).into()));
        if pool.is_some() { run } else { run.of_ours() }
    };
    let pool = Some(records * RECORD / DATA_OVER_POOL);
    let beyond = MIXES.into_iter().filter(|_| !scale.is_simulated()).map(|mix| of(mix, pool));
    beyond.chain(MIXES.into_iter().map(|mix| of(mix, None))).collect()
}

pub(super) const SIZES: Preset = Preset {
    figure: "12",
    section: "4.1",
    title: "size of the database",
    about: "YCSB D over records of 8 + 500 bytes: half of --records, and 2, 4 and 8 times as many, with a pool of twice the \
            smallest data; as many operations as --records, with the most threads. The paper has 100 to 600 GB over 200 GB of PM \
            and 32 threads. RocksDB and fjall in place of XS: quipu-rivals paper xp --figure 12, with a cache as large as the \
            pool unless --cache says otherwise.",
    runs: sizes,
    statements: &[
        says("XP, throughput with the largest data, of that with the smallest", "73 (600 GB, of 100)")
            .share(run("1 unit", "run_d"), run("8 units", "run_d")),
        says("XS (RocksDB), the same", "12 (600 GB, of 100)")
            .share(xs("1 unit", "run_d"), xs("8 units", "run_d")),
        says("largest data, XP over XS (RocksDB)", "(more than with the smallest)")
            .times(run("8 units", "run_d"), xs("8 units", "run_d")),
        says("smallest data, XP over XS (RocksDB)", "(more than 1)")
            .times(run("1 unit", "run_d"), xs("1 unit", "run_d")),
    ],
    carries_over: "That the newest records are in PM, however many older ones there are below. A miss is a read of the page cache \
                   here as long as the files fit memory, and of the SSD there, so the rival loses less here. In a run of seconds the \
                   levels are still being compacted after the load, and that costs xp the more the more has been loaded.",
};

/// Sizes of the data, in units.
const UNITS: [u64; 4] = [1, 2, 4, 8];

fn sizes(scale: &Scale) -> Vec<Run> {
    if scale.is_simulated() {
        return Vec::new();
    }
    let unit = scale.records / 2;
    let of = |units: u64| {
        let workload =
            Workload { operations: scale.records, ..published("d", unit * units, Distribution::Latest) };
        let config = with_pool(scale.most_threads(), Some(unit * RECORD * 2));
        let config = in_batches(config, unit * units);
        let setting = if units == 1 { "1 unit".to_owned() } else { format!("{units} units") };
        Run::new(setting, config, Benchmark::Ycsb(workload.into()))
    };
    UNITS.map(of).into()
}
