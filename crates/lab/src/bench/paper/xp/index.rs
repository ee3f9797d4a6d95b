//! Figure 15: the Global Index, and the cost of reads where data have left it.

use super::super::statements::{Cell, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{KEY, RECORD, ROCKSDB, VALUE, XP, with_pool};
use crate::bench::steady::SteadyLoad;
use quipu_bench::config::Config;
use quipu_bench::report::Row;
use quipu_bench::workload::Workload;

pub(super) const INDEX: Preset = Preset {
    figure: "15",
    section: "4.4",
    title: "the Global Index: value sizes, and steadiness",
    about: "Keys of 8 bytes and values of 64 bytes to 4 KiB, as many bytes of each as --records of 8 + 500 have, with a pool that \
            all data fit: a load in random order, then random reads, then scans of 100 records, each loaded anew, with the \
            most threads. Then half puts and half gets of the paper's usual records by the second, for a second for every \
            30,000 records up to ten minutes: all in PM, and with a pool of half the data. Values of 64 bytes also with an index \
            for each memtable, which is merged into the Global Index (merge=key, as in the paper), or is not (merge=off); else \
            writes go into the Global Index at once. No setting of xp dumps each memtable by itself, as XS does: figure dumps \
            shows what reads of several dumps cost. RocksDB and fjall in place of XS: quipu-rivals paper xp --figure 15.",
    runs: index,
    statements: &[
        says("random reads, XP over XS (RocksDB), values of 64 bytes", "up to more than 113")
            .times(cell("64 B, gets", "run_read", XP), cell("64 B, gets", "run_read", ROCKSDB)),
        says("random reads, XP over XS (RocksDB), values of 4 KiB", "up to more than 113")
            .times(cell("4096 B, gets", "run_read", XP), cell("4096 B, gets", "run_read", ROCKSDB)),
        says("random scans, XP over XS (RocksDB), values of 64 bytes", "up to more than 21")
            .times(cell("64 B, scans", "run_scan", XP), cell("64 B, scans", "run_scan", ROCKSDB)),
        says("random scans, XP over XS (RocksDB), values of 4 KiB", "up to more than 21")
            .times(cell("4096 B, scans", "run_scan", XP), cell("4096 B, scans", "run_scan", ROCKSDB)),
        says("random writes, XP over XS (RocksDB), values of 64 bytes", "(more than 1)")
            .times(cell("64 B, gets", "load_read", XP), cell("64 B, gets", "load_read", ROCKSDB)),
        says("random writes, XP over XS (RocksDB), values of 4 KiB", "(more than 1)")
            .times(cell("4096 B, gets", "load_read", XP), cell("4096 B, gets", "load_read", ROCKSDB)),
        says("random reads, merge=key over memtables alone", "(more than 1)")
            .times(cell(KEY_GETS, "run_read", XP), cell(OFF_GETS, "run_read", XP)),
        says("random scans, merge=key over memtables alone", "(more than 1)")
            .times(cell(KEY_SCANS, "run_scan", XP), cell(OFF_SCANS, "run_scan", XP)),
        says("random writes, merge=key over memtables alone", "(about 1)")
            .times(cell(KEY_GETS, "load_read", XP), cell(OFF_GETS, "load_read", XP)),
        says("random reads, writes into the Global Index over merge=key", "(not measured)")
            .times(cell(DIRECT_GETS, "run_read", XP), cell(KEY_GETS, "run_read", XP)),
        says("random scans, writes into the Global Index over merge=key", "(not measured)")
            .times(cell(DIRECT_SCANS, "run_scan", XP), cell(KEY_SCANS, "run_scan", XP)),
        says("random writes, writes into the Global Index over merge=key", "(not measured)")
            .times(cell(DIRECT_GETS, "load_read", XP), cell(KEY_GETS, "load_read", XP)),
        says("half puts, XP over XS (RocksDB)", "up to 15")
            .times(cell(STEADY, "steady", XP), cell(STEADY, "steady", ROCKSDB)),
        says("half puts, XP, slowest second of the fastest", "more than 65")
            .value("%", cell(STEADY, "steady", XP).value(slowest_of_fastest)),
        says("half puts, XP with levels, the same", "(not measured)")
            .value("%", cell(STEADY_BEYOND, "steady", XP).value(slowest_of_fastest)),
        says("half puts, XS (RocksDB), the same", "less than 15")
            .value("%", cell(STEADY, "steady", ROCKSDB).value(slowest_of_fastest)),
    ],
    carries_over: "That one index over all records in PM has one place to look at. The paper's factors come from an XS that may \
                   not compact its first level, and has up to 58 files there; RocksDB compacts as it likes here, and so is not \
                   as slow. With the paper's 50 GB neither has its data in caches.",
};

const fn cell(setting: &'static str, phase: &'static str, design: &'static str) -> Cell {
    best(setting, phase).of(design)
}

const DIRECT_GETS: &str = "64 B, gets, merge=direct";
const DIRECT_SCANS: &str = "64 B, scans, merge=direct";
const KEY_GETS: &str = "64 B, gets, merge=key";
const KEY_SCANS: &str = "64 B, scans, merge=key";
const OFF_GETS: &str = "64 B, gets, merge=off";
const OFF_SCANS: &str = "64 B, scans, merge=off";
const STEADY: &str = "half puts";
const STEADY_BEYOND: &str = "half puts, data twice the pool";

/// Bytes of values.
const SIZES: [u64; 4] = [64, 256, 1024, 4096];

/// Records of a scan.
const SCANNED: u64 = 100;

/// Records of the store for each scan.
const SCANS: u64 = 10;

/// Records for a second of the steady run, and its longest time.
const RECORDS_OF_A_SECOND: u64 = 30_000;
const LONGEST: u64 = 600;

/// The throughput of the slowest second over that of the fastest, in per cent.
fn slowest_of_fastest(row: &Row) -> Option<f64> {
    let seconds = &row.steady.as_ref()?.times.as_ref()?.mops_by_second;
    let fastest = seconds.iter().copied().reduce(f64::max)?;
    Some(seconds.iter().copied().reduce(f64::min)? / fastest * 100.0)
}

/// A workload with keys of eight bytes; the text adds to its properties, or has others for them.
fn workload(name: &str, (records, operations): (u64, u64), value_size: usize, text: &str) -> Workload {
    let usual = format!(
        "recordcount={records}\noperationcount={}\nfieldcount=1\nfieldlength={value_size}\nwordkeys=true\n",
        operations.max(1)
    );
    Workload::parse(name, &(usual + text)).expect("all its properties are known")
}

fn index(scale: &Scale) -> Vec<Run> {
    let bytes = scale.records * RECORD;
    let all_in_pm = || with_pool(scale.most_threads(), None);
    // Half of this pool has room for all records of the smallest size: nothing is dumped.
    let merged =
        |merge: &str| with_pool(scale.most_threads(), Some(bytes * 7 + (128 << 20))).with("merge", merge);
    let of_size = |size: u64, merge: Option<&str>| {
        let records = (bytes / (KEY as u64 + size)).max(1);
        let config = || merge.map_or_else(all_in_pm, merged);
        let merge = merge.map_or_else(String::new, |merge| format!(", merge={merge}"));
        let run = |what: &str, name: &str, operations: u64, mix: &str| {
            let workload = workload(name, (records, operations), size as usize, mix);
            Run::new(format!("{size} B, {what}{merge}"), config(), Benchmark::Ycsb(workload.into()))
        };
        let scans = format!(
            "readproportion=0\nupdateproportion=0\nscanproportion=1\nminscanlength={SCANNED}\nmaxscanlength={SCANNED}\n"
        );
        [
            run("gets", "read", records, "readproportion=1\nupdateproportion=0\n"),
            run("scans", "scan", records / SCANS, &scans),
        ]
    };
    let seconds = (scale.records / RECORDS_OF_A_SECOND).clamp(1, LONGEST);
    let steady = |setting: &str, config: Config| {
        let load = SteadyLoad { seconds, ..SteadyLoad::default() };
        Run::new(setting, of_paper(config, scale.records), Benchmark::Steady(load))
    };
    let mut runs: Vec<Run> = SIZES.into_iter().flat_map(|size| of_size(size, None)).collect();
    if !scale.is_simulated() {
        runs.extend(["direct", "key", "off"].into_iter().flat_map(|merge| of_size(SIZES[0], Some(merge))));
        runs.push(steady(STEADY, all_in_pm()));
        runs.push(steady(STEADY_BEYOND, with_pool(scale.most_threads(), Some(bytes / 2))));
    }
    runs
}

/// With the paper's usual records.
fn of_paper(config: Config, records: u64) -> Config {
    Config { records, operations: records, key_size: KEY, value_size: VALUE, ..config }
}

pub(super) const DUMPS: Preset = Preset {
    figure: "dumps",
    section: "4.4",
    title: "reads in the Global Index, of several dumps, and of compacted levels",
    about: "No figure of the paper's, whose XS shows what unsorted data blocks cost; xp has no setting that dumps memtables one by \
            one. Records of 8 + 500 bytes, random gets and scans of 100 with the most threads: all in PM; about three dumps \
            below a pool of six tenths of the data, without a thread that compacts; and the same dumped and compacted to the end. \
            Row compact is the time that this takes.",
    runs: dumps,
    statements: &[
        says("gets, all in PM over several dumps", "more than 113 (58 files, on the SSD)")
            .times(cell(IN_PM, "get", XP), cell(SEVERAL, "get", XP)),
        says("scans, all in PM over several dumps", "more than 21 (58 files, on the SSD)")
            .times(cell(IN_PM, "scan", XP), cell(SEVERAL, "scan", XP)),
        says("gets, all in PM over compacted levels", "(more than 1)")
            .times(cell(IN_PM, "get", XP), cell(COMPACTED, "get", XP)),
        says("scans, all in PM over compacted levels", "(more than 1)")
            .times(cell(IN_PM, "scan", XP), cell(COMPACTED, "scan", XP)),
    ],
    carries_over: "That each run which may have a key is one more to look at, and that the index in PM is one. Files are in the page \
                   cache here, or in the cache of the levels, and so none of the times has a read of an SSD in it.",
};

const IN_PM: &str = "all in PM";
const SEVERAL: &str = "several dumps";
const COMPACTED: &str = "compacted";

fn dumps(scale: &Scale) -> Vec<Run> {
    if scale.is_simulated() {
        return Vec::new();
    }
    let pool = scale.records * RECORD * 6 / 10;
    let run = |setting: &str, pool: Option<u64>, compacts: bool| {
        let config = of_paper(with_pool(scale.most_threads(), pool), scale.records);
        let config = Config { cleaner: pool.is_none(), ..config };
        Run::new(setting, config, Benchmark::Levels { compacts })
    };
    vec![run(IN_PM, None, false), run(SEVERAL, Some(pool), false), run(COMPACTED, Some(pool), true)]
}
