//! A load like those in production (figure 9), and what comes after a crash (section 4.5).

use super::super::statements::{best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{FF, H, PACMAN, PH, RAW, SKEWED, USUAL, both, designs, mixed, usual};
use crate::bench::util::{Keys, Overwrites};
use quipu_bench::config::Config;

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
        says("-H, PACMAN over raw", "(not run)").over(H, [PACMAN, RAW], USUAL),
        says("-PH, PACMAN over raw", "above 1").over(PH, [PACMAN, RAW], USUAL),
        says("-FF, PACMAN over raw", "above 1, more than -PH").over(FF, [PACMAN, RAW], USUAL),
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
        says("-H, 200 million records with 8 threads: ours for as many, with the most threads", "14")
            .value("s", best(H, "recovery").most().value(|row| Some(200.0 / row.mops?))),
        says("-FF, until it serves: ours as measured", "0.102")
            .value("s", best(FF, "recovery").most().value(|row| row.seconds)),
    ],
    carries_over: "That an index in DRAM is built by reading all records, and scales with threads; that one in PM is there at once. PM is \
                   read more slowly than DRAM, but in long runs.",
};

fn recovery(scale: &Scale) -> Vec<Run> {
    let overwrites = Overwrites { utilizations: vec![USUAL], keys: vec![SKEWED], ..Overwrites::default() };
    let of = |design| {
        let (config, overwrites) =
            overwrites.clone().apart(&Config { value_size: 256, ..usual(scale, design) }).remove(0);
        scale.threads.iter().map(move |threads| {
            let config = Config { threads: *threads, ..config.clone() };
            Run::new(design.to_string(), config, Benchmark::Disorder(overwrites.clone()))
        })
    };
    designs().flat_map(of).collect()
}
