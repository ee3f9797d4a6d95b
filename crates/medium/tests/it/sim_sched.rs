//! The scheduler of simulated runs: determinism, joining, and the ways a run can fail.

use quipu_medium::sim::sched::{self, RunError, RunOptions, Switch};
use quipu_medium::sim::{EventKind, SimOptions};
use quipu_medium::{LINE, Region};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

type Task<'a> = Box<dyn FnOnce() + 'a>;
type Trace = Vec<(u32, EventKind, u64)>;

/// Three tasks that increment a word without a lock, so that the interleaving decides the result.
fn race(seed: u64) -> (Trace, u64, quipu_medium::sim::Cost, u64) {
    let region = Region::sim(SimOptions::default());
    let trace = Rc::new(RefCell::new(Trace::new()));
    let seen = Rc::clone(&trace);
    region.simulator().expect("simulated").set_observer(Some(Box::new(move |_, event| {
        seen.borrow_mut().push((event.task, event.kind, event.offset));
    })));
    let task = || {
        for _ in 0..20 {
            let value = region.load(0);
            region.store(0, value + 1);
            region.persist(0, 8);
        }
    };
    let tasks: Vec<Task> = vec![Box::new(task), Box::new(task), Box::new(task)];
    sched::run(seed, tasks).expect("no failure");
    let sim = region.simulator().expect("simulated");
    sim.set_observer(None);
    let trace = trace.take();
    (trace, region.load(0), sim.cost(), sched::steps())
}

#[test]
fn one_seed_replays_exactly() {
    for seed in 0..30 {
        assert_eq!(race(seed), race(seed));
    }
}

#[test]
fn seeds_explore_different_interleavings() {
    let results: std::collections::HashSet<_> = (0..60).map(|seed| race(seed).1).collect();
    assert!(results.len() > 10, "only {results:?}");
    let traces: std::collections::HashSet<_> = (0..60).map(|seed| race(seed).0).collect();
    assert!(traces.len() > 40, "only {} traces", traces.len());
}

/// The order in which tasks, each of three steps, take them with these switches.
fn order(tasks: u32, switches: &[(u64, u64)]) -> Vec<u32> {
    let order = RefCell::new(Vec::new());
    let task = || {
        for _ in 0..3 {
            sched::point();
            order.borrow_mut().push(sched::task_id());
        }
    };
    let switches: Vec<_> = switches.iter().map(|(after, to)| Switch { after: *after, to: *to }).collect();
    let tasks = (0..tasks).map(|_| Box::new(task) as Task).collect();
    sched::run_switched(RunOptions::default(), Box::new(switches.into_iter()), tasks).expect("no failure");
    order.into_inner()
}

#[test]
fn tasks_switch_where_they_are_told_to_and_nowhere_else() {
    assert_eq!(order(2, &[]), [1, 1, 1, 2, 2, 2]);
    assert_eq!(order(2, &[(2, 0), (2, 7)]), [1, 2, 1, 1, 2, 2]);
    assert_eq!(order(3, &[(1, 1)]), [3, 3, 3, 1, 1, 1, 2, 2, 2]);
    assert_eq!(order(3, &[(1, 0), (1, 0), (1, 0)])[..3], [1, 1, 1]);
}

#[test]
fn a_task_that_looks_again_and_again_lets_others_run_without_a_switch() {
    let is_set = Cell::new(false);
    let waits = || {
        while !is_set.get() {
            sched::point();
        }
    };
    let sets = || is_set.set(true);
    let tasks: Vec<Task> = vec![Box::new(waits), Box::new(sets)];
    assert_eq!(sched::run_switched(RunOptions::default(), Box::new(std::iter::empty()), tasks), Ok(()));
}

#[test]
fn outside_of_a_run_there_are_no_tasks_and_no_switches() {
    assert!(!sched::simulated());
    assert_eq!(sched::task_id(), 0);
    sched::point();
    sched::spin();
    let region = Region::sim(SimOptions::default());
    region.store(0, 7);
    region.persist(0, 8);
    assert_eq!(region.load(0), 7);
    let ran = Cell::new(0);
    sched::run(1, vec![Box::new(|| ran.set(sched::task_id()))]).expect("no failure");
    assert_eq!(ran.get(), 1);
    sched::run(1, Vec::new()).expect("nothing to do");
}

