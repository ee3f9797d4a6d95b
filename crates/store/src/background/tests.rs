//! Jobs of several stores on one crew.

use super::crew::{Crew, lock};
use super::*;
use std::sync::mpsc;
use std::sync::{Mutex, Weak};
use std::time::{Duration, Instant};

fn job(steps: Steps, bell: &Arc<Bell>, step: impl FnMut() -> Progress + Send + 'static) -> Job {
    Job { name: "quipu-test", steps, bell: bell.clone(), step: Box::new(step) }
}

/// A store with these jobs on a crew of so many threads.
fn store_on(crew: &Arc<Crew>, threads: usize, jobs: Vec<Job>) -> Workers {
    crew.join(threads);
    let mut workers = Workers::default();
    workers.add(crew.clone(), jobs, &Arc::default());
    workers
}

fn crew() -> Arc<Crew> {
    Crew::new("quipu-test")
}

/// Waits for what must come.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} has not come");
        thread::yield_now();
    }
}

/// Whether the crew has no thread any more.
fn has_ended(crew: &Weak<Crew>) -> bool {
    crew.strong_count() == 0
}

/// DRAM may be wrong then, and a cleaner frees segments that it believes dead.
#[test]
fn a_store_that_has_failed_has_no_jobs() {
    let (admission, bell, steps) = (Arc::<Admission>::default(), Arc::<Bell>::default(), Arc::new(()));
    let restless = || {
        let held = steps.clone();
        job(Steps::Brief, &bell, move || {
            let _ = &held;
            Progress::More
        })
    };
    let workers = Workers::start(vec![restless()], &admission, None);
    assert!(bell.ring() && admission.admit().is_ok());
    let publisher = admission.clone();
    let published = thread::spawn(move || {
        let _mourner = publisher.mourner();
        panic!("a publication that fails");
    });
    assert!(published.join().is_err());
    until("the end of the job", || !bell.ring() && Arc::strong_count(&steps) == 1);
    assert!(matches!(admission.admit(), Err(Error::BackgroundFailed)));
    drop(workers);
    let _workers = Workers::start(vec![restless()], &admission, None);
    assert!(!bell.ring() && Arc::strong_count(&steps) == 1);
}

#[test]
fn the_busy_take_turns() {
    let (crew, turns) = (crew(), Arc::new(Mutex::new(Vec::new())));
    let bells: [Arc<Bell>; 3] = Default::default();
    let (begins, begun) = mpsc::channel::<()>();
    let wait = job(Steps::Brief, &bells[2], move || {
        let _ = begun.recv();
        Progress::Enough
    });
    let busy = [0, 1].map(|store| {
        let turns = turns.clone();
        job(Steps::Brief, &bells[store], move || {
            lock(&turns).push(store);
            if lock(&turns).len() < 1000 { Progress::More } else { Progress::Enough }
        })
    });
    let first = store_on(&crew, 1, vec![wait]);
    let others = busy.map(|job| store_on(&crew, 1, vec![job]));
    begins.send(()).unwrap();
    until("a thousand turns", || lock(&turns).len() >= 1000);
    drop((first, others));
    assert!(lock(&turns).iter().enumerate().all(|(turn, store)| turn % 2 == *store));
}

