//! Drawing damage from a seed: a place, and what happens there.

use super::ground::Ground;
use super::place::Place;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use std::fmt;
use std::ops::Range;

const LINE: usize = 64;
const PAGE: usize = 4096;

/// The damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// One bit is another.
    Bit,
    /// A line or a page is zero, ones or anything else.
    Line,
    /// The same of a page.
    Page,
    /// A page is as it was earlier.
    OldPage,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Strike {
    /// The place that was aimed at.
    pub place: Place,
    /// The damage.
    pub blow: Blow,
    /// The bytes that may have changed.
    pub range: Range<usize>,
    /// The damaged image.
    pub(super) image: Vec<u8>,
}

impl Strike {
    /// No strike at all.
    pub(super) fn none(ground: &Ground) -> Strike {
        Strike { place: Place::Free, blow: Blow::Bit, range: 0..0, image: ground.image.clone() }
    }

    /// The strike of a seed.
    pub fn draw(ground: &Ground, seed: u64) -> Strike {
        let mut random = SmallRng::seed_from_u64(seed);
        loop {
            let places: Vec<_> = ground.places.iter().collect();
            let (place, stretches) = places.choose(&mut random).expect("there are some");
            let stretch = stretches.choose(&mut random).expect("each has one");
            let at = random.random_range(stretch.start..stretch.end);
            let mut image = ground.image.clone();
            let (blow, range) = match random.random_range(0..10) {
                0..5 => (Blow::Bit, at..at + 1),
                5..8 => (Blow::Line, at / LINE * LINE..at / LINE * LINE + LINE),
                8 => (Blow::Page, at / PAGE * PAGE..at / PAGE * PAGE + PAGE),
                _ => (Blow::OldPage, at / PAGE * PAGE..at / PAGE * PAGE + PAGE),
            };
            let struck = &mut image[range.clone()];
            match (blow, random.random_range(0..3)) {
                (Blow::Bit, _) => struck[0] ^= 1 << random.random_range(0..8),
                (Blow::OldPage, _) => struck.copy_from_slice(&ground.earlier[range.clone()]),
                (_, 0) => struck.fill(0),
                (_, 1) => struck.fill(0xff),
                _ => random.fill_bytes(struck),
            }
            if image != ground.image {
                return Strike { place: **place, blow, range, image };
            }
        }
    }
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:#x} ({})", self.blow, self.range.start, self.place)
    }
}
