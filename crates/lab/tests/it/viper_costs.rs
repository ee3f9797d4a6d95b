//! The costs of calls on the medium in the design `viper`, through the store, counted exactly on the
//! simulator. They are fences and lines as in the paper's protocol (sections 4.2, 4.4 and 4.5), DIMMs
//! (section 3.1), and clients spread over DIMMs (4.1).

use crate::shared::cost;

use cost::cost_of;
use quipu::internals::{RecordForm, SlotSettings};
use quipu::{Client, Design, Options, Store};
use quipu_lab::contract::value_of;
use quipu_medium::Region;
use quipu_medium::sim::{Cost, SimOptions};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const DIMMS: usize = 6;
const KEY: usize = 16;
const VALUE: usize = 200;

fn fixed() -> SlotSettings {
    let form = RecordForm::Fixed { key: KEY as u16, value: VALUE as u32 };
    SlotSettings { form, ..SlotSettings::default() }
}

/// A store whose puts are published before they return, as in the paper, or late.
fn store(slots: SlotSettings, late: bool, seed: u64) -> Store {
    let region = Region::sim(SimOptions { len: 16 << 20, seed, ..SimOptions::default() });
    let options = Options::new()
        .design(Design::VIPER)
        .zone_size(256 << 10)
        .with(|options| options.slots = slots)
        .with(|options| options.late = late)
        .cleaner(false);
    Store::create_on(region, &options).expect("a new pool")
}

/// A store whose run has begun and whose client has begun a block.
fn warm(slots: SlotSettings) -> (Store, Client) {
    warm_with(slots, false)
}

fn warm_with(slots: SlotSettings, late: bool) -> (Store, Client) {
    let store = store(slots, late, 0);
    let mut client = store.client();
    put(&mut client, 1 << 40, 0);
    (store, client)
}

