//! A write that has returned is seen by every read that begins afterwards, on real processors: their stores
//! leave later than their next loads are made, unless a barrier stands between. The simulator's threads share
//! one view of memory, so it cannot show this.

use quipu::{Client, Design, Options, Store};
use quipu_medium::{Pages, Region};
use std::sync::atomic::{AtomicU64, Ordering};

const ROUNDS: u64 = 20_000;

/// Lets two threads go on at one moment; the turns wait by spinning, so that neither sleeps.
struct Meeting(AtomicU64);

impl Meeting {
    fn meet(&self, round: u64) {
        self.0.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0u64;
        while self.0.load(Ordering::Acquire) < 2 * round {
            turns += 1;
            if turns.is_multiple_of(1 << 14) {
                std::thread::yield_now();
            }
        }
    }
}

/// Two threads each write a key of their own and then read the other's: one of them must find what the other
/// wrote.
fn one_of_two_finds_the_other(design: Design, write: impl Fn(&mut Client, &[u8], &[u8]) + Sync) {
    one_of_two_finds(design, write, |reader, write, key| {
        write();
        let mut value = Vec::new();
        reader.get_into(key, &mut value).unwrap().then_some(value)
    });
}

/// The same, where `turn` makes the write and then reads the other's key.
fn one_of_two_finds(
    design: Design,
    write: impl Fn(&mut Client, &[u8], &[u8]) + Sync,
    turn: impl Fn(&Client, &mut dyn FnMut(), &[u8]) -> Option<Vec<u8>> + Sync,
) {
    let options = Options::new().design(design).cleaner(true);
    let region = Region::dram(16 << 20, Pages::Ordinary).unwrap();
    let store = Store::create_on(region, &options).unwrap();
    let meetings = [Meeting(AtomicU64::new(0)), Meeting(AtomicU64::new(0))];
    let keys = [*b"key of A", *b"key of B"];
    let one = |me: usize| {
        // One client writes and another one of the same thread reads: the visible values must not depend on
        // whose it was.
        let (mut writer, reader) = (store.client(), store.client());
        let mut found = Vec::new();
        for round in 1..=ROUNDS {
            let mut own = || {
                meetings[0].meet(round);
                write(&mut writer, &keys[me], &round.to_le_bytes());
            };
            let value = turn(&reader, &mut own, &keys[1 - me]);
            found.push(value.is_some_and(|value| value == round.to_le_bytes()));
            meetings[1].meet(round);
        }
        found
    };
    let (a, b) = std::thread::scope(|scope| {
        let other = scope.spawn(|| one(1));
        (one(0), other.join().unwrap())
    });
    let missed = a.iter().zip(&b).filter(|(a, b)| !**a && !**b).count();
    assert_eq!(missed, 0, "{design}: rounds of {ROUNDS} in which neither found the other's write");
}

#[test]
fn a_put_that_has_returned_is_seen() {
    for design in Design::ALL.iter().copied() {
        one_of_two_finds_the_other(design, |client, key, value| client.put(key, value).unwrap());
    }
}

#[test]
fn an_update_that_has_returned_is_seen() {
    for design in Design::ALL.iter().copied() {
        one_of_two_finds_the_other(design, |client, key, value| {
            client.update(key, |_| Some(value.to_vec())).unwrap();
        });
    }
}

#[test]
fn puts_of_many_that_have_returned_are_seen() {
    for design in Design::ALL.iter().copied() {
        one_of_two_finds_the_other(design, |client, key, value| {
            client.put_many(&[(key, value)]).unwrap();
        });
    }
}

#[test]
fn a_put_that_has_returned_is_seen_by_who_was_pinned_before() {
    for design in Design::ALL.iter().copied() {
        let put = |client: &mut Client, key: &[u8], value: &[u8]| client.put(key, value).unwrap();
        one_of_two_finds(design, put, |reader, write, key| {
            let guard = reader.pin();
            write();
            guard.get(key).unwrap().map(|value| value.into_owned())
        });
    }
}