#[test]
fn a_job_that_panics_ends_its_own_store_alone() {
    let (crew, [bell, other]) = (crew(), <[Arc<Bell>; 2]>::default());
    let held = Arc::new(());
    let in_step = held.clone();
    let admission = Arc::<Admission>::default();
    crew.join(1);
    let mut panicking = Workers::default();
    let panics = job(Steps::Brief, &bell, move || {
        let _ = &in_step;
        panic!("a step that fails");
    });
    panicking.add(crew.clone(), vec![panics], &admission);
    until("the failure", || admission.has_failed() && !bell.ring() && Arc::strong_count(&held) == 1);
    // On the same thread: the crew has no other.
    let steps = Arc::new(AtomicUsize::new(0));
    let count = steps.clone();
    let counts = job(Steps::Brief, &other, move || {
        count.fetch_add(1, Ordering::Relaxed);
        Progress::Enough
    });
    let _workers = store_on(&crew, 1, vec![counts]);
    until("a step", || steps.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_store_closes_when_none_of_its_steps_is_taken() {
    let (crew, bell, held) = (crew(), Arc::<Bell>::default(), Arc::new(()));
    let (begins, begun) = mpsc::channel();
    let (ends, end) = mpsc::channel::<()>();
    let in_step = held.clone();
    let waits = job(Steps::Longest, &bell, move || {
        let _ = &in_step;
        let _ = begins.send(());
        let _ = end.recv();
        Progress::More
    });
    let workers = store_on(&crew, 2, vec![waits]);
    begun.recv().unwrap();
    thread::scope(|scope| {
        let closing = scope.spawn(|| drop(workers));
        thread::sleep(Duration::from_millis(20));
        assert!(!closing.is_finished() && !bell.ring());
        ends.send(()).unwrap();
        closing.join().unwrap();
    });
    assert_eq!(Arc::strong_count(&held), 1);
    // Its threads have ended too, and the same job may begin anew on another crew.
    let crew = Arc::downgrade(&{ crew });
    assert!(has_ended(&crew));
    let _workers = Workers::start(vec![job(Steps::Brief, &bell, || Progress::Enough)], &Arc::default(), None);
    assert!(bell.ring());
}

#[test]
fn a_step_may_close_its_own_store_and_others() {
    let (crew, bells) = (crew(), <[Arc<Bell>; 3]>::default());
    let [own, asleep, at_work] = [(); 3].map(|()| Arc::new(Mutex::new(None::<Workers>)));
    let (begins, begun) = mpsc::channel();
    let stores = [&own, &asleep, &at_work].map(Arc::clone);
    let (may_close, closes) = mpsc::channel::<()>();
    let (closed, is_closed) = mpsc::channel();
    let closer = job(Steps::Brief, &bells[0], move || {
        let _ = closes.recv();
        stores.iter().rev().for_each(|store| drop(lock(store).take()));
        let _ = closed.send(());
        Progress::More
    });
    let works = job(Steps::Brief, &bells[2], move || {
        let _ = begins.send(());
        thread::sleep(Duration::from_millis(20));
        Progress::More
    });
    *lock(&own) = Some(store_on(&crew, 2, vec![closer]));
    *lock(&asleep) = Some(store_on(&crew, 2, vec![job(Steps::Brief, &bells[1], || Progress::Enough)]));
    *lock(&at_work) = Some(store_on(&crew, 2, vec![works]));
    begun.recv().unwrap();
    may_close.send(()).unwrap();
    is_closed.recv_timeout(Duration::from_secs(60)).unwrap();
    let crew = Arc::downgrade(&{ crew });
    until("the end of the threads", || has_ended(&crew));
    assert!(bells.iter().all(|bell| !bell.ring()));
}

/// The step may wait for what the caller holds.
#[test]
fn who_leaves_waits_for_no_step() {
    let (crew, bells) = (crew(), <[Arc<Bell>; 2]>::default());
    let (begins, begun) = mpsc::channel();
    let (ends, end) = mpsc::channel::<()>();
    let waits = job(Steps::Brief, &bells[0], move || {
        let _ = begins.send(());
        let _ = end.recv();
        Progress::More
    });
    let mut left = store_on(&crew, 2, vec![waits]);
    let last = store_on(&crew, 2, vec![job(Steps::Brief, &bells[1], || Progress::Enough)]);
    begun.recv().unwrap();
    left.leave();
    drop((left, last));
    assert!(bells.iter().all(|bell| !bell.ring()));
    ends.send(()).unwrap();
    let crew = Arc::downgrade(&{ crew });
    until("the end of the threads", || has_ended(&crew));
}

/// A call that must be heard is made once.
#[test]
fn no_call_is_lost() {
    const CALLS: usize = 20_000;
    let crew = crew();
    let stores: Vec<_> = (0..8)
        .map(|store| {
            let (bell, counts) =
                (Arc::<Bell>::default(), Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]));
            let own = counts.clone();
            let answers = job(Steps::Brief, &bell, move || {
                own[1].store(own[0].load(Ordering::Relaxed), Ordering::Relaxed);
                if store % 2 == 0 { Progress::Enough } else { Progress::Stuck }
            });
            (store_on(&crew, 3, vec![answers]), bell, counts)
        })
        .collect();
    thread::scope(|scope| {
        for (_, bell, counts) in &stores {
            scope.spawn(|| {
                for call in 1..=CALLS / stores.len() {
                    counts[0].store(call, Ordering::Relaxed);
                    assert!(bell.ring_now());
                    until("an answer", || counts[1].load(Ordering::Relaxed) == call);
                }
            });
        }
    });
}

/// A call that is repeated with each write wakes a job that sleeps.
#[test]
fn a_call_that_is_repeated_is_heard() {
    let (crew, bell, counts) = (crew(), Arc::<Bell>::default(), Arc::<[AtomicUsize; 2]>::default());
    let own = counts.clone();
    let answers = job(Steps::Brief, &bell, move || {
        own[1].store(own[0].load(Ordering::Relaxed), Ordering::Relaxed);
        Progress::Enough
    });
    let _workers = store_on(&crew, 2, vec![answers]);
    for call in 1..20_000 {
        counts[0].store(call, Ordering::Relaxed);
        until("an answer", || bell.ring() && counts[1].load(Ordering::Relaxed) == call);
    }
}

