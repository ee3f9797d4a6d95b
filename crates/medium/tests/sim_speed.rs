//! How fast the simulator is: prints the figures, and fails only where an order of magnitude is lost.

use quipu_medium::sim::{SimArena, SimOptions, sched};
use quipu_medium::{LINE, Region};
use std::time::Instant;

fn nanoseconds(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

#[test]
fn operations_switches_and_boots_are_cheap() {
    let region = Region::sim(SimOptions::default());
    let count = 200_000u64;
    let rounds = count / 4;
    let operation = nanoseconds(count, || {
        for round in 0..rounds {
            let offset = round % 1000 * LINE;
            region.load(offset);
            region.store(offset, round);
            region.flush(offset, 8);
            region.fence();
        }
    });
    let spinner = || {
        for _ in 0..count / 2 {
            sched::spin();
        }
    };
    let switch = nanoseconds(count, || {
        sched::run(0, vec![Box::new(spinner), Box::new(spinner)]).expect("no failure");
    });
    for line in 0..40 {
        region.write(line * 4096, &[7; 64]);
    }
    let snapshot = nanoseconds(1000, || {
        for _ in 0..1000 {
            std::hint::black_box(region.simulator().expect("simulated").snapshot());
        }
    });
    let crash = region.simulator().expect("simulated").snapshot();
    let mut formed = Vec::new();
    let image = nanoseconds(2000, || formed = crash.images(1, 2000).collect());
    let mut arena = SimArena::new();
    drop(arena.boot(&crash, &formed[0], 0));
    let boot = nanoseconds(formed.len() as u64, || {
        for image in &formed {
            let booted = arena.boot(&crash, image, 1);
            // A short recovery, which dirties a few pages.
            for page in 0..4 {
                booted.store(page * 65536, 1);
                booted.persist(page * 65536, 8);
            }
        }
    });
    println!(
        "operation {operation:.0} ns, switch {switch:.0} ns, snapshot {snapshot:.0} ns, image {image:.0} ns, \
         boot with four persists {boot:.0} ns"
    );
    assert!(operation < 2000.0 && switch < 5000.0 && boot < 1e6, "an order of magnitude is lost");
}
