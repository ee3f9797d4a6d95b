//! Clients at the same time: under the simulator's scheduler, where a seed replays every interleaving, and on
//! real threads.

use super::support::{Client, Random, Table, fixed, heap, region, region_of, value, variable};
use quipu_medium::sim::sched;
use quipu_medium::{Node, Pages, Region};
use quipu_parts::heap::slots::{RecordForm, SlotError, SlotSettings};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A value that says its number and proves it.
fn bytes_of(number: u64, settings: SlotSettings) -> Vec<u8> {
    let len = match settings.form {
        RecordForm::Fixed { value, .. } => value as usize,
        // Some fill blocks of their own, which others get soon.
        RecordForm::Variable if number.is_multiple_of(3) => 9000,
        RecordForm::Variable => 8 + (number * 523 % 3000) as usize,
    };
    let mut bytes = value(number, len);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn prove(bytes: &[u8], settings: SlotSettings) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("a number"));
    assert!(bytes == bytes_of(number, settings), "a value of {} bytes is torn or foreign", bytes.len());
    number
}

/// Writes keys over and over; deletes some.
fn write(client: &mut Client<'_>, settings: SlotSettings, seed: u64, keys: u64, operations: u64) {
    let mut random = Random(seed);
    for number in 0..operations {
        let key = random.below(keys).to_le_bytes();
        if random.below(5) == 0 {
            client.delete(&key);
        } else {
            match client.put(&key, &bytes_of(seed << 32 | number, settings)) {
                Ok(_) | Err(SlotError::Full { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Reads keys over and over: every value is whole, and none is older than one read before.
fn read(client: &mut Client<'_>, settings: SlotSettings, seed: u64, keys: u64, operations: u64) {
    let mut random = Random(!seed);
    let mut newest = BTreeMap::new();
    for _ in 0..operations {
        let key = random.below(keys).to_le_bytes();
        if let Some((bytes, sequence)) = client.get(&key) {
            prove(&bytes, settings);
            let newest = newest.entry(key).or_insert(0);
            assert!(sequence >= *newest, "a read goes back in time");
            *newest = sequence;
        }
    }
}

fn clean(client: &mut Client<'_>, rounds: u64) {
    for round in 0..rounds {
        match client.reclaim(1) {
            Ok(_) | Err(SlotError::Full { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if round % 5 == 0 {
            client.collect();
        }
    }
}

fn forms() -> [SlotSettings; 4] {
    let small = SlotSettings { form: RecordForm::Fixed { key: 8, value: 40 }, ..fixed() };
    let pairs = |settings| SlotSettings { pages_per_block: 2, ..settings };
    [small, pairs(fixed()), pairs(variable()), variable()]
}

#[test]
fn readers_see_whole_records_while_writers_and_a_cleaner_work() {
    for settings in forms() {
        for seed in 0..60 {
            let region = region(256 << 10);
            let table = Table::new(heap(&region, 16 << 10, settings, 1));
            let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
                Box::new(|| write(&mut table.client(1), settings, 1, 4, 40)),
                Box::new(|| write(&mut table.client(2), settings, 2, 4, 40)),
                Box::new(|| read(&mut table.client(3), settings, seed, 4, 80)),
                Box::new(|| read(&mut table.client(4), settings, seed + 1, 4, 80)),
                Box::new(|| clean(&mut table.cleaner(5), 30)),
            ];
            sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            settle(&table, settings, 4);
        }
    }
}

/// When all is quiet, exactly the keys of the index have records.
fn settle(table: &Table, settings: SlotSettings, keys: u64) {
    let mut client = table.client(9);
    let found = (0..keys).filter_map(|key| client.get(&key.to_le_bytes()));
    let live = found.filter(|(bytes, _)| prove(bytes, settings) < u64::MAX).count() as u64;
    assert_eq!(table.heap.usage().live_records, live, "a record was cleared twice, or never");
}

/// Each of two clients holds the page that the other needs.
#[test]
fn clients_whose_locks_cross_get_past_each_other() {
    for settings in forms() {
        for seed in 0..100 {
            let region = region(512 << 10);
            let table = Table::new(heap(&region, 16 << 10, settings, 0));
            let swap = |own: u64, first: u64| {
                let mut client = table.client(own);
                for round in 0..12 {
                    let key = ((first + round) % 2).to_le_bytes();
                    client.put(&key, &bytes_of(own << 32 | round, settings)).expect("room");
                }
            };
            let tasks: Vec<Box<dyn FnOnce() + '_>> =
                vec![Box::new(|| swap(1, 0)), Box::new(|| swap(2, 1)), Box::new(|| swap(3, 0))];
            sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            settle(&table, settings, 2);
        }
    }
}

/// A page is the same two clients' own and old one in turn: both hold what the other waits for, by
/// construction.
#[test]
fn a_client_clears_for_another_what_is_on_its_page() {
    let settings = fixed();
    let region = region(192 << 10);
    let heap = heap(&region, 16 << 10, settings, 0);
    let number = |number| bytes_of(number, settings);
    let (mut left, mut right) = (heap.owner(1), heap.owner(2));
    let old_left = heap.place(&mut left, &[1; 8], &number(1), 1).expect("room").offset();
    let old_right = heap.place(&mut right, &[2; 8], &number(2), 2).expect("room").offset();
    let placed = Cell::new(0);
    let waits = |placed: &Cell<u32>| {
        placed.set(placed.get() + 1);
        let mut waiter = quipu_parts::sync::Waiter::default();
        while placed.get() < 2 {
            waiter.wait();
        }
    };
    let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
        Box::new(|| {
            let guard = heap.place(&mut left, &[2; 8], &number(3), 3).expect("room");
            waits(&placed);
            guard.release_old(old_right).expect("it is there");
        }),
        Box::new(|| {
            let guard = heap.place(&mut right, &[1; 8], &number(4), 4).expect("room");
            waits(&placed);
            guard.release_old(old_left).expect("it is there");
        }),
    ];
    sched::run(7, tasks).expect("neither waits for ever");
    let mut buffer = Vec::new();
    assert_eq!(heap.read(old_left, &mut buffer).expect("sound"), None);
    assert_eq!(heap.read(old_right, &mut buffer).expect("sound"), None);
    assert_eq!(heap.usage().live_records, 2);
}

/// A client that takes blocks while the end of the heap is given back never gets one that is gone.
#[test]
fn blocks_are_taken_while_chunks_at_the_end_are_released() {
    for (seed, nodes) in (0..200).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let settings = SlotSettings { form: RecordForm::Fixed { key: 8, value: 4000 }, ..fixed() };
        let region = region_of(384 << 10, nodes);
        let table = Table::new(heap(&region, 16 << 10, settings, 0));
        let key = |own: u64, round: u64| (own << 32 | round).to_le_bytes();
        let taker = |own: u64| {
            region.pin(Node(own as u16 % nodes)).expect("a node");
            let mut client = table.client(own);
            for round in 0..15 {
                client.put(&key(own, round), &bytes_of(round, settings)).expect("room");
            }
        };
        let tasks: Vec<Box<dyn FnOnce() + '_>> = vec![
            Box::new(|| taker(1)),
            Box::new(|| taker(2)),
            Box::new(|| {
                for _ in 0..150 {
                    table.heap.release_tail();
                }
            }),
        ];
        sched::run(seed, tasks).unwrap_or_else(|error| panic!("seed {seed}, {nodes} nodes: {error}"));
        for round in 0..30 {
            let (bytes, _) = table.client(3).get(&key(1 + round % 2, round / 2)).expect("it was put");
            assert_eq!(prove(&bytes, settings), round / 2);
        }
    }
}

#[test]
fn real_threads_agree_on_what_there_is() {
    for settings in forms() {
        let region = Region::dram(8 << 20, Pages::Ordinary).expect("memory");
        let table = Table::new(heap(&region, 64 << 10, settings, 2));
        std::thread::scope(|scope| {
            for seed in 1..=2 {
                let table = &table;
                scope.spawn(move || write(&mut table.client(seed), settings, seed, 64, 4000));
                scope.spawn(move || read(&mut table.client(seed), settings, seed, 64, 8000));
            }
            scope.spawn(|| clean(&mut table.cleaner(5), 400));
        });
        settle(&table, settings, 64);
    }
}
