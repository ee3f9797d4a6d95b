//! Damage to segments and to the zone table.

use super::victim::{Segment, Victim, contents_of, patch_superblock, without};
use crate::shared::misleading::like_records;
use quipu::{Damage, Error, ErrorKind, Store};
use quipu_lab::contract::{Contents, verify};
use quipu_parts::space::SpaceError;

/// Insists that the error is damage of which a place covers the byte.
#[track_caller]
fn names(error: Error, at: usize, what: &str) {
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    let Error::Damaged(damage) = error else { panic!("{error:?}") };
    let Damage { places } = *damage;
    let covers =
        |place: &quipu::DamagedPlace| (place.offset..place.offset + place.len).contains(&(at as u64));
    assert!(places.iter().any(|place| covers(place) && place.what.contains(what)), "byte {at}: {places:?}");
}

fn flipped(victim: &Victim, at: usize) -> Vec<u8> {
    victim.damaged(|bytes| bytes[at] ^= 0x10)
}

#[test]
fn a_flipped_byte_of_a_record_is_damage() {
    let victim = Victim::usual(true);
    let segments = victim.segments();
    assert!(segments.len() >= 8 && segments.iter().all(|segment| segment.sealed));
    let records: usize = segments.iter().map(|segment| segment.records.len()).sum();
    assert_eq!(records, victim.contents.len());
    for segment in [&segments[0], &segments[segments.len() / 2], &segments[segments.len() - 1]] {
        for record in [0, 1, segment.records.len() / 2, segment.records.len() - 1] {
            let record = &segment.records[record];
            // In the check, sequence, kind, flags, both lengths, key, value and the end.
            for byte in [0, 7, 8, 16, 17, 18, 20, 23, 24, 40, record.len() - 1] {
                let at = record.start + byte;
                names(victim.refused(&flipped(&victim, at)), at, "records");
            }
        }
    }
}

#[test]
fn every_damaged_place_is_named() {
    let victim = Victim::usual(true);
    let segments = victim.segments();
    let places: Vec<_> = segments.iter().take(5).map(|segment| segment.records[7].start + 30).collect();
    let bytes = victim.damaged(|bytes| places.iter().for_each(|at| bytes[*at] ^= 1));
    let Error::Damaged(damage) = victim.refused(&bytes) else { panic!("damage") };
    assert_eq!(damage.places.len(), places.len());
    for (place, at) in damage.places.iter().zip(&places) {
        assert_eq!(place.offset + 30, *at as u64, "in order of offsets");
    }
}

#[test]
fn a_flipped_byte_of_a_segments_header_or_end_mark_is_damage() {
    let victim = Victim::usual(true);
    let segments = victim.segments();
    for segment in [&segments[0], &segments[segments.len() - 1]] {
        for byte in 0..40 {
            names(victim.refused(&flipped(&victim, segment.start + byte)), segment.start + byte, "header");
        }
        for byte in 40..48 {
            names(victim.refused(&flipped(&victim, segment.start + byte)), segment.start + byte, "end mark");
        }
    }
}

#[test]
fn a_flipped_byte_of_the_zone_table_is_noticed_or_harmless() {
    let victim = Victim::usual(true);
    let zones = victim.zones();
    let free = victim.segments().len() + 1;
    assert!(free < zones.len());
    for (table, _) in [zones[0], zones[free], zones[zones.len() - 1]] {
        for byte in 8..16 {
            let error = victim.refused(&flipped(&victim, table + byte));
            assert!(matches!(error, Error::Space(SpaceError::Damaged { .. })), "{error:?}");
            assert_eq!(error.kind(), ErrorKind::Damaged);
        }
    }
    // A closed pool knows which zones are in use; a link may be anything, since the bits are what counts.
    let bytes = victim.damaged(|bytes| bytes[zones[free].0 + 7] ^= 0x80);
    assert!(matches!(victim.refused(&bytes), Error::Space(SpaceError::Damaged { .. })));
    for zone in [0, free, zones.len() - 1] {
        for byte in 0..7 {
            let mut store = victim.open(&flipped(&victim, zones[zone].0 + byte)).unwrap();
            verify(&mut store, &victim.contents);
            store.client().put(b"another", b"value").unwrap();
        }
    }
}

#[test]
fn a_commit_bit_that_is_lost_is_damage() {
    let victim = Victim::usual(true);
    for (table, _) in victim.zones().into_iter().take(victim.segments().len()) {
        assert_eq!(
            victim.refused(&victim.damaged(|bytes| bytes[table + 7] ^= 0x80)).kind(),
            ErrorKind::Damaged
        );
    }
}

