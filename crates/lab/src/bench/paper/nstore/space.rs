//! Figures 15 and 16: garbage collection and recovery.

use super::super::statements::{Cell, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{NSTORE, SOCKETS, WORD, nstore, simulated, words};
use quipu_bench::config::Config;
use quipu_bench::report::Row;

pub(super) const CLEANING: Preset = Preset {
    figure: "15",
    section: "V-F",
    title: "garbage collection by threshold, and cleaners",
    about: "All records are put, then three quarters of them updated once each, while one cleaner works: row update has the throughput of \
            the updates, and what the pool holds then; row at rest the time until the cleaner rests, and what the pool holds in the end. \
            Updates have the fewest threads. Then one to four cleaners at a threshold of 10 %. The paper has one cleaner a socket, and 2 \
            to 8. On the simulator there is no cleaner, and no threshold: all files with dead records are cleaned on request, and row at \
            rest counts that.",
    runs: cleaning,
    statements: &[
        says("update, threshold 90 % over 10 %", "(small, linear increase)")
            .times(of("90 %", UPDATE), of("10 %", UPDATE)),
        says("PM in the end, threshold 50 % over 10 %", "(slightly above 1)")
            .times(of("50 %", AT_REST).value(space), of("10 %", AT_REST).value(space)),
        says("PM in the end, threshold 90 % over 50 %", "(significantly above 1)")
            .times(of("90 %", AT_REST).value(space), of("50 %", AT_REST).value(space)),
        says("time until rest at 10 %, most cleaners over one (8 over 2)", "0.39 (reduced by 61 %)")
            .times(of("10 %, 4 cleaners", AT_REST).value(time), of("10 %, 1 cleaner", AT_REST).value(time)),
        says("records moved for an update at 10 %", "(not said)")
            .value("records", of("10 %", AT_REST).value(|row| row.moved_per_op)),
    ],
    carries_over: "That a higher threshold moves fewer records and keeps more dead ones, on any medium. All records are updated with the same \
                   likelihood, so that files of the load die alike: above 75 % none of them is cleaned, and below that all are in the end. \
                   More cleaners than processors do not help; nor do these on one node have another node to keep away from.",
};

const UPDATE: &str = "update";
const AT_REST: &str = "at rest";

const fn of(setting: &'static str, phase: &'static str) -> Cell {
    best(setting, phase).of(NSTORE)
}

fn space(row: &Row) -> Option<f64> {
    row.pm_bytes_per_record
}

fn time(row: &Row) -> Option<f64> {
    row.seconds
}

fn cleaning(scale: &Scale) -> Vec<Run> {
    let run = |setting: String, config: Config| Run::new(setting, config, Benchmark::Cleaning).of_ours();
    if scale.is_simulated() {
        let (sim, records) = simulated(scale, SOCKETS);
        return vec![run("modelled".into(), nstore(words(sim, records)))];
    }
    let config = nstore(words(scale.fewest_threads(), scale.records));
    let with = |threshold: u32| config.clone().with("gc-threshold", &threshold.to_string());
    let thresholds = (10..=90).step_by(20).map(|percent| run(format!("{percent} %"), with(percent)));
    let cleaners = [(1, "cleaner"), (2, "cleaners"), (4, "cleaners")].map(|(count, word)| {
        run(format!("10 %, {count} {word}"), with(10).with("cleaners", &count.to_string()))
    });
    thresholds.chain(cleaners).collect()
}

pub(super) const RECOVERY: Preset = Preset {
    figure: "16",
    section: "V-G",
    title: "recovery",
    about: "Dropped without a close and opened again (row recovery), then closed and opened (row reopen), with each number of threads: half, \
            all and one and a half of --records of 8 + 8 bytes, in the place of 50, 100 and 150 million; then all of them with larger \
            values. The paper has 1 to 32 threads.",
    runs: recovery,
    statements: &[
        says("all records over half of them, time, most threads (32)", "2 (2.4 over 1.2 s)")
            .times(recovered(ALL), recovered(HALF)),
        says("half as many more over all, time, most threads (32)", "2.2 (5.3 over 2.4 s)")
            .times(recovered(MORE), recovered(ALL)),
        says("all records, most threads over one", "17 (40.4 over 2.4 s)").scaling(ALL, "recovery"),
        says("records a second, one thread", "2.5 (100 million in 40.4 s)")
            .value("M/s", best(ALL, "recovery").of(NSTORE).one()),
        says("records a second, most threads (32)", "42 (100 million in 2.4 s)")
            .value("M/s", best(ALL, "recovery").of(NSTORE).most()),
        says("after a close over after a crash, time, most threads", "(not measured)")
            .times(best(ALL, "reopen").of(NSTORE).most().value(time), recovered(ALL)),
    ],
    carries_over: "That recovery reads each file once and writes nothing before the first change, and that files are divided among \
                   threads. Memory is read faster than Optane by one thread. Then the records are sorted and the index loaded, which is \
                   work of processors.",
};

const HALF: &str = "half";
const ALL: &str = "all";
const MORE: &str = "one and a half";

/// The time of recovery with the most threads.
const fn recovered(setting: &'static str) -> Cell {
    best(setting, "recovery").of(NSTORE).most().value(time)
}

/// Bytes of larger values.
const LARGER: [usize; 3] = [64, 256, 512];

fn recovery(scale: &Scale) -> Vec<Run> {
    let run = |setting: String, config: &Config, records: u64, value_size: usize| {
        let config = Config { value_size, ..words(config.clone(), records) };
        Run::new(setting, nstore(config), Benchmark::Recovery).of_ours()
    };
    let of = |config: Config| {
        let records = scale.records;
        let counts = [(HALF, records / 2), (ALL, records), (MORE, records * 3 / 2)];
        let counts = counts.map(|(setting, records)| run(setting.into(), &config, records, WORD));
        let sizes = LARGER.map(|size| run(format!("all, values of {size} B"), &config, records, size));
        counts.into_iter().chain(sizes).collect::<Vec<_>>()
    };
    scale.over_threads().flat_map(of).collect()
}
