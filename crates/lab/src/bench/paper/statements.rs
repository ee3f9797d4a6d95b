//! The statements of a paper as data: which rows of a figure a number is about, and how it follows from them.
//!
//! A [`Cell`] names rows by design, setting, phase and utilization and reduces them to one number; a
//! [`Statement`] holds a cell, or the ratio of two, beside the paper's number. The constructors here are what
//! the tables of the papers consist of.

use super::ratios::median;
use super::{Paper, Preset};
use quipu_bench::distinct::distinct;
use quipu_bench::report::Row;
use serde::Serialize;

/// A number of a paper's text, and ours.
pub struct Statement {
    /// The quantity.
    pub what: &'static str,
    /// The paper's number, with the words that go with it ("more than", "about").
    pub paper: &'static str,
    /// The unit of both.
    pub unit: &'static str,
    ours: Ours,
}

/// How our number follows from the rows of a figure.
enum Ours {
    Value(Cell),
    /// The first over the second.
    Ratio(Cell, Cell),
    /// The same in per cent.
    Share(Cell, Cell),
    Other(fn(&[Row]) -> Option<f64>),
}

/// Rows of a figure, and the number that they give.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    design: Option<&'static str>,
    setting: Option<&'static str>,
    phase: &'static str,
    utilization: Option<u64>,
    threads: Threads,
    value: fn(&Row) -> Option<f64>,
}

/// Which numbers of threads count. Over several rounds the median counts, except of the best.
#[derive(Clone, Copy, PartialEq)]
enum Threads {
    /// The row with the largest value.
    Best,
    One,
    Most,
    /// The most, if there are several.
    Many,
    All,
}

/// Begins a statement: the quantity, and the paper's number of it.
pub(super) const fn says(what: &'static str, paper: &'static str) -> Says {
    Says(what, paper)
}

/// A statement that has no number of ours yet.
pub(super) struct Says(&'static str, &'static str);

impl Says {
    const fn with(self, unit: &'static str, ours: Ours) -> Statement {
        Statement { what: self.0, paper: self.1, unit, ours }
    }

    /// One number.
    pub(super) const fn value(self, unit: &'static str, cell: Cell) -> Statement {
        self.with(unit, Ours::Value(cell))
    }

    /// One number over another.
    pub(super) const fn times(self, first: Cell, second: Cell) -> Statement {
        self.with("times", Ours::Ratio(first, second))
    }

    /// The best throughput of a phase with the first setting over that with the second.
    pub(super) const fn between(self, phase: &'static str, of: [&'static str; 2]) -> Statement {
        self.times(best(of[0], phase), best(of[1], phase))
    }

    /// A ratio that follows from the rows in a way of its own.
    pub(super) const fn other(self, ours: fn(&[Row]) -> Option<f64>) -> Statement {
        self.found("times", ours)
    }

    /// A number that does.
    pub(super) const fn found(self, unit: &'static str, ours: fn(&[Row]) -> Option<f64>) -> Statement {
        self.with(unit, Ours::Other(ours))
    }

    /// The throughput with the most threads over that with one.
    pub(super) const fn scaling(self, setting: &'static str, phase: &'static str) -> Statement {
        let best = best(setting, phase);
        self.times(Cell { threads: Threads::Many, ..best }, best.one())
    }

    /// The time of a step over that of the whole operation, in per cent.
    pub(super) const fn share(self, step: Cell, whole: Cell) -> Statement {
        self.with("%", Ours::Share(whole, step))
    }

    /// The throughput of a design with the first setting over that with the second, at a utilization.
    pub(super) const fn over(
        self,
        design: &'static str,
        of: [&'static str; 2],
        utilization: u64,
    ) -> Statement {
        self.times(at(design, of[0], utilization), at(design, of[1], utilization))
    }

    /// The share of its throughput at 50 % that a design keeps at a higher utilization.
    pub(super) const fn kept(
        self,
        design: &'static str,
        setting: &'static str,
        utilization: u64,
    ) -> Statement {
        self.times(at(design, setting, utilization), at(design, setting, 50))
    }
}

/// The best throughput with any number of threads, in million operations a second.
pub(super) const fn best(setting: &'static str, phase: &'static str) -> Cell {
    Cell { setting: Some(setting), ..worst(phase, |row| row.mops) }
}

/// The largest value of a phase in any setting.
pub(super) const fn worst(phase: &'static str, value: fn(&Row) -> Option<f64>) -> Cell {
    Cell { design: None, setting: None, phase, utilization: None, threads: Threads::Best, value }
}

/// The throughput of a design at a utilization.
pub(super) const fn at(design: &'static str, setting: &'static str, utilization: u64) -> Cell {
    Cell { utilization: Some(utilization), ..best(setting, "util").of(design) }
}

impl Cell {
    /// The rows of a design alone, and the median of its values.
    pub(super) const fn of(self, design: &'static str) -> Cell {
        Cell { design: Some(design), threads: Threads::All, ..self }
    }

    /// The rows with one thread alone.
    pub(super) const fn one(self) -> Cell {
        Cell { threads: Threads::One, ..self }
    }

    /// The rows with the most threads alone.
    pub(super) const fn most(self) -> Cell {
        Cell { threads: Threads::Most, ..self }
    }

    /// The rows with the most threads alone, if there are several numbers of them.
    pub(super) const fn many(self) -> Cell {
        Cell { threads: Threads::Many, ..self }
    }

    /// Another value of the same rows.
    pub(super) const fn value(self, value: fn(&Row) -> Option<f64>) -> Cell {
        Cell { value, ..self }
    }

