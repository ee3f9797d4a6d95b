//! Rows as text: aligned columns, units in the headers, and only columns that have something in them.

use super::report::Row;
use serde_json::{Map, Value};

/// Per cent of a share, and mebibytes of bytes.
const PERCENT: f64 = 100.0;
const MIB: f64 = 1.0 / (1 << 20) as f64;

/// The columns: the field of a row's JSON, the header, and for numbers a factor and the decimals.
const COLUMNS: [(&str, &str, f64, usize); 72] = [
    ("setting", "setting", 1.0, 0),
    ("keys", "keys", 1.0, 0),
    ("design", "design", 1.0, 0),
    ("phase", "phase", 1.0, 0),
    ("distribution", "keys", 1.0, 0),
    ("put", "% put", 1.0, 0),
    ("utilization", "% used", 1.0, 0),
    ("segments", "segments", 1.0, 0),
    ("medium", "medium", 1.0, 0),
    ("threads", "threads", 1.0, 0),
    ("batch", "batch", 1.0, 0),
    ("records", "records", 1.0, 0),
    ("ops", "ops", 1.0, 0),
    ("seconds", "s", 1.0, 3),
    ("mops", "Mops/s", 1.0, 3),
    (PER_THREAD, "per thread", 1.0, 3),
    ("median_second_mops", "median second", 1.0, 3),
    ("slowest_second_mops", "slowest second", 1.0, 3),
    ("slowest_over_median", "% of median", PERCENT, 1),
    ("steady", "steady", 1.0, 0),
    ("write_amplification", "written/user B", 1.0, 2),
    ("moved_bytes", "moved MiB", MIB, 1),
    ("moved_by_hint", "% by hint", PERCENT, 1),
    ("cleaned_bytes_per_second", "cleaned MiB/s", MIB, 1),
    ("owed_zones", "zones owed", 1.0, 0),
    ("helped_writes", "writes helped", 1.0, 0),
    ("stalled_writes", "stalled", 1.0, 0),
    ("stalled_ms", "stalled ms", 1.0, 0),
    ("own_ns", "bench's own ns", 1.0, 0),
    ("roofline", "% of limit", PERCENT, 1),
    ("limit_mops", "limit Mops/s", 1.0, 1),
    ("limit_huge_mops", "in huge pages", 1.0, 1),
    ("p50_ns", "p50 ns", 1.0, 0),
    ("p99_ns", "p99 ns", 1.0, 0),
    ("p999_ns", "p99.9 ns", 1.0, 0),
    ("get_p50_ns", "get p50 ns", 1.0, 0),
    ("get_p99_ns", "get p99 ns", 1.0, 0),
    ("get_p999_ns", "get p99.9 ns", 1.0, 0),
    ("get_max_ns", "longest get ns", 1.0, 0),
    ("put_p50_ns", "put p50 ns", 1.0, 0),
    ("put_p99_ns", "put p99 ns", 1.0, 0),
    ("put_p999_ns", "put p99.9 ns", 1.0, 0),
    ("put_max_ns", "longest put ns", 1.0, 0),
    ("stalls", "stalls over 100 ms", 1.0, 0),
    ("longest_stall_ms", "longest ms", 1.0, 0),
    ("stalls_of_store", "of the store", 1.0, 0),
    ("longest_stall_of_store_ms", "longest ms", 1.0, 0),
    ("stalls_of_machine", "of the machine", 1.0, 0),
    ("longest_stall_of_machine_ms", "longest ms", 1.0, 0),
    ("eliminated_per_op", "eliminated/op", 1.0, 3),
    ("cache_hits_per_op", "cache hits/op", 1.0, 3),
    ("tries_per_op", "tries/op", 1.0, 3),
    ("least_share", "least thread's %", PERCENT, 1),
    ("moved_per_op", "moved/op", 1.0, 3),
    ("fences_per_op", "fences/op", 1.0, 3),
    ("lines_flushed_per_op", "lines flushed/op", 1.0, 3),
    ("lines_read_per_op", "lines read/op", 1.0, 3),
    ("media_write_bytes_per_op", "media B written/op", 1.0, 1),
    ("dimms_per_op", "DIMMs/op", 1.0, 2),
    ("writers_at_one_dimm", "writers at one DIMM", 1.0, 2),
    ("remote_writes_per_op", "remote writes/op", 1.0, 3),
    ("remote_reads_per_op", "remote reads/op", 1.0, 3),
    ("modelled_ns_per_op", "modelled ns/op", 1.0, 1),
    ("reserve_bytes", "reserve MiB", MIB, 1),
    ("metadata_bytes", "metadata MiB", MIB, 1),
    ("disk_read_bytes", "disk MiB read", MIB, 1),
    ("disk_written_bytes", "disk MiB written", MIB, 1),
    (READ_PER_OP, "disk B read/op", 1.0, 1),
    (WRITTEN_PER_OP, "disk B written/op", 1.0, 1),
    ("dram_bytes_per_record", "DRAM B/record", 1.0, 1),
    ("pm_bytes_per_record", "PM B/record", 1.0, 1),
    ("not_run", "not run", 1.0, 0),
];

/// Columns that are no fields: the throughput of a thread, shown where there are several, and the bytes of
/// disks for an operation.
const PER_THREAD: &str = "mops_per_thread";
const READ_PER_OP: &str = "disk_read_bytes_per_op";
const WRITTEN_PER_OP: &str = "disk_written_bytes_per_op";

/// The fields of a row.
fn fields(row: &Row) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(row) else { return Map::new() };
    if let Some(mops) = row.mops.filter(|_| row.threads > 1) {
        fields.insert(PER_THREAD.to_owned(), (mops / row.threads as f64).into());
    }
    for (name, bytes) in [(READ_PER_OP, row.disk_read_bytes), (WRITTEN_PER_OP, row.disk_written_bytes)] {
        if let Some(bytes) = bytes.filter(|_| row.ops > 0) {
            fields.insert(name.to_owned(), (bytes as f64 / row.ops as f64).into());
        }
    }
    fields
}

/// Lays out rows as a table, a header first; an empty cell shows a dash.
pub fn table(rows: &[Row]) -> String {
    let rows: Vec<_> = rows.iter().map(fields).collect();
    let mut columns = Vec::new();
    for (field, header, factor, decimals) in COLUMNS {
        let values = || rows.iter().map(|row| row.get(field));
        if values().all(|value| value.is_none()) {
            continue;
        }
        let is_text = values().flatten().any(|value| !value.is_number());
        let cell = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(holds)) => if *holds { "yes" } else { "no" }.to_owned(),
            Some(Value::Number(number)) => {
                format!("{:.decimals$}", number.as_f64().unwrap_or(f64::NAN) * factor)
            }
            _ => "-".to_owned(),
        };
        columns.push((is_text, std::iter::once(header.to_owned()).chain(values().map(cell)).collect()));
    }
    aligned(&columns)
}

/// Puts columns beside each other, each to the left or to the right, with its header first.
pub fn aligned(columns: &[(bool, Vec<String>)]) -> String {
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
