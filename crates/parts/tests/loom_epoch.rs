//! The epochs under a model of memory: a reader, and a thread that retires objects beside it, see each
//! other's stores in every order that the language allows. If a fence is left out, the model finds it.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_epoch --release
//! ```
//!
//! Checked is the form with fences, which processors other than x86-64 run. On x86-64 the exchange is a full
//! barrier by a property of the processor, and a lent barrier is one by a property of the system: the
//! language's model knows of neither. A test of real threads beside `epoch::barrier` has both of them.

#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::sync::atomic::checked::LEFT_OUT;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What readers reach: a link to one of two things. The model notices a read that may meet the release.
struct Shared {
    link: AtomicUsize,
    things: [UnsafeCell<bool>; 2],
}

// SAFETY: the model's cell tracks each access, and fails the test if two of them race.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

fn read(shared: &Shared, participant: &Participant) {
    let guard = participant.pin();
    let thing = shared.link.load(Ordering::Acquire);
    // SAFETY: the model checks the access.
    let alive = shared.things[thing].with(|alive| unsafe { *alive });
    assert!(alive, "what was reachable was released");
    drop(guard);
}

fn retire(shared: &Arc<Shared>, participant: &Participant, for_anyone: bool) {
    let guard = participant.pin();
    shared.link.store(1, Ordering::Release);
    let retired = Arc::clone(shared);
    let release = Box::new(move || {
        // SAFETY: the model checks the access.
        retired.things[0].with_mut(|alive| unsafe { *alive = false });
    });
    if for_anyone { guard.defer_to_anyone(release) } else { guard.defer(release) }
}

/// Whether any order goes wrong, of a thread that reads, one that retires, and one that collects, which is
/// that one or a third.
fn fails(third: bool) -> bool {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    let run = move || {
        let shared = Arc::new(Shared {
            link: AtomicUsize::new(0),
            things: [UnsafeCell::new(true), UnsafeCell::new(true)],
        });
        let collector = Collector::new();
        let (reader, writer) = (collector.register(), collector.register());
        let seen = Arc::clone(&shared);
        let mut threads = vec![loom::thread::spawn(move || {
            read(&seen, &reader);
            // Leaving is part of the model.
            drop(reader);
        })];
        if third {
            let collecting = collector.register();
            // A collection for whose sake an epoch begins while the writer retires.
            collecting.pin().defer(Box::new(|| ()));
            threads.push(loom::thread::spawn(move || _ = collecting.collect()));
        }
        retire(&shared, &writer, third);
        for _ in 0..2 {
            writer.collect();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    };
    catch_unwind(AssertUnwindSafe(|| model.check(run))).is_err()
}

/// The lines of a file that have a fence which reclamation needs. One lets a thread see its own writes before
/// it reads, which is another matter.
fn fences(file: &str) -> Vec<u32> {
    let lines: Vec<_> = file.lines().map(str::trim).collect();
    let is_fence = |at: &usize| lines[*at].starts_with("fence(") && !lines[at - 1].starts_with("HAS_WRITTEN");
    (0..lines.len()).filter(is_fence).map(|at| at as u32 + 1).collect()
}

#[test]
fn nothing_is_released_under_a_reader_and_every_fence_counts() {
    assert!(!fails(false) && !fails(true));
    let files = [include_str!("../src/epoch/collector.rs"), include_str!("../src/epoch/barrier.rs")];
    let fences: Vec<u32> = files.iter().flat_map(|file| fences(file)).collect();
    assert_eq!(fences.len(), 3);
    for line in fences {
        LEFT_OUT.store(line, std::sync::atomic::Ordering::Relaxed);
        assert!(fails(false) || fails(true), "the fence at line {line} can be left out");
    }
}
