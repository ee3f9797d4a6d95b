//! The evaluation of Viper (Benson, Makait and Rabl, "Viper: An Efficient Hybrid PMem-DRAM Key-Value Store", PVLDB 14(9),
//! 2021): figure 1 and section 5.
//!
//! The paper prefills 100 million records of 16 + 200 bytes and does 50 million operations; here `--records` stands for the
//! 100 million, and the other numbers follow in proportion. Its rivals are not run.

use super::rows::Which;
use super::{Benchmark, Paper, Preset, Run, Scale, Statement};
use crate::bench::config::Config;
use crate::bench::ops::OpsPhase;
use crate::bench::patterns::Pattern;
use crate::workload::Workload;
use quipu::{Design, SlotSettings};

pub(super) static PAPER: Paper = Paper {
    name: "viper",
    title: "Benson, Makait, Rabl: Viper: An Efficient Hybrid PMem-DRAM Key-Value Store. PVLDB 14(9), 2021",
    machine: "Xeon Gold 5220S, one socket, 36 threads on 18 cores, six 128 GB Optane DIMMs (devdax), 96 GB DRAM; 100 million \
              records of 16 + 200 bytes, 50 million operations",
    presets: &[
        PATTERNS,
        OPERATIONS,
        SIZES,
        VARIABLE,
        MEMORY,
        UPDATES,
        VERSIONS,
        BREAKDOWN,
        YCSB,
        RECLAMATION,
        RECOVERY,
    ],
};

/// What most figures run: records prefilled, half as many inserted, and as many operations.
fn usual(config: Config, records: u64) -> Config {
    let operations = (records / 2).max(1);
    Config {
        designs: vec![Design::Viper],
        records: records + operations,
        prefilled: records,
        operations,
        key_size: 16,
        value_size: 200,
        phases: Vec::new(),
        ..config
    }
}

fn ops(setting: impl Into<String>, config: Config, phases: &[OpsPhase]) -> Run {
    Run {
        setting: setting.into(),
        config: Config { phases: phases.to_vec(), ..config },
        benchmark: Benchmark::Ops,
    }
}

