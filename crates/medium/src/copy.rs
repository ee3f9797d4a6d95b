//! Reads of bytes that may change meanwhile.
//!
//! A plain copy of racing bytes is undefined. Here the bytes are loaded by atomic loads of aligned words, or
//! by instructions that the compiler does not look into; the result is a mix of old and new bytes, which the
//! caller validates.

use crate::region::Region;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const WORD: usize = 8;

impl Region {
    /// Appends the `len` bytes behind `prefix` to `out`, if `prefix` stands at `offset`, and tells whether it
    /// does. Others may be changing any of these bytes: then the answer means nothing, and what was appended
    /// is a mix.
    #[inline(always)]
    pub fn append_behind_racing(&self, offset: u64, prefix: &[u8], len: u64, out: &mut Vec<u8>) -> bool {
        let (src, behind) = (self.at(offset, prefix.len() as u64 + len).cast_const(), len as usize);
        // SAFETY: in bounds by `at`.
        if !unsafe { equals(src, prefix) } {
            self.note_read(offset, prefix.len() as u64);
            return false;
        }
        self.note_read(offset, prefix.len() as u64 + len);
        out.reserve(behind);
        // SAFETY: in bounds by `at`; the room behind the bytes of `out` was just made, and is filled before
        // it counts.
        unsafe {
            racing(src.add(prefix.len()), out.as_mut_ptr().add(out.len()), behind);
            out.set_len(out.len() + behind);
        }
        true
    }
}

/// Loads the aligned word that holds `address`.
///
/// # Safety
/// The word must be mapped.
#[inline]
unsafe fn word_around(address: usize) -> u64 {
    // SAFETY: aligned by the mask; mapped by the caller's promise.
    let word = unsafe { &*((address & !(WORD - 1)) as *const AtomicU64) };
    u64::from_le(word.load(Ordering::Relaxed))
}

/// Copies `len` bytes from `src` to `dst`. No aligned word is seen half old and half new.
///
/// # Safety
/// The aligned words that cover the source must be mapped, and `dst` valid for `len` writes that do not
/// overlap them. The caller tolerates any mix of old and new bytes of other writers.
#[inline(always)]
pub(crate) unsafe fn racing(src: *const u8, dst: *mut u8, len: usize) {
    if (src as usize | len).is_multiple_of(WORD) {
        // SAFETY: whole words.
        unsafe { whole_words(src, dst, len) };
    } else {
        // SAFETY: forwarded.
        unsafe { ragged(src, dst, len) };
    }
    fence(Ordering::Acquire);
}

/// Copies as [`racing`] does, from bytes of any alignment.
///
/// # Safety
/// As for [`racing`].
#[inline(never)]
unsafe fn ragged(src: *const u8, dst: *mut u8, len: usize) {
    let head = src.align_offset(WORD).min(len);
    let end = head + (len - head) / WORD * WORD;
    // SAFETY: three parts of the range, of which the middle one consists of whole words.
    unsafe {
        by_words(src, dst, head);
        whole_words(src.add(head), dst.add(head), end - head);
        by_words(src.add(end), dst.add(end), len - end);
    }
}

/// Copies as [`racing`] does, from aligned words.
///
/// # Safety
/// As for [`racing`]; `src` and `len` must be multiples of a word.
#[inline(always)]
unsafe fn whole_words(src: *const u8, dst: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= crate::arch::VECTOR {
        // SAFETY: forwarded.
        return unsafe { crate::arch::copy_vectors(src, dst, len) };
    }
    // SAFETY: forwarded.
    unsafe { by_words(src, dst, len) };
}

/// Copies as [`racing`] does, by one atomic load for each aligned word.
///
/// # Safety
/// As for [`racing`].
unsafe fn by_words(src: *const u8, dst: *mut u8, len: usize) {
    let mut done = 0;
    while done < len {
        let address = src as usize + done;
        let skip = address % WORD;
        // SAFETY: the word holds at least one byte of the range; the caller vouches for its mapping.
        let bytes = unsafe { word_around(address) }.to_le_bytes();
        let take = (WORD - skip).min(len - done);
        // SAFETY: `done + take` is within `len`; the word is a copy of our own.
        unsafe { std::ptr::copy_nonoverlapping(bytes[skip..].as_ptr(), dst.add(done), take) };
        done += take;
    }
}

/// Whether `bytes` stand at `src`.
///
/// # Safety
/// As for the source of [`racing`].
#[inline(always)]
pub(crate) unsafe fn equals(src: *const u8, bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<WORD>();
    if !(src as usize).is_multiple_of(WORD) {
        // SAFETY: forwarded.
        return unsafe { equals_by_pieces(src, bytes) };
    }
    let mut address = src as usize;
    let is_equal = 'compared: {
        for word in words {
            // SAFETY: the word is part of the range.
            if unsafe { word_around(address) } != u64::from_le_bytes(*word) {
                break 'compared false;
            }
            address += WORD;
        }
        // SAFETY: the first bytes of the word behind the others are part of the range.
        rest.is_empty() || unsafe { begins_with(address, rest) }
    };
    fence(Ordering::Acquire);
    is_equal
}

/// Whether the aligned word at `address` begins with these bytes, of which there are fewer than eight.
///
/// # Safety
/// The word must be mapped.
unsafe fn begins_with(address: usize, bytes: &[u8]) -> bool {
    let mut word = [0; WORD];
    word[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: forwarded.
    let found = unsafe { word_around(address) };
    let beyond = u64::MAX << (bytes.len() * 8);
    (found ^ u64::from_le_bytes(word)) & !beyond == 0
}

/// Compares as [`equals`] does, with bytes of any alignment.
///
/// # Safety
/// As for [`equals`].
#[inline(never)]
unsafe fn equals_by_pieces(src: *const u8, bytes: &[u8]) -> bool {
    let mut piece = [0; 64];
    let is_equal = bytes.chunks(piece.len()).enumerate().all(|(i, part)| {
        // SAFETY: a part of the range, and a buffer that is at least as long.
        unsafe { by_words(src.add(i * piece.len()), piece.as_mut_ptr(), part.len()) };
        piece[..part.len()] == *part
    });
    fence(Ordering::Acquire);
    is_equal
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words, so that the bytes are aligned, as those of a region are.
    fn source() -> Vec<u64> {
        (0..80u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).collect()
    }

    #[test]
    fn every_length_at_every_alignment_is_copied_and_compared() {
        let words = source();
        let base = words.as_ptr().cast::<u8>();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        for start in 0..20 {
            for len in 0..300 {
                let expected = &bytes[start..start + len];
                let mut copy = vec![0xaa; len + 1];
                // SAFETY: within the words above, which nobody writes.
                unsafe { racing(base.add(start), copy.as_mut_ptr(), len) };
                assert_eq!((&copy[..len], copy[len]), (expected, 0xaa), "{start}+{len}");
                // SAFETY: as above.
                assert!(unsafe { equals(base.add(start), expected) }, "{start}+{len}");
                for at in [0, len / 2, len.saturating_sub(1)] {
                    let mut other = expected.to_vec();
                    let Some(byte) = other.get_mut(at) else { continue };
                    *byte ^= 0x10;
                    // SAFETY: as above.
                    assert!(!unsafe { equals(base.add(start), &other) }, "{start}+{len}, byte {at}");
                }
            }
        }
    }
}
