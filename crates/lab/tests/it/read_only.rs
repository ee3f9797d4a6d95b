//! Pools of every design that are opened for reading only: every read is right, every write is refused, and
//! the file stays as it is, to the byte and to its time of change.

use quipu::{Change, Client, Design, Error, ErrorKind, MediumKind, Options, Store, Survives, WriteBatch};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::ops::Bound::Unbounded;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Every design, and `viper` with what else it keeps in the pool that a reader may change in memory.
fn kinds() -> Vec<Options> {
    let of = |design| Options::new().design(design).size(8 << 20).cleaner(false);
    let other = of(Design::VIPER).set("offset-map", "pm").expect("a setting of viper");
    Design::ALL.iter().map(|design| of(*design)).chain([other]).collect()
}

/// Puts, overwrites and deletes, and tells what is left. Some writes wait for a later one to publish them.
fn fill(client: &mut Client, design: Design) -> Contents {
    let mut contents = Contents::new();
    let value = |number: u32, round: u8| vec![round ^ number as u8; 20 + number as usize % 300];
    for round in 0..3 {
        for number in (0..500u32).filter(|number| round == 0 || number % 3 == u32::from(round)) {
            let (key, value) = (number.to_be_bytes(), value(number, round));
            client.put(&key, &value).unwrap();
            contents.insert(key.to_vec(), value);
        }
    }
    for number in (0..500u32).step_by(7) {
        client.delete(&number.to_be_bytes()).unwrap();
        contents.remove(&number.to_be_bytes()[..]);
    }
    let can = design.can();
    if can.expiry {
        client.put_for(b"expired", b"!", Duration::ZERO).unwrap();
    }
    if can.large_values {
        let large = vec![7; 100_000];
        client.put(b"large", &large).unwrap();
        contents.insert(b"large".to_vec(), large);
    }
    client.put(b"last", b"parked").unwrap();
    contents.insert(b"last".to_vec(), b"parked".to_vec());
    contents
}

/// A pool at `path` that was closed, or left as by a process that was killed, for its owner to read alone.
fn make(path: &Path, options: &Options, closed: bool, design: Design) -> Contents {
    let written = path.with_extension("written");
    let store = Store::create(&written, options).unwrap();
    let mut client = store.client();
    let contents = fill(&mut client, design);
    if closed {
        drop(client);
        store.close().unwrap();
        fs::rename(written, path).unwrap();
    } else {
        fs::copy(&written, path).unwrap();
        drop(client);
        drop(store);
        fs::remove_file(written).unwrap();
    }
    fs::set_permissions(path, Permissions::from_mode(0o400)).unwrap();
    contents
}

/// The bytes that no reader may change.
fn state(path: &Path) -> (Vec<u8>, i64, i64) {
    let metadata = fs::metadata(path).unwrap();
    (fs::read(path).unwrap(), metadata.mtime(), metadata.mtime_nsec())
}

/// Every way to read tells the contents, and nothing more.
fn verify(client: &Client, contents: &Contents, design: Design) {
    let keys: Vec<_> = contents.keys().cloned().chain([b"expired".to_vec(), b"absent".to_vec()]).collect();
    let mut value = Vec::new();
    for key in &keys {
        let expected = contents.get(key);
        assert_eq!(client.get(key).unwrap().as_ref(), expected, "{design}");
        assert_eq!(client.get_into(key, &mut value).unwrap(), expected.is_some());
        assert_eq!(client.contains_key(key).unwrap(), expected.is_some());
    }
    client
        .get_many(&keys, |at, value| assert_eq!(value, contents.get(&keys[at]).map(Vec::as_slice)))
        .unwrap();
    let guard = client.pin();
    let mut pairs = guard.iter();
    let found: Contents = pairs.by_ref().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
    pairs.ended().unwrap();
    assert!(found == *contents, "{design}");
    assert_eq!(guard.keys().count(), contents.len());
    if design.can().ordered {
        let range = guard.range(Unbounded, Unbounded).unwrap().map(|pair| pair.unwrap().0.into_owned());
        assert!(range.eq(contents.keys().cloned()), "{design}");
        assert_eq!(guard.last().unwrap().unwrap().0, *contents.last_key_value().unwrap().0);
    }
}

