//! Sets of keys by which learned indexes are judged.
//!
//! Keys are numbers, which an index has as eight bytes, the highest first. An index that learns how keys lie
//! finds some sets easy and others hard, so a figure for one set says little about the next. The sets of the
//! literature are downloads; these are drawn from a seed, after their descriptions. `longlat` is that of ALEX
//! (Ding et al., SIGMOD'20), `osm` and `fb` are those of SOSD (Marcus et al., VLDB'20).
//!
//! Places on the map lie around five thousand cities, whose sizes are zipfian.

use super::{Zipfian, mix};
use crate::choice::Named;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Cities of the map, and how unequal they are.
const CITIES: u64 = 5_000;
const THETA: f64 = 0.99;
/// Degrees around a city, at most.
const AROUND: f64 = 0.5;
/// Bits of a degree that `longlat` keeps.
const DEGREE_BITS: u32 = 40;

/// Bits of most keys of `fb`, and the number of the others.
const USER_BITS: u32 = 38;
const OUTLIERS: usize = 21;

/// Tenants of `prefix`, the letters of its texts in the order of their frequency, and the bits behind them.
const TENANTS: u64 = 3;
const LETTERS: &[u8; 26] = b"etaoinshrdlucmfwypvbgkjqxz";
const TEXT: usize = 4;
const NUMBER_BITS: u32 = 24;

/// A set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySet {
    /// Any 64 bits.
    Uniform,
    /// Longitude and latitude in one number: steps, and a line on each.
    LongLat,
    /// The bits of longitude and latitude by turns, as of OpenStreetMap's cells.
    Osm,
    /// Numbers of users: uniform below 2^38, and 21 far above.
    Fb,
    /// A tenant, four letters and 24 bits.
    Prefix,
    /// 0, 1, 2 and so on.
    Sequential,
}

impl Named for KeySet {
    const KIND: &'static str = "set of keys";
    const EVERY: &'static [KeySet] =
        &[KeySet::Uniform, KeySet::LongLat, KeySet::Osm, KeySet::Fb, KeySet::Prefix, KeySet::Sequential];

    fn name(&self) -> &'static str {
        match self {
            KeySet::Uniform => "uniform",
            KeySet::LongLat => "longlat",
            KeySet::Osm => "osm",
            KeySet::Fb => "fb",
            KeySet::Prefix => "prefix",
            KeySet::Sequential => "sequential",
        }
    }
}

impl KeySet {
    /// So many keys of the set, ascending, no two equal.
    pub fn ascending(self, count: u64, seed: u64) -> Vec<u64> {
        let mut random = SmallRng::seed_from_u64(mix(seed ^ self as u64));
        match self {
            KeySet::Uniform => distinct(count, || random.random()),
            KeySet::Sequential => (0..count).collect(),
            KeySet::LongLat => {
                let map = Map::new(&mut random);
                distinct(count, || map.place(&mut random).compound())
            }
            KeySet::Osm => {
                let map = Map::new(&mut random);
                distinct(count, || map.place(&mut random).morton())
            }
            KeySet::Fb => {
                let mut outliers = OUTLIERS.min(count as usize / 4);
                distinct(count, || {
                    let above = outliers > 0;
                    outliers -= usize::from(above);
                    if above {
                        random.random_range(1 << USER_BITS..=u64::MAX)
                    } else {
                        random.random_range(0..1 << USER_BITS)
                    }
                })
            }
            KeySet::Prefix => distinct(count, || prefixed(&mut random)),
        }
    }
}

/// So many numbers that were drawn, ascending, none twice.
fn distinct(count: u64, mut draw: impl FnMut() -> u64) -> Vec<u64> {
    let count = count as usize;
    let mut keys = Vec::with_capacity(count);
    while keys.len() < count {
        keys.extend((keys.len()..count).map(|_| draw()));
        keys.sort_unstable();
        keys.dedup();
    }
    keys
}

/// A key of a tenant.
fn prefixed(random: &mut SmallRng) -> u64 {
    let tenant = random.random_range(1..=TENANTS);
    let text = (0..TEXT).fold(tenant, |key, _| {
        let (one, other) = (random.random_range(0..LETTERS.len()), random.random_range(0..LETTERS.len()));
        key << 8 | u64::from(LETTERS[one.min(other)])
    });
    text << NUMBER_BITS | random.random_range(0..1 << NUMBER_BITS)
}

