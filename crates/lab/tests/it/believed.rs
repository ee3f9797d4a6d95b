//! Designs whose index is in the pool and believed: the store opens at once, and dead records are found
//! later.

use crate::shared::misleading::like_records;
use quipu::internals::Techniques;
use quipu::{Client, Design, Error, ErrorKind, Options, Store};
use quipu_medium::sim::SimOptions;
use quipu_medium::{Durability, LINE, MediumKind, Pages, Region, WORD};
use quipu_parts::space::Space;

const ZONE: u64 = 64 << 10;
/// First byte of the records of a segment, and of its end mark.
const FIRST_RECORD: u64 = 64;
const END_MARK: u64 = 40;

fn designs() -> impl Iterator<Item = Design> {
    Design::ALL.iter().copied().filter(|design| design.can().index_in_pool)
}

fn options(design: Design) -> Options {
    Options::new().design(design).zone_size(ZONE).cleaner(false).recovery_threads(1)
}

fn put(client: &mut Client, number: u64, version: u64) {
    client.put(&number.to_le_bytes(), &[version as u8; 100]).expect("room");
}

/// A store with so many keys, each written twice, and all of their first records dead.
fn written_twice(region: Region, options: &Options, keys: u64) -> Store {
    let store = Store::create_on(region, options).expect("a new pool");
    let mut client = store.client();
    for version in 0..2 {
        (0..keys).for_each(|number| put(&mut client, number, version));
    }
    drop(client);
    store
}

fn holds(store: &mut Store, keys: u64) {
    let client = store.client();
    for number in 0..keys {
        let found = client.get(&number.to_le_bytes()).expect("a read");
        assert_eq!(found.as_deref(), Some(&[1; 100][..]), "key {number}");
    }
    drop(client);
    let report = store.check(&|_, _| {}).expect("a check");
    assert!(report.is_sound(), "{}", report.damage);
    assert_eq!(report.keys, keys);
}

/// Lines that an open reads after a clean close or a crash, and zones in use.
fn lines_of_an_open(design: Design, keys: u64, closes: bool) -> (u64, u64) {
    let region = Region::sim(SimOptions { len: 16 << 20, ..SimOptions::default() });
    let sim = region.simulator().expect("simulated").clone();
    let options = options(design);
    let store = written_twice(region.clone(), &options, keys);
    let used = store.stats().zones - store.stats().free_zones;
    if closes {
        store.close().expect("closed");
    } else {
        drop(store);
    }
    let before = sim.cost();
    let mut store = Store::open_on(region, &options).expect("opened");
    let lines = (sim.cost() - before).lines_read;
    assert_eq!((store.recovery().records, store.recovery().was_clean), (0, closes), "no record is read");
    holds(&mut store, keys);
    (lines, used)
}

#[test]
fn an_open_reads_headers_and_no_records() {
    for design in designs() {
        let (few, used_by_few) = lines_of_an_open(design, 1000, true);
        let (many, used) = lines_of_an_open(design, 20_000, true);
        let records = 2 * 20_000;
        assert!(used > 5 * used_by_few, "{design}: {used} zones");
        if design == Design::MPKV_BASELINE {
            // Locks in buckets have to be freed, which takes a line of each (MPKV, section 3.1).
            assert!(many > records / 10, "{many} lines for {records} records");
            continue;
        }
        assert!(many < records / 10, "{design}: {many} lines for {records} records");
        let growth = (many - few) as f64 / (used - used_by_few) as f64;
        // A line of a segment, and of an index the names of what is in a zone.
        assert!(growth < 24.0, "{design}: {growth} lines a zone");
    }
}

