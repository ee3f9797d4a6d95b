//! A pool that is full of large values, and a user who deletes until a put has room: each refused put is told how much is missing, and
//! none of them cleans the pool for nothing.

use quipu::{Design, Error, Options, Store};
use quipu_medium::{Pages, Region};

const LARGE: usize = 2 << 20;
const SMALL: u64 = 20_000;

fn small(number: u64) -> Vec<u8> {
    format!("small {number}").into_bytes()
}

#[test]
fn refused_puts_of_a_large_value_do_not_move_all_small_records_again_and_again() {
    for design in [Design::Quipu, Design::FlatstoreM] {
        let region = Region::dram(64 << 20, Pages::Ordinary).expect("memory");
        let options = Options::new().design(design).cleaner(false);
        let store = Store::create_on(region, &options).expect("a pool");
        let mut client = store.client();
        for number in 0..SMALL {
            client.put(&small(number), &[1; 100]).expect("room");
        }
        let full = (0u64..).find_map(|number| client.put(&number.to_le_bytes(), &[2; LARGE]).err());
        let Some(Error::PoolFull { wanted, free, .. }) = full else { panic!("{full:?}") };
        assert!(wanted > free && wanted >= LARGE as u64, "{wanted} bytes are wanted and {free} free");
        assert_eq!(free, store.stats().free_bytes);
        let mut deleted = 0;
        while let Err(error) = client.put(b"one more", &[3; LARGE]) {
            assert!(matches!(error, Error::PoolFull { .. }), "{error}");
            client.delete(&small(deleted)).expect("deletions have a reserve");
            deleted += 1;
            if deleted.is_multiple_of(500) {
                client.delete(&(deleted / 500).to_le_bytes()).expect("deletions have a reserve");
            }
        }
        let moved = store.stats().moved_records;
        assert!(moved <= 2 * SMALL, "{design}: {moved} records were moved for {deleted} refused puts");
    }
}

/// Records lose their hints when they are moved, so there is more room than they take.
#[test]
fn a_large_value_has_the_room_that_hints_took() {
    let region = Region::dram(16 << 20, Pages::Ordinary).expect("memory");
    let options =
        Options::new().design(Design::FlatstoreM).cleaner(false).set("shortcut", "on").expect("a setting");
    let store = Store::create_on(region, &options).expect("a pool");
    let mut client = store.client();
    for number in 0..200_000u64 {
        client.put(&number.to_be_bytes(), &[1; 8]).expect("room");
    }
    for number in (0..200_000u64).step_by(30) {
        client.put(&number.to_be_bytes(), &[2; 8]).expect("room");
    }
    client.put(b"large", &vec![3; 7_700_000]).expect("what hints took is room");
}
