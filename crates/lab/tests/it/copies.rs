//! Copies of pools: one of an open pool is refused in every design, one of a closed pool is as good as it.

use quipu::{Design, Error, ErrorKind, Levels, MediumKind, Options, Store};
use quipu_parts::space::SpaceError;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Without levels, which would have to be copied with their pool.
fn options(design: Design) -> Options {
    let options = Options::new().design(design).size(4 << 20).zone_size(64 << 10);
    options.medium(MediumKind::File).levels(Levels::Off)
}

fn is_refused(path: &Path) -> bool {
    let of = |opened: Result<Store, Error>| {
        let error = opened.expect_err("a copy of an open pool");
        assert_eq!(error.kind(), ErrorKind::Damaged);
        matches!(error, Error::Space(SpaceError::CopyOfOpen))
    };
    of(Store::open(path, &Options::new())) && of(Store::open_read_only(path, &Options::new()))
}

#[test]
fn a_copy_of_an_open_pool_is_refused() {
    for design in Design::ALL {
        let folder = tempfile::tempdir().unwrap();
        let (pool, copy) = (folder.path().join("pool"), folder.path().join("copy"));
        let store = Store::create(&pool, &options(*design)).unwrap();
        store.client().put(b"first", b"value").unwrap();
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = store.client();
                let keys = (0u64..).map(|number| (number % 500).to_le_bytes());
                for key in keys.take_while(|_| !ends.load(Ordering::Relaxed)) {
                    // Cleaning may not get on beside the copies.
                    let room = client.put(&key, &[7; 100]).map_err(|error| error.kind());
                    assert!(matches!(room, Ok(()) | Err(ErrorKind::Room)), "{design}: {room:?}");
                }
            });
            let opened: Vec<_> = (0..5)
                .map(|_| {
                    fs::copy(&pool, &copy).unwrap();
                    let opened = Store::open(&copy, &Options::new()).map(drop);
                    fs::remove_file(&copy).unwrap();
                    opened
                })
                .collect();
            ends.store(true, Ordering::Relaxed);
            // Both copies of a superblock may have been caught while they changed.
            for refused in opened.into_iter().map(|opened| opened.expect_err("a copy of an open pool")) {
                assert_eq!(refused.kind(), ErrorKind::Damaged, "{design}: {refused}");
            }
        });
        // A process that was killed leaves such a pool too, and only its own file is believed.
        drop(store);
        fs::copy(&pool, &copy).unwrap();
        assert!(is_refused(&copy), "{design}");
        let accepted = Store::open(&copy, &Options::new().accept_copy(true)).unwrap();
        assert_eq!(accepted.client().get(b"first").unwrap().as_deref(), Some(&b"value"[..]), "{design}");
        drop(accepted);
        Store::open(&copy, &Options::new()).unwrap();
    }
}

#[test]
fn a_pool_that_was_moved_or_copied_after_a_close_opens() {
    for design in Design::ALL {
        let folder = tempfile::tempdir().unwrap();
        let [pool, moved, copy] = ["pool", "moved", "copy"].map(|name| folder.path().join(name));
        let store = Store::create(&pool, &options(*design)).unwrap();
        store.client().put(b"first", b"value").unwrap();
        drop(store);
        fs::rename(&pool, &moved).unwrap();
        let store = Store::open(&moved, &Options::new()).unwrap();
        assert_eq!(store.client().get(b"first").unwrap().as_deref(), Some(&b"value"[..]), "{design}");
        store.close().unwrap();
        fs::copy(&moved, &copy).unwrap();
        let store = Store::open(&copy, &Options::new()).unwrap();
        assert_eq!(store.client().get(b"first").unwrap().as_deref(), Some(&b"value"[..]), "{design}");
        // From here on the copy is a pool of its own.
        store.client().put(b"second", b"value").unwrap();
        drop(store);
        Store::open(&copy, &Options::new()).unwrap();
    }
}

/// Its first change may be one that needs no number: what background work or a table's end frees.
#[test]
fn a_copy_of_a_closed_pool_is_a_pool_of_its_own_from_its_first_change_on() {
    for design in Design::ALL {
        let folder = tempfile::tempdir().unwrap();
        let [pool, copy] = ["pool", "copy"].map(|name| folder.path().join(name));
        let store = Store::create(&pool, &options(*design)).unwrap();
        let mut client = store.client();
        for round in 0..20u8 {
            (0..500u64).for_each(|key| client.put(&key.to_le_bytes(), &[round; 100]).unwrap());
        }
        for key in 0..400u64 {
            client.delete(&key.to_le_bytes()).unwrap();
        }
        drop(client);
        store.close().unwrap();
        fs::copy(&pool, &copy).unwrap();
        let store = Store::open(&copy, &Options::new()).unwrap();
        store.compact().unwrap();
        drop(store);
        let store = Store::open(&copy, &Options::new()).unwrap_or_else(|error| panic!("{design}: {error}"));
        let client = store.client();
        let found = (0..500u64).filter(|key| client.get(&key.to_le_bytes()).unwrap().is_some());
        assert!(found.eq(400..500), "{design}");
    }
}

/// Whoever copied it read the pages that the last run had left in the system's cache.
#[test]
fn an_accepted_copy_may_lie_on_another_device() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir_in(memory).unwrap()];
    for design in Design::ALL {
        let [pool, copy] = [0, 1].map(|number| folders[number].path().join(design.to_string()));
        let store = Store::create(&pool, &options(*design)).unwrap();
        store.client().put(b"first", b"value").unwrap();
        drop(store);
        fs::copy(&pool, &copy).unwrap();
        assert!(is_refused(&copy), "{design}");
        let there = Options::new().medium(MediumKind::File);
        for accepted in [there.clone().accept_copy(true), there] {
            let store = Store::open(&copy, &accepted).unwrap_or_else(|error| panic!("{design}: {error}"));
            assert_eq!(store.client().get(b"first").unwrap().as_deref(), Some(&b"value"[..]), "{design}");
        }
    }
}
