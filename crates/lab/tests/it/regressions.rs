//! One test for each fault that was found, named for it.

use quipu::internals::twin::leave_out;
use quipu::internals::{Techniques, Testing, Twin};
use quipu::{Design, Options, Store};
use quipu_lab::crash::{CrashConfig, explore};
use quipu_medium::sim::{SimArena, SimOptions, sched};
use quipu_medium::{Pages, Region};

fn options() -> Options {
    Options::new().zone_size(16 << 10)
}

/// A process died between writing a record and its fence. Recovery showed the record, so a power failure
/// later must not take it away: it has to be made durable before the store is handed out.
#[test]
fn what_recovery_shows_after_a_process_crash_survives_a_power_failure() {
    let region = Region::sim(SimOptions::default());
    let sim = region.simulator().expect("simulated").clone();
    let store = Store::create_on(region, &options()).expect("a new pool");
    let mut client = store.client();
    client.put(b"before", b"1").expect("room");
    let mut crashes = Vec::new();
    let crashed = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = crashed.clone();
    sim.set_observer(Some(Box::new(move |sim, _| seen.borrow_mut().push(sim.snapshot()))));
    client.put(b"key", b"value").expect("room");
    sim.set_observer(None);
    crashes.append(&mut crashed.borrow_mut());
    let mut arena = SimArena::new();
    let mut shown = 0;
    for (seed, crash) in crashes.iter().enumerate() {
        let region = arena.boot_process_crash(crash, seed as u64);
        let sim = region.simulator().expect("simulated").clone();
        let store = Store::open_on(region, &options()).expect("recovery");
        let found = store.client().get(b"key").expect("a read");
        let power_lost = sim.snapshot();
        drop(store);
        let region = arena.boot(&power_lost, &power_lost.nothing(), seed as u64);
        let store = Store::open_on(region, &options()).expect("recovery");
        assert_eq!(store.client().get(b"key").expect("a read"), found);
        shown += found.is_some() as usize;
    }
    assert!(shown > 0, "no crash point showed the record in flight");
}

/// Runs in which the explorer once found that a segment's header could be overwritten, or its tail lost.
#[test]
fn runs_that_once_failed_pass() {
    pass([3, 201, 218, 257, 573].map(|seed| (Design::QUIPU, seed)));
}

/// Explores the runs of these seeds, in which nothing may be found.
fn pass(runs: impl IntoIterator<Item = (Design, u64)>) {
    for (design, seed) in runs {
        let config = CrashConfig { design, seed, runs: Some(1), ..CrashConfig::default() };
        let report = explore(&config, &mut |_, _| {}).expect("settings that there are");
        assert_eq!(report.violations, 0, "{:#?}", report.details);
    }
}

/// Recovery noted for every superseded record that its segment holds tombstones back, but for heads of large
/// values whose zones were someone else's by then. So the tombstone went before a copy of such a head that
/// had lost, and the next recovery found a head that nothing superseded and that named no value.
#[test]
fn a_head_without_its_value_holds_tombstones_after_recovery_too() {
    pass([(Design::QUIPU, 50), (Design::FLATSTORE_M, 60)]);
}

/// A client whose segment was taken away, or was full, marked its end when it left, and ended before its
/// thread fenced again. A close by another thread then said that all was durable, and after a power failure
/// the mark was missing from a pool that was clean.
#[test]
fn an_end_mark_is_durable_when_its_client_is_gone() {
    pass([(Design::FLATSTORE_H, 10), (Design::FLATSTORE_H, 80), (Design::FLATSTORE_M, 64)]);
}

/// A process died while it created a pool, with the magic word in its caches. The next one opened the pool,
/// and a power failure before its first write took it away again.
#[test]
fn an_opened_pool_stays_although_its_creation_never_ended() {
    pass([(Design::QUIPU, 64)]);
}

/// A cleaner took an expired record out of an index that has whole keys of eight bytes. Such an index does
/// not ask which word is meant, so a record that a client had written since went out in its place.
#[test]
fn a_record_that_follows_an_expired_one_stays_when_that_is_cleaned() {
    pass([(Design::NSTORE, 380), (Design::NSTORE, 459)]);
}

/// A reader found the record that was about to expire, and asked for the time when another record had taken
/// its place: it said "absent" of a key that had a value all the time.
#[test]
fn a_key_that_is_renewed_in_time_is_not_absent() {
    let (design, runs) = (Design::FLATSTORE_H, Some(1));
    let config = CrashConfig { design, seed: 69, runs, ops: 40, threads: 2, ..CrashConfig::default() };
    let report = explore(&config, &mut |_, _| {}).expect("settings that there are");
    assert_eq!(report.violations, 0, "{:#?}", report.details);
}

