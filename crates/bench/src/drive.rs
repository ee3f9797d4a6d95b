//! Runs one phase on all threads and takes its time.
//!
//! Lives in the lab, outside of the engine, and so uses threads and clocks of the standard library.

use super::cost::DimmMeter;
use super::disk::DiskBytes;
use super::error::BenchError;
use super::progress::Progress;
use crate::threads::on_threads;
use hdrhistogram::Histogram;
use quipu_medium::sim::sched::{self, RunOptions};
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

/// Calls of a block: what they take is made ready together, and the last one is timed on its own, which comes
/// behind others and not behind the preparation.
const BLOCK: u64 = 64;

/// Calls between two looks at what the other threads do.
const STRIDE: u64 = 4096;

/// Calls of a thread in a phase that ends by the clock: more than any makes.
pub const ENDLESS: u64 = 1 << 40;

/// Latencies beyond a minute count as a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// A phase to run.
pub struct Phase<'a> {
    /// Its name, for progress.
    pub stage: &'a str,
    /// Threads that share the calls.
    pub threads: usize,
    /// Calls of all threads together.
    pub calls: u64,
    /// Operations that a call does.
    pub operations_per_call: u64,
    /// Calls that each thread makes before the clock starts.
    pub warm_up: u64,
    /// How long it lasts, if the clock is to end it before its calls do.
    pub lasts: Option<Duration>,
    /// Whether the threads are tasks of the simulator.
    pub tasks: bool,
    /// Whether to count the bytes that go to disks and come from there meanwhile.
    pub counts_disk: bool,
    /// Looks at each call on its own, where that is asked for.
    pub dimms: Option<&'a DimmMeter>,
    /// Hears how far it is.
    pub progress: &'a dyn Progress,
}

impl<'a> Phase<'a> {
    /// Calls of one operation each, without a warm-up.
    pub fn new(stage: &'a str, threads: usize, calls: u64, progress: &'a dyn Progress) -> Phase<'a> {
        Phase {
            stage,
            threads,
            calls,
            operations_per_call: 1,
            warm_up: 0,
            lasts: None,
            tasks: false,
            counts_disk: false,
            dimms: None,
            progress,
        }
    }

    /// The same until so many seconds have passed, however many calls that are; as it is for none.
    pub fn lasting(self, seconds: Option<u64>) -> Phase<'a> {
        let Some(seconds) = seconds else { return self };
        let calls = ENDLESS * self.threads as u64;
        Phase { calls, lasts: Some(Duration::from_secs(seconds)), ..self }
    }

    /// Its length for a progress bar: in seconds if the clock ends it.
    fn steps(&self) -> u64 {
        self.lasts.map_or(self.calls * self.operations_per_call, |time| time.as_secs())
    }

    /// The numbers of the calls that a thread makes.
    pub fn share(&self, thread: usize) -> Range<u64> {
        let begin = |thread: usize| self.calls * thread as u64 / self.threads as u64;
        begin(thread)..begin(thread + 1)
    }
}

/// The kind of a call, where a phase has several: their latencies are kept apart.
///
/// A whole word, and so an [`Answer`] is words without a gap. Copies of a gap are narrow and overlap; behind
/// a fence, which holds stores back, the next load of such bytes waits until it has ended, and with it all
/// that comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Access {
    /// A put, or another write.
    Put,
    /// A get.
    Get,
}

/// The answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request that the call was, all of it; nothing if that waits for others.
    pub access: Option<Access>,
    /// How long a put has waited that came with an earlier call and is answered with this one, in
    /// nanoseconds, if it was timed.
    pub waited_ns: Option<u64>,
}

impl From<Access> for Answer {
    #[inline]
    fn from(access: Access) -> Answer {
        Answer { access: Some(access), waited_ns: None }
    }
}

/// All calls of most phases are alike.
impl From<()> for Answer {
    #[inline]
    fn from((): ()) -> Answer {
        Access::Put.into()
    }
}

/// The calls of a thread in a phase.
pub trait Caller {
    /// Makes ready what the next calls take, these and no others. It is not timed as a part of one of them.
    fn prepare(&mut self, calls: Range<u64>);

    /// Makes the call of this number.
    fn call(&mut self, number: u64) -> Result<Answer, BenchError>;

    /// Checks what the last call has read, as far as it has not done that itself. It is not timed as a part
    /// of it.
    #[inline]
    fn check(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
}

/// Calls that make what they take.
impl<C, A> Caller for C
where
    C: FnMut(u64) -> Result<A, BenchError>,
    A: Into<Answer>,
{
    #[inline]
    fn prepare(&mut self, _calls: Range<u64>) {}

    #[inline(always)]
    fn call(&mut self, number: u64) -> Result<Answer, BenchError> {
        self(number).map(A::into)
    }
}

/// Latencies of each kind of call.
pub struct Latencies([Histogram<u64>; 2]);

impl Latencies {
    /// No latency yet.
    pub fn none() -> Latencies {
        let histogram =
            || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are in order");
        Latencies([histogram(), histogram()])
    }

