//! Design `xp` against a model: tables, snapshots, range deletes and batches over tables, through rewrites
//! and reopenings.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use quipu::{Design, Error, Options, Snapshot, Store, Table, WriteBatch};
use quipu_medium::{Pages, Region};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Keys of a table. Few, so that they are written again and again.
const KEYS: u8 = 40;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
type State = BTreeMap<String, Contents>;

#[derive(Clone, Debug)]
enum Step {
    Put { table: u8, key: u8, len: u16 },
    Delete { table: u8, key: u8 },
    Append { table: u8, key: u8 },
    DeleteRange { table: u8, from: Option<u8>, to: Option<u8>, to_included: bool },
    Batch { writes: Vec<(u8, u8, Option<u16>)> },
    Create { table: u8 },
    Drop { table: u8 },
    Snapshot,
    Forget { which: u8 },
    Compact,
    Reopen { closes: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (table, key, len) = (0..4u8, 0..KEYS, 0..900u16);
    let put = (table.clone(), key.clone(), len.clone());
    let put = put.prop_map(|(table, key, len)| Step::Put { table, key, len });
    let delete = (table.clone(), key.clone()).prop_map(|(table, key)| Step::Delete { table, key });
    let append = (table.clone(), key.clone()).prop_map(|(table, key)| Step::Append { table, key });
    let bound = proptest::option::weighted(0.8, key.clone());
    let range = (table.clone(), bound.clone(), bound, any::<bool>());
    let range = range.prop_map(|(table, from, to, to_included)| {
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) => (Some(from.min(to)), Some(from.max(to))),
            bounds => bounds,
        };
        Step::DeleteRange { table, from, to, to_included }
    });
    let write = (table.clone(), key, proptest::option::weighted(0.8, len));
    let batch = proptest::collection::vec(write, 1..12).prop_map(|writes| Step::Batch { writes });
    let step = prop_oneof![
        20 => put,
        5 => delete,
        5 => append,
        2 => range,
        6 => batch,
        1 => table.clone().prop_map(|table| Step::Create { table }),
        1 => table.prop_map(|table| Step::Drop { table }),
        2 => Just(Step::Snapshot),
        2 => (0..4u8).prop_map(|which| Step::Forget { which }),
        1 => Just(Step::Compact),
        1 => any::<bool>().prop_map(|closes| Step::Reopen { closes }),
    ];
    proptest::collection::vec(step, 1..400)
}

fn name(key: u8) -> Vec<u8> {
    format!("key {key:02}").into_bytes()
}

fn value(number: usize, len: u16) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.resize(8 + usize::from(len), number as u8);
    value
}

/// A store, its model, and the snapshots of both.
struct Run {
    region: Region,
    store: Option<Store>,
    state: State,
    snapshots: Vec<(Snapshot, State, BTreeMap<String, Table>)>,
}

fn table_name(table: u8) -> String {
    if table == 0 { "default".into() } else { format!("table {table}") }
}

fn options() -> Options {
    Options::new().design(Design::XP).zone_size(16 << 10).cleaner(false)
}

