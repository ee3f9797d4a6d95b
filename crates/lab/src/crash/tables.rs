//! The part of a workload that only a design with tables, snapshots and range deletes can carry out.

use super::oracle::Action;
use super::records::Records;
use super::workload::Step;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The slot of the table that is dropped and created anew. The others stay once they are there.
pub(super) const BRIEF: usize = 3;

/// Adds to the steps of each task: it takes snapshots, reads at them while it works on, and gives them back;
/// it iterates over tables, and deletes ranges of keys. One more task creates the tables that are missing,
/// and drops one again and again.
pub(super) fn with_tables(plans: &mut Vec<Vec<Step>>, seed: u64, records: Records) {
    let mut random = SmallRng::seed_from_u64(seed);
    // Snapshots hold space back; some runs have none.
    let holds = random.random_ratio(3, 4);
    let steps = plans.iter().map(Vec::len).max().unwrap_or_default();
    for plan in &mut *plans {
        let steps = std::mem::take(plan);
        for step in steps {
            plan.push(step);
            match random.random_range(0..32) {
                0 | 1 if holds => plan.push(Step::Hold),
                2..6 if holds => plan.push(Step::Look),
                6 if holds => plan.extend([Step::Look, Step::Leave]),
                7 => plan.push(Step::Scan(random.random_range(0..records.tables))),
                // A sweep has to wait for the snapshot.
                8 if holds => plan.extend([Step::Hold, range(&mut random, records), Step::Look]),
                8 => plan.push(range(&mut random, records)),
                _ => {}
            }
        }
    }
    if records.tables > 1 {
        plans.push(changes(&mut random, steps, records));
    }
}

/// A deletion of a few keys of a table, of all from one on, or of those that share the beginning of a name.
pub(super) fn range(random: &mut SmallRng, records: Records) -> Step {
    let first = random.random_range(0..records.keys);
    let behind = match random.random_range(0..8) {
        0 => None,
        1 => Some(usize::MAX),
        _ => Some(first + records.tables * random.random_range(1..5)),
    };
    Step::DeleteRange(first, behind)
}

/// The steps of the task that creates and drops tables.
fn changes(random: &mut SmallRng, steps: usize, records: Records) -> Vec<Step> {
    let mut plan: Vec<_> = (1..records.tables).map(Step::Create).collect();
    for _ in 0..random.random_range(0..=(steps / 8).min(5)) {
        for _ in 0..random.random_range(1..6) {
            let key = random.random_range(0..records.keys);
            plan.push(Step::One(key - records.table(key) + BRIEF, Action::Get));
        }
        plan.extend([Step::Drop(BRIEF), Step::Create(BRIEF)]);
    }
    // The last one may stay away.
    if random.random_ratio(1, 4) {
        plan.push(Step::Drop(BRIEF));
    }
    plan
}
