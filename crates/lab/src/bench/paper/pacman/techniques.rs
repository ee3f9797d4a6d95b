//! The gain of each technique: figure 8.

use super::super::statements::{at, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{FF, H, M, SWITCH, USUAL, VIPER, designs, mixed, usual};
use crate::bench::util::Overwrites;
use quipu::Setting;
use quipu_bench::report::Row;

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
        says("-H, reducing", "about 1.5").over(H, ["+ reduce", "raw"], USUAL),
        says("-M, reducing", "about 1.8").over(M, ["+ reduce", "raw"], USUAL),
        says("-FF, reducing", "about 1.8").over(FF, ["+ reduce", "raw"], USUAL),
        says("Viper, reducing", "less than FlatStore").over(VIPER, ["+ reduce", "raw"], USUAL),
        says("-H, separation", "about 1.3").over(H, ["+ separate", "+ reduce"], USUAL),
        says("-H, shortcuts", "not obvious").over(H, ["+ shortcut", "+ separate"], USUAL),
        says("-M, shortcuts", "about 1.45").over(M, ["+ shortcut", "+ separate"], USUAL),
        says("-FF, shortcuts", "about 1.7").over(FF, ["+ shortcut", "+ separate"], USUAL),
        says("-FF, records repointed by shortcut", "55").value("%", at(FF, "+ batch", USUAL).value(by_hint)),
        says("-H, batching", "1.4").over(H, ["+ batch", "+ shortcut"], USUAL),
        says("-M, batching", "1.4").over(M, ["+ batch", "+ shortcut"], USUAL),
        says("Viper, batching", "more than FlatStore").over(VIPER, ["+ batch", "+ separate"], USUAL),
        says("-H, all over raw", "about 3").over(H, ["+ batch", "raw"], USUAL),
        says("-FF, all over raw", "4.6").over(FF, ["+ batch", "raw"], USUAL),
        says("-H, bytes cleaned a second, all over raw", "up to 4 (any)")
            .times(at(H, "+ batch", USUAL).value(cleaned), at(H, "raw", USUAL).value(cleaned)),
    ],
    carries_over: "The order of what helps whom: asking the index about every record costs trees more than tables. Bytes cleaned a second \
                   are those that the load needs, so they show the compactor's own speed only where it is what everybody waits for. \
                   Reads of PM that are saved cost more there than a miss does in memory, and so do fences.",
};

fn by_hint(row: &Row) -> Option<f64> {
    Some(row.utilized.as_ref()?.compaction?.moved_by_hint? * 100.0)
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
            Run::new(setting, config.clone(), Benchmark::Util(overwrites.clone()))
        };
        steps.map(run_of).collect::<Vec<_>>()
    };
    designs().flat_map(of).collect()
}
