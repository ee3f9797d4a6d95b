//! x86-64: `clwb` where there is one, non-temporal stores from SSE2 (which every x86-64 has), `sfence`.

use super::{FlushKind, LINE};
use std::arch::asm;
use std::arch::x86_64::{
    __cpuid, __cpuid_count, __m128i, _MM_HINT_T0, _mm_clflush, _mm_loadu_si128, _mm_prefetch, _mm_sfence,
    _mm_storeu_si128, _mm_stream_si64, _mm_stream_si128,
};

pub(super) fn detect() -> Option<FlushKind> {
    // The standard library's feature macro does not know clwb; leaf 7 of cpuid does.
    let leaves = __cpuid(0).eax;
    let ebx = if leaves >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    if ebx & (1 << 24) != 0 {
        Some(FlushKind::Clwb)
    } else if ebx & (1 << 23) != 0 {
        Some(FlushKind::ClflushOpt)
    } else {
        Some(FlushKind::Clflush)
    }
}

pub(super) fn virtual_machine() -> Option<bool> {
    // Leaf 1, bit 31 of ecx: reserved by the makers of processors for hypervisors to set.
    Some(__cpuid(1).ecx & (1 << 31) != 0)
}

/// # Safety
/// `line` must be mapped, and `kind` one that [`detect`] may return on this processor, or weaker.
#[inline]
pub(super) unsafe fn flush_line(kind: FlushKind, line: *const u8) {
    // Two comparisons, and no table of jumps: processors that take persistent memory have clwb, and a file
    // needs nothing.
    if kind == FlushKind::Clwb {
        // SAFETY: the caller's promise: mapped address, supported instruction.
        unsafe { asm!("clwb [{0}]", in(reg) line, options(nostack, preserves_flags)) }
    } else if kind != FlushKind::None {
        // SAFETY: forwarded.
        unsafe { flush_line_without_clwb(kind, line) }
    }
}

/// Writes a line back on a processor without clwb.
///
/// # Safety
/// As for [`flush_line`].
#[cold]
#[inline(never)]
unsafe fn flush_line_without_clwb(kind: FlushKind, line: *const u8) {
    match kind {
        // SAFETY: as above.
        FlushKind::ClflushOpt => unsafe {
            asm!("clflushopt [{0}]", in(reg) line, options(nostack, preserves_flags))
        },
        // SAFETY: as above.
        FlushKind::Clflush => unsafe { _mm_clflush(line) },
        FlushKind::Clwb | FlushKind::None | FlushKind::DcCvap => unreachable!("{kind} is none of those left"),
    }
}

#[inline]
pub(super) fn fence() {
    // SAFETY: sfence has no precondition.
    unsafe { _mm_sfence() }
}

/// Whole words, as records are, go straight to the streaming stores; anything else is taken apart out of
/// line.
///
/// Stores of 16 bytes do as well as 8: both leave the processor a line at a time. Cached stores with a flush
/// of each line are slower, since they wait for the old lines to be read.
///
/// # Safety
/// `dst` must be valid for `len` writes, `src` for `len` reads, without overlap.
#[inline]
pub(super) unsafe fn stream(dst: *mut u8, src: *const u8, len: usize, kind: FlushKind) {
    // SAFETY: the caller's promise, with the alignment that `stream_words` asks for.
    unsafe {
        if (dst as usize | len) & 7 == 0 {
            stream_words(dst, src, len);
        } else {
            stream_ragged(dst, src, len, kind);
        }
    }
}

/// # Safety
/// As for [`stream`], and `dst` and `len` must be multiples of 8.
#[inline]
unsafe fn stream_words(dst: *mut u8, src: *const u8, len: usize) {
    let mut done = 0;
    // SAFETY: every access stays within `len` bytes of both pointers; stores of 16 bytes are issued only
    // after a word has brought the target to a multiple of 16, loads are unaligned ones.
    unsafe {
        if dst as usize & 15 != 0 && len >= 8 {
            _mm_stream_si64(dst.cast(), src.cast::<i64>().read_unaligned());
            done = 8;
        }
        while len - done >= 16 {
            _mm_stream_si128(dst.add(done).cast::<__m128i>(), _mm_loadu_si128(src.add(done).cast()));
            done += 16;
        }
        if len - done >= 8 {
            _mm_stream_si64(dst.add(done).cast(), src.add(done).cast::<i64>().read_unaligned());
        }
    }
}