    /// The number that these rows give, if they have it.
    pub(super) fn find(&self, rows: &[Row]) -> Option<f64> {
        let is_asked = |row: &&Row| {
            let utilization = || row.utilized.as_ref().and_then(|at| at.utilization);
            row.phase == self.phase
                && self.design.is_none_or(|design| row.design == design)
                && self.setting.is_none_or(|setting| setting_of(row) == Some(setting))
                && (self.utilization.is_none() || utilization() == self.utilization)
        };
        let rows: Vec<&Row> = rows.iter().filter(is_asked).collect();
        let most = rows.iter().map(|row| row.threads).max();
        let threads = match self.threads {
            Threads::Best | Threads::All => None,
            Threads::One => Some(1),
            Threads::Most => most,
            Threads::Many => Some(most.filter(|threads| *threads > 1)?),
        };
        let counts = |row: &&&Row| threads.is_none_or(|threads| row.threads == threads);
        let values = rows.iter().filter(counts).filter_map(|row| (self.value)(row));
        if self.threads == Threads::Best { values.reduce(f64::max) } else { median(values.collect()) }
    }
}

/// The setting that sets a row apart in its figure.
pub(super) fn setting_of(row: &Row) -> Option<&str> {
    row.paper.as_ref().map(|paper| paper.setting.as_str())
}

/// The mean time of an operation in microseconds; the making of keys and the checking of values are in it.
pub(super) fn mean_us(row: &Row) -> Option<f64> {
    Some(row.threads as f64 / row.mops?)
}

/// The throughput of the settings that end like this over that of those that end like that: of the first of
/// each, or of the last.
pub(super) fn over_ends(rows: &[Row], [first, second]: [&str; 2], of_last: bool) -> Option<f64> {
    let mops = |end: &str| {
        let settings = distinct(rows.iter().filter_map(setting_of).filter(|setting| setting.ends_with(end)));
        let setting = if of_last { settings.last() } else { settings.first() }?;
        let of_setting = rows.iter().filter(|row| setting_of(row) == Some(setting));
        median(of_setting.filter_map(|row| row.mops).collect())
    };
    Some(mops(first)? / mops(second)?)
}

impl Statement {
    /// Our number, if these rows have it.
    fn ours(&self, rows: &[Row]) -> Option<f64> {
        let ratio = |first: &Cell, second: &Cell| Some(first.find(rows)? / second.find(rows)?);
        match &self.ours {
            Ours::Value(cell) => cell.find(rows),
            Ours::Ratio(first, second) => ratio(first, second),
            Ours::Share(first, second) => ratio(first, second).map(|ratio| ratio * 100.0),
            Ours::Other(ours) => ours(rows),
        }
    }
}

/// A statement of a paper beside our measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The paper's system.
    pub paper: &'static str,
    /// Number of the figure, or of the section.
    pub figure: &'static str,
    /// The quantity.
    pub statement: &'static str,
    /// The paper's number, with its words.
    pub paper_says: &'static str,
    /// Ours, if these rows have it.
    pub ours: Option<f64>,
    /// The unit of both.
    pub unit: &'static str,
}

impl Preset {
    /// The paper's statements beside what these rows of the figure say.
    pub fn compare(&self, paper: &Paper, rows: &[Row]) -> Vec<Compared> {
        let compared = |statement: &Statement| Compared {
            paper: paper.name,
            figure: self.figure,
            statement: statement.what,
            paper_says: statement.paper,
            ours: statement.ours(rows),
            unit: statement.unit,
        };
        self.statements.iter().map(compared).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_bench::report::InPaper;

    fn row(setting: &str, threads: usize, mops: f64) -> Row {
        let paper = Some(InPaper { setting: setting.into(), ..InPaper::default() });
        Row { phase: "get".into(), threads, mops: Some(mops), paper, ..Row::default() }
    }

    #[test]
    fn rows_are_found_and_compared() {
        let rows = [row("a", 1, 2.0), row("a", 2, 3.0), row("b", 1, 1.0)];
        let found = |cell: Cell| cell.find(&rows);
        assert_eq!(
            [best("a", "get"), best("a", "put"), best("c", "get")].map(found),
            [Some(3.0), None, None]
        );
        let ours = |statement: Statement| statement.ours(&rows);
        assert_eq!(ours(says("", "").times(best("a", "get"), best("b", "get"))), Some(3.0));
        assert_eq!(ours(says("", "").share(best("b", "get"), best("a", "get"))), Some(300.0));
        assert_eq!(["a", "b"].map(|of| ours(says("", "").scaling(of, "get"))), [Some(1.5), None]);
        let mean = best("a", "get").value(mean_us);
        assert_eq!([mean.one(), mean.most()].map(found), [Some(0.5), Some(2.0 / 3.0)]);
        assert_eq!(found(worst("get", |row| row.mops)), Some(3.0));
    }

    #[test]
    fn the_first_and_the_last_setting_are_those_of_the_first_round() {
        let round = [row("5 x", 1, 2.0), row("5 y", 1, 1.0), row("9 x", 1, 6.0), row("9 y", 1, 2.0)];
        let rows: Vec<Row> = round.iter().chain(round.iter().rev()).cloned().collect();
        let found = [false, true].map(|of_last| over_ends(&rows, ["x", "y"], of_last));
        assert_eq!((found, over_ends(&rows, ["x", "z"], true)), ([Some(2.0), Some(3.0)], None));
    }
}
