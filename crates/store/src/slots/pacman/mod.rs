//! What PACMAN's techniques change of the walk (Wang et al., USENIX ATC 2022, section 4.1): the ways of
//! `SlotSpine<M, REDUCED = true>`, except for hot records, which are a technique of their own.
//! `parts/src/heap/slots/pacman/` has what they are to the heap.

mod bury;
mod evacuate;
mod hot;

pub(super) use hot::HotSide;