/// A second engine on the same memory would seal and rewrite what the first still appends to.
#[test]
fn a_region_serves_one_store_at_a_time() {
    let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
    let store = Store::create_on(region.clone(), &options()).expect("a new pool");
    let second = Store::open_on(region.clone(), &options()).expect_err("refused");
    assert_eq!(second.kind(), quipu::ErrorKind::InUse, "{second}");
    drop(store);
    Store::open_on(region, &options()).expect("free again");
}

/// An `AsRef` that answers differently each time must not get a record past the limits.
#[test]
fn put_many_asks_for_its_bytes_once() {
    use std::cell::Cell;
    struct Growing(Cell<usize>, Vec<u8>);
    impl AsRef<[u8]> for Growing {
        fn as_ref(&self) -> &[u8] {
            self.0.set(self.0.get() + 1);
            &self.1[..if self.0.get() == 1 { 10 } else { self.1.len() }]
        }
    }
    let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
    let store = Store::create_on(region, &options()).expect("a new pool");
    let mut client = store.client();
    let too_large = vec![7; store.limits().1 as usize + 1];
    let refused = client.put_many(&[("key", Growing(Cell::new(0), too_large))]).expect_err("refused");
    assert!(matches!(refused, quipu::Error::ValueTooLarge { .. }), "{refused}");
    assert_eq!(client.get(b"key").expect("a read"), None);
}

/// In a full pool every client must be able to delete, not only the one that took the last zone.
#[test]
fn the_reserve_serves_the_deletes_of_all_clients() {
    let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
    let store = Store::create_on(region, &options()).expect("a new pool");
    let mut clients: Vec<_> = (0..4).map(|_| store.client()).collect();
    let mut keys = 0u32;
    while clients[keys as usize % 4].put(&keys.to_le_bytes(), &[1; 500]).is_ok() {
        keys += 1;
    }
    for key in 0..keys.min(200) {
        let deleted = clients[key as usize % 4].remove(&key.to_le_bytes());
        assert!(matches!(deleted, Ok(true)), "key {key}: {deleted:?}");
    }
}

/// A life whose number is drawn again, after a crash of the system set the clock back, is another life.
#[test]
fn tiny_clock_blocks_and_reopening_never_bring_old_records_back() {
    let options =
        options().with(|options| options.testing = Testing { clock_block: Some(2), ..Testing::default() });
    let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
    drop(Store::create_on(region.clone(), &options).expect("a new pool"));
    for round in 0..20u32 {
        let store = Store::open_on(region.clone(), &options).expect("recovery");
        let mut client = store.client();
        client.put(b"key", &round.to_le_bytes()).expect("room");
        assert!(client.delete(b"other").is_ok());
        drop(client);
        drop(store);
        let store = Store::open_on(region.clone(), &options).expect("recovery");
        assert_eq!(store.client().get(b"key").expect("a read"), Some(round.to_le_bytes().to_vec()));
    }
}

/// A superblock is protected by a check that anyone can compute: its values must be possible, or the pool
/// is refused.
#[test]
fn forged_geometry_and_clocks_are_refused() {
    use quipu_parts::space::{FormatOptions, FreeListKind, Space};
    let format = |zone_size| {
        let region = Region::dram(4 << 20, Pages::Ordinary).expect("memory");
        let options = FormatOptions {
            zone_size,
            design: 1,
            settings: [0; _],
            pools: Vec::new(),
            free_list: FreeListKind::Persistent,
            secret: [1; 32],
            boot_id: [2; 16],
        };
        (Space::format(region.clone(), &options).expect("a space"), region)
    };
    let refused = |region: Region| Store::open_on(region, &options()).expect_err("refused").kind();
    let (space, region) = format(12 << 10);
    drop(space);
    assert_eq!(refused(region), quipu::ErrorKind::Damaged);
    for forge in [
        (|superblock| superblock.clock_ceiling.set(u64::MAX - 1)) as fn(&mut quipu_parts::space::Superblock),
        |superblock| superblock.run.set(u64::MAX),
    ] {
        let (space, region) = format(16 << 10);
        space.update_superblock(forge);
        drop(space);
        assert_eq!(refused(region), quipu::ErrorKind::Damaged);
    }
}

