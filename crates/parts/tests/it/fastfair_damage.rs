//! A FAST&FAIR index in a damaged pool: any damage is refused or harmless, and hides no more than itself.

use crate::fastfair::support;

use crate::shared::keyed::ByKey;
use quipu_parts::epoch::Participant;
use quipu_parts::index::InPool;
use quipu_parts::index::fastfair::{FastFairIndex, ScanCursor};
use quipu_parts::index::{BothWays, InOrder, IndexError};
use quipu_parts::space::SpaceError;
use std::ops::Bound;
use support::{Keys, create, fill, mix, participant, quick};

const ZONE: u64 = 4 << 10;

/// Asks an index for all that can be asked.
fn use_it(index: &FastFairIndex, participant: &Participant, keys: Keys) -> bool {
    let (mut cursor, mut is_damaged, mut walked) = (ScanCursor::default(), false, 0);
    let mut note = |is_error: bool| is_damaged |= is_error;
    loop {
        match index.next_in_order(&participant.pin(), &mut cursor, 100, |_, _| walked += 1) {
            Ok(true) if walked < 10_000 => {}
            Ok(_) => break,
            Err(_) => {
                note(true);
                break;
            }
        }
    }
    let (mut back, mut walked) = (index.scan_back_from(Bound::Unbounded), 0);
    loop {
        match index.prev_in_order(&participant.pin(), &mut back, 100, |_, _| walked += 1) {
            Ok(true) if walked < 10_000 => {}
            Ok(_) => break,
            Err(_) => {
                note(true);
                break;
            }
        }
    }
    for number in (0..200).step_by(7) {
        let (guard, key) = (participant.pin(), keys.of(number));
        note(index.get(&guard, &key).is_err());
        note(index.names(&guard, &key, 1).is_err());
        note(index.upsert(&guard, &key, 9).is_err());
        note(index.take(&guard, &key).is_err());
        note(index.insert(&guard, &keys.of(number + 1_000), 9).is_err());
    }
    note(index.len(&participant.pin()).is_err());
    note(index.audit(&participant.pin()).is_err());
    note(index.sweep(&participant.pin()).is_err());
    is_damaged
}

/// With any word changed, the index is refused, or used without harm: no panic and no endless loop.
#[test]
fn damaged_words_are_refused_or_harmless() {
    for (keys, stride) in [(Keys::Words, 23), (Keys::Mixed, 37)] {
        let space = quick(512 << 10, ZONE);
        let (index, root) = create(&space);
        fill(&index, &participant().pin(), keys, 0..200);
        let zones = index.zones();
        drop(index);
        let region = space.region();
        let mut sound = vec![0; region.len() as usize];
        region.read_racing(0, &mut sound);
        let (mut refused, mut noticed) = (0, 0);
        for zone in &zones {
            // All words of the header and of the first units, and some of the others.
            for word in (0..24).chain((24..ZONE / 8).step_by(stride)) {
                let place = space.zone_offset(*zone) + word * 8;
                let was = region.load(place);
                let with_bits = [was ^ 1, was ^ 1 << 63, was ^ 2 << 48, was + 1];
                for damaged in [0, u64::MAX, 1 << 63, mix(place), 0x0001_0001].into_iter().chain(with_bits) {
                    region.store(place, damaged);
                    match FastFairIndex::open(space.clone(), root, 0) {
                        Err(IndexError::Space(SpaceError::Damaged { .. })) => refused += 1,
                        Err(error) => panic!("{error}"),
                        Ok(index) => noticed += u64::from(use_it(&index, &participant(), keys)),
                    }
                    // The words that were changed, and zones that were taken.
                    for other in space.committed_zones().into_iter().filter(|other| !zones.contains(other)) {
                        space.release_zone(other);
                    }
                    for zone in &zones {
                        let start = space.zone_offset(*zone);
                        region.write(start, &sound[start as usize..][..ZONE as usize]);
                    }
                }
            }
        }
        assert!(refused > 80 && noticed > 80, "{keys:?}: {refused} refused, {noticed} noticed");
        let index = FastFairIndex::open(space.clone(), root, 0).expect("nothing is left of it");
        assert_eq!(index.len(&participant().pin()).expect("sound"), 200);
    }
}

/// One bit is no larger damage than that of one entry: any other key is found as it was, or its reader is
/// told.
#[test]
fn a_flipped_bit_hides_no_other_key() {
    const KEYS: u64 = 90;
    for keys in [Keys::Words, Keys::Long, Keys::Mixed] {
        let (participant, space) = (participant(), quick(128 << 10, ZONE));
        let (index, _) = create(&space);
        fill(&index, &participant.pin(), keys, 0..KEYS);
        assert!(index.stats().levels > 1 && index.stats().splits > 2);
        let (region, guard) = (space.region(), participant.pin());
        // Keys that are absent or have other values, without a word.
        let wrong = || {
            (0..KEYS).filter(|number| {
                matches!(index.get(&guard, &keys.of(*number)), Ok(found) if found != Some(number + 1))
            })
        };
        let (mut cursor, mut hidden, mut noticed) = (ScanCursor::default(), 0, 0);
        let left_out = |cursor: &mut ScanCursor| {
            let mut seen = 0;
            let end = loop {
                match index.next_in_order(&guard, cursor, 100, |_, _| seen += 1) {
                    Ok(true) => {}
                    end => break end,
                }
            };
            end.map_or(0, |_| KEYS.abs_diff(seen))
        };
        assert_eq!((wrong().count(), left_out(&mut cursor)), (0, 0));
        for word in index.zones().into_iter().flat_map(|zone| {
            let start = space.zone_offset(zone);
            (start + 64..start + ZONE).step_by(8)
        }) {
            let was = region.load(word);
            // Bits of the words of a node in turn, so that each is some word's.
            for bit in (word / 8 % 4..64).step_by(4) {
                region.store(word, was ^ 1 << bit);
                let (count, walked) = (wrong().count() as u64, left_out(&mut ScanCursor::default()));
                assert!(
                    count <= 1 && walked <= 1,
                    "{keys:?}, byte {word}, bit {bit}, {was:x} before {:x}: {count}, {walked}",
                    region.load(word + 8)
                );
                hidden += count;
                noticed += u64::from((0..KEYS).any(|number| index.get(&guard, &keys.of(number)).is_err()));
            }
            region.store(word, was);
        }
        assert!(hidden > 0 && noticed > 100, "{keys:?}: {hidden} hidden, {noticed} noticed");
        assert_eq!(index.audit(&guard).expect("sound again").keys, KEYS);
    }
}
