//! Versions of keys: a reader at a number finds the newest up to there, also during purges.

use proptest::prelude::*;
use quipu_parts::commit::Ring;
use quipu_parts::commit::ring::Grants;
use quipu_parts::epoch::{Collector, Guard, Holder, What};
use quipu_parts::heap::Reference;
use quipu_parts::index::Key;
use quipu_parts::index::masstree::Masstree;
use quipu_parts::twin::{Twin, leave_out};
use quipu_parts::versions::{Horizon, Look, Noted, Retired, Snapshot, Snapshots, Terms, Version, Versions};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A record is its number.
fn number_of(reference: Reference) -> u64 {
    reference.with_tag(0).word()
}

fn version(number: u64, deletes: bool) -> Version {
    Version::new(number, Reference::from_word(number), deletes)
}

fn key_of(bytes: &[u8]) -> Key<'_> {
    Key { bytes, hash: 0 }
}

fn table(epochs: &Collector) -> Versions<Masstree> {
    Versions::new(Masstree::new(), epochs.clone())
}

/// The key of a number.
fn name(key: u8) -> Vec<u8> {
    format!("a key that is longer than a slice {key:3}").into_bytes()
}

#[derive(Clone, Debug)]
enum Step {
    Write { key: u8, deletes: bool },
    Tidy { key: u8, forgets: bool },
    Show,
    Snapshot,
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = (0..8u8, any::<bool>()).prop_map(|(key, deletes)| Step::Write { key, deletes });
    let tidy = (0..8u8, any::<bool>()).prop_map(|(key, forgets)| Step::Tidy { key, forgets });
    let step = prop_oneof![6 => write, 2 => tidy, 2 => Just(Step::Show), 1 => Just(Step::Snapshot), 1 => (0..8usize).prop_map(Step::Drop)];
    proptest::collection::vec(step, 0..200)
}

type Model = BTreeMap<u8, Vec<(u64, bool)>>;

/// The newest version of a key up to a number.
fn newest(model: &Model, key: u8, up_to: u64) -> Option<Version> {
    let versions = model.get(&key)?.iter().rev();
    versions.copied().find(|(number, _)| *number <= up_to).map(|(number, deletes)| version(number, deletes))
}

fn check(table: &Versions<Masstree>, guard: &Guard<'_>, model: &Model, up_to: u64) {
    for key in 0..8 {
        let found = table.get((guard, key_of(&name(key)), None), || up_to, number_of).expect("sound");
        assert_eq!(found, newest(model, key, up_to), "key {key} at {up_to}");
    }
    let all: Vec<_> =
        (0..8u8).filter_map(|key| Some((name(key).to_vec(), newest(model, key, up_to)?))).collect();
    let mut look = Look { limit: 3, up_to, prefetch: |_| (), number_of, noted: Noted::default() };
    let (mut scan, mut found) = (table.scan_from(&[]), Vec::new());
    let mut note = |key: &[u8], version| found.push((key.to_vec(), version));
    while table.next_in_order(guard, &mut scan, &mut look, &mut note).expect("sound") {}
    assert_eq!(found, all);
    let (mut scan, mut found) = (table.scan_back_from(Bound::Unbounded), Vec::new());
    let mut note = |key: &[u8], version| found.push((key.to_vec(), version));
    while table.prev_in_order(guard, &mut scan, &mut look, &mut note).expect("sound") {}
    found.reverse();
    assert_eq!(found, all);
}