/// A place: degrees from the date line, below 360, and from the south pole, below 180.
#[derive(Clone, Copy)]
struct Place {
    longitude: f64,
    latitude: f64,
}

impl Place {
    /// The key of `longlat`: 180 times the whole degrees of longitude, and the latitude.
    fn compound(self) -> u64 {
        let degrees = 180.0 * self.longitude.floor() + self.latitude;
        (degrees * (1u64 << DEGREE_BITS) as f64) as u64
    }

    /// The key of `osm`: 32 bits of each, by turns.
    fn morton(self) -> u64 {
        let share = |degrees: f64, all: f64| (degrees / all * 2f64.powi(32)) as u64;
        spread(share(self.longitude, 360.0)) << 1 | spread(share(self.latitude, 180.0))
    }
}

/// The lower 32 bits with a zero before each.
fn spread(bits: u64) -> u64 {
    const STEPS: [(u32, u64); 5] = [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ];
    STEPS.iter().fold(bits & u64::from(u32::MAX), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

struct Map {
    cities: Vec<Place>,
    choice: Zipfian,
}

impl Map {
    fn new(random: &mut SmallRng) -> Map {
        // No city is at an edge, so that all around it is on the map.
        let city = |_| Place {
            longitude: random.random_range(AROUND..360.0 - AROUND),
            latitude: random.random_range(30.0..165.0),
        };
        let cities = (0..CITIES).map(city).collect();
        Map { cities, choice: Zipfian::new(CITIES, THETA).expect("constant") }
    }

    /// A place near a city, most likely near its middle.
    fn place(&self, random: &mut SmallRng) -> Place {
        let city = self.cities[self.choice.draw(random) as usize];
        // The mean of four is nearly normally distributed.
        let mut around = || (0..4).map(|_| random.random_range(-AROUND..AROUND)).sum::<f64>() / 4.0;
        Place { longitude: city.longitude + around(), latitude: city.latitude + around() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_ascending_distinct_and_follow_from_the_seed() {
        for set in KeySet::EVERY {
            for count in [1, 100, 20_000] {
                let keys = set.ascending(count, 1);
                assert_eq!(keys.len() as u64, count);
                assert!(keys.is_sorted_by(|one, next| one < next), "{set:?}");
                assert_eq!(keys, set.ascending(count, 1));
                assert_eq!(keys == set.ascending(count, 2), *set == KeySet::Sequential);
            }
        }
    }

    #[test]
    fn each_set_lies_as_described() {
        let keys = |set: KeySet| set.ascending(20_000, 3);
        assert_eq!(keys(KeySet::Fb).iter().filter(|key| *key >> USER_BITS > 0).count(), OUTLIERS);
        let tenants: Vec<_> = keys(KeySet::Prefix).iter().map(|key| key >> 56).collect();
        assert!(tenants.iter().all(|tenant| (1..=TENANTS).contains(tenant)) && tenants[0] < tenants[19_999]);
        let degrees = |key: &u64| (key >> DEGREE_BITS) as f64;
        assert!(keys(KeySet::LongLat).iter().all(|key| degrees(key) < 360.0 * 180.0));
        // Of a thousandth of the keys' range, far more have many keys than of a uniform set.
        let crowded = |set: KeySet| {
            let mut shares = vec![0u32; 1024];
            keys(set).iter().for_each(|key| shares[(key >> 54) as usize] += 1);
            shares.iter().filter(|count| **count > 200).count()
        };
        assert!(crowded(KeySet::Osm) > 5 && crowded(KeySet::Uniform) == 0);
    }

    #[test]
    fn bits_are_taken_by_turns() {
        assert_eq!(spread(u64::from(u32::MAX)), 0x5555_5555_5555_5555);
        assert_eq!(spread(0b1011), 0b100_0101);
        let middle = Place { longitude: 180.0, latitude: 90.0 };
        assert_eq!(middle.morton(), 0b11 << 62);
    }
}
