//! What each technique gives: figure 8.

use super::super::{Benchmark, Preset, Run, Scale, Statement};
use super::{SWITCH, USUAL, designs, mixed, usual};
use crate::bench::report::Row;
use crate::bench::util::Overwrites;
use quipu::Setting;

/// The raw store and each technique on top of those before it, in the paper's order.
const STEPS: [(&str, Option<&str>); 5] = [
    ("raw", None),
    ("+ reduce", Some("reduce")),
    ("+ separate", Some("separate")),
    ("+ shortcut", Some("shortcut")),
    ("+ batch", Some("batch")),
];

pub(super) const TECHNIQUES: Preset = Preset {
    figure: "8",
    section: "4.3",
    title: "each technique in turn",
    about: "Only puts over the records of a pool at 80 %, zipfian with 0.99; the raw store, and then one technique after the other on top \
            of it. The paper has two cleaners for twelve service threads, so that compaction is what limits all.",
    runs,
    statements: &[
        Statement {
            what: "-H, reducing",
            paper: "about 1.5",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "+ reduce", "raw", USUAL),
        },
        Statement {
            what: "-M, reducing",
            paper: "about 1.8",
            unit: "times",
            ours: |rows| rows.over("flatstore-m", "+ reduce", "raw", USUAL),
        },
        Statement {
            what: "-FF, reducing",
            paper: "about 1.8",
            unit: "times",
            ours: |rows| rows.over("flatstore-ff", "+ reduce", "raw", USUAL),
        },
        Statement {
            what: "Viper, reducing",
            paper: "less than FlatStore",
            unit: "times",
            ours: |rows| rows.over("viper-pacman", "+ reduce", "raw", USUAL),
        },
        Statement {
            what: "-H, separation",
            paper: "about 1.3",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "+ separate", "+ reduce", USUAL),
        },
        Statement {
            what: "-H, shortcuts",
            paper: "not obvious",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "+ shortcut", "+ separate", USUAL),
        },
        Statement {
            what: "-M, shortcuts",
            paper: "about 1.45",
            unit: "times",
            ours: |rows| rows.over("flatstore-m", "+ shortcut", "+ separate", USUAL),
        },
        Statement {
            what: "-FF, shortcuts",
            paper: "about 1.7",
            unit: "times",
            ours: |rows| rows.over("flatstore-ff", "+ shortcut", "+ separate", USUAL),
        },
        Statement {
            what: "-FF, records repointed by shortcut",
            paper: "55",
            unit: "%",
            ours: |rows| Some(rows.at("flatstore-ff", "+ batch", USUAL, by_hint)? * 100.0),
        },
        Statement {
            what: "-H, batching",
            paper: "1.4",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "+ batch", "+ shortcut", USUAL),
        },
        Statement {
            what: "-M, batching",
            paper: "1.4",
            unit: "times",
            ours: |rows| rows.over("flatstore-m", "+ batch", "+ shortcut", USUAL),
        },
        Statement {
            what: "Viper, batching",
            paper: "more than FlatStore",
            unit: "times",
            ours: |rows| rows.over("viper-pacman", "+ batch", "+ separate", USUAL),
        },
        Statement {
            what: "-H, all over raw",
            paper: "about 3",
            unit: "times",
            ours: |rows| rows.over("flatstore-h", "+ batch", "raw", USUAL),
        },
        Statement {
            what: "-FF, all over raw",
            paper: "4.6",
            unit: "times",
            ours: |rows| rows.over("flatstore-ff", "+ batch", "raw", USUAL),
        },
        Statement {
            what: "-H, bytes cleaned a second, all over raw",
            paper: "up to 4 (any)",
            unit: "times",
            ours: |rows| {
                Some(
                    rows.at("flatstore-h", "+ batch", USUAL, cleaned)?
                        / rows.at("flatstore-h", "raw", USUAL, cleaned)?,
                )
            },
        },
    ],
    carries_over: "The order of what helps whom: asking the index about every record costs trees more than tables. Bytes cleaned a second \
                   are those that the load needs, so they show the compactor's own speed only where it is what everybody waits for. \
                   Reads of PM that are saved cost more there than a miss does in memory, and so do fences.",
};

fn by_hint(row: &Row) -> Option<f64> {
    row.utilized.as_ref()?.compaction?.moved_by_hint
}

fn cleaned(row: &Row) -> Option<f64> {
    row.utilized.as_ref()?.compaction?.cleaned_bytes_per_second
}

fn runs(scale: &Scale) -> Vec<Run> {
    let of = |design| {
        let raw = usual(scale, design).with(SWITCH, "off");
        let (mut config, overwrites) = Overwrites { put: 100, ..mixed() }.apart(&raw).remove(0);
        let has = |name| Setting::of(design).any(|setting| setting.name == name);
        let steps = STEPS.into_iter().filter(|(_, technique)| technique.is_none_or(has));
        let run_of = |(setting, technique): (&str, Option<&str>)| {
            if let Some(technique) = technique {
                config = config.clone().with(technique, "on");
            }
            let benchmark = Benchmark::Util(overwrites.clone());
            Run { setting: setting.to_owned(), config: config.clone(), benchmark }
        };
        steps.map(run_of).collect::<Vec<_>>()
    };
    designs().flat_map(of).collect()
}
