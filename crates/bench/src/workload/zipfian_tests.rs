//! The generators against the known properties of their distributions.

use super::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

const DRAWS: usize = 1_000_000;

fn counts(items: u64, mut draw: impl FnMut(&mut SmallRng) -> u64) -> Vec<u32> {
    let mut random = SmallRng::seed_from_u64(42);
    let mut counts = vec![0; items as usize];
    for _ in 0..DRAWS {
        counts[draw(&mut random) as usize] += 1;
    }
    counts
}

fn close(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found - expected).abs() <= expected * share, "{what}: {found} instead of {expected}");
}

#[test]
fn zeta_has_its_known_values() {
    assert_eq!(zeta(1, 0.99), 1.0);
    close(zeta(2, 0.99), 1.0 + 0.5f64.powf(0.99), 1e-15, "two terms");
    // The constant that YCSB carries for ten billion items, with the rounding of ten billion additions in it.
    close(zeta(SCRAMBLED_ITEMS, 0.99), 26.469_028_201_783_02, 5e-12, "ten billion terms");
    for theta in [0.2, 0.5, 0.99] {
        let summed: f64 = (1..=300_000u64).map(|i| (i as f64).powf(-theta)).sum();
        close(zeta(300_000, theta), summed, 1e-12, "integrated and summed");
    }
}

#[test]
fn ranks_have_zipfian_frequencies() {
    let items = 10_000;
    let zipfian = Zipfian::new(items, 0.99).unwrap();
    let counts = counts(items, |random| zipfian.draw(random));
    let expected = |rank: u64| DRAWS as f64 / ((rank as f64).powf(0.99) * zeta(items, 0.99));
    close(f64::from(counts[0]), expected(1), 0.01, "rank 1");
    close(f64::from(counts[1]), expected(2), 0.02, "rank 2");
    // Gray's inversion is exact for two ranks only; sums over ranges show that the tail is right.
    for (from, to) in [(10, 100), (100, 1_000), (1_000, 10_000)] {
        let found: u32 = counts[from..to].iter().sum();
        let sum = (from as u64 + 1..=to as u64).map(expected).sum();
        close(f64::from(found), sum, 0.03, "a range of ranks");
    }
}

#[test]
fn growing_equals_starting_larger() {
    let mut grown = Zipfian::new(1_000, 0.99).unwrap();
    grown.grow(1_500);
    grown.grow(1_200);
    let fresh = Zipfian::new(1_500, 0.99).unwrap();
    assert_eq!(grown.items(), 1_500);
    close(grown.zeta, fresh.zeta, 1e-12, "zeta");
    close(grown.eta, fresh.eta, 1e-12, "eta");
}

#[test]
fn few_items_and_foreign_constants() {
    for items in 1..=3 {
        let zipfian = Zipfian::new(items, 0.99).unwrap();
        let counts = counts(items, |random| zipfian.draw(random));
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    }
    assert!(Zipfian::new(0, 0.99).is_none());
    for theta in [0.0, 1.0, 1.2, -0.5, f64::NAN] {
        assert!(Zipfian::new(10, theta).is_none(), "{theta}");
    }
}

#[test]
fn scrambling_scatters_the_popular_and_keeps_their_weight() {
    let items = 1_000;
    let scrambled = ScrambledZipfian::new(items, 0.99).unwrap();
    let counts = counts(items, |random| scrambled.draw(random));
    // The most popular item is where the hash of rank 0 lands, with rank 0's share of ten billion items.
    let first = ycsb_hash(0) % items;
    let most = (0..items).max_by_key(|&item| counts[item as usize]).unwrap();
    assert_eq!(most, first);
    let share = f64::from(counts[first as usize]) / DRAWS as f64;
    let expected = 1.0 / zeta(SCRAMBLED_ITEMS, 0.99);
    assert!(share > expected && share < expected + 0.01, "{share} where rank 0 alone has {expected}");
    let lower: u32 = counts[..500].iter().sum();
    assert!((300_000..700_000).contains(&lower), "{lower} in the lower half");
}
