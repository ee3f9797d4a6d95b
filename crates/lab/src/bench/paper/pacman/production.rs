//! A load like those in production (figure 9), and what comes after a crash (section 4.5).

use super::super::rows::Which;
use super::super::{Benchmark, Preset, Run, Scale, Statement};
use super::{PACMAN, RAW, SKEWED, USUAL, both, designs, mixed, usual};
use crate::bench::config::Config;
use crate::bench::util::{Keys, Overwrites};

pub(super) const ETC: Preset = Preset {
    figure: "9",
    section: "4.4",
    title: "Facebook's ETC pool: throughput, and times of gets and puts",
    about: "Half puts at 80 % over values of 1 to 13, 14 to 300 and up to 1024 bytes (40, 55 and 5 per cent of the records: the text \
            gives no shares), zipfian over the first two classes, uniform over the third. 24 service threads and four cleaners there, \
            and only indexes in PM; here all. The rivals are run by quipu-rivals (mix --etc), which knows pmemkv and RocksDB; \
            ChameleonDB is not built.",
    runs: |scale| {
        let overwrites = Overwrites { keys: vec![Keys::Etc], ..mixed() };
        designs().flat_map(|design| both("", &usual(scale, design), &overwrites)).collect()
    },
    statements: &[
        Statement {
            what: "-H, PACMAN over raw",
            paper: "(not run)",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", PACMAN, RAW, USUAL),
        },
        Statement {
            what: "-PH, PACMAN over raw",
            paper: "above 1",
            unit: "times",
            ours: |rows| rows.over("flatstore-ph", PACMAN, RAW, USUAL),
        },
        Statement {
            what: "-FF, PACMAN over raw",
            paper: "above 1, more than -PH",
            unit: "times",
            ours: |rows| rows.over("flatstore-ff", PACMAN, RAW, USUAL),
        },
    ],
    carries_over: "The order of systems, where it follows from what they do: allocation in place, merging levels, logs. Times of PM do not.",
};

pub(super) const RECOVERY: Preset = Preset {
    figure: "4.5",
    section: "4.5",
    title: "recovery of a store in disorder",
    about: "Records of 8 + 256 bytes up to 80 %, half as many overwritten, the store abandoned and opened again by so many threads; then \
            every record is read. The paper overwrites 100 million of 200.",
    runs: recovery,
    statements: &[
        Statement {
            what: "-H, 200 million records with 8 threads: ours for as many, with the most threads",
            paper: "14",
            unit: "s",
            ours: |rows| Some(200.0 / rows.value((H, "recovery"), Which::Most, |row| row.mops)?),
        },
        Statement {
            what: "-FF, until it serves: ours as measured",
            paper: "0.102",
            unit: "s",
            ours: |rows| rows.value(("flatstore-ff", "recovery"), Which::Most, |row| row.seconds),
        },
    ],
    carries_over: "That an index in DRAM is built by reading all records, and scales with threads; that one in PM is there at once. PM is \
                   read more slowly than DRAM, but in long runs.",
};

/// The name of a row of FlatStore-H: that of the design.
const H: &str = "flatstore-h";

fn recovery(scale: &Scale) -> Vec<Run> {
    let overwrites = Overwrites { utilizations: vec![USUAL], keys: vec![SKEWED], ..Overwrites::default() };
    let of = |design| {
        let (config, overwrites) =
            overwrites.clone().apart(&Config { value_size: 256, ..usual(scale, design) }).remove(0);
        scale.threads.iter().map(move |threads| Run {
            setting: design.to_string(),
            config: Config { threads: *threads, ..config.clone() },
            benchmark: Benchmark::Disorder(overwrites.clone()),
        })
    };
    designs().flat_map(of).collect()
}
