//! The rules of persistence, one tiny program each: exactly the outcomes that the rules allow, and no other.

use quipu_medium::sim::{Fault, Sim, SimOptions, sched};
use quipu_medium::{LINE, Region};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

type Outcomes = BTreeSet<Vec<u64>>;

fn sim(region: &Region) -> &Arc<Sim> {
    region.simulator().expect("simulated")
}

fn region() -> Region {
    Region::sim(SimOptions::default())
}

/// The possible values of the words at `offsets` if the machine fails now.
fn possible(region: &Region, offsets: &[u64]) -> Outcomes {
    let snapshot = sim(region).snapshot();
    snapshot
        .images(0, 0)
        .map(|image| offsets.iter().map(|offset| image.word(&snapshot, *offset)).collect())
        .collect()
}

fn outcomes<const N: usize>(list: &[[u64; N]]) -> Outcomes {
    list.iter().map(|words| words.to_vec()).collect()
}

type Step = fn(&Region);

/// Runs the steps in this order, each on the task it names (1 or 2).
fn in_turns(region: &Region, steps: &[(u32, Step)]) {
    let turn = Cell::new(0);
    let task = || {
        for (index, (task, step)) in steps.iter().enumerate() {
            if *task == sched::task_id() {
                while turn.get() != index {
                    sched::spin();
                }
                step(region);
                turn.set(index + 1);
            }
        }
    };
    sched::run(1, vec![Box::new(task), Box::new(task)]).expect("no failure");
}

#[test]
fn a_store_is_durable_after_its_flush_and_a_fence_and_not_before() {
    let region = region();
    region.write(0, &1u64.to_le_bytes());
    assert_eq!(possible(&region, &[0]), outcomes(&[[0], [1]]));
    region.fence();
    assert_eq!(possible(&region, &[0]), outcomes(&[[0], [1]]), "a fence alone flushes nothing");
    region.flush(0, 8);
    assert_eq!(possible(&region, &[0]), outcomes(&[[0], [1]]), "a flush alone is not durable");
    region.fence();
    assert_eq!(possible(&region, &[0]), outcomes(&[[1]]));
}

