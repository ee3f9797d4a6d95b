//! The version locks of pages (sections 3.2.2, 4.2, 4.3), and how clients that want each other's pages get
//! past each other.
//!
//! An odd version means that someone changes the page. Readers take none: they read between two looks at the
//! version.
//!
//! A client that releases an old record holds the page of a new one, and waits for a page whose holder may
//! wait for the first. So no client waits without end: after some tries it puts the offset on a list. All
//! clients that wait so look through that for their own pages, and clear such records. A page has one holder.
//! Only that, or the client that asked once it has the page, takes an offset of the page off the list; so
//! each record is cleared once.

use super::chunks::{Page, Spot};
use super::error::SlotError;
use super::heap::SlotHeap;
use super::offset::Offset;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::sync::{SpinLock, Waiter, point};
use crate::twin;
use std::cell::Cell;

/// Tries to lock a page before its offset goes on the list.
const TRIES: u32 = 32;

/// Offsets that clients wait to see cleared.
#[derive(Default)]
pub(super) struct Crossings {
    count: AtomicU32,
    list: SpinLock<Vec<Offset>>,
}

impl Crossings {
    fn add(&self, offset: Offset) {
        self.list.lock().push(offset);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn has(&self, offset: Offset) -> bool {
        self.list.lock().contains(&offset)
    }

    /// Takes an offset off the list; `false` if it is gone.
    fn remove(&self, offset: Offset) -> bool {
        let mut list = self.list.lock();
        let place = list.iter().position(|listed| *listed == offset);
        let removed = place.map(|place| list.swap_remove(place)).is_some();
        if removed {
            self.count.fetch_sub(1, Ordering::Release);
        }
        removed
    }
}

/// The lock of a page is taken.
#[must_use = "the page is held for as long as this lives"]
pub(super) struct Locked<'h> {
    heap: &'h SlotHeap,
    spot: Spot<'h>,
    /// The version while it is held.
    version: Cell<u32>,
}

/// Holds a page.
pub(super) struct PageGuard<'h> {
    locked: Locked<'h>,
    pub(super) page: Page<'h>,
}

impl<'h> PageGuard<'h> {
    #[inline]
    pub(super) fn heap(&self) -> &'h SlotHeap {
        self.locked.heap
    }

    /// The version of the page before it was taken.
    #[inline]
    pub(super) fn version_before(&self) -> u32 {
        self.locked.version.get().wrapping_sub(1)
    }

    /// The version of the page when it has been released.
    #[inline]
    pub(super) fn version_behind(&self) -> u32 {
        self.locked.version.get().wrapping_add(1)
    }

    /// Something of the page is changed that its owner's pen does not know of: when it is released, the
    /// version will be another one than the pen expects.
    #[inline]
    pub(super) fn touch(&self) {
        let version = &self.locked.version;
        version.set(version.get().wrapping_add(2));
    }
}

impl Locked<'_> {
    /// Whether nobody had the page between its version, which was even, and this lock.
    #[inline(always)]
    pub(super) fn follows(&self, version: u32) -> bool {
        self.version.get() == version.wrapping_add(1)
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        let Locked { spot: Spot { lock, .. }, version, .. } = self;
        lock.store(version.get().wrapping_add(1), Ordering::Release);
    }
}

/// Whether a page that has this version now had it at an earlier look.
#[inline(always)]
pub(super) fn is_same(now: u32, before: u32) -> bool {
    now == before || twin!(VersionsWrap) && now as u8 == before as u8
}

impl SlotHeap {
    /// The version of a page; odd while someone changes it.
    #[inline]
    pub(super) fn version(&self, page: &Page<'_>) -> u32 {
        self.version_of(page.spot())
    }

    #[inline(always)]
    fn version_of(&self, Spot { lock, .. }: Spot<'_>) -> u32 {
        point();
        lock.load(Ordering::Acquire)
    }

    /// Whether a page still has the version that was even before it was read.
    #[inline]
    pub(super) fn is_unchanged(&self, page: &Page<'_>, version: u32) -> bool {
        // The reads before must not be taken for later than this look.
        fence(Ordering::Acquire);
        is_same(self.version(page), version)
    }

    /// Takes a page, if nobody has it.
    #[inline]
    pub(super) fn try_lock<'h>(&'h self, page: Page<'h>) -> Option<PageGuard<'h>> {
        let spot = page.spot();
        let version = self.try_advance(spot)?;
        Some(PageGuard { locked: Locked { heap: self, spot, version: Cell::new(version) }, page })
    }

