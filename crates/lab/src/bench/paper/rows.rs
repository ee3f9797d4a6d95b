//! What rows say in the place of a paper's statement.

use super::ratios::median;
use super::{Paper, Preset};
use crate::bench::report::Row;
use serde::Serialize;

/// The rows of a figure, asked by setting and phase.
pub struct Rows<'a>(&'a [Row]);

/// A statement of a paper beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The paper's system.
    pub paper: &'static str,
    /// Number of the figure, or of the section.
    pub figure: &'static str,
    /// Of what the numbers are.
    pub statement: &'static str,
    /// The paper's number, with its words.
    pub paper_says: &'static str,
    /// Ours, if these rows have it.
    pub ours: Option<f64>,
    /// The unit of both.
    pub unit: &'static str,
}

impl<'a> Rows<'a> {
    /// The rows of one figure.
    pub fn new(rows: &'a [Row]) -> Rows<'a> {
        Rows(rows)
    }

    /// The rows of a setting and a phase, by more and more threads.
    fn of(&self, setting: &str, phase: &str) -> impl Iterator<Item = &'a Row> {
        let (setting, phase) = (setting.to_owned(), phase.to_owned());
        self.0.iter().filter(move |row| {
            row.phase == phase && row.paper.as_ref().is_some_and(|paper| paper.setting == setting)
        })
    }

    /// The best throughput with any number of threads, in million operations a second.
    pub(super) fn mops(&self, setting: &str, phase: &str) -> Option<f64> {
        self.of(setting, phase).filter_map(|row| row.mops).reduce(f64::max)
    }

    /// How many times as fast the first is as the second, each at its best.
    pub(super) fn times(&self, first: (&str, &str), second: (&str, &str)) -> Option<f64> {
        Some(self.mops(first.0, first.1)? / self.mops(second.0, second.1)?)
    }

    /// How many times as fast with the most threads as with one.
    pub(super) fn scaling(&self, setting: &str, phase: &str) -> Option<f64> {
        let one = self.of(setting, phase).find(|row| row.threads == 1)?.mops?;
        let most = self.of(setting, phase).filter(|row| row.threads > 1).max_by_key(|row| row.threads)?;
        Some(most.mops? / one)
    }

    /// The mean time of an operation with one thread, or with the most, in microseconds. Keys and checks are in it.
    pub(super) fn mean_us(&self, setting: &str, phase: &str, which: Which) -> Option<f64> {
        let row = which.of(self.of(setting, phase))?;
        Some(row.threads as f64 / row.mops?)
    }

    /// How long a step takes of the whole operation, in per cent.
    pub(super) fn share(&self, setting: &str, step: &str, whole: &str) -> Option<f64> {
        Some(self.times((setting, whole), (setting, step))? * 100.0)
    }

    /// The largest value of a phase in any setting.
    pub(super) fn worst(&self, phase: &str, value: fn(&Row) -> Option<f64>) -> Option<f64> {
        self.0.iter().filter(|row| row.phase == phase).filter_map(value).reduce(f64::max)
    }

    /// Whatever a design showed with this setting at this utilization: the median, if it was run more than once.
    pub(super) fn at(
        &self,
        design: &str,
        setting: &str,
        percent: u64,
        value: fn(&Row) -> Option<f64>,
    ) -> Option<f64> {
        let is_at = |row: &&Row| {
            row.design == design
                && row.paper.as_ref().is_some_and(|paper| paper.setting == setting)
                && row.utilized.as_ref().is_some_and(|at| at.utilization == Some(percent))
        };
        median(self.0.iter().filter(is_at).filter_map(value).collect())
    }

    /// How many times as fast a design is with one setting as with another.
    pub(super) fn over(&self, design: &str, first: &str, second: &str, percent: u64) -> Option<f64> {
        let mops = |setting| self.at(design, setting, percent, |row| row.mops);
        Some(mops(first)? / mops(second)?)
    }

    /// The same of a phase that is not about utilization.
    pub(super) fn over_in(&self, phase: &str, design: &str, first: &str, second: &str) -> Option<f64> {
        let mops = |setting| {
            let rows = self.of(setting, phase).filter(|row| row.design == design);
            median(rows.filter_map(|row| row.mops).collect())
        };
        Some(mops(first)? / mops(second)?)
    }

