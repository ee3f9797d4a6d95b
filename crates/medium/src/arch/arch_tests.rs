use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Every alignment and many lengths at once: the streaming copy has a case for each kind of head and tail.
const SPAN: usize = 256;

fn visited(start: usize, len: usize) -> Vec<usize> {
    let mut lines = Vec::new();
    each_line(start, len, |line| lines.push(line));
    lines
}

proptest! {
    #[test]
    fn the_walk_visits_exactly_the_lines_that_hold_a_byte_of_the_range(start in 0usize..1 << 40, len in 0usize..5000) {
        let lines = visited(start, len);
        let expected: BTreeSet<usize> = (start..start + len).map(|byte| byte / 64 * 64).collect();
        prop_assert_eq!(lines, expected.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(visited(start, len).len() as u64, crate::Region::lines(start as u64, len as u64));
    }
}

#[test]
fn a_range_that_starts_late_in_a_line_reaches_one_line_more() {
    assert_eq!(visited(64 + 63, 64), [64, 128]);
    assert_eq!(visited(64 + 63, 66), [64, 128, 192]);
    assert_eq!(visited(64, 64), [64]);
    assert!(visited(65, 0).is_empty());
}

#[test]
fn streaming_copies_the_range_and_nothing_around_it() {
    let source: Vec<u8> = (0..SPAN).map(|i| (i % 251) as u8 + 1).collect();
    for kind in [FlushKind::detect().unwrap_or(FlushKind::None), FlushKind::None] {
        for offset in 0..80 {
            for len in 0..=SPAN - 80 {
                // A line-aligned target, so that `offset` is the position in the line.
                let mut target = vec![0u8; SPAN + 64];
                let skip = target.as_ptr().align_offset(64);
                let (from, to) = (offset % 19, skip + offset);
                // SAFETY: `to + len` is within the target, `from + len` within the source, which does not
                // overlap it.
                unsafe { stream(target.as_mut_ptr().add(to), source.as_ptr().add(from), len, kind) };
                fence(kind);
                assert_eq!(target[to..to + len], source[from..from + len], "offset {offset} len {len}");
                assert!(
                    target[..to].iter().chain(&target[to + len..]).all(|byte| *byte == 0),
                    "{offset} {len}"
                );
            }
        }
    }
}

#[test]
fn every_instruction_of_this_processor_leaves_the_bytes_alone() {
    let mut kinds = vec![FlushKind::None];
    // The x86-64 instructions form a ladder: a processor with one has those below it.
    kinds.extend(match FlushKind::detect() {
        Some(FlushKind::Clwb) => vec![FlushKind::Clwb, FlushKind::ClflushOpt, FlushKind::Clflush],
        Some(FlushKind::ClflushOpt) => vec![FlushKind::ClflushOpt, FlushKind::Clflush],
        Some(other) => vec![other],
        None => vec![],
    });
    let bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
    for kind in kinds {
        // SAFETY: the range is the vector's.
        unsafe { flush_lines(kind, bytes.as_ptr().add(3), 990) };
        fence(kind);
        assert!(bytes.iter().enumerate().all(|(i, byte)| *byte == i as u8), "{kind}");
    }
}
