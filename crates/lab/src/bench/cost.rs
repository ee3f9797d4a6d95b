//! Costs of a phase on the simulator, in place of its time.

use super::drive::Outcome;
use super::engine::Engine;
use super::report::Row;
use quipu_medium::sim::Cost;

/// Counts at the beginning of a phase, where there is something to count.
pub(super) struct Meter(Option<Cost>);

impl Meter {
    /// Begins to count.
    pub(super) fn start(target: &impl Engine) -> Meter {
        Meter(target.simulator().map(|sim| sim.cost()))
    }

    /// Fills in what the phase showed: costs on the simulator, times elsewhere.
    pub(super) fn stop(self, target: &impl Engine, row: Row, outcome: &Outcome) -> Row {
        match (self.0, target.simulator()) {
            (Some(before), Some(sim)) => costs(row, sim.cost() - before, outcome.operations),
            _ => row.timed(outcome),
        }
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
        assert_eq!((row.seconds, row.mops), (None, None));
    }
}
