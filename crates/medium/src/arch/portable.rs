//! Other processors: no way to write a line back, so only media that need none (`file` with `process`).

use super::FlushKind;

pub(super) fn detect() -> Option<FlushKind> {
    None
}

pub(super) fn virtual_machine() -> Option<bool> {
    None
}

/// # Safety
/// None beyond the signature's: nothing is done.
pub(super) unsafe fn flush_line(_kind: FlushKind, _line: *const u8) {}

pub(super) fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// # Safety
/// `dst` must be valid for `len` writes, `src` for `len` reads, without overlap.
pub(super) unsafe fn stream(dst: *mut u8, src: *const u8, len: usize, _kind: FlushKind) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, len) }
}

pub(super) fn prefetch(_address: *const i8) {}

pub(super) fn prefetch_to_write(_address: *const i8) {}
