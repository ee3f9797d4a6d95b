//! What the rest of the store relies on: retired things are released late enough, and all of them in the end.

use quipu_parts::epoch::{Collector, Participant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

fn retire_counted(participant: &Participant, released: &Arc<AtomicUsize>) {
    let released = Arc::clone(released);
    participant.pin().defer(Box::new(move || {
        released.fetch_add(1, Ordering::Relaxed);
    }));
}

#[test]
fn what_nobody_can_reach_is_released_at_once() {
    let collector = Collector::new();
    let (writer, released) = (collector.register(), Arc::new(AtomicUsize::new(0)));
    retire_counted(&writer, &released);
    assert_eq!(writer.pending(), 1);
    assert_eq!(writer.collect(), 1);
    assert_eq!(released.load(Ordering::Relaxed), 1);
    assert_eq!(writer.collect(), 0, "nothing waits");
}

#[test]
fn a_reader_holds_back_what_is_retired_after_it_came_and_nothing_else() {
    let collector = Collector::new();
    let (reader, writer) = (collector.register(), collector.register());
    let released = Arc::new(AtomicUsize::new(0));
    let early = reader.pin();
    retire_counted(&writer, &released);
    // The collection fails, and begins a new epoch.
    assert_eq!(writer.collect(), 0);
    drop(early);
    let late = reader.pin();
    retire_counted(&writer, &released);
    assert_eq!(writer.collect(), 1, "the first, which the reader cannot have seen");
    assert_eq!((writer.collect(), writer.pending()), (0, 1));
    drop(late);
    assert_eq!(writer.collect(), 1);
}

#[test]
fn a_pinned_reader_holds_everything_back() {
    let collector = Collector::new();
    let (reader, writer) = (collector.register(), collector.register());
    let released = Arc::new(AtomicUsize::new(0));
    let guard = reader.pin();
    retire_counted(&writer, &released);
    for _ in 0..10 {
        writer.collect();
    }
    assert_eq!(released.load(Ordering::Relaxed), 0);
    drop(guard);
    for _ in 0..2 {
        writer.collect();
    }
    assert_eq!(released.load(Ordering::Relaxed), 1);
}

#[test]
fn only_the_outermost_unpin_counts() {
    let collector = Collector::new();
    let (reader, writer) = (collector.register(), collector.register());
    let released = Arc::new(AtomicUsize::new(0));
    let outer = reader.pin();
    let inner = reader.pin();
    drop(outer);
    retire_counted(&writer, &released);
    for _ in 0..10 {
        writer.collect();
    }
    assert_eq!(released.load(Ordering::Relaxed), 0);
    drop(inner);
    for _ in 0..2 {
        writer.collect();
    }
    assert_eq!(released.load(Ordering::Relaxed), 1);
}

#[test]
fn slots_are_reused() {
    let collector = Collector::new();
    let kept = collector.register();
    for _ in 0..100 {
        let _visitor = collector.register();
    }
    assert_eq!(collector.slots(), 2);
    drop(kept);
}

#[test]
fn garbage_of_one_who_left_is_released_by_those_who_stay() {
    let collector = Collector::new();
    let (stayer, leaver) = (collector.register(), collector.register());
    let released = Arc::new(AtomicUsize::new(0));
    retire_counted(&leaver, &released);
    drop(leaver);
    let total: usize = (0..3).map(|_| stayer.collect()).sum();
    assert_eq!((total, released.load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn what_anyone_may_release_does_not_wait_for_who_retired_it() {
    let collector = Collector::new();
    let (collecting, resting, reading) = (collector.register(), collector.register(), collector.register());
    let released = Arc::new(AtomicUsize::new(0));
    let reader = reading.pin();
    let counter = Arc::clone(&released);
    resting.pin().defer_to_anyone(Box::new(move || _ = counter.fetch_add(1, Ordering::Relaxed)));
    (0..5).for_each(|_| _ = collecting.collect());
    assert_eq!(released.load(Ordering::Relaxed), 0, "a reader is still here");
    drop(reader);
    (0..3).for_each(|_| _ = collecting.collect());
    assert_eq!(released.load(Ordering::Relaxed), 1);
}

#[test]
fn nothing_leaks_when_all_drop() {
    let collector = Collector::new();
    let participants: Vec<_> = (0..3).map(|_| collector.register()).collect();
    let released = Arc::new(AtomicUsize::new(0));
    for participant in &participants {
        for _ in 0..5 {
            retire_counted(participant, &released);
        }
    }
    drop(collector);
    drop(participants);
    assert_eq!(released.load(Ordering::Relaxed), 15);
}

#[test]
fn a_stream_of_garbage_is_collected_on_the_way() {
    let collector = Collector::new();
    let writer = collector.register();
    let released = Arc::new(AtomicUsize::new(0));
    for _ in 0..10_000 {
        retire_counted(&writer, &released);
    }
    assert!(writer.pending() < 200, "{} wait", writer.pending());
}

/// Readers follow a pointer whose target is poisoned when it is released: none may ever see the poison.
#[test]
fn readers_never_see_what_was_released() {
    const ALIVE: usize = 0x5EED;
    let collector = Collector::new();
    let target = AtomicPtr::new(Box::into_raw(Box::new(AtomicUsize::new(ALIVE))));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let participant = collector.register();
            scope.spawn(|| {
                let participant = participant;
                while !stop.load(Ordering::Relaxed) {
                    let guard = participant.pin();
                    let seen = target.load(Ordering::Acquire);
                    for _ in 0..3 {
                        // SAFETY: targets are leaked into the test's graveyard, never freed while it runs.
                        assert_eq!(unsafe { &*seen }.load(Ordering::Relaxed), ALIVE);
                    }
                    drop(guard);
                }
            });
        }
        let writer = collector.register();
        for _ in 0..200_000 {
            let fresh = Box::into_raw(Box::new(AtomicUsize::new(ALIVE)));
            let old = target.swap(fresh, Ordering::AcqRel);
            // SAFETY: the poison is an atomic store into memory that stays allocated.
            let old: &'static AtomicUsize = unsafe { &*old };
            writer.pin().defer(Box::new(move || old.store(0, Ordering::Relaxed)));
        }
        stop.store(true, Ordering::Relaxed);
    });
}
