//! Persistence instructions, chosen at run time.
//!
//! There is one flush routine (`flush_lines`). It rounds down to the line before it walks: a range that
//! starts in the middle of a line also ends in one more. Style guides of PM code warn of that mistake. Only
//! this room has processor instructions.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as cpu;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable as cpu;
#[cfg(target_arch = "x86_64")]
use x86_64 as cpu;

use std::fmt;

/// Bytes in a cache line, the unit of a flush.
pub const LINE: u64 = 64;

/// Which instruction writes a line back to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushKind {
    /// No instruction: the caches survive each failure that this medium promises to survive (a process crash
    /// on a mapped file; a power loss where the platform proves that it flushes caches). Fences are compiler
    /// fences.
    None,
    /// x86-64 `clwb`: write back, keep the line.
    Clwb,
    /// x86-64 `clflushopt`: write back and evict, unordered.
    ClflushOpt,
    /// x86-64 `clflush`: write back and evict, ordered.
    Clflush,
    /// AArch64 `dc cvap`: clean to the point of persistence.
    DcCvap,
}

impl FlushKind {
    /// The best instruction that this processor has.
    ///
    /// `None` as an answer means that the processor has no way to write a line back, so no medium that needs
    /// one can be used.
    pub fn detect() -> Option<FlushKind> {
        cpu::detect()
    }
}

/// The words in which people name these instructions.
impl fmt::Display for FlushKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FlushKind::None => "none",
            FlushKind::Clwb => "clwb",
            FlushKind::ClflushOpt => "clflushopt",
            FlushKind::Clflush => "clflush",
            FlushKind::DcCvap => "dc cvap",
        })
    }
}

/// Visits the address of every line that `[start, start + len)` touches, each once, in ascending order.
///
/// It is apart from the flush itself so that a test can watch the walk.
#[inline(always)]
fn each_line(start: usize, len: usize, mut visit: impl FnMut(usize)) {
    if len == 0 {
        return;
    }
    let end = start + len;
    let mut line = start & !(LINE as usize - 1);
    while line < end {
        visit(line);
        line += LINE as usize;
    }
}

/// Writes back every line that `[start, start + len)` touches. Durable after the next [`fence`] of this
/// thread.
///
/// # Safety
/// The range must lie in a live mapping.
#[inline]
pub(crate) unsafe fn flush_lines(kind: FlushKind, start: *const u8, len: usize) {
    if kind == FlushKind::None {
        return;
    }
    // SAFETY: a visited line holds at least one byte of the range and shares that byte's page, so it is
    // mapped.
    each_line(start as usize, len, |line| unsafe { cpu::flush_line(kind, line as *const u8) });
}

/// Writes back one line. Durable after the next [`fence`] of this thread.
///
/// # Safety
/// It must lie in a live mapping.
#[inline]
pub(crate) unsafe fn flush_line(kind: FlushKind, line: *const u8) {
    // SAFETY: forwarded.
    unsafe { cpu::flush_line(kind, line) }
}

/// Whether this is a virtual machine, whose host may keep its "persistent" memory in ordinary memory. `None`
/// if the processor does not say.
pub(crate) fn virtual_machine() -> Option<bool> {
    cpu::virtual_machine()
}

/// Waits until the earlier flushes and non-temporal stores of this thread have reached the medium.
#[inline]
pub(crate) fn fence(kind: FlushKind) {
    if kind == FlushKind::None {
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    } else {
        cpu::fence();
    }
}

/// Copies `src` to `dst` past the caches. Durable after the next [`fence`] of this thread.
///
/// # Safety
/// `dst` must be valid for `len` bytes of writes and not overlap `src`.
#[inline]
pub(crate) unsafe fn stream(dst: *mut u8, src: *const u8, len: usize, kind: FlushKind) {
    // SAFETY: forwarded.
    unsafe { cpu::stream(dst, src, len, kind) }
}

/// Copies whole lines past the caches. Durable after the next [`fence`] of this thread.
///
/// # Safety
/// As for [`stream`], and `dst` and `len` must be multiples of a line.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) unsafe fn stream_lines(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: forwarded; every processor of this architecture has these stores.
    unsafe { cpu::stream_lines(dst, src, len) }
}

/// Writes one line past the caches, of which a word has just been changed. Durable after the next [`fence`]
/// of this thread.
///
/// # Safety
/// `dst` must be mapped, writable and aligned for a line.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) unsafe fn stream_line(dst: *mut u8, line: &[u8; LINE as usize]) {
    // SAFETY: forwarded; every processor of this architecture has these stores.
    unsafe { cpu::stream_line(dst, line) }
}

/// Bytes that one load of [`copy_vectors`] takes, and fewest that it copies.
#[cfg(target_arch = "x86_64")]
pub(crate) const VECTOR: usize = cpu::VECTOR;

/// Copies words that others may be changing: each is loaded whole, since no load begins or ends within one.
///
/// # Safety
/// `src` must be mapped for `len` bytes and `dst` valid for as many writes, without overlap. `src` and `len`
/// must be multiples of a word, and `len` at least [`VECTOR`].
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) unsafe fn copy_vectors(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: forwarded.
    unsafe { cpu::copy_vectors(src, dst, len) }
}

/// Asks the processor for the line at `address`; a hint without effect on the program.
#[inline]
pub fn prefetch<T>(address: *const T) {
    cpu::prefetch(address.cast());
}

/// Asks for the line at `address` in order to change it, so that no other processor keeps it; a hint like
/// [`prefetch`].
#[inline]
pub fn prefetch_to_write<T>(address: *const T) {
    cpu::prefetch_to_write(address.cast());
}

#[cfg(test)]
#[path = "arch_tests.rs"]
mod tests;