proptest! {
    /// Readers at the visible number and at snapshots, while versions come that are not visible.
    #[test]
    fn every_reader_finds_the_state_at_its_number(steps in steps()) {
        let epochs = Collector::new();
        let participant = epochs.register();
        let (table, mut model, snapshots) = (table(&epochs), Model::new(), Snapshots::default());
        let (mut taken, mut horizon, mut retired) = (Vec::<Snapshot>::new(), Horizon::default(), Retired::default());
        let (mut last, mut visible) = (0, 0);
        for step in steps {
            let guard = participant.pin();
            match step {
                Step::Write { key, deletes } => {
                    last += 1;
                    let before = newest(&model, key, last);
                    model.entry(key).or_default().push((last, deletes));
                    snapshots.horizon(|| visible, &mut horizon);
                    let name = name(key);
                    let at = (&guard, key_of(&name), None);
                    let new = version(last, deletes);
                    let older = table.insert(at, new, &horizon, &mut retired, number_of).expect("room");
                    prop_assert_eq!(older, before);
                }
                Step::Tidy { key, forgets } => {
                    snapshots.horizon(|| visible, &mut horizon);
                    let name = name(key);
                    let (at, mut shown) = ((&guard, key_of(&name), None), Vec::new());
                    let keep = |versions: &mut Vec<Version>| {
                        shown.extend_from_slice(versions);
                        if forgets {
                            versions.clear();
                        }
                    };
                    table.tidy(at, &horizon, &mut retired, number_of, keep).expect("sound");
                    prop_assert_eq!(shown.first().copied(), newest(&model, key, last));
                    let readers = || horizon.snapshots.iter().copied().chain(visible..=last);
                    let is_read = |version| readers().any(|up_to| newest(&model, key, up_to) == Some(version));
                    prop_assert!(shown.iter().skip(1).all(|version| is_read(*version)), "{:?}", shown);
                    if forgets {
                        model.remove(&key);
                    }
                }
                Step::Show => visible = last,
                Step::Snapshot => taken.push(snapshots.take(nobody(), Terms::NONE, || visible)),
                Step::Drop(nth) if nth < taken.len() => drop(taken.remove(nth)),
                Step::Drop(_) => {}
            }
            check(&table, &guard, &model, visible);
            taken.iter().for_each(|snapshot| check(&table, &guard, &model, snapshot.number()));
        }
        retired.defer(&participant.pin());
        prop_assert_eq!(snapshots.oldest(), taken.iter().map(Snapshot::number).min());
    }
}

/// A reader without a snapshot, while a writer adds a version, makes it visible and purges: at any point of
/// the read, that is before or behind its look at the visible number. Whether the reader finds the key, which
/// has a version at all times.
fn finds_what_is_there_at_all_times(is_before: bool, several: bool) -> bool {
    let (epochs, snapshots) = (Collector::new(), Snapshots::default());
    let (reader, writer, table) = (epochs.register(), epochs.register(), table(&epochs));
    let (name, mut horizon, mut retired) = (name(1), Horizon::default(), Retired::default());
    let (mut last, visible) = (0, Cell::new(0));
    let mut write = |guard: &Guard<'_>| {
        last += 1;
        snapshots.horizon(|| visible.get(), &mut horizon);
        let at = (guard, key_of(&name), None);
        table.insert(at, version(last, false), &horizon, &mut retired, number_of).expect("room");
        visible.set(last);
    };
    // With one version its word is its record's, and with several it leads to an array.
    (0..if several { 3 } else { 1 }).for_each(|_| write(&writer.pin()));
    let guard = reader.pin();
    let mut meanwhile = || (0..3).for_each(|_| write(&writer.pin()));
    let up_to = || {
        if is_before {
            meanwhile();
        }
        let number = visible.get();
        if !is_before {
            meanwhile();
        }
        number
    };
    let found = table.get((&guard, key_of(&name), None), up_to, number_of).expect("sound");
    drop(guard);
    retired.defer(&writer.pin());
    found.is_some()
}

#[test]
fn a_read_finds_the_versions_before_it_asks_for_the_visible_number() {
    let cases = [(true, true), (true, false), (false, true), (false, false)];
    let holds = || cases.map(|(is_before, several)| finds_what_is_there_at_all_times(is_before, several));
    assert_eq!(holds(), [true; 4]);
    let _left_out = leave_out(Some(Twin::NumberReadEarly));
    assert_eq!(holds(), [true, true, false, false], "a purge behind the look takes its version away");
}

