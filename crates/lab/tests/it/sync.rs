//! A store on a file writes back to its device what it is asked to.

use quipu::{MediumKind, Options, Store};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// KiB of the mapping of a file that its device does not have yet.
fn dirty_kib(path: &Path) -> u64 {
    let (maps, number) =
        (std::fs::read_to_string("/proc/self/smaps").unwrap(), path.metadata().unwrap().ino());
    // By its number: the system lists a new pool under no name until it is opened again.
    let is_file = |line: &str| line.split_whitespace().nth(4) == Some(&number.to_string());
    let of_file = maps.lines().skip_while(|line| !is_file(line)).skip(1);
    let kib = |line: &str| line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
    of_file
        .take_while(|line| line.split_whitespace().next().is_some_and(|word| word.ends_with(':')))
        .filter(|line| line.starts_with("Shared_Dirty:") || line.starts_with("Private_Dirty:"))
        .filter_map(kib)
        .sum()
}

#[test]
fn what_was_acknowledged_is_on_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = Options::new().size(16 << 20).cleaner(false);
    let store = Store::create(&path, &options).unwrap();
    if store.statement().medium != MediumKind::File {
        println!("skipped: {} has no device beneath it", folder.path().display());
        return;
    }
    let mut client = store.client();
    for round in 0..3u32 {
        (0..1000u32).for_each(|key| client.put(&key.to_le_bytes(), &[round as u8; 500]).unwrap());
        assert!(dirty_kib(&path) >= 400, "{} KiB", dirty_kib(&path));
        store.sync().unwrap();
        assert_eq!(dirty_kib(&path), 0);
    }
}

/// The headers of zones that give their storage back are gone at once, so the table that says they are free
/// goes before.
#[test]
fn what_says_that_zones_are_free_is_on_the_device_before_their_storage_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let mut store = Store::create(&path, &Options::new().size(16 << 20).cleaner(false)).unwrap();
    if store.statement().medium != MediumKind::File {
        println!("skipped: {} has no device beneath it", folder.path().display());
        return;
    }
    let mut client = store.client();
    (0..1000u32).for_each(|key| client.put(&key.to_le_bytes(), &[7; 500]).unwrap());
    client.clear().unwrap();
    drop(client);
    store.compact().unwrap();
    assert!(dirty_kib(&path) > 0);
    assert!(store.trim().unwrap() > 1 << 20);
    assert_eq!(dirty_kib(&path), 0);
}