    #[inline]
    /// Adds the latency of a call.
    pub fn record(&mut self, access: Access, ns: u64) {
        self.0[access as usize].saturating_record(ns);
    }

    /// Records what a call has told of another one.
    #[inline]
    fn record_waited(&mut self, answer: Answer) {
        if let Some(ns) = answer.waited_ns {
            self.record(Access::Put, ns);
        }
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Latencies) {
        for (sum, other) in self.0.iter_mut().zip(&other.0) {
            sum.add(other).expect("equal bounds");
        }
    }
}

/// The result of a phase.
pub struct Outcome {
    /// Operations done.
    pub operations: u64,
    /// From the first begin to the last end.
    pub seconds: f64,
    /// Bytes to and from disks, if they were to be counted and can be.
    pub disk: Option<DiskBytes>,
    latencies: Latencies,
}

impl Outcome {
    /// Of operations that were one call without latencies of its own.
    pub fn single(operations: u64, seconds: f64) -> Outcome {
        Outcome { operations, seconds, disk: None, latencies: Latencies::none() }
    }

    /// The same with latencies that somebody else has taken.
    pub fn with(self, latencies: Latencies) -> Outcome {
        Outcome { latencies, ..self }
    }

    /// Two that came one after the other, as one.
    pub fn and(mut self, next: &Outcome) -> Outcome {
        self.latencies.add(&next.latencies);
        Outcome {
            operations: self.operations + next.operations,
            seconds: self.seconds + next.seconds,
            disk: None,
            latencies: self.latencies,
        }
    }

    /// Million operations a second.
    pub fn mops(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9) / 1e6
    }

    /// The latency that so many per cent of the timed calls stay within.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let [puts, gets] = &self.latencies.0;
        let mut all = puts.clone();
        all.add(gets).expect("equal bounds");
        (!all.is_empty()).then(|| all.value_at_percentile(percent))
    }

    /// The same of calls of one kind.
    pub fn percentile_of(&self, access: Access, percent: f64) -> Option<u64> {
        let of = &self.latencies.0[access as usize];
        (!of.is_empty()).then(|| of.value_at_percentile(percent))
    }
}

struct Share {
    begin: Instant,
    end: Instant,
    calls: u64,
    latencies: Latencies,
}

/// Runs a phase. `prepare` is called on each thread with its number and opens what that thread needs; the
/// function it returns, or other [`Caller`], makes the call of a given number. Thread `t` makes a consecutive
/// share of the calls, in order, or as many of them as it makes until the clock ends the phase. The answer of
/// a call tells its kind.
pub fn drive<P, C>(phase: &Phase<'_>, prepare: P) -> Result<Outcome, BenchError>
where
    P: Fn(usize) -> Result<C, BenchError> + Sync,
    C: Caller,
{
    let start = Start::of(phase);
    phase.progress.begin(phase.stage, phase.steps());
    let shares: Vec<Result<Share, BenchError>> = if phase.threads == 1 {
        // On the caller's own thread: the simulator's runs are bound to it.
        vec![run(phase, 0, &prepare, &start)]
    } else if phase.tasks {
        as_tasks(phase.threads, |thread| run(phase, thread, &prepare, &start))
    } else {
        on_threads(phase.threads, |thread| run(phase, thread, &prepare, &start))
    };
    phase.progress.end();
    let disk = start.disk.get().and_then(|before| Some(DiskBytes::now()? - (*before)?));
    collect(phase, shares).map(|outcome| Outcome { disk, ..outcome })
}

/// Runs `work` as so many tasks of the simulator, and returns their answers in order.
fn as_tasks<R>(tasks: usize, work: impl Fn(usize) -> R) -> Vec<R> {
    let (answers, work) = (RefCell::new((0..tasks).map(|_| None).collect::<Vec<_>>()), &work);
    let task = |number| -> Box<dyn FnOnce() + '_> {
        let answers = &answers;
        Box::new(move || {
            let answer = work(number);
            answers.borrow_mut()[number] = Some(answer);
        })
    };
    let options = RunOptions { max_steps: u64::MAX, ..RunOptions::default() };
    if let Err(error) = sched::run_with(options, (0..tasks).map(task).collect()) {
        panic!("a simulated phase failed: {error}");
    }
    answers.into_inner().into_iter().map(|answer| answer.expect("every task has ended")).collect()
}

/// Where the threads of a phase meet before its clock starts, and how they hear that one has failed.
struct Start {
    barrier: Barrier,
    /// The counts of disks then, if they are asked for.
    disk: OnceLock<Option<DiskBytes>>,
    stop: AtomicBool,
}