/// The first change after a clean open gave back an empty segment before the superblock said that the pool
/// was in use. A crash then left a closed pool whose zones were not those that it named.
#[test]
fn a_run_begins_before_a_dead_segment_is_freed() {
    let region = Region::sim(SimOptions { len: 1 << 20, ..SimOptions::default() });
    let sim = region.simulator().expect("simulated").clone();
    let options = options().recovery_threads(1);
    let store = Store::create_on(region.clone(), &options).expect("a new pool");
    // One zone beside the reserve: so few that writers help compaction, and not so few that they wait for it.
    let few = 2 + 1;
    let mut client = store.client();
    let mut keys = 0u32;
    while store.stats().free_zones > few {
        client.put(&keys.to_le_bytes(), &[7; 4096]).expect("room");
        keys += 1;
    }
    // All that the first segment holds, at once: piece by piece, compaction would come to it.
    client.put_many(&[0u32, 1, 2].map(|key| (key.to_le_bytes(), b"newer"))).expect("room");
    drop(client);
    store.close().expect("closed");
    let store = Store::open_on(region, &options).expect("opened");
    let crashes = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = crashes.clone();
    sim.set_observer(Some(Box::new(move |sim, _| seen.borrow_mut().push(sim.snapshot()))));
    let free = store.stats().free_zones;
    // These take a step of compaction, and then write nothing.
    for _ in 0..5 {
        assert!(!store.client().put_if_absent(&0u32.to_le_bytes(), b"other").expect("no need of room"));
    }
    assert!(store.stats().free_zones > free, "a zone came back");
    sim.set_observer(None);
    let mut arena = SimArena::new();
    for (seed, crash) in crashes.borrow().iter().enumerate() {
        for lost in [true, false] {
            let region = match lost {
                true => arena.boot(crash, &crash.nothing(), seed as u64),
                false => arena.boot_process_crash(crash, seed as u64),
            };
            let store = Store::open_on(region, &options).expect("recovery");
            for key in 0..keys {
                assert!(store.client().get(&key.to_le_bytes()).expect("a read").is_some(), "key {key}");
            }
        }
    }
}

/// After an open from a checkpoint it is not known which records are dead, and a cleaner copied every record
/// not known to be dead. It dropped the tombstone of a key. Later in the same segment it found a copy of an
/// older record of that key, which had lost against the deletion, and copied that. No index names the new
/// copy, but after a crash it was the only record of the key.
#[test]
fn a_cleaner_of_a_restored_segment_copies_no_record_that_is_older_than_a_tombstone_it_let_go() {
    use quipu_parts::record::Content;
    // More than a cleaner moves under one fence lie between the two.
    const BETWEEN: u64 = 1500;
    let (dead, lost) = (0, 1);
    let key = |number: u64| number.to_le_bytes();
    let testing = Testing { tiny_index: true, ..Testing::default() };
    let options = Options::new()
        .zone_size(256 << 10)
        .recovery_threads(1)
        .cleaner(false)
        .with(|options| options.testing = testing);
    let region = Region::sim(SimOptions { len: 8 << 20, ..SimOptions::default() });
    let sim = region.simulator().expect("simulated").clone();
    let store = Store::create_on(region.clone(), &options).expect("a new pool");
    let mut client = store.client();
    client.put(&key(dead), &[1; 8]).expect("room");
    (2..BETWEEN).for_each(|number| client.put(&key(number), &[1; 48]).expect("room"));
    client.put(&key(lost), &[1; 32]).expect("room");
    client.put(&key(dead), &[2; 8]).expect("room");
    client.put(&key(lost), &[2; 32]).expect("room");
    drop(client);
    store.close().expect("closed");
    // That copies lose takes a race. Here the first of these two becomes the tombstone, the second the older
    // record that lost.
    let gone = [7; 16];
    let first = replace_in_pool(&region, &key(dead), Content::tombstone(&gone), None);
    let second = replace_in_pool(&region, &key(lost), Content::value(&gone, &[3; 24]), Some(first - 1));
    assert!(second > first, "the tombstone stands before it");

    let store = Store::open_on(region, &options).expect("opened");
    assert!(store.recovery().from_checkpoint);
    assert_eq!(store.compact().expect("room").0, 1, "one segment");
    let crash = sim.snapshot();
    let region = SimArena::new().boot(&crash, &crash.nothing(), 1);
    let store = Store::open_on(region, &options).expect("recovery");
    assert!(!store.recovery().was_clean, "it was in use");
    assert_eq!(store.client().get(&gone).expect("a read"), None, "deleted before the crash");
    assert_eq!(store.stats().records, BETWEEN);
}

