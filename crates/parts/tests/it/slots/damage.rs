//! Bytes that cannot be right are reported with their place, what lies beside them is found, and nothing
//! panics.

use super::support::{CLOCK, Random, fixed, heap, recover, region, value, variable};
use quipu_medium::Region;
use quipu_parts::heap::Clock;
use quipu_parts::heap::slots::{Damage, Neighbor, Offset, SlotError, SlotHeap, SlotSettings};
use quipu_parts::record::Certifier;
use quipu_parts::space::{Space, ZoneId};

const ZONE: u64 = 64 << 10;

/// A heap with a few blocks of records. Returns where they are, and where the first zone begins.
fn filled(region: &Region, settings: SlotSettings) -> (Vec<Offset>, u64) {
    let heap = heap(region, ZONE, settings, 0);
    let mut owner = heap.owner(0);
    let place = |number: u64| {
        let len = if settings.form == fixed().form { 504 } else { [504, 10, 9000][(number % 3) as usize] };
        heap.place(&mut owner, &number.to_le_bytes(), &value(number, len), number).expect("room").offset()
    };
    ((0..30).map(place).collect(), heap.space().zone_offset(ZoneId(0)))
}

fn flip(region: &Region, at: u64, bits: u64) {
    region.store(at, region.load(at) ^ bits);
    region.persist(at, 8);
}

#[test]
fn each_header_and_length_word_is_held_against_what_it_must_be() {
    for settings in [fixed(), variable()] {
        // The first block lies a page behind its chunk's header.
        let places = [
            (0, 1, "the header of a chunk"),
            (40 - 8, 1 << 40, "the header of a chunk"),
            (40, 1 << 2, "the count of used blocks of a chunk"),
            (40, 1 << 40, "the count of used blocks of a chunk"),
            (4096, 1 << 40, "the header of a page"),
            (4096, 4 << 8, "the header of a page"),
            // It would say that the block is free.
            (4096, 1 << 8, "the header of a page"),
            (4096, 1 << 16, "the header of a page"),
        ];
        let inside = match settings.form == fixed().form {
            true => (4096 + 8, 1 << 60, "the bitset of a page"),
            false => (4096 + 8, 1 << 3, "the length of a record"),
        };
        for (at, bits, what) in places.into_iter().chain([inside]) {
            let region = region(1 << 20);
            let (_, zone) = filled(&region, settings);
            let sound = recover(&region, settings, 0);
            assert_eq!(sound.damages, []);
            let all = sound.records.len();
            drop(sound);
            flip(&region, zone + at, bits);
            let recovered = recover(&region, settings, 0);
            let [damage] = recovered.damages[..] else { panic!("{what}: {:?}", recovered.damages) };
            assert_eq!((damage.what, damage.offset), (what, zone + if at < 40 { 0 } else { at }));
            let found = recovered.records.len();
            assert!(found < all && (found > 0 || at < 64), "{what}: {found} of {all}");
        }
    }
}

/// A count that was true once, as a line has it whose write the medium has lost, proves itself. But a block
/// behind it has been written to.
#[test]
fn a_count_of_used_blocks_that_is_one_of_earlier_is_noticed() {
    for settings in [fixed(), variable()] {
        let region = region(1 << 20);
        let heap = heap(&region, ZONE, settings, 0);
        let mut owner = heap.owner(0);
        let used_at = heap.space().zone_offset(ZoneId(0)) + 40;
        let mut counts = Vec::new();
        for number in 0u64..30 {
            let placed = heap.place(&mut owner, &number.to_le_bytes(), &value(number, 504), number);
            drop(placed.expect("room"));
            if counts.last() != Some(&region.load(used_at)) {
                counts.push(region.load(used_at));
            }
        }
        let first = |damages: Vec<Damage>| damages.first().map(|damage| damage.what);
        assert_eq!(heap.verify(|_| {}), []);
        let newest = counts.pop().expect("one");
        assert!(counts.len() > 2, "{counts:?}");
        for earlier in &counts {
            region.store(used_at, *earlier);
            assert_eq!(first(heap.verify(|_| {})), Some("a page of a block that was never used"));
        }
        region.store(used_at, newest ^ 1);
        assert_eq!(first(heap.verify(|_| {})), Some("the count of used blocks of a chunk"));
        drop((owner, heap));
        for earlier in counts {
            region.store(used_at, earlier);
            let damages = recover(&region, settings, 0).damages;
            assert_eq!(first(damages), Some("a page of a block that was never used"), "{settings:?}");
        }
        region.store(used_at, newest);
        assert_eq!(recover(&region, settings, 0).damages, []);
    }
}

