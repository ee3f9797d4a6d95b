//! Why it is built as it is: the medium (figure 1), updates, placement and steps (figures 10 to 12).

use super::super::statements::{best, mean_us, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{MODELLED, MODELLED_LATE, TIMED, TIMED_LATE, ops, usual};
use crate::bench::patterns::Pattern;
use quipu::MediumKind;
use quipu_bench::config::Config;
use quipu_bench::ops::OpsPhase;

pub(super) const PATTERNS: Preset = Preset {
    figure: "1",
    section: "2.1, 3.1",
    title: "access patterns of the medium, without a store",
    about: "Lines of 64 bytes, each made durable before the next: in a log for each writer (1a), at random (1b), in few logs \
            that writers share (1c); and pages of 4 KiB, aligned and not (1d). Rows of medium sim are 32 writers on six \
            modelled DIMMs, one write of each at a time.",
    runs: patterns,
    statements: &[
        says(
            "mean time of a random write over a sequential one, 32 threads (table 1)",
            "3.9 (PM), 1.5 (DRAM)",
        )
        .times(best(TIMED, "64 B in a log each"), best(TIMED, "64 B at random")),
        says("bytes that the media write for 64 bytes at random (2.1)", "256")
            .value("bytes", best(MODELLED, "64 B at random").one().value(|row| row.media_write_bytes_per_op)),
        says("of 32 writers to one log, those at one DIMM (3.1)", "32")
            .value("writers", best(MODELLED, "64 B in one log").one().value(|row| row.writers_at_one_dimm)),
        says("mean time of 4 KiB, 2 KiB off, over aligned (3.1)", "1.18")
            .times(best(TIMED, "4 KiB, aligned"), best(TIMED, "4 KiB, 2048 B off")),
        says("DIMMs that 4 KiB, 2 KiB off, are written to (3.1)", "2")
            .value("DIMMs", best(MODELLED, "4 KiB, 2048 B off").one().value(|row| row.dimms_per_op)),
    ],
    carries_over: "DRAM has neither a write-combining buffer of 256-byte blocks nor DIMMs that a page is bound to, so the \
                   order of writes and their alignment should hardly show in its times. What the model counts are the \
                   causes that the paper names; how many nanoseconds they cost is only to be had on PM.",
};

fn patterns(scale: &Scale) -> Vec<Run> {
    let shapes = [
        Pattern::OwnLogs,
        Pattern::Random,
        Pattern::Logs(1),
        Pattern::Logs(2),
        Pattern::Logs(8),
        Pattern::Pages(0),
        Pattern::Pages(1024),
        Pattern::Pages(2048),
    ];
    let run = |setting: &str, config: Config, records: u64| {
        let config = Config { records, operations: records, ..config };
        Run::new(setting, config, Benchmark::Patterns(shapes.to_vec()))
    };
    let sim = scale.on_sim();
    let timed = scale.over_threads().filter(|_| !scale.is_simulated());
    timed
        .map(|config| run(TIMED, config, scale.records))
        // A round is 32 writes.
        .chain([run(MODELLED, sim.base.clone(), sim.records * 16)])
        .collect()
}

pub(super) const UPDATES: Preset = Preset {
    figure: "10",
    section: "5.3.5",
    title: "update strategies",
    about: "Eight bytes of a value, in place (update_in_place), or by reading the record and putting it again \
            (read_modify_write); beside them puts that do not read (update), and all of it published late, which is ours.",
    runs: |scale| {
        let phases = [OpsPhase::Update, OpsPhase::ReadModifyWrite, OpsPhase::UpdateInPlace];
        let run = |setting: &str, config: Config, records: u64| {
            let config = usual(config, records);
            let config = Config { records, prefilled: 0, ..config };
            ops(setting, config, &phases)
        };
        let sim = scale.on_sim();
        let timed = scale.over_threads().filter(|_| !scale.is_simulated());
        let both = |settings: [&str; 2], config: &Config, records: u64| {
            let [at_once, late] = settings;
            [run(at_once, config.clone(), records), run(late, config.clone().with("late", "on"), records)]
        };
        timed
            .flat_map(|config| both([TIMED, TIMED_LATE], &config, scale.records))
            .chain(both([MODELLED, MODELLED_LATE], &sim.base, sim.records))
            .collect()
    },
    statements: &[
        says("in place over copy on write", "more than 2")
            .times(best(TIMED, "update_in_place"), best(TIMED, "read_modify_write")),
        says("persists of an update in place (4.4)", "1")
            .value("fences", best(MODELLED, "update_in_place").one().value(|row| row.fences_per_op)),
        says("persists of a copy on write (listing 1: record, bit, the old one's bit)", "3")
            .value("fences", best(MODELLED, "read_modify_write").one().value(|row| row.fences_per_op)),
        says("persists of a put that is published late", "(not built)")
            .value("fences", best(MODELLED_LATE, "update").one().value(|row| row.fences_per_op)),
        says("update, published late over before it returns", "(not built)")
            .between("update", [TIMED_LATE, TIMED]),
    ],
    carries_over: "The fences and lines saved, exactly; the ratio of times in kind. On PM a copy costs more than here, since \
                   its record takes bandwidth of the DIMMs.",
};

pub(super) const VERSIONS: Preset = Preset {
    figure: "11",
    section: "5.3.6",
    title: "placement: hybrid, all in PM, all in DRAM, unaligned",
    about: "Viper (hybrid); Viper with pages moved by 2048 bytes off the DIMMs' boundaries (unaligned); Viper with its index in \
            PM (all in PM); Viper without flushes and fences (all in DRAM). Rows of medium sim count what six modelled DIMMs see.",
    runs: versions,
    statements: &[
        says("insert, unaligned over hybrid", "0.89").between("insert", ["unaligned", "hybrid"]),
        says("get, unaligned over hybrid", "above 0.99").between("get", ["unaligned", "hybrid"]),
        says("insert, all in PM over hybrid", "about 0.33").between("insert", ["all in PM", "hybrid"]),
        says("get, all in PM over hybrid", "about 0.33").between("get", ["all in PM", "hybrid"]),
        says("insert, hybrid over all in DRAM", "about 0.67").between("insert", ["hybrid", "all in DRAM"]),
        says("get, hybrid over all in DRAM", "about 0.67").between("get", ["hybrid", "all in DRAM"]),
        says("mean time of an insert, all in DRAM", "1.6")
            .value("µs", best("all in DRAM", "insert").most().value(mean_us)),
        says("bytes that the media write for an insert, all in PM over hybrid", "more").times(
            best("all in PM, modelled", "insert").value(|row| row.media_write_bytes_per_op),
            best("hybrid, modelled", "insert").value(|row| row.media_write_bytes_per_op),
        ),
        says("DIMMs that an aligned insert is written to (3.1)", "1")
            .value("DIMMs", best("hybrid, modelled", "insert").one().value(|row| row.dimms_per_op)),
        says("DIMMs that an unaligned insert is written to", "up to 2")
            .value("DIMMs", best("unaligned, modelled", "insert").one().value(|row| row.dimms_per_op)),
    ],
    carries_over: "On memory that stands in for PM, hybrid and all in DRAM differ by the persistence instructions alone, not by \
                   the slower medium: gets should be alike, and inserts closer than the paper's. Alignment can only show in \
                   the modelled DIMMs.",
};

fn versions(scale: &Scale) -> Vec<Run> {
    let unaligned = |config: Config| config.with("alignment-shift", "2048");
    let all_in_pm = |config: Config| config.with("offset-map", "pm");
    let run = |setting: &str, config: Config| ops(setting, config, &[OpsPhase::Get]);
    let mut runs = Vec::new();
    if !scale.is_simulated() {
        let hybrid = usual(scale.most_threads(), scale.records);
        // Without persistence instructions a pool is memory, wherever the others are.
        let dram = Config { persists: false, pool: None, medium: MediumKind::Dram, ..hybrid.clone() };
        runs.push(run("hybrid", hybrid.clone()));
        runs.push(run("unaligned", unaligned(hybrid.clone())));
        runs.push(run("all in PM", all_in_pm(hybrid)));
        runs.push(run("all in DRAM", dram));
    }
    let sim = scale.on_sim();
    let counted = usual(sim.base, sim.records);
    runs.push(run("hybrid, modelled", counted.clone()));
    runs.push(run("unaligned, modelled", unaligned(counted.clone())));
    runs.push(run("all in PM, modelled", all_in_pm(counted)));
    runs
}

pub(super) const BREAKDOWN: Preset = Preset {
    figure: "12",
    section: "5.3.7",
    title: "steps of an operation",
    about: "Each operation as a whole, and its steps alone: the record (page, lock, data, persistence) and the map (with \
            the look at the key in PM). The paper takes times within a mix of all operations; steps alone overlap with \
            their like, so here they are no parts of a sum.",
    runs: |scale| {
        let run = |setting: &str, config: Config, records: u64| {
            let config = Config { records, prefilled: 0, ..usual(config, records) };
            Run::new(setting, config, Benchmark::Steps)
        };
        let sim = scale.on_sim();
        let counted = Config { counts_dimms: false, ..sim.base.clone() };
        let timed = (!scale.is_simulated()).then(|| run(TIMED, scale.most_threads(), scale.records));
        timed.into_iter().chain([run(MODELLED, counted, sim.records)]).collect()
    },
    statements: &[
        says("put: share of the record (PM)", "about 60")
            .share(best(TIMED, "insert: record"), best(TIMED, "insert")),
        says("get: share of the map and the look at the key", "more than 50")
            .share(best(TIMED, "get: map"), best(TIMED, "get")),
        says("get: share of the page and of copying the record", "about 40 (20 + 20)")
            .share(best(TIMED, "get: record"), best(TIMED, "get")),
        says("update in place: share of the page, its lock and the word", "more than 30")
            .share(best(TIMED, "update_in_place: record"), best(TIMED, "update_in_place")),
        says("delete: share of the page, its lock and the bit", "more than 30")
            .share(best(TIMED, "remove: record"), best(TIMED, "remove")),
    ],
    carries_over: "That a put is mostly its record, and that a get pays for its map as much as for its record. The shares do not: \
                   they depend on how much slower the medium is than DRAM, and on the index.",
};
