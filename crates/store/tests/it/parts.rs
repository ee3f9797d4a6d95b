//! Pools of several parts: what an opening needs, and what it refuses by name.

use quipu::{Client, Design, Error, Options, Store, Topology};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A pool of three parts with a hundred records from each of two nodes, closed.
    fn pool(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let store = Store::create(&path, &self.options(name)).unwrap();
        for node in 0..2 {
            let mut client = store.client_on(node).unwrap();
            for record in 0..100 {
                client.put(format!("{node}/{record}").as_bytes(), &[7; 5000]).unwrap();
            }
        }
        store.close().unwrap();
        path
    }

    fn options(&self, name: &str) -> Options {
        let part = |number| self.path(&format!("{name}.{number}"));
        opening().size(24 * MIB).part(part(1)).part(part(2)).nodes([0, 1, 1])
    }

    fn refused(&self, name: &str, options: &Options) -> String {
        let files = || ["", ".1", ".2"].map(|part| fs::read(self.path(&format!("{name}{part}"))).ok());
        let before = files();
        let error = Store::open(self.path(name), options).expect_err("refused").to_string();
        assert!(files() == before, "a refused pool was changed");
        error
    }
}

fn opening() -> Options {
    Options::new().topology("0:0-1;1:2-9@10,21/21,10".parse::<Topology>().unwrap())
}

fn is_whole(path: &Path, options: &Options) {
    let store = Store::open(path, options).unwrap();
    let client = store.client();
    for node in 0..2 {
        for record in 0..100 {
            assert_eq!(client.get(format!("{node}/{record}").as_bytes()).unwrap().unwrap(), [7; 5000]);
        }
    }
    drop(client);
    store.close().unwrap();
}

/// A design of a paper without a cache stays as the paper has it, unless somebody asks.
#[test]
fn a_pool_on_two_nodes_has_a_cache_where_that_is_of_its_design() {
    let folder = Folder::new();
    let designs =
        [(Design::QUIPU, true), (Design::NSTORE, true), (Design::FLATSTORE_M, false), (Design::MPKV, false)];
    for (design, has_one) in designs {
        let path = folder.path(design.name());
        let store = Store::create(&path, &folder.options(design.name()).design(design)).unwrap();
        assert_eq!(store.stats().cache_bytes > 0, has_one, "{design}");
        store.close().unwrap();
        let asked = |value| opening().design(design).set("cache", value).unwrap();
        let openings = [
            (opening(), has_one),
            (asked("off"), false),
            (asked("65536"), true),
            // Each read proves what lies in the pool.
            (asked("65536").verify_reads(true), false),
        ];
        for (options, has_one) in openings {
            let store = Store::open(&path, &options).unwrap();
            assert_eq!(store.stats().cache_bytes > 0, has_one, "{design} {:?}", store.settings());
            store.close().unwrap();
        }
    }
    let store = Store::create(folder.path("one"), &Options::new().size(8 * MIB)).unwrap();
    assert_eq!(store.stats().cache_bytes, 0, "on one node, and a file");
    store.close().unwrap();
}

