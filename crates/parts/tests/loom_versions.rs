//! Snapshots and purges under a model of memory: no purge takes a version from under a reader, in any order
//! in which threads may see each other's stores.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p quipu-parts --test loom_versions --release
//! ```

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use quipu_parts::epoch::{Holder, What};
use quipu_parts::heap::Reference;
use quipu_parts::sync::atomic::checked::LEFT_OUT;
use quipu_parts::twin::{Twin, leave_out};
use quipu_parts::versions::purge::purge;
use quipu_parts::versions::{Horizon, Snapshots, Terms, Version};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A key: a bit for each version that its array has.
struct World {
    visible: AtomicU64,
    array: AtomicU64,
    snapshots: Snapshots,
}

impl World {
    /// A writer adds version 3 and purges, and makes it visible.
    fn write(&self, number: u64) {
        let mut horizon = Horizon::default();
        self.snapshots.horizon(|| self.visible.load(Ordering::Acquire), &mut horizon);
        let old = self.array.load(Ordering::Acquire);
        let version = |number| Version::new(number, Reference::from_word(number), false);
        let mut versions: Vec<_> =
            (0..8).rev().filter(|bit| (old | 1 << number) >> bit & 1 == 1).map(version).collect();
        purge(&mut versions, &horizon);
        let new = versions.iter().fold(0, |bits, version| bits | 1 << version.number);
        self.array.store(new, Ordering::Release);
        self.visible.store(number, Ordering::Release);
    }

    fn newest(&self, array: u64, up_to: u64) -> u64 {
        let found = (0..=up_to).rev().find(|bit| array >> bit & 1 == 1);
        found.unwrap_or_else(|| panic!("no version up to {up_to} is left"))
    }

    /// A reader at a snapshot, which reads twice.
    fn read_at_snapshot(&self) {
        let snapshot = self.snapshots.take(nobody(), Terms::NONE, || self.visible.load(Ordering::Acquire));
        for _ in 0..2 {
            let found = self.newest(self.array.load(Ordering::Acquire), snapshot.number());
            assert_eq!(found, snapshot.number(), "all versions are of this key");
        }
    }

    /// A reader without: the array first, then the number; in a twin the other way round.
    fn read(&self, number_first: bool) {
        let array = || self.array.load(Ordering::Acquire);
        let visible = || self.visible.load(Ordering::Acquire);
        let (array, visible) = if number_first {
            let visible = visible();
            (array(), visible)
        } else {
            let array = array();
            (array, visible())
        };
        self.newest(array, visible);
    }
}

fn explore(number_first: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let (visible, array) = (AtomicU64::new(1), AtomicU64::new(1 << 1));
        let world = Arc::new(World { visible, array, snapshots: Snapshots::default() });
        let (writer, reader) = (world.clone(), world.clone());
        let writer = thread::spawn(move || (2..=4).for_each(|number| writer.write(number)));
        let reader = thread::spawn(move || reader.read(number_first));
        world.read_at_snapshot();
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

fn fails(number_first: bool) -> bool {
    catch_unwind(AssertUnwindSafe(|| explore(number_first))).is_err()
}

#[test]
fn no_reader_misses_its_version_and_every_fence_counts() {
    explore(false);
    assert!(fails(true), "a reader may read the number before the array");
    let file = include_str!("../src/versions/snapshots.rs");
    let fences: Vec<u32> = file
        .lines()
        .zip(1..)
        .filter(|(line, _)| line.contains("fence(Ordering::SeqCst)"))
        .map(|(_, at)| at)
        .collect();
    assert_eq!(fences.len(), 2);
    for line in fences {
        LEFT_OUT.store(line, std::sync::atomic::Ordering::Relaxed);
        assert!(fails(false), "the fence at line {line} can be left out");
    }
    LEFT_OUT.store(0, std::sync::atomic::Ordering::Relaxed);
    let _left_out = leave_out(Some(Twin::ReadUnannounced));
    assert!(fails(false), "a snapshot may read its number before it is announced");
}

fn nobody() -> Holder {
    Holder { what: What::Snapshot, thread: 0, since: 0 }
}
