//! Random operations against a map, for records of one size and of any, over several pages and blocks; then
//! recovery.

use super::support::{Client, Random, Table, fixed, heap, recover, region, value, variable};
use quipu_parts::heap::slots::{Offset, PageBits, RecordForm, SlotError, SlotSettings};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// Lengths around every limit of a page of 4096 bytes, and beyond.
const LENGTHS: [usize; 16] =
    [0, 1, 7, 8, 15, 100, 200, 1000, 2000, 2040, 3000, 4040, 4056, 4100, 9000, 20_000];

fn check(client: &mut Client<'_>, model: &Model) {
    for (key, (value, sequence)) in model {
        let (found, number) = client.get(key).expect("it was put");
        assert_eq!((&found, number), (value, *sequence), "key {key:?} of {} bytes", value.len());
    }
}

/// Runs operations over 40 keys and checks them all now and then; returns the model.
fn run(settings: SlotSettings, seed: u64, operations: u64) {
    let region = region(6 << 20);
    let table = Table::new(heap(&region, 256 << 10, settings, 2));
    let mut random = Random(seed);
    let mut model = Model::new();
    {
        let mut clients = [table.client(seed), table.client(seed + 1)];
        let mut cleaner = table.cleaner(seed + 2);
        for operation in 0..operations {
            let client = &mut clients[random.below(2) as usize];
            let number = random.below(40);
            let (key_len, len) = match settings.form {
                RecordForm::Fixed { key, value } => (u64::from(key), value as usize),
                RecordForm::Variable => (1 + number % 90, LENGTHS[random.below(16) as usize]),
            };
            let mut key = vec![number as u8; key_len as usize];
            key[0] = number as u8;
            match random.below(10) {
                0..=5 => {
                    let value = value(operation, len);
                    let sequence = client.put(&key, &value).expect("room");
                    model.insert(key, (value, sequence));
                }
                6 | 7 => assert_eq!(client.delete(&key), model.remove(&key).is_some()),
                8 => assert_eq!(client.get(&key), model.get(&key).cloned()),
                _ => drop(cleaner.reclaim(30).expect("room to move")),
            }
            if operation % 97 == 0 {
                check(&mut clients[0], &model);
                assert_eq!(table.heap.usage().live_records, model.len() as u64);
            }
            if operation % 211 == 0 {
                clients[1].leave();
                clients[1] = table.client(operation);
                cleaner.collect();
                table.heap.release_tail();
            }
        }
        check(&mut clients[0], &model);
    }
    drop(table);

    let recovered = recover(&region, settings, 2);
    assert!(recovered.damages.is_empty(), "{:?}", recovered.damages);
    assert_eq!(recovered.losers, 0, "every old record was let go");
    assert_eq!(recovered.heap.usage().live_records, model.len() as u64);
    let table = Table::of(recovered.heap, recovered.records);
    assert_eq!(table.keys(), model.keys().cloned().collect::<Vec<_>>());
    check(&mut table.client(1), &model);
}

#[test]
fn records_of_one_size_are_what_the_map_says() {
    for seed in 0..4 {
        for pages_per_block in [1, 6] {
            run(SlotSettings { pages_per_block, ..fixed() }, seed, 3000);
        }
    }
    let form = RecordForm::Fixed { key: 1, value: 0 };
    run(SlotSettings { form, pages_per_block: 6, ..fixed() }, 9, 2000);
}

#[test]
fn records_of_any_size_are_what_the_map_says() {
    for seed in 0..4 {
        for (pages_per_block, alignment_shift) in [(1, 0), (3, 2048), (6, 0)] {
            run(SlotSettings { pages_per_block, alignment_shift, ..variable() }, seed, 2000);
        }
    }
}

/// Every way in which a record can stand in a log, by the lengths that lead to it.
#[test]
fn empty_continued_large_and_spread_values_come_back() {
    let settings = SlotSettings { pages_per_block: 6, ..variable() };
    let region = region(4 << 20);
    let table = Table::new(heap(&region, 512 << 10, settings, 1));
    let mut client = table.client(7);
    let mut model = Model::new();
    let mut put = |client: &mut Client<'_>, key: Vec<u8>, len: usize| {
        let value = value(len as u64, len);
        let sequence = client.put(&key, &value).expect("room");
        model.insert(key, (value, sequence));
    };
    let (page, block) = (4096 - 8, 6 * 4096 - 8);
    // A value of 3000 bytes behind one of 2000 continues on the next page; an empty one does not.
    for (number, len) in [0, 2000, 3000, 0, 1000, 4000, 200, 3500].into_iter().enumerate() {
        put(&mut client, vec![b'a', number as u8], len);
    }
    for len in [page - 17 - 1, page - 17, page - 17 + 1, block - 17, block - 16, 65_535, 65_536, 200_000] {
        put(&mut client, vec![(len % 251) as u8], len);
    }
    put(&mut client, vec![3; 32_767 / 2], 0);
    put(&mut client, vec![4; 4000], 5000);
    put(&mut client, vec![5; 16_000], 100_000);
    check(&mut client, &model);
    let pages: Vec<u32> = (0..8u8)
        .map(|number| table.offset(&[b'a', number]).expect("it was put").page(PageBits::of(6)))
        .collect();
    assert!(pages.windows(2).any(|pair| pair[0] != pair[1]), "more than one page: {pages:?}");

    let too_long = vec![1; 30_000];
    assert!(matches!(client.put(&too_long, b"v"), Err(SlotError::Unfit { .. })));
    assert!(matches!(client.put(b"", b"v"), Err(SlotError::Unfit { .. })));
    let before = table.heap.usage();
    let full = client.put(b"whole", &value(1, 8 << 20));
    assert!(matches!(full, Err(SlotError::Full { .. })), "{full:?}");
    assert_eq!(table.heap.usage().used_blocks, before.used_blocks, "what was begun is undone");
    drop(client);
    drop(table);
    let recovered = recover(&region, settings, 1);
    assert_eq!((recovered.losers, recovered.damages.len()), (0, 0));
    let table = Table::of(recovered.heap, recovered.records);
    check(&mut table.client(1), &model);
}

