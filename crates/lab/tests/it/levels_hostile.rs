//! Sequences of dumps, compactions, drops and openings that a reviewer of the levels of design `xp` has
//! found.

use quipu::internals::TestForest;
use quipu::{Design, Error, Levels, Options, Store};
use quipu_lab::sim_levels::{SimFaults, SimForest, SimPublishFault};
use quipu_medium::{Pages, Region};
use quipu_parts::runs::{
    Compact, Compacted, Forest, Head, LevelScan, LevelsState, NameError, Notice, Part, Purge, Remains,
    RunStats, Runs, RunsError, Source,
};
use quipu_parts::versions::RangeTombstone;
use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

const POOL: u64 = 16 << 20;

fn options() -> Options {
    Options::new().design(Design::XP).size(POOL).zone_size(64 << 10).cleaner(false)
}

fn key(number: u64) -> Vec<u8> {
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

/// The next call at a place of the levels does this first.
type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

fn call(hook: &Hook) {
    let held = hook.lock().unwrap().take();
    if let Some(act) = held {
        act();
    }
}

/// Simulated levels whose next opening, compaction or get does something else first.
#[derive(Clone, Default)]
struct Watched {
    forest: SimForest,
    opens: Hook,
    compacts: Hook,
    publishes: Hook,
    gets: Hook,
}

impl Watched {
    fn below(&self, options: Options) -> Options {
        let forest = Some(TestForest(Arc::new(self.clone())));
        options.with(|options| options.testing.forest = forest)
    }

    fn trees(&self) -> usize {
        self.forest.trees().unwrap().len()
    }
}

struct WatchedRuns {
    runs: Arc<dyn Runs>,
    watched: Watched,
}

struct WatchedLevels {
    levels: Arc<dyn quipu_parts::runs::Levels>,
    gets: Hook,
}

impl Forest for Watched {
    fn place(&self) -> String {
        self.forest.place()
    }

    fn salvage(&self, table: u64, wrong: &mut dyn FnMut(RunsError)) -> Box<dyn Remains> {
        self.forest.salvage(table, wrong)
    }

    fn trees(&self) -> Result<Vec<u64>, RunsError> {
        self.forest.trees()
    }
    fn state(&self) -> Result<LevelsState, RunsError> {
        self.forest.state()
    }
    fn note(&self, state: LevelsState) -> Result<(), RunsError> {
        self.forest.note(state)
    }
    fn refuse_torn(&self, table: u64) -> Result<(), RunsError> {
        self.forest.refuse_torn(table)
    }
    fn open(&self, table: u64) -> Result<Arc<dyn Runs>, RunsError> {
        call(&self.opens);
        Ok(Arc::new(WatchedRuns { runs: self.forest.open(table)?, watched: self.clone() }))
    }
    fn is_open(&self, table: u64) -> bool {
        self.forest.is_open(table)
    }
    fn remove(&self, table: u64) -> Result<(), RunsError> {
        self.forest.remove(table)
    }
}

impl Runs for WatchedRuns {
    fn levels(&self) -> Arc<dyn quipu_parts::runs::Levels> {
        Arc::new(WatchedLevels { levels: self.runs.levels(), gets: self.watched.gets.clone() })
    }
    fn write(&self, ranges: &[RangeTombstone], from: &mut dyn Source) -> Result<Part, RunsError> {
        self.runs.write(ranges, from)
    }
    fn discard(&self, part: Part) {
        self.runs.discard(part);
    }
    fn publish(&self, parts: Vec<Part>) -> Result<(), NameError> {
        call(&self.watched.publishes);
        self.runs.publish(parts)
    }
    fn compact(&self, how: Compact, purge: Purge, before: &Notice) -> Result<Compacted, NameError> {
        call(&self.watched.compacts);
        self.runs.compact(how, purge, before)
    }
    fn drop_range(&self, from: &[u8], to: &[u8], below: u64, before: &Notice) -> Result<u64, NameError> {
        self.runs.drop_range(from, to, below, before)
    }
    fn next_id(&self) -> u64 {
        self.runs.next_id()
    }
    fn stats(&self) -> RunStats {
        self.runs.stats()
    }
}

impl quipu_parts::runs::Levels for WatchedLevels {
    fn get(&self, key: &[u8], up_to: u64, out: &mut Vec<u8>) -> Result<Option<Head>, RunsError> {
        call(&self.gets);
        self.levels.get(key, up_to, out)
    }
    fn scan<'l>(&'l self, from: &[u8], up_to: u64) -> LevelScan<'l> {
        self.levels.scan(from, up_to)
    }
    fn scan_back<'l>(&'l self, to: Bound<&[u8]>, up_to: u64) -> LevelScan<'l> {
        self.levels.scan_back(to, up_to)
    }
    fn ranges(&self) -> Result<Vec<RangeTombstone>, RunsError> {
        self.levels.ranges()
    }
    fn check(&self, each: &mut dyn FnMut(&[u8], &Head)) -> Result<(), RunsError> {
        self.levels.check(each)
    }
    fn highest(&self) -> Option<u64> {
        self.levels.highest()
    }
    fn lowest_id(&self, range: &RangeTombstone) -> Option<u64> {
        self.levels.lowest_id(range)
    }
}