/// Whole lines, the way of every record.
///
/// # Safety
/// `dst` must be valid for `len` writes, `src` for `len` reads, without overlap; `dst` and `len` must be
/// multiples of a line.
#[inline]
pub(super) unsafe fn stream_lines(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: every access stays within `len` bytes of both pointers; stores are aligned as the line is,
    // loads are unaligned ones.
    unsafe {
        let (mut to, mut from) = (dst.cast::<__m128i>(), src.cast::<__m128i>());
        let end = dst.add(len).cast::<__m128i>();
        while to != end {
            let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
            for (i, part) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(i), part);
            }
            (to, from) = (to.add(4), from.add(4));
        }
    }
}

/// Streams one line word by word. A wider load that covers the word stored last would wait until that store
/// has left the store buffer. Behind a fence it would wait until the fence has ended.
///
/// # Safety
/// `dst` must be valid for writes of a line, and aligned to one.
#[inline]
pub(super) unsafe fn stream_line(dst: *mut u8, line: &[u8; LINE as usize]) {
    let (words, _) = line.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        // SAFETY: the words of a line, which is aligned.
        unsafe { _mm_stream_si64(dst.cast::<i64>().add(i), i64::from_le_bytes(*word)) }
    }
}

/// Streams the whole words in the middle; the ends take the cached route with a flush.
///
/// # Safety
/// As for [`stream`].
#[inline(never)]
unsafe fn stream_ragged(dst: *mut u8, src: *const u8, len: usize, kind: FlushKind) {
    let head = ((dst as usize).wrapping_neg() & 7).min(len);
    let words = (len - head) & !7;
    let tail = head + words;
    // SAFETY: the three parts lie side by side within `len` bytes of both pointers, and the middle one begins
    // at a multiple of 8 unless it is empty.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, head);
        super::flush_lines(kind, dst, head);
        stream_words(dst.add(head), src.add(head), words);
        std::ptr::copy_nonoverlapping(src.add(tail), dst.add(tail), len - tail);
        super::flush_lines(kind, dst.add(tail), len - tail);
    }
}

pub(super) const VECTOR: usize = 16;

/// Loads two words that others may be changing, by an instruction that the compiler does not look into. An
/// aligned word lies within one line, so no processor takes it apart.
///
/// # Safety
/// `src` must be mapped for 16 bytes.
#[inline]
unsafe fn load_vector(src: *const u8) -> __m128i {
    let vector: __m128i;
    // SAFETY: reads mapped bytes and changes nothing but its result.
    unsafe {
        asm!("movdqu {0}, [{1}]", out(xmm_reg) vector, in(reg) src, options(nostack, preserves_flags, readonly))
    };
    vector
}

/// # Safety
/// `src` must be mapped for `len` bytes and `dst` valid for as many writes, without overlap. `src` and `len`
/// must be multiples of a word, and `len` at least [`VECTOR`].
#[inline]
pub(super) unsafe fn copy_vectors(src: *const u8, dst: *mut u8, len: usize) {
    let last = len - VECTOR;
    let mut done = 0;
    // SAFETY: no access begins behind `last`, so each stays within `len` bytes of both pointers.
    unsafe {
        while done + 3 * VECTOR <= last {
            let line = [0, 1, 2, 3].map(|i| load_vector(src.add(done + i * VECTOR)));
            for (i, part) in line.into_iter().enumerate() {
                _mm_storeu_si128(dst.add(done + i * VECTOR).cast(), part);
            }
            done += 4 * VECTOR;
        }
        while done < last {
            _mm_storeu_si128(dst.add(done).cast(), load_vector(src.add(done)));
            done += VECTOR;
        }
        // The end, of which some may be there already.
        _mm_storeu_si128(dst.add(last).cast(), load_vector(src.add(last)));
    }
}

#[inline]
pub(super) fn prefetch(address: *const i8) {
    // SAFETY: prefetching never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[inline]
pub(super) fn prefetch_to_write(address: *const i8) {
    // The intrinsic leaves the hint out unless the compiler may take `prefetchw` for granted. SAFETY:
    // prefetching never faults; every 64-bit processor without `prefetchw` takes it for a hint without
    // effect.
    unsafe { asm!("prefetchw [{0}]", in(reg) address, options(nostack, preserves_flags, readonly)) }
}
