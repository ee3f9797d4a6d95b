//! What operations cost on the medium, counted exactly (sections 3.1, 4.2 and 4.4; figures 2 and 11).

use super::support::{fixed, heap, region, value, variable};
use quipu_medium::Region;
use quipu_medium::sim::{Cost, MAX_DIMMS};
use quipu_parts::heap::slots::{PageBits, Reclaimed, RecordForm, SlotSettings};

fn cost_of<T>(region: &Region, act: impl FnOnce() -> T) -> (T, Cost) {
    let sim = region.simulator().expect("simulated");
    let before = sim.cost();
    let result = act();
    (result, sim.cost() - before)
}

/// The paper's records and blocks.
fn papers() -> SlotSettings {
    SlotSettings {
        form: RecordForm::Fixed { key: 16, value: 200 },
        pages_per_block: 6,
        random_first_page: false,
        ..fixed()
    }
}

/// Fills one block and returns what each record cost.
fn fill_a_block(settings: SlotSettings) -> Vec<Cost> {
    let region = region(2 << 20);
    let heap = heap(&region, 256 << 10, settings, 0);
    let mut owner = heap.owner(0);
    let count = u64::from(heap.shape().expect("slots").count) * 6;
    let costs = (0..count)
        .map(|number| {
            let key = value(number, 16);
            let place = || heap.place(&mut owner, &key, &value(number, 200), number).expect("room").offset();
            let (offset, cost) = cost_of(&region, place);
            assert_eq!(offset.block(PageBits::of(6)), 0);
            cost
        })
        .collect();
    heap.leave(owner);
    costs
}

#[test]
fn an_insert_takes_two_fences_and_an_aligned_page_one_dimm() {
    let costs = fill_a_block(papers());
    assert_eq!(costs.len(), 18 * 6);
    let mut lines = [0; MAX_DIMMS];
    for cost in &costs[1..] {
        assert_eq!((cost.fences, cost.persists, cost.dimms_touched()), (2, 2, 1));
        assert_eq!(cost.lines_flushed, 0);
        assert!(
            (4..=6).contains(&cost.lines_streamed),
            "a slot of 224 bytes and a word: {}",
            cost.lines_streamed
        );
        lines.iter_mut().zip(cost.dimm_lines).for_each(|(sum, lines)| *sum += lines);
    }
    let read: u64 = costs[1..].iter().map(|cost| cost.lines_read).sum();
    assert_eq!(read, 5, "of a page that is filled, its first line is read");
    let (most, least) = (lines[..6].iter().max(), lines[..6].iter().min());
    assert!(most <= least.map(|least| least + 10).as_ref(), "a block spreads evenly: {lines:?}");
}

#[test]
fn an_insert_into_a_page_that_is_not_aligned_touches_two_dimms_half_of_the_time() {
    let costs = fill_a_block(SlotSettings { alignment_shift: 2048, ..papers() });
    let touched: Vec<usize> = costs[1..].iter().map(Cost::dimms_touched).collect();
    let two = touched.iter().filter(|dimms| **dimms == 2).count();
    assert_eq!(touched.iter().filter(|dimms| **dimms == 1).count() + two, touched.len());
    // Bitset and the first 8 of 18 slots lie before the boundary; the ninth crosses it.
    assert_eq!(two, 10 * 6, "{touched:?}");
}

#[test]
fn a_record_of_any_size_takes_two_fences_and_one_dimm() {
    let settings = SlotSettings { pages_per_block: 6, random_first_page: false, ..variable() };
    let region = region(2 << 20);
    let heap = heap(&region, 256 << 10, settings, 0);
    let mut owner = heap.owner(0);
    let mut dimms = 0;
    for number in 0..60u64 {
        let place = || heap.place(&mut owner, &[1; 16], &value(number, 216), number).expect("room").offset();
        let (offset, cost) = cost_of(&region, place);
        if offset.block(PageBits::of(6)) == 0 && number > 0 {
            assert_eq!(cost.fences, 2);
            dimms = dimms.max(cost.dimms_touched());
        }
    }
    assert_eq!(dimms, 2, "a value that continues is on two");
    // A value that fills blocks of its own has no fence of its own, but those of its blocks.
    let (offset, cost) =
        cost_of(&region, || heap.place(&mut owner, b"k", &value(7, 60_000), 100).expect("room").offset());
    assert_eq!(cost.fences, 2 + 3 * 2);
    let (_, cost) = cost_of(&region, || heap.delete(offset).expect("sound").is_some());
    assert_eq!(cost.fences, 2, "the entry, then its blocks");
}

#[test]
fn other_operations_cost_what_the_paper_says() {
    let region = region(2 << 20);
    let heap = heap(&region, 256 << 10, papers(), 0);
    let mut owner = heap.owner(0);
    let mut put = |number: u64| {
        heap.place(&mut owner, &value(1, 16), &value(number, 200), number).expect("room").offset()
    };
    let old = put(1);
    let counts = |cost: Cost| (cost.fences, cost.lines_flushed + cost.lines_streamed);
    let (_, update) =
        cost_of(&region, || heap.update_in_place(old, &value(1, 16), 8, |old| old + 1).expect("aligned"));
    assert_eq!(counts(update), (1, 1), "one Persist for an update in place");
    let mut buffer = Vec::new();
    let (_, read) = cost_of(&region, || heap.read(old, &mut buffer).expect("sound").is_some());
    assert_eq!((counts(read), read.words_stored), ((0, 0), 0), "no lock is written by a reader");
    assert!(read.lines_read <= 6);
    let (new, replaced) = cost_of(&region, || {
        let placed = heap.place(&mut owner, &value(1, 16), &value(2, 200), 2).expect("room");
        placed.release_old(old).expect("it is there");
        placed.offset()
    });
    assert_eq!(replaced.fences, 3, "record, bit, and the old one's bit");
    let (_, deleted) = cost_of(&region, || heap.delete(new).expect("sound").is_some());
    assert_eq!(counts(deleted), (1, 1));
}

#[test]
fn a_fresh_block_costs_a_fence_and_one_that_is_used_again_two() {
    let settings = SlotSettings { form: RecordForm::Fixed { key: 8, value: 4000 }, ..fixed() };
    let region = region(1 << 20);
    let heap = heap(&region, 256 << 10, settings, 0);
    let mut owner = heap.owner(0);
    let mut cleaner = heap.cleaner(0);
    let mut put = |number: u64| {
        cost_of(&region, || {
            heap.place(&mut owner, &[1; 8], &value(number, 4000), number).expect("room").offset()
        })
    };
    let (first, _) = put(1);
    let (second, fresh) = put(2);
    assert_eq!(fresh.fences, 3, "one of them counts the block as used");
    drop(heap.delete(first).expect("sound"));
    assert_eq!(heap.victim(100), Some(0));
    let (reclaimed, cost) =
        cost_of(&region, || heap.reclaim(&mut cleaner, 0, |_| true).expect("nothing to move"));
    assert_eq!(cost.fences, 1, "the mark of a free block");
    let Reclaimed::Freed(freed) = reclaimed else { panic!("nothing is left there") };
    heap.recycle(freed);
    let (third, again) = put(3);
    assert_eq!((third.block(PageBits::of(1)), again.fences), (0, 4));
    assert_eq!(second.block(PageBits::of(1)), 1);
}
