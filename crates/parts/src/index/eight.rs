//! Eight words at once, which other threads may be storing to.
//!
//! They are loaded in assembly, since the language allows such loads only one atomic word at a time. No half
//! of an aligned 16-byte load ever tears. The masks made of them are hints, or are used under a lock or a
//! version.

/// Bits of a [mask](equal) that belong to one word; only the lower of them is ever set.
pub(super) const BITS_PER_WORD: u32 = 2;

/// Eight words, two to a register.
#[cfg(target_arch = "x86_64")]
pub(super) type Eight = [std::arch::x86_64::__m128i; 4];

/// Loads eight words.
///
/// # Safety
/// The words must be mapped, and the first of them aligned to 16 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn load(first: *const u64) -> Eight {
    use std::arch::x86_64::__m128i;
    let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
    // SAFETY: the four loads cover exactly these 64 bytes.
    unsafe {
        std::arch::asm!(
            "movdqa {a}, [{first}]",
            "movdqa {b}, [{first} + 16]",
            "movdqa {c}, [{first} + 32]",
            "movdqa {d}, [{first} + 48]",
            first = in(reg) first,
            a = lateout(xmm_reg) a,
            b = lateout(xmm_reg) b,
            c = lateout(xmm_reg) c,
            d = lateout(xmm_reg) d,
            options(nostack, preserves_flags, readonly),
        );
    }
    [a, b, c, d]
}

/// Which of eight words are equal to this one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn equal([a, b, c, d]: Eight, word: u64) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi64x,
    };
    const LOWER: u32 = 0x5555;
    // SAFETY: every x86-64 processor has SSE2, and these are computations on registers.
    let halves = unsafe {
        let word = _mm_set1_epi64x(word as i64);
        let low = _mm_packs_epi32(_mm_cmpeq_epi32(a, word), _mm_cmpeq_epi32(b, word));
        let high = _mm_packs_epi32(_mm_cmpeq_epi32(c, word), _mm_cmpeq_epi32(d, word));
        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
    };
    halves & halves >> 1 & LOWER
}

/// Which of some words are equal to this one, word by word, as every processor can tell.
#[cfg(any(test, loom, not(target_arch = "x86_64")))]
pub(super) fn equal_by_word(words: impl Iterator<Item = u64>, word: u64) -> u32 {
    words.zip(0..).fold(0, |mask, (other, at)| mask | u32::from(other == word) << (BITS_PER_WORD * at))
}

#[cfg(all(test, target_arch = "x86_64", not(loom)))]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Words([u64; 8]);

    #[test]
    fn words_are_equal_in_both_halves() {
        const PARTS: [u64; 4] = [0, 1, 0x8000_0000, 0xFFFF_FFFF];
        let mut turn = 1u64;
        for _ in 0..2_000 {
            let words = Words(std::array::from_fn(|_| {
                turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                PARTS[(turn >> 33) as usize % 4] << 32 | PARTS[(turn >> 43) as usize % 4]
            }));
            for word in PARTS.into_iter().flat_map(|high| PARTS.map(|low| high << 32 | low)) {
                // SAFETY: eight words of our own, aligned.
                let eight = unsafe { load(words.0.as_ptr()) };
                assert_eq!(equal(eight, word), equal_by_word(words.0.into_iter(), word));
            }
        }
    }
}
