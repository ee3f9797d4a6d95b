//! An opening that refuses a damaged pool has not changed it, whatever has expired there meanwhile.

use quipu::{Design, ErrorKind, Levels, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::SimOptions;
use std::time::Duration;

const START: u64 = 1_000_000;
const LIFE: Duration = Duration::from_secs(1);

/// Keys, each with two values of which recovery has to choose one.
const KEYS: u64 = 2000;

fn bytes_of(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len() as usize];
    region.read_racing(0, &mut bytes);
    bytes
}

fn options_of(design: Design) -> Options {
    Options::new().design(design).zone_size(64 << 10).levels(Levels::Off)
}

/// A new pool on the simulator, at the time [`START`].
fn new_pool(options: &Options) -> (Region, Store) {
    let region = Region::sim(SimOptions { len: 4 << 20, ..SimOptions::default() });
    region.simulator().unwrap().set_now(START);
    let store = Store::create_on(region.clone(), options).unwrap();
    (region, store)
}

/// A pool whose process has died, in which everything has expired since, with a damaged record.
fn damaged(options: &Options) -> Region {
    let (region, store) = new_pool(options);
    let sim = region.simulator().unwrap().clone();
    let mut client = store.client();
    for round in 1..=2 {
        for number in 0..KEYS {
            client.put_for(&number.to_le_bytes(), &[round; 100], LIFE).unwrap();
        }
    }
    drop(client);
    drop(store);
    sim.set_now(START + 60_000);
    let bytes = bytes_of(&region);
    let at = bytes.windows(100).position(|window| window == [1; 100]).expect("the first record");
    region.write(at as u64, &[9; 8]);
    region.persist(at as u64, 8);
    region
}

/// With an index in the pool no opening looks at records, nor whether they have expired.
const LOOKS_AT_NONE: [Design; 4] =
    [Design::FLATSTORE_PH, Design::FLATSTORE_FF, Design::MPKV, Design::MPKV_BASELINE];

#[test]
fn a_pool_that_is_refused_stays_as_it_is() {
    let looks = |design: &&Design| design.can().expiry && !LOOKS_AT_NONE.contains(design);
    for design in Design::ALL.iter().filter(looks) {
        let options = options_of(*design).cleaner(false).recovery_threads(1);
        let region = damaged(&options);
        let before = bytes_of(&region);
        for options in [options.clone(), options.reset_expiry(true)] {
            let error = Store::open_on(region.clone(), &options).err();
            assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Damaged), "{design}");
            let changed = std::iter::zip(&before, &bytes_of(&region)).position(|(one, other)| one != other);
            assert_eq!(changed, None, "{design}");
        }
    }
}

/// Once a pool is accepted, what recovery took for expired stays so.
#[test]
fn what_recovery_took_for_expired_stays_so() {
    for design in Design::ALL.iter().filter(|design| design.can().expiry) {
        let options = options_of(*design);
        let (region, store) = new_pool(&options);
        let sim = region.simulator().unwrap();
        for round in 1..=2 {
            store.client().put_for(b"key", &[round; 100], LIFE).unwrap();
        }
        drop(store);
        sim.set_now(START + 60_000);
        drop(Store::open_on(region.clone(), &options).unwrap());
        sim.set_now(START + 60_001);
        let store = Store::open_on(region.clone(), &options).unwrap();
        assert_eq!(store.client().get(b"key").unwrap(), None, "{design}");
        drop(store);
        sim.set_now(START);
        let store = Store::open_on(region.clone(), &options).unwrap();
        assert_eq!(store.client().get(b"key").unwrap(), None, "{design}");
    }
}

/// The clock was far ahead for a moment, in which a value was put for a while: an opening after a crash knows
/// of it, and can be told to set the clock back.
#[test]
fn a_crash_does_not_forget_the_clock_by_which_a_value_was_put() {
    const YEARS: u64 = 10 * 365 * 24 * 3_600_000;
    for design in Design::ALL.iter().filter(|design| design.can().expiry) {
        let options = options_of(*design);
        let (region, store) = new_pool(&options);
        let sim = region.simulator().unwrap();
        let mut client = store.client();
        client.put_for(b"before", b"value", LIFE).unwrap();
        sim.set_now(START + YEARS);
        client.put_for(b"key", b"value", LIFE).unwrap();
        sim.set_now(START + 1);
        drop(client);
        drop(store);
        let store = Store::open_on(region.clone(), &options).unwrap();
        assert!(store.recovery().expiry_ahead >= Duration::from_millis(YEARS - 1), "{design}");
    }
}