/// However often a key is written, its array stays short where nobody has a snapshot, and with a snapshot it
/// has one version more.
#[test]
fn arrays_stay_short() {
    let epochs = Collector::new();
    let participant = epochs.register();
    let (table, snapshots) = (table(&epochs), Snapshots::default());
    let (mut horizon, mut retired) = (Horizon::default(), Retired::default());
    let mut write = |number: u64| {
        let guard = participant.pin();
        snapshots.horizon(|| number - 1, &mut horizon);
        let at = (&guard, key_of(b"hot"), None);
        table.insert(at, version(number, false), &horizon, &mut retired, number_of).expect("room");
    };
    write(1);
    assert_eq!(table.bytes(), 0, "one version takes no array");
    (2..1000).for_each(&mut write);
    assert_eq!(table.bytes(), 8 * (1 + 2 * 2));
    let snapshot = snapshots.take(nobody(), Terms::NONE, || 999);
    (1000..2000).for_each(&mut write);
    assert_eq!(table.bytes(), 8 * (1 + 2 * 3));
    drop(snapshot);
    write(2000);
    assert_eq!(table.bytes(), 8 * (1 + 2 * 2));
    retired.defer(&participant.pin());
}

/// Purges without a write, and keys of which nothing stays.
#[test]
fn a_key_is_tidied_and_forgotten() {
    let epochs = Collector::new();
    let participant = epochs.register();
    let (table, snapshots) = (table(&epochs), Snapshots::default());
    let (mut horizon, mut retired) = (Horizon::default(), Retired::default());
    let guard = participant.pin();
    let array = |versions: u64| 8 * (1 + 2 * versions);
    let mut tidy = |key: &[u8], visible: u64, forgets: bool| {
        let mut shown = None;
        snapshots.horizon(|| visible, &mut horizon);
        let keep = |versions: &mut Vec<Version>| {
            shown = Some(versions.iter().map(|version| version.number).collect::<Vec<_>>());
            if forgets {
                versions.clear();
            }
        };
        table.tidy((&guard, key_of(key), None), &horizon, &mut retired, number_of, keep).expect("sound");
        (shown, table.bytes())
    };
    let read = |key: &[u8], up_to: u64| {
        let found = table.get((&guard, key_of(key), None), || up_to, number_of).expect("sound");
        found.map(|version| version.number)
    };
    let write = |key: &[u8], number: u64, retired: &mut Retired| {
        let (at, horizon) = ((&guard, key_of(key), None), Horizon::default());
        table.insert(at, version(number, number == 5), &horizon, retired, number_of).expect("room")
    };
    let mut written = Retired::default();
    // Nobody has looked anywhere yet, so that a write purges nothing.
    let older: Vec<_> = (1..=5).map(|number| write(b"key", number, &mut written)).collect();
    let expected: Vec<_> = (0..5).map(|number| (number > 0).then(|| version(number, false))).collect();
    assert_eq!((older, table.bytes()), (expected, array(5)));
    write(b"other", 6, &mut written);
    assert_eq!(tidy(b"nothing", 6, true), (None, array(5)), "of a key without versions nothing is shown");
    let [low, high] = [2, 4].map(|number| snapshots.take(nobody(), Terms::NONE, || number));
    assert_eq!(tidy(b"key", 4, false), (Some(vec![5, 4, 2]), array(3)));
    assert_eq!([5, 4, 3, 2, 1].map(|up_to| read(b"key", up_to)), [Some(5), Some(4), Some(2), Some(2), None]);
    drop(high);
    // Readers at 4 may still come.
    assert_eq!(tidy(b"key", 4, false), (Some(vec![5, 4, 2]), array(3)));
    assert_eq!(tidy(b"key", 5, false), (Some(vec![5, 2]), array(2)));
    assert_eq!(tidy(b"key", 5, false), (Some(vec![5, 2]), array(2)), "nothing to do");
    drop(low);
    assert_eq!(tidy(b"key", 5, false), (Some(vec![5]), 0), "one version takes no array");
    assert_eq!(tidy(b"key", 5, true), (Some(vec![5]), 0));
    assert_eq!((read(b"key", 9), read(b"other", 9)), (None, Some(6)));
    assert_eq!(tidy(b"key", 5, true), (None, 0), "it is gone");
    assert_eq!(write(b"key", 7, &mut written), None, "it begins anew");
    // A key is forgotten with its array, too.
    write(b"key", 8, &mut written);
    assert_eq!(tidy(b"key", 6, true), (Some(vec![8, 7]), 0));
    assert_eq!(read(b"key", 9), None);
    [&mut retired, &mut written].into_iter().for_each(|retired| retired.defer(&guard));
}

