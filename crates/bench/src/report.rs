//! One result: the row that scripts read as JSON and people as a line of a table.

use super::config::Config;
use super::drive::Outcome;
use super::memory::Memory;
use super::roofline::{Limits, Roof};
use super::stalls::Stalls;
use crate::choice::Named;
use crate::workload::KeySet;
use serde::Serialize;
use serde_with::skip_serializing_none;

/// Takes the rows of a run as they come.
pub type Sink<'a> = &'a mut dyn FnMut(Row);

/// The result of one phase of one design. Serialises to the names that scripts rely on; a value that was not
/// measured is left out.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The design.
    pub design: String,
    /// Its settings that were chosen, as `NAME=VALUE` with spaces between.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// The phase.
    pub phase: String,
    /// The set of keys, of a row of indexes; of other rows, if it is not uniform.
    pub keys: Option<&'static str>,
    /// The order in which its records were inserted.
    pub order: Option<&'static str>,
    /// The medium.
    pub medium: String,
    /// Threads at work.
    pub threads: usize,
    /// Puts that each thread has issued together, if not each alone.
    pub batch: Option<usize>,
    /// Records in the store when the phase began, or loaded by it.
    pub records: u64,
    /// Operations done; a batch counts as many as it has keys.
    pub ops: u64,
    /// From the first thread's begin to the last one's end.
    pub seconds: Option<f64>,
    /// Million operations a second, of all threads together.
    pub mops: Option<f64>,
    /// Median time of a call (for batches: of the batch).
    pub p50_ns: Option<u64>,
    /// Time that 99 % of the calls stay within.
    pub p99_ns: Option<u64>,
    /// Time that 99.9 % of the calls stay within.
    pub p999_ns: Option<u64>,
    /// DRAM that the store holds at the end of the phase.
    pub dram_bytes_per_record: Option<f64>,
    /// Growth of the process in resident memory, of a row of indexes. The allocator's slack is in it; memory
    /// that others have given back, and that is used again, is not.
    pub resident_bytes_per_record: Option<f64>,
    /// Bytes of the heap's segments in use at the end of the phase.
    pub pm_bytes_per_record: Option<f64>,
    /// Share of the medium's limit for this kind of operation, in ordinary pages.
    pub roofline: Option<f64>,
    /// That limit, in million operations a second.
    pub limit_mops: Option<f64>,
    /// The same limit in huge pages.
    pub limit_huge_mops: Option<f64>,
    /// Time of an operation that is the benchmark's own: it draws keys and values, copies what a scan shows,
    /// and checks values.
    pub own_ns: Option<f64>,
    /// Puts of an operation that returned because another one had overwritten them, if there were any.
    pub eliminated_per_op: Option<f64>,
    /// Gets of an operation that the cache answered, if there were any.
    pub cache_hits_per_op: Option<f64>,
    /// Tries of a transaction until it was done.
    pub tries_per_op: Option<f64>,
    /// Operations of the thread that got on least, over those of all threads in the mean.
    pub least_share: Option<f64>,
    /// Records that cleaning moved, for each update before it.
    pub moved_per_op: Option<f64>,
    /// Fences of an operation.
    pub fences_per_op: Option<f64>,
    /// Lines that an operation makes durable, by either route.
    pub lines_flushed_per_op: Option<f64>,
    /// Lines of the medium that an operation reads.
    pub lines_read_per_op: Option<f64>,
    /// Bytes that the modelled device writes for an operation.
    pub media_write_bytes_per_op: Option<f64>,
    /// Writes of an operation to another node's memory.
    pub remote_writes_per_op: Option<f64>,
    /// Reads of an operation from another node's memory.
    pub remote_reads_per_op: Option<f64>,
    /// Time that one thread would wait for the medium in an operation, by the simulator's model of it.
    pub modelled_ns_per_op: Option<f64>,
    /// Bytes that the process fetched from disks, where they are counted: those of the page cache and of file
    /// systems in memory are not among them.
    pub disk_read_bytes: Option<u64>,
    /// Bytes that the process sent to disks, where they are counted: pages when they become dirty.
    pub disk_written_bytes: Option<u64>,
    /// DIMMs that an operation writes to, where they are counted.
    pub dimms_per_op: Option<f64>,
    /// Of writers that write at the same time, the most at one DIMM, in the mean over such moments.
    pub writers_at_one_dimm: Option<f64>,
    /// The fields of a row of a paper's evaluation.
    #[serde(flatten)]
    pub paper: Option<InPaper>,
    /// The fields of a row of overwriting until throughput is steady.
    #[serde(flatten)]
    pub utilized: Option<Utilized>,
    /// The fields of a row of puts and gets for a fixed time.
    #[serde(flatten)]
    pub steady: Option<Steady>,
    /// Why nothing was run. Then there is nothing else but what should have been.
    pub not_run: Option<&'static str>,
}