const PATTERNS: Preset = Preset {
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

const TIMED: &str = "timed";
const MODELLED: &str = "modelled";

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

const OPERATIONS: Preset = Preset {
    figure: "6",
    section: "5.3.1",
    title: "operations over threads",
    about: "Records prefilled, half as many inserted, then gets, updates of eight bytes in place and deletes of records \
            chosen uniformly; all on one store, where the paper takes a fresh one for each.",
    runs: |scale| {
        let phases = [OpsPhase::Get, OpsPhase::UpdateInPlace, OpsPhase::Remove];
        scale.over_threads().map(|config| ops("fixed", usual(config, scale.records), &phases)).collect()
    },
    statements: &[
        Statement {
            what: "insert, 36 threads",
            paper: "15",
            unit: "Mops/s",
            ours: |rows| rows.mops("fixed", "insert"),
        },
        Statement {
            what: "get, 36 threads",
            paper: "25 to 35",
            unit: "Mops/s",
            ours: |rows| rows.mops("fixed", "get"),
        },
        Statement {
            what: "insert, most threads over one",
            paper: "(scales well)",
            unit: "times",
            ours: |rows| rows.scaling("fixed", "insert"),
        },
        Statement {
            what: "get, most threads over one",
            paper: "(scales well)",
            unit: "times",
            ours: |rows| rows.scaling("fixed", "get"),
        },
    ],
    carries_over: "Scaling, and the order of the operations. Throughput does not: the paper's inserts are bound by the write \
                   bandwidth of six DIMMs, ours by flushes and fences to DRAM; compare shares of a roofline (bench ops \
                   --roofline) where machines differ.",
};

const SIZES: Preset = Preset {
    figure: "7",
    section: "5.3.2",
    title: "record sizes",
    about: "As many bytes in records of each size: prefilled, half as much inserted, then gets. The paper's 20 GB are here \
            the bytes of --records records of 216. Where its text says 16 + 100 bytes its numbers of records are those of \
            16 + 200, which are taken.",
    runs: |scale| {
        let bytes = scale.records * 216;
        let run = |(key_size, value_size): (usize, usize)| {
            let records = bytes / (key_size + value_size) as u64;
            // Gets are as many for all sizes.
            let operations = (scale.records / 2).max(1);
            let config = Config { key_size, value_size, operations, ..usual(scale.most_threads(), records) };
            ops(format!("{key_size} + {value_size} B"), config, &[OpsPhase::Get])
        };
        [(8, 8), (16, 200), (32, 500), (100, 900)].map(run).into()
    },
    statements: &[
        Statement {
            what: "insert of 8 + 8 bytes, 36 threads",
            paper: "about 20",
            unit: "Mops/s",
            ours: |rows| rows.mops("8 + 8 B", "insert"),
        },
        Statement {
            what: "insert of 8 + 8 bytes over 16 + 200",
            paper: "about 1.3 (20 and 15)",
            unit: "times",
            ours: |rows| rows.times(("8 + 8 B", "insert"), ("16 + 200 B", "insert")),
        },
        Statement {
            what: "get of 8 + 8 bytes over 16 + 200",
            paper: "below 1",
            unit: "times",
            ours: |rows| rows.times(("8 + 8 B", "get"), ("16 + 200 B", "get")),
        },
    ],
    carries_over: "That larger records cost more, and that small ones make a larger index, whose misses get pays. That inserts \
                   fall in proportion to the size is the paper's PM bandwidth; DRAM has more of it.",
};

const VARIABLE: Preset = Preset {
    figure: "8",
    section: "5.3.3",
    title: "records of variable size",
    about: "Keys of 16 bytes with a standard deviation of 3.2 (none below 8, which tell records apart), values of 200 with \
            one of 40; beside them the same records of one size.",
    runs: |scale| {
        let both = |config: Config| {
            let config = usual(config, scale.records);
            let varied = Config { spread: Some((3.2, 40.0)), ..config.clone() };
            [ops("fixed", config, &[OpsPhase::Get]), ops("variable", varied, &[OpsPhase::Get])]
        };
        scale.over_threads().flat_map(both).collect()
    },
    statements: &[
        Statement {
            what: "insert, variable over fixed",
            paper: "below 1",
            unit: "times",
            ours: |rows| rows.times(("variable", "insert"), ("fixed", "insert")),
        },
        Statement {
            what: "get, variable over fixed",
            paper: "below 1",
            unit: "times",
            ours: |rows| rows.times(("variable", "get"), ("fixed", "get")),
        },
    ],
    carries_over: "Both: lengths have to be read before the record on any medium, and sizes known at compile time are the \
                   paper's, not ours (here they are settings of the pool).",
};

const MEMORY: Preset = Preset {
    figure: "9",
    section: "5.3.4",
    title: "memory",
    about: "Bytes for a record after loading. The index grows by parts that split at about the same time, so its bytes for a \
            record rise and fall with the number of records: three numbers are shown.",
    runs: |scale| {
        let run = |records: u64| {
            let config =
                Config { prefilled: 0, records, operations: 1, ..usual(scale.most_threads(), records) };
            ops(format!("{records} records"), config, &[])
        };
        let records = scale.records;
        [records, records * 3 / 2, records * 2].map(run).into()
    },
    statements: &[
        Statement {
            what: "PM for a record of 216 bytes (21.2 GiB for 100 million), worst",
            paper: "227.6",
            unit: "bytes",
            ours: |rows| rows.worst("insert", |row| row.pm_bytes_per_record),
        },
        Statement {
            what: "DRAM for a record (2.3 GiB for 100 million), worst",
            paper: "24.7",
            unit: "bytes",
            ours: |rows| rows.worst("insert", |row| row.dram_bytes_per_record),
        },
    ],
    carries_over: "All of it; memory does not depend on the medium. Ours has 8 bytes more in a record, its sequence number, \
                   without which a crash can bring back an older value, and whole zones count. The paper's 24.7 bytes for \
                   16-byte entries mean an index two thirds full at that number of records.",
};

const UPDATES: Preset = Preset {
    figure: "10",
    section: "5.3.5",
    title: "update strategies",
    about: "Eight bytes of a value, in place (update_in_place), or by reading the record and putting it again \
            (read_modify_write); beside them puts that do not read (update).",
    runs: |scale| {
        let phases = [OpsPhase::Update, OpsPhase::ReadModifyWrite, OpsPhase::UpdateInPlace];
        let run = |setting: &str, config: Config, records: u64| {
            let config = usual(config, records);
            let config = Config { records, prefilled: 0, ..config };
            ops(setting, config, &phases)
        };
        let sim = scale.on_sim();
        let timed = scale.over_threads().filter(|_| !scale.is_simulated());
        timed
            .map(|config| run(TIMED, config, scale.records))
            .chain([run(MODELLED, sim.base.clone(), sim.records)])
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
    ],
    carries_over: "The fences and lines saved, exactly; the ratio of times in kind. On PM a copy costs more than here, since \
                   its record takes bandwidth of the DIMMs.",
};

const VERSIONS: Preset = Preset {
    figure: "11",
    section: "5.3.6",
    title: "placement: hybrid, all in DRAM, unaligned",
    about: "Viper (hybrid); Viper with pages moved by 2048 bytes off the DIMMs' boundaries (unaligned); Viper without flushes \
            and fences (all in DRAM). Rows of medium sim count what six modelled DIMMs see.",
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
    let unaligned = |config: Config| {
        let slots = SlotSettings { alignment_shift: 2048, ..config.slots };
        Config { slots, ..config }
    };
    let run = |setting: &str, config: Config| ops(setting, config, &[OpsPhase::Get]);
    let mut runs = Vec::new();
    if !scale.is_simulated() {
        let hybrid = usual(scale.most_threads(), scale.records);
        // Without persistence instructions a pool is memory, wherever the others are.
        let dram = Config { persists: false, pool: None, medium: quipu::MediumKind::Dram, ..hybrid.clone() };
        runs.push(run("hybrid", hybrid.clone()));
        runs.push(run("unaligned", unaligned(hybrid)));
        runs.push(run("all in DRAM", dram));
    }
    let sim = scale.on_sim();
    let counted = usual(sim.base, sim.records);
    runs.push(run("hybrid, modelled", counted.clone()));
    runs.push(run("unaligned, modelled", unaligned(counted)));
    runs
}

const BREAKDOWN: Preset = Preset {
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
    carries_over: "That a put is mostly its record and a get mostly its map. The shares depend on how much slower the medium is \
                   than DRAM, so on memory that stands in for PM the record's must come out smaller.",
};

const YCSB: Preset = Preset {
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
                let within = |row: &crate::bench::Row| Some(row.p999_ns? as f64 / 1e3);
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
                config: Config { designs: vec![Design::Viper], ..config },
                benchmark: Benchmark::Ycsb(Box::new(workload.clone())),
            }));
        }
    }
    runs
}

const RECLAMATION: Preset = Preset {
    figure: "5.3.8",
    section: "5.3.8",
    title: "reclamation under load",
    about: "A third of the records deleted at random; gets, and on another store inserts, alone and beside one thread that \
            reclaims every block with a tenth free. Reclamation begins with them and may end earlier or later: see its \
            seconds. On the simulator, reclamation alone.",
    runs: |scale| {
        let run = |config: Config| {
            let slots = SlotSettings { reclaim_percent: 10, ..config.slots };
            let config = Config { slots, ..usual(config, scale.records) };
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

const RECOVERY: Preset = Preset {
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