/// Also where a bitset has several words, the last of them in part.
#[test]
fn every_slot_of_a_block_is_used() {
    let settings =
        SlotSettings { form: RecordForm::Fixed { key: 8, value: 8 }, pages_per_block: 2, ..fixed() };
    let heap = heap(&region(1 << 20), 64 << 10, settings, 0);
    let mut owner = heap.owner(0);
    let count = heap.shape().expect("slots").count;
    assert_eq!(count, 169);
    for number in 0..u64::from(2 * count) {
        let placed = heap.place(&mut owner, &number.to_le_bytes(), &[0; 8], number).expect("room");
        assert_eq!(placed.offset().block(PageBits::of(2)), 0, "slot {number}");
    }
    assert_eq!(heap.usage().block_bytes, 2 * 169 * 24);
    let next = heap.place(&mut owner, &[1; 8], &[0; 8], 999).expect("room").offset();
    assert_eq!(next.block(PageBits::of(2)), 1);
}

#[test]
fn a_heap_of_one_size_says_which() {
    let region = region(1 << 20);
    let table = Table::new(heap(&region, 64 << 10, fixed(), 0));
    let wrong = table.client(0).put(b"12345678", b"short");
    assert!(matches!(wrong, Err(SlotError::WrongSize { key: 8, value: 504 })));
}

#[test]
fn eight_bytes_are_updated_in_place() {
    let settings = SlotSettings { form: RecordForm::Fixed { key: 12, value: 20 }, ..fixed() };
    let region = region(1 << 20);
    let table = Table::new(heap(&region, 64 << 10, settings, 0));
    let mut client = table.client(0);
    let key = b"twelve bytes";
    client.put(key, &[1; 20]).expect("room");
    let offset = table.offset(key).expect("it was put");
    let heap = &table.heap;
    assert_eq!(
        heap.update_in_place(offset, key, 4, |old| old + 1).expect("aligned"),
        Some(0x0101_0101_0101_0101)
    );
    assert_eq!(heap.update_in_place(offset, key, 4, |_| 7).expect("aligned"), Some(0x0101_0101_0101_0102));
    let mut expected = [1; 20];
    expected[4..12].copy_from_slice(&7u64.to_le_bytes());
    assert_eq!(client.get(key).expect("it is there").0, expected);
    for at in [0, 1, 13, 20, u64::MAX] {
        assert!(
            matches!(heap.update_in_place(offset, key, at, |old| old), Err(SlotError::NotInPlace)),
            "{at}"
        );
    }
    let beyond = Offset::from_word(offset.word() + 1000);
    for (offset, key) in [(offset, &b"twelve bytez"[..]), (offset, b"twelve"), (offset, b""), (beyond, key)] {
        assert_eq!(heap.update_in_place(offset, key, 4, |_| 8).expect("aligned"), None, "{key:?}");
    }
    assert_eq!(
        heap.update_in_place(offset, key, 4, |old| old).expect("aligned"),
        Some(7),
        "the page is free"
    );
    assert!(client.delete(key));
    assert_eq!(heap.update_in_place(offset, key, 4, |_| 9).expect("aligned"), None);
    let log = Table::new(self::heap(&self::region(1 << 20), 64 << 10, variable(), 0));
    assert!(matches!(log.heap.update_in_place(offset, key, 0, |old| old), Err(SlotError::NotInPlace)));
}

#[test]
fn clients_begin_blocks_at_random_pages_and_go_round() {
    let settings = SlotSettings { pages_per_block: 6, ..fixed() };
    for random_first_page in [false, true] {
        let settings = SlotSettings { random_first_page, ..settings };
        let table = Table::new(heap(&region(4 << 20), 256 << 10, settings, 0));
        let mut firsts = Vec::new();
        for number in 0..16u64 {
            let mut client = table.client(number);
            let mut pages = Vec::new();
            for record in 0..42u64 {
                let key = (number << 32 | record).to_le_bytes();
                client.put(&key, &value(record, 504)).expect("room");
                pages.push(table.offset(&key).expect("put").page(PageBits::of(6)));
            }
            pages.dedup();
            assert!(pages.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 6), "{pages:?}");
            firsts.push(pages[0]);
        }
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len() > 3, random_first_page, "{firsts:?}");
    }
}