    /// Throughput of a design, with whichever number of threads: the median, if it was run more than once.
    fn of_design(&self, of: (&str, &str), which: Which, design: &str) -> Option<f64> {
        let rows = || self.of(of.0, of.1).filter(|row| row.design == design);
        let threads = which.of(rows())?.threads;
        median(rows().filter(|row| row.threads == threads).filter_map(|row| row.mops).collect())
    }

    /// The same with the most threads.
    pub(super) fn mops_of(&self, of: (&str, &str), design: &str) -> Option<f64> {
        self.of_design(of, Which::Most, design)
    }

    /// How many times as fast the first design is as the second, with as many threads.
    pub(super) fn over_other(
        &self,
        of: (&str, &str),
        which: Which,
        first: &str,
        second: &str,
    ) -> Option<f64> {
        Some(self.of_design(of, which, first)? / self.of_design(of, which, second)?)
    }

    /// What a design keeps of its throughput at 50 %.
    pub(super) fn kept(&self, design: &str, setting: &str, percent: u64) -> Option<f64> {
        let mops = |percent| self.at(design, setting, percent, |row| row.mops);
        Some(mops(percent)? / mops(50)?)
    }

    /// How many times as fast the first setting is that ends like this as the first that ends like that.
    pub(super) fn over_first(&self, first: &str, second: &str) -> Option<f64> {
        let mops = |end: &str| self.0.iter().find(|row| ends(row, end))?.mops;
        Some(mops(first)? / mops(second)?)
    }

    /// The same of the last ones.
    pub(super) fn over_last(&self, first: &str, second: &str) -> Option<f64> {
        let mops = |end: &str| self.0.iter().rfind(|row| ends(row, end))?.mops;
        Some(mops(first)? / mops(second)?)
    }

    /// Whatever else a row has, of the row with one thread or the most.
    pub(super) fn value(
        &self,
        (setting, phase): (&str, &str),
        which: Which,
        value: fn(&Row) -> Option<f64>,
    ) -> Option<f64> {
        which.of(self.of(setting, phase)).and_then(value)
    }
}

fn ends(row: &Row, end: &str) -> bool {
    row.paper.as_ref().is_some_and(|paper| paper.setting.ends_with(end))
}

/// Which number of threads.
#[derive(Clone, Copy)]
pub(super) enum Which {
    One,
    Most,
}

impl Which {
    fn of<'a>(self, mut rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
        match self {
            Which::One => rows.find(|row| row.threads == 1),
            Which::Most => rows.max_by_key(|row| row.threads),
        }
    }
}

impl Preset {
    /// The paper's statements beside what these rows of the figure say.
    pub fn compare(&self, paper: &Paper, rows: &[Row]) -> Vec<Compared> {
        let rows = Rows::new(rows);
        let compared = |statement: &super::Statement| Compared {
            paper: paper.name,
            figure: self.figure,
            statement: statement.what,
            paper_says: statement.paper,
            ours: (statement.ours)(&rows),
            unit: statement.unit,
        };
        self.statements.iter().map(compared).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::InPaper;

    fn row(setting: &str, threads: usize, mops: f64) -> Row {
        let paper = Some(InPaper { setting: setting.into(), ..InPaper::default() });
        Row { phase: "get".into(), threads, mops: Some(mops), paper, ..Row::default() }
    }

    #[test]
    fn rows_are_found_and_compared() {
        let all = [row("a", 1, 2.0), row("a", 2, 3.0), row("b", 1, 1.0)];
        let rows = Rows::new(&all);
        assert_eq!(
            (rows.mops("a", "get"), rows.mops("a", "put"), rows.mops("c", "get")),
            (Some(3.0), None, None)
        );
        assert_eq!(rows.times(("a", "get"), ("b", "get")), Some(3.0));
        assert_eq!((rows.scaling("a", "get"), rows.scaling("b", "get")), (Some(1.5), None));
        let mean = |which| rows.mean_us("a", "get", which);
        assert_eq!((mean(Which::One), mean(Which::Most)), (Some(0.5), Some(2.0 / 3.0)));
    }
}