#[test]
fn a_damaged_record_is_an_error_to_its_reader() {
    let region = region(1 << 20);
    let (offsets, zone) = filled(&region, variable());
    let recovered = recover(&region, variable(), 0);
    let mut buffer = Vec::new();
    assert!(recovered.heap.read(offsets[0], &mut buffer).expect("sound").is_some());
    flip(&region, zone + 4096 + 8, 1 << 20);
    let read = recovered.heap.read(offsets[0], &mut buffer).map(|record| record.is_some());
    let at = zone + 4096 + 8;
    assert!(
        matches!(read, Err(SlotError::Damaged { what: "the length of a record", offset }) if offset == at)
    );
    assert!(recovered.heap.delete(offsets[0]).is_err());
    for word in [u64::MAX, 1 << 30, 0x7_0000, 0xffff] {
        let nowhere = Offset::from_word(word);
        assert!(!matches!(recovered.heap.read(nowhere, &mut buffer), Ok(Some(_))));
        assert!(!recovered.heap.key_is(nowhere, b"key"));
    }
}

/// A zone that had other contents: nothing of it is taken for a record.
#[test]
fn what_an_earlier_life_has_left_is_not_found() {
    for settings in [fixed(), variable()] {
        let region = region(1 << 20);
        drop(filled(&region, settings));
        // The pool is made again over its own bytes.
        let heap = heap(&region, ZONE, settings, 0);
        let mut owner = heap.owner(0);
        let one = heap.place(&mut owner, &[7; 8], &value(7, 504), 1).expect("room").offset();
        drop(heap);
        let recovered = recover(&region, settings, 0);
        assert_eq!(recovered.damages, []);
        assert_eq!(recovered.records.into_values().map(|found| found.offset).collect::<Vec<_>>(), [one]);
    }
}

#[test]
fn no_bytes_make_a_heap_panic() {
    for settings in [fixed(), variable(), SlotSettings { pages_per_block: 3, ..variable() }] {
        for seed in 0..150 {
            let region = region(512 << 10);
            let (offsets, zone) = filled(&region, settings);
            let mut random = Random(seed);
            for _ in 0..1 + random.below(20) {
                let at = zone + random.below((region.len() - zone) / 8) * 8;
                let near = zone + 4096 + random.below(40 * 512) * 8;
                let at = if random.below(3) == 0 { at } else { near };
                match random.below(3) {
                    0 => flip(&region, at, 1 << random.below(64)),
                    1 => region.store(at, random.below(u64::MAX)),
                    _ => region.store(at, 0),
                }
            }
            let Ok((space, _)) = Space::open(region.clone()) else { continue };
            let certifier = Certifier::new(space.superblock().secret());
            let clock = Clock::resume(&space, CLOCK, false);
            let (heap, _) =
                SlotHeap::new(&Neighbor::default(), space, certifier, clock, settings, 1).expect("settings");
            let mut found = Vec::new();
            heap.scan(0..heap.blocks(), |record| found.push(record.offset));
            heap.open_blocks().expect("room");
            let mut buffer = Vec::new();
            for offset in offsets.into_iter().chain(found) {
                let _ = heap.read(offset, &mut buffer).is_ok();
            }
            let mut cleaner = heap.cleaner(0);
            while let Some(victim) = heap.victim(1) {
                if heap.reclaim(&mut cleaner, victim, |_| true).is_err() {
                    break;
                }
            }
            let mut owner = heap.owner(1);
            let _ = heap.place(&mut owner, &[1; 8], &value(1, 504), 99).is_ok();
        }
    }
}

/// Every block holds records, and the disk has no room for more: records can be read and deleted all
/// the same.
#[test]
fn a_heap_opens_on_a_full_disk() {
    let region = region(1 << 20);
    let settings = SlotSettings { fill_percent: 100, ..fixed() };
    let heap = heap(&region, ZONE, settings, 0);
    let mut owner = heap.owner(0);
    for number in 0u64.. {
        drop(heap.place(&mut owner, &number.to_le_bytes(), &value(number, 504), number).expect("room"));
        if heap.usage().used_blocks == heap.blocks() {
            break;
        }
    }
    assert!(heap.blocks() > 1 && heap.zones() == 1, "no block of the first zone is left");
    drop((owner, heap));
    let sim = region.simulator().expect("a simulated region").clone();
    sim.fail_reserve_after(0);
    let recovered = recover(&region, settings, 2);
    let (_, found) = recovered.records.first_key_value().expect("some");
    assert!(recovered.heap.delete(found.offset).expect("sound").is_some());
}
