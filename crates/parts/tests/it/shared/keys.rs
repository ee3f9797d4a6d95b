//! Numbers that look random, and keys of awkward shapes for indexes in order.

use crate::shared::mix as numbers;

pub use numbers::mix;

/// A sequence of such numbers.
pub struct Random(pub u64);

impl Random {
    /// The next number, below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % limit
    }
}

/// How the keys of a run are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keys {
    /// Eight bytes in random order.
    Random8,
    /// Eight bytes in ascending order.
    Ascending8,
    /// Eight bytes in descending order.
    Descending8,
    /// 0 to 40 bytes of zero, one and 255: many prefixes of each other, and zeros that are no padding.
    FewBytes,
    /// Whole slices from a handful: lengths that are multiples of eight, and many layers.
    Slices,
    /// One long prefix, then a random number.
    LongPrefix,
    /// One slice in common, then a random one.
    OneLayer,
    /// Readable names that share slices and differ late, of various lengths.
    Names,
    /// 24 bytes that have nothing in common: suffixes and no layers.
    Suffixes,
    /// 9 to 16 bytes, short suffixes of all lengths: two numbers after each other share the slice.
    Short,
}

impl Keys {
    pub const ALL: [Keys; 10] = [
        Keys::Random8,
        Keys::Ascending8,
        Keys::Descending8,
        Keys::FewBytes,
        Keys::Slices,
        Keys::LongPrefix,
        Keys::OneLayer,
        Keys::Names,
        Keys::Suffixes,
        Keys::Short,
    ];

    /// The key of a number; several numbers may have one key.
    pub fn key(self, number: u64) -> Vec<u8> {
        let mut random = Random(mix(number));
        match self {
            Keys::Random8 => mix(number).to_be_bytes().to_vec(),
            Keys::Ascending8 => number.to_be_bytes().to_vec(),
            Keys::Descending8 => (u64::MAX - number).to_be_bytes().to_vec(),
            Keys::FewBytes => {
                let len = random.below(41);
                let varied = random.below(4);
                (0..len)
                    .map(|at| if at + varied < len { 0 } else { [0, 1, 255][random.below(3) as usize] })
                    .collect()
            }
            Keys::Slices => {
                let slices = random.below(6);
                (0..slices)
                    .flat_map(|_| [0, 1, 1 << 32, u64::MAX][random.below(4) as usize].to_be_bytes())
                    .collect()
            }
            Keys::LongPrefix => [&[7; 100][..], &mix(number).to_le_bytes()].concat(),
            Keys::OneLayer => [*b"in front", mix(number).to_le_bytes()].concat(),
            Keys::Names => {
                format!("user/{}/profile/{}", number % 7, mix(number) >> (number % 60)).into_bytes()
            }
            Keys::Suffixes => (0..3).flat_map(|part| mix(number * 3 + part).to_ne_bytes()).collect(),
            Keys::Short => {
                let (slice, suffix) = (mix(number / 2), mix(number).to_be_bytes());
                [&slice.to_be_bytes()[..], &suffix[..1 + random.below(8) as usize]].concat()
            }
        }
    }
}