#[test]
fn join_all_runs_children_in_the_same_run_and_waits() {
    for seed in 0..50 {
        let sum = AtomicU64::new(0);
        let order = RefCell::new(Vec::new());
        let parent = || {
            let mut local = [0u64; 4];
            let children: Vec<Box<dyn FnOnce() + Send>> = local
                .iter_mut()
                .map(|slot| {
                    let sum = &sum;
                    Box::new(move || {
                        for _ in 0..10 {
                            sched::point();
                        }
                        *slot = u64::from(sched::task_id());
                        sum.fetch_add(1, Ordering::Relaxed);
                        let inner = &*sum;
                        sched::join_all(vec![Box::new(move || {
                            sched::point();
                            inner.fetch_add(100, Ordering::Relaxed);
                        })]);
                    }) as Box<dyn FnOnce() + Send>
                })
                .collect();
            sched::join_all(children);
            assert_eq!(sum.load(Ordering::Relaxed), 404);
            assert!(local.iter().all(|id| *id > 2), "{local:?}");
            order.borrow_mut().push(sched::task_id());
        };
        let other = || {
            for _ in 0..30 {
                sched::point();
            }
            order.borrow_mut().push(sched::task_id());
        };
        sched::run(seed, vec![Box::new(parent), Box::new(other)]).expect("no failure");
        let mut order = order.take();
        order.sort_unstable();
        assert_eq!(order, [1, 2]);
    }
    let outside = AtomicU64::new(0);
    sched::join_all(vec![Box::new(|| outside.store(1, Ordering::Relaxed))]);
    assert_eq!(outside.load(Ordering::Relaxed), 1);
}

fn wait_for_ever() {
    while std::hint::black_box(true) {
        sched::spin();
    }
}

/// Writes when dropped, as a guard of the engine may.
struct WritesWhenDropped<'a>(&'a Region, &'a Cell<u32>);

impl Drop for WritesWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(8, 99);
        self.0.persist(8, 8);
        let _ = self.0.compare_exchange(16, 0, 1);
        self.1.set(self.1.get() + 1);
    }
}

#[test]
fn a_panic_is_reported_and_the_other_tasks_are_unwound_without_effect() {
    for seed in 0..40 {
        let region = Region::sim(SimOptions::default());
        let drops = Cell::new(0);
        let start = Cell::new(0);
        let bystander = || {
            let _guard = WritesWhenDropped(&region, &drops);
            start.set(start.get() + 1);
            wait_for_ever();
        };
        let culprit = || {
            while start.get() < 2 {
                sched::spin();
            }
            region.store(0, 5);
            panic!("on purpose, {}", 42);
        };
        let result = sched::run(seed, vec![Box::new(bystander), Box::new(culprit), Box::new(bystander)]);
        match result {
            Err(RunError::Panicked { task: 2, message, .. }) => assert_eq!(message, "on purpose, 42"),
            other => panic!("{other:?}"),
        }
        assert_eq!(drops.get(), 2);
        assert_eq!((region.load(0), region.load(8), region.load(16)), (5, 0, 0));
        assert!(!sched::simulated());
    }
}

#[test]
fn unwinding_finds_a_lock_that_a_suspended_task_holds() {
    struct TakesLock<'a>(&'a AtomicBool);
    impl Drop for TakesLock<'_> {
        fn drop(&mut self) {
            while self.0.swap(true, Ordering::Acquire) {
                sched::spin();
            }
            self.0.store(false, Ordering::Release);
        }
    }
    struct Holds<'a>(&'a AtomicBool);
    impl Drop for Holds<'_> {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Release);
        }
    }
    let lock = AtomicBool::new(false);
    let ready = Cell::new(0);
    let holder = || {
        while lock.swap(true, Ordering::Acquire) {
            sched::spin();
        }
        let _held = Holds(&lock);
        ready.set(ready.get() + 1);
        wait_for_ever();
    };
    let waiter = || {
        let _later = TakesLock(&lock);
        ready.set(ready.get() + 1);
        wait_for_ever();
    };
    let culprit = || {
        while ready.get() < 2 {
            sched::spin();
        }
        panic!("on purpose");
    };
    let result = sched::run(3, vec![Box::new(holder), Box::new(waiter), Box::new(culprit)]);
    assert!(matches!(result, Err(RunError::Panicked { task: 3, .. })), "{result:?}");
    assert!(!lock.load(Ordering::Relaxed));
}

