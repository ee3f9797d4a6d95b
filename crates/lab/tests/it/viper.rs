//! The special features of the design `viper`: records of one size, updates in place, blocks that are
//! reclaimed, changes that draw no number.

use quipu::internals::twin::leave_out;
use quipu::internals::{NodePlace, RecordForm, SlotSettings, Twin};
use quipu::{Client, Design, Durability, Error, ErrorKind, MediumKind, Options, Store};
use quipu_medium::{Pages, Region};
use quipu_parts::space::Space;

const KEYS: u64 = 200;

fn options(form: RecordForm) -> Options {
    let slots = SlotSettings { form, ..SlotSettings::default() };
    Options::new().design(Design::VIPER).zone_size(64 << 10).with(|options| options.slots = slots)
}

fn fixed() -> Options {
    options(RecordForm::Fixed { key: 8, value: 24 })
}

fn region() -> Region {
    Region::dram(1 << 20, Pages::Ordinary).expect("memory")
}

fn value(number: u64) -> Vec<u8> {
    [number, number ^ 7, u64::MAX].map(u64::to_le_bytes).concat()
}

/// A pool with some records, closed.
fn closed(options: &Options) -> Region {
    let region = region();
    let store = Store::create_on(region.clone(), options).expect("a new pool");
    let mut client = store.client();
    for number in 0..KEYS {
        client.put(&number.to_le_bytes(), &value(number)).expect("room");
    }
    drop(client);
    store.close().expect("closed");
    assert!(Space::probe(&region).expect("a pool").is_clean());
    region
}

/// A small value that replaces one in blocks of its own gives these back, whether its client publishes it
/// with a later put or another thread does.
#[test]
fn blocks_of_a_replaced_value_are_free_again() {
    for (design, publishes_late) in
        [(Design::VIPER, true), (Design::VIPER, false), (Design::VIPER_PACMAN, true)]
    {
        let options = options(RecordForm::Variable).design(design);
        let options = if publishes_late { options } else { options.set("late", "off").expect("a setting") };
        let mut store = Store::create_on(region(), &options).expect("a new pool");
        for round in 0..40 {
            // Clients write to blocks of their own: a page that its client holds is released another way.
            let (mut client, mut other) = (store.client(), store.client());
            other.put(b"large", &[round; 100_000]).expect("room");
            client.put(b"large", b"small").expect("room");
            if round % 2 == 0 {
                other.get(b"large").expect("it is there");
            }
            (0..3u8).for_each(|number| client.put(&[number], &[round]).expect("room"));
        }
        let report = store.check(&|_, _| ()).expect("a check");
        assert!(report.damage.places.is_empty(), "{design}: {:?}", report.damage);
    }
}

/// A put was refused for damage of the value that it replaces, although the new one was in force by then.
#[test]
fn damage_of_the_replaced_value_does_not_refuse_a_put() {
    for late in ["on", "off"] {
        let options = options(RecordForm::Variable).set("late", late).expect("a setting");
        let region = region();
        let mut store = Store::create_on(region.clone(), &options).expect("a new pool");
        let mut client = store.client();
        client.put(b"large", &[7; 100_000]).expect("room");
        let mut bytes = vec![0; region.len() as usize];
        region.read_racing(0, &mut bytes);
        let value = bytes.windows(1000).position(|window| window == [7; 1000]).expect("the value") as u64;
        // The number before a piece of a value, which the record proves by its own.
        region.store(value - 8, region.load(value - 8) ^ 1);
        client.put(b"large", b"small").expect("the new value needs nothing of the old one");
        (0..3u8).for_each(|number| client.put(&[number], b"another").expect("room"));
        assert_eq!(client.get(b"large").expect("sound"), Some(b"small".to_vec()));
        drop(client);
        let damage = store.check(&|_, _| ()).expect("a check").damage;
        assert!(!damage.places.is_empty(), "late {late}: the damage is told");
    }
}