/// In a pool that was not closed nothing proves the zone table; so the headers of segments say the same in
/// their own way.
#[test]
fn a_bit_of_the_zone_table_neither_loses_a_segment_nor_brings_one_back() {
    let victim = Victim::new(1 << 20, 16 << 10, false, |store| {
        let mut client = store.client();
        for number in 0..200u64 {
            client.put(&number.to_le_bytes(), &[1; 100]).unwrap();
        }
        for number in 0..200u64 {
            client.delete(&number.to_le_bytes()).unwrap();
        }
        client.put(b"alone", b"here").unwrap();
        drop(client);
        // The second time there are no older segments, so that the tombstones go.
        for _ in 0..3 {
            store.compact().unwrap();
        }
        [(b"alone".to_vec(), b"here".to_vec())].into()
    });
    let segments: Vec<usize> = victim.segments().iter().map(|segment| segment.start).collect();
    let mut given_up = 0;
    for (table, zone) in victim.zones() {
        let bytes = victim.damaged(|bytes| bytes[table + 7] ^= 0x80);
        match victim.open(&bytes) {
            Ok(mut store) => {
                assert!(!segments.contains(&zone), "the segment at {zone} is lost");
                verify(&mut store, &victim.contents);
                given_up += 1;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged),
        }
    }
    assert!(given_up > 1, "there were segments that compaction gave up");
}

#[test]
fn an_end_mark_that_is_lost_from_a_closed_pool_is_damage() {
    let victim = Victim::usual(true);
    let segments = victim.segments();
    for segment in [&segments[0], &segments[segments.len() - 1]] {
        // Without its mark the segment would count as open, and its first invalid record as the tail.
        for records in [0, 40] {
            let bytes =
                victim.damaged(|bytes| bytes[segment.start + 40..segment.start + 48 + records].fill(0));
            names(victim.refused(&bytes), segment.start, "end mark");
        }
    }
}

#[test]
fn a_flipped_byte_of_the_extents_header_is_damage() {
    let victim = Victim::usual(true);
    let start = victim.superblock.extents()[0].start.get() as usize;
    for byte in (0..64).step_by(5) {
        let error = victim.refused(&flipped(&victim, start + byte));
        assert!(matches!(error, Error::Space(SpaceError::Damaged { .. })), "{error:?}");
    }
}

/// In an open segment a damaged record looks like one that the crashed run never finished. Those behind it
/// count all the same: they were acknowledged, or they arrived under the same fence.
#[test]
fn in_an_open_segment_damage_takes_one_record_and_is_told() {
    let victim = Victim::usual(false);
    let segments = victim.segments();
    let open: Vec<&Segment> = segments.iter().filter(|segment| !segment.sealed).collect();
    let [open] = open[..] else { panic!("one client leaves one open segment") };
    let last = open.records.len() - 1;
    for torn in [last, last - 3, 0] {
        let bytes = flipped(&victim, open.records[torn].start + 30);
        let record = open.records[torn].clone();
        let gone = [victim.key_at(&record).to_vec()];
        let mut store = victim.open(&bytes).unwrap();
        assert!(!store.recovery().was_clean);
        // Behind the last one nothing tells that there was one.
        let told: Vec<_> = store.recovery().torn.iter().map(|place| (place.offset, place.len)).collect();
        let place = (record.start as u64, record.len() as u64);
        assert_eq!(told, if torn == last { vec![] } else { vec![place] });
        let mut expected = without(&victim.contents, &gone);
        verify(&mut store, &expected);
        for key in gone {
            store.client().put(&key, b"again").unwrap();
            expected.insert(key, b"again".to_vec());
        }
        drop(store);
        verify(&mut victim.reopen(), &expected);
    }
}

