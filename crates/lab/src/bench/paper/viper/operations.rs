//! The store's operations over threads and records: figures 6 to 9.

use super::super::Preset;
use super::super::statements::{best, says, worst};
use super::{ops, usual};
use quipu_bench::config::Config;
use quipu_bench::ops::OpsPhase;

pub(super) const OPERATIONS: Preset = Preset {
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
        says("insert, 36 threads", "15").value("Mops/s", best("fixed", "insert")),
        says("get, 36 threads", "25 to 35").value("Mops/s", best("fixed", "get")),
        says("insert, most threads over one", "(scales well)").scaling("fixed", "insert"),
        says("get, most threads over one", "(scales well)").scaling("fixed", "get"),
    ],
    carries_over: "Scaling, and the order of the operations. Throughput does not: the paper's inserts are bound by the write \
                   bandwidth of six DIMMs, ours by flushes and fences to DRAM; compare shares of a roofline (bench ops \
                   --roofline) where machines differ.",
};

pub(super) const SIZES: Preset = Preset {
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
        says("insert of 8 + 8 bytes, 36 threads", "about 20").value("Mops/s", best("8 + 8 B", "insert")),
        says("insert of 8 + 8 bytes over 16 + 200", "about 1.3 (20 and 15)")
            .between("insert", ["8 + 8 B", "16 + 200 B"]),
        says("get of 8 + 8 bytes over 16 + 200", "below 1").between("get", ["8 + 8 B", "16 + 200 B"]),
    ],
    carries_over: "That larger records cost more, and that small ones make a larger index, whose misses get pays. That inserts \
                   fall in proportion to the size is the paper's PM bandwidth; DRAM has more of it.",
};

pub(super) const VARIABLE: Preset = Preset {
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
        says("insert, variable over fixed", "below 1").between("insert", ["variable", "fixed"]),
        says("get, variable over fixed", "below 1").between("get", ["variable", "fixed"]),
    ],
    carries_over: "Both: lengths have to be read before the record on any medium, and sizes known at compile time are the \
                   paper's, not ours (here they are settings of the pool).",
};

pub(super) const MEMORY: Preset = Preset {
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
        says("PM for a record of 216 bytes (21.2 GiB for 100 million), worst", "227.6")
            .value("bytes", worst("insert", |row| row.pm_bytes_per_record)),
        says("DRAM for a record (2.3 GiB for 100 million), worst", "24.7")
            .value("bytes", worst("insert", |row| row.dram_bytes_per_record)),
    ],
    carries_over: "All of it; memory does not depend on the medium. Ours has 8 bytes more in a record, its sequence number, \
                   without which a crash can bring back an older value, and whole zones count. The paper's 24.7 bytes for \
                   16-byte entries mean an index two thirds full at that number of records.",
};