/// Deletes, updates in place and reclamation draw no number, which is what else tells the superblock that the
/// pool is in use.
#[test]
fn every_first_change_of_a_run_begins_it_and_nothing_else_does() {
    type Call = fn(&Store, &mut Client) -> Result<(), Error>;
    let changes: [(&str, Call); 6] = [
        ("delete", |_, client| client.delete(&3u64.to_le_bytes())),
        ("remove", |_, client| client.remove(&3u64.to_le_bytes()).map(drop)),
        ("update to nothing", |_, client| client.update::<[u8; 24]>(&3u64.to_le_bytes(), |_| None)),
        ("update in place", |_, client| {
            client.update_in_place(&3u64.to_le_bytes(), 0, |old| old + 1).map(drop)
        }),
        ("put", |_, client| client.put(&3u64.to_le_bytes(), &value(9))),
        ("reclamation", |store, _| store.compact().map(drop)),
    ];
    for (what, change) in changes {
        let region = closed(&fixed());
        let store = Store::open_on(region.clone(), &fixed()).expect("a pool");
        change(&store, &mut store.client()).unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(store);
        assert!(!Space::probe(&region).expect("a pool").is_clean(), "{what}");
    }
    let region = closed(&fixed());
    let store = Store::open_on(region.clone(), &fixed()).expect("a pool");
    let mut client = store.client();
    assert_eq!(client.get(&3u64.to_le_bytes()).expect("a read"), Some(value(3)));
    assert!(!client.remove(&KEYS.to_le_bytes()).expect("nothing to do"));
    assert_eq!(client.update_in_place(&KEYS.to_le_bytes(), 0, |old| old).expect("nothing to do"), None);
    assert_eq!(client.pin().iter().count() as u64, KEYS);
    drop(client);
    drop(store);
    assert!(Space::probe(&region).expect("a pool").is_clean());
}