/// Every write is refused, whatever it would come to.
fn assert_refused(store: &mut Store, present: &[u8], design: Design) {
    let refused = |what: &str, outcome: Result<(), Error>| {
        let error = outcome.expect_err(what);
        assert!(matches!(error, Error::ReadOnly), "{design}, {what}: {error}");
        assert_eq!(error.kind(), ErrorKind::Argument);
    };
    let mut client = store.client();
    let client = &mut client;
    for key in [present, b"absent"] {
        refused("put", client.put(key, b"v"));
        if design.can().large_values {
            refused("a large put", client.put(key, &vec![1; 100_000]));
        }
        refused("put_many", client.put_many(&[(key, b"v")]));
        refused("delete", client.delete(key));
        refused("remove", client.remove(key).map(drop));
        refused("update", client.update(key, |_| -> Option<Vec<u8>> { panic!("nobody asks") }));
        refused("update_with", client.update_with(key, |_| Change::Keep));
        refused("put_if_absent", client.put_if_absent(key, b"v").map(drop));
        refused("compare_and_swap", client.compare_and_swap(key, Some(b"other"), None).map(drop));
        if design.can().expiry {
            refused("put_for", client.put_for(key, b"v", Duration::from_secs(9)));
        }
        if !design.can().has_blocks {
            refused("put_if_version", client.put_if_version(key, Some(1), b"v").map(drop));
        } else {
            refused("update_in_place", client.update_in_place(key, 0, |word| word + 1).map(drop));
        }
        if design.can().batches {
            let mut batch = WriteBatch::new();
            batch.put(key, b"v").delete(b"last");
            refused("write", client.write(&batch));
        }
    }
    refused("clear", client.clear());
    refused("compact", store.compact().map(drop));
    store.sync().expect("there is nothing to write");
}

#[test]
fn every_design_is_read_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (number, options) in kinds().into_iter().enumerate() {
        for closed in [true, false] {
            let path = folder.path().join(format!("{number}-{closed}"));
            let design = {
                let fresh = Store::create(path.with_extension("fresh"), &options).unwrap();
                fresh.design()
            };
            let contents = make(&path, &options, closed, design);
            let before = state(&path);
            // The second reader is another handle beside the first, with a memory of its own.
            let options = Options::new().verify_reads(true).accept_copy(true);
            let open = || Store::open_read_only(&path, &options).unwrap();
            let (mut store, other) = (open(), open());
            for store in [&store, &other] {
                assert_eq!((store.design(), store.recovery().was_clean), (design, closed));
                assert_eq!(store.statement().process_crash.survives, Survives::No);
                verify(&store.client(), &contents, design);
            }
            let stats = store.stats();
            assert_refused(&mut store, contents.first_key_value().unwrap().0, design);
            assert_eq!(store.stats(), stats, "{design}: nothing changes in memory either");
            assert!(matches!(store.trim(), Err(Error::ReadOnly)));
            let report = store.check(&|_, _| {}).unwrap();
            assert!(report.is_sound(), "{design}: {}", report.damage);
            verify(&store.client(), &contents, design);
            store.close().unwrap();
            verify(&other.client(), &contents, design);
            drop(other);
            assert!(state(&path) == before, "{design}, closed: {closed}");
        }
    }
}

/// Also what would change nothing.
#[test]
fn an_empty_pool_is_neither_cleared_nor_compacted() {
    let folder = tempfile::tempdir().unwrap();
    for (number, options) in kinds().into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        Store::create(&path, &options).unwrap().close().unwrap();
        let store = Store::open_read_only(&path, &Options::new()).unwrap();
        assert!(matches!(store.client().clear(), Err(Error::ReadOnly)), "{}", store.design());
        assert!(matches!(store.compact(), Err(Error::ReadOnly)), "{}", store.design());
    }
}

