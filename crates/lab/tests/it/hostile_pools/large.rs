//! Large values: damage to their zones is found, forged heads lead nowhere, and lost pages take no other
//! value with them.

use super::victim::{Victim, contents_of, patch_superblock, trusting, without};
use quipu::{Design, Error, ErrorKind, Options, Store};
use quipu_lab::contract::{Contents, value_of, verify};
use quipu_medium::{Pages, Region};
use quipu_parts::record;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::ops::Range;

/// The kind byte of a head.
const LARGE: u8 = 4;
/// Bytes of a head before its zone numbers.
const FIXED: usize = 24;

/// Values of two, three and one zones among small ones; some have been superseded, and one deleted.
fn victim(closed: bool) -> Victim {
    Victim::new(2 << 20, 16 << 10, closed, |store| {
        let mut client = store.client();
        let mut contents = Contents::new();
        for number in 0..60u64 {
            let key = format!("key {}", number % 40).into_bytes();
            let len = if number % 4 == 0 { 8_000 + number as usize % 3 * 14_000 } else { 90 };
            let value = value_of(&key, number, len);
            client.put(&key, &value).unwrap();
            contents.insert(key, value);
        }
        client.delete(b"key 24").unwrap();
        contents.remove(&b"key 24"[..]);
        contents
    })
}

/// The live heads of the pool: their segment, life key and record.
fn heads(victim: &Victim) -> Vec<(usize, record::LifeKey, Range<usize>)> {
    let mut latest = BTreeMap::new();
    for segment in victim.segments() {
        let life = victim.certifier().life_key(segment.life, segment.nonce);
        for record in segment.records {
            let (key, sequence) = (victim.key_at(&record).to_vec(), victim.word(record.start + 8));
            let known = latest.entry(key).or_insert((0, None));
            if sequence >= known.0 {
                *known = (sequence, Some((segment.start, life, record)));
            }
        }
    }
    let is_large = |(_, _, record): &(_, _, Range<usize>)| victim.bytes[record.start + 16] == LARGE;
    latest.into_values().filter_map(|(_, record)| record.filter(is_large)).collect()
}

/// The zones that hold a piece of a live value.
fn live_zones(victim: &Victim) -> Vec<usize> {
    let is_live = |start: &usize| victim.contents.values().any(|value| holds(victim, *start, value));
    victim.values().into_values().flatten().filter(is_live).collect()
}

/// Whether a zone holds a piece of this value.
fn holds(victim: &Victim, start: usize, value: &[u8]) -> bool {
    let piece = &victim.bytes[start + 64..start + 128];
    value.windows(64).any(|window| window == piece)
}

/// Changes the value of a record, which proves itself afterwards.
fn forge(
    victim: &Victim,
    bytes: &mut [u8],
    (start, life, record): &(usize, record::LifeKey, Range<usize>),
    change: impl FnOnce(&mut [u8]),
) {
    let value = record.start + 24 + victim.key_at(record).len();
    change(&mut bytes[value..record.end]);
    let check = victim.certifier().record_check(*life, (record.start - start) as u64, &bytes[record.clone()]);
    bytes[record.start..record.start + 8].copy_from_slice(&check.to_le_bytes());
}

#[track_caller]
fn is_damage(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
}

#[test]
fn a_flipped_byte_of_a_zone_is_damage() {
    for closed in [true, false] {
        let victim = victim(closed);
        let zones = live_zones(&victim);
        assert!(zones.len() >= 20, "{} zones", zones.len());
        for start in [zones[0], zones[zones.len() / 2], zones[zones.len() - 1]] {
            // In check, magic, number, life, run, nonce, and the value.
            for byte in [0, 8, 12, 16, 24, 32, 64, 65, 1000] {
                let bytes = victim.damaged(|bytes| bytes[start + byte] ^= 0x10);
                is_damage(&victim.refused(&bytes));
            }
        }
        assert!(contents_of(&victim.open(&victim.bytes).unwrap()) == victim.contents);
    }
}

