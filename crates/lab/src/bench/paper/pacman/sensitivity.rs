//! How the load changes the gain: figure 7, all on FlatStore-H.

use super::super::statements::{over_ends, says};
use super::super::{Preset, Run};
use super::{H, PACMAN, RAW, USUAL, both, mixed, usual};
use crate::bench::util::{Keys, Overwrites};
use quipu::Design;
use quipu_bench::config::Config;

pub(super) const UNIFORM: Preset = Preset {
    figure: "7a",
    section: "4.2.3",
    title: "throughput over utilization, keys chosen uniformly",
    about: "As figure 5, on FlatStore-H, with all keys alike.",
    runs: |scale| {
        let utilizations = vec![50, 60, 70, 80, 90];
        let overwrites = Overwrites { utilizations, keys: vec![Keys::Uniform], ..mixed() };
        both("", &usual(scale, Design::FLATSTORE_H), &overwrites)
    },
    statements: &[
        says("raw, 80 % over 50 %", "below 0.5").kept(H, RAW, 80),
        says("PACMAN, 80 % over 50 %", "above 0.85").kept(H, PACMAN, 80),
        says("PACMAN, 90 % over 50 %", "above 0.5").kept(H, PACMAN, 90),
    ],
    carries_over: "How many bytes have to be moved for each byte of the user's follows from the utilization alone when all keys are alike: \
                   that is the same on any medium. What moving them costs is not.",
};

pub(super) const THREADS: Preset = Preset {
    figure: "7b",
    section: "4.2.3",
    title: "throughput over threads",
    about: "Half puts at 80 %, with so many service threads and one cleaner; four cleaners there.",
    runs: |scale| {
        let of = |threads: &usize| {
            let config = Config { threads: *threads, ..usual(scale, Design::FLATSTORE_H) };
            both("", &config, &mixed())
        };
        scale.threads.iter().flat_map(of).collect()
    },
    statements: &[
        says("PACMAN, most threads over one", "linear up to 20").scaling(PACMAN, "util"),
        says("raw, most threads over one", "(scales badly)").scaling(RAW, "util"),
    ],
    carries_over: "Only where there are more processors than service threads and cleaner together.",
};

pub(super) const SIZES: Preset = Preset {
    figure: "7c",
    section: "4.2.3",
    title: "value sizes",
    about: "Half puts at 80 %; as many records of each size, and segments that grow with them.",
    runs: |scale| {
        let of = |value_size: usize| {
            let config = Config { value_size, ..usual(scale, Design::FLATSTORE_H) };
            both(&format!("{value_size} B"), &config, &mixed())
        };
        [32, 48, 64, 128, 256, 512].into_iter().flat_map(of).collect()
    },
    statements: &[
        says("values of 32 bytes, PACMAN over raw", "1.5 to 1.7").over(
            H,
            ["32 B, PACMAN", "32 B, raw"],
            USUAL,
        ),
        says("values of 512 bytes, PACMAN over raw", "1.5 to 1.7").over(
            H,
            ["512 B, PACMAN", "512 B, raw"],
            USUAL,
        ),
    ],
    carries_over: "That larger values cost more. In memory bandwidth is not what is short, so the share of the gain that is saved on \
                   looking up and repointing records gets smaller with larger ones.",
};

pub(super) const WRITES: Preset = Preset {
    figure: "7d",
    section: "4.2.3",
    title: "write ratios",
    about: "At 80 %, with so many puts; where they are rare, windows are shorter than a pool volume of writes.",
    runs: |scale| {
        let of = |put: u64| {
            let overwrites = Overwrites { put, ..mixed() };
            both(&format!("{put} % put"), &usual(scale, Design::FLATSTORE_H), &overwrites)
        };
        [20, 40, 60, 80, 100].into_iter().flat_map(of).collect::<Vec<Run>>()
    },
    statements: &[
        says("100 % puts, PACMAN over raw", "2.3").over(H, ["100 % put, PACMAN", "100 % put, raw"], USUAL),
        says("PACMAN, 80 % puts over 60 %", "above 1").over(
            H,
            ["80 % put, PACMAN", "60 % put, PACMAN"],
            USUAL,
        ),
    ],
    carries_over: "That the gain grows with the share of puts. That 80 per cent are faster than 60 the paper calls strange, and explains by \
                   the ages of its cold segments.",
};

pub(super) const OBJECTS: Preset = Preset {
    figure: "7e",
    section: "4.2.3",
    title: "numbers of objects",
    about: "Half puts at 80 %; a quarter, half, all and twice as many records as the scale says, in segments of the smallest store's size.",
    runs: |scale| {
        let config = usual(scale, Design::FLATSTORE_H);
        let fewest = scale.records / 4;
        let of = |times: u64| {
            let smallest = Config { records: fewest, ..config.clone() };
            // One size of segments for all: that of the fewest records.
            let zone_size = mixed().apart(&smallest).first().and_then(|(config, _)| config.zone_size);
            let records = fewest * times;
            let config = Config { records, operations: records, zone_size, ..config.clone() };
            both(&format!("{records} objects"), &config, &mixed())
        };
        [1, 2, 4, 8].into_iter().flat_map(of).collect()
    },
    statements: &[
        says("fewest objects, PACMAN over raw", "1.35 to 1.6")
            .other(|rows| over_ends(rows, [PACMAN, RAW], false)),
        says("most objects, PACMAN over raw", "1.35 to 1.6")
            .other(|rows| over_ends(rows, [PACMAN, RAW], true)),
    ],
    carries_over: "Both of the paper's reasons: more objects miss the caches more often, and more segments of one size gather more garbage \
                   before they are cleaned.",
};
