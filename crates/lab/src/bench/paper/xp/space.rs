//! Figures 17 and 18: the allocator of PM, and recovery.

use super::super::statements::{Cell, best, mean_us, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{KEY, MODELLED, RECORD, VALUE, XP, with_pool};
use crate::bench::allocation::{MALLOC, POOL, ZONES};
use quipu_bench::config::Config;
use quipu_bench::report::Row;

pub(super) const ALLOCATION: Preset = Preset {
    figure: "17",
    section: "4.5",
    title: "Halloc: taking and giving back",
    about: "Objects of 128 bytes to 16 KiB, taken all, then given back all, one thread: as many as --records (a million in the \
            paper), or as many as 512 MiB have room for. Halloc-pool is an object pool of that size, Halloc-zone a pool whose zones \
            have it, of at least a page. Both make an object theirs by one flush and one fence; nothing is written to it. malloc \
            is the system's, in DRAM, and makes nothing durable; its pages come when it first touches them, and those of the pool were \
            there. Times beside the paper's are means; percentiles have the clock's own share.",
    runs: allocation,
    statements: &[
        says("Halloc-pool, 128 bytes", "below 1").value("µs", taken(POOL, "take 128 B")),
        says("Halloc-pool, 16 KiB", "below 1").value("µs", taken(POOL, "take 16384 B")),
        says("Halloc-zone, 16 KiB", "below 1").value("µs", taken(ZONES, "take 16384 B")),
        says("16 KiB, Halloc-pool over Halloc-zone, time", "about 1")
            .times(taken(POOL, "take 16384 B"), taken(ZONES, "take 16384 B")),
        says("Halloc-pool, 16 KiB over 128 bytes, time", "about 1")
            .times(taken(POOL, "take 16384 B"), taken(POOL, "take 128 B")),
        says("128 bytes, Halloc-pool over malloc in DRAM, time", "(not measured)")
            .times(taken(POOL, "take 128 B"), taken(MALLOC, "take 128 B")),
        says("fences of an object of 128 bytes, Halloc-pool", "1")
            .value("fences", best(MODELLED, "take 128 B").of(POOL).value(|row| row.fences_per_op)),
        says("fences of an object of 16 KiB, Halloc-pool", "1")
            .value("fences", best(MODELLED, "take 16384 B").of(POOL).value(|row| row.fences_per_op)),
        says("lines flushed of an object of 16 KiB, Halloc-zone", "1")
            .value("lines", best(MODELLED, "take 16384 B").of(ZONES).value(|row| row.lines_flushed_per_op)),
    ],
    carries_over: "One fence and one line an object, of any size, exactly; and so times that do not depend on the size. A fence in memory \
                   costs a fraction of one on Optane. The paper's rivals are not run, and its 15 times are Ralloc's.",
};

const ALONE: &str = "alone";

/// The mean time of taking.
const fn taken(name: &'static str, phase: &'static str) -> Cell {
    best(ALONE, phase).of(name).value(mean_us)
}

/// Bytes of objects.
const SIZES: [u64; 8] = [128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10];
const SIZES_MODELLED: [u64; 2] = [128, 16 << 10];

fn allocation(scale: &Scale) -> Vec<Run> {
    let run = |setting: &str, config: Config, records, sizes: &[u64]| {
        let config = Config { records, operations: records, threads: 1, ..config };
        Run::new(setting, config, Benchmark::Allocation(sizes.to_vec()))
    };
    let sim = scale.on_sim();
    let modelled = run(MODELLED, sim.base, sim.records, &SIZES_MODELLED);
    if scale.is_simulated() {
        return vec![modelled];
    }
    vec![run(ALONE, scale.base.clone(), scale.records, &SIZES), modelled]
}

pub(super) const RECOVERY: Preset = Preset {
    figure: "18",
    section: "4.6",
    title: "recovery",
    about: "Records of 8 + 500 bytes, dropped without a close and opened again (row recovery), then closed and opened (row reopen): \
            a quarter, half and all of --records in PM, with each number of threads; then all of them over a pool of a third of the \
            data, so that most is on levels. The paper has 70 million in the Global Index, and 1 to 104 threads.",
    runs: recovery,
    statements: &[
        says("records a second of a thread, most threads", "0.30 (70 million, 64 threads in 3.6 s)")
            .value("M/s", best(ALL, "recovery").of(XP).most().value(of_a_thread)),
        says("records a second of a thread, one thread", "(nearly the same)")
            .value("M/s", best(ALL, "recovery").of(XP).one().value(of_a_thread)),
        says("most threads over one", "nearly as many times").scaling(ALL, "recovery"),
        says("a quarter of the data over all, time", "(about 0.25)").times(
            best(QUARTER, "recovery").of(XP).most().value(|row| row.seconds),
            best(ALL, "recovery").of(XP).most().value(|row| row.seconds),
        ),
        says("all in PM, recovery", "3.6 (70 million, 64 threads)")
            .value("s", best(ALL, "recovery").of(XP).most().value(|row| row.seconds)),
        says("most on levels, recovery", "(not measured)")
            .value("s", best(LEVELS, "recovery").of(XP).most().value(|row| row.seconds)),
        says("all in PM, after a close", "(not measured)")
            .value("s", best(ALL, "reopen").of(XP).most().value(|row| row.seconds)),
    ],
    carries_over: "That recovery reads the records in PM and nothing else, in threads that have memtables of their own, and that data on \
                   levels are not read at all. Memory is read faster than Optane by one thread, and is saturated by few.",
};

const QUARTER: &str = "a quarter";
const HALF: &str = "half";
const ALL: &str = "all";
const LEVELS: &str = "all, most on levels";

/// Records a second of each thread, in millions.
fn of_a_thread(row: &Row) -> Option<f64> {
    Some(row.mops? / row.threads as f64)
}

fn recovery(scale: &Scale) -> Vec<Run> {
    let bytes = scale.records * RECORD;
    let of = |config: Config| {
        let run = |setting: &str, part: u64, pool: Option<u64>| {
            let records = scale.records / part;
            let config = with_pool(config.clone(), pool);
            let config = Config { records, operations: records, key_size: KEY, value_size: VALUE, ..config };
            Run::new(setting, config, Benchmark::Recovery)
        };
        let in_pm = [run(QUARTER, 4, None), run(HALF, 2, None), run(ALL, 1, None)];
        let below = (!scale.is_simulated()).then(|| run(LEVELS, 1, Some(bytes / 3)));
        in_pm.into_iter().chain(below).collect::<Vec<_>>()
    };
    scale.over_threads().flat_map(of).collect()
}
