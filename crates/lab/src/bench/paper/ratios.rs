//! How a store compares with itself under another setting, and under another load, within one run.
//!
//! A machine that others use too changes its speed from minute to minute, and figures of different minutes
//! say little about each other. So compared rows come from pools measured one right after the other, in
//! several rounds where that is asked for. Each ratio is the median over the rounds, of rows of one round
//! each.

use super::{Paper, Preset};
use quipu_bench::distinct::distinct;
use quipu_bench::report::Row;
use serde::Serialize;

/// One row over another, in throughput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The paper's system.
    pub paper: &'static str,
    /// Number of the figure, or of the section.
    pub figure: &'static str,
    /// The design of both rows.
    pub design: String,
    /// The mark of both rows among those of the figure.
    pub setting: String,
    /// How both chose keys.
    pub distribution: String,
    /// Threads of both.
    pub threads: usize,
    /// Per cent of the space that was live; of the first one if the ratio is one over two of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<u64>,
    /// Its two sides, in words.
    pub ratio: String,
    /// The ratio: the median over all rounds.
    pub times: f64,
    /// Pairs that it is the median of.
    pub rounds: usize,
}

/// The settings that two rows have in common if they are compared.
#[derive(Clone, PartialEq)]
struct Load {
    design: String,
    setting: String,
    distribution: String,
    threads: usize,
    utilization: Option<u64>,
}

impl Load {
    fn of(row: &Row) -> Option<Load> {
        let (paper, at) = (row.paper.as_ref()?, row.utilized.as_ref()?);
        row.mops?;
        Some(Load {
            design: row.design.clone(),
            setting: paper.setting.clone(),
            distribution: at.distribution.clone(),
            threads: row.threads,
            utilization: at.utilization,
        })
    }

    /// Throughputs of all rows of this load, in the order of the rounds.
    fn mops(&self, rows: &[Row]) -> Vec<f64> {
        rows.iter().filter(|row| Load::of(row).as_ref() == Some(self)).filter_map(|row| row.mops).collect()
    }
}

/// The median; of an even number, the lower one of the two in the middle.
pub(super) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

impl Preset {
    /// The comparisons of the paper, if these rows have both sides: one kind of setting over the other, and
    /// each over itself at the lowest utilization.
    pub fn ratios(&self, paper: &Paper, rows: &[Row]) -> Vec<Ratio> {
        let Some((first, second)) = paper.compared else { return Vec::new() };
        let loads = distinct(rows.iter().filter_map(Load::of));
        let ratio = |of: &Load, to: &Load, ratio: String| {
            let times: Vec<f64> =
                of.mops(rows).iter().zip(to.mops(rows)).map(|(of, to)| of / to.max(1e-9)).collect();
            let rounds = times.len();
            Some(Ratio {
                paper: paper.name,
                figure: self.figure,
                design: of.design.clone(),
                setting: of.setting.clone(),
                distribution: of.distribution.clone(),
                threads: of.threads,
                utilization: of.utilization,
                ratio,
                times: median(times)?,
                rounds,
            })
        };
        let over_other = |load: &Load| {
            let setting = format!("{}{second}", load.setting.strip_suffix(first)?);
            let other = Load { setting, ..load.clone() };
            ratio(load, &other, format!("{first} over {second}"))
        };
        let kept = |load: &Load| {
            let alike = |other: &&Load| {
                Load { utilization: load.utilization, ..(*other).clone() } == *load
                    && other.utilization.is_some()
            };
            let lowest = loads.iter().filter(alike).min_by_key(|other| other.utilization)?;
            let percent = lowest.utilization.filter(|lowest| Some(*lowest) != load.utilization)?;
            ratio(load, lowest, format!("over itself at {percent} %"))
        };
        loads.iter().filter_map(over_other).chain(loads.iter().filter_map(kept)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::paper::PAPERS;
    use quipu_bench::report::{InPaper, Utilized};

    fn row(setting: &str, utilization: u64, mops: f64) -> Row {
        let paper = Some(InPaper { setting: setting.into(), ..InPaper::default() });
        let utilized = Some(Utilized { utilization: Some(utilization), ..Utilized::default() });
        Row { design: "one".into(), threads: 1, mops: Some(mops), paper, utilized, ..Row::default() }
    }

    #[test]
    fn rows_of_one_round_are_compared_and_the_median_counts() {
        let paper = PAPERS.iter().find(|paper| paper.compared.is_some()).expect("one compares");
        let (first, second) = paper.compared.expect("it does");
        let mut rows = Vec::new();
        // The machine is ten times as slow in the second round, and the store is not.
        for (speed, gain) in [(1.0, 2.0), (0.1, 3.0), (1.0, 7.0)] {
            for percent in [50, 90] {
                rows.push(row(first, percent, gain * speed * 50.0 / percent as f64));
                rows.push(row(second, percent, speed));
            }
            rows.push(row(&format!("other, {first}"), 50, speed));
        }
        let ratios = paper.presets[0].ratios(paper, &rows);
        let found: Vec<_> = ratios
            .iter()
            .map(|ratio| {
                (ratio.ratio.as_str(), ratio.utilization, (ratio.times * 100.0).round(), ratio.rounds)
            })
            .collect();
        let over = format!("{first} over {second}");
        let expected = [
            (over.as_str(), Some(50), 300.0, 3),
            (&over, Some(90), 167.0, 3),
            ("over itself at 50 %", Some(90), 56.0, 3),
            ("over itself at 50 %", Some(90), 100.0, 3),
        ];
        assert_eq!(found, expected);
        let viper = Paper::named("viper").expect("it is there");
        assert!(viper.presets[0].ratios(viper, &rows).is_empty(), "it compares nothing");
        assert_eq!(
            (median(vec![]), median(vec![4.0, 1.0]), median(vec![3.0, 1.0, 2.0])),
            (None, Some(1.0), Some(2.0))
        );
    }
}