fn in_memory(options: &Options) -> Store {
    Store::create_on(Region::dram(POOL, Pages::Ordinary).unwrap(), options).unwrap()
}

/// Puts keys until the store has dumped that many bytes more than before.
fn put_until_dumped(store: &Store, client: &mut quipu::Client, first: u64) -> u64 {
    let before = store.stats().dumped_bytes;
    let mut number = first;
    while store.stats().dumped_bytes == before {
        client.put(&key(number), &[b'.'; 1000]).unwrap();
        number += 1;
    }
    number
}

/// A table is dropped while its levels are compacted, and a client of it is there. Its levels leave.
#[test]
fn a_table_may_be_dropped_while_its_levels_are_compacted() {
    let watched = Watched::default();
    let store = Arc::new(in_memory(&watched.below(options())));
    let table = store.create_table("brief").unwrap();
    let mut client = store.client().on(&table).unwrap();
    put_until_dumped(&store, &mut client, 0);
    let dropper = store.clone();
    *watched.compacts.lock().unwrap() = Some(Box::new(move || dropper.drop_table(&table).unwrap()));
    store.compact().unwrap();
    assert!(matches!(client.get(b"a key"), Err(Error::TableDropped)));
    // The next compactions remove dropped levels.
    store.compact().unwrap();
    store.compact().unwrap();
    assert_eq!(watched.trees(), 0);
    drop(client);
}

/// A table is dropped while its levels are opened for its first dump.
#[test]
fn a_table_may_be_dropped_while_its_first_dump_opens_its_levels() {
    let watched = Watched::default();
    let store = Arc::new(in_memory(&watched.below(options())));
    let table = store.create_table("brief").unwrap();
    let mut client = store.client().on(&table).unwrap();
    let dropper = store.clone();
    *watched.opens.lock().unwrap() = Some(Box::new(move || dropper.drop_table(&table).unwrap()));
    let put = |number| client.put(&key(number), &[b'.'; 1000]);
    let error = (0..).map(put).find_map(Result::err).unwrap();
    assert!(matches!(error, Error::TableDropped), "{error}");
    store.compact().unwrap();
    store.compact().unwrap();
    assert_eq!(watched.trees(), 0);
    drop(client);
}

/// A table that is dropped gives the room of its levels back, though nothing else calls for a compaction:
/// perhaps it was dropped because the disk is full.
#[test]
fn levels_of_a_dropped_table_leave_when_its_last_reader_does() {
    let watched = Watched::default();
    let store = in_memory(&watched.below(options().cleaner(true)));
    let table = store.create_table("brief").unwrap();
    let mut client = store.client().on(&table).unwrap();
    let mut number = 0;
    while watched.trees() == 0 {
        client.put(&key(number), &[b'.'; 1000]).unwrap();
        number += 1;
    }
    let reader = store.client();
    let guard = reader.pin();
    store.drop_table(&table).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(guard);
    let began = Instant::now();
    while watched.trees() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "the levels are still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop((client, reader));
}