#[test]
fn a_job_that_is_stuck_rests_longer_each_time() {
    let (crew, bell, times) = (crew(), Arc::<Bell>::default(), Arc::new(Mutex::new(Vec::new())));
    let own = times.clone();
    let stuck = job(Steps::Brief, &bell, move || {
        lock(&own).push(Instant::now());
        Progress::Stuck
    });
    // Another thread waits without a time.
    let _idle = store_on(&crew, 2, vec![job(Steps::Brief, &Arc::default(), || Progress::Enough)]);
    let _workers = store_on(&crew, 2, vec![stuck]);
    until("six steps", || lock(&times).len() >= 6);
    let rests: Vec<Duration> = lock(&times).windows(2).take(5).map(|pair| pair[1] - pair[0]).collect();
    let least = [1, 2, 4, 8, 16].map(Duration::from_millis);
    assert!(rests.iter().zip(least).all(|(rest, least)| *rest >= least), "{rests:?}");
    // The next rest has 32 ms at least: it is ended by a call that is to be heard at once, and by no other.
    let count = lock(&times).len();
    assert!(bell.ring());
    assert!(bell.ring_now());
    until("a step", || lock(&times).len() > count);
}

#[test]
fn long_steps_leave_threads_for_shorter_ones() {
    let (crew, release) = (crew(), Arc::new(AtomicBool::new(false)));
    let mut stores = Vec::new();
    let taken: [Arc<AtomicUsize>; 2] = Default::default();
    for (steps, taken) in [(Steps::Longest, &taken[0]), (Steps::Long, &taken[1])] {
        for _ in 0..4 {
            let (release, taken) = (release.clone(), taken.clone());
            let long = job(steps, &Arc::default(), move || {
                taken.fetch_add(1, Ordering::Relaxed);
                while !release.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                Progress::Enough
            });
            stores.push(store_on(&crew, 3, vec![long]));
        }
    }
    let (brief, bell) = (Arc::new(AtomicUsize::new(0)), Arc::<Bell>::default());
    let count = brief.clone();
    let brief_job = job(Steps::Brief, &bell, move || {
        count.fetch_add(1, Ordering::Relaxed);
        Progress::Enough
    });
    stores.push(store_on(&crew, 3, vec![brief_job]));
    let of = |taken: &AtomicUsize| taken.load(Ordering::Relaxed);
    until("one of each length", || of(&taken[0]) == 1 && of(&taken[1]) == 1);
    for _ in 0..100 {
        let before = of(&brief);
        until("a brief step", || bell.ring() && of(&brief) > before);
    }
    assert_eq!(taken.each_ref().map(|taken| of(taken)), [1, 1]);
    release.store(true, Ordering::Relaxed);
    until("all steps", || taken.iter().all(|taken| of(taken) == 4));
}

#[test]
fn a_crew_has_few_threads_and_no_more_than_jobs() {
    let (crew, steps) = (crew(), Arc::new(AtomicUsize::new(0)));
    let restless = |bell: &Arc<Bell>| {
        let steps = steps.clone();
        job(Steps::Brief, bell, move || {
            if steps.fetch_add(1, Ordering::Relaxed) < 100_000 { Progress::More } else { Progress::Enough }
        })
    };
    let mut stores = vec![store_on(&crew, 3, vec![restless(&Arc::default())])];
    until("some steps", || steps.load(Ordering::Relaxed) > 1000);
    assert_eq!(crew.threads(), 1);
    stores.extend((0..256).map(|_| store_on(&crew, 3, vec![restless(&Arc::default())])));
    until("all steps", || steps.load(Ordering::Relaxed) > 100_000);
    assert!(crew.threads() <= 3);
}

#[test]
fn without_a_thread_nobody_is_called() {
    let (bell, held) = (Arc::<Bell>::default(), Arc::new(()));
    let in_step = held.clone();
    let idle = job(Steps::Brief, &bell, move || {
        let _ = &in_step;
        Progress::Enough
    });
    let workers = store_on(&crew(), 0, vec![idle]);
    assert!(!bell.ring() && !bell.ring_now() && Arc::strong_count(&held) == 1);
    drop(workers);
}

#[test]
fn each_piece_is_worked_once() {
    let counts: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
    in_pieces(counts.len(), |piece| {
        counts[piece].fetch_add(1, Ordering::Relaxed);
    });
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    in_pieces(0, |_| unreachable!());
}
