//! Why it is built as it is: the medium (figure 1), updates, placement and steps (figures 10 to 12).

use super::super::rows::Which;
use super::super::{Benchmark, Preset, Run, Scale, Statement};
use super::{MODELLED, MODELLED_LATE, TIMED, TIMED_LATE, ops, usual};
use crate::bench::config::Config;
use crate::bench::ops::OpsPhase;
use crate::bench::patterns::Pattern;
use quipu::MediumKind;

pub(super) const PATTERNS: Preset = Preset {
    figure: "1",
    section: "2.1, 3.1",
    title: "access patterns of the medium, without a store",
    about: "Lines of 64 bytes, each made durable before the next: in a log for each writer (1a), at random (1b), in few logs \
            that writers share (1c); and pages of 4 KiB, aligned and not (1d). Rows of medium sim are 32 writers on six \
            modelled DIMMs, one write of each at a time.",
    runs: patterns,
    statements: &[
        Statement {
            what: "mean time of a random write over a sequential one, 32 threads (table 1)",
            paper: "3.9 (PM), 1.5 (DRAM)",
            unit: "times",
            ours: |rows| rows.times((TIMED, "64 B in a log each"), (TIMED, "64 B at random")),
        },
        Statement {
            what: "bytes that the media write for 64 bytes at random (2.1)",
            paper: "256",
            unit: "bytes",
            ours: |rows| {
                let at = (MODELLED, "64 B at random");
                rows.value(at, Which::One, |row| row.media_write_bytes_per_op)
            },
        },
        Statement {
            what: "of 32 writers to one log, those at one DIMM (3.1)",
            paper: "32",
            unit: "writers",
            ours: |rows| rows.value((MODELLED, "64 B in one log"), Which::One, |row| row.writers_at_one_dimm),
        },
        Statement {
            what: "mean time of 4 KiB, 2 KiB off, over aligned (3.1)",
            paper: "1.18",
            unit: "times",
            ours: |rows| rows.times((TIMED, "4 KiB, aligned"), (TIMED, "4 KiB, 2048 B off")),
        },
        Statement {
            what: "DIMMs that 4 KiB, 2 KiB off, are written to (3.1)",
            paper: "2",
            unit: "DIMMs",
            ours: |rows| rows.value((MODELLED, "4 KiB, 2048 B off"), Which::One, |row| row.dimms_per_op),
        },
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
    let run = |setting: &str, config: Config, records: u64| Run {
        setting: setting.to_owned(),
        config: Config { records, operations: records, ..config },
        benchmark: Benchmark::Patterns(shapes.to_vec()),
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
        Statement {
            what: "in place over copy on write",
            paper: "more than 2",
            unit: "times",
            ours: |rows| rows.times((TIMED, "update_in_place"), (TIMED, "read_modify_write")),
        },
        Statement {
            what: "persists of an update in place (4.4)",
            paper: "1",
            unit: "fences",
            ours: |rows| rows.value((MODELLED, "update_in_place"), Which::One, |row| row.fences_per_op),
        },
        Statement {
            what: "persists of a copy on write (listing 1: record, bit, the old one's bit)",
            paper: "3",
            unit: "fences",
            ours: |rows| rows.value((MODELLED, "read_modify_write"), Which::One, |row| row.fences_per_op),
        },
        Statement {
            what: "persists of a put that is published late",
            paper: "(not built)",
            unit: "fences",
            ours: |rows| rows.value((MODELLED_LATE, "update"), Which::One, |row| row.fences_per_op),
        },
        Statement {
            what: "update, published late over before it returns",
            paper: "(not built)",
            unit: "times",
            ours: |rows| rows.times((TIMED_LATE, "update"), (TIMED, "update")),
        },
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
        Statement {
            what: "insert, unaligned over hybrid",
            paper: "0.89",
            unit: "times",
            ours: |rows| rows.times(("unaligned", "insert"), ("hybrid", "insert")),
        },
        Statement {
            what: "get, unaligned over hybrid",
            paper: "above 0.99",
            unit: "times",
            ours: |rows| rows.times(("unaligned", "get"), ("hybrid", "get")),
        },
        Statement {
            what: "insert, all in PM over hybrid",
            paper: "about 0.33",
            unit: "times",
            ours: |rows| rows.times(("all in PM", "insert"), ("hybrid", "insert")),
        },
        Statement {
            what: "get, all in PM over hybrid",
            paper: "about 0.33",
            unit: "times",
            ours: |rows| rows.times(("all in PM", "get"), ("hybrid", "get")),
        },
        Statement {
            what: "insert, hybrid over all in DRAM",
            paper: "about 0.67",
            unit: "times",
            ours: |rows| rows.times(("hybrid", "insert"), ("all in DRAM", "insert")),
        },
        Statement {
            what: "get, hybrid over all in DRAM",
            paper: "about 0.67",
            unit: "times",
            ours: |rows| rows.times(("hybrid", "get"), ("all in DRAM", "get")),
        },
        Statement {
            what: "mean time of an insert, all in DRAM",
            paper: "1.6",
            unit: "µs",
            ours: |rows| rows.mean_us("all in DRAM", "insert", Which::Most),
        },
        Statement {
            what: "bytes that the media write for an insert, all in PM over hybrid",
            paper: "more",
            unit: "times",
            ours: |rows| {
                let bytes =
                    |setting| rows.value((setting, "insert"), Which::One, |row| row.media_write_bytes_per_op);
                Some(bytes("all in PM, modelled")? / bytes("hybrid, modelled")?)
            },
        },
        Statement {
            what: "DIMMs that an aligned insert is written to (3.1)",
            paper: "1",
            unit: "DIMMs",
            ours: |rows| rows.value(("hybrid, modelled", "insert"), Which::One, |row| row.dimms_per_op),
        },
        Statement {
            what: "DIMMs that an unaligned insert is written to",
            paper: "up to 2",
            unit: "DIMMs",
            ours: |rows| rows.value(("unaligned, modelled", "insert"), Which::One, |row| row.dimms_per_op),
        },
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
        let run = |setting: &str, config: Config, records: u64| Run {
            setting: setting.to_owned(),
            config: Config { records, prefilled: 0, ..usual(config, records) },
            benchmark: Benchmark::Steps,
        };
        let sim = scale.on_sim();
        let counted = Config { counts_dimms: false, ..sim.base.clone() };
        let timed = (!scale.is_simulated()).then(|| run(TIMED, scale.most_threads(), scale.records));
        timed.into_iter().chain([run(MODELLED, counted, sim.records)]).collect()
    },
    statements: &[
        Statement {
            what: "put: share of the record (PM)",
            paper: "about 60",
            unit: "%",
            ours: |rows| rows.share(TIMED, "insert: record", "insert"),
        },
        Statement {
            what: "get: share of the map and the look at the key",
            paper: "more than 50",
            unit: "%",
            ours: |rows| rows.share(TIMED, "get: map", "get"),
        },
        Statement {
            what: "get: share of the page and of copying the record",
            paper: "about 40 (20 + 20)",
            unit: "%",
            ours: |rows| rows.share(TIMED, "get: record", "get"),
        },
        Statement {
            what: "update in place: share of the page, its lock and the word",
            paper: "more than 30",
            unit: "%",
            ours: |rows| rows.share(TIMED, "update_in_place: record", "update_in_place"),
        },
        Statement {
            what: "delete: share of the page, its lock and the bit",
            paper: "more than 30",
            unit: "%",
            ours: |rows| rows.share(TIMED, "remove: record", "remove"),
        },
    ],
    carries_over: "That a put is mostly its record, and that a get pays for its map as much as for its record. The shares do not: \
                   they depend on how much slower the medium is than DRAM, and on the index.",
};