fn all(client: &Client) -> Vec<(Vec<u8>, Vec<u8>)> {
    let guard = client.pin();
    let pairs = guard.range(Bound::Unbounded, Bound::Unbounded).unwrap();
    pairs.map(Result::unwrap).map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

/// Its threads are started and ended with the store, and small groups are not worth a request.
#[test]
fn scans_of_a_pool_on_two_nodes_have_threads_that_read_for_them() {
    let folder = Folder::new();
    let path = folder.path("pool");
    let options = folder.options("pool").design(Design::NSTORE).cleaner(true);
    let expected: Vec<_> =
        (0..2000u32).map(|number| (number.to_be_bytes().to_vec(), vec![number as u8; 900])).collect();
    let store = Store::create(&path, &options).unwrap();
    for (number, (key, value)) in expected.iter().enumerate() {
        store.client_on((number % 2) as u16).unwrap().put(key, value).unwrap();
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(all(&store.client()) == expected));
        }
    });
    assert!(store.stats().copied_records >= 1000, "{:?}", store.stats());
    store.close().unwrap();
    // Without its own threads a scan reads for itself.
    for options in [opening().cleaner(false), opening().design(Design::NSTORE).set("readers", "0").unwrap()] {
        let store = Store::open(&path, &options).unwrap();
        assert!(all(&store.client()) == expected);
        assert_eq!(store.stats().copied_records, 0);
    }
    let options = Options::new().size(8 * MIB).design(Design::NSTORE).cleaner(true);
    let store = Store::create(folder.path("one"), &options).unwrap();
    expected.iter().for_each(|(key, value)| store.client().put(key, value).unwrap());
    assert!(all(&store.client()) == expected);
    assert_eq!(store.stats().copied_records, 0, "on one node");
}

/// A scan of few records copies few. Large values it reads itself, and looks at none that is not its own.
#[test]
fn threads_read_not_far_ahead_and_no_large_values() {
    const DAMAGED: u64 = 50;
    let folder = Folder::new();
    let path = folder.path("pool");
    let options = folder.options("pool").cleaner(true).set("index", "alex").unwrap();
    let store = Store::create(&path, &options).unwrap();
    // Of 30,000 bytes, and then of more than a zone.
    let value = |number: u64| {
        let len = if number < 40 { 30_000 } else { 150_000 };
        number
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_le_bytes()
            .into_iter()
            .cycle()
            .take(len)
            .collect::<Vec<u8>>()
    };
    let expected: Vec<_> = (0..60u64).map(|number| (number.to_be_bytes().to_vec(), value(number))).collect();
    for (number, (key, value)) in expected.iter().enumerate() {
        store.client_on((number % 2) as u16).unwrap().put(key, value).unwrap();
    }
    let client = store.client();
    // Whether each of the pairs below a number, or of the first so many, is whole.
    let scan = |client: &Client, to: u64, most| -> Vec<bool> {
        let (guard, to) = (client.pin(), to.to_be_bytes());
        let pairs = guard.range(Bound::Unbounded, Bound::Excluded(&to)).unwrap();
        pairs.take(most).map(|pair| pair.is_ok()).collect()
    };
    assert_eq!(scan(&client, 60, 1), [true]);
    let copied = store.stats().copied_records;
    assert!((1..=(256 << 10) / 30_000).contains(&copied), "{copied} copies for one pair");
    assert!(all(&client) == expected);
    assert_eq!(store.stats().copied_records - copied, 20, "those of the other node");
    drop(client);
    store.close().unwrap();
    // The first large value behind the end is damaged, or is not.
    for name in ["pool", "pool.1", "pool.2"] {
        let mut bytes = fs::read(folder.path(name)).unwrap();
        let damaged = value(DAMAGED);
        for at in (0..bytes.len() - 64).step_by(8) {
            if bytes[at..at + 64] == damaged[..64] {
                bytes[at] ^= 1;
            }
        }
        fs::write(folder.path(name), bytes).unwrap();
    }
    let options = opening().cleaner(true).set("index", "alex").unwrap().verify_reads(true);
    let store = Store::open(&path, &options).unwrap();
    let client = store.client();
    assert!(scan(&client, DAMAGED, 60) == [true; DAMAGED as usize], "an error from behind the end");
    assert!(scan(&client, 60, 60).into_iter().eq((0..60).map(|number| number != DAMAGED)));
    assert!(store.stats().copied_records > 20);
}