/// Where a row belongs in the evaluation of a paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InPaper {
    /// The paper's system.
    pub paper: String,
    /// Number of the figure, or of the section where there is none.
    pub figure: String,
    /// The mark of this row among those of the figure.
    pub setting: String,
}

/// The result of overwriting until throughput is steady.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Utilized {
    /// Bytes of live records over bytes of all segments that puts may use, in per cent, as it was asked for.
    /// Nothing of an engine whose space is not limited.
    pub utilization: Option<u64>,
    /// How keys were chosen.
    pub distribution: String,
    /// Puts among the operations, in per cent.
    pub put: u64,
    /// Million operations a second of each window of one pool volume of writes; the last three are the row's
    /// own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<f64>,
    /// Whether the last three windows agree.
    pub steady: bool,
    /// Times of gets and of puts, where there are both and times are taken.
    #[serde(flatten)]
    pub mixed: Option<Mixed>,
    /// The work of compaction, of a store of our own.
    #[serde(flatten)]
    pub compaction: Option<Compaction>,
}

/// Times of the calls of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Mixed {
    /// Median time of a get.
    pub get_p50_ns: u64,
    /// Time that 99 % of the gets stay within.
    pub get_p99_ns: u64,
    /// Median time of a put.
    pub put_p50_ns: u64,
    /// Time that 99 % of the puts stay within.
    pub put_p99_ns: u64,
}

/// The work of compaction in the last three windows.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Compaction {
    /// Segments that puts may use.
    pub segments: u64,
    /// Bytes of records written by users and by compaction, over those written by users. Nothing where only
    /// reads were asked for.
    pub write_amplification: Option<f64>,
    /// Bytes of records that compaction moved.
    pub moved_bytes: u64,
    /// These records.
    pub moved_records: u64,
    /// Share of them that told where their entry in the index stood, and were right. Nothing if none moved.
    pub moved_by_hint: Option<f64>,
    /// Bytes of the segments that were cleaned.
    pub cleaned_bytes: u64,
    /// The same for each second.
    pub cleaned_bytes_per_second: Option<f64>,
    /// Zones that compaction owed at the end: those missing to as many as are to be left for puts when it
    /// rests.
    pub owed_zones: u64,
    /// Writes that helped to compact before they began.
    pub helped_writes: u64,
    /// Writes that found no room, and waited for compaction.
    pub stalled_writes: u64,
    /// How long they waited together, in milliseconds.
    pub stalled_ms: Option<u64>,
    /// Bytes of the segments that puts leave to deletes and to compaction.
    pub reserve_bytes: u64,
    /// Bytes of the pool that are no segments.
    pub metadata_bytes: u64,
}

/// The result of puts and gets for a fixed time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Steady {
    /// How keys were chosen.
    pub distribution: String,
    /// Puts among the operations, in per cent.
    pub put: u64,
    /// How steady it was, where times are taken.
    #[serde(flatten)]
    pub times: Option<Steadiness>,
}

/// Throughput by the second, latencies of every call, and stalls.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Steadiness {
    /// Million operations that ended in each second.
    pub mops_by_second: Vec<f64>,
    /// Those of the median second.
    pub median_second_mops: f64,
    /// Those of the slowest second.
    pub slowest_second_mops: f64,
    /// The slowest second over the median one, unless that did nothing.
    pub slowest_over_median: Option<f64>,
    /// Times of the calls.
    #[serde(flatten)]
    pub each: EachKind,
    /// Operations that stalled, and how often the machine did.
    #[serde(flatten)]
    pub stalls: Stalls,
}

