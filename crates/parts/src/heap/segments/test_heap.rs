//! A small heap for the tests of this folder.

use super::log::LogHeap;
use crate::heap::{Clock, ClockSettings};
use crate::record::Certifier;
use crate::space::{FormatOptions, FreeListKind, Space};
use quipu_medium::{Pages, Region};

/// A heap of 16 KiB segments in a new pool of 1 MiB.
pub(in crate::heap) fn heap() -> LogHeap {
    heap_on(Region::dram(1 << 20, Pages::Ordinary).expect("memory"))
}

/// The same on any medium.
pub(in crate::heap) fn heap_on(region: Region) -> LogHeap {
    let options = FormatOptions {
        zone_size: 16 << 10,
        design: 1,
        settings: [0; _],
        pools: Vec::new(),
        free_list: FreeListKind::Persistent,
        secret: [1; 32],
        boot_id: [7; 16],
    };
    let space = Space::format(region, &options).expect("a new pool");
    let clock = Clock::resume(&space, ClockSettings { block: 10, handful: 4 }, false);
    LogHeap::new(space, Certifier::new(&[1; 32]), clock, 2)
}
