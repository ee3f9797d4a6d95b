//! The shape of trees, after insertions in every order.

use super::leaf::Leaf;
use super::node::Node;
use super::tree::Tree;
use super::walk::Alex;
use crate::epoch::{Collector, Guard};
use crate::index::{Index, Key};
use crate::sync::atomic::Ordering;
use crate::twin::{Twin, leave_out};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Proves the shape of a tree, and tells its depth and its entries.
fn validate(tree: &Tree) -> (usize, Vec<(u64, u64)>) {
    let mut entries = Vec::new();
    let depth = validate_below(tree.root.load(Ordering::Acquire), 0..=u64::MAX, &mut entries);
    (depth, entries)
}

fn validate_below(node: *mut Node, range: RangeInclusive<u64>, entries: &mut Vec<(u64, u64)>) -> usize {
    // SAFETY: a node of a tree that nobody else has.
    match unsafe { &*node } {
        Node::Leaf(leaf) => {
            assert_eq!(leaf.range, range);
            validate_leaf(leaf, entries);
            1
        }
        Node::Inner(inner) => {
            assert_eq!(inner.range, range);
            let (mut at, mut first, mut depth) = (0, *range.start(), 0);
            while at < inner.route.children() {
                let child = inner.child(at);
                let mut end = at;
                while end < inner.route.children() && std::ptr::eq(inner.child(end), child) {
                    end += 1;
                }
                let next = if end == inner.route.children() { None } else { inner.route.first_of(end) };
                let last = next.map_or(*range.end(), |next| next - 1);
                assert_eq!(inner.numbers_of(child, first), at..end);
                depth = depth.max(validate_below(child, first..=last, entries));
                (at, first) = (end, next.unwrap_or(u64::MAX));
            }
            depth + 1
        }
    }
}

fn validate_leaf(leaf: &Leaf, entries: &mut Vec<(u64, u64)>) {
    let (slots, mut before) = (&leaf.slots, None);
    let mut used = 0;
    for at in 0..slots.len() {
        let (slice, word) = (slots.slice(at), slots.word(at));
        assert!(at == 0 || slots.slice(at - 1) <= slice, "slices fall at {at}");
        assert_eq!(slots.is_used(at), word != 0);
        if word != 0 {
            assert!(before.is_none_or(|before| before < slice));
            assert!(leaf.range.contains(&slice));
            before = Some(slice);
            used += 1;
            entries.push((slice, word));
        } else if let Some(before) = before {
            assert!(slice > before || slice == u64::MAX, "a gap at {at} hides a slot");
        }
    }
    assert_eq!(used, leaf.len());
}

fn put(alex: &Alex, guard: &Guard<'_>, number: u64, word: u64) -> Option<u64> {
    let bytes = number.to_be_bytes();
    let no_record = |_: u64| unreachable!("keys of eight bytes prove themselves");
    let key = Key { bytes: &bytes, hash: number };
    alex.upsert(guard, key, word, None, |_| unreachable!("likewise"), &no_record).expect("room")
}

fn get(alex: &Alex, guard: &Guard<'_>, number: u64) -> Option<u64> {
    let bytes = number.to_be_bytes();
    alex.get(guard, Key { bytes: &bytes, hash: number }, |_| unreachable!("likewise")).expect("sound")
}

fn take(alex: &Alex, guard: &Guard<'_>, number: u64) -> Option<u64> {
    let bytes = number.to_be_bytes();
    let key = Key { bytes: &bytes, hash: number };
    alex.take(guard, key, None, |_| unreachable!("likewise")).expect("sound")
}

/// Bytes of an index for each key.
fn bytes_each(alex: &Alex, keys: usize) -> f64 {
    alex.stats().bytes as f64 / keys as f64
}