/// Writers who put many keys at a time filled a segment, began another one, and published all at the end. In
/// between a cleaner took the full segment, found that the index did not name those records, and gave them
/// up; then they were published.
#[test]
fn a_cleaner_does_not_take_for_dead_what_is_about_to_be_published() {
    for design in [Design::QUIPU, Design::FLATSTORE_H] {
        for seed in 170..200 {
            put_many_beside_a_cleaner(design, seed, 0);
        }
    }
}

/// The same where a batch stands in two segments, since some of its keys are hot. In a pool this small it has
/// also shown writers that were refused although their other segment had room.
#[test]
fn a_cleaner_does_not_take_for_dead_what_is_about_to_be_published_in_either_of_two_segments() {
    for design in [Design::QUIPU, Design::FLATSTORE_H] {
        for seed in 170..200 {
            put_many_beside_a_cleaner(design, seed, 2);
        }
    }
}

/// Puts batches of 32 pairs, and the first so many of these keys alone in between, so often that they are
/// hot.
fn put_many_beside_a_cleaner(design: Design, seed: u64, hot: u8) {
    let region = Region::sim(SimOptions { len: 1 << 20, seed, ..SimOptions::default() });
    let testing = Testing { tiny_index: hot > 0, ..Testing::default() };
    let options =
        options().design(design).recovery_threads(1).cleaner(false).with(|options| options.testing = testing);
    let store = Store::create_on(region, &options).expect("a new pool");
    let mut client = store.client();
    // So full that each write is preceded by a step of compaction. Each client has two segments if some keys
    // are hot.
    let mut keys = 0u32;
    while store.stats().free_zones > 5 + 2 * u64::from(hot) {
        client.put(&keys.to_le_bytes(), &[7; 2000]).expect("room");
        keys += 1;
    }
    let pairs = |round: u8| {
        let pair = |key: u8| ([key; 8], vec![round; if key < hot { 3900 } else { 400 }]);
        (0..32).map(pair).collect::<Vec<_>>()
    };
    let (mut many, mut other) = (store.client(), store.client());
    let writer = || {
        for round in 0..60 {
            for _ in 0..16 {
                (0..hot).for_each(|key| many.put(&[key; 8], &[0; 8]).expect("room"));
            }
            many.put_many(&pairs(round)).expect("room");
            for (key, value) in pairs(round) {
                let found = many.get(&key).expect("a read");
                assert!(found.as_deref() == Some(&value[..]), "{design}, seed {seed}: {key:?} is {found:?}");
            }
        }
    };
    let cleaner = || (0..1500u32).for_each(|_| other.put(b"another key", &[1; 8]).expect("room"));
    sched::run(seed, vec![Box::new(writer), Box::new(cleaner)]).expect("both end");
    assert!(store.stats().freed_segments > 0, "nothing was cleaned: this test sees nothing");
}

/// A writer that finds no room looks for garbage in segments that no client has open. It was refused although
/// there was garbage, in three cases. Another writer had two segments at that moment, the one that it had
/// filled and the next. Or others had used up all room that was made, and had opened every segment anew
/// meanwhile. Or their last writes, which made garbage of other records, were not published yet.
#[test]
fn a_writer_is_not_refused_because_another_one_is_between_two_segments() {
    write_at_once(4, 2, 22);
    write_at_once(2, 2, 7);
    write_at_once(3, 3, 4);
}

/// The driver needs its looks at other writers.
#[test]
fn a_driver_that_forgets_other_writers_refuses_one() {
    for twin in [Twin::OthersForgotten, Twin::TakesForgotten] {
        let is_refused = |work: fn()| {
            std::panic::catch_unwind(|| {
                let _left_out = leave_out(Some(twin));
                work();
            })
            .is_err()
        };
        let works: [fn(); 4] = [
            || write_at_once(4, 2, 22),
            || write_at_once(2, 2, 7),
            || write_at_once(3, 3, 4),
            a_writer_is_not_refused_because_another_one_replaces_a_large_value,
        ];
        assert!(works.into_iter().any(is_refused), "{twin:?}");
    }
}