/// The writer of a value decides how much of it looks like records.
#[test]
fn a_search_behind_damage_that_takes_too_long_is_given_up_and_told() {
    const ZONE: usize = 64 << 10;
    let victim = Victim::new(4 << 20, ZONE as u64, false, |store| {
        let mut client = store.client();
        client.put(b"misleads", &like_records(ZONE as u64)).unwrap();
        (0..10u8).for_each(|number| client.put(&[number], b"value").unwrap());
        Contents::new()
    });
    let segments = victim.segments();
    let [open] = &segments[..] else { panic!("one client leaves one segment") };
    let record = open.records[0].clone();
    assert_eq!(victim.key_at(&record), b"misleads");
    // The check alone: its length says where to go on.
    let store = victim.open(&flipped(&victim, record.start)).unwrap();
    let places = |store: &Store| -> Vec<_> {
        store.recovery().torn.iter().map(|place| (place.offset as usize, place.len as usize)).collect()
    };
    assert_eq!(places(&store), [(record.start, record.len())]);
    assert_eq!(store.client().get(&[9]).unwrap().as_deref(), Some(&b"value"[..]));
    drop(store);
    let store = victim.open(&victim.damaged(|bytes| bytes[record.start..][..24].fill(0))).unwrap();
    assert_eq!(places(&store), [(record.start, open.start + ZONE - record.start)]);
    assert_eq!(store.client().get(&[9]).unwrap(), None);
}

#[test]
fn an_unclean_pool_is_refused_without_a_change() {
    let victim = Victim::usual(false);
    let segments = victim.segments();
    let at = segments[0].records[5].start + 30;
    names(victim.refused(&flipped(&victim, at)), at, "records");
    // The free list after a crash is repaired only in a pool that is opened.
    let (table, _) = victim.zones()[segments.len() + 2];
    let bytes = victim.damaged(|bytes| {
        bytes[at] ^= 0x10;
        bytes[table] ^= 0x10;
    });
    names(victim.refused(&bytes), at, "records");
}

#[test]
fn a_record_of_an_unknown_kind_needs_a_newer_version() {
    let certify = |victim: &Victim, segment: &Segment, record: usize, byte: usize, new: u8| {
        victim.damaged(|bytes| {
            let record = segment.records[record].clone();
            bytes[record.start + byte] = new;
            let life = victim.certifier().life_key(segment.life, segment.nonce);
            let offset = (record.start - segment.start) as u64;
            let check = victim.certifier().record_check(life, offset, &bytes[record.start..record.end]);
            bytes[record.start..record.start + 8].copy_from_slice(&check.to_le_bytes());
        })
    };
    for closed in [true, false] {
        let victim = Victim::usual(closed);
        let segments = victim.segments();
        for segment in [&segments[0], &segments[segments.len() - 1]] {
            // The kind, and the flags.
            for (byte, new) in [(16, 9), (16, 200), (17, 2)] {
                let record = segment.records.len() - 1;
                let error = victim.refused(&certify(&victim, segment, record, byte, new));
                assert!(matches!(error, Error::NewerFormat { .. }), "{error:?}");
                assert_eq!(error.kind(), ErrorKind::NotAPool);
            }
        }
        // That the patch is right shows in one that changes nothing.
        let same = certify(&victim, &segments[0], 0, 16, 1);
        assert!(same == victim.bytes);
        assert!(contents_of(&victim.open(&same).unwrap()) == victim.contents);
    }
}

/// Found by the fuzzer: a superblock counted further than recovery let records be, and the next open refused
/// what was written.
#[test]
fn whatever_ceiling_is_accepted_is_counted_on_from() {
    for closed in [true, false] {
        let victim = Victim::usual(closed);
        for ceiling in [1u64 << 40, (1 << 60) + 5, (1 << 61) - (1 << 41)] {
            let forged = victim.damaged(|bytes| {
                patch_superblock(bytes, &[0, 1], "clock_ceiling", &ceiling.to_le_bytes());
            });
            let store = victim.open(&forged).unwrap();
            store.client().put(b"later", b"write").unwrap();
            drop(store);
            assert_eq!(victim.reopen().client().get(b"later").unwrap().as_deref(), Some(&b"write"[..]));
        }
    }
}

/// Only someone with the pool's secret can write such a record; the clock must not count on from it all the
/// same.
#[test]
fn a_record_with_a_number_that_no_run_draws_is_refused() {
    for closed in [true, false] {
        let victim = Victim::usual(closed);
        let certifier = victim.certifier();
        let segment = &victim.segments()[0];
        let life = certifier.life_key(segment.life, segment.nonce);
        let record = segment.records[1].clone();
        for sequence in [u64::MAX, 1 << 62, 1 << 61, 1 << 41] {
            let forged = victim.damaged(|bytes| {
                let bytes = &mut bytes[record.clone()];
                bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
                let check = certifier.record_check(life, (record.start - segment.start) as u64, bytes);
                bytes[..8].copy_from_slice(&check.to_le_bytes());
            });
            let error = victim.refused(&forged);
            assert!(matches!(error, Error::Space(SpaceError::Geometry { .. })), "{sequence:#x}: {error:?}");
        }
    }
}
