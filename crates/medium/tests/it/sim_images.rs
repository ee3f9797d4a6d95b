//! Crash images and the regions booted from them.

use quipu_medium::sim::{Sim, SimArena, SimOptions, Snapshot};
use quipu_medium::{LINE, MediumError, Region};
use std::collections::HashSet;
use std::sync::Arc;

fn sim(region: &Region) -> &Arc<Sim> {
    region.simulator().expect("simulated")
}

fn snapshot(region: &Region) -> Snapshot {
    sim(region).snapshot()
}

/// A small generator of test data, apart from the one under test.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed | 1;
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    }
}

/// Random operations over a few pages.
fn scribble(region: &Region, seed: u64, count: u64) {
    let mut number = numbers(seed * 2 + 1);
    for _ in 0..count {
        let offset = number(16) * 8 + number(24) * 4096;
        let value = number(1000);
        match number(8) {
            0 | 1 => region.write(offset + number(8), &vec![value as u8; number(150) as usize]),
            2 => region.write_nt(offset + number(8), &vec![value as u8; number(150) as usize]),
            3 | 4 => region.store(offset, value),
            5 => region.flush(offset, number(200)),
            6 => region.fence(),
            _ => drop(region.compare_exchange(offset, region.load(offset), value)),
        }
    }
}

#[test]
fn the_fixed_images_come_first_and_none_comes_twice() {
    let region = Region::sim(SimOptions::default());
    for line in 0..4 {
        region.write(line * LINE, &[line as u8 + 1; 64]);
    }
    let snapshot = snapshot(&region);
    let images: Vec<_> = snapshot.images(0, 0).collect();
    assert_eq!((&images[0], &images[1]), (&snapshot.nothing(), &snapshot.everything()));
    assert_eq!(images[0].changes().len(), 0);
    assert_eq!(images[1].changes().len(), 32);
    let sizes = |size: usize| images.iter().filter(|image| image.changes().len() == size).count();
    // One word: 32 of which the first and last are also ends of an accumulation; one line is also a run of
    // eight.
    assert_eq!((sizes(1), sizes(31)), (32, 32));
    assert_eq!(sizes(8), 4);
    assert_eq!(sizes(16), 2, "the first and the last half");
    let hashes: HashSet<_> = images.iter().map(quipu_medium::sim::Image::hash).collect();
    assert_eq!(hashes.len(), images.len());
    // Nothing, everything, 32 + 32 words, 4 + 4 lines, 31 + 31 runs, of which 4 are single words or all but
    // one, and 4 are single lines or all but one.
    assert_eq!(images.len(), 2 + 64 + 8 + 62 - 4 - 4);
}

#[test]
fn when_few_are_possible_all_are_formed() {
    let region = Region::sim(SimOptions::default());
    for line in 0..9 {
        region.store(line * LINE, 1);
    }
    // Each line counts two outcomes, and the count is a bound: 2^9 images.
    assert_eq!(snapshot(&region).images(0, 0).count(), 512);
    assert_eq!(snapshot(&region).images(0, 100).count(), 100);
    for line in 9..20 {
        region.store(line * LINE, 1);
    }
    assert!(snapshot(&region).images(0, 0).count() < 200);
    assert_eq!(snapshot(&region).images(0, 5000).count(), 5000);
}

#[test]
fn a_seed_names_the_sample_and_a_budget_bounds_it() {
    let region = Region::sim(SimOptions::default());
    scribble(&region, 1, 300);
    let snapshot = snapshot(&region);
    let hashes = |seed, budget| snapshot.images(seed, budget).map(|image| image.hash()).collect::<Vec<_>>();
    for budget in [1, 2, 3, 10, 100, 3000] {
        let images = hashes(7, budget);
        assert_eq!(images.len(), budget);
        assert_eq!(images, hashes(7, budget));
        assert_eq!(images[0], snapshot.nothing().hash());
        assert!(budget == 1 || images[1] == snapshot.everything().hash());
        assert!(budget < 10 || images != hashes(8, budget));
    }
}

#[test]
fn sampled_images_obey_the_order_of_atomic_stores() {
    let region = Region::sim(SimOptions::default());
    for round in 1..=3 {
        for line in 0..12 {
            region.write(line * LINE + 16, &[round as u8; 8]);
            region.store(line * LINE, round);
            region.store(line * LINE + 8, round);
        }
    }
    let snapshot = snapshot(&region);
    let mut pairs = HashSet::new();
    for image in snapshot.images(3, 20_000) {
        for line in 0..12 {
            let [first, second, plain] = [0, 8, 16].map(|word| image.word(&snapshot, line * LINE + word));
            assert!(first == second || first == second + 1, "{first} {second}");
            assert!(plain & 0xFF >= first, "the plain write comes before the store");
            pairs.insert((first, second, plain & 0xFF));
        }
    }
    // The prefix of six stores, and any plain value from the one it forces on.
    assert_eq!(pairs.len(), 4 + 2 * 3 + 2 * 2 + 1 + 1);
}

#[test]
fn equal_images_of_different_crash_points_have_equal_hashes() {
    let region = Region::sim(SimOptions::default());
    region.store(0, 5);
    let before = snapshot(&region);
    region.persist(0, 8);
    let after = snapshot(&region);
    assert_ne!(before.nothing().hash(), after.nothing().hash());
    assert_eq!(before.everything().hash(), after.nothing().hash());
    region.store(0, 0);
    region.persist(0, 8);
    assert_eq!(snapshot(&region).nothing().hash(), 0, "back to zeros");
}