#[test]
fn a_panic_of_a_child_ends_the_run_and_unwinds_its_parent_last() {
    let order = RefCell::new(Vec::new());
    struct Note<'a>(&'a RefCell<Vec<u32>>, u32);
    impl Drop for Note<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
        }
    }
    // The cell is shared by tasks of one OS thread only.
    struct Shared<'a>(&'a RefCell<Vec<u32>>);
    // SAFETY: all tasks of a run share one OS thread.
    unsafe impl Send for Shared<'_> {}
    let parent = || {
        let _parent = Note(&order, 0);
        let shared = [Shared(&order), Shared(&order)];
        let children: Vec<Box<dyn FnOnce() + Send>> = shared
            .into_iter()
            .enumerate()
            .map(|(index, shared)| {
                Box::new(move || {
                    let shared = shared;
                    let _child = Note(shared.0, index as u32 + 1);
                    sched::spin();
                    sched::spin();
                    assert!(index == 0, "child fails");
                    wait_for_ever();
                }) as Box<dyn FnOnce() + Send>
            })
            .collect();
        sched::join_all(children);
    };
    let result = sched::run(11, vec![Box::new(parent)]);
    assert!(matches!(result, Err(RunError::Panicked { task: 3, .. })), "{result:?}");
    assert_eq!(*order.borrow(), [2, 1, 0]);
}

#[test]
fn a_caught_panic_is_the_tasks_own_affair() {
    let after = Cell::new(false);
    let region = Region::sim(SimOptions::default());
    let task = || {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panic!("caught")));
        assert!(caught.is_err());
        region.store(0, 1);
        after.set(true);
    };
    sched::run(0, vec![Box::new(task), Box::new(sched::point)]).expect("the panic was caught");
    assert!(after.get());
    assert_eq!(region.load(0), 1);
}

#[test]
fn tasks_that_only_wait_are_a_livelock() {
    let never = Cell::new(false);
    let wait = || {
        while !never.get() {
            sched::spin();
        }
    };
    let quick = || sched::point();
    match sched::run(5, vec![Box::new(wait), Box::new(quick), Box::new(wait)]) {
        Err(RunError::Livelock { waiting, .. }) => assert_eq!(waiting, [1, 3]),
        other => panic!("{other:?}"),
    }
    let options = RunOptions { seed: 5, max_steps: 1000, ..RunOptions::default() };
    let endless = || {
        while !never.get() {
            sched::point();
        }
    };
    let result = sched::run_with(options, vec![Box::new(endless)]);
    assert_eq!(result, Err(RunError::OutOfSteps { steps: 1001 }));
}

#[test]
fn runs_on_several_os_threads_do_not_meet() {
    let expected: Vec<_> = (0..8).map(race).collect();
    let handles: Vec<_> =
        (0..4).map(|_| std::thread::spawn(|| (0..8).map(race).collect::<Vec<_>>())).collect();
    for handle in handles {
        assert_eq!(handle.join().expect("no panic"), expected);
    }
}

#[test]
fn an_observer_acts_as_if_outside_of_the_run() {
    let region = Region::sim(SimOptions::default());
    let calls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&calls);
    region.simulator().expect("simulated").set_observer(Some(Box::new(move |sim, _| {
        assert!(!sched::simulated());
        let other = Region::sim(SimOptions { len: 4096, ..SimOptions::default() });
        other.store(0, 1);
        sched::run(1, vec![Box::new(|| other.store(8, 1))]).expect("a run of its own");
        assert_eq!(sim.snapshot().nothing().word(&sim.snapshot(), 0), 0);
        counted.set(counted.get() + 1);
    })));
    let task = || {
        region.store(LINE * u64::from(sched::task_id()), 1);
        region.fence();
    };
    sched::run(1, vec![Box::new(task), Box::new(task)]).expect("no failure");
    assert_eq!(calls.get(), 4);
}

#[test]
fn an_observer_that_changes_its_own_region_is_told_so() {
    let region = Region::sim(SimOptions::default());
    let itself = region.clone();
    let sim = region.simulator().expect("simulated");
    sim.set_observer(Some(Box::new(move |_, _| itself.store(0, 1))));
    let result = sched::run(1, vec![Box::new(|| region.store(0, 2))]);
    assert!(
        matches!(&result, Err(RunError::Panicked { message, .. }) if message.contains("observer")),
        "{result:?}"
    );
    sim.set_observer(None);
}