/// Times of gets and of puts, in nanoseconds, every call timed; nothing of a kind that there was not.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EachKind {
    /// Median time of a get.
    pub get_p50_ns: Option<u64>,
    /// Time that 99 % of the gets stay within.
    pub get_p99_ns: Option<u64>,
    /// Time that 99.9 % of the gets stay within.
    pub get_p999_ns: Option<u64>,
    /// Time of the longest get.
    pub get_max_ns: Option<u64>,
    /// Median time of a put.
    pub put_p50_ns: Option<u64>,
    /// Time that 99 % of the puts stay within.
    pub put_p99_ns: Option<u64>,
    /// Time that 99.9 % of the puts stay within.
    pub put_p999_ns: Option<u64>,
    /// Time of the longest put.
    pub put_max_ns: Option<u64>,
}

impl Row {
    /// The row of a phase of `design`, with nothing measured.
    pub fn of(design: &str, phase: &str, config: &Config) -> Row {
        Row {
            design: design.to_owned(),
            phase: phase.to_owned(),
            keys: (config.key_set != KeySet::Uniform).then(|| config.key_set.name()),
            medium: config.medium.to_string(),
            threads: config.threads,
            records: config.records,
            ..Row::default()
        }
    }

    /// Fills in throughput and latencies.
    pub fn timed(mut self, outcome: &Outcome) -> Row {
        self.ops = outcome.operations;
        self.seconds = Some(outcome.seconds);
        self.mops = Some(outcome.mops());
        self.p50_ns = outcome.percentile(50.0);
        self.p99_ns = outcome.percentile(99.0);
        self.p999_ns = outcome.percentile(99.9);
        self.disk_read_bytes = outcome.disk.map(|disk| disk.read);
        self.disk_written_bytes = outcome.disk.map(|disk| disk.written);
        self
    }

    /// Fills in the share of a limit, and the limit.
    pub fn against(mut self, roof: Option<Roof>, limit: impl Fn(Limits) -> f64) -> Row {
        self.limit_mops = roof.map(|roof| limit(roof.ordinary));
        self.limit_huge_mops = roof.and_then(|roof| roof.huge).map(limit);
        self.roofline = self.mops.zip(self.limit_mops).map(|(mops, limit)| mops / limit);
        self
    }

    /// Fills in what the store holds for `records` records: DRAM since `before`, and bytes of the pool.
    pub fn holding(mut self, records: u64, before: Option<Memory>, pool_bytes: u64) -> Row {
        if records > 0 {
            let each = |bytes: u64| bytes as f64 / records as f64;
            self.dram_bytes_per_record = before.and_then(|before| Memory::now().since(before)).map(each);
            self.pm_bytes_per_record = Some(each(pool_bytes));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(row: &Row) -> Vec<String> {
        let json: serde_json::Value = serde_json::to_value(row).unwrap();
        let mut names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn json_has_exactly_the_names_that_scripts_rely_on() {
        let mut expected = [
            "design",
            "phase",
            "medium",
            "threads",
            "records",
            "ops",
            "seconds",
            "mops",
            "p50_ns",
            "p99_ns",
            "p999_ns",
            "dram_bytes_per_record",
            "pm_bytes_per_record",
            "roofline",
            "limit_mops",
            "limit_huge_mops",
        ];
        expected.sort_unstable();
        let timed = Row {
            seconds: Some(1.0),
            mops: Some(1.0),
            p50_ns: Some(1),
            p99_ns: Some(1),
            p999_ns: Some(1),
            dram_bytes_per_record: Some(1.0),
            pm_bytes_per_record: Some(1.0),
            ..Row::default()
        };
        let limits = Limits { write_mops: 2.0, read_mops: 4.0 };
        let roof = Roof { ordinary: limits, huge: Some(limits) };
        assert_eq!(names(&timed.clone().against(Some(roof), |limits| limits.write_mops)), expected);
        let without = names(&timed.against(None, |limits| limits.write_mops));
        assert!(!without.iter().any(|name| name == "roofline" || name.starts_with("limit")));

        let mut expected = [
            "design",
            "phase",
            "medium",
            "threads",
            "records",
            "ops",
            "fences_per_op",
            "lines_flushed_per_op",
            "lines_read_per_op",
            "media_write_bytes_per_op",
            "remote_writes_per_op",
            "remote_reads_per_op",
        ];
        expected.sort_unstable();
        let counted = Row {
            fences_per_op: Some(1.0),
            lines_flushed_per_op: Some(1.0),
            lines_read_per_op: Some(1.0),
            media_write_bytes_per_op: Some(1.0),
            remote_writes_per_op: Some(1.0),
            remote_reads_per_op: Some(1.0),
            ..Row::default()
        };
        assert_eq!(names(&counted), expected);
    }
}
