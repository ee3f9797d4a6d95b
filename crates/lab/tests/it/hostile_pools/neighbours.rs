//! Damage in one record that must not reach another: the length in a record's header decides where the next
//! one begins.

use super::victim::{Victim, trusting};
use quipu::internals::Twin;
use quipu::internals::twin::leave_out;
use quipu::{Options, Store};
use quipu_lab::contract::Contents;

/// The record with a damaged length, and the one behind it, which is intact.
const DAMAGED: usize = 5;
const NEIGHBOUR: usize = 6;

fn key(number: usize) -> Vec<u8> {
    format!("k{number:07}").into_bytes()
}

/// A pool of records of 128 bytes, closed with a checkpoint. Each length with one more bit leads to the
/// beginning of a record.
fn victim() -> Victim {
    Victim::new(1 << 20, 16 << 10, true, |store| {
        let mut client = store.client();
        let contents: Contents = (0..2000).map(|number| (key(number), vec![number as u8; 96])).collect();
        contents.iter().for_each(|(key, value)| client.put(key, value).unwrap());
        contents
    })
}

/// Bytes of the pool with this bit of the length of a value changed.
fn flipped(victim: &Victim, bit: usize) -> Vec<u8> {
    let segments = victim.segments();
    let record =
        segments.iter().flat_map(|segment| &segment.records).find(|at| victim.key_at(at) == key(DAMAGED));
    let at = record.unwrap().start + 20;
    victim.damaged(|bytes| bytes[at + bit / 8] ^= 1 << (bit % 8))
}

/// Overwrites what stands around the two records, the damaged one included, so that their segment becomes the
/// next to be cleaned.
fn overwrite_around(store: &Store) {
    let mut client = store.client();
    (0..128)
        .filter(|number| *number != NEIGHBOUR)
        .for_each(|number| client.put(&key(number), b"new").unwrap());
}

/// The neighbour's state, and whether a check calls the pool sound, before compaction and after it.
fn outcome(victim: &Victim, bit: usize, options: &Options) -> (Option<Vec<u8>>, [bool; 2]) {
    let mut store = victim.open_with(&flipped(victim, bit), options).unwrap();
    assert!(store.recovery().from_checkpoint);
    overwrite_around(&store);
    let before = store.check(&|_, _| {}).unwrap().is_sound();
    // It says that a segment is damaged, if it notices.
    let _ = store.compact();
    let mut client = store.client();
    // Space that became free is used again.
    (0..4000).for_each(|number| client.put(&key(9000 + number % 100), &[7; 96]).unwrap());
    drop(client);
    let after = store.check(&|_, _| {}).unwrap().is_sound();
    let found = store.client().get(&key(NEIGHBOUR)).unwrap();
    (found, [before, after])
}

/// A length that nothing had proved once told how much is dead: one flipped bit, and the next record was
/// freed with its segment. The check called the pool sound.
#[test]
fn a_damaged_length_of_a_superseded_record_takes_no_neighbour_along() {
    let victim = victim();
    for bit in 7..14 {
        let (found, is_sound) = outcome(&victim, bit, &trusting());
        assert_eq!(found, Some(vec![NEIGHBOUR as u8; 96]), "bit {bit}");
        assert_eq!(is_sound, [false; 2], "bit {bit}: the damage is not reported");
    }
}

/// The store that believes such a length loses the record. A check tells before, since the index names what
/// is taken for dead, and after, since nothing proves itself where the index names it.
#[test]
fn a_store_that_believes_such_a_length_is_convicted() {
    let victim = victim();
    let (_left_out, options) = (leave_out(Some(Twin::LengthBelieved)), trusting());
    let outcome = outcome(&victim, 7, &options);
    assert_eq!(outcome, (None, [false; 2]), "the twin does no harm, so the test above proves nothing");
    let mut store = victim.open_with(&flipped(&victim, 7), &options).unwrap();
    overwrite_around(&store);
    let places = store.check(&|_, _| {}).unwrap().damage.places;
    assert!(places.iter().any(|place| place.what.contains("taken for dead")), "{places:?}");
}
