//! Copies of bytes that may change while they are read.
//!
//! A plain copy of racing bytes is undefined; here each aligned 8-byte word is loaded atomically, so the result
//! is a mix of old and new words (never torn ones), which the caller validates.

use std::sync::atomic::{AtomicU64, Ordering};

/// Copies `dst.len()` bytes from `src`, one atomic load an aligned word.
///
/// # Safety
/// The aligned words that cover the range must be mapped and be written only by 8-byte atomic stores or by
/// stores that the caller can tolerate to see in any mix.
pub(crate) unsafe fn racing(src: *const u8, dst: &mut [u8]) {
    let mut done = 0;
    while done < dst.len() {
        let address = src as usize + done;
        let skip = address & 7;
        // SAFETY: the aligned word holds at least one byte of the range; the caller vouches for its mapping.
        let word = unsafe { &*((address - skip) as *const AtomicU64) }.load(Ordering::Relaxed);
        let bytes = word.to_ne_bytes();
        let take = (8 - skip).min(dst.len() - done);
        dst[done..done + take].copy_from_slice(&bytes[skip..skip + take]);
        done += take;
    }
    std::sync::atomic::fence(Ordering::Acquire);
}
