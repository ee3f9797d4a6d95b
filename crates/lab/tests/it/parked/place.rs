//! A client whose write was published by somebody else, and whose place was used again for another write of
//! the same key, which a third client parks. The first client's later write must not take that one for its
//! own.
//!
//! It would publish it without what its own write needed: the segment of the record that an expiring write
//! supersedes has to hold the tombstone that this one becomes. So the older record came back after a crash.

use super::options;
use quipu::internals::Twin;
use quipu::internals::twin::leave_out;
use quipu::{Client, Store};
use quipu_medium::Region;
use quipu_medium::sim::SimOptions;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const ZONE: u64 = 16 << 10;
/// Bytes of each record, so that one fits the place of another.
const LEN: u64 = 128;
const KEY: &[u8] = b"KKKKKKKK";
/// Other keys.
const LIVE: u64 = 1100;
const LIFETIME: u64 = 5000;

/// A pool as a debugger would show it.
struct Look {
    region: Region,
    /// Where the first zone begins, but for a multiple of zones.
    base: u64,
}

impl Look {
    fn at(&self, offset: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        self.region.read_racing(offset, &mut bytes);
        bytes
    }

    fn word(&self, offset: u64) -> u64 {
        u64::from_le_bytes(self.at(offset, 8).try_into().unwrap())
    }

    /// The records with a value of this number: all keys have eight bytes, and no value has a time of expiry
    /// before it.
    fn records_of(&self, number: u64) -> Vec<u64> {
        let (bytes, wanted) = (self.at(0, self.region.len()), value(number, 8));
        let words = bytes.chunks_exact(8).enumerate();
        words.filter(|(_, word)| *word == wanted).map(|(i, _)| i as u64 * 8 - 32).collect()
    }

    fn zone(&self, offset: u64) -> u64 {
        (offset - self.base) / ZONE * ZONE + self.base
    }

    /// The keys of the records in a zone.
    fn keys(&self, zone: u64) -> Vec<Vec<u8>> {
        let bytes = self.at(zone, ZONE);
        let records = (64..ZONE as usize - LEN as usize + 1).step_by(LEN as usize);
        let key = |at: usize| at + 24 + usize::from(bytes[at + 17] & 1) * 8;
        records.filter(|at| bytes[at + 16] != 0).map(|at| bytes[key(at)..][..8].to_vec()).collect()
    }
}

/// A value that is told from all others by its first eight bytes.
fn value(number: u64, len: usize) -> Vec<u8> {
    let mut value = vec![0x5a; len];
    value[..8].copy_from_slice(&(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 << 63).to_le_bytes());
    value
}

fn key(number: u64) -> Vec<u8> {
    format!("f{number:07}").into_bytes()
}

/// One attempt: the pool, its clients' values, and what is random in it.
struct Trial {
    store: Store,
    look: Look,
    random: SmallRng,
    values: u64,
}

impl Trial {
    fn new(seed: u64) -> Trial {
        let region = Region::sim(SimOptions { len: 40 * ZONE, seed, ..SimOptions::default() });
        let store = Store::create_on(region.clone(), &options()).unwrap();
        let random = SmallRng::seed_from_u64(seed);
        Trial { store, look: Look { region, base: 0 }, random, values: seed << 32 }
    }

    /// Gives a key a new value, and tells its number.
    fn put(&mut self, client: &mut Client, key: &[u8]) -> u64 {
        self.values += 1;
        client.put(key, &value(self.values, 96)).unwrap();
        self.values
    }

    /// Where the only record with the value of this number is.
    fn place(&self, number: u64) -> Option<u64> {
        self.look.records_of(number).pop()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.random_range(0..end)
    }

    /// Writes until the next record will stand in `place`; each segment on the way gets a record of the key.
    /// The number of the last.
    fn come_by(&mut self, client: &mut Client, place: u64) -> Option<u64> {
        let (taken, mut zone, mut last, mut number, mut at) = (self.look.zone(place), 0, None, 0, 0);
        for step in 0..40_000 {
            let put = self.put(client, &key(number % LIVE));
            number += 1 + self.below(3);
            let is_next = self.look.at(at + LEN + 32, 8) == value(put, 8);
            at = if is_next { at + LEN } else { self.place(put)? };
            if at + LEN == place && step > LIVE {
                return last;
            }
            if self.look.zone(at) != zone {
                zone = self.look.zone(at);
                if zone != taken {
                    last = Some(self.put(client, KEY));
                    at += LEN;
                }
            }
        }
        None
    }

