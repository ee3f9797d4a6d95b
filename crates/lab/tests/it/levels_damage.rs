//! Damage to a pool with levels: it is told, reads find no wrong value, and a salvage keeps the rest.

use crate::levels::{Model, fill, folder_of, key, options, value};
use quipu::{ErrorKind, Instead, Options, SalvageReport, Store, WriteBatch};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

const KEYS: u64 = 24_000;

/// A pool that was closed, with its levels, and the contents of two tables.
struct Victim {
    folder: tempfile::TempDir,
    models: [Model; 2],
}

fn all(store: &Store, name: &str) -> Result<Model, quipu::Error> {
    let client = store.client().on(&store.table(name)?)?;
    let guard = client.pin();
    let pairs = guard.range(Bound::Unbounded, Bound::Unbounded)?;
    pairs.map(|pair| pair.map(|(key, value)| (key.into_owned(), value.into_owned()))).collect()
}

const TABLES: [&str; 2] = ["default", "second"];

impl Victim {
    fn new() -> Victim {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("pool"), &options()).unwrap();
        let second = store.create_table("second").unwrap();
        let (mut first, mut second) = (store.client(), store.client().on(&second).unwrap());
        let mut models = [Model::new(), Model::new()];
        fill(&mut first, &mut models[0], 0..KEYS, 1);
        fill(&mut second, &mut models[1], 0..KEYS / 2, 1);
        fill(&mut first, &mut models[0], (0..KEYS).step_by(3), 2);
        let (from, to) = (b"4".to_vec(), b"5".to_vec());
        first.delete_range(Bound::Included(&from), Bound::Excluded(&to)).unwrap();
        models[0].retain(|key, _| *key < from || *key >= to);
        drop((first, second));
        store.close().unwrap();
        // The records of one write stay in memory, over older ones on levels: a dump comes before it.
        let store = Store::open(folder.path().join("pool"), &options().cleaner(false)).unwrap();
        let mut last = WriteBatch::new();
        for number in (0..KEYS).step_by(400) {
            last.delete(&key(number));
            models[0].remove(&key(number));
        }
        for number in (1..KEYS).step_by(800) {
            last.put(&key(number), &value(number, 3));
            models[0].insert(key(number), value(number, 3));
        }
        store.client().write(&last).unwrap();
        assert!(store.stats().level_bytes > store.stats().pool_bytes, "{:?}", store.stats());
        store.close().unwrap();
        Victim { folder, models }
    }

    fn pool(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    /// The files of all levels, longest first.
    fn files(&self) -> Vec<PathBuf> {
        let entries = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let trees = entries(folder_of(&self.pool())).filter(|path| path.is_dir());
        let mut files: Vec<PathBuf> = trees.flat_map(|tree| entries(tree.join("tables"))).collect();
        files.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().len()));
        files
    }

    /// Salvages the pool, and proves the new one.
    fn salvaged(&self) -> (SalvageReport, [Model; 2]) {
        let (new, before) = (self.folder.path().join("new"), fs::read(self.pool()).unwrap());
        let report = Store::salvage(self.pool(), &new, &Options::new(), &|_, _| {}).unwrap();
        assert!(fs::read(self.pool()).unwrap() == before, "the damaged pool was changed");
        let mut store = Store::open(&new, &Options::new()).unwrap();
        let found = TABLES.map(|name| all(&store, name).unwrap());
        assert_eq!(report.keys, (found[0].len() + found[1].len()) as u64);
        assert!(store.check(&|_, _| {}).unwrap().is_sound());
        drop(store);
        fs::remove_file(&new).unwrap();
        // Records in memory alone need none.
        let _ = fs::remove_dir_all(new.with_file_name("new.runs"));
        (report, found)
    }

    /// Keys whose value is another one than it should be, or none.
    fn differing(&self, found: &[Model; 2]) -> usize {
        let of_table = |(model, found): (&Model, &Model)| {
            let keys = model.keys().chain(found.keys()).collect::<std::collections::BTreeSet<_>>();
            keys.into_iter().filter(|key| model.get(*key) != found.get(*key)).count()
        };
        self.models.iter().zip(found).map(of_table).sum()
    }

    /// Proves that the pool is told to be damaged, and that all that it answers is right.
    fn is_told(&self) {
        let options = Options::new().verify_reads(true);
        let mut store = match Store::open_read_only(self.pool(), &options) {
            Ok(store) => store,
            Err(error) => return assert_eq!(error.kind(), ErrorKind::Damaged, "{error}"),
        };
        assert!(!store.check(&|_, _| {}).unwrap().is_sound());
        for (name, model) in TABLES.iter().zip(&self.models) {
            match all(&store, name) {
                Ok(found) => assert!(found == *model, "the damage hides something"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{error}"),
            }
            let client = store.client().on(&store.table(name).unwrap()).unwrap();
            for number in (0..KEYS).step_by(41) {
                match client.get(&key(number)) {
                    Ok(found) => assert!(found.as_ref() == model.get(&key(number)), "{number}"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{error}"),
                }
            }
        }
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_sound_pool_is_copied_with_its_levels() {
    let victim = Victim::new();
    let (report, found) = victim.salvaged();
    assert!(report.damage.places.is_empty() && report.lost.is_empty(), "{report:?}");
    assert!(found == victim.models);
}

#[test]
fn a_wrong_byte_in_a_block_of_levels_costs_that_block() {
    let victim = Victim::new();
    let file = &victim.files()[0];
    let len = file.metadata().unwrap().len() as usize;
    let mut differing = 0;
    for eighth in 0..4 {
        let at = len / 8 * eighth + 100;
        flip(file, at);
        victim.is_told();
        let (report, found) = victim.salvaged();
        let places = &report.damage.places;
        assert!(places.len() == 1 && places[0].what.contains(" in file "), "{places:?}");
        assert!(victim.differing(&found) < 40, "byte {at}");
        differing += victim.differing(&found);
        flip(file, at);
    }
    // A block may have older records alone.
    assert!(differing > 0);
}

#[test]
fn a_file_of_levels_that_cannot_be_opened_leaves_the_others() {
    let victim = Victim::new();
    let files = victim.files();
    for file in [&files[0], files.last().unwrap()] {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
        victim.is_told();
        let (report, found) = victim.salvaged();
        let number = file.file_name().unwrap().to_str().unwrap();
        let told = report.damage.places.iter().map(|place| &*place.what).collect::<Vec<_>>();
        assert!(told.iter().any(|what| what.contains(&format!("file {number} cannot be read"))), "{told:?}");
        assert!(victim.differing(&found) < victim.models[0].len(), "more than one file is lost");
        fs::write(file, &bytes).unwrap();
        // The same without the file.
        fs::remove_file(file).unwrap();
        victim.is_told();
        let (report, again) = victim.salvaged();
        assert!(!report.damage.places.is_empty() && again == found);
        fs::write(file, &bytes).unwrap();
    }
    let (report, found) = victim.salvaged();
    assert!(report.damage.places.is_empty() && found == victim.models);
}

#[test]
fn without_the_folder_memory_is_salvaged() {
    let victim = Victim::new();
    let (levels, away) = (folder_of(&victim.pool()), victim.folder.path().join("away"));
    fs::rename(&levels, &away).unwrap();
    victim.is_told();
    let (report, found) = victim.salvaged();
    assert!(report.damage.places.iter().any(|place| place.what.contains("missing")), "{report:?}");
    let newest = |number| found[0].get(&key(number)) == victim.models[0].get(&key(number));
    assert!((0..KEYS).step_by(400).chain((1..KEYS).step_by(800)).all(newest), "memory has these");
    assert!(found[0].len() < KEYS as usize / 2, "the rest is on the levels");
    // That of another pool is no help.
    let other = victim.folder.path().join("other");
    let store = Store::create(&other, &options()).unwrap();
    fill(&mut store.client(), &mut Model::new(), 0..KEYS, 1);
    store.close().unwrap();
    fs::rename(other.with_file_name("other.runs"), &levels).unwrap();
    victim.is_told();
    let (report, again) = victim.salvaged();
    assert!(report.damage.places.iter().any(|place| place.what.contains("another pool")), "{report:?}");
    assert!(again == found);
}

#[test]
fn a_key_whose_latest_record_is_lost_has_the_one_on_the_levels() {
    let victim = Victim::new();
    // The older records of others are deleted by a range.
    let number = (1..KEYS).step_by(800).find(|number| !key(*number).starts_with(b"4")).unwrap();
    let mut bytes = fs::read(victim.pool()).unwrap();
    let sought = value(number, 3);
    let places: Vec<usize> =
        (0..bytes.len() - sought.len()).filter(|at| bytes[*at..].starts_with(&sought)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[at + 500] ^= 1);
    fs::write(victim.pool(), &bytes).unwrap();
    victim.is_told();
    let (report, found) = victim.salvaged();
    assert!(!report.damage.places.is_empty());
    let lost: Vec<_> = report.lost.iter().filter(|lost| lost.key == key(number)).collect();
    assert!(matches!(lost[..], [lost] if lost.instead == Instead::OlderValue), "{report:?}");
    let generation = if number.is_multiple_of(3) { 2 } else { 1 };
    assert_eq!(found[0].get(&key(number)), Some(&value(number, generation)));
}

/// The object of a table may be the only one that knows its name; its levels know its number.
#[test]
fn a_table_that_is_on_levels_alone_outlives_its_object() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim { folder, models: [Model::new(), Model::new()] };
    let store = Store::create(victim.pool(), &options()).unwrap();
    let table = store.create_table("a name to be found").unwrap();
    let mut client = store.client().on(&table).unwrap();
    let mut model = Model::new();
    fill(&mut client, &mut model, 0..KEYS, 1);
    drop(client);
    store.compact().unwrap();
    store.close().unwrap();
    let mut bytes = fs::read(victim.pool()).unwrap();
    let name = b"a name to be found";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at] ^= 1;
    fs::write(victim.pool(), &bytes).unwrap();
    assert!(Store::open_read_only(victim.pool(), &Options::new()).is_err());
    let new = victim.folder.path().join("new");
    let report = Store::salvage(victim.pool(), &new, &Options::new(), &|_, _| {}).unwrap();
    assert!(!report.damage.places.is_empty() && report.keys == model.len() as u64, "{report:?}");
    let store = Store::open(&new, &Options::new()).unwrap();
    let tables = store.tables().unwrap();
    let unnamed = tables.iter().find(|table| table.name().starts_with("unnamed")).unwrap();
    assert!(all(&store, unnamed.name()).unwrap() == model);
}
