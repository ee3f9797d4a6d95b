//! Rows as text: aligned columns, units in the headers, and only columns that have something in them.

use super::report::{Compaction, Mixed, Row, Utilized};

struct Column {
    header: &'static str,
    left: bool,
    cell: fn(&Row) -> Option<String>,
}

fn number(value: Option<f64>, decimals: usize) -> Option<String> {
    value.map(|value| format!("{value:.decimals$}"))
}

fn utilized(row: &Row, cell: impl Fn(&Utilized) -> String) -> Option<String> {
    row.utilized.as_ref().map(cell)
}

fn compaction(row: &Row, cell: impl Fn(&Compaction) -> Option<String>) -> Option<String> {
    row.utilized.as_ref().and_then(|at| at.compaction.as_ref()).and_then(cell)
}

fn mixed(row: &Row, cell: impl Fn(&Mixed) -> u64) -> Option<String> {
    row.utilized.as_ref().and_then(|at| at.mixed.as_ref()).map(|times| cell(times).to_string())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// Said only where it differs from the throughput of all.
fn per_thread(row: &Row) -> Option<String> {
    number(row.mops.filter(|_| row.threads > 1).map(|mops| mops / row.threads as f64), 3)
}

const COLUMNS: [Column; 46] = [
    Column {
        header: "setting",
        left: true,
        cell: |row| row.paper.as_ref().map(|paper| paper.setting.clone()),
    },
    Column { header: "design", left: true, cell: |row| Some(row.design.clone()) },
    Column { header: "phase", left: true, cell: |row| Some(row.phase.clone()) },
    Column { header: "keys", left: true, cell: |row| utilized(row, |at| at.distribution.clone()) },
    Column { header: "% put", left: false, cell: |row| utilized(row, |at| at.put.to_string()) },
    Column {
        header: "% used",
        left: false,
        cell: |row| row.utilized.as_ref()?.utilization.map(|percent| percent.to_string()),
    },
    Column {
        header: "segments",
        left: false,
        cell: |row| compaction(row, |did| Some(did.segments.to_string())),
    },
    Column { header: "medium", left: true, cell: |row| Some(row.medium.clone()) },
    Column { header: "threads", left: false, cell: |row| Some(row.threads.to_string()) },
    Column { header: "batch", left: false, cell: |row| row.batch.map(|batch| batch.to_string()) },
    Column { header: "records", left: false, cell: |row| Some(row.records.to_string()) },
    Column { header: "ops", left: false, cell: |row| Some(row.ops.to_string()) },
    Column { header: "s", left: false, cell: |row| number(row.seconds, 3) },
    Column { header: "Mops/s", left: false, cell: |row| number(row.mops, 3) },
    Column { header: "per thread", left: false, cell: per_thread },
    Column {
        header: "steady",
        left: true,
        cell: |row| utilized(row, |at| if at.steady { "yes" } else { "no" }.to_owned()),
    },
    Column {
        header: "written/user B",
        left: false,
        cell: |row| compaction(row, |did| number(did.write_amplification, 2)),
    },
    Column {
        header: "moved MiB",
        left: false,
        cell: |row| compaction(row, |did| Some(format!("{:.1}", mebibytes(did.moved_bytes)))),
    },
    Column {
        header: "% by hint",
        left: false,
        cell: |row| compaction(row, |did| number(did.moved_by_hint.map(|share| share * 100.0), 1)),
    },
    Column {
        header: "cleaned MiB/s",
        left: false,
        cell: |row| {
            compaction(row, |did| {
                number(did.cleaned_bytes_per_second.map(|bytes| mebibytes(bytes as u64)), 1)
            })
        },
    },
    Column {
        header: "zones owed",
        left: false,
        cell: |row| compaction(row, |did| Some(did.owed_zones.to_string())),
    },
    Column {
        header: "writes helped",
        left: false,
        cell: |row| compaction(row, |did| Some(did.helped_writes.to_string())),
    },
    Column {
        header: "stalled",
        left: false,
        cell: |row| compaction(row, |did| Some(did.stalled_writes.to_string())),
    },
    Column {
        header: "stalled ms",
        left: false,
        cell: |row| compaction(row, |did| did.stalled_ms.map(|ms| ms.to_string())),
    },
    Column {
        header: "% of limit",
        left: false,
        cell: |row| number(row.roofline.map(|share| share * 100.0), 1),
    },
    Column { header: "p50 ns", left: false, cell: |row| row.p50_ns.map(|ns| ns.to_string()) },
    Column { header: "p99 ns", left: false, cell: |row| row.p99_ns.map(|ns| ns.to_string()) },
    Column { header: "p99.9 ns", left: false, cell: |row| row.p999_ns.map(|ns| ns.to_string()) },
    Column { header: "get p50 ns", left: false, cell: |row| mixed(row, |times| times.get_p50_ns) },
    Column { header: "get p99 ns", left: false, cell: |row| mixed(row, |times| times.get_p99_ns) },
    Column { header: "put p50 ns", left: false, cell: |row| mixed(row, |times| times.put_p50_ns) },
    Column { header: "put p99 ns", left: false, cell: |row| mixed(row, |times| times.put_p99_ns) },
    Column { header: "eliminated/op", left: false, cell: |row| number(row.eliminated_per_op, 3) },
    Column { header: "fences/op", left: false, cell: |row| number(row.fences_per_op, 3) },
    Column { header: "lines flushed/op", left: false, cell: |row| number(row.lines_flushed_per_op, 3) },
    Column { header: "lines read/op", left: false, cell: |row| number(row.lines_read_per_op, 3) },
    Column { header: "media B written/op", left: false, cell: |row| number(row.media_write_bytes_per_op, 1) },
    Column { header: "DIMMs/op", left: false, cell: |row| number(row.dimms_per_op, 2) },
    Column { header: "writers at one DIMM", left: false, cell: |row| number(row.writers_at_one_dimm, 2) },
    Column { header: "remote writes/op", left: false, cell: |row| number(row.remote_writes_per_op, 3) },
    Column { header: "remote reads/op", left: false, cell: |row| number(row.remote_reads_per_op, 3) },
    Column {
        header: "reserve MiB",
        left: false,
        cell: |row| compaction(row, |did| Some(format!("{:.1}", mebibytes(did.reserve_bytes)))),
    },
    Column {
        header: "metadata MiB",
        left: false,
        cell: |row| compaction(row, |did| Some(format!("{:.1}", mebibytes(did.metadata_bytes)))),
    },
    Column { header: "DRAM B/record", left: false, cell: |row| number(row.dram_bytes_per_record, 1) },
    Column { header: "PM B/record", left: false, cell: |row| number(row.pm_bytes_per_record, 1) },
    Column { header: "not run", left: true, cell: |row| row.not_run.map(str::to_owned) },
];

/// Lays out rows as a table, a header first; an empty cell shows a dash.
pub fn table(rows: &[Row]) -> String {
    let mut columns = Vec::new();
    for column in &COLUMNS {
        let cells: Vec<Option<String>> = rows.iter().map(column.cell).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        columns.push((column.left, std::iter::once(column.header.to_owned()).chain(cells).collect()));
    }
    aligned(&columns)
}

/// Puts columns beside each other, each to the left or to the right, with its header first.
pub(super) fn aligned(columns: &[(bool, Vec<String>)]) -> String {
    let rows = columns.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let mut lines = vec![String::new(); rows];
    for (left, cells) in columns {
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(cells) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let cell = if *left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            line.push_str(&cell);
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let row = |phase: &str, mops: f64, roofline| Row {
            design: "quipu".into(),
            phase: phase.into(),
            medium: "dram".into(),
            threads: 2,
            records: 10,
            ops: 1000,
            mops: Some(mops),
            roofline,
            ..Row::default()
        };
        let text = table(&[row("insert", 10.25, Some(0.5)), row("get_many", 1.0, None)]);
        let expected = "\
design  phase     medium  threads  records   ops  Mops/s  per thread  % of limit
quipu   insert    dram          2       10  1000  10.250       5.125        50.0
quipu   get_many  dram          2       10  1000   1.000       0.500           -
";
        assert_eq!(text, expected);
    }
}