/// Transfers between keys, each an item of two records; every snapshot and every scan sees one sum, and plain
/// reads of a key never go back.
#[test]
fn snapshots_see_whole_items_while_threads_write() {
    const KEYS: u64 = 6;
    let epochs = Collector::new();
    let (table, snapshots, ring) =
        (table(&epochs), Snapshots::default(), Ring::new(8, Grants::default(), 0, ()));
    ring.turn().expect("a new ring").add_numbers(1..u64::MAX / 2);
    // A record: its number stands for its value, which is kept here.
    let values: Vec<Mutex<BTreeMap<u64, i64>>> = (0..KEYS).map(|_| Mutex::default()).collect();
    let locks: Vec<Mutex<()>> = (0..KEYS).map(|_| Mutex::default()).collect();
    let finished = AtomicBool::new(false);
    let (table, snapshots, ring, values, locks, finished) =
        (&table, &snapshots, &ring, &values, &locks, &finished);
    let value_of = |key: u64, number: u64| values[key as usize].lock().unwrap()[&number];
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|writer| {
                let participant = epochs.register();
                scope.spawn(move || {
                    let (mut retired, mut horizon) = (Retired::default(), Horizon::default());
                    for nth in 0..20_000u64 {
                        let (from, to) = ((nth + writer) % KEYS, (nth * 7 + writer + 1) % KEYS);
                        if from == to {
                            continue;
                        }
                        let (low, high) = (from.min(to) as usize, from.max(to) as usize);
                        let (_one, _other) = (locks[low].lock().unwrap(), locks[high].lock().unwrap());
                        let guard = participant.pin();
                        let old = |key: u64| {
                            let newest = values[key as usize]
                                .lock()
                                .unwrap()
                                .last_key_value()
                                .map(|(_, value)| *value);
                            newest.unwrap_or_default()
                        };
                        let (less, more) = (old(from) - 1, old(to) + 1);
                        let (flight, first) =
                            ring.turn().expect("no panic").grant(2, |(), place| place.first);
                        values[from as usize].lock().unwrap().insert(first, less);
                        values[to as usize].lock().unwrap().insert(first + 1, more);
                        snapshots.horizon(|| ring.visible(), &mut horizon);
                        for (key, number) in [(from, first), (to, first + 1)] {
                            let name = name(key as u8);
                            let at = (&guard, key_of(&name), None);
                            table
                                .insert(at, version(number, false), &horizon, &mut retired, number_of)
                                .expect("room");
                        }
                        let last = flight.place().last;
                        flight.done();
                        drop(guard);
                        ring.wait(last).expect("no panic");
                    }
                    retired.defer(&participant.pin());
                })
            })
            .collect();
        for _ in 0..2 {
            let participant = epochs.register();
            scope.spawn(move || {
                let mut newest = [0; KEYS as usize];
                while !finished.load(Ordering::Relaxed) {
                    let guard = participant.pin();
                    let snapshot = snapshots.take(nobody(), Terms::NONE, || ring.visible());
                    let read = |key: u64, up_to: &dyn Fn() -> u64| {
                        let name = name(key as u8);
                        table.get((&guard, key_of(&name), None), up_to, number_of).expect("sound")
                    };
                    let at = || snapshot.number();
                    let sum: i64 =
                        (0..KEYS).filter_map(|key| Some(value_of(key, read(key, &at)?.number))).sum();
                    assert_eq!(sum, 0, "at {}", snapshot.number());
                    for key in 0..KEYS {
                        let found = read(key, &|| ring.visible()).map_or(0, |version| version.number);
                        assert!(found >= newest[key as usize], "key {key} went back");
                        newest[key as usize] = found;
                    }
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        finished.store(true, Ordering::Relaxed);
    });
    assert_eq!(snapshots.oldest(), None);
}

fn nobody() -> Holder {
    Holder { what: What::Snapshot, thread: 0, since: 0 }
}