impl Start {
    fn of(phase: &Phase<'_>) -> Start {
        let meets = if phase.tasks { 1 } else { phase.threads };
        Start { barrier: Barrier::new(meets), disk: OnceLock::new(), stop: AtomicBool::new(false) }
    }

    fn wait(&self, phase: &Phase<'_>) {
        self.barrier.wait();
        if phase.counts_disk {
            // All have warmed up; none begins before one has looked.
            self.disk.get_or_init(DiskBytes::now);
            self.barrier.wait();
        }
    }
}

fn collect(phase: &Phase<'_>, shares: Vec<Result<Share, BenchError>>) -> Result<Outcome, BenchError> {
    let mut latencies = Latencies::none();
    let (mut spans, mut calls) = (Vec::new(), 0);
    let mut stopped = None;
    for share in shares {
        match share {
            Ok(share) => {
                latencies.add(&share.latencies);
                spans.push((share.begin, share.end));
                calls += share.calls;
            }
            Err(BenchError::Stopped) => stopped = Some(BenchError::Stopped),
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = stopped {
        return Err(error);
    }
    let begin = spans.iter().map(|span| span.0).min().expect("at least one thread");
    let end = spans.iter().map(|span| span.1).max().expect("at least one thread");
    let operations = calls * phase.operations_per_call;
    Ok(Outcome { operations, seconds: (end - begin).as_secs_f64(), disk: None, latencies })
}

fn run<P, C>(phase: &Phase<'_>, thread: usize, prepare: &P, start: &Start) -> Result<Share, BenchError>
where
    P: Fn(usize) -> Result<C, BenchError>,
    C: Caller,
{
    let calls = phase.share(thread);
    // The thread must come to the barrier in any case: the others wait there.
    let ready = catch_unwind(AssertUnwindSafe(|| {
        let mut caller = prepare(thread)?;
        let warm_up = calls.start..(calls.start + phase.warm_up).min(calls.end);
        make(&mut caller, warm_up, &mut Latencies::none(), phase.dimms)?;
        Ok::<C, BenchError>(caller)
    }));
    if !matches!(ready, Ok(Ok(_))) {
        start.stop.store(true, Ordering::Relaxed);
    }
    start.wait(phase);
    let mut caller = ready.unwrap_or_else(|panic| resume_unwind(panic))?;
    let result = timed(&mut caller, calls, &start.stop, phase);
    if result.is_err() {
        start.stop.store(true, Ordering::Relaxed);
    }
    result
}

fn timed(
    caller: &mut impl Caller,
    calls: Range<u64>,
    stop: &AtomicBool,
    phase: &Phase<'_>,
) -> Result<Share, BenchError> {
    let mut latencies = Latencies::none();
    let mut number = calls.start;
    // One of the threads tells how the time passes.
    let (tells, mut told) = (calls.start == 0, 0);
    let length = if phase.lasts.is_some() { BLOCK } else { STRIDE };
    let begin = Instant::now();
    while number < calls.end {
        let stride = number..(number + length).min(calls.end);
        make(caller, stride.clone(), &mut latencies, phase.dimms)?;
        if stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        number = stride.end;
        let Some(lasts) = phase.lasts else {
            phase.progress.advance((stride.end - stride.start) * phase.operations_per_call);
            continue;
        };
        let passed = begin.elapsed();
        if tells && passed.as_secs() > told {
            phase.progress.advance(passed.as_secs() - told);
            told = passed.as_secs();
        }
        if passed >= lasts {
            break;
        }
    }
    Ok(Share { begin, end: Instant::now(), calls: number - calls.start, latencies })
}

/// Makes these calls, block by block; with a meter that looks at each, each is a block. Out of line, so that
/// warm-up and what is timed take the same way, and the only place where a phase's calls are made: the
/// compiler then puts them into this loop.
#[inline(never)]
fn make(
    caller: &mut impl Caller,
    calls: Range<u64>,
    latencies: &mut Latencies,
    dimms: Option<&DimmMeter>,
) -> Result<(), BenchError> {
    let length = if dimms.is_some() { 1 } else { BLOCK };
    let mut number = calls.start;
    while number < calls.end {
        let block = number..(number + length).min(calls.end);
        caller.prepare(block.clone());
        for call in block.clone() {
            let begun =
                (call + 1 == block.end).then(|| (dimms.map(|dimms| (dimms, dimms.before())), Instant::now()));
            let answer = caller.call(call)?;
            if let Some((watched, begun)) = begun {
                if let Some(access) = answer.access {
                    latencies.record(access, begun.elapsed().as_nanos() as u64);
                }
                if let Some((dimms, before)) = watched {
                    dimms.behind(before);
                }
            }
            latencies.record_waited(answer);
            caller.check()?;
        }
        number = block.end;
    }
    Ok(())
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
