//! Viper's index, where it is and in which shape: remembered by the pool, and in the pool kept in agreement
//! with the records.

use quipu::internals::{CcehSettings, NodePlace, OffsetMap, RecordForm, SlotSettings};
use quipu::{Client, Design, Error, ErrorKind, Options, Store};
use quipu_medium::sim::{Sim, SimArena, SimOptions, Snapshot};
use quipu_medium::{Pages, Region};
use quipu_parts::space::{Space, SpaceError, ZoneId};
use std::cell::RefCell;
use std::rc::Rc;

const ZONE: u64 = 16 << 10;

fn options(nodes: NodePlace) -> Options {
    let slots = SlotSettings { form: RecordForm::Fixed { key: 8, value: 4 }, ..SlotSettings::default() };
    let offset_map = OffsetMap { nodes, shape: CcehSettings::dense() };
    Options::new()
        .design(Design::VIPER)
        .zone_size(ZONE)
        .with(|options| options.slots = slots)
        .with(|options| options.offset_map = offset_map)
        .cleaner(false)
        .recovery_threads(1)
}

fn in_pm() -> Options {
    options(NodePlace::Pm)
}

fn region(len: u64) -> Region {
    Region::dram(len, Pages::Ordinary).expect("memory")
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// So short that the index takes more than the records.
fn value(number: u64) -> [u8; 4] {
    (number as u32 ^ 0x7070_7070).to_le_bytes()
}

fn put(client: &mut Client, number: u64) -> Result<(), Error> {
    client.put(&key(number), &value(number))
}

/// Whether a store is sound and holds exactly these.
fn holds(store: &mut Store, keys: impl Iterator<Item = u64>) {
    let client = store.client();
    let mut expected = 0;
    for number in keys {
        assert_eq!(client.get(&key(number)).expect("a read"), Some(value(number).to_vec()), "key {number}");
        expected += 1;
    }
    drop(client);
    assert_eq!(store.stats().records, expected);
    let report = store.check(&|_, _| {}).expect("nobody else");
    assert!(report.is_sound(), "{}", report.damage);
    assert_eq!((report.keys, report.records), (expected, expected));
}

/// Snapshots before the first operations of `act` on the medium, at most so many.
fn snapshots(region: &Region, most: usize, act: impl FnOnce()) -> Vec<Snapshot> {
    let sim = region.simulator().expect("simulated").clone();
    let taken = Rc::new(RefCell::new(Vec::new()));
    let list = taken.clone();
    sim.set_observer(Some(Box::new(move |sim: &Sim, _| {
        if list.borrow().len() < most {
            list.borrow_mut().push(sim.snapshot());
        }
    })));
    act();
    sim.set_observer(None);
    taken.take()
}

/// Every image that a crash at one of these moments may leave, and that of a crash of the process alone.
fn crashes(snapshots: &[Snapshot], mut each: impl FnMut(Region)) {
    let mut arena = SimArena::new();
    for (number, snapshot) in snapshots.iter().enumerate() {
        for image in snapshot.images(number as u64, 6) {
            each(arena.boot(snapshot, &image, 1));
        }
        each(arena.boot_process_crash(snapshot, 1));
    }
}

#[test]
fn a_pool_remembers_where_its_index_is_and_in_which_shape() {
    for nodes in [NodePlace::Dram, NodePlace::Pm] {
        for (shape, name) in [(CcehSettings::paper(), "paper"), (CcehSettings::dense(), "dense")] {
            let region = region(4 << 20);
            let offset_map = OffsetMap { nodes, shape };
            let created = options(nodes).with(|options| options.offset_map = offset_map).zone_size(128 << 10);
            let mut store = Store::create_on(region.clone(), &created).expect("a new pool");
            (0..2000).try_for_each(|number| put(&mut store.client(), number)).expect("room");
            let before = store.stats();
            assert_eq!(before.index_pm_bytes > 0, nodes == NodePlace::Pm);
            for closes in [true, false, true] {
                if closes {
                    store.close().expect("closed");
                } else {
                    drop(store);
                }
                store = Store::open_on(region.clone(), &Options::default()).expect("no flag is needed");
                holds(&mut store, 0..2000);
                let after = store.stats();
                assert_eq!(after.index_pm_bytes, before.index_pm_bytes);
                let setting =
                    |name| store.settings().into_iter().find(|(own, _)| *own == name).expect("one").1;
                assert_eq!(setting("cceh"), name);
                assert_eq!(setting("offset-map"), if nodes == NodePlace::Pm { "pm" } else { "dram" });
                if nodes == NodePlace::Pm {
                    assert_eq!(after.index_splits, 0, "it was not built again");
                }
            }
        }
    }
}

/// A crash leaves no pool, or one that the next open finishes.
#[test]
fn creation_is_cut_off_anywhere() {
    let region = Region::sim(SimOptions { len: 256 << 10, ..SimOptions::default() });
    let snapshots = snapshots(&region, usize::MAX, || {
        drop(Store::create_on(region.clone(), &in_pm()).expect("a new pool"))
    });
    let (mut absent, mut opened) = (0, 0);
    crashes(&snapshots, |region| match Store::open_on(region, &in_pm()) {
        Err(Error::Space(SpaceError::NotAPool)) => absent += 1,
        Err(error) => panic!("{error}"),
        Ok(mut store) => {
            opened += 1;
            put(&mut store.client(), 1).expect("room");
            holds(&mut store, 1..=1);
        }
    });
    assert!(absent > 20 && opened > 20, "{absent} {opened}");
}

/// The records are the truth: whatever has become of the entries, they are named again, each once.
#[test]
fn an_index_that_disagrees_with_the_records_is_set_right() {
    let pool = region(1 << 20);
    let store = Store::create_on(pool.clone(), &in_pm()).expect("a new pool");
    (0..300).try_for_each(|number| put(&mut store.client(), number)).expect("room");
    store.close().expect("closed");
    let mut sound = vec![0; pool.len() as usize];
    pool.read_racing(0, &mut sound);
    let (zone, names) = {
        let (space, _) = Space::examine(pool.clone()).expect("a pool");
        let settings = space.superblock().settings;
        let root = u32::from_le_bytes(*settings[72..].first_chunk().expect("a root"));
        (space.zone_offset(ZoneId(root)), 256)
    };
    let damage = |what: &str, change: &dyn Fn(u64, u64) -> u64| {
        let region = region(1 << 20);
        region.write(0, &sound);
        for word in (zone + names..zone + ZONE).step_by(8) {
            region.store(word, change((word - zone) / 8, region.load(word)));
        }
        let mut store =
            Store::open_on(region.clone(), &in_pm()).unwrap_or_else(|error| panic!("{what}: {error}"));
        holds(&mut store, 0..300);
        (0..300)
            .step_by(2)
            .for_each(|number| assert!(store.client().remove(&key(number)).expect("a change")));
        drop(store);
        let mut store = Store::open_on(region, &in_pm()).expect("a pool");
        holds(&mut store, (1..300).step_by(2));
    };
    damage("nothing", &|_, word| word);
    damage("no entries", &|_, _| 0);
    damage("no marks", &|number, word| if number % 2 == 0 { word & !1 } else { word });
    damage("entries of nothing", &|number, word| if number % 2 == 1 { word.max(1) } else { word });
    damage("other values", &|number, word| if number % 14 == 1 { word ^ 1 << (number % 30) } else { word });
    damage("other hashes", &|number, word| if number % 10 == 0 { word ^ 2 << (number % 40) } else { word });
}

/// Where nothing can be believed, nothing is changed.
#[test]
fn a_damaged_pool_is_refused_as_it_is() {
    let pool = region(1 << 20);
    let mut store = Store::create_on(pool.clone(), &in_pm()).expect("a new pool");
    (0..300).try_for_each(|number| put(&mut store.client(), number)).expect("room");
    holds(&mut store, 0..300);
    drop(store);
    let whole = || {
        let mut bytes = vec![0; pool.len() as usize];
        pool.read_racing(0, &mut bytes);
        bytes
    };
    let sound = whole();
    let mut refused = 0;
    for zone in {
        let (space, _) = Space::examine(pool.clone()).expect("a pool");
        space.committed_zones().iter().map(|zone| space.zone_offset(*zone)).collect::<Vec<_>>()
    } {
        for word in [8, 16, 64] {
            pool.write(0, &sound);
            pool.store(zone + word, pool.load(zone + word) ^ 1 << 40);
            let damaged = whole();
            if let Err(error) = Store::open_on(pool.clone(), &in_pm()) {
                assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                assert!(whole() == damaged, "a pool that was refused has changed");
                refused += 1;
            }
        }
    }
    assert!(refused >= 4, "{refused}");
}

/// An index that finds no zone gets one that the records can spare, or else the key is refused, at every
/// crash point of the refusal too.
#[test]
fn a_pool_without_room_for_its_index_keeps_what_it_has() {
    let pool = Region::sim(SimOptions { len: 512 << 10, ..SimOptions::default() });
    let store = Store::create_on(pool.clone(), &in_pm()).expect("a new pool");
    let mut client = store.client();
    let first = (0..).take_while(|number| put(&mut client, *number).is_ok()).count() as u64;
    let full = store.stats();
    assert!(first > 2000 && full.free_zones == 0, "{full:?}");
    // Then there is room for records, and entries are free where the hashes of new keys do not all lead.
    (0..first).step_by(2).for_each(|number| assert!(client.remove(&key(number)).expect("it needs no room")));
    // The moments of puts that the index refused, at first or for good, each with the key.
    let mut refusals = Vec::new();
    let fits = |number: &u64| {
        let (before, mut outcome) = (store.stats().index_pm_bytes, Ok(()));
        let moments = snapshots(&pool, 24, || outcome = put(&mut client, *number));
        if outcome.is_err() || store.stats().index_pm_bytes > before {
            refusals.push((*number, moments));
        }
        outcome.is_ok()
    };
    let second = (first..first * 3 / 2).take_while(fits).count() as u64;
    assert!(second > first / 8 && second < first / 2, "{second}");
    assert!(store.stats().index_pm_bytes > full.index_pm_bytes, "a chunk has become a zone of the index");
    let error = put(&mut client, first + second).expect_err("it was refused");
    assert!(matches!(error, Error::PoolFull { .. }), "{error}");
    assert_eq!(client.get(&key(first + second)).expect("a read"), None);
    drop(client);
    drop(store);
    let odd = (0..first).filter(|number| number % 2 == 1);
    let mut unwritten = 0;
    for (number, moments) in refusals {
        // It has not returned, so after a crash the key may be there or not.
        crashes(&moments, |region| {
            let mut store = Store::open_on(region, &in_pm()).unwrap_or_else(|error| panic!("{error}"));
            let is_there = store.client().get(&key(number)).expect("a read").is_some();
            unwritten += u32::from(!is_there);
            holds(&mut store, odd.clone().chain(first..number + u64::from(is_there)));
        });
    }
    assert!(unwritten > 10, "{unwritten}");
    let keys: Vec<u64> = odd.chain(first..first + second).collect();
    let mut store = Store::open_on(pool, &in_pm()).expect("a pool");
    holds(&mut store, keys.iter().copied());
    let mut client = store.client();
    keys.iter().for_each(|number| assert!(client.remove(&key(*number)).expect("it needs no room")));
    drop(client);
    store.compact().expect("nothing to move");
    let most = first * 3 / 4;
    (0..most)
        .try_for_each(|number| put(&mut store.client(), number))
        .expect("room, less what the index keeps");
    holds(&mut store, 0..most);
}