#[test]
fn readers_exclude_writers_and_writers_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let writer = Store::create(&path, &Options::new().size(4 << 20)).unwrap();
    writer.client().put(b"llama", b"wool").unwrap();
    let read = || Store::open_read_only(&path, &Options::new());
    let error = read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    assert_eq!(Store::design_of(&path).unwrap_err().kind(), ErrorKind::InUse);
    drop(writer);

    let reader = read().unwrap();
    assert_eq!(Store::open(&path, &Options::new()).unwrap_err().kind(), ErrorKind::InUse);
    // Calls that only look at the pool go on beside readers.
    assert_eq!(Store::design_of(&path).unwrap(), Design::QUIPU);
    let before = state(&path);
    let into = folder.path().join("copy");
    let report = Store::salvage(&path, &into, &Options::new(), &|_, _| {}).unwrap();
    assert_eq!((report.keys, report.lost.len()), (1, 0));
    assert!(state(&path) == before);
    drop(reader);
    Store::open(&path, &Options::new()).unwrap().close().unwrap();
    assert!(read().unwrap().recovery().was_clean);
}

/// A closed pool with a sound record, and one of which a bit is struck behind the close.
fn struck(path: &Path, design: Design) {
    let store = Store::create(path, &Options::new().design(design).size(4 << 20)).unwrap();
    let mut client = store.client();
    client.put(b"struck", b"a value that no other bytes of the pool equal").unwrap();
    client.put(b"sound", b"wool").unwrap();
    drop(client);
    store.close().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.windows(12).position(|bytes| bytes == b"a value that").unwrap();
    bytes[at] ^= 1;
    fs::write(path, &bytes).unwrap();
}

/// As of a pool that is open for writing: of a design that reads no record at open, reads that prove tell it.
#[test]
fn damage_is_told_by_reads_that_prove() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    struck(&path, Design::FLATSTORE_PH);
    let before = state(&path);
    let mut store = Store::open_read_only(&path, &Options::new().verify_reads(true)).unwrap();
    let client = store.client();
    assert!(matches!(client.get(b"struck"), Err(Error::Damaged(_))));
    assert_eq!(client.get(b"sound").unwrap(), Some(b"wool".to_vec()));
    drop(client);
    assert!(!store.check(&|_, _| {}).unwrap().is_sound());
    store.close().unwrap();
    assert!(state(&path) == before);
}

/// As of a pool that is opened for writing: it is refused, or gives up what does not prove itself, but in
/// memory only.
#[test]
fn damage_is_accepted_in_memory_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    struck(&path, Design::QUIPU);
    let before = state(&path);
    let refused = Store::open_read_only(&path, &Options::new().verify(true));
    assert!(matches!(refused, Err(Error::Damaged(_))), "every record is proved at open");
    let store = Store::open_read_only(&path, &Options::new().accept_damage(true)).unwrap();
    assert_eq!(store.recovery().lost_keys.len(), 1);
    let client = store.client();
    assert_eq!(client.get(b"struck").unwrap(), None);
    assert_eq!(client.get(b"sound").unwrap(), Some(b"wool".to_vec()));
    drop((client, store));
    assert!(state(&path) == before);
}

/// Recovery in memory takes what recovery changes, and no page for each that it reads.
#[test]
fn a_recovery_in_memory_copies_few_pages() {
    let folder = tempfile::tempdir().unwrap();
    for options in kinds() {
        let options = options.size(64 << 20);
        let path = folder.path().join("pool");
        let store = Store::create(&path, &options).unwrap();
        if store.statement().medium != MediumKind::File {
            println!("skipped: {} has no device beneath it", folder.path().display());
            return;
        }
        let mut client = store.client();
        (0..20_000u32).for_each(|number| client.put(&u64::from(number).to_be_bytes(), &[7; 1000]).unwrap());
        drop(client);
        let design = store.design();
        drop(store);
        let store = Store::open_read_only(&path, &Options::new()).unwrap();
        assert!(!store.recovery().was_clean);
        let client = store.client();
        (0..20_000u32)
            .for_each(|number| assert!(client.get(&u64::from(number).to_be_bytes()).unwrap().is_some()));
        let kib = copied_kib(&path);
        println!("{design}: {kib} KiB");
        assert!(kib < 2 << 10, "{design}: {kib} KiB of 20 MB");
        drop((client, store));
        fs::remove_file(&path).unwrap();
    }
}

/// KiB of the mapping of a file that are copies of this process alone.
fn copied_kib(path: &Path) -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let name = fs::canonicalize(path).unwrap();
    let mut lines = maps.lines().skip_while(|line| !line.ends_with(name.to_str().unwrap()));
    let line = lines.find_map(|line| line.strip_prefix("Anonymous:")).expect("the file is mapped");
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}
