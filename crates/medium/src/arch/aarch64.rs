//! AArch64: `dc cvap` where the processor has it (`dcpop`), plain stores with a flush in place of
//! non-temporal ones (`stnp` is only a hint), `dsb sy` as the fence. Compiled in CI, not run: no such machine
//! at hand.

use super::FlushKind;
use std::arch::asm;

pub(super) fn detect() -> Option<FlushKind> {
    // HWCAP_DCPOP, bit 16 of AT_HWCAP: data cache clean to the point of persistence is available to user
    // space.
    const HWCAP_DCPOP: usize = 1 << 16;
    let (hwcap, _) = rustix::param::linux_hwcap();
    (hwcap & HWCAP_DCPOP != 0).then_some(FlushKind::DcCvap)
}

pub(super) fn virtual_machine() -> Option<bool> {
    None
}

/// # Safety
/// `line` must be mapped.
#[inline]
pub(super) unsafe fn flush_line(kind: FlushKind, line: *const u8) {
    if kind == FlushKind::DcCvap {
        // SAFETY: the caller's promise. The encoding is `dc cvap`, spelled out so that old assemblers take
        // it.
        unsafe { asm!("sys #3, c7, c12, #1, {0}", in(reg) line, options(nostack, preserves_flags)) }
    }
}

#[inline]
pub(super) fn fence() {
    // SAFETY: a barrier has no precondition.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
}

/// # Safety
/// `dst` must be valid for `len` writes, `src` for `len` reads, without overlap.
#[inline]
pub(super) unsafe fn stream(dst: *mut u8, src: *const u8, len: usize, kind: FlushKind) {
    // SAFETY: the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, len);
        super::flush_lines(kind, dst, len);
    }
}

#[inline]
pub(super) fn prefetch(address: *const i8) {
    // SAFETY: prefetching never faults.
    unsafe { asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly)) }
}

#[inline]
pub(super) fn prefetch_to_write(address: *const i8) {
    // SAFETY: prefetching never faults.
    unsafe { asm!("prfm pstl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly)) }
}
