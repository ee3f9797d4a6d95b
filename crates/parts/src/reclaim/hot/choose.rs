//! Deciding from samples which keys are hot, if any: a pure function.
//!
//! First comes the *trial*: the keys that are most frequent in one half of the samples are judged by the
//! other half. Their counts there did not influence the choice, so such counts are to be expected later,
//! without the luck that brought some keys into the set. Keys with the same count in the first half form a
//! class; nothing else about them is stored. If the trial shows a difference between the hottest and the
//! coldest keys, the most frequent keys of both halves are the new set.
//!
//! The coldest keys are those of all samples, not of the set: a set of equally hot keys is useful if the
//! others are cold.

use super::reports::Halves;
use super::settings::HotSetSettings;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A key that was sampled once may be any key.
const LEAST_COUNT: u32 = 2;
/// One sampled key in so many may be hot: in a small store, a set of nearly all keys would keep nothing
/// apart.
const SEEN_FOR_EACH: usize = 4;
/// Size of the groups of hottest and coldest keys: one key alone is too noisy, ...
const GROUP_MAX: f64 = 64.0;
/// ... but not more than this share of the set.
const GROUP_SHARE: f64 = 1.0 / 16.0;

/// A set that is worth using.
pub(super) struct Choice {
    /// The hottest first.
    pub(super) hashes: Vec<u64>,
    /// The share of writes that it is expected to hit.
    pub(super) promised: f64,
}

/// The hot keys by these samples; `None` if the load is uniform.
pub(super) fn choose(mut halves: Halves, settings: &HotSetSettings) -> Option<Choice> {
    halves.iter_mut().for_each(|half| half.sort_unstable());
    let [first, second] = &halves;
    let trial = Trial::new(Counts { first, second }, settings);
    if !trial.shows_skew(settings) {
        return None;
    }
    let hashes = most_frequent(Counts { first, second }, most_keys(trial.seen, settings));
    Some(Choice { hashes, promised: trial.set.tried / second.len() as f64 })
}

/// How many keys may be hot if so many were sampled.
fn most_keys(seen: usize, settings: &HotSetSettings) -> usize {
    settings.keys.min(seen.div_ceil(SEEN_FOR_EACH))
}

/// The keys of two sorted halves in order, and how often each occurs in either.
struct Counts<'a> {
    first: &'a [u64],
    second: &'a [u64],
}

fn take_equal(sorted: &mut &[u64], hash: u64) -> u32 {
    let equal = sorted.iter().take_while(|other| **other == hash).count();
    *sorted = &sorted[equal..];
    equal as u32
}

impl Iterator for Counts<'_> {
    type Item = (u64, u32, u32);

    fn next(&mut self) -> Option<(u64, u32, u32)> {
        let hash = match (self.first.first(), self.second.first()) {
            (Some(one), Some(other)) => *one.min(other),
            (one, other) => *one.or(other)?,
        };
        Some((hash, take_equal(&mut self.first, hash), take_equal(&mut self.second, hash)))
    }
}

/// The hashes with the highest counts, the hottest first, in a heap that holds no more than it has to return.
fn most_frequent(counts: Counts<'_>, keys: usize) -> Vec<u64> {
    let mut heap = BinaryHeap::with_capacity(keys.min(counts.first.len() + counts.second.len()) + 1);
    for (hash, first, second) in counts {
        let count = first + second;
        if count >= LEAST_COUNT {
            // The choice among equal counts must not depend on the upper bits, which select the line in the
            // set.
            heap.push(Reverse((count, hash.rotate_left(32))));
            if heap.len() > keys {
                heap.pop();
            }
        }
    }
    heap.into_sorted_vec().into_iter().map(|Reverse((_, hash))| hash.rotate_right(32)).collect()
}

/// Keys with about the same count in the first half, and their total count in the second.
#[derive(Clone, Copy, Default)]
struct Class {
    keys: f64,
    tried: f64,
}

/// Counts below sixteen have their own classes, then there are eight to each doubling.
fn class_of(count: u32) -> usize {
    let octave = count.max(8).ilog2() - 3;
    (octave * 8 + (count >> octave)) as usize
}

const CLASSES: usize = 29 * 8 + 8;

/// A set chosen from the first half, tried on the second.
struct Trial {
    set: Class,
    hottest: Class,
    /// Of all keys in the first half.
    coldest: Class,
    /// Keys that occur in either half.
    seen: usize,
}

impl Trial {
    fn new(counts: Counts<'_>, settings: &HotSetSettings) -> Trial {
        let mut classes = [Class::default(); CLASSES];
        let (mut seen, mut seen_first) = (0, 0);
        for (_, first, second) in counts {
            seen += 1;
            if first > 0 {
                seen_first += 1;
                let class = &mut classes[class_of(first)];
                class.keys += 1.0;
                class.tried += f64::from(second);
            }
        }
        let chosen = || classes[LEAST_COUNT as usize..].iter().rev();
        let mut room = most_keys(seen_first, settings) as f64;
        let mut set = Class::default();
        for class in chosen().filter(|class| class.keys > 0.0) {
            // If a class fits only in part, any of its keys are as good as the others.
            let keys = room.min(class.keys);
            set.keys += keys;
            set.tried += class.tried * keys / class.keys;
            room -= keys;
        }
        let group = (set.keys * GROUP_SHARE).clamp(1.0, GROUP_MAX);
        Trial { set, hottest: together(chosen(), group), coldest: together(classes.iter(), group), seen }
    }

    /// Whether the hottest keys were written so many times as often as the coldest, and not by chance.
    fn shows_skew(&self, settings: &HotSetSettings) -> bool {
        if self.set.keys == 0.0 {
            return false;
        }
        // Counts of rare events vary by their square root.
        let scale = self.hottest.keys / self.coldest.keys;
        let (hot, cold) = (self.hottest.tried, self.coldest.tried * scale);
        let deviation = (hot + cold * scale).sqrt();
        hot >= settings.uniform * cold && hot - cold > settings.certain * deviation
    }
}

/// The first classes that together have so many keys, or all.
fn together<'a>(classes: impl Iterator<Item = &'a Class>, keys: f64) -> Class {
    let mut sum = Class::default();
    for class in classes {
        if sum.keys >= keys {
            break;
        }
        sum = Class { keys: sum.keys + class.keys, tried: sum.tried + class.tried };
    }
    sum
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
