//! A figure for people: our rows, the paper's numbers beside ours, and what to make of them.

use super::{Compared, Preset, Ratio};
use quipu_bench::report::Row;
use quipu_bench::table::{aligned, table};

/// Columns of running text.
const WIDTH: usize = 110;

/// Lays out a figure: its runs, its rows, their ratios, the paper's numbers, and what carries over.
pub fn text(preset: &Preset, rows: &[Row], ratios: &[Ratio], compared: &[Compared]) -> String {
    let Preset { figure, section, title, about, carries_over, .. } = preset;
    let place = if figure == section {
        format!("Section {section}")
    } else {
        format!("Figure {figure} (section {section})")
    };
    let mut parts = vec![format!("{place}: {title}\n"), wrapped(about), table(rows)];
    if !ratios.is_empty() {
        parts.push(ratios_of(ratios));
    }
    if !compared.is_empty() {
        parts.push(comparison(compared));
    }
    parts.push(wrapped(&format!("What carries over: {carries_over}")));
    parts.join("\n")
}

/// A column of these rows, to the left or to the right.
fn column<T>(rows: &[T], left: bool, header: &str, cell: fn(&T) -> String) -> (bool, Vec<String>) {
    (left, std::iter::once(header.to_owned()).chain(rows.iter().map(cell)).collect())
}

fn ratios_of(ratios: &[Ratio]) -> String {
    aligned(&[
        column(ratios, true, "setting", |row| row.setting.clone()),
        column(ratios, true, "design", |row| row.design.clone()),
        column(ratios, true, "keys", |row| row.distribution.clone()),
        column(ratios, false, "threads", |row| row.threads.to_string()),
        column(ratios, false, "% used", |row| row.utilization.map_or("-".to_owned(), |at| at.to_string())),
        column(ratios, true, "throughput", |row| row.ratio.clone()),
        column(ratios, false, "times", |row| digits(row.times)),
        column(ratios, false, "rounds", |row| row.rounds.to_string()),
    ])
}

fn comparison(compared: &[Compared]) -> String {
    aligned(&[
        column(compared, true, "the paper's text", |row| row.statement.to_owned()),
        column(compared, false, "paper", |row| row.paper_says.to_owned()),
        column(compared, false, "here", |row| row.ours.map_or("-".to_owned(), digits)),
        column(compared, true, "unit", |row| row.unit.to_owned()),
    ])
}

/// Three digits that count.
fn digits(number: f64) -> String {
    let decimals = match number {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{number:.decimals$}")
}

fn wrapped(text: &str) -> String {
    format!("{}\n", textwrap::fill(text, WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_beside_each_other() {
        let compared = |statement, ours| Compared {
            paper: "viper",
            figure: "6",
            statement,
            paper_says: "about 20",
            ours,
            unit: "µs",
        };
        let text = comparison(&[compared("insert", Some(123.4)), compared("get of records", None)]);
        let expected = "\
the paper's text     paper  here  unit
insert            about 20   123  µs
get of records    about 20     -  µs
";
        assert_eq!(text, expected);
        assert_eq!([digits(12.34), digits(1.234)], ["12.3", "1.23"]);
    }
}