impl Run {
    fn new() -> Run {
        let region = Region::dram(1 << 20, Pages::Ordinary).expect("memory");
        let store = Store::create_on(region.clone(), &options()).expect("a new pool");
        let state = State::from([("default".to_owned(), Contents::new())]);
        Run { region, store: Some(store), state, snapshots: Vec::new() }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    /// The tables of some numbers that are there.
    fn table(&self, table: u8) -> Option<(String, Table)> {
        let name = table_name(table);
        match self.store().table(&name) {
            Ok(found) => Some((name, found)),
            Err(Error::NoTable { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn step(&mut self, number: usize, step: &Step) -> Result<(), Error> {
        match step {
            Step::Put { table, key, len } => {
                let Some((table, handle)) = self.table(*table) else { return Ok(()) };
                self.store().client().on(&handle)?.put(&name(*key), &value(number, *len))?;
                self.contents(&table).insert(name(*key), value(number, *len));
            }
            Step::Delete { table, key } => {
                let Some((table, handle)) = self.table(*table) else { return Ok(()) };
                let was_there = self.store().client().on(&handle)?.remove(&name(*key))?;
                assert_eq!(was_there, self.contents(&table).remove(&name(*key)).is_some());
            }
            Step::Append { table, key } => {
                let Some((table, handle)) = self.table(*table) else { return Ok(()) };
                let mut new = self.contents(&table).get(&name(*key)).cloned().unwrap_or_default();
                new.truncate(600);
                new.extend(number.to_le_bytes());
                self.store().client().on(&handle)?.update(&name(*key), |old| {
                    let mut old = old.map_or(Vec::new(), <[u8]>::to_vec);
                    old.truncate(600);
                    old.extend(number.to_le_bytes());
                    Some(old)
                })?;
                self.contents(&table).insert(name(*key), new);
            }
            Step::DeleteRange { table, from, to, to_included } => {
                let Some((table, handle)) = self.table(*table) else { return Ok(()) };
                let (from, to) = (from.map(name), to.map(name));
                let first = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
                let last = to.as_deref().map_or(Bound::Unbounded, |to| match to_included {
                    true => Bound::Included(to),
                    false => Bound::Excluded(to),
                });
                self.store().client().on(&handle)?.delete_range(first, last)?;
                let is_in = |key: &Vec<u8>| std::ops::RangeBounds::<[u8]>::contains(&(first, last), &key[..]);
                self.contents(&table).retain(|key, _| !is_in(key));
            }
            Step::Batch { writes } => {
                let (mut batch, mut after) = (WriteBatch::new(), self.state.clone());
                for (table, key, len) in writes {
                    let Some((table, handle)) = self.table(*table) else { continue };
                    let contents = after.get_mut(&table).expect("it is there");
                    match len {
                        Some(len) => {
                            batch.on(&handle).put(&name(*key), &value(number, *len));
                            contents.insert(name(*key), value(number, *len));
                        }
                        None => {
                            batch.on(&handle).delete(&name(*key));
                            contents.remove(&name(*key));
                        }
                    }
                }
                self.store().client().write(&batch)?;
                self.state = after;
            }
            Step::Create { table } => {
                let name = table_name(*table);
                match self.store().create_table(&name) {
                    Ok(_) => assert!(self.state.insert(name, Contents::new()).is_none()),
                    Err(Error::TableExists { .. }) => assert!(self.state.contains_key(&name)),
                    Err(error) => return Err(error),
                }
            }
            Step::Drop { table } => {
                let Some((name, handle)) = self.table(*table).filter(|_| *table != 0) else { return Ok(()) };
                let client = self.store().client().on(&handle)?;
                self.store().drop_table(&handle)?;
                assert!(matches!(client.get(b"key"), Err(Error::TableDropped)));
                self.state.remove(&name);
            }
            Step::Snapshot => {
                let tables = (0..4).filter_map(|table| self.table(table)).collect();
                self.snapshots.push((self.store().snapshot()?, self.state.clone(), tables));
            }
            Step::Forget { which } => {
                if !self.snapshots.is_empty() {
                    let which = usize::from(*which) % self.snapshots.len();
                    self.snapshots.remove(which);
                }
            }
            Step::Compact => drop(self.store().compact()?),
            Step::Reopen { closes } => {
                self.snapshots.clear();
                let store = self.store.take().expect("it is open");
                if *closes {
                    store.close()?;
                } else {
                    drop(store);
                }
                self.store = Some(Store::open_on(self.region.clone(), &options())?);
            }
        }
        Ok(())
    }

    fn contents(&mut self, table: &str) -> &mut Contents {
        self.state.get_mut(table).expect("it is there")
    }

    fn verify(&self) {
        let client = self.store().client();
        let tables = self.store().tables().expect("it has tables");
        assert_eq!(tables.len(), self.state.len());
        for table in &tables {
            let own = client.on(table).expect("it is there");
            let (guard, expected) = (own.pin(), &self.state[table.name()]);
            same(guard.range(Bound::Unbounded, Bound::Unbounded).expect("ordered"), expected);
            for key in (0..KEYS).map(name) {
                assert_eq!(own.get(&key).expect("a read").as_ref(), expected.get(&key));
            }
        }
        for (snapshot, state, handles) in &self.snapshots {
            for (name_of, handle) in handles {
                let Ok(own) = client.on(handle) else { continue };
                let guard = own.pin_at(snapshot).expect("of this store");
                same(guard.range(Bound::Unbounded, Bound::Unbounded).expect("ordered"), &state[name_of]);
                for key in (0..KEYS).map(name) {
                    let found = guard.get(&key).expect("a read");
                    assert_eq!(found.as_deref(), state[name_of].get(&key).map(Vec::as_slice));
                }
            }
        }
    }
}

/// All pairs, from both ends in turn.
fn same(mut range: quipu::Range<'_>, expected: &Contents) {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let (next, next_back) = (range.next(), range.next_back());
        if next.is_none() && next_back.is_none() {
            break;
        }
        let own = |pair: Result<quipu::KeyValue<'_>, Error>| {
            let (key, value) = pair.expect("sound");
            (key.into_owned(), value.into_owned())
        };
        front.extend(next.map(own));
        back.extend(next_back.map(own));
    }
    front.extend(back.into_iter().rev());
    let expected: Vec<_> = expected.clone().into_iter().collect();
    // Values are long; which write they are of says enough.
    let brief = |pairs: &[(Vec<u8>, Vec<u8>)]| -> Vec<String> {
        let of = |(key, value): &(Vec<u8>, Vec<u8>)| {
            format!("{} of {}, {}", key.escape_ascii(), value[0], value.len())
        };
        pairs.iter().map(of).collect()
    };
    assert!(front == expected, "{:?}, not {:?}", brief(&front), brief(&expected));
}

#[test]
fn a_store_of_tables_agrees_with_its_model() {
    // `PROPTEST_CASES` asks for more.
    let asked = ProptestConfig::default();
    let cases = if asked.cases == 256 { 200 } else { asked.cases };
    let config = ProptestConfig { cases, failure_persistence: None, ..asked };
    TestRunner::new(config)
        .run(&steps(), |steps| {
            let mut run = Run::new();
            for (number, step) in steps.iter().enumerate() {
                match run.step(number, step) {
                    Ok(()) => {}
                    // Snapshots hold on to what is gone.
                    Err(Error::RoomHeld { .. }) if !run.snapshots.is_empty() => {}
                    Err(error) => panic!("{step:?}: {error}"),
                }
                if number % 16 == 0 {
                    run.verify();
                }
            }
            run.verify();
            run.snapshots.clear();
            // Keys of a deleted range count until they are swept.
            run.step(0, &Step::Compact).expect("it needs no room");
            for table in run.store().tables().expect("it has tables") {
                let found = run.store().table_stats(&table).expect("it is there").records;
                assert_eq!(found, run.state[table.name()].len() as u64);
            }
            let report = run.store.as_mut().expect("it is open").check(&|_, _| {}).expect("a check");
            assert!(report.is_sound(), "{}", report.damage);
            Ok(())
        })
        .expect("no difference");
}