/// So many writers write so many keys each, in pools in which puts may fill so many segments. Nobody may be
/// refused: a writer that finds no room has left its own segment, each of the others needs one, and what is
/// live fits the remaining ones with a place to spare. So a record in these is dead, or there is a place.
/// Cleaning gives that place to the writer, since the reserve has a zone for the copies, and one record is
/// more than writers demand of a segment.
fn write_at_once(segments: u64, writers: u64, keys: u64) {
    // In a segment of 16 KiB, with headers and keys.
    const RECORDS: u64 = 15;
    assert!((segments - (writers - 1)) * RECORDS > writers * keys);
    for design in [Design::QUIPU, Design::FLATSTORE_H, Design::FLATSTORE_PH] {
        let pool = pools_of(segments, design);
        for seed in 0..100 {
            let store = pool(seed);
            let write = |writer: u64| {
                let mut client = store.client();
                for round in 0..200 {
                    let key = [writer, round * 7 % keys].map(u64::to_le_bytes).concat();
                    client.put(&key, &[round as u8; 1000]).expect("room");
                }
            };
            let tasks = (0..writers).map(|writer| Box::new(move || write(writer)) as Box<dyn FnOnce()>);
            let ended = sched::run(seed, tasks.collect());
            ended.unwrap_or_else(|error| panic!("{design}, {segments} segments, seed {seed}: {error}"));
        }
    }
}

/// Makes pools, by their seeds, in which puts may fill so many segments, and in which writers clean.
fn pools_of(segments: u64, design: Design) -> impl Fn(u64) -> Store {
    // With all techniques each writer has a second segment for hot keys.
    let (design, techniques) = (Some(design), Techniques::RAW);
    let options = options()
        .design(design)
        .with(|options| options.techniques = techniques)
        .recovery_threads(1)
        .cleaner(false);
    let pool = move |len, seed| {
        let region = Region::sim(SimOptions { len, seed, ..SimOptions::default() });
        Store::create_on(region, &options).ok().filter(|store| store.stats().segments == segments)
    };
    let len = (0..1 << 20).step_by(4096).find(|len| pool(*len, 0).is_some()).expect("some size");
    move |seed| pool(len, seed).expect("it was one before")
}

/// The same beside a writer of a large value, who has the zone of the old one and that of the new one for a
/// moment. Of five zones one is its segment and two are its values; what the other writer has written last
/// fits the remaining two twice.
#[test]
fn a_writer_is_not_refused_because_another_one_replaces_a_large_value() {
    const KEYS: u64 = 15;
    let pool = pools_of(5, Design::QUIPU);
    for seed in 0..300 {
        let store = pool(seed);
        let write = |rounds: u64, keys: u64, value: usize| {
            let mut client = store.client();
            for round in 0..rounds {
                let key = [round * 7 % keys, value as u64].map(u64::to_le_bytes).concat();
                client.put(&key, &vec![round as u8; value]).expect("room");
            }
        };
        let large = Box::new(|| write(40, 1, 9000)) as Box<dyn FnOnce()>;
        let ended = sched::run(seed, vec![large, Box::new(|| write(200, KEYS, 1000))]);
        ended.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Puts a record of the same length in the place of the first one of a key in a closed pool, with this number
/// or that of the record. Returns the record's number.
fn replace_in_pool(
    region: &Region,
    key: &[u8],
    content: quipu_parts::record::Content<'_>,
    number: Option<u64>,
) -> u64 {
    use quipu_parts::heap::segments::{FIRST_RECORD, format_table};
    use quipu_parts::record::{Certifier, Encoder, RecordView};
    use quipu_parts::space::Space;
    let (space, _) = Space::examine(region.clone()).expect("a pool");
    let certifier = Certifier::new(space.superblock().secret());
    let mut bytes = vec![0; space.zone_size() as usize];
    let field = |bytes: &[u8], name| {
        let (_, at, _) = format_table().1.into_iter().find(|(field, ..)| *field == name).expect("a field");
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    for zone in space.committed_zones() {
        let start = space.zone_offset(zone);
        region.read_racing(start, &mut bytes);
        let life = certifier.life_key(field(&bytes, "life"), field(&bytes, "nonce"));
        let mut at = FIRST_RECORD;
        while let Ok(record) = RecordView::certified(&bytes[at as usize..], &certifier, life, at) {
            let (len, own) = (record.header.record_len(), record.header.sequence.get());
            if record.key == key {
                let mut encoder = Encoder::default();
                encoder.prepare(&certifier, life, at, &content);
                encoder.stamp(number.unwrap_or(own));
                assert_eq!(encoder.record().len() as u64, len);
                region.write_nt(start + at, encoder.record());
                region.fence();
                return own;
            }
            at += len;
        }
    }
    panic!("there is such a record");
}
