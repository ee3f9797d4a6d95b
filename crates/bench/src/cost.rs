//! Costs of a phase on the simulator, in place of its time.

use super::drive::Outcome;
use super::report::Row;
use quipu_medium::sim::{Cost, Sim};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts at the beginning of a phase, where there is something to count.
pub struct Meter(Option<(Arc<Sim>, Cost)>);

impl Meter {
    /// Begins to count.
    pub fn start(sim: Option<&Arc<Sim>>) -> Meter {
        Meter(sim.map(|sim| (sim.clone(), sim.cost())))
    }

    /// Fills in what the phase showed: costs on the simulator, times elsewhere.
    pub fn stop(self, row: Row, outcome: &Outcome) -> Row {
        match self.0 {
            Some((sim, before)) => costs(row, sim.cost() - before, outcome.operations),
            None => row.timed(outcome),
        }
    }
}

/// Sums up what single calls did to the DIMMs, which the counts of a phase do not tell.
pub struct DimmMeter {
    sim: Arc<Sim>,
    touched: AtomicU64,
    most: AtomicU64,
}

impl DimmMeter {
    /// Begins to count.
    pub fn new(sim: &Arc<Sim>) -> DimmMeter {
        DimmMeter { sim: sim.clone(), touched: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// Makes a call and looks at it.
    pub fn watch<T>(&self, call: impl FnOnce() -> T) -> T {
        let before = self.before();
        let result = call();
        self.behind(before);
        result
    }

    /// The costs before a call that is looked at.
    pub fn before(&self) -> Cost {
        self.sim.cost()
    }

    /// Looks at the call that has been made since.
    pub fn behind(&self, before: Cost) {
        let cost = self.sim.cost() - before;
        self.touched.fetch_add(cost.dimms_touched() as u64, Ordering::Relaxed);
        self.most.fetch_add(cost.dimm_lines.into_iter().max().unwrap_or(0), Ordering::Relaxed);
    }

    /// DIMMs that a call touched, in the mean over `calls`.
    pub fn dimms(&self, calls: u64) -> f64 {
        self.touched.load(Ordering::Relaxed) as f64 / calls as f64
    }

    /// Lines that a call wrote to the DIMM that it wrote most to, in the mean.
    pub fn most_lines(&self, calls: u64) -> f64 {
        self.most.load(Ordering::Relaxed) as f64 / calls as f64
    }
}

fn costs(row: Row, cost: Cost, operations: u64) -> Row {
    let each = |count: u64| Some(count as f64 / operations as f64);
    Row {
        ops: operations,
        fences_per_op: each(cost.fences),
        lines_flushed_per_op: each(cost.lines_persisted()),
        lines_read_per_op: each(cost.lines_read),
        media_write_bytes_per_op: each(cost.media_write_bytes),
        remote_writes_per_op: each(cost.remote_lines_written),
        remote_reads_per_op: each(cost.remote_lines_read),
        modelled_ns_per_op: Some(cost.estimate_ns() / operations as f64),
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shared_among_the_operations() {
        let cost = Cost {
            fences: 8,
            lines_flushed: 4,
            lines_streamed: 12,
            lines_read: 20,
            remote_lines_read: 1,
            remote_lines_written: 2,
            media_write_bytes: 2048,
            ..Cost::default()
        };
        let row = costs(Row::default(), cost, 4);
        assert_eq!((row.ops, row.fences_per_op, row.lines_flushed_per_op), (4, Some(2.0), Some(4.0)));
        assert_eq!((row.lines_read_per_op, row.media_write_bytes_per_op), (Some(5.0), Some(512.0)));
        assert_eq!((row.remote_writes_per_op, row.remote_reads_per_op), (Some(0.5), Some(0.25)));
        assert_eq!(row.modelled_ns_per_op, Some(cost.estimate_ns() / 4.0));
        assert_eq!((row.seconds, row.mops), (None, None));
    }
}