    /// Takes a page, and waits for it. The caller holds no other page, or one that no holder of this one
    /// waits for.
    #[inline(always)]
    pub(super) fn lock<'h>(&'h self, page: Page<'h>) -> PageGuard<'h> {
        PageGuard { locked: self.lock_spot(page.spot()), page }
    }

    /// Takes the lock of a page, and waits for it, for a change of one record.
    ///
    /// Functions out of line take no guard and no page: one whose address is given away lies in memory, and
    /// is copied by wider loads than it was stored by, which wait for the stores.
    #[inline(always)]
    pub(super) fn lock_spot<'h>(&'h self, spot: Spot<'h>) -> Locked<'h> {
        let version = match self.try_advance(spot) {
            Some(version) => version,
            None => self.advance(spot),
        };
        Locked { heap: self, spot, version: Cell::new(version) }
    }

    /// The version of a page that nobody changes; waits for whoever does.
    #[inline(always)]
    pub(super) fn even_version(&self, spot: Spot<'_>) -> u32 {
        let version = self.version_of(spot);
        if version.is_multiple_of(2) { version } else { self.next_even_version(spot) }
    }

    #[cold]
    fn next_even_version(&self, spot: Spot<'_>) -> u32 {
        let mut waiter = Waiter::default();
        loop {
            waiter.wait();
            let version = self.version_of(spot);
            if version.is_multiple_of(2) {
                return version;
            }
        }
    }