#[test]
fn a_pool_of_parts_has_its_records_near_their_clients_and_needs_one_name() {
    let folder = Folder::new();
    let path = folder.pool("pool");
    let store = Store::open(&path, &Options::new()).unwrap();
    let parts = store.parts();
    let facts: Vec<_> = parts.iter().map(|part| (part.node, part.bytes)).collect();
    assert_eq!(facts, [(0, 8 * MIB), (1, 8 * MIB), (1, 8 * MIB)]);
    assert_eq!(parts[2].path, Some(folder.path("pool.2")));
    let used: Vec<u64> = parts.iter().map(|part| part.zones - part.free_zones).collect();
    // Half a megabyte of records each, in zones of 128 KiB.
    assert!(used[0] > 3 && used[1] > 3 && used[2] == 0, "{used:?}");
    assert_eq!(parts.iter().map(|part| part.zones).sum::<u64>(), store.stats().zones);
    assert_eq!(store.stats().spills, 0);
    let error = store.client_on(7).err().unwrap().to_string();
    assert!(error.contains("node 7") && error.contains("[0, 1]"), "{error}");
    drop(store);
    is_whole(&path, &Options::new());
    // All files move together; one that moves alone has its place told.
    let (home, away) = (folder.path("home"), folder.path("away"));
    fs::create_dir(&home).unwrap();
    for name in ["pool", "pool.1", "pool.2"] {
        fs::rename(folder.path(name), home.join(name)).unwrap();
    }
    is_whole(&home.join("pool"), &opening());
    std::os::unix::fs::symlink(home.join("pool"), folder.path("link")).unwrap();
    is_whole(&folder.path("link"), &opening());
    fs::rename(home.join("pool.2"), &away).unwrap();
    is_whole(&home.join("pool"), &opening().part_at(2, &away));
    let reader = Store::open_read_only(home.join("pool"), &opening().part_at(2, &away)).unwrap();
    assert_eq!(reader.client().get(b"1/7").unwrap().unwrap(), [7; 5000]);
    assert_eq!(Store::design_of(home.join("pool")).unwrap().name(), "quipu");
}

#[test]
fn parts_that_are_missing_foreign_swapped_or_short_are_refused_by_name() {
    let folder = Folder::new();
    let path = folder.pool("pool");
    folder.pool("other");
    let (one, two) = (folder.path("pool.1"), folder.path("pool.2"));
    let keep = folder.path("keep");
    let says = |text: &str, words: &[&str]| {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };

    fs::rename(&one, &keep).unwrap();
    says(&folder.refused("pool", &opening()), &["pool.1", "part 1 is missing", "--part 1=PATH"]);
    fs::copy(folder.path("other.1"), &one).unwrap();
    says(&folder.refused("pool", &opening()), &["pool.1", "another pool"]);
    fs::write(&one, vec![0; 8 << 20]).unwrap();
    says(&folder.refused("pool", &opening()), &["pool.1", "no part of a pool"]);
    fs::rename(&keep, &one).unwrap();

    let swapped = opening().part_at(1, &two).part_at(2, &one);
    says(&folder.refused("pool", &swapped), &["pool.2", "part 2 of this pool", "part 1 is wanted"]);
    says(&folder.refused("pool", &opening().part_at(2, &one)), &["parts 1 and 2 are both at"]);
    says(&folder.refused("pool", &opening().part_at(3, &one)), &["part 3", "1 to 2"]);
    says(&folder.refused("pool", &opening().part_at(0, &one)), &["part 0", "1 to 2"]);
    let single = folder.path("single");
    drop(Store::create(&single, &Options::new().size(4 * MIB)).unwrap());
    says(&folder.refused("single", &opening().part_at(1, &one)), &["no other parts"]);
    let named = Store::open(&one, &opening()).err().unwrap().to_string();
    says(&named, &["pool.1", "part 1 of a pool", "pool is to be named"]);

    fs::copy(&two, &keep).unwrap();
    fs::File::options().write(true).open(&two).unwrap().set_len(7 * MIB).unwrap();
    says(&folder.refused("pool", &opening()), &["pool.2", "7340032 bytes of 8388608"]);
    fs::copy(&keep, &two).unwrap();
    is_whole(&path, &opening());
}

