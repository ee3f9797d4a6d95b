//! Crashes at every operation on the medium, in many of the states that each may leave: during puts, deletes
//! and reclamation by one and by two clients, and during recovery. The power may fail after a crash of the
//! process, too.
//!
//! The oracle: a key has the value that was acknowledged last or was read since, or that of the operation in
//! flight. Nothing is damaged; every block is either free or of use; and the heap works on.

use super::support::{
    Client, Random, Recovered, Table, audit, fixed, heap, recover, region, value, variable,
};
use quipu_medium::Region;
use quipu_medium::sim::{Event, Sim, SimArena, Snapshot, sched};
use quipu_parts::heap::slots::{Location, PageBits, RecordForm, SlotError, SlotSettings};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const LEN: u64 = 128 << 10;
const ZONE: u64 = 16 << 10;
const KEYS: u64 = 6;
const RESERVE: usize = 1;
/// Lengths of values of any size, from none to those of several blocks.
const LENGTHS: [usize; 6] = [0, 100, 900, 2000, 3500, 9000];

/// A value by its number, from which its bytes follow; `None` is an absent key.
type State = Option<u64>;

/// What a key may be after a crash.
#[derive(Clone, Copy, Default)]
struct Known {
    settled: State,
    in_flight: Option<State>,
}

type Model = BTreeMap<u64, Known>;

fn bytes_of(number: u64, form: RecordForm) -> Vec<u8> {
    let len = match form {
        RecordForm::Fixed { value, .. } => value as usize,
        RecordForm::Variable => LENGTHS[(number % 6) as usize],
    };
    // The number itself stands in front, where there is room.
    let mut bytes = value(number, len);
    let number = number.to_le_bytes();
    let front = bytes.len().min(8);
    bytes[..front].copy_from_slice(&number[..front]);
    bytes
}

fn key_of(key: u64) -> Vec<u8> {
    key.to_be_bytes().to_vec()
}

/// Opens a crash image and holds it against the model. Returns what was found.
fn verify(region: &Region, settings: SlotSettings, model: &Model) -> (Recovered, BTreeMap<u64, State>) {
    let recovered = recover(region, settings, RESERVE);
    assert_eq!(recovered.damages, [], "a crash damages nothing");
    let Recovered { heap, records, .. } = &recovered;
    let mut found = BTreeMap::new();
    let mut blocks = BTreeSet::new();
    let mut spread = 0;
    let mut buffer = Vec::new();
    let pages = u32::from(settings.pages_per_block);
    let in_block = u64::from(pages) * 4096 - 16;
    for (key, location) in records {
        let read = heap.read(location.offset, &mut buffer).expect("sound").expect("found");
        assert_eq!((read.key, read.sequence), (&key[..], location.sequence));
        blocks.insert(location.offset.block(PageBits::of(pages)));
        let len = read.value.len() as u64;
        spread += if len + 32 > in_block { len.div_ceil(in_block) } else { 0 };
        found.insert(u64::from_be_bytes(key[..].try_into().expect("a key")), read.value.to_vec());
    }
    let mut states = BTreeMap::new();
    for (key, known) in model {
        let right = |state: &State| found.get(key) == state.map(|n| bytes_of(n, settings.form)).as_ref();
        let state = std::iter::once(known.settled).chain(known.in_flight).find(|state| right(state));
        assert!(
            state.is_some(),
            "key {key}: {:?} is neither {:?} nor {:?}",
            found.get(key).map(|value| &value[..value.len().min(8)]),
            known.settled,
            known.in_flight
        );
        states.extend(state.map(|state| (*key, state)));
    }
    assert!(found.keys().all(|key| model.contains_key(key)), "a key that was never put");
    let usage = heap.usage();
    assert_eq!(usage.live_records, records.len() as u64);
    assert_eq!(usage.used_blocks, blocks.len() as u64 + spread, "a block is leaked");
    audit(heap, blocks_per_chunk(settings));
    (recovered, states)
}

fn blocks_per_chunk(settings: SlotSettings) -> u64 {
    (ZONE - 4096) / (4096 * u64::from(settings.pages_per_block))
}

/// The heap works on: every free block can be had, and space comes back.
fn work_on(recovered: Recovered, settings: SlotSettings) {
    let free = recovered.heap.free_blocks();
    let table = Table::of(recovered.heap, recovered.records);
    let (mut client, mut cleaner) = (table.client(3), table.cleaner(4));
    let before = table.heap.usage();
    let mut number = 1_000_000;
    let full = loop {
        number += 1;
        let put = client.put(&key_of(number), &bytes_of(number - number % 6 + 3, settings.form));
        if let Err(error) = put {
            break error;
        }
    };
    assert!(matches!(full, SlotError::Full { .. }), "{full}");
    let usage = table.heap.usage();
    assert_eq!(usage.used_blocks, before.used_blocks + free, "a block could not be had");
    for key in table.keys() {
        assert!(client.delete(&key));
    }
    client.leave();
    while cleaner.reclaim(100).expect("nothing is to be moved") {}
    cleaner.leave();
    assert_eq!(table.heap.usage().live_records, 0);
}