    /// Makes the version of the page at this place odd, and returns it; `None` if it is.
    #[inline(always)]
    fn try_advance(&self, Spot { lock, .. }: Spot<'_>) -> Option<u32> {
        point();
        let version = lock.load(Ordering::Relaxed);
        let odd = version.wrapping_add(1);
        let is_even = version.is_multiple_of(2);
        let swapped =
            is_even && lock.compare_exchange(version, odd, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        swapped.then(|| {
            // The changes that follow must not be seen before the odd version.
            fence(Ordering::Release);
            odd
        })
    }

    /// Makes the version odd as soon as it is even, and returns it.
    #[cold]
    fn advance(&self, spot: Spot<'_>) -> u32 {
        let mut waiter = Waiter::default();
        loop {
            waiter.wait();
            if let Some(odd) = self.try_advance(spot) {
                return odd;
            }
        }
    }

    /// Clears a record durably while `own` is held: its page is that one, or is taken for as long, or its
    /// holder does it (section 4.2).
    pub(super) fn clear_crossing(&self, own: &PageGuard<'_>, offset: Offset) -> Result<(), SlotError> {
        let clear = |guard: &PageGuard<'_>| Ok(self.clear(guard, offset).map(drop)?);
        let target = self.page_of(offset)?;
        if target.is(&own.page) {
            return clear(own);
        }
        let mut waiter = Waiter::default();
        for _ in 0..TRIES {
            if let Some(guard) = self.try_lock(target) {
                return clear(&guard);
            }
            self.serve(own);
            waiter.wait();
        }
        self.crossings.add(offset);
        loop {
            self.serve(own);
            if !self.crossings.has(offset) {
                return Ok(());
            }
            if let Some(guard) = self.try_lock(target) {
                return if self.crossings.remove(offset) { clear(&guard) } else { Ok(()) };
            }
            waiter.wait();
        }
    }

    /// Clears the records on this page for which others wait.
    fn serve(&self, own: &PageGuard<'_>) {
        if self.crossings.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let is_here = |offset: &Offset| self.chunks.page_of(*offset).is_some_and(|page| page.is(&own.page));
        let asked: Vec<Offset> = self.crossings.list.lock().iter().copied().filter(is_here).collect();
        for offset in asked {
            // A record that cannot be read cannot be cleared either; its next reader is told.
            let _ = self.clear(own, offset);
            self.crossings.remove(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::slots::{Neighbor, RecordForm, SlotSettings};
    use crate::heap::{Clock, ClockSettings};
    use crate::record::Certifier;
    use crate::space::{FormatOptions, FreeListKind, Space};
    use crate::twin::Twin;
    use quipu_medium::Region;
    use quipu_medium::sim::{SimOptions, sched};

    fn heap() -> SlotHeap {
        let options = FormatOptions {
            zone_size: 16 << 10,
            design: 2,
            settings: [0; _],
            pools: Vec::new(),
            free_list: FreeListKind::Volatile,
            secret: [1; 32],
            boot_id: [0; 16],
        };
        let space = Space::format(Region::sim(SimOptions::default()), &options).expect("a new pool");
        let clock = Clock::resume(&space, ClockSettings { block: 10, handful: 4 }, false);
        let form = RecordForm::Fixed { key: 8, value: 8 };
        let settings = SlotSettings { form, pages_per_block: 1, ..SlotSettings::default() };
        let (heap, _) =
            SlotHeap::new(&Neighbor::default(), space, Certifier::new(&[1; 32]), clock, settings, 0)
                .expect("settings");
        heap.open_blocks().expect("room");
        heap
    }

    /// Whether a reader that was held up between its two looks notices so many writes, the first of which
    /// deletes its record.
    fn notices(writes: u32) -> bool {
        let heap = heap();
        let mut owner = heap.owner(0);
        let offset = heap.place(&mut owner, &[1; 8], &[1; 8], 1).expect("room").offset();
        let page = heap.page_of(offset).expect("it is there");
        let version = heap.version(&page);
        assert!(version.is_multiple_of(2) && heap.is_slot_set(&page, offset.position()) == Some(true));
        drop(heap.delete(offset).expect("sound").expect("it is there"));
        for number in 1..writes {
            drop(heap.place(&mut owner, &[2; 8], &[2; 8], u64::from(number)).expect("room"));
        }
        assert_eq!(heap.page_of(offset).expect("it is there").at, page.at);
        !heap.is_unchanged(&page, version)
    }

    /// The holder of a page may leave anything there meanwhile. A look at a key alone waits for it, as a read
    /// of the record does.
    #[test]
    fn keys_are_not_looked_at_while_somebody_has_their_page() {
        for seed in 0..20 {
            let heap = heap();
            let mut owner = heap.owner(0);
            let offset = heap.place(&mut owner, &[1; 8], &[1; 8], 1).expect("room").offset();
            let page = || heap.page_of(offset).expect("it is there");
            let (at, _) = heap.key_of_record(&page(), offset.position()).expect("sound").expect("a record");
            let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
                Box::new(|| {
                    let _held = heap.lock(page());
                    let key = heap.region().load(at);
                    heap.region().store(at, !key);
                    (0..8).for_each(|_| point());
                    heap.region().store(at, key);
                }),
                Box::new(|| {
                    for _ in 0..8 {
                        assert_eq!(
                            heap.is_record_of(offset, &[1; 8]).expect("sound"),
                            Some(true),
                            "seed {seed}"
                        );
                    }
                }),
                Box::new(|| {
                    let mut key = Vec::new();
                    for _ in 0..8 {
                        assert!(heap.read_key(offset, &mut key).expect("sound"));
                        assert_eq!(key, [1; 8], "seed {seed}");
                    }
                }),
            ];
            sched::run(seed, tasks).expect("nobody waits for ever");
        }
    }

    #[test]
    fn a_version_of_one_byte_comes_back_and_one_of_32_bits_does_not() {
        let missed = || (1..=129).filter(|writes| !notices(*writes)).count();
        assert_eq!(missed(), 0);
        let _left_out = twin::leave_out(Some(Twin::VersionsWrap));
        assert_eq!(missed(), 1);
    }

    /// Changes of other records on the page disturb nobody.
    #[test]
    fn each_update_in_place_is_computed_once() {
        for seed in 0..20 {
            let heap = &heap();
            let mut owner = heap.owner(0);
            let keys = [[1; 8], [2; 8], [3; 8]];
            let places = keys.map(|key| heap.place(&mut owner, &key, &[0; 8], 1).expect("room").offset());
            let page = |offset| heap.page_of(offset).expect("it is there").at;
            assert!(places.iter().all(|place| page(*place) == page(places[0])));
            let task = |(place, key): (Offset, [u8; 8])| {
                let task = move || {
                    for number in 0..8 {
                        let calls = Cell::new(0);
                        let add = |old| {
                            calls.set(calls.get() + 1);
                            old + 1
                        };
                        let old = heap.update_in_place(place, &key, 0, add).expect("a word");
                        assert_eq!((old, calls.get()), (Some(number), 1), "seed {seed}");
                    }
                };
                Box::new(task) as Box<dyn FnOnce()>
            };
            sched::run(seed, std::iter::zip(places, keys).map(task).collect())
                .expect("nobody waits for ever");
        }
    }
}
