//! The rows that benchmarks print.

use serde_json::Value;

/// The fields of a row with times.
pub const TIMED: &str = "design phase medium threads records ops seconds mops p50_ns p99_ns p999_ns dram_bytes_per_record \
                     pm_bytes_per_record";

/// The same of a basic operation.
pub const TIMED_OPERATION: &str = "design phase medium threads records ops seconds mops own_ns p50_ns p99_ns p999_ns \
                               dram_bytes_per_record pm_bytes_per_record";

/// The fields of a row with costs.
pub const COUNTED: &str = "design phase medium threads records ops pm_bytes_per_record fences_per_op \
                       lines_flushed_per_op lines_read_per_op media_write_bytes_per_op remote_writes_per_op \
                       remote_reads_per_op modelled_ns_per_op";

/// The phases of rows.
pub fn phases(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["phase"].as_str().unwrap()).collect()
}