/// Calls `each` with the snapshot before every operation of `act` on the medium.
fn at_each_operation(region: &Region, each: impl FnMut(&Snapshot) + 'static, act: impl FnOnce()) {
    let mut each = each;
    let sim = region.simulator().expect("simulated").clone();
    sim.set_observer(Some(Box::new(move |sim: &Sim, _: Event| each(&sim.snapshot()))));
    act();
    sim.set_observer(None);
}

/// Checks images of a crash point, and of crashes while it is being recovered.
fn explore(
    arena: &RefCell<SimArena>,
    snapshot: &Snapshot,
    settings: SlotSettings,
    model: &Model,
    seed: u64,
    budget: usize,
) -> usize {
    let mut states = 0;
    for image in snapshot.images(seed, budget) {
        let region = arena.borrow_mut().boot(snapshot, &image, seed);
        states += 1;
        if !seed.is_multiple_of(5) {
            verify(&region, settings, model);
            continue;
        }
        let crashes = Rc::new(RefCell::new(Vec::new()));
        let noted = crashes.clone();
        let mut recovered = None;
        at_each_operation(
            &region,
            move |during| noted.borrow_mut().push(during.clone()),
            || recovered = Some(verify(&region, settings, model)),
        );
        let (recovered, answered) = recovered.expect("it was run");
        work_on(recovered, settings);
        for during in crashes.take().iter().skip((seed % 3) as usize).step_by(3) {
            for image in during.images(seed, 3) {
                let (_, again) = verify(&arena.borrow_mut().boot(during, &image, seed), settings, model);
                assert!(again.keys().eq(answered.keys()));
                states += 1;
            }
        }
    }
    states
}

/// After a crash of the process, the answers of the next open must survive a power failure.
fn explore_process_crash(
    arena: &RefCell<SimArena>,
    snapshot: &Snapshot,
    settings: SlotSettings,
    model: &Model,
    seed: u64,
) {
    let region = arena.borrow_mut().boot_process_crash(snapshot, seed);
    let (recovered, answered) = verify(&region, settings, model);
    drop(recovered);
    let answers: Model =
        answered.into_iter().map(|(key, settled)| (key, Known { settled, in_flight: None })).collect();
    let after = region.simulator().expect("simulated").snapshot();
    for image in after.images(seed, 6) {
        verify(&arena.borrow_mut().boot(&after, &image, seed), settings, &answers);
    }
}

