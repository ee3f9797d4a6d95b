//! The keyed hash by which records and segment headers prove that they were written here, in this life.
//!
//! XXH3 with a secret of the pool hashes the bytes. It is published and frozen, so a format may depend on it,
//! and so fast that one fence hides it. It is not a cryptographic signature: it excludes torn writes,
//! leftovers, and bytes forged by someone who cannot read the pool. A process that can read the secret can
//! write the pool anyway.
//!
//! A function that is one-to-one in the place (life and offset) mixes the place of a record into the hash. So
//! the same bytes at another place always have another check.

use super::layout::{BODY, HEADER, SEQUENCE};
use crate::twin;
use twox_hash::XxHash3_64;

const XXH3_SECRET: usize = 192;

/// Computes checks for one pool.
#[derive(Clone)]
pub struct Certifier {
    secret: [u8; XXH3_SECRET],
    key_seed: u64,
    /// Mixed in by [`permuted`](Certifier::permuted): two numbers, and an odd factor between them.
    permutation: [u64; 3],
    of_headers_alone: bool,
}

/// The contribution of a segment's life to the checks of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeKey(u64);

impl Certifier {
    /// The certifier of the pool with this secret.
    pub fn new(pool_secret: &[u8; 32]) -> Certifier {
        let mut secret = [0; XXH3_SECRET];
        for (i, word) in secret.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&XxHash3_64::oneshot_with_seed(i as u64, pool_secret).to_le_bytes());
        }
        let [key_seed, first, factor, second] =
            [0, 1, 2, 3].map(|n| XxHash3_64::oneshot_with_seed(u64::MAX - n, pool_secret));
        let permutation = [first, factor | 1, second];
        Certifier { secret, key_seed, permutation, of_headers_alone: false }
    }

    /// A certifier whose checks cover the header of a record alone. Against crashes that is enough if the
    /// check of a record arrives last. Damage behind the header goes unnoticed.
    pub fn of_headers_alone(mut self) -> Certifier {
        self.of_headers_alone = true;
        self
    }

    /// Whether checks cover the headers of records alone.
    #[inline]
    pub fn is_of_headers_alone(&self) -> bool {
        self.of_headers_alone
    }

    /// The part of a record that its check speaks for, the check itself included.
    #[inline]
    pub(crate) fn proved_part<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        if self.of_headers_alone { &record[..HEADER as usize] } else { record }
    }

    /// The contribution of a life to its records' checks, computed once for a segment. The random nonce makes
    /// a life differ from all others even if its number was drawn twice. A crash of the system can cause that
    /// on a file, whose pages reach the disk in any order.
    pub fn life_key(&self, life: u64, nonce: u64) -> LifeKey {
        let (life, nonce) = if twin!(LifeLeftOut) || twin!(LivesIgnored) { (0, 0) } else { (life, nonce) };
        LifeKey(self.keyed(&(u128::from(nonce) << 64 | u128::from(life)).to_le_bytes()))
    }

    #[inline]
    fn keyed(&self, bytes: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_secret(&self.secret, bytes).expect("a secret as long as XXH3's own")
    }

    /// The check of `body` at `offset` within a segment of this life.
    #[inline]
    pub fn check(&self, life: LifeKey, offset: u64, body: &[u8]) -> u64 {
        let place = life.0.wrapping_add(offset.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mix(self.keyed(body) ^ place)
    }

    /// A record's check: the check of its body (the bytes behind the sequence number), with the number mixed
    /// in. The two are separate, so that a writer computes the long part before it draws the number under the
    /// key's lock.
    #[inline]
    pub fn stamp(body_check: u64, sequence: u64) -> u64 {
        mix(body_check ^ sequence)
    }

    /// The check that a whole record must have.
    ///
    /// # Panics
    /// If the record is shorter than its fixed header.
    #[inline]
    pub fn record_check(&self, life: LifeKey, offset: u64, record: &[u8]) -> u64 {
        let sequence = record[SEQUENCE..BODY].try_into().expect("eight bytes");
        let body = &self.proved_part(record)[BODY..];
        Certifier::stamp(self.check(life, offset, body), u64::from_le_bytes(sequence))
    }

    /// Half a check over one number: the proof in a segment's end mark.
    pub fn check_word(&self, life: LifeKey, value: u64) -> u32 {
        (self.check(life, u64::MAX, &value.to_le_bytes()) >> 32) as u32
    }

    /// The hash by which the index finds a key. It is keyed, so that nobody can choose keys that collide.
    #[inline]
    pub fn key_hash(&self, key: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.key_seed, key)
    }

    /// A one-to-one function of a number: the hash of a key of eight bytes for an index that cannot compare
    /// such keys in another way. No two keys ever have the same hash.
    ///
    /// It is keyed, like [`key_hash`](Certifier::key_hash) and for the same reason. An attacker without the
    /// pool's secret cannot choose keys whose hashes share many bits: a secret factor of 63 bits multiplies
    /// any difference before it is mixed twice more. It is no cipher and would not withstand an attacker who
    /// sees hashes, which the index never shows.
    #[inline]
    pub fn permuted(&self, number: u64) -> u64 {
        let [first, factor, second] = self.permutation;
        let x = number ^ first;
        mix((x ^ (x >> 32)).wrapping_mul(factor) ^ second)
    }
}

/// A one-to-one mix of 64 bits (the finaliser of SplitMix64).
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Undoes `x ^= x >> shift`.
    fn unshifted(x: u64, shift: u32) -> u64 {
        (0..u64::BITS / shift).fold(x, |y, _| x ^ (y >> shift))
    }

    /// The inverse of an odd number under multiplication.
    fn inverse(odd: u64) -> u64 {
        (0..6).fold(odd, |y, _| y.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(y))))
    }

    impl Certifier {
        /// The number whose image under [`permuted`](Certifier::permuted) this is.
        pub(crate) fn unpermuted(&self, hash: u64) -> u64 {
            let [first, factor, second] = self.permutation;
            let mut x = unshifted(hash, 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
            x = unshifted(x, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
            x = (unshifted(x, 30) ^ second).wrapping_mul(inverse(factor));
            unshifted(x, 32) ^ first
        }
    }

    #[test]
    fn a_permutation_can_be_undone_and_depends_on_the_secret() {
        let (one, other) = (Certifier::new(&[1; 32]), Certifier::new(&[2; 32]));
        for number in (0..64).map(|bit| 1 << bit).chain(0..1000).chain([u64::MAX]) {
            assert_eq!(one.unpermuted(one.permuted(number)), number);
            assert_eq!(one.permuted(one.unpermuted(number)), number);
            assert_ne!(one.permuted(number), other.permuted(number));
        }
    }

    /// Numbers that differ in a few neighbouring bits spread evenly over segments (upper bits) and buckets
    /// (lower bits).
    #[test]
    fn permuted_numbers_are_spread_evenly() {
        let certifier = Certifier::new(&[1; 32]);
        for step in (0..=54).map(|bit| 1u64 << bit) {
            for shift in [58, 1] {
                let mut drawers = [0u32; 64];
                for n in 0..1024u64 {
                    drawers[(certifier.permuted(n.wrapping_mul(step)) >> shift & 63) as usize] += 1;
                }
                // Sixteen are expected; 45 would be seven standard deviations more.
                assert!(drawers.iter().all(|count| (1..45).contains(count)), "{step:#x}: {drawers:?}");
            }
        }
    }
}