#[test]
fn updates_in_place_are_read_and_survive() {
    let region = closed(&fixed());
    let mut store = Store::open_on(region.clone(), &fixed()).expect("a pool");
    for round in 0..3 {
        let mut client = store.client();
        for number in 0..KEYS {
            let key = number.to_le_bytes();
            let old = client.update_in_place(&key, 16, |old| old.wrapping_add(number)).expect("a word");
            assert_eq!(old, Some(u64::MAX.wrapping_add(number * round)));
            let found = client.get(&key).expect("a read").expect("it is there");
            assert_eq!(found[..16], value(number)[..16]);
            assert_eq!(found[16..], u64::MAX.wrapping_add(number * (round + 1)).to_le_bytes());
        }
        drop(client);
        drop(store);
        store = Store::open_on(region.clone(), &fixed()).expect("a pool");
        assert_eq!(store.stats().records, KEYS);
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let store = Store::create_on(region(), &fixed()).expect("a new pool");
    let mut client = store.client();
    assert_eq!(store.limits(), (8, 24));
    for (key, value) in [(7, 24), (8, 23), (8, 0)] {
        let error = client.put(&vec![1; key], &vec![1; value]).expect_err("another size");
        assert!(matches!(error, Error::RecordSize { key: 8, value: 24 }), "{error}");
    }
    client.put(&[1; 8], &[2; 24]).expect("room");
    for at in [1, 4, 17, 24, u64::MAX] {
        let error = client.update_in_place(&[1; 8], at, |_| 0).expect_err("no word of the value");
        assert!(matches!(error, Error::NotInPlace), "{error}");
    }
    let batch = quipu::WriteBatch::new();
    let refusals = [client.write(&batch), client.put_until(&[1; 8], &[2; 24], 5)];
    for error in refusals.into_iter().map(|refused| refused.expect_err("not in this design")) {
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Argument);
    }
    let changed = client.update_with(&[1; 8], |_| quipu::Change::put_until(&[3; 24][..], 5));
    let refusals =
        [changed, client.version(&[1; 8]).map(drop), client.put_if_version(&[1; 8], None, b"").map(drop)];
    for error in refusals.into_iter().map(|refused| refused.expect_err("not in this design")) {
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
    assert_eq!(client.expiry(&[1; 8]).expect("a read"), Some(quipu::Expiry::Never));
    assert_eq!(client.get(&[1; 8]).expect("a read"), Some(vec![2; 24]));

    let store = Store::create_on(region(), &options(RecordForm::Variable)).expect("a new pool");
    let mut client = store.client();
    client.put(b"key", &[2; 24]).expect("room");
    assert!(matches!(client.update_in_place(b"key", 0, |_| 0), Err(Error::NotInPlace)));
    let quipu = fixed().design(Design::QUIPU);
    let store = Store::create_on(region(), &quipu).expect("a new pool");
    let error = store.client().update_in_place(b"key", 0, |_| 0).expect_err("a log changes nothing in place");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

/// A page holds one record of 2100 bytes, and almost as much stays free: more than is worth reclaiming, and
/// of no use.
#[test]
fn free_bytes_that_are_of_no_use_are_not_moved_about_for_ever() {
    let options = options(RecordForm::Variable).cleaner(false);
    let store = Store::create_on(region(), &options).expect("a new pool");
    let mut client = store.client();
    let keys =
        (0..1000u64).take_while(|key| client.put(&key.to_le_bytes(), &[7; 2100]).is_ok()).count() as u64;
    assert!(keys > 100, "{keys} records");
    let moved = store.stats().moved_bytes;
    assert!(moved < 20 * (1 << 20), "{moved} bytes moved while a pool of a megabyte was filled");
    assert!(client.put(&keys.to_le_bytes(), &[8; 2100]).is_err(), "it is full");
    for key in (0..keys).step_by(2) {
        client.delete(&key.to_le_bytes()).expect("deletes need no room");
    }
    for key in (0..keys).step_by(4) {
        client.put(&key.to_le_bytes(), &[9; 2100]).expect("what was deleted is room");
    }
    assert_eq!(store.stats().records, keys - keys.div_ceil(2) + keys.div_ceil(4));
}

/// Nothing in a page proves its records, so nobody could tell which of them the system has lost.
#[test]
fn a_file_is_refused_after_a_crash_of_the_system_but_not_when_it_was_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let options = fixed().size(4 << 20).medium(MediumKind::File);
    let reboot = || {
        let region = Region::open(&path, Some(MediumKind::File), Durability::Process).expect("a file");
        let (space, _) = Space::examine(region).expect("a pool");
        space.update_superblock(|superblock| superblock.boot_id = [0x5a; 16]);
    };
    let store = Store::create(&path, &options).expect("a new pool");
    store.client().put(&[1; 8], &[2; 24]).expect("room");
    store.close().expect("closed");
    reboot();
    let store = Store::open(&path, &options).expect("nothing was lost");
    assert_eq!(store.client().get(&[1; 8]).expect("a read"), Some(vec![2; 24]));
    assert!(store.client().remove(&[1; 8]).expect("a change"));
    drop(store);
    drop(Store::open(&path, &options).expect("the process died, and nothing else"));
    reboot();
    let error = Store::open(&path, &options).expect_err("some of it may be lost");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains("crash of the operating system"), "{error}");
}

/// Keys that an iteration finds of those that are there all the while, although their records are moved and
/// the blocks that these were in are free before it comes to them.
fn iterated(twin: Option<Twin>) -> usize {
    let options = options(RecordForm::Variable).cleaner(false);
    let _left_out = leave_out(twin);
    let store = Store::create_on(region(), &options).expect("a new pool");
    let mut client = store.client();
    for key in 0..2000u64 {
        client.put(&key.to_le_bytes(), &[1; 40]).expect("room");
    }
    for key in (0..2000u64).filter(|key| key % 8 != 0) {
        client.delete(&key.to_le_bytes()).expect("it is there");
    }
    let reader = store.client();
    let guard = reader.pin();
    let mut records = guard.iter();
    let first = records.next();
    assert!(store.compact().expect("sound").0 > 2, "blocks are reclaimed");
    for key in 2000..3000u64 {
        client.put(&key.to_le_bytes(), &vec![2; 100 + key as usize % 40]).expect("room");
    }
    let key_of = |key: &[u8]| key.try_into().map(u64::from_le_bytes).expect("eight bytes");
    first.into_iter().chain(records).filter(|(key, _)| key_of(key) < 2000).count()
}