/// The end of the segment that was open is not looked for either. A close without any survey marks it, and
/// the next open finds nothing missing.
#[test]
fn an_open_after_a_crash_reads_no_records_either() {
    for design in designs() {
        let (closed, _) = lines_of_an_open(design, 1000, true);
        let (crashed, used) = lines_of_an_open(design, 1000, false);
        assert!(crashed <= closed + 2 * used + 100, "{design}: {crashed} lines after a crash, {closed} else");
        let region = Region::dram(16 << 20, Pages::Ordinary).expect("memory");
        drop(written_twice(region.clone(), &options(design), 1000));
        // One more each time.
        for _ in 0..3 {
            let store = Store::open_on(region.clone(), &options(design)).expect("a pool");
            (0..10).for_each(|number| put(&mut store.client(), number, 1));
        }
        for was_clean in [false, true] {
            let mut store = Store::open_on(region.clone(), &options(design)).expect("a pool");
            assert_eq!(store.recovery().was_clean, was_clean, "{design}");
            assert!(store.activity().is_surveying, "{design}");
            if was_clean {
                holds(&mut store, 1000);
            }
            store.close().expect("closed");
        }
    }
}

/// Dead records in segments of an earlier run are found before a victim is chosen, with the same result as if
/// there had been no earlier run.
#[test]
fn a_survey_finds_all_that_is_dead() {
    for design in designs() {
        for techniques in [Techniques::ALL, Techniques::RAW] {
            let options = options(design).with(|options| options.techniques = techniques);
            let region = Region::dram(16 << 20, Pages::Ordinary).expect("memory");
            let store = written_twice(region.clone(), &options, 10_000);
            let known = store.stats();
            assert!(known.garbage_bytes > 0);
            // As a crash leaves it.
            drop(store);
            let mut store = Store::open_on(region, &options).expect("recovery");
            assert!(store.activity().is_surveying, "{design}");
            let at_open = store.stats();
            assert_eq!(at_open.garbage_bytes, 0, "{design}");
            // The end of the segment that was open is found out as well.
            let in_open = known.record_bytes - at_open.record_bytes;
            assert!((1..ZONE).contains(&in_open), "{design}: {in_open} bytes");
            // Superseded meanwhile, and noted by the superseding writer.
            let mut client = store.client();
            (0..100).for_each(|number| put(&mut client, number, 1));
            drop(client);
            assert!(store.stats().garbage_bytes > 0, "{design}");
            let (freed, _) = store.compact().expect("room");
            assert!(
                !store.activity().is_surveying && freed > 10,
                "{design}: {freed} segments are free again"
            );
            assert_eq!(store.stats().garbage_bytes, 0, "{design}: all of it was found");
            holds(&mut store, 10_000);
        }
    }
}

/// The cleaner does it without being called.
#[test]
fn the_cleaner_surveys_after_an_open() {
    for design in designs() {
        let options = options(design).cleaner(true);
        let region = Region::dram(16 << 20, Pages::Ordinary).expect("memory");
        let store = written_twice(region.clone(), &options, 5000);
        let garbage = store.stats().garbage_bytes;
        drop(store);
        let mut store = Store::open_on(region, &options).expect("recovery");
        while store.activity().is_surveying {
            std::thread::yield_now();
        }
        assert_eq!(store.stats().garbage_bytes, garbage, "{design}");
        holds(&mut store, 5000);
    }
}

/// A full pool that was opened again makes room of records that were dead before.
#[test]
fn a_full_pool_finds_room_in_earlier_segments() {
    for design in designs() {
        let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
        let options = options(design).zone_size(16 << 10);
        let mut store = Store::create_on(region.clone(), &options).expect("a new pool");
        for round in 0..20u64 {
            let mut client = store.client();
            for number in 0..1500u64 {
                put(&mut client, number, round);
            }
            drop(client);
            drop(store);
            store = Store::open_on(region.clone(), &options).expect("recovery");
        }
        assert_eq!(store.stats().records, 1500);
        let report = store.check(&|_, _| {}).expect("a check");
        assert!(report.is_sound(), "{design}: {}", report.damage);
    }
}