/// A copy of yesterday passes by all that never changes: magic, identity, number and length.
#[test]
fn an_older_copy_of_a_part_or_of_the_first_is_refused() {
    let folder = Folder::new();
    let path = folder.pool("pool");
    for (name, words) in [("pool.2", "older copy"), ("pool", "older copy")] {
        fs::copy(folder.path(name), folder.path("yesterday")).unwrap();
        let store = Store::open(&path, &opening()).unwrap();
        store.client().put(b"today", b"1").unwrap();
        store.close().unwrap();
        fs::copy(folder.path(name), folder.path("today")).unwrap();
        fs::copy(folder.path("yesterday"), folder.path(name)).unwrap();
        let text = folder.refused("pool", &opening());
        assert!(text.contains(words) && text.contains("run"), "{text}");
        fs::copy(folder.path("today"), folder.path(name)).unwrap();
        is_whole(&path, &opening());
    }
}

#[test]
fn impossible_parts_leave_no_file() {
    let folder = Folder::new();
    let refused = |options: &Options| {
        let error = Store::create(folder.path("new"), options).expect_err("refused");
        let files = fs::read_dir(folder.0.path()).unwrap().count();
        (error.to_string(), files)
    };
    let part = folder.path("new.1");
    let (text, files) = refused(&opening().size(2 * MIB).part(&part));
    assert!(text.contains("2097152 bytes are too few for 2 parts") && files == 0, "{text}");
    let (text, files) = refused(&opening().size(8 * MIB).part(&part).nodes([0]));
    assert!(text.contains("1 nodes are named for 2 parts") && files == 0, "{text}");
    for twice in [folder.path("new"), folder.path("./new.1")] {
        let (text, files) = refused(&opening().size(8 * MIB).part(&part).part(&twice));
        assert!(text.contains("are both at") && files == 0, "{text}");
    }
    // The names that the parts have got are taken back.
    fs::write(folder.path("new"), b"precious").unwrap();
    let (_, files) = refused(&opening().size(8 * MIB).part(&part));
    assert_eq!((files, fs::read(folder.path("new")).unwrap()), (1, b"precious".to_vec()));
    fs::remove_file(folder.path("new")).unwrap();
    let many = (0..16).fold(opening().size(64 * MIB), |some, n| some.part(folder.path(&n.to_string())));
    let (text, files) = refused(&many);
    assert!(text.contains("at most 16") && files == 0, "{text}");
    fs::write(&part, b"precious").unwrap();
    let (text, files) = refused(&opening().size(8 * MIB).part(&part));
    assert!(text.contains("new.1") && text.contains("a file is there already") && files == 1, "{text}");
    assert_eq!(fs::read(&part).unwrap(), b"precious");
}

/// A node without room takes from another, and tells.
#[test]
fn a_full_node_spills_and_counts() {
    let folder = Folder::new();
    for design in ["quipu", "viper", "flatstore-m"] {
        let design = design.parse::<quipu::Design>().unwrap();
        let options = opening().size(8 * MIB).part(folder.path("part")).nodes([0, 1]).design(design);
        let store = Store::create(folder.path("pool"), &options).unwrap();
        let mut client = store.client_on(1).unwrap();
        let mut records = 0u64;
        loop {
            match client.put(&records.to_le_bytes(), &[1; 1000]) {
                Ok(()) => records += 1,
                Err(Error::PoolFull { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(records > 5000, "{design}: more than one part holds, {records}");
        assert!(store.stats().spills > 0, "{design}");
        for record in 0..records {
            assert_eq!(client.get(&record.to_le_bytes()).unwrap().unwrap(), [1; 1000]);
        }
        drop(client);
        drop(store);
        for name in ["pool", "part"] {
            fs::remove_file(folder.path(name)).unwrap();
        }
    }
}
