//! An allocator that counts, because DRAM per record is a result and not a guess.
//!
//! A program installs it with `#[global_allocator] static ALLOCATOR: Counting = Counting;`. Counts are kept
//! in a few padded places and each thread adds to one of them, so that threads which allocate do not fight
//! over a line in the middle of a measurement. A thread may free what another allocated: one place may go
//! below zero, the sum does not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

const PLACES: usize = 16;

#[repr(align(128))]
struct Place(AtomicI64);

static LIVE: [Place; PLACES] = [const { Place(AtomicI64::new(0)) }; PLACES];
static NEXT_PLACE: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);

thread_local! {
    // Constant and without a destructor, so that the first use inside the allocator allocates nothing.
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The system's allocator with a count of live bytes.
pub struct Counting;

#[inline]
fn count(bytes: i64) {
    let place = PLACE.get();
    let place = if place < PLACES { place } else { first_use() };
    LIVE[place].0.fetch_add(bytes, Ordering::Relaxed);
}

#[cold]
fn first_use() -> usize {
    INSTALLED.store(true, Ordering::Relaxed);
    let place = NEXT_PLACE.fetch_add(1, Ordering::Relaxed) % PLACES;
    PLACE.set(place);
    place
}

// SAFETY: every call is passed on to `System` unchanged; counting allocates nothing and cannot panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that `System` asks for.
        let memory = unsafe { System.alloc(layout) };
        if !memory.is_null() {
            count(layout.size() as i64);
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() {
            count(layout.size() as i64);
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`; `memory` came from `System` with this layout.
        unsafe { System.dealloc(memory, layout) };
        count(-(layout.size() as i64));
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() {
            count(size as i64 - layout.size() as i64);
        }
        moved
    }
}

/// Bytes allocated and not yet freed, or `None` if this program uses another allocator.
pub fn live_bytes() -> Option<u64> {
    let live: i64 = LIVE.iter().map(|place| place.0.load(Ordering::Relaxed)).sum();
    INSTALLED.load(Ordering::Relaxed).then_some(live.max(0) as u64)
}
