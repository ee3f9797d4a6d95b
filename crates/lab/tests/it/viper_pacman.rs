//! Deletions with bits in DRAM, through the store: tombstones do not pile up, and what a crash finds is what
//! was there.

use quipu::internals::SlotSettings;
use quipu::{Client, Design, ErrorKind, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::SimOptions;

fn store(slots: SlotSettings, len: u64, zone_size: u64) -> Store {
    let region = Region::sim(SimOptions { len, ..SimOptions::default() });
    let options = Options::new()
        .design(Design::VIPER_PACMAN)
        .with(|options| options.slots = slots)
        .zone_size(zone_size)
        .cleaner(false);
    Store::create_on(region, &options).expect("a new pool")
}

fn sound(store: &mut Store) -> u64 {
    let report = store.check(&|_, _| {}).expect("nobody else has it");
    assert!(report.damage.places.is_empty(), "{:?}", report.damage.places);
    report.keys
}

/// Opens the pool again as after a crash.
fn reopened(store: Store) -> Store {
    let region = store.region().clone();
    drop(store);
    Store::open_on(region, &Options::new().cleaner(false)).expect("it opens")
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// Ten times as many keys come and go as there is room for tombstones.
fn churn(client: &mut Client, rounds: u64) {
    for number in 0..rounds {
        client.put(&key(number), &[7; 20]).expect("room for a record");
        assert!(client.remove(&key(number)).expect("room for a deletion"), "{number}");
    }
}

#[test]
fn keys_that_come_and_go_leave_nothing_behind() {
    let mut store = store(SlotSettings::default(), 1 << 20, 64 << 10);
    // One that does nothing any more, and in whose block an older record of a deleted key stays marked.
    let mut resting = store.client();
    resting.put(&key(u64::MAX), b"deleted by another").expect("room");
    let mut client = store.client();
    assert!(client.remove(&key(u64::MAX)).expect("room"));
    churn(&mut client, 100_000);
    drop((client, resting));
    assert_eq!(sound(&mut store), 0);
    let mut store = reopened(store);
    assert_eq!(sound(&mut store), 0, "nothing came back");
    assert_eq!(store.client().get(&key(u64::MAX)).expect("sound"), None);
}

/// Records that are longer than a word of the index can tell, and whose values do not yet fill blocks of
/// their own.
#[test]
fn what_is_too_long_to_be_told_is_read() {
    let slots = SlotSettings { page_size: 32 << 10, pages_per_block: 4, ..SlotSettings::default() };
    let mut store = store(slots, 8 << 20, 512 << 10);
    let value = |version: u8| vec![version; 100_000];
    for version in 0..100 {
        store.client().put(&key(u64::from(version % 3)), &value(version)).expect("room");
    }
    assert!(store.client().remove(&key(0)).expect("room"));
    assert_eq!(sound(&mut store), 2);
    let mut store = reopened(store);
    assert_eq!(sound(&mut store), 2);
    let found = [0, 1, 2].map(|number| store.client().get(&key(number)).expect("sound"));
    assert!(found == [None, Some(value(97)), Some(value(98))]);
}

/// Lookups that take the hash for the key must not take another key of that hash for it: keys of eight bytes
/// and others.
#[test]
fn keys_of_eight_bytes_and_others_do_not_meet() {
    let mut store = store(SlotSettings::default(), 1 << 20, 64 << 10);
    let mut client = store.client();
    for number in 0..2000u64 {
        client.put(&number.to_le_bytes(), b"eight").expect("room");
        client.put(&number.to_le_bytes()[..7], b"seven").expect("room");
    }
    for number in (0..2000u64).step_by(2) {
        assert!(client.remove(&number.to_le_bytes()).expect("room"));
        assert!(!client.remove(&number.to_le_bytes()).expect("room"));
    }
    for number in 0..2000u64 {
        let found = client.get(&number.to_le_bytes()).expect("sound");
        assert_eq!(found.as_deref(), (number % 2 == 1).then_some(&b"eight"[..]));
        assert_eq!(client.get(&number.to_le_bytes()[..7]).expect("sound").as_deref(), Some(&b"seven"[..]));
    }
    drop(client);
    assert_eq!(sound(&mut store), 3000);
}

/// Bytes of a key that change while the store is open. A reader of it is told, and does not look for it for
/// ever: the index takes the hash of eight bytes for the key, and the record is another key's by now.
#[test]
fn a_record_of_another_key_than_the_index_says_is_an_error() {
    const NUMBER: u64 = 0x6b6e_6f74_5f37_6b6e;
    let store = store(SlotSettings::default(), 1 << 20, 64 << 10);
    let mut client = store.client();
    client.put(&NUMBER.to_le_bytes(), b"value").expect("room");
    let region = store.region();
    let at = (0..1 << 20).step_by(8).find(|at| region.load(*at) == NUMBER).expect("keys begin at words");
    region.store(at, NUMBER ^ 1);
    let errors = [
        client.get(&NUMBER.to_le_bytes()).map(drop),
        client.update(&NUMBER.to_le_bytes(), |_| Some(b"other")).map(drop),
    ];
    for error in errors.into_iter().map(|done| done.expect_err("the record is another key's")) {
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    }
}
