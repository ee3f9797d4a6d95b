//! Simulated levels: images, faults, and the order of publications.

use crate::runs::{TABLE, get, nobody, publish, purge, value, write};
use quipu_lab::sim_levels::{SimFaults, SimForest, SimPublishFault};
use quipu_parts::runs::{Compact, Forest, NameError, Runs, RunsError};

/// The number of the key `a` in a forest that goes on from an image of this one.
fn after_a_crash(forest: &SimForest) -> Option<u64> {
    let forest = SimForest::from_image(forest.image());
    let runs = forest.open(TABLE).expect("opened");
    get(&*runs.levels(), b"a", u64::MAX).map(|(head, _)| head.number)
}

fn number(runs: &dyn Runs) -> Option<u64> {
    get(&*runs.levels(), b"a", u64::MAX).map(|(head, _)| head.number)
}

#[test]
fn an_image_has_all_that_has_a_name() {
    let forest = SimForest::default();
    let runs = forest.open(TABLE).expect("opened");
    assert_eq!(SimForest::from_image(forest.image()).trees().expect("sound"), [TABLE]);
    let part = write(&*runs, &[value(b"a", 1)]);
    assert_eq!(after_a_crash(&forest), None);
    let before = forest.image();
    runs.publish(vec![part]).expect("published");
    assert_eq!(after_a_crash(&forest), Some(1));
    assert_eq!(after_a_crash(&SimForest::from_image(before)), None);
    // Changes of a forest from an image are not seen in others.
    let fork = SimForest::from_image(forest.image());
    publish(&*fork.open(TABLE).expect("opened"), &[value(b"a", 2)]);
    assert_eq!((after_a_crash(&fork), after_a_crash(&forest)), (Some(2), Some(1)));
}

#[test]
fn compactions_merge_above_the_last_run_and_into_it_by_turns() {
    let forest = SimForest::default();
    let runs = forest.open(TABLE).expect("opened");
    for number in 1..=3 {
        assert!(!runs.compact(Compact::Due, purge(number), &nobody()).expect("nothing to do").has_worked);
        publish(&*runs, &[value(b"a", number)]);
    }
    let counts = |runs: &dyn Runs| (runs.stats().tables, runs.stats().records);
    let above = runs.compact(Compact::Due, purge(3), &nobody()).expect("compacted");
    assert!(above.has_worked && above.read == 2 * above.written);
    assert_eq!(counts(&*runs), (2, 2));
    publish(&*runs, &[value(b"a", 4)]);
    assert!(runs.compact(Compact::Due, purge(4), &nobody()).expect("compacted").has_worked);
    assert_eq!(counts(&*runs), (2, 2));
    assert_eq!(after_a_crash(&forest), Some(4));
}

#[test]
fn a_full_disk_changes_nothing_and_ends() {
    let forest = SimForest::default();
    let runs = forest.open(TABLE).expect("opened");
    publish(&*runs, &[value(b"a", 1)]);
    forest.set_faults(SimFaults { write: Some(2), ..SimFaults::default() });
    let part = write(&*runs, &[value(b"a", 2)]);
    let records = [value(b"a", 3)];
    let full = runs.write(&[], &mut crate::runs::Records(records.iter()));
    assert!(matches!(full, Err(RunsError::Full { .. })));
    runs.discard(part);
    assert_eq!(after_a_crash(&forest), Some(1));
    publish(&*runs, &records);
    assert_eq!(after_a_crash(&forest), Some(3));

    let fault = Some((1, SimPublishFault::NotNamed));
    forest.set_faults(SimFaults { publish: fault, compact: Some(1), ..SimFaults::default() });
    let refused = runs.publish(vec![write(&*runs, &[value(b"a", 4)])]);
    assert!(matches!(refused, Err(NameError::NotNamed(RunsError::Full { .. }))));
    let refused = runs.compact(Compact::All, purge(4), &nobody());
    assert!(matches!(refused, Err(NameError::NotNamed(RunsError::Full { .. }))));
    assert_eq!((after_a_crash(&forest), runs.stats().tables), (Some(3), 2));
    publish(&*runs, &[value(b"a", 4)]);
    assert!(runs.compact(Compact::All, purge(4), &nobody()).expect("compacted").has_worked);
    assert_eq!((after_a_crash(&forest), runs.stats().records), (Some(4), 1));
}

#[test]
fn a_poisoned_tree_is_read_and_not_changed() {
    for (fault, named) in [(SimPublishFault::PoisonedBefore, 1), (SimPublishFault::PoisonedAfter, 2)] {
        let forest = SimForest::default();
        forest.set_faults(SimFaults { publish: Some((2, fault)), ..SimFaults::default() });
        let runs = forest.open(TABLE).expect("opened");
        publish(&*runs, &[value(b"a", 1)]);
        let poisoned = |result| matches!(result, Err(NameError::Poisoned(_)));
        assert!(poisoned(runs.publish(vec![write(&*runs, &[value(b"a", 2)])])));
        assert!(poisoned(runs.publish(vec![write(&*runs, &[value(b"a", 3)])])));
        assert!(poisoned(runs.compact(Compact::All, purge(3), &nobody()).map(|_| ())));
        assert!(poisoned(runs.drop_range(b"", b"", 9, &nobody()).map(|_| ())));
        assert!(number(&*runs) >= Some(1));
        assert_eq!(after_a_crash(&forest), Some(named));
        let forest = SimForest::from_image(forest.image());
        let runs = forest.open(TABLE).expect("opened");
        publish(&*runs, &[value(b"a", 3)]);
        assert_eq!(number(&*runs), Some(3));
    }
}

#[test]
#[should_panic(expected = "newer than all that was named before")]
fn an_older_run_is_not_published_above_a_newer_one() {
    let forest = SimForest::default();
    let runs = forest.open(TABLE).expect("opened");
    publish(&*runs, &[value(b"a", 2)]);
    publish(&*runs, &[value(b"a", 1)]);
}