/// Inserts keys in their order, looks at all of them, and removes every other one.
fn check(name: &str, keys: &[u64]) {
    let (collector, alex) = (Collector::new(), Alex::new());
    let participant = collector.register();
    let mut most = 0f64;
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(put(&alex, &participant.pin(), *key, i as u64 + 1), None, "{name}: {key}, {i}");
        if i >= 100_000 && i % 10_000 == 0 {
            most = most.max(bytes_each(&alex, i));
        }
    }
    let guard = participant.pin();
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(get(&alex, &guard, *key), Some(i as u64 + 1), "{name}: {key}");
    }
    let (depth, entries) = validate(&alex.tree);
    let own = |(key, word): (u64, u64)| (key, super::key::own(word));
    let mut model: BTreeMap<u64, u64> = keys.iter().copied().zip(1..).collect();
    assert!(entries.into_iter().map(own).eq(model.clone()), "{name}");
    let splits = alex.stats().splits;
    eprintln!(
        "{name}: {} keys: depth {depth}, at most {most:.1} bytes a key, {splits} leaves built anew",
        keys.len()
    );
    assert!(depth <= 8 && most <= 30.0, "{name}: {depth} deep, {most:.1} bytes a key");
    for key in keys.iter().step_by(2) {
        assert_eq!(take(&alex, &guard, *key), model.remove(key), "{name}: {key}");
    }
    let (_, entries) = validate(&alex.tree);
    assert!(entries.into_iter().map(own).eq(model.clone()), "{name}");
    assert_eq!(alex.len(&guard).expect("sound"), (keys.len() / 2) as u64);
    for (i, key) in keys.iter().skip(1).step_by(2).enumerate() {
        assert_eq!(take(&alex, &guard, *key), model.remove(key), "{name}: {key}");
        if i % 5_000 == 0 {
            let (_, entries) = validate(&alex.tree);
            assert!(entries.into_iter().map(own).eq(model.clone()), "{name}, without {i}");
        }
    }
    assert_eq!(validate(&alex.tree), (1, vec![]), "{name}: an empty tree is one leaf");
    let (bytes, least) = (alex.stats().bytes, Alex::new().stats().bytes);
    assert!(bytes < least + 4096, "{name}: {bytes} bytes without a key");
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Keys without repetitions, in an order that has nothing to do with theirs.
fn mixed(keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut keys: Vec<u64> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys.sort_by_key(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
    keys
}

#[test]
fn keys_of_many_distributions_in_many_orders() {
    let (n, mut next) = (120_000, random(1));
    check("uniform", &mixed((0..n).map(|_| next())));
    check("rising", &(0..n).collect::<Vec<_>>());
    check("falling", &(0..n).rev().map(|key| key + (1 << 62)).collect::<Vec<_>>());
    let zigzag = (0..n).map(|key| if key % 2 == 0 { (1 << 63) + key } else { (1 << 63) - key });
    check("zigzag", &zigzag.collect::<Vec<_>>());
    let two_points = (0..n).map(|key| if key % 2 == 0 { key } else { (1 << 63) + key });
    check("two points", &two_points.clone().collect::<Vec<_>>());
    check("two points, mixed", &mixed(two_points));
    let exponential = mixed((0..n).map(|_| next() >> (next() % 64)));
    check("exponential", &exponential);
    let mut rising = exponential;
    rising.sort_unstable();
    check("exponential, rising", &rising);
    rising.reverse();
    check("exponential, falling", &rising);
    let outliers = (0..21).map(|key| u64::MAX - key);
    check("outliers", &mixed((0..n).map(|_| next() >> 26).chain(outliers)));
    check("powers", &mixed((0..n).map(|key| (1 << (key % 64)) + key / 64)));
    check("squares", &mixed((0..n).map(|key| key * key * key)));
    check("decimal numbers", &mixed((0..n).map(decimal)));
    let fractal = |key: u64| (0..20).fold(0, |all, bit| all | (key >> bit & 1) << (3 * bit));
    check("every third bit", &mixed((0..n).map(fractal)));
}

/// A number in eight letters.
fn decimal(number: u64) -> u64 {
    let letters = format!("{number:08}").into_bytes();
    u64::from_be_bytes(letters.try_into().expect("eight letters"))
}

/// A leaf that moves too much is not built again as it was: decimal numbers were, after every ninety keys.
#[test]
fn decimal_numbers_do_not_build_leaves_in_vain() {
    let (collector, alex) = (Collector::new(), Alex::new());
    let participant = collector.register();
    for (i, key) in mixed((0..200_000).map(decimal)).into_iter().enumerate() {
        assert_eq!(put(&alex, &participant.pin(), key, i as u64 + 1), None);
    }
    let (splits, depth) = (alex.stats().splits, validate(&alex.tree).0);
    assert!(splits < 300 && depth <= 3, "{splits} leaves were built anew, depth {depth}");
}

/// Where keys come nearly in order, gaps are soon used up near the end, and the leaf there is built anew
/// after every hundred keys. So it must not be large.
#[test]
fn the_last_leaf_is_small_where_keys_come_nearly_in_order() {
    const SAMPLES: u64 = 200;
    let mut next = random(7);
    for around in [10, 100, 1000] {
        let (collector, alex) = (Collector::new(), Alex::new());
        let participant = collector.register();
        let mut sizes = 0;
        for number in 0..SAMPLES * 1000 {
            // Distinct, and out of order by so many.
            let key = (number + next() % around) << 32 | number;
            assert_eq!(put(&alex, &participant.pin(), key, number + 1), None);
            if number % 1000 == 999 {
                sizes += alex.tree.leaf(&participant.pin(), u64::MAX).1.len() as u64;
            }
        }
        let (size, depth) = (sizes / SAMPLES, validate(&alex.tree).0);
        assert!(size < 2000 && depth <= 3, "{around}: {size} keys in the last leaf, depth {depth}");
    }
}

/// A queue: keys are put at the end, and taken from the front.
#[test]
fn a_queue_keeps_its_size_and_depth() {
    for (live, key) in
        [(500u64, (|number| number) as fn(u64) -> u64), (20_000, |number| number), (500, decimal)]
    {
        let (collector, alex) = (Collector::new(), Alex::new());
        let participant = collector.register();
        let mut most = [0, 0];
        for number in 0..300_000 {
            put(&alex, &participant.pin(), key(number), number + 1);
            if let Some(gone) = number.checked_sub(live) {
                assert_eq!(take(&alex, &participant.pin(), key(gone)), Some(gone + 1));
            }
            let half = &mut most[usize::from(number >= 100_000)];
            *half = alex.stats().bytes.max(*half);
        }
        let (depth, entries) = validate(&alex.tree);
        assert_eq!(entries.len() as u64, live);
        assert!(depth <= 3 && most[1] <= most[0] * 11 / 10, "{live}: depth {depth}, {most:?} bytes");
    }
}

/// A few keys come and go in a small leaf, the highest that there can be among them. After each step, the
/// leaf has its shape, and each key the word that it was given.
fn check_small(seed: u64) {
    const KEYS: [u64; 12] = [
        0,
        1,
        7,
        8,
        1 << 20,
        1 << 40,
        1 << 62,
        1 << 63,
        u64::MAX - 1000,
        u64::MAX - 2,
        u64::MAX - 1,
        u64::MAX,
    ];
    let (collector, alex, mut next) = (Collector::new(), Alex::tiny(), random(seed));
    let (participant, mut model) = (collector.register(), BTreeMap::new());
    for word in 1..100 {
        let guard = participant.pin();
        let key = KEYS[next() as usize % KEYS.len()];
        if next() % 2 == 0 {
            assert_eq!(put(&alex, &guard, key, word), model.insert(key, word), "{key}");
        } else {
            assert_eq!(take(&alex, &guard, key), model.remove(&key), "{key}");
        }
        for key in KEYS {
            assert_eq!(get(&alex, &guard, key), model.get(&key).copied(), "{key}");
        }
        let own = |(key, word): (u64, u64)| (key, super::key::own(word));
        assert!(validate(&alex.tree).1.into_iter().map(own).eq(model.clone()));
    }
}

/// The gaps of a leaf have slices that lead a search past them, also behind the highest slice of all.
#[test]
fn few_keys_with_the_highest_among_them_come_and_go() {
    (0..200).for_each(check_small);
    let _left_out = leave_out(Some(Twin::GapsKeepSlice));
    let is_convicted = |seed: &u64| std::panic::catch_unwind(|| check_small(*seed)).is_err();
    let convictions = (0..200).filter(is_convicted).count();
    assert!(convictions > 20, "{convictions} of 200 seeds see the gaps that keep their slices");
}

/// Runs of keys that lie beyond all before, as those of the highest number less the time do, beside others
/// far away or alone. Each run goes behind the next one, or stays. The last leaf of equal shares became an
/// inner node, and so did the last leaf of that.
#[test]
fn runs_beyond_all_before_do_not_nest() {
    const MIDDLE: u64 = 1 << 63;
    for kind in 0..16 {
        let [is_below, goes, is_in_order, has_others] = [1, 2, 4, 8].map(|bit| kind & bit != 0);
        let (collector, alex, mut next) = (Collector::new(), Alex::tiny(), random(5));
        let (participant, others) = (collector.register(), if has_others { 100 } else { 0 });
        (0..others).for_each(|_| assert_eq!(put(&alex, &participant.pin(), next(), 1), None));
        let before = validate(&alex.tree).0;
        let keys = |run: u64| {
            let first = if is_below { MIDDLE - (run << 35) } else { MIDDLE + (run << 35) };
            let keys = (first..).step_by(1 << 22).take(38);
            if is_in_order { keys.collect() } else { mixed(keys) }
        };
        for run in 0..60 {
            for key in keys(run) {
                assert_eq!(put(&alex, &participant.pin(), key, 1), None);
            }
            let gone = if goes && run > 0 { keys(run - 1) } else { Vec::new() };
            for key in gone {
                assert_eq!(take(&alex, &participant.pin(), key), Some(1));
            }
        }
        let (depth, entries) = validate(&alex.tree);
        assert_eq!(entries.len(), others + if goes { 38 } else { 38 * 60 });
        assert!(
            depth <= before + 2,
            "below {is_below}, go {goes}, in order {is_in_order}: depth {before}, then {depth}"
        );
    }
}

/// A tree of sixteen large runs, each below the one before, is hardly deeper than one that is built at once.
#[test]
fn large_runs_below_all_before_do_not_nest() {
    for kind in 0..4 {
        let [is_in_order, has_others] = [1, 2].map(|bit| kind & bit != 0);
        let (collector, alex, mut next) = (Collector::new(), Alex::new(), random(5));
        let (participant, others) = (collector.register(), if has_others { 100_000 } else { 0 });
        (0..others).for_each(|_| assert_eq!(put(&alex, &participant.pin(), next(), 1), None));
        for run in 0..16 {
            let first = (100 - run) * (30_000 << 10);
            let keys = first..first + 30_000;
            for key in if is_in_order { keys.collect() } else { mixed(keys) } {
                assert_eq!(put(&alex, &participant.pin(), key, 1), None);
            }
        }
        let (depth, entries) = validate(&alex.tree);
        let built = validate(&Tree::new(&entries, &Alex::size())).0;
        assert!(
            depth <= built + 2,
            "in order {is_in_order}, others {has_others}: depth {depth}, and {built} if built at once"
        );
    }
}