/// An old copy of a pool is refused beside newer levels, and these stay as they are.
#[test]
fn an_old_copy_of_a_pool_takes_nothing_from_newer_levels() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, old, new) = (folder.path().join("pool"), folder.path().join("old"), folder.path().join("new"));
    let store = Store::create(&pool, &options()).unwrap();
    store.client().put(b"first", b"1").unwrap();
    store.close().unwrap();
    std::fs::copy(&pool, &old).unwrap();
    let store = Store::open(&pool, &options()).unwrap();
    let table = store.create_table("later").unwrap();
    let mut client = store.client().on(&table).unwrap();
    put_until_dumped(&store, &mut client, 0);
    drop(client);
    store.close().unwrap();
    std::fs::rename(&pool, &new).unwrap();
    std::fs::rename(&old, &pool).unwrap();
    let error = Store::open(&pool, &options()).unwrap_err();
    assert!(error.to_string().contains("newer than the pool"), "{error}");
    std::fs::rename(&new, &pool).unwrap();
    let store = Store::open(&pool, &options()).unwrap();
    let client = store.client().on(&store.table("later").unwrap()).unwrap();
    assert!(client.get(&key(0)).unwrap().is_some());
}

/// Levels that were named before any word said so are copies. Changes of the table without them count.
#[test]
fn levels_that_no_word_names_do_not_come_back() {
    let (region, watched) = (Region::dram(POOL, Pages::Ordinary).unwrap(), Watched::default());
    let faults = SimFaults { publish: Some((1, SimPublishFault::PoisonedAfter)), ..SimFaults::default() };
    let store = Store::create_on(region.clone(), &watched.below(options())).unwrap();
    watched.forest.set_faults(faults);
    let mut client = store.client();
    client.put(b"ghost", b"boo").unwrap();
    let put = |number| client.put(&key(number), &[b'.'; 1000]);
    let error = (0..).map(put).find_map(Result::err).unwrap();
    assert!(matches!(error, Error::LevelsStopped { .. }), "{error}");
    drop((client, store));
    // Opened once without levels: nothing is missing.
    let store = Store::open_on(region.clone(), &options()).unwrap();
    let mut client = store.client();
    assert_eq!(client.get(b"ghost").unwrap(), Some(b"boo".to_vec()));
    client.clear().unwrap();
    // The deletions hide nothing now, and are forgotten.
    (0..4).for_each(|_| _ = store.compact().unwrap());
    assert_eq!(client.get(b"ghost").unwrap(), None);
    drop(client);
    store.close().unwrap();
    let image = watched.forest.image();
    let again = Watched { forest: SimForest::from_image(image), ..Watched::default() };
    let store = Store::open_on(region, &again.below(options())).unwrap();
    assert_eq!(store.client().get(b"ghost").unwrap(), None, "a deleted key has come back");
}

/// A get finds an expired value below an old view. Before it expired, it was overwritten in a newer layer.
#[test]
fn a_get_of_a_value_that_expires_looks_at_newer_layers() {
    let watched = Watched::default();
    let store = Arc::new(in_memory(&watched.below(options())));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    let expires = now + 4_000;
    let mut client = store.client();
    client.put_until(b"brief", b"old", expires).unwrap();
    let next = put_until_dumped(&store, &mut client, 0);
    let writers = store.clone();
    *watched.gets.lock().unwrap() = Some(Box::new(move || {
        let mut client = writers.client();
        put_until_dumped(&writers, &mut client, next);
        client.put(b"brief", b"new").unwrap();
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
        assert!(now() < expires, "a slow machine: it was overwritten too late");
        while now() <= expires {
            std::thread::sleep(Duration::from_millis(20));
        }
    }));
    assert_eq!(client.get(b"brief").unwrap(), Some(b"new".to_vec()), "it was there at every moment");
}

/// As long as a reader keeps the memtables of a dump, dumps of the little that comes next give nothing back.
#[test]
fn a_reader_that_stays_causes_no_dumps_without_end() {
    let watched = Watched::default();
    let store = in_memory(&watched.below(options()));
    let (mut writer, reader) = (store.client(), store.client());
    let guard = reader.pin();
    let mut dumps = 0;
    for number in 0..11_000 {
        let before = store.stats().dumped_bytes;
        writer.put(&key(number), &[b'.'; 1000]).unwrap();
        dumps += u32::from(store.stats().dumped_bytes > before);
    }
    drop(guard);
    assert!(dumps <= 4, "{dumps} dumps of 11 MB in a pool of 16");
}

