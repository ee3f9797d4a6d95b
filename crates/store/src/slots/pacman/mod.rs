//! PACMAN's techniques on the walk (Wang et al., USENIX ATC 2022, section 4.1): the code of
//! `SlotSpine<M, REDUCED = true>`. Hot records are a technique of their own. `parts/src/heap/slots/pacman/`
//! has the part of the heap.

mod bury;
mod evacuate;
mod hot;

pub(super) use hot::HotSide;
