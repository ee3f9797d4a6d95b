//! Large pages beneath volatile memory. An index is read at random, and a translation that misses costs as
//! much as the memory itself, more in a virtual machine.

/// Asks for large pages beneath freshly allocated memory, so that random accesses to it need fewer
/// translations. A hint: where it is not taken, nothing changes. Only whole pages within the slice are
/// affected.
pub fn prefer_huge_pages(memory: &mut [std::mem::MaybeUninit<u8>]) {
    let page = rustix::param::page_size();
    let skip = memory.as_ptr().align_offset(page);
    let len = memory.len().saturating_sub(skip) & !(page - 1);
    if len > 0 {
        let start = memory.as_mut_ptr().wrapping_add(skip);
        // SAFETY: the pages lie within the slice, which is ours alone; the advice changes no byte of them.
        let _ = unsafe { rustix::mm::madvise(start.cast(), len, rustix::mm::Advice::LinuxHugepage) };
    }
}