/// The records of a damaged pool are those of its memtables and of its levels.
#[test]
fn a_salvage_takes_the_levels_too() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, into) = (folder.path().join("pool"), folder.path().join("into"));
    let store = Store::create(&pool, &options()).unwrap();
    let mut client = store.client();
    let next = put_until_dumped(&store, &mut client, 0);
    client.put(&key(next), b"in memory").unwrap();
    client.delete(&key(0)).unwrap();
    client.delete_range(Bound::Included(&b"4"[..]), Bound::Excluded(&b"5"[..])).unwrap();
    let mut keys: Vec<Vec<u8>> = (1..=next).map(key).collect();
    keys.retain(|key| !key.starts_with(b"4"));
    drop((client, store));
    let report = Store::salvage(&pool, &into, &options(), &|_, _| {}).unwrap();
    assert!(report.damage.places.is_empty() && report.lost.is_empty(), "{report:?}");
    let store = Store::open(&into, &options()).unwrap();
    let client = store.client();
    for key in &keys {
        assert!(client.get(key).unwrap().is_some(), "{}", key.escape_ascii());
    }
    assert_eq!(report.keys, keys.len() as u64);
}

/// A snapshot of the levels, taken at one moment in the midst of a dump, lacks its records. The pool relies
/// on these later.
#[test]
fn levels_of_a_moment_within_a_dump_are_older_than_the_pool() {
    let (region, watched) = (Region::dram(POOL, Pages::Ordinary).unwrap(), Watched::default());
    let store = Store::create_on(region.clone(), &watched.below(options())).unwrap();
    let mut client = store.client();
    let next = put_until_dumped(&store, &mut client, 0);
    let (snapshot, forest) = (Arc::new(Mutex::new(None)), watched.forest.clone());
    let taken = snapshot.clone();
    *watched.publishes.lock().unwrap() =
        Some(Box::new(move || *taken.lock().unwrap() = Some(forest.image())));
    put_until_dumped(&store, &mut client, next);
    drop(client);
    store.close().unwrap();
    let open = |image| {
        let watched = Watched { forest: SimForest::from_image(image), ..Watched::default() };
        Store::open_on(region.clone(), &watched.below(options()))
    };
    let image = snapshot.lock().unwrap().take().expect("of the second dump");
    let error = open(image).map(drop).unwrap_err();
    assert!(error.to_string().contains("older than the pool"), "{error}");
    let store = open(watched.forest.image()).unwrap();
    assert!(store.client().get(&key(next)).unwrap().is_some());
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy_all(&path, &to) } else { _ = fs::copy(path, to).unwrap() }
    }
}

/// A pool whose levels are refused is not changed: the right ones may come later.
#[test]
fn a_pool_whose_levels_are_refused_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let [pool, levels, old, new] = ["pool", "pool.runs", "old", "new"].map(|name| folder.path().join(name));
    let store = Store::create(&pool, &options()).unwrap();
    let mut client = store.client();
    let next = put_until_dumped(&store, &mut client, 0);
    copy_all(&levels, &old);
    let next = put_until_dumped(&store, &mut client, next);
    client.put(&key(next), b"in memory").unwrap();
    // No close: recovery has something to do.
    drop((client, store));
    fs::rename(&levels, &new).unwrap();
    let before = fs::read(&pool).unwrap();
    let refused = |options: Options, what: &str| {
        let error = Store::open(&pool, &options).map(drop).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(fs::read(&pool).unwrap() == before, "{what}: the pool has changed");
    };
    refused(options(), "are missing");
    refused(options().levels(Levels::Off), "is on levels");
    fs::rename(&old, &levels).unwrap();
    refused(options(), "older than the pool");
    fs::remove_dir_all(&levels).unwrap();
    fs::rename(&new, &levels).unwrap();
    let store = Store::open(&pool, &options()).unwrap();
    assert_eq!(store.client().get(&key(next)).unwrap(), Some(b"in memory".to_vec()));
}