    /// Writes, and so cleans, until the record with the value of this number has moved out of its segment.
    /// Where to.
    fn move_away(&mut self, client: &mut Client, number: u64) -> Option<u64> {
        let victim = self.look.zone(self.place(number)?);
        for step in 0..6000 {
            let others = || self.look.keys(victim).into_iter().filter(|key| key != KEY).collect::<Vec<_>>();
            let mut next = key(self.random.random_range(0..LIVE));
            if step < 1500 {
                // At first others are cleaned.
                if others().contains(&next) {
                    continue;
                }
            } else if self.random.random_range(0..3) != 0 {
                let others = others();
                let some = self.random.random_range(0..others.len().max(1));
                next = others.into_iter().nth(some).unwrap_or(next);
            }
            self.put(client, &next);
            if step % 8 == 0 {
                let mut moved = self.look.records_of(number).into_iter().map(|at| self.look.zone(at));
                if let Some(zone) = moved.rfind(|zone| *zone != victim) {
                    return Some(zone);
                }
            }
        }
        None
    }

    /// Whether the key comes back after it has expired. Nothing if the schedule did not come about.
    fn run(mut self) -> Option<bool> {
        let (mut a, mut b) = (self.store.client(), self.store.client());
        let first = self.put(&mut a, &key(0));
        let own = self.put(&mut a, KEY);
        self.look.base = (self.place(first)? - 64) % ZONE;
        // The first client's write is parked there, and stays noted.
        let place = self.place(own)?;
        assert!(b.get(KEY).unwrap().is_some());
        self.put(&mut b, KEY);
        self.put(&mut b, &key(0));
        for _ in 0..3 {
            self.store.compact().unwrap();
        }
        let plain = self.come_by(&mut b, place)?;
        self.values += 1;
        let time = self.look.region.now() + LIFETIME;
        b.put_until(KEY, &value(self.values, 88), time).unwrap();
        if self.look.at(place + 32, 16) != [KEY, &value(self.values, 8)].concat() {
            return None;
        }
        let number = self.look.word(place + 8);
        let mut c = self.store.client();
        let target = self.move_away(&mut c, plain)?;
        let life = self.look.word(target + 16);
        if life <= number {
            return None;
        }
        // The first client's second next write publishes what it takes for its own.
        self.put(&mut a, b"aaaaaaa1");
        self.put(&mut a, b"aaaaaaa2");
        drop(b);
        self.look.region.simulator().unwrap().set_now(time + 1);
        assert_eq!(c.get(KEY).unwrap(), None, "it has expired");
        drop(a);
        // All that is not in the segment of the copy is written again, until the record that has expired is
        // gone.
        let (home, mut gone_for, mut stay) = (self.look.zone(place), 0, Vec::new());
        for step in 0..60_000 {
            if step % 16 == 0 {
                stay = self.look.keys(target);
                if self.look.word(target + 16) != life || !stay.iter().any(|key| key == KEY) {
                    return None;
                }
                let is_gone = self.look.word(place + 8) != number || self.look.word(home + 16) > number;
                gone_for += u32::from(is_gone);
                // A tombstone of its number may have taken its place, and goes later.
                if gone_for > 375 {
                    break;
                }
            }
            let next = key(self.below(LIVE));
            if !stay.contains(&next) {
                self.put(&mut c, &next);
            }
        }
        let Trial { store, look, .. } = self;
        drop((c, store));
        let store = Store::open_on(look.region, &options()).unwrap();
        Some(store.client().get(KEY).unwrap().is_some())
    }
}

/// Of the first 65 seeds, those whose schedule comes about and shows the fault.
const SEEDS: [u64; 6] = [1, 2, 14, 17, 55, 56];

fn outcomes(twin: Option<Twin>) -> Vec<bool> {
    let _left_out = leave_out(twin);
    SEEDS.iter().filter_map(|seed| Trial::new(*seed).run()).collect()
}

#[test]
fn a_client_takes_no_other_write_in_the_same_place_for_its_own() {
    let outcomes = outcomes(None);
    assert!(outcomes.len() >= 5, "{} schedules came about", outcomes.len());
    assert!(!outcomes.contains(&true), "an expired key has its older value again");
}

#[test]
fn a_client_that_goes_by_the_place_alone_brings_older_values_back() {
    let outcomes = outcomes(Some(Twin::OwnByPlace));
    assert!(outcomes.len() >= 5, "{} schedules came about", outcomes.len());
    assert!(
        outcomes.iter().all(|is_back| *is_back),
        "{outcomes:?}: the twin does no harm, so the test above proves nothing"
    );
}
