//! Objects and requests like those of Facebook's ETC pool, as papers on stores in persistent memory model it.
//!
//! Atikoglu et al. ("Workload Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012) describe the pool.
//! FlatStore, PACMAN (section 4.4) and others derive objects of three classes of size from it: small, medium
//! and large. A few small and medium objects are requested again and again, by a zipfian distribution over
//! both; large ones are all alike. PACMAN's text gives the classes' sizes but no shares and no upper end.
//! Here the shares are 40, 55 and 5 per cent of the objects, and each class has all its sizes equally often.
//! Large objects end at 1,024 bytes, and have the same share of the requests as of the objects. Sizes are
//! those of values.
//!
//! An object's size follows from its number, so that nothing has to be kept.

use crate::workload::{ScrambledZipfian, mix};
use rand::{Rng, RngExt};
use std::ops::RangeInclusive;

/// A class of objects: its share in per cent, and its sizes in bytes.
const SMALL: (u64, RangeInclusive<usize>) = (40, 1..=13);
const MEDIUM: (u64, RangeInclusive<usize>) = (55, 14..=300);
const LARGE: (u64, RangeInclusive<usize>) = (5, 301..=1024);

/// Bytes of the smallest and of the largest value.
pub const ETC_SIZES: RangeInclusive<usize> = *SMALL.1.start()..=*LARGE.1.end();

/// Sets the sizes apart from keys and values, which are made of the same numbers.
const SALT: u64 = 0x65_7463;

/// Draws that look for an object of the right class, at most: among very few objects there may be none.
const DRAWS: usize = 10_000;

/// Bytes of the value of object `number`.
// Kept out of the code that makes keys and values of one length, which would save registers for it.
#[inline(never)]
pub fn etc_size(number: u64) -> usize {
    let bits = mix(number ^ SALT);
    let (percent, within) = (bits % 100, (bits >> 32) as usize);
    let (_, sizes) = [SMALL, MEDIUM]
        .into_iter()
        .scan(0, |below, class| {
            *below += class.0;
            Some((*below, class.1))
        })
        .find(|(below, _)| percent < *below)
        .unwrap_or(LARGE);
    sizes.start() + within % (sizes.end() - sizes.start() + 1)
}

fn is_large(number: u64) -> bool {
    etc_size(number) >= *LARGE.1.start()
}

/// Chooses among positions `0..items`, of which each stands for an object.
pub struct EtcChoice {
    items: u64,
    skewed: ScrambledZipfian,
}

impl EtcChoice {
    /// A choice among `items` positions, with this theta for small and medium objects; `None` as for
    /// [`ScrambledZipfian::new`].
    pub fn new(items: u64, theta: f64) -> Option<EtcChoice> {
        Some(EtcChoice { items, skewed: ScrambledZipfian::new(items, theta)? })
    }

    /// Draws a position; `object` tells the number of the object there.
    pub fn draw(&self, random: &mut impl Rng, object: impl Fn(u64) -> u64) -> u64 {
        let large = random.random_range(0..100) < LARGE.0;
        let mut position = 0;
        for _ in 0..DRAWS {
            position = if large { random.random_range(0..self.items) } else { self.skewed.draw(random) };
            if is_large(object(position)) == large {
                break;
            }
        }
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use std::collections::HashMap;

    #[test]
    fn sizes_have_three_modes_with_their_shares() {
        let sizes: Vec<usize> = (0..100_000).map(etc_size).collect();
        let percent = |range: RangeInclusive<usize>| {
            sizes.iter().filter(|size| range.contains(size)).count() as f64 / sizes.len() as f64 * 100.0
        };
        assert!((39.0..41.0).contains(&percent(1..=13)) && (54.0..56.0).contains(&percent(14..=300)));
        assert!((4.5..5.5).contains(&percent(301..=1024)));
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&1), Some(&1024)));
        // All sizes of a class are equally likely.
        let lower = percent(14..=156) / percent(157..=300);
        assert!((0.9..1.1).contains(&lower), "{lower}");
        assert!(sizes.iter().enumerate().all(|(number, size)| etc_size(number as u64) == *size));
    }

    #[test]
    fn small_and_medium_objects_are_skewed_and_large_ones_are_not() {
        let (choice, object) = (EtcChoice::new(20_000, 0.99).unwrap(), |position| position * 2 + 1);
        let draws = |seed| {
            let mut random = SmallRng::seed_from_u64(seed);
            (0..200_000).map(|_| choice.draw(&mut random, object)).collect::<Vec<_>>()
        };
        let (mut large, mut others) = (HashMap::new(), HashMap::new());
        for position in draws(1) {
            let class = if is_large(object(position)) { &mut large } else { &mut others };
            *class.entry(position).or_insert(0u32) += 1;
        }
        let drawn: u32 = large.values().sum();
        assert!((9_000..11_000).contains(&drawn), "{drawn} large ones");
        assert!(
            large.values().all(|count| *count < 40),
            "no large one is hot: ten draws of each are expected"
        );
        let hottest = others.values().max().expect("there are some");
        assert!(*hottest > 5_000, "the hottest of 19,000 is drawn {hottest} times");
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn a_choice_ends_where_no_object_is_large() {
        let choice = EtcChoice::new(1, 0.99).unwrap();
        let mut random = SmallRng::seed_from_u64(1);
        assert!((0..100).all(|_| choice.draw(&mut random, |position| position) == 0));
        assert!(EtcChoice::new(0, 0.99).is_none() && EtcChoice::new(5, 1.0).is_none());
    }
}