#[test]
fn blocks_that_an_iteration_will_look_into_are_not_used_again() {
    assert_eq!(iterated(None), 250);
    // At times the new records happen to lie elsewhere.
    let is_convicted = (0..4).any(|_| iterated(Some(Twin::RecycledEarly)) < 250);
    assert!(is_convicted, "a broken store keeps the promise");
}

/// Where the bitset of the page begins that has the record of a key.
fn bitset_of(region: &Region, key: [u8; 8]) -> u64 {
    let places = (0..region.len()).step_by(8);
    let record = places.filter(|at| region.load(*at) == u64::from_le_bytes(key)).last().expect("the key");
    record / 4096 * 4096 + 8
}

/// A mark that is lost while the store is open: a reader of the record is told, and does not look for it
/// for ever.
#[test]
fn a_record_that_has_lost_its_mark_is_an_error_to_whoever_looks_for_it() {
    for nodes in [NodePlace::Dram, NodePlace::Pm] {
        let mut options = fixed().cleaner(false);
        options.offset_map.nodes = nodes;
        let region = region();
        let store = Store::create_on(region.clone(), &options).expect("a new pool");
        let mut client = store.client();
        client.put(&[7; 8], &value(5)).expect("room");
        let bits = bitset_of(&region, [7; 8]);
        assert_eq!(region.load(bits), 1, "one record");
        region.store(bits, 0);
        let errors = [
            client.get(&[7; 8]).map(drop),
            client.update_in_place(&[7; 8], 0, |old| old).map(drop),
            client.delete(&[7; 8]),
            client.update(&[7; 8], |_| Some(value(6))).map(drop),
        ];
        for error in errors.into_iter().map(|done| done.expect_err("the record is gone")) {
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        }
    }
}

/// A mark that is lost while the store is open, and a put that finds that place free again: the index names
/// it already. The new record is not released as the old one.
#[test]
fn a_record_that_has_lost_its_mark_is_put_again_in_its_place() {
    for (late, nodes) in [(true, NodePlace::Dram), (false, NodePlace::Dram), (false, NodePlace::Pm)] {
        let mut options = fixed().cleaner(false).with(|options| options.late = late);
        options.offset_map.nodes = nodes;
        let region = region();
        let store = Store::create_on(region.clone(), &options).expect("a new pool");
        let mut client = store.client();
        client.put(&[7; 8], &value(5)).expect("room");
        client.put(&[8; 8], &value(5)).expect("room");
        let bits = bitset_of(&region, [7; 8]);
        assert_eq!(region.load(bits), 3, "two records");
        region.store(bits, 2);
        // The next writer there looks at the page anew.
        client.delete(&[8; 8]).expect("a delete");
        client.put(&[7; 8], &value(6)).expect("room");
        assert_eq!(region.load(bits), 1, "in the first slot; late {late}, {nodes:?}");
        assert_eq!(client.get(&[7; 8]).expect("sound"), Some(value(6)));
        assert_eq!(region.load(bits), 1, "published; late {late}, {nodes:?}");
    }
}

/// Blocks that a value fills are not garbage, whatever else they have room for.
#[test]
fn a_large_value_is_no_garbage() {
    let options = options(RecordForm::Variable).cleaner(false);
    let store = Store::create_on(region(), &options).expect("a new pool");
    let mut client = store.client();
    client.put(b"small", b"value").expect("room");
    let garbage = store.stats().garbage_bytes;
    let len = 300 << 10;
    client.put(b"large", &vec![7; len]).expect("room");
    let stats = store.stats();
    assert!(stats.record_bytes >= len as u64 && stats.garbage_bytes <= garbage, "{stats:?}");
    client.delete(b"large").expect("a delete");
    assert!(store.stats().record_bytes < len as u64);
}