fn key(number: u64) -> [u8; KEY] {
    let mut key = [0; KEY];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn value(version: u64) -> Vec<u8> {
    value_of(b"cost", version, VALUE)
}

fn put(client: &mut Client, number: u64, version: u64) {
    client.put(&key(number), &value(version)).expect("room");
}

/// Puts of a block that was begun with one record.
const REST_OF_BLOCK: u64 = 18 * 6 - 1;

#[test]
fn an_insert_is_two_fences_a_replacement_three_a_delete_and_an_update_in_place_one() {
    for slots in [fixed(), SlotSettings::default()] {
        let (store, mut client) = warm(slots);
        let is_fixed = slots.form != RecordForm::Variable;
        for number in 0..50 {
            let cost = cost_of(&store, || put(&mut client, number, 0));
            assert_eq!((cost.fences, cost.persists), (2, 2), "insert {number}: {cost:?}");
        }
        // The rest of the block has room for these.
        for number in 0..50 {
            let cost = cost_of(&store, || put(&mut client, number, 1));
            assert_eq!((cost.fences, cost.persists), (3, 3), "replacement of {number}: {cost:?}");
        }
        for number in 0..50 {
            let cost = cost_of(&store, || assert!(client.remove(&key(number)).expect("a delete")));
            assert_eq!((cost.fences, cost.persists), (1, 1), "delete of {number}: {cost:?}");
            assert_eq!(cost.lines_persisted(), 1, "{cost:?}");
            let again = cost_of(&store, || assert!(!client.remove(&key(number)).expect("a delete")));
            assert_eq!((again.fences, again.words_stored), (0, 0), "there is nothing to delete: {again:?}");
        }
        if is_fixed {
            let change = |client: &mut Client| client.update_in_place(&key(1 << 40), 8, |old| old + 1);
            let cost = cost_of(&store, || assert!(change(&mut client).expect("a word").is_some()));
            assert_eq!((cost.fences, cost.persists, cost.lines_persisted()), (1, 1, 1));
        }
    }
}

#[test]
fn a_replacement_that_is_published_late_is_two_fences_and_clears_the_bit_of_the_one_before_the_last() {
    for slots in [fixed(), SlotSettings::default()] {
        let (store, mut client) = warm_with(slots, true);
        for version in 0..2 {
            for number in 0..40 {
                let cost = cost_of(&store, || put(&mut client, number, version));
                assert_eq!((cost.fences, cost.persists), (2, 2), "put {version} of {number}: {cost:?}");
            }
        }
        // Those of the last two puts are parked. A reader of a key publishes it, with a fence of its own.
        for number in 0..40 {
            let is_parked = number >= 38;
            let read = cost_of(&store, || {
                assert_eq!(client.get(&key(number)).expect("a read"), Some(value(1)));
            });
            assert_eq!(
                (read.fences, read.lines_persisted()),
                (is_parked.into(), is_parked.into()),
                "{number}"
            );
            let again = cost_of(&store, || drop(client.get(&key(number)).expect("a read")));
            assert_eq!((again.fences, again.words_stored), (0, 0), "{number} is published: {again:?}");
        }
        // One put after another of the same key: each publishes the one before.
        for version in 2..5 {
            let cost = cost_of(&store, || put(&mut client, 7, version));
            assert_eq!(cost.fences, if version == 2 { 2 } else { 3 }, "{cost:?}");
        }
    }
}

#[test]
fn an_insert_persists_its_slot_and_a_bit_and_a_replacement_one_bit_more() {
    let (store, mut client) = warm(fixed());
    // A slot has 8 + 16 + 200 bytes: three lines and a half, and so touches four or five. The bit is in the
    // page's first line.
    let lines = |cost: &Cost, bits: u64| (4 + bits..=5 + bits).contains(&cost.lines_persisted());
    for number in 0..50 {
        let cost = cost_of(&store, || put(&mut client, number, 0));
        assert!(lines(&cost, 1), "insert {number}: {cost:?}");
        // Its owner fills a page by whole lines past the caches.
        assert_eq!(
            (cost.lines_flushed, cost.words_stored),
            (0, 8 * cost.lines_streamed),
            "insert {number}: {cost:?}"
        );
    }
    for number in 0..50 {
        let cost = cost_of(&store, || put(&mut client, number, 1));
        assert!(lines(&cost, 2), "replacement of {number}: {cost:?}");
        assert_eq!(cost.lines_flushed, 0, "replacement of {number}: {cost:?}");
    }
}

#[test]
fn a_get_changes_nothing() {
    let (store, mut client) = warm(fixed());
    (0..50).for_each(|number| put(&mut client, number, number));
    let mut out = Vec::new();
    for number in 0..50 {
        let cost = cost_of(&store, || assert!(client.get_into(&key(number), &mut out).expect("a read")));
        assert_eq!(out, value(number));
        assert_eq!((cost.fences, cost.words_stored, cost.flushes), (0, 0, 0), "{cost:?}");
    }
}

/// A value of many lines, in pages that others follow.
#[test]
fn a_look_for_a_key_reads_no_value() {
    for design in [Design::VIPER, Design::VIPER_PACMAN] {
        let region = Region::sim(SimOptions { len: 16 << 20, ..SimOptions::default() });
        let options = Options::new().design(design).with(|options| options.late = false).cleaner(false);
        let store = Store::create_on(region, &options).expect("a new pool");
        let mut client = store.client();
        client.put(b"long", &value_of(b"long", 0, 10_000)).expect("room");
        let lines = |look: &dyn Fn()| cost_of(&store, look).lines_read;
        let whole = lines(&|| {
            assert_eq!(client.get(b"long").expect("a read").map(|value| value.len()), Some(10_000))
        });
        assert!(whole > 150, "{design}: {whole} lines");
        let contains = lines(&|| assert!(client.contains_key(b"long").expect("a read")));
        let absent = lines(&|| assert!(!client.contains_key(b"short").expect("a read")));
        let keys = lines(&|| assert_eq!(client.pin().keys().count(), 1));
        assert!(contains.max(absent).max(keys) < 10, "{design}: {contains}, {absent} and {keys} lines");
    }
}

#[test]
fn an_insert_touches_one_dimm_and_two_where_pages_are_not_aligned() {
    for (shift, two) in [(0, 0), (2048, 10)] {
        let slots = SlotSettings { random_first_page: false, alignment_shift: shift, ..fixed() };
        let (store, mut client) = warm(slots);
        let touched = (0..REST_OF_BLOCK).map(|number| {
            let cost = cost_of(&store, || put(&mut client, number, 0));
            assert!(cost.fences == 2, "the block has room: {cost:?}");
            cost.dimms_touched()
        });
        let touched: Vec<usize> = touched.collect();
        let count = |dimms| touched.iter().filter(|touched| **touched == dimms).count();
        // Of 18 slots of a page that is off by half, the bitset and 8 are before the boundary; the ninth
        // crosses it.
        assert_eq!((count(1) + count(2), count(2)), (touched.len(), two * 6), "{shift}: {touched:?}");
    }
}

const CLIENTS: usize = 36;

/// The mean, over sampled instants, of the most clients at one DIMM.
fn mean_of_most(slots: SlotSettings, seed: u64) -> f64 {
    let store = store(slots, false, seed);
    let mut random = SmallRng::seed_from_u64(seed);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| store.client()).collect();
    // The slowest does half as much as the fastest.
    let rates: Vec<f64> = (0..CLIENTS).map(|_| random.random_range(0.5..1.0)).collect();
    let mut at = [0; CLIENTS];
    let (mut number, mut sum, mut instants) = (0, 0, 0);
    for tick in 0..600 {
        for (client, rate) in rates.iter().enumerate() {
            if tick > 0 && !random.random_bool(*rate) {
                continue;
            }
            number += 1;
            let cost = cost_of(&store, || put(&mut clients[client], number, 0));
            let lines = cost.dimm_lines[..DIMMS].iter().enumerate();
            at[client] = lines.max_by_key(|(_, lines)| **lines).expect("DIMMs").0;
        }
        if tick % 5 == 0 {
            sum += most(&at);
            instants += 1;
        }
    }
    assert_eq!(store.stats().records, number);
    sum as f64 / f64::from(instants)
}

fn most(at: &[usize; CLIENTS]) -> u64 {
    let mut clients = [0; DIMMS];
    at.iter().for_each(|dimm| clients[*dimm] += 1);
    clients.into_iter().max().expect("DIMMs")
}

#[test]
fn clients_spread_over_dimms_as_evenly_as_if_they_were_thrown() {
    let mut random = SmallRng::seed_from_u64(6);
    let mut thrown = || most(&std::array::from_fn(|_| random.random_range(0..DIMMS)));
    let expected = (0..100_000).map(|_| thrown()).sum::<u64>() as f64 / 100_000.0;
    let of = |slots| (0..4).map(|seed| mean_of_most(slots, seed)).sum::<f64>() / 4.0;
    let found = of(fixed());
    assert!(found <= 1.1 * expected, "{found} clients at one DIMM, {expected} if they were thrown");
    // A block is begun at its first page unless it is told otherwise, and then it shows.
    let together = of(SlotSettings { random_first_page: false, ..fixed() });
    assert!(together > 1.1 * expected, "{together} without random first pages: this test sees nothing");
}
