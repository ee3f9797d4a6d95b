//! The rows of indexes side by side: a line for each index on each set of keys, and a column for each phase.

use super::run::{BULK_LOAD, GET, GET_MANY, INSERT, LOADED_GET, REMOVE, SCAN};
use quipu_bench::distinct::distinct;
use quipu_bench::report::Row;
use quipu_bench::table::{aligned, table};

/// A figure of a row, if it has that.
type Figure = fn(&Row) -> Option<f64>;

/// The columns: a phase, the header, and the figure of its row with so many decimals.
const COLUMNS: [(&str, &str, usize, Figure); 12] = [
    (INSERT, "insert", 2, |row| row.mops),
    (GET, "get", 2, |row| row.mops),
    (GET_MANY, "get of 32", 2, |row| row.mops),
    (SCAN, "scan of 100", 3, |row| row.mops),
    (REMOVE, "remove", 2, |row| row.mops),
    (INSERT, "DRAM B/key", 1, |row| row.dram_bytes_per_record),
    (INSERT, "resident", 1, |row| row.resident_bytes_per_record),
    (INSERT, "PM B/key", 1, |row| row.pm_bytes_per_record.filter(|bytes| *bytes > 0.0)),
    (BULK_LOAD, "bulk load", 2, |row| row.mops),
    (LOADED_GET, "get then", 2, |row| row.mops),
    (BULK_LOAD, "DRAM B/key then", 1, |row| row.dram_bytes_per_record),
    (INSERT, "threads", 0, |row| Some(row.threads as f64)),
];

/// An index on a set of keys, which has a line of its own.
#[derive(PartialEq)]
struct Line {
    keys: Option<&'static str>,
    order: Option<&'static str>,
    index: String,
}

fn line(row: &Row) -> Line {
    Line { keys: row.keys, order: row.order, index: row.design.clone() }
}

/// Lays the rows of indexes out as a table, in million operations a second. Costs of the simulator, which are
/// many for each phase, have a line for each phase.
pub fn index_table(rows: &[Row]) -> String {
    if rows.iter().all(|row| row.mops.is_none()) {
        return table(rows);
    }
    let lines = distinct(rows.iter().map(line));
    let names = |header: &str, name: fn(&Line) -> String| {
        (true, std::iter::once(header.to_owned()).chain(lines.iter().map(name)).collect())
    };
    let mut columns = vec![names("keys", |line| line.keys.unwrap_or_default().to_owned())];
    if distinct(lines.iter().map(|line| line.order)).len() > 1 {
        columns.push(names("order", |line| line.order.unwrap_or_default().to_owned()));
    }
    columns.push(names("index", |line| line.index.clone()));
    for (phase, header, decimals, figure) in COLUMNS {
        let figures: Vec<Option<f64>> = lines
            .iter()
            .map(|at| rows.iter().find(|row| line(row) == *at && row.phase == phase).and_then(figure))
            .collect();
        if figures.iter().any(Option::is_some) {
            let cell =
                |figure: &Option<f64>| figure.map_or("-".to_owned(), |figure| format!("{figure:.decimals$}"));
            columns
                .push((false, std::iter::once(header.to_owned()).chain(figures.iter().map(cell)).collect()));
        }
    }
    if rows.iter().any(|row| row.not_run.is_some()) {
        let why = |at: &Line| rows.iter().find(|row| line(row) == *at).and_then(|row| row.not_run);
        let cells = lines.iter().map(|at| why(at).unwrap_or("-").to_owned());
        columns.push((true, std::iter::once("not run".to_owned()).chain(cells).collect()));
    }
    format!("Million operations a second, and bytes:\n\n{}", aligned(&columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_all_phases_of_an_index() {
        let row = |index: &str, phase: &str, mops| Row {
            design: index.into(),
            phase: phase.into(),
            keys: Some("osm"),
            threads: 1,
            mops: Some(mops),
            ..Row::default()
        };
        let rows = [row("alex", INSERT, 1.5), row("alex", SCAN, 0.25), row("hash", INSERT, 2.0)];
        let expected = "\
Million operations a second, and bytes:

keys  index  insert  scan of 100  threads
osm   alex     1.50        0.250        1
osm   hash     2.00            -        1
";
        assert_eq!(index_table(&rows), expected);
    }
}
