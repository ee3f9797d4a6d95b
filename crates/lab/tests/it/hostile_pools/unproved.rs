//! Damage in pools of `xp` that were closed. They are opened by their checkpoint, so that nothing has proved
//! their records.

use super::victim::{Victim, trusting};
use quipu::{Design, Error, Store};
use quipu_lab::contract::Contents;
use std::ops::Bound;

const KEYS: u32 = 300;

fn pair(number: u32) -> (Vec<u8>, Vec<u8>) {
    (format!("key {number:04}").into_bytes(), format!("value {number:04}").into_bytes())
}

fn closed() -> Victim {
    Victim::of(Design::XP, 4 << 20, 16 << 10, true, |store| {
        let (mut client, pairs): (_, Contents) = (store.client(), (0..KEYS).map(pair).collect());
        pairs.iter().for_each(|(key, value)| client.put(key, value).unwrap());
        pairs
    })
}

/// Where the record of a key begins. Its number has 8 bytes, kind and flags one each, the length of the key
/// two, that of the value four.
fn record_of(victim: &Victim, number: u32) -> usize {
    let (key, value) = pair(number);
    let wanted = [key, value].concat();
    victim.bytes.windows(wanted.len()).position(|window| window == wanted).expect("it is there") - 16
}

fn opened(victim: &Victim, bytes: &[u8], proves: bool) -> Store {
    let store = victim.open_with(bytes, &trusting().verify_reads(proves)).unwrap();
    assert!(store.recovery().from_checkpoint);
    store
}

fn is_damaged<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Damaged(_)))
}

/// A write that finds a number from the future must not wait for it.
#[test]
fn a_damaged_number_holds_up_nobody_and_hides_no_later_write() {
    let victim = closed();
    let at = record_of(&victim, 100);
    // One that the next run will come to: it begins 2^20 numbers further on.
    let bytes = victim.damaged(|bytes| bytes[at + 2] ^= 0x10);
    let (key, _) = pair(100);
    let store = opened(&victim, &bytes, true);
    assert!(is_damaged(store.client().get(&key)));
    drop(store);
    let store = opened(&victim, &bytes, false);
    let mut client = store.client();
    client.compare_and_swap(&key, Some(b"another"), Some(b"value")).unwrap();
    client.put(&key, b"later").unwrap();
    (0..2000).for_each(|_| client.put(b"another", b"value").unwrap());
    assert_eq!(client.get(&key).unwrap(), Some(b"later".to_vec()));
}

#[test]
fn a_damaged_key_is_told_by_a_scan_and_ends_none() {
    let victim = closed();
    let at = record_of(&victim, 100) + 16;
    let bytes = victim.damaged(|bytes| bytes[at] ^= 0x10);
    for proves in [false, true] {
        let store = opened(&victim, &bytes, proves);
        let (mut client, bounds) =
            (store.client(), (Bound::Included(&b"key"[..]), Bound::Excluded(&b"kez"[..])));
        let guard = client.pin();
        let range = || guard.range(bounds.0, bounds.1).unwrap();
        for found in [range().collect::<Vec<_>>(), range().rev().collect()] {
            assert_eq!(found.len(), KEYS as usize);
            assert_eq!(found.iter().filter(|pair| pair.is_err()).count(), 1);
        }
        drop(guard);
        assert!(is_damaged(client.clear()));
    }
}

#[test]
fn a_damaged_length_leads_into_no_other_zone() {
    let victim = closed();
    let at = record_of(&victim, 100);
    for bit in 0..32 {
        let bytes = victim.damaged(|bytes| bytes[at + 12 + bit / 8] ^= 1 << (bit % 8));
        let (key, value) = pair(100);
        assert!(is_damaged(opened(&victim, &bytes, true).client().get(&key)));
        match opened(&victim, &bytes, false).client().get(&key) {
            Ok(found) => assert!(found.is_some_and(|found| found.len() < 16 << 10 && found != value)),
            told => assert!(is_damaged(told)),
        }
    }
}

/// The older copy of the anchor would pass for the last one, and the next recovery miss what has left.
#[test]
fn a_copy_of_the_anchor_that_is_damaged_is_no_other_number() {
    let victim = Victim::of(Design::XP, 4 << 20, 16 << 10, true, |store| {
        let mut client = store.client();
        let mut contents = Contents::new();
        for round in 0..4u8 {
            for number in 0..300 {
                let (key, _) = pair(number % 60);
                client.put(&key, &[round; 200]).unwrap();
                contents.insert(key, vec![round; 200]);
            }
            store.compact().unwrap();
        }
        contents
    });
    for at in victim.objects(b"QANC") {
        let bytes = victim.damaged(|bytes| bytes[at + 40] ^= 1);
        let store = victim.open_with(&bytes, &trusting()).unwrap();
        assert!(!store.recovery().from_checkpoint);
        store.client().put(b"new", b"acknowledged").unwrap();
        // What a kill leaves.
        let left = std::fs::read(victim.path()).unwrap();
        drop(store);
        let store = victim.open_with(&left, &trusting()).unwrap();
        assert_eq!(store.client().get(b"new").unwrap(), Some(b"acknowledged".to_vec()));
    }
}

/// Values that look like chunks cost time where reads are proved, but a bounded time.
#[test]
fn values_that_look_like_chunks_do_not_hide_the_records_behind_them() {
    let victim = Victim::of(Design::XP, 8 << 20, 64 << 10, true, |store| {
        let mut client = store.client();
        client.put(b"hostile key 0001", &like_chunks(12 << 10)).unwrap();
        (0..KEYS).map(pair).for_each(|(key, value)| client.put(&key, &value).unwrap());
        Contents::new()
    });
    let store = opened(&victim, &victim.bytes, true);
    for (key, value) in (0..KEYS).map(pair) {
        assert_eq!(store.client().get(&key).unwrap(), Some(value));
    }
}

/// A value of lines that each look like the header of a chunk up to the end of the zone, whose first record
/// has the right number. It stands behind a chunk's header and 32 bytes.
pub fn like_chunks(len: usize) -> Vec<u8> {
    let mut value = vec![0; len];
    // The first line of the value that is a line of the zone.
    for at in (32..len - 64).step_by(64) {
        let claim = (40_000 - at) as u32;
        value[at + 36..at + 40].copy_from_slice(&claim.to_le_bytes());
        value[at + 56] = 1;
    }
    value
}
