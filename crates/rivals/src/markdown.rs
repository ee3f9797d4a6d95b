//! The tables of a comparison, as Markdown to be pasted.
//!
//! Two for each medium: throughput, and how many times as fast the first engine is, of whose two measurements
//! the slower counts there. A value that was not measured is a dash, and so are the pure reads of an engine
//! that was given fewer records, which all are in the processor's cache.

use quipu::MediumKind;
use quipu_rivals::engines::Choice;
use serde::Deserialize;

/// The phases that are shown, with their headings.
const PHASES: [(&str, &str); 5] =
    [("insert", "insert"), ("get", "get"), ("update", "update"), ("run_a", "YCSB A"), ("run_b", "YCSB B")];

/// The phase that only reads.
const READS: &str = "get";

const NOTHING: &str = "–";

/// One phase of a run, as the run printed it.
#[derive(Deserialize)]
pub struct Cell {
    phase: String,
    mops: f64,
    process_crash: String,
    os_crash: String,
    power_loss: String,
}

impl Cell {
    /// The worst failure that its acknowledged writes survive.
    fn survives(&self) -> &'static str {
        let answers = [&self.process_crash, &self.os_crash, &self.power_loss];
        match answers.iter().take_while(|answer| **answer == "yes").count() {
            0 => "nothing",
            1 => "process crash",
            2 => "system crash",
            _ => "power loss",
        }
    }
}

/// One engine's figures.
struct Row {
    name: String,
    setting: &'static str,
    survives: Option<&'static str>,
    /// Records, if they are fewer than those of others.
    synced: Option<u64>,
    /// Thousand operations a second of each phase, with each number of threads.
    figures: [Vec<Option<f64>>; PHASES.len()],
}

/// All engines on one medium.
pub struct Table {
    medium: MediumKind,
    threads: Vec<usize>,
    rows: Vec<Row>,
}

impl Table {
    /// A table without figures: a row for each choice, and one more for the first.
    pub fn new(medium: MediumKind, choices: &[Choice], threads: &[usize]) -> Table {
        let row = |(number, choice): (usize, &Choice)| Row {
            name: if number < choices.len() { format!("`{choice}`") } else { format!("`{choice}`, again") },
            setting: choice.setting(),
            survives: None,
            synced: None,
            figures: std::array::from_fn(|_| vec![None; threads.len()]),
        };
        let rows = choices.iter().chain(choices.first()).enumerate().map(row).collect();
        Table { medium, threads: threads.to_vec(), rows }
    }

    /// Enters a measurement for a row with the `column`-th number of threads. Phases that are not shown are
    /// passed over.
    pub fn add(&mut self, row: usize, column: usize, cell: &Cell) {
        let phase = PHASES.iter().position(|(phase, _)| *phase == cell.phase);
        if let (Some(row), Some(phase)) = (self.rows.get_mut(row), phase) {
            row.survives = Some(cell.survives());
            row.figures[phase][column] = Some(cell.mops * 1e3);
        }
    }

    /// Notes that a row is measured with only so many records.
    pub fn mark_synced(&mut self, row: usize, records: u64) {
        if let Some(row) = self.rows.get_mut(row) {
            row.synced = Some(records);
        }
    }

    /// The tables, and how each engine is set.
    pub fn text(&self) -> String {
        let threads: Vec<String> = self.threads.iter().map(usize::to_string).collect();
        let (medium, threads) = (self.medium, threads.join(" / "));
        let throughput = self.grid(|row, phase, column| row.figure(phase, column));
        let ratios =
            self.grid(|row, phase, column| Some(self.base(phase, column)? / row.figure(phase, column)?));
        let base = self.rows.first().map_or(NOTHING, |row| &row.name);
        let settings: String =
            self.rows.iter().take(self.rows.len().saturating_sub(1)).map(Row::description).collect();
        format!(
            "### Medium `{medium}`\n\nThousand operations a second, threads {threads}:\n\n{throughput}\n\
             So many times as fast is {base}:\n\n{ratios}\n{settings}\n"
        )
    }