#[test]
fn a_report_names_the_words_that_differ() {
    let region = Region::sim(SimOptions::default());
    region.store(8, 5);
    region.store(LINE, 6);
    let snapshot = snapshot(&region);
    let image = snapshot.images(0, 0).find(|image| image.changes() == [(1, 5)]).expect("one word alone");
    let text = image.describe(&snapshot);
    assert!(text.starts_with("1 words") && text.contains("0x40") && text.contains("6"), "{text}");
    assert_eq!(snapshot.everything().describe(&snapshot), "everything had arrived");
}

#[test]
fn the_image_of_everything_is_what_the_processor_sees() {
    for seed in 0..40 {
        let region = Region::sim(SimOptions { len: 1 << 17, ..SimOptions::default() });
        scribble(&region, seed, 400);
        let snapshot = snapshot(&region);
        let everything = snapshot.everything();
        for offset in (0..region.len()).step_by(8) {
            assert_eq!(everything.word(&snapshot, offset), region.load(offset));
        }
        region.sync().expect("simulated");
        assert_eq!(sim(&region).snapshot().nothing().hash(), everything.hash());
    }
}

#[test]
fn a_booted_region_holds_its_image_in_both_views_whatever_was_there_before() {
    let mut arena = SimArena::new();
    for seed in 0..10 {
        let region = Region::sim(SimOptions { len: 1 << 17, seed, ..SimOptions::default() });
        scribble(&region, seed, 300);
        let snapshot = snapshot(&region);
        for (index, image) in snapshot.images(seed, 20).enumerate() {
            let booted = arena.boot(&snapshot, &image, index as u64);
            let again = sim(&booted).snapshot();
            assert_eq!((again.nothing().hash(), again.pending_count()), (image.hash(), 0));
            for offset in (0..booted.len()).step_by(8) {
                let expected = image.word(&snapshot, offset);
                assert_eq!((booted.load(offset), again.durable_word(offset)), (expected, expected));
            }
            // The next life must not see leftovers of this one, pending or durable.
            scribble(&booted, seed + 100 + index as u64, 100);
        }
    }
}

#[test]
fn a_region_in_use_is_not_recycled() {
    let region = Region::sim(SimOptions::default());
    region.store(0, 1);
    let snapshot = snapshot(&region);
    let mut arena = SimArena::new();
    let first = arena.boot(&snapshot, &snapshot.everything(), 0);
    let second = arena.boot(&snapshot, &snapshot.nothing(), 0);
    assert_eq!((first.load(0), second.load(0)), (1, 0));
}

#[test]
fn a_power_failure_changes_the_boot_id_and_a_process_crash_does_not() {
    let region = Region::sim(SimOptions { seed: 9, ..SimOptions::default() });
    region.store(0, 1);
    region.flush(0, 8);
    region.write_nt(LINE, &[1; 8]);
    let snapshot = snapshot(&region);
    let mut arena = SimArena::new();
    let rebooted = arena.boot(&snapshot, &snapshot.nothing(), 1);
    assert_ne!(sim(&rebooted).boot_id(), sim(&region).boot_id());
    let entropy = |region: &Region| {
        let mut bytes = [0; 20];
        sim(region).entropy(&mut bytes);
        bytes
    };
    let other = arena.boot(&snapshot, &snapshot.nothing(), 2);
    let same = arena.boot(&snapshot, &snapshot.nothing(), 1);
    assert_eq!(sim(&rebooted).boot_id(), sim(&same).boot_id());
    let drawn = entropy(&rebooted);
    assert_eq!(drawn, entropy(&same));
    assert_ne!(drawn, entropy(&other));
    let restarted = arena.boot_process_crash(&snapshot, 1);
    assert_eq!(sim(&restarted).boot_id(), sim(&region).boot_id());
    assert_eq!((restarted.load(0), restarted.load(LINE) & 0xFF), (1, 1));
    assert_eq!(sim(&restarted).snapshot().pending_count(), 1, "what went past the caches has arrived");
    restarted.fence();
    assert_eq!(sim(&restarted).snapshot().pending_count(), 1, "the flush of the dead process meets no fence");
    restarted.persist(0, 8);
    assert_eq!(sim(&restarted).snapshot().pending_count(), 0);
}

/// On a processor without writes past its caches, a fence makes them durable like any other. A process that
/// dies before it leaves them in the caches.
#[test]
fn writes_past_the_caches_may_be_writes_with_a_flush() {
    let region = Region::sim(SimOptions { streams: false, ..SimOptions::default() });
    region.write_nt(0, &[1; 64]);
    region.fence();
    assert_eq!(snapshot(&region).pending_count(), 0);
    region.write_nt(0, &[2; 64]);
    let restarted = SimArena::new().boot_process_crash(&snapshot(&region), 1);
    assert_eq!((restarted.load(0) & 0xFF, snapshot(&restarted).pending_count()), (2, 8));
    restarted.fence();
    assert_eq!(snapshot(&restarted).pending_count(), 8, "the flush of the dead process meets no fence");
    restarted.flush(0, 64);
    restarted.fence();
    assert_eq!(snapshot(&restarted).pending_count(), 0);
}

#[test]
fn a_full_disk_can_be_injected() {
    let region = Region::sim(SimOptions::default());
    sim(&region).fail_reserve_after(2);
    assert!(region.reserve(0, 4096).is_ok() && region.reserve(0, 4096).is_ok());
    assert!(matches!(region.reserve(0, 4096), Err(MediumError::DiskFull { needed: 4096, .. })));
    assert!(region.prefault(0, 4096).is_ok());
}
