//! Plain memory as a medium: the region's operations on real memory.

use quipu_medium::{Durability, FlushKind, MediumError, MediumKind, Pages, Region, Span, Survives};
use std::sync::atomic::{AtomicBool, Ordering};

fn region(len: u64) -> Region {
    Region::dram(len, Pages::Ordinary).unwrap()
}

fn read(region: &Region, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xEE; len];
    region.read_racing(offset, &mut bytes);
    bytes
}

#[test]
fn every_route_of_writing_leaves_exactly_the_bytes_written() {
    let region = region(4096);
    let source: Vec<u8> = (1..=200).collect();
    for offset in 1000..1070 {
        for len in [0, 1, 7, 8, 9, 15, 16, 63, 64, 65, 120, 200] {
            for streamed in [false, true] {
                region.zero(900, 500);
                if streamed {
                    region.write_nt(offset, &source[..len]);
                } else {
                    region.write(offset, &source[..len]);
                    region.flush(offset, len as u64);
                }
                region.fence();
                assert_eq!(read(&region, offset, len), source[..len], "{offset} {len} {streamed}");
                let before = read(&region, 900, (offset - 900) as usize);
                let after = read(&region, offset + len as u64, (1400 - offset) as usize - len);
                assert!(before.iter().chain(&after).all(|byte| *byte == 0), "{offset} {len} {streamed}");
            }
        }
    }
}

#[test]
fn words_are_little_endian_and_swap_only_when_equal() {
    let region = region(4096);
    region.store(8, 0x0102_0304_0506_0708);
    assert_eq!(read(&region, 8, 8), [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(region.compare_exchange(8, 1, 2), Err(0x0102_0304_0506_0708));
    assert_eq!(region.compare_exchange(8, 0x0102_0304_0506_0708, 2), Ok(0x0102_0304_0506_0708));
    assert_eq!(region.load(8), 2);
}

#[test]
fn a_racing_read_never_shows_half_a_word() {
    let region = region(4096);
    let done = AtomicBool::new(false);
    let (offset, words) = (64u64, 8u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..2_000_000u64 {
                let value = if round % 2 == 0 { u64::MAX } else { 0 };
                (0..words).for_each(|word| region.store(offset + word * 8, value));
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            // Unaligned on purpose: the words inside must still be whole.
            let bytes = read(&region, offset + 3, 50);
            let mut at = 0;
            for part in [5, 8, 8, 8, 8, 8, 5] {
                let word = &bytes[at..at + part];
                assert!(word.iter().all(|byte| *byte == word[0]), "torn word in {bytes:?}");
                at += part;
            }
        }
    });
}

#[test]
fn racing_reads_of_every_alignment_copy_the_range() {
    let region = region(4096);
    let source: Vec<u8> = (0..=255).collect();
    region.write(0, &source);
    for offset in 0..24 {
        for len in 0..64 {
            assert_eq!(read(&region, offset, len), source[offset as usize..offset as usize + len]);
        }
    }
    // The last bytes of the region too, where reading a word more would leave the mapping.
    region.write(4090, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(read(&region, 4091, 5), [2, 3, 4, 5, 6]);
}

#[test]
fn lengths_that_are_no_whole_blocks_are_refused() {
    for len in [0, 1, 4095, 4097] {
        let error = Region::dram(len, Pages::Huge).unwrap_err();
        assert!(
            matches!(&error, MediumError::Unsuitable { reason, .. } if reason.contains("4096")),
            "{error}"
        );
    }
}

#[test]
fn memory_says_that_it_keeps_nothing() {
    for pages in [Pages::Ordinary, Pages::Huge] {
        let region = Region::dram(8 << 20, pages).unwrap();
        assert_eq!(region.kind(), MediumKind::Dram);
        assert_eq!(Some(region.flush_kind()), FlushKind::detect());
        assert_eq!(region.spans(), [Span { node: None, start: 0, len: 8 << 20 }]);
        assert_eq!(region.current_node(), None);
        let statement = region.statement();
        assert_eq!(statement.durability, Durability::Process);
        assert_eq!(statement.process_crash.survives, Survives::No);
        assert_eq!(region.mapping().path(), None);
        // Nothing to reserve or to write back, but both may be asked.
        region.reserve(0, region.len()).unwrap();
        region.sync().unwrap();
        region.store(4096, 9);
        region.prefault(1, region.len() - 1).unwrap();
        assert_eq!(region.load(4096), 9);
    }
}

#[test]
fn identity_and_randomness_come_through_the_region() {
    let (one, two) = (region(4096), region(4096));
    assert_eq!(one.boot_id(), two.boot_id());
    let (mut first, mut second) = ([0; 32], [0; 32]);
    one.entropy(&mut first);
    two.entropy(&mut second);
    assert_ne!(first, second);
}

#[test]
#[should_panic(expected = "leaves a region")]
fn a_range_outside_the_region_is_a_broken_invariant() {
    region(4096).write(4090, &[0; 7]);
}

#[test]
fn volatile_memory_is_memory_without_persistence_instructions() {
    let region = Region::volatile(4096, Pages::Ordinary).unwrap();
    assert_eq!((region.flush_kind(), region.kind()), (FlushKind::None, MediumKind::Dram));
    region.write(100, b"quipu");
    region.persist(100, 5);
    assert_eq!(read(&region, 100, 5), b"quipu");
    assert!(Region::volatile(100, Pages::Ordinary).is_err());
}