    /// The slower measurement of the first engine.
    fn base(&self, phase: usize, column: usize) -> Option<f64> {
        let [first, last] = [self.rows.first()?, self.rows.last()?].map(|row| row.figure(phase, column));
        Some(first?.min(last?))
    }

    fn grid(&self, figure: impl Fn(&Row, usize, usize) -> Option<f64>) -> String {
        let headings = PHASES.map(|(_, heading)| heading).join(" | ");
        let mut text = format!("| | survives | {headings} |\n|---|---|{}\n", "---:|".repeat(PHASES.len()));
        for row in &self.rows {
            let cells: [String; PHASES.len()] = std::array::from_fn(|phase| {
                let columns = 0..self.threads.len();
                let figures = columns.map(|column| figure(row, phase, column));
                figures.map(|figure| figure.map_or(NOTHING.into(), number)).collect::<Vec<_>>().join(" / ")
            });
            let survives = row.survives.unwrap_or("not measured");
            text += &format!("| {} | {survives} | {} |\n", row.name, cells.join(" | "));
        }
        text
    }
}

impl Row {
    fn figure(&self, phase: usize, column: usize) -> Option<f64> {
        let cached = self.synced.is_some() && PHASES[phase].0 == READS;
        self.figures[phase][column].filter(|_| !cached)
    }

    fn description(&self) -> String {
        let few = self.synced.map_or(String::new(), |records| {
            format!(" (each write waits for the disk: {records} records and operations)")
        });
        format!("- {}: {}{few}\n", self.name, self.setting)
    }
}

/// Three digits that count.
fn number(figure: f64) -> String {
    match figure {
        100.0.. => format!("{figure:.0}"),
        10.0..100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(phase: &str, mops: f64, survives: usize) -> Cell {
        let answer = |nth: usize| if nth < survives { "yes" } else { "no" }.to_owned();
        Cell {
            phase: phase.to_owned(),
            mops,
            process_crash: answer(0),
            os_crash: answer(1),
            power_loss: answer(2),
        }
    }

    fn line<'a>(text: &'a str, beginning: &str, nth: usize) -> &'a str {
        text.lines().filter(|line| line.starts_with(beginning)).nth(nth).unwrap()
    }

    #[test]
    fn figures_stand_in_their_cells_and_ratios_take_the_slower_first_engine() {
        let choices = ["quipu", "redb:power", "fjall:memory"].map(|name| name.parse::<Choice>().unwrap());
        let mut table = Table::new(MediumKind::File, &choices, &[1, 2]);
        for (column, times) in [(0, 1.0), (1, 2.0)] {
            for phase in ["insert", "get", "get_many", "load_a", "run_a"] {
                table.add(0, column, &cell(phase, 4.0 * times, 1));
                table.add(1, column, &cell(phase, 0.0005 * times, 3));
                table.add(3, column, &cell(phase, 2.0 * times, 1));
            }
        }
        table.mark_synced(1, 500);
        let text = table.text();
        assert_eq!(
            line(&text, "| `quipu` |", 0),
            "| `quipu` | process crash | 4000 / 8000 | 4000 / 8000 | – / – | 4000 / 8000 | – / – |"
        );
        assert_eq!(
            line(&text, "| `redb:power`", 0),
            "| `redb:power` | power loss | 0.50 / 1.00 | – / – | – / – | 0.50 / 1.00 | – / – |"
        );
        assert_eq!(
            line(&text, "| `redb:power`", 1),
            "| `redb:power` | power loss | 4000 / 4000 | – / – | – / – | 4000 / 4000 | – / – |"
        );
        assert_eq!(
            line(&text, "| `fjall:memory`", 0),
            "| `fjall:memory` | not measured | – / – | – / – | – / – | – / – | – / – |"
        );
        assert!(
            line(&text, "| `quipu`, again", 1).starts_with("| `quipu`, again | process crash | 1.00 / 1.00")
        );
        assert!(line(&text, "- `redb:power`", 0).ends_with("500 records and operations)"));
        assert!(text.contains("threads 1 / 2:"));
    }
}