/// A deletion changes the index and writes no record, in a full pool too.
#[test]
fn a_delete_takes_no_room() {
    for design in designs() {
        let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
        let options = options(design).zone_size(16 << 10);
        let mut store = Store::create_on(region, &options).expect("a new pool");
        let mut client = store.client();
        let mut keys = 0u64;
        let full = loop {
            match client.put(&keys.to_le_bytes(), &[1; 100]) {
                Ok(()) => keys += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::PoolFull { .. }), "{design}: {full}");
        let written = store.stats().record_bytes;
        for number in 0..keys {
            client.delete(&number.to_le_bytes()).expect("no need of room");
            client.delete(&number.to_le_bytes()).expect("nor if it is not there");
        }
        let stats = store.stats();
        assert_eq!((stats.records, stats.tombstone_bytes), (0, 0), "{design}");
        assert!(stats.record_bytes <= written && stats.index_pm_bytes > 0, "{design}");
        drop(client);
        store.compact().expect("nothing has to move");
        assert_eq!(store.stats().record_bytes, 0, "{design}");
        let report = store.check(&|_, _| {}).expect("a check");
        assert!(report.is_sound(), "{design}: {}", report.damage);
    }
}

/// Nothing in the index proves that it is the latest, and a record cannot tell whether its key was deleted
/// after it.
#[test]
fn a_file_is_refused_after_a_crash_of_the_system_and_nothing_is_salvaged() {
    for design in designs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pool");
        let options = options(design).size(4 << 20).medium(MediumKind::File);
        let reboot = || {
            let region = Region::open(&path, Some(MediumKind::File), Durability::Process).expect("a file");
            let (space, _) = Space::examine(region).expect("a pool");
            space.update_superblock(|superblock| superblock.boot_id = [0x5a; 16]);
        };
        let store = Store::create(&path, &options).expect("a new pool");
        store.client().put(b"key", b"value").expect("room");
        store.close().expect("closed");
        reboot();
        let store = Store::open(&path, &options).expect("nothing was lost");
        assert_eq!(store.client().get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
        // A deletion alone is a change as well.
        assert!(store.client().remove(b"key").expect("a change"));
        drop(store);
        drop(Store::open(&path, &options).expect("the process died, and nothing else"));
        let store = Store::open(&path, &options).expect("again");
        assert!(store.client().put_if_absent(b"other", b"value").expect("room"));
        drop(store);
        reboot();
        let error = Store::open(&path, &options).expect_err("some of it may be lost");
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains("crash of the operating system"), "{error}");
        let error =
            Store::salvage(&path, folder.path().join("new"), &options, &|_, _| {}).expect_err("refused");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(!folder.path().join("new").exists());
    }
}

/// Tells how often a key is not to be had, and holds what the store shows against what was put.
fn damage_shown(store: &mut Store, keys: u64) -> usize {
    let client = store.client();
    let mut shown = 0;
    for number in 0..keys {
        match client.get(&number.to_le_bytes()) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&[1; 100][..]), "key {number}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                shown += 1;
            }
        }
    }
    assert!(client.pin().iter().count() as u64 <= keys);
    drop(client);
    let is_sound = store.check(&|_, _| {}).is_ok_and(|report| report.is_sound());
    assert!(shown == 0 || !is_sound, "a check finds it as well");
    shown
}

/// An iteration ends where the index does not say how to go on, and its caller is told that this was not the
/// end.
#[test]
fn an_iteration_that_a_damaged_index_ends_says_so() {
    const KEYS: u64 = 400;
    let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
    let options = options(Design::FLATSTORE_FF).zone_size(16 << 10);
    let store = written_twice(region.clone(), &options, KEYS);
    let client = store.client();
    let all = || {
        let guard = client.pin();
        let mut pairs = guard.iter();
        let found = pairs.by_ref().count() as u64;
        (found, pairs.ended())
    };
    assert!(matches!(all(), (KEYS, Ok(()))));
    // Words of nodes that lead to others, and all else, in turn: whatever the index reads while it walks.
    let mut told = 0;
    for at in (16 << 10..region.len()).step_by(8) {
        let word = region.load(at);
        if word == 0 || at % 64 > 32 {
            continue;
        }
        region.store(at, word ^ 0x00ff_ffff_0000_0000);
        if let (_, Err(error)) = all() {
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            assert!(error.to_string().contains("restore"), "{error}");
            told += 1;
        }
        region.store(at, word);
        if told > 3 {
            break;
        }
    }
    assert!(told > 0, "no damage was met");
}

