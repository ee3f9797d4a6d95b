//! A figure for people: our rows, the paper's numbers beside ours, and what to make of them.

use super::{Compared, Preset, Ratio};
use crate::bench::report::Row;
use crate::bench::table::{aligned, table};

/// Columns of running text.
const WIDTH: usize = 110;

/// Lays out a figure: what was run, the rows, how they compare with each other and with the paper, and what carries over.
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

fn ratios_of(ratios: &[Ratio]) -> String {
    let cells = |header: &str, cell: fn(&Ratio) -> String| {
        std::iter::once(header.to_owned()).chain(ratios.iter().map(cell)).collect::<Vec<_>>()
    };
    aligned(&[
        (true, cells("setting", |row| row.setting.clone())),
        (true, cells("design", |row| row.design.clone())),
        (true, cells("keys", |row| row.distribution.clone())),
        (false, cells("threads", |row| row.threads.to_string())),
        (false, cells("% used", |row| row.utilization.map_or_else(|| "-".to_owned(), |at| at.to_string()))),
        (true, cells("throughput", |row| row.ratio.clone())),
        (false, cells("times", |row| digits(row.times))),
        (false, cells("rounds", |row| row.rounds.to_string())),
    ])
}

fn comparison(compared: &[Compared]) -> String {
    let cells = |header: &str, cell: fn(&Compared) -> String| {
        std::iter::once(header.to_owned()).chain(compared.iter().map(cell)).collect::<Vec<_>>()
    };
    aligned(&[
        (true, cells("the paper's text", |row| row.statement.to_owned())),
        (false, cells("paper", |row| row.paper_says.to_owned())),
        (false, cells("here", |row| row.ours.map_or_else(|| "-".to_owned(), digits))),
        (true, cells("unit", |row| row.unit.to_owned())),
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