#[test]
fn the_words_of_one_bulk_write_arrive_in_any_subset() {
    let region = region();
    let bytes: Vec<u8> = [1u64, 2, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
    region.write(LINE - 8, &bytes);
    let mut all = Outcomes::new();
    for subset in 0..8u64 {
        all.insert((0..3).map(|bit| if subset >> bit & 1 == 1 { bit + 1 } else { 0 }).collect());
    }
    assert_eq!(possible(&region, &[LINE - 8, LINE, LINE + 8]), all);
}

#[test]
fn atomic_stores_of_a_line_arrive_in_order() {
    let region = region();
    region.store(0, 1);
    region.store(8, 1);
    assert_eq!(possible(&region, &[0, 8]), outcomes(&[[0, 0], [1, 0], [1, 1]]));
}

#[test]
fn atomic_stores_of_two_lines_are_unordered() {
    let region = region();
    region.store(0, 1);
    region.store(LINE, 1);
    assert_eq!(possible(&region, &[0, LINE]), outcomes(&[[0, 0], [1, 0], [0, 1], [1, 1]]));
}

#[test]
fn an_atomic_store_follows_the_plain_writes_of_its_task_in_its_line() {
    let region = region();
    region.write(8, &7u64.to_le_bytes());
    region.store(0, 1);
    assert_eq!(possible(&region, &[0, 8]), outcomes(&[[0, 0], [0, 7], [1, 7]]));
}

#[test]
fn an_atomic_store_does_not_follow_plain_writes_of_another_task_or_line() {
    let first = region();
    in_turns(&first, &[(1, |r| r.write(8, &7u64.to_le_bytes())), (2, |r| r.store(0, 1))]);
    assert_eq!(possible(&first, &[0, 8]), outcomes(&[[0, 0], [0, 7], [1, 0], [1, 7]]));
    let second = region();
    second.write(LINE, &7u64.to_le_bytes());
    second.store(0, 1);
    assert_eq!(possible(&second, &[0, LINE]), outcomes(&[[0, 0], [0, 7], [1, 0], [1, 7]]));
}

#[test]
fn an_atomic_store_brings_along_what_earlier_atomic_stores_demand() {
    let region = region();
    in_turns(
        &region,
        &[(1, |r| r.write(8, &7u64.to_le_bytes())), (1, |r| r.store(16, 1)), (2, |r| r.store(0, 1))],
    );
    assert_eq!(possible(&region, &[8, 16, 0]), outcomes(&[[0, 0, 0], [7, 0, 0], [7, 1, 0], [7, 1, 1]]));
}

#[test]
fn a_plain_write_does_not_follow_an_earlier_atomic_store() {
    let region = region();
    region.store(0, 1);
    region.write(8, &7u64.to_le_bytes());
    assert_eq!(possible(&region, &[0, 8]), outcomes(&[[0, 0], [1, 0], [0, 7], [1, 7]]));
}

#[test]
fn of_two_plain_writes_to_a_word_either_may_be_found_but_the_first_not_after_the_second_is_durable() {
    let region = region();
    region.write(0, &1u64.to_le_bytes());
    region.write(0, &2u64.to_le_bytes());
    assert_eq!(possible(&region, &[0]), outcomes(&[[0], [1], [2]]));
    region.persist(0, 1);
    assert_eq!(possible(&region, &[0]), outcomes(&[[2]]));
}

#[test]
fn a_compare_and_swap_is_ordered_like_an_atomic_store_and_is_no_fence() {
    let region = region();
    region.write(LINE, &7u64.to_le_bytes());
    region.flush(LINE, 8);
    region.write(8, &7u64.to_le_bytes());
    assert_eq!(region.compare_exchange(0, 0, 1), Ok(0));
    assert_eq!(region.compare_exchange(0, 0, 2), Err(1));
    let found = possible(&region, &[LINE, 8, 0]);
    let line: Outcomes = found.iter().map(|words| words[1..].to_vec()).collect();
    assert_eq!(line, outcomes(&[[0, 0], [7, 0], [7, 1]]), "a failed swap adds nothing");
    assert!(found.contains(&vec![0, 7, 1]), "the flushed line is not durable after a swap");
}

#[test]
fn a_flush_captures_the_line_at_its_place_in_the_order() {
    let region = region();
    region.store(0, 1);
    region.flush(0, 8);
    region.store(0, 2);
    region.store(8, 1);
    region.fence();
    assert_eq!(possible(&region, &[0, 8]), outcomes(&[[1, 0], [2, 0], [2, 1]]));
}

#[test]
fn a_flush_writes_back_the_stores_of_every_task() {
    let region = region();
    in_turns(&region, &[(1, |r| r.store(0, 1)), (2, |r| r.persist(0, 8))]);
    assert_eq!(possible(&region, &[0]), outcomes(&[[1]]));
}

#[test]
fn a_fence_completes_only_the_flushes_of_its_own_task() {
    let first = region();
    in_turns(&first, &[(1, |r| r.store(0, 1)), (1, |r| r.flush(0, 8)), (2, |r| r.fence())]);
    assert_eq!(possible(&first, &[0]), outcomes(&[[0], [1]]));
    in_turns(&first, &[(1, |r| r.fence())]);
    assert_eq!(possible(&first, &[0]), outcomes(&[[0], [1]]), "task 1 of another run is another thread");
    let second = region();
    in_turns(&second, &[(1, |r| r.write_nt(0, &[1; 8])), (2, |r| r.fence())]);
    assert_eq!(possible(&second, &[0]).len(), 2);
}

#[test]
fn non_temporal_words_are_unordered_against_everything() {
    let region = region();
    region.write_nt(8, &7u64.to_le_bytes());
    region.store(0, 1);
    assert_eq!(possible(&region, &[0, 8]), outcomes(&[[0, 0], [0, 7], [1, 0], [1, 7]]));
    region.flush(0, 64);
    region.store(16, 1);
    region.fence();
    assert_eq!(possible(&region, &[0, 8, 16]), outcomes(&[[1, 7, 0], [1, 7, 1]]));
}

#[test]
fn of_two_pending_values_either_may_land_last_if_one_is_non_temporal() {
    for (first, second) in [(true, true), (true, false), (false, true)] {
        let region = region();
        // The second word shows whether the later write has arrived.
        let write = |streamed: bool, value: u64| {
            let bytes: Vec<u8> = [value, value].iter().flat_map(|word| word.to_le_bytes()).collect();
            if streamed { region.write_nt(0, &bytes) } else { region.write(0, &bytes) }
        };
        write(first, 1);
        write(second, 2);
        let mut all = Outcomes::new();
        for a in 0..3 {
            for b in 0..3 {
                all.insert(vec![a, b]);
            }
        }
        assert_eq!(possible(&region, &[0, 8]), all, "{first} {second}");
        region.flush(0, 16);
        region.fence();
        assert_eq!(possible(&region, &[0, 8]), outcomes(&[[2, 2]]), "{first} {second}");
    }
}

#[test]
fn a_fence_makes_a_non_temporal_word_win_over_what_the_caches_held_before() {
    let region = region();
    region.write(0, &1u64.to_le_bytes());
    region.write_nt(0, &2u64.to_le_bytes());
    region.fence();
    assert_eq!(possible(&region, &[0]), outcomes(&[[2]]));
}

#[test]
fn a_pending_non_temporal_word_may_override_a_durable_one_until_its_fence() {
    let first = region();
    in_turns(
        &first,
        &[(1, |r| r.write_nt(0, &1u64.to_le_bytes())), (2, |r| r.store(0, 2)), (2, |r| r.persist(0, 8))],
    );
    assert_eq!(possible(&first, &[0]), outcomes(&[[1], [2]]));
    assert_eq!(sim(&first).snapshot().everything().word(&sim(&first).snapshot(), 0), 2);
    let second = region();
    in_turns(
        &second,
        &[
            (1, |r| r.write_nt(0, &1u64.to_le_bytes())),
            (2, |r| r.store(0, 2)),
            (2, |r| r.persist(0, 8)),
            (1, |r| r.fence()),
        ],
    );
    assert_eq!(possible(&second, &[0]), outcomes(&[[2]]), "the processor sees 2 for ever, so 1 has lost");
}

#[test]
fn bytes_within_a_word_arrive_word_by_word() {
    let region = region();
    region.write(0, &[1; 16]);
    region.persist(0, 16);
    region.write(6, &[2; 4]);
    let old = u64::from_le_bytes([1; 8]);
    let low = u64::from_le_bytes([1, 1, 1, 1, 1, 1, 2, 2]);
    let high = u64::from_le_bytes([2, 2, 1, 1, 1, 1, 1, 1]);
    assert_eq!(possible(&region, &[0, 8]), outcomes(&[[old, old], [low, old], [old, high], [low, high]]));
}

#[test]
fn sync_makes_everything_durable() {
    let region = region();
    region.store(0, 1);
    region.write_nt(LINE, &[3; 100]);
    region.sync().expect("simulated");
    assert_eq!(sim(&region).snapshot().pending_count(), 0);
    assert_eq!(possible(&region, &[0]), outcomes(&[[1]]));
}

#[test]
fn an_omitted_fence_leaves_its_lines_to_a_later_one() {
    let region = region();
    sim(&region).set_fault(Some(Fault::FenceOmitted { every: 2 }));
    region.store(0, 1);
    region.persist(0, 8);
    assert_eq!(possible(&region, &[0]), outcomes(&[[1]]));
    region.store(0, 2);
    region.persist(0, 8);
    assert_eq!(possible(&region, &[0]), outcomes(&[[1], [2]]));
    sim(&region).set_fault(None);
    region.fence();
    assert_eq!(possible(&region, &[0]), outcomes(&[[2]]));
}

#[test]
fn a_word_that_is_never_flushed_does_not_gather_values_for_ever() {
    let region = region();
    for value in 1..=10_000 {
        region.store(0, value);
    }
    let pending = sim(&region).snapshot().pending_count();
    assert!((1..=256).contains(&pending), "{pending}");
    let newest = possible(&region, &[0]);
    assert!(newest.contains(&vec![10_000]) && !newest.contains(&vec![0]));
}