/// An index in the pool is believed, but not trusted: a wrong entry is an error, never a panic and
/// never another key's value.
#[test]
fn a_damaged_entry_of_the_index_is_noticed() {
    const KEYS: u64 = 50;
    for design in designs() {
        let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
        let options = options(design).zone_size(16 << 10);
        let store = written_twice(region.clone(), &options, KEYS);
        let units = store.stats().record_bytes / (2 * KEYS) / 8;
        store.close().expect("closed");
        // Words that tell the length of a record are most likely entries, and marked ones of a fingerprint
        // and a place in the pool. Each is made to name another place, in the pool or beyond.
        let tells_length = |word: u64| word << 2 >> 50 == units;
        let names_place =
            |word: u64| word & 7 == 1 && word >> 48 != 0 && word << 16 >> 19 << 3 < region.len();
        let is_entry = |word| match design {
            Design::MPKV | Design::MPKV_BASELINE => names_place(word),
            _ => tells_length(word),
        };
        let mut shown = [0; 2];
        for at in (16 << 10..region.len()).step_by(8) {
            let word = region.load(at);
            if !is_entry(word) || shown.iter().sum::<usize>() > 8 {
                continue;
            }
            for (flip, shown) in [1 << 4, 0xfff << 30].into_iter().zip(&mut shown) {
                region.store(at, word ^ flip);
                if let Ok(mut store) = Store::open_on(region.clone(), &options) {
                    *shown += damage_shown(&mut store, KEYS);
                }
                region.store(at, word);
            }
        }
        assert!(shown.iter().all(|shown| *shown > 0), "{design}: {shown:?}");
    }
}

/// The first byte of the segment that a crash has left open.
fn open_segment(region: &Region) -> u64 {
    let is_open = |at: &u64| {
        region.load(at + WORD) as u32 == u32::from_le_bytes(*b"QSEG") && region.load(at + END_MARK) == 0
    };
    (0..region.len()).step_by(ZONE as usize / 4).find(is_open).expect("an open segment")
}

/// Records in the index were durable before, so a record of an open segment that does not prove itself is
/// damaged if the index names it, or one behind it. The segment is kept then, whoever looks for its end: its
/// zone would be given to others.
#[test]
fn a_damaged_record_is_not_the_end_of_a_segment_that_the_index_names() {
    // In the value, which leaves the key legible; in the header; and the whole line.
    let first = FIRST_RECORD..FIRST_RECORD + LINE;
    let value = FIRST_RECORD + LINE..FIRST_RECORD + LINE + WORD;
    // And a value that looks like so many records that no search for others comes to an end: the index says
    // where the last is.
    let misleading = like_records(ZONE);
    let cases =
        [(1, value.clone(), false), (100, value, false), (100, first.clone(), false), (100, first, true)];
    for (keys, damaged, misleads) in cases {
        for (design, closes) in designs().flat_map(|design| [(design, false), (design, true)]) {
            let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
            let options = options(design);
            let store = Store::create_on(region.clone(), &options).expect("a new pool");
            let mut client = store.client();
            if misleads {
                client.put(b"misleads", &misleading).expect("room");
            }
            (0..keys).for_each(|number| put(&mut client, number, 1));
            drop((client, store));
            let segment = open_segment(&region);
            for word in damaged.clone().step_by(WORD as usize) {
                region.store(segment + word, 0);
            }
            let open = || Store::open_on(region.clone(), &options).expect("a pool");
            let mut store = open();
            if closes {
                store.close().expect("closed");
                store = open();
            }
            store.compact().expect("room");
            let mut client = store.client();
            for round in 0..100 {
                (1_000..1_500).for_each(|number| put(&mut client, number, round));
            }
            for number in u64::from(!misleads)..keys {
                let found = client.get(&number.to_le_bytes()).expect("a read");
                assert_eq!(found.as_deref(), Some(&[1; 100][..]), "{design}: key {number} of {keys}");
            }
            drop(client);
            let report = store.check(&|_, _| {}).expect("a check");
            let is_in_segment = |offset: u64| (segment..segment + ZONE).contains(&offset);
            let places = &report.damage.places;
            assert!(places.iter().any(|place| is_in_segment(place.offset)), "{design}: {}", report.damage);
        }
    }
}