/// One client's random work, with its acknowledgements told to the model.
fn work(
    table: &Table,
    settings: SlotSettings,
    model: &RefCell<Model>,
    seed: u64,
    task: u64,
    operations: u64,
) {
    let mut random = Random(seed ^ task << 32);
    let (mut client, mut cleaner) = (table.client(seed + task), table.cleaner(seed - task));
    for operation in 0..operations {
        // Clients write different keys, and read all.
        let own = random.below(KEYS / 2) * 2 + task % 2;
        let number = (operation * 2 + task) * 6 + random.below(6);
        let put = |state: State| model.borrow_mut().entry(own).or_default().in_flight = Some(state);
        let acknowledge = |state: State| {
            *model.borrow_mut().entry(own).or_default() = Known { settled: state, in_flight: None };
        };
        match random.below(12) {
            0..=5 => {
                put(Some(number));
                match client.put(&key_of(own), &bytes_of(number, settings.form)) {
                    Ok(_) => acknowledge(Some(number)),
                    Err(SlotError::Full { .. }) => {
                        let settled = model.borrow()[&own].settled;
                        acknowledge(settled);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            6 | 7 => {
                put(None);
                client.delete(&key_of(own));
                acknowledge(None);
            }
            8 => observe(&mut client, settings, model, random.below(KEYS)),
            9 if operation % 3 == 0 => {
                client.leave();
                client = table.client(seed + operation);
                table.heap.release_tail();
            }
            _ => match cleaner.reclaim(1 + random.below(60) as u8) {
                Ok(_) | Err(SlotError::Full { .. }) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }
    client.leave();
    cleaner.leave();
}

/// Reads a key. What was read must not be lost any more.
fn observe(client: &mut Client<'_>, settings: SlotSettings, model: &RefCell<Model>, key: u64) {
    let read = client.get(&key_of(key)).map(|(value, _)| value);
    if let Some(known) = model.borrow_mut().get_mut(&key)
        && let Some(state) = known.in_flight
        && state != known.settled
        && read == state.map(|number| bytes_of(number, settings.form))
        && read != known.settled.map(|number| bytes_of(number, settings.form))
    {
        *known = Known { settled: state, in_flight: None };
    }
}

/// Runs clients over one heap and explores the crashes at every operation. Returns the states opened.
fn run(settings: SlotSettings, seed: u64, tasks: u64, operations: u64, budget: usize) -> usize {
    let region = region(LEN);
    let table = Rc::new(Table::new(heap(&region, ZONE, settings, RESERVE)));
    let model = Rc::new(RefCell::new(Model::new()));
    let states = Rc::new(Cell::new(0));
    let arena = Rc::new(RefCell::new(SimArena::new()));
    let (known, count) = (model.clone(), states.clone());
    let mut point = 0;
    at_each_operation(
        &region,
        move |snapshot| {
            let model = known.borrow().clone();
            point += 1;
            count.set(count.get() + explore(&arena, snapshot, settings, &model, seed + point, budget));
            if point % 4 == 0 {
                explore_process_crash(&arena, snapshot, settings, &model, seed + point);
            }
        },
        || {
            let boxed = (0..tasks).map(|task| {
                let (table, model) = (&*table, &*model);
                let work = move || work(table, settings, model, seed + 1000, task, operations);
                Box::new(work) as Box<dyn FnOnce() + '_>
            });
            sched::run(seed, boxed.collect()).expect("the run ends");
        },
    );
    states.get()
}

#[test]
fn records_of_one_size_survive_a_crash_at_any_operation() {
    let pairs = SlotSettings { pages_per_block: 2, ..fixed() };
    let states: usize = (0..2).map(|seed| run([fixed(), pairs][seed], seed as u64 * 7919, 1, 50, 8)).sum();
    assert!(states > 2000, "{states} states explore too little");
}

#[test]
fn records_of_any_size_survive_a_crash_at_any_operation() {
    let pairs = SlotSettings { pages_per_block: 2, ..variable() };
    let states: usize = (0..2).map(|seed| run([variable(), pairs][seed], seed as u64 * 7907, 1, 50, 8)).sum();
    assert!(states > 2000, "{states} states explore too little");
}

#[test]
fn two_clients_survive_a_crash_at_any_operation() {
    for seed in 0..2 {
        run(fixed(), seed * 104_729, 2, 25, 6);
        run(SlotSettings { pages_per_block: 2, ..variable() }, seed * 104_723, 2, 25, 6);
    }
}

/// An update in place is there or not, and there once it has returned.
#[test]
fn an_update_in_place_survives_a_crash_whole_or_not_at_all() {
    let region = region(LEN);
    let heap = heap(&region, ZONE, fixed(), RESERVE);
    let mut owner = heap.owner(0);
    let offset = heap.place(&mut owner, &key_of(1), &[0; 504], 1).expect("room").offset();
    let arena = Rc::new(RefCell::new(SimArena::new()));
    let read = move |arena: &RefCell<SimArena>, snapshot: &Snapshot| -> BTreeSet<u64> {
        let word = |image: quipu_medium::sim::Image| {
            let recovered = recover(&arena.borrow_mut().boot(snapshot, &image, 1), fixed(), RESERVE);
            let mut buffer = Vec::new();
            let record = recovered.heap.read(offset, &mut buffer).expect("sound").expect("found");
            u64::from_le_bytes(record.value[16..24].try_into().expect("a word"))
        };
        snapshot.images(1, 0).map(word).collect()
    };
    for number in 1..20u64 {
        let (old, new) = ((number - 1) * 0x0101_0101, number * 0x0101_0101);
        let booted = arena.clone();
        at_each_operation(
            &region,
            move |snapshot| assert!(read(&booted, snapshot).is_subset(&BTreeSet::from([old, new]))),
            || assert_eq!(heap.update_in_place(offset, &key_of(1), 16, |_| new).expect("aligned"), Some(old)),
        );
        let after = region.simulator().expect("simulated").snapshot();
        assert_eq!(read(&arena, &after), BTreeSet::from([new]), "acknowledged");
    }
}

/// The location type says which record counts; the model never meets it, so it is held against the heap here.
#[test]
fn the_higher_number_counts_wherever_it_is() {
    let heap = heap(&region(LEN), ZONE, fixed(), 0);
    let mut owner = heap.owner(0);
    let placed = heap.place(&mut owner, &key_of(1), &bytes_of(1, fixed().form), 5).expect("room");
    let (low, high) = (
        Location { offset: placed.offset(), sequence: 5 },
        Location { offset: placed.offset(), sequence: 6 },
    );
    assert!(heap.supersedes(high, low) && !heap.supersedes(low, high) && !heap.supersedes(low, low));
}