#[test]
fn a_head_that_names_the_wrong_zones_is_damage() {
    let victim = victim(true);
    let heads = heads(&victim);
    // Those of two zones or more.
    let long: Vec<_> = heads.iter().filter(|(_, _, record)| victim.bytes[record.start + 20] >= 32).collect();
    let [first, .., last] = &long[..] else { panic!("values of several zones") };
    let zones = |head: &mut [u8], number: usize, zone: u32| {
        head[FIXED + 4 * number..][..4].copy_from_slice(&zone.to_le_bytes());
    };
    type Change<'a> = &'a dyn Fn(&mut [u8]);
    let changes: [(&str, Change<'_>); 8] = [
        ("a zone that does not exist", &|head| zones(head, 1, u32::MAX)),
        ("the zone after the last", &|head| zones(head, 0, victim.zones().len() as u32)),
        ("one zone twice", &|head| head.copy_within(FIXED..FIXED + 4, FIXED + 4)),
        ("a segment", &|head| {
            let start = victim.segments()[0].start;
            let number = victim.zones().iter().position(|(_, zone)| *zone == start).unwrap();
            zones(head, 0, number as u32);
        }),
        ("another length", &|head| head[..8].copy_from_slice(&20_000u64.to_le_bytes())),
        ("an endless length", &|head| head[..8].fill(0xff)),
        ("another life", &|head| head[8] ^= 1),
        ("another check", &|head| head[16] ^= 1),
    ];
    for head in [first, last] {
        for (what, change) in &changes {
            let bytes = victim.damaged(|bytes| forge(&victim, bytes, head, change));
            if bytes != victim.bytes {
                let error = victim.refused(&bytes);
                assert_eq!(error.kind(), ErrorKind::Damaged, "{what}: {error}");
            }
        }
        let same = victim.damaged(|bytes| forge(&victim, bytes, head, |_| ()));
        assert!(same == victim.bytes, "that the patch is right shows in one that changes nothing");
    }
}

#[test]
fn two_heads_of_one_value_are_damage() {
    let victim = victim(true);
    let heads = heads(&victim);
    let two_zones: Vec<_> =
        heads.iter().filter(|(_, _, record)| victim.bytes[record.start + 20] == 32).collect();
    let [one, .., other] = &two_zones[..] else { panic!("values of two zones") };
    assert_ne!(one.2, other.2);
    let value = one.2.start + 24 + victim.key_at(&one.2).len();
    let bytes = victim.damaged(|bytes| {
        let stolen = bytes[value..value + 32].to_vec();
        forge(&victim, bytes, other, |head| head[..32].copy_from_slice(&stolen));
    });
    is_damage(&victim.refused(&bytes));
}

/// From a checkpoint a pool is opened without a look at its records: whatever the heads say then, nothing
/// panics, and no zone is given back twice.
#[test]
fn forged_heads_that_are_believed_do_no_harm() {
    let victim = victim(true);
    let heads = heads(&victim);
    let mut believed = 0;
    for seed in 0..150 {
        let mut random = SmallRng::seed_from_u64(seed);
        let bytes = victim.damaged(|bytes| {
            for _ in 0..random.random_range(1..4) {
                let target = &heads[random.random_range(0..heads.len())];
                let source = &heads[random.random_range(0..heads.len())];
                let from = source.2.end - 32;
                let stolen = bytes[from..from + 32].to_vec();
                forge(&victim, bytes, target, |head| match random.random_range(0..3) {
                    0 => head[FIXED..].fill(random.random_range(0..4)),
                    1 => {
                        let at = random.random_range(0..head.len());
                        head[at] = random.next_u32() as u8;
                    }
                    _ => {
                        let len = head.len().min(32);
                        head[..len].copy_from_slice(&stolen[..len]);
                    }
                });
            }
        });
        let Ok(mut store) = victim.open_with(&bytes, &trusting()) else { continue };
        believed += u32::from(store.recovery().from_checkpoint);
        let mut client = store.client();
        for key in victim.contents.keys() {
            if let Err(error) = client.get(key) {
                is_damage(&error);
            }
        }
        drop(contents_of(&store));
        for (key, value) in victim.contents.iter().take(20) {
            // A pool that says it is full is right to refuse.
            let _ = client.put(key, value);
            let _ = client.update(key, |_| Some(value));
        }
        victim.contents.keys().for_each(|key| client.delete(key).unwrap());
        drop(client);
        store.compact().unwrap();
        store.check(&|_, _| {}).unwrap();
        drop(store);
        drop(victim.reopened());
    }
    assert!(believed >= 100, "{believed} of 150 were opened from their checkpoint");
}

#[test]
fn a_lost_page_takes_only_its_own_value() {
    let victim = victim(false);
    let zones = live_zones(&victim);
    let mut checked = 0;
    // The page of a header, and one of the value alone.
    for (number, page) in [(3, 0), (8, 4096)] {
        let zone = zones[number];
        let hit: Vec<_> = victim
            .contents
            .iter()
            .filter(|(_, value)| holds(&victim, zone, value))
            .map(|(key, _)| key.clone())
            .collect();
        checked += hit.len();
        let bytes = victim.damaged(|bytes| {
            patch_superblock(bytes, &[0, 1], "boot_id", &[0x5a; 16]);
            bytes[zone + page..zone + page + 4096].fill(0);
        });
        let mut store = victim.open(&bytes).unwrap();
        assert!(!store.recovery().lost.is_empty());
        let mut expected = without(&victim.contents, &hit);
        // The old value of the key may be there again.
        for key in &hit {
            if let Some(older) = store.client().get(key).unwrap() {
                assert!((0..60).any(|version| older == value_of(key, version, older.len())));
                expected.insert(key.clone(), older);
            }
        }
        verify(&mut store, &expected);
        store.client().put(b"later", &value_of(b"later", 0, 40_000)).unwrap();
        expected.insert(b"later".to_vec(), value_of(b"later", 0, 40_000));
        drop(store);
        let mut store = victim.reopen();
        assert!(store.recovery().lost.is_empty(), "it is reported once: {:?}", store.recovery().lost);
        verify(&mut store, &expected);
    }
    assert!(checked > 0, "no live value was hit");
}

/// A range looks at no value of a key outside its bounds.
#[test]
fn a_range_that_ends_before_a_damaged_value_is_whole() {
    for verify_reads in [false, true] {
        let region = Region::dram(2 << 20, Pages::Ordinary).unwrap();
        let options =
            Options::new().design(Design::FLATSTORE_M).zone_size(16 << 10).verify_reads(verify_reads);
        let store = Store::create_on(region.clone(), &options).unwrap();
        let mut client = store.client();
        let large = value_of(b"b", 0, 20_000);
        client.put_many(&[(b"a", &b"first"[..]), (b"c", b"last")]).unwrap();
        client.put(b"b", &large).unwrap();
        let mut bytes = vec![0; region.len() as usize];
        region.read_racing(0, &mut bytes);
        let at = bytes.windows(64).position(|window| window == &large[..64]).unwrap();
        // In the header of its first zone, which even a read without proof looks at.
        region.write(at as u64 - 48, &[!bytes[at - 48]]);
        let guard = client.pin();
        let keys = |from, to| {
            guard
                .range(from, to)
                .unwrap()
                .map(|pair| pair.map(|(key, _)| key[0]))
                .collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(keys(Included(b"a"), Excluded(b"b")).unwrap(), b"a");
        assert_eq!(keys(Excluded(b"b"), Included(b"c")).unwrap(), b"c");
        is_damage(&keys(Included(b"a"), Included(b"b")).unwrap_err());
    }
}
