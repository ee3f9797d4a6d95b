//! Decisions by samples of known loads.

use super::*;

const SETTINGS: HotSetSettings =
    HotSetSettings { keys: 100, interval: 1, samples: 10_000, shift: 0.5, uniform: 3.0, certain: 4.0 };

fn mix(number: u64) -> u64 {
    let x = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Samples of a load; `key` gets a number that looks random.
fn halves(samples: u64, seed: u64, key: impl Fn(u64) -> u64) -> Halves {
    let mut hashes = (0..samples).map(|i| mix(key(mix(seed << 32 | i))));
    let first = hashes.by_ref().take(samples as usize / 2).collect();
    [first, hashes.collect()]
}

#[test]
fn a_uniform_load_is_known_however_few_or_many_samples_a_key_has() {
    for keys in [1, 2, 3, 10, 50, 100, 300, 1_000, 3_000, 10_000, 100_000, 1 << 40] {
        for seed in 0..100 {
            let halves = halves(10_000, seed, |random| random % keys);
            let limit = if seed % 2 == 0 { SETTINGS.keys } else { 5000 };
            let settings = HotSetSettings { keys: limit, ..SETTINGS };
            assert!(choose(halves, &settings).is_none(), "{keys} keys, seed {seed}");
        }
    }
}

#[test]
fn luck_is_not_skew() {
    // So many keys that the luckiest have three times the count of the last that would be in the set.
    for keys in [300_000, 500_000, 1_000_000] {
        let settings = HotSetSettings::default();
        assert!(choose(halves(1 << 20, 1, |random| random % keys), &settings).is_none(), "{keys} keys");
    }
    // So few samples that any two keys differ.
    for samples in [32, 64, 100, 200, 500, 1000] {
        for (keys, seed) in
            [3, 10, 20, 50, 100, 300].into_iter().flat_map(|keys| (0..100).map(move |seed| (keys, seed)))
        {
            let halves = halves(samples, seed, |random| random % keys);
            assert!(choose(halves, &SETTINGS).is_none(), "{samples} samples of {keys} keys, seed {seed}");
        }
    }
}

#[test]
fn many_keys_that_are_a_little_hot_are_hot_together() {
    // Of 2900 keys, 300 have half of the writes: none was noted often.
    let key = |random: u64| if random.is_multiple_of(2) { random / 2 % 300 } else { 300 + random / 2 % 2600 };
    for seed in 0..20 {
        let choice = choose(halves(10_000, seed, key), &HotSetSettings { keys: 300, ..SETTINGS });
        let hot = choice
            .expect("skewed")
            .hashes
            .iter()
            .filter(|hash| (0..300).any(|key| mix(key) == **hash))
            .count();
        assert!(hot > 270, "{hot}");
    }
}

#[test]
fn what_is_promised_is_kept() {
    for keys in [1_000.0, 10_000.0, 100_000.0] {
        // A little skew, so that luck decides about many of those who are in the set.
        let key = |random: u64| (keys * ((random >> 11) as f64 / (1u64 << 53) as f64).powi(2)) as u64;
        let settings = HotSetSettings { keys: 5000, ..SETTINGS };
        let choice = choose(halves(10_000, 1, key), &settings).expect("skewed");
        let [fresh, _] = halves(20_000, 2, key);
        let hits = fresh.iter().filter(|hash| choice.hashes.contains(hash)).count();
        let kept = hits as f64 / fresh.len() as f64;
        assert!((0.4 * kept..1.1 * kept).contains(&choice.promised), "{} and not {kept}", choice.promised);
    }
}

#[test]
fn a_few_hot_keys_are_found_among_many_cold_ones() {
    // Fifty keys get half of all writes.
    let key =
        |random: u64| if random.is_multiple_of(2) { random / 2 % 50 } else { 50 + random / 2 % 100_000 };
    for seed in 0..100 {
        let choice = choose(halves(10_000, seed, key), &SETTINGS).expect("skewed");
        let mut hottest = choice.hashes[..50].to_vec();
        hottest.sort_unstable();
        let mut right: Vec<u64> = (0..50).map(mix).collect();
        right.sort_unstable();
        assert_eq!(hottest, right);
        assert!((0.47..0.53).contains(&choice.promised), "{}", choice.promised);
    }
}

#[test]
fn the_factor_decides() {
    // Of two hundred keys, ten are written five times as often as the others.
    let key = |random: u64| if random % 24 < 5 { random / 24 % 10 } else { 10 + random / 24 % 190 };
    for seed in 0..20 {
        let decide = |uniform| choose(halves(10_000, seed, key), &HotSetSettings { uniform, ..SETTINGS });
        assert!(decide(3.0).is_some());
        assert!(decide(8.0).is_none());
    }
}

#[test]
fn the_most_frequent_are_chosen_in_order() {
    let occurring = |counts: &[(u64, usize)]| -> Vec<u64> {
        let mut all: Vec<u64> = counts.iter().flat_map(|(hash, count)| vec![*hash; *count]).collect();
        all.sort_unstable();
        all
    };
    let first = occurring(&[(1, 5), (2, 1), (3, 2), (4, 1), (6, 9)]);
    let second = occurring(&[(1, 2), (2, 1), (3, 2), (5, 1), (7, 3)]);
    let most = |keys| most_frequent(Counts { first: &first, second: &second }, keys);
    // Four and five occur once.
    assert_eq!(most(100), [6, 1, 3, 7, 2]);
    assert_eq!(most(3), [6, 1, 3]);
}

#[test]
fn the_set_takes_no_more_than_its_limit_nor_most_of_what_it_saw() {
    let zipf =
        |keys: u64| move |random: u64| (keys as f64).powf((random >> 11) as f64 / (1u64 << 53) as f64) as u64;
    let choice = choose(halves(10_000, 1, zipf(100_000)), &SETTINGS).expect("skewed");
    assert_eq!(choice.hashes.len(), 100);
    let seen = 200;
    let choice = choose(halves(10_000, 1, zipf(seen)), &SETTINGS).expect("skewed");
    assert!((45..=50).contains(&choice.hashes.len()), "{}", choice.hashes.len());
    assert!(choice.hashes.contains(&mix(1)) && !choice.hashes.contains(&mix(199)));
}

#[test]
fn no_samples_and_few_decide_nothing() {
    assert!(choose(Halves::default(), &SETTINGS).is_none());
    assert!(choose([vec![1], Vec::new()], &SETTINGS).is_none());
    assert!(choose([Vec::new(), vec![1; 100]], &SETTINGS).is_none());
    // One key, though certainly the hottest.
    assert!(choose([vec![1; 100], vec![1; 100]], &SETTINGS).is_none());
    // A set that was chosen by luck.
    assert!(choose([vec![1, 1, 2, 2, 3, 4, 5, 6], vec![7, 8, 9, 10, 11, 12, 13, 14]], &SETTINGS).is_none());
}

#[test]
fn classes_follow_the_counts() {
    let classes: Vec<usize> = (0..100_000).map(class_of).collect();
    assert!(classes.is_sorted() && (0..16).all(|count| classes[count] == count));
    assert!(classes.windows(2).all(|pair| pair[1] - pair[0] <= 1));
    assert_eq!(class_of(u32::MAX), CLASSES - 1);
}
