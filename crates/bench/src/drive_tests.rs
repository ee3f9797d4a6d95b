//! The runner's own promises.

use super::*;
use crate::Silent;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

fn phase(threads: usize, calls: u64) -> Phase<'static> {
    Phase::new("test", threads, calls, &Silent)
}

fn failure() -> BenchError {
    BenchError::Setting { setting: "test", reason: "fails".into() }
}

#[test]
fn every_call_is_made_once_by_some_thread() {
    let made = Mutex::new(Vec::new());
    let outcome = drive(&phase(3, 10_000), |_| {
        let made = &made;
        Ok(move |number| {
            made.lock().unwrap().push(number);
            Ok(())
        })
    })
    .unwrap();
    let mut made = made.into_inner().unwrap();
    made.sort_unstable();
    assert!(made.into_iter().eq(0..10_000));
    assert_eq!(outcome.operations, 10_000);
    // The last call of each block is timed, and a share's last block may be short.
    let (timed, blocks) = (outcome.latencies.0[0].len(), 10_000u64.div_ceil(BLOCK));
    assert!((blocks..blocks + 3).contains(&timed), "{timed} of {blocks}");
}

#[test]
fn the_clock_ends_a_phase_that_is_to_last() {
    let plan = Phase { counts_disk: true, ..phase(2, 1) }.lasting(Some(1));
    let outcome = drive(&plan, |_| {
        Ok(|_| {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        })
    })
    .unwrap();
    assert!((1.0..1.5).contains(&outcome.seconds), "{}", outcome.seconds);
    assert!((BLOCK..2_000).contains(&outcome.operations), "those that were made: {}", outcome.operations);
    assert_eq!(outcome.disk.is_some(), DiskBytes::now().is_some());
    assert_eq!(phase(2, 7).lasting(None).calls, 7);
    assert_eq!(drive(&phase(1, 7), |_| Ok(|_| Ok(()))).unwrap().disk, None, "it was not asked for");
}

#[test]
fn time_is_that_of_the_slowest_thread_and_warm_up_is_not_in_it() {
    let warm = AtomicU64::new(0);
    let plan = Phase { warm_up: 1, ..phase(2, 2) };
    let outcome = drive(&plan, |thread| {
        let warm = &warm;
        Ok(move |_| {
            let first = warm.fetch_add(1, Ordering::Relaxed) < 2;
            std::thread::sleep(Duration::from_millis(if first { 300 } else { 20 + 40 * thread as u64 }));
            Ok(())
        })
    })
    .unwrap();
    assert!((0.060..0.250).contains(&outcome.seconds), "{}", outcome.seconds);
    assert!(outcome.percentile(99.9).unwrap() >= 59_000_000);
}

#[test]
fn latencies_of_each_kind_are_kept_apart() {
    let outcome = drive(&phase(1, 4 * BLOCK), |_| {
        Ok(|number: u64| {
            // The last call of a block is timed; every other of those is a get.
            let get = number / BLOCK % 2 == 1;
            std::thread::sleep(Duration::from_millis(
                if get { 10 } else { 1 } * u64::from((number + 1).is_multiple_of(BLOCK)),
            ));
            Ok(if get { Access::Get } else { Access::Put })
        })
    })
    .unwrap();
    let median = |access| outcome.percentile_of(access, 50.0).unwrap();
    assert!(median(Access::Get) >= 9_900_000 && median(Access::Put) < 9_900_000);
    assert!(outcome.percentile(100.0) == outcome.percentile_of(Access::Get, 100.0));
    let puts = drive(&phase(1, BLOCK), |_| Ok(|_| Ok(()))).unwrap();
    assert!(puts.percentile_of(Access::Get, 50.0).is_none() && puts.percentile(50.0).is_some());
}

#[test]
fn the_error_is_the_cause_and_not_the_stop() {
    let found = drive(&phase(2, 1 << 40), |thread| {
        Ok(move |number: u64| if thread == 1 && number % STRIDE == 77 { Err(failure()) } else { Ok(()) })
    });
    assert!(matches!(found, Err(BenchError::Setting { .. })));
    let found = drive(&phase(2, 1 << 40), |thread| if thread == 1 { Err(failure()) } else { Ok(|_| Ok(())) });
    assert!(matches!(found, Err(BenchError::Setting { .. })));
}

#[test]
#[should_panic(expected = "a broken invariant")]
fn a_panic_before_the_barrier_reaches_the_caller() {
    let _ = drive(&phase(2, 1 << 40), |thread| {
        assert!(thread != 1, "a broken invariant");
        Ok(|_| Ok(()))
    });
}

/// A caller that notes what it is asked.
struct Noting<'a>(&'a Mutex<Vec<(Range<u64>, Vec<u64>)>>);

impl Caller for Noting<'_> {
    fn prepare(&mut self, calls: Range<u64>) {
        self.0.lock().unwrap().push((calls, Vec::new()));
    }

    fn call(&mut self, number: u64) -> Result<Answer, BenchError> {
        self.0.lock().unwrap().last_mut().expect("it was prepared").1.push(number);
        Ok(().into())
    }
}

#[test]
fn each_call_is_made_behind_the_preparation_of_its_block() {
    let noted = Mutex::new(Vec::new());
    drive(&Phase { warm_up: 2, ..phase(1, STRIDE + 40) }, |_| Ok(Noting(&noted))).unwrap();
    let blocks = noted.into_inner().unwrap();
    assert!(blocks.iter().all(|(prepared, made)| prepared.clone().eq(made.iter().copied())));
    let (warm_up, timed) = blocks.split_first().expect("there are calls");
    assert_eq!(warm_up.0, 0..2);
    assert!(timed.iter().all(|(prepared, _)| (1..=BLOCK).contains(&(prepared.end - prepared.start))));
    assert!(timed.iter().flat_map(|(prepared, _)| prepared.clone()).eq(0..STRIDE + 40));
}

/// A caller whose checks take long, and fail behind the call of a number.
struct Checking(Vec<u64>, u64);

impl Caller for Checking {
    fn prepare(&mut self, _calls: Range<u64>) {}

    fn call(&mut self, number: u64) -> Result<Answer, BenchError> {
        self.0.push(number);
        Ok(().into())
    }

    fn check(&mut self) -> Result<(), BenchError> {
        std::thread::sleep(Duration::from_millis(2));
        if self.0.pop() == Some(self.1) { Err(failure()) } else { Ok(()) }
    }
}

#[test]
fn a_check_follows_each_call_and_is_in_the_time_of_the_phase_alone() {
    let outcome = drive(&phase(1, BLOCK), |_| Ok(Checking(Vec::new(), BLOCK))).unwrap();
    assert!(outcome.seconds >= 0.002 * BLOCK as f64, "{}", outcome.seconds);
    // Each call would have a check in its time. A busy machine may stop any one of them for as long.
    assert!(outcome.percentile(50.0).unwrap() < 2_000_000);
    assert!(drive(&phase(1, BLOCK), |_| Ok(Checking(Vec::new(), BLOCK - 1))).is_err());
}
