//! The savings of PACMAN's techniques on the medium under Viper's heap (PACMAN sections 3.2 and 3.3), counted
//! exactly on the simulator, each with them and without.

use crate::shared::cost;

use cost::cost_of;
use quipu::internals::{SlotSettings, Techniques};
use quipu::{Client, Design, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::{Cost, SimOptions};

const VALUE: usize = 48;
/// Bytes of its entry: length word, sequence number, key and value.
const ENTRY: u64 = 16 + 8 + VALUE as u64;

const BATCH_OFF: Techniques = Techniques { batch: false, ..Techniques::ALL };

fn store_of(techniques: Techniques) -> Store {
    let region = Region::sim(SimOptions { len: 8 << 20, ..SimOptions::default() });
    let options = Options::new()
        .design(Design::VIPER_PACMAN)
        .with(|options| options.techniques = techniques)
        // Records of one store stand where those of another do.
        .with(|options| options.slots = SlotSettings { random_first_page: false, ..SlotSettings::default() })
        .zone_size(256 << 10)
        .cleaner(false);
    Store::create_on(region, &options).expect("a new pool")
}

/// A store whose run has begun and whose client has begun a block.
fn warm(techniques: Techniques) -> (Store, Client) {
    let store = store_of(techniques);
    let mut client = store.client();
    put(&mut client, u64::MAX, 0);
    (store, client)
}

fn put(client: &mut Client, number: u64, version: u8) {
    client.put(&number.to_be_bytes(), &[version; VALUE]).expect("room");
}

/// The cost of each of so many writes, each of the key with its number.
fn costs(store: &Store, writes: u64, mut write: impl FnMut(u64)) -> Vec<Cost> {
    (0..writes).map(|number| cost_of(store, || write(number))).collect()
}

#[test]
fn an_update_costs_what_an_insert_costs_and_reads_nothing() {
    const FIRST: u64 = 100;
    let inserts = |techniques| {
        let (store, mut client) = warm(techniques);
        (0..FIRST).for_each(|number| put(&mut client, number, 0));
        costs(&store, FIRST, |number| put(&mut client, FIRST + number, 1))
    };
    let updates = |techniques| {
        let (store, mut client) = warm(techniques);
        (0..FIRST).for_each(|number| put(&mut client, number, 0));
        let costs = costs(&store, FIRST, |number| put(&mut client, number, 1));
        (costs, store.stats())
    };
    let (found, stats) = updates(Techniques::ALL);
    for (update, insert) in found.iter().zip(inserts(Techniques::ALL)) {
        assert_eq!((update.reads, update.lines_read), (0, 0), "{update:?}");
        assert_eq!(update.fences, insert.fences, "{update:?}");
        assert_eq!(update.lines_persisted(), insert.lines_persisted(), "{update:?}");
        assert_eq!(update.words_stored, insert.words_stored, "{update:?}");
    }
    assert_eq!(stats.records, FIRST + 1);
    // Without, the old record is read, and its mark cleared: one word, one line, one fence.
    let (found, raw_stats) = updates(Techniques::RAW);
    for (update, insert) in found.iter().zip(inserts(Techniques::RAW)) {
        assert!(update.lines_read > 0, "{update:?}");
        assert_eq!(update.fences, insert.fences + 1, "{update:?}");
        assert_eq!(update.lines_persisted(), insert.lines_persisted() + 1, "{update:?}");
    }
    assert_eq!(stats.garbage_bytes, raw_stats.garbage_bytes, "the old records are known to be dead");
}

#[test]
fn a_delete_costs_what_a_put_without_value_costs() {
    let (store, mut client) = warm(Techniques::ALL);
    (0..50).for_each(|number| put(&mut client, number, 0));
    for number in 0..50u64 {
        let cost = cost_of(&store, || assert!(client.remove(&number.to_be_bytes()).expect("a delete")));
        assert_eq!((cost.fences, cost.reads), (2, 0), "{cost:?}");
        // Number, key and the zero word behind them; then the length word.
        assert_eq!(cost.words_stored, 3 + 1, "{cost:?}");
        let again = cost_of(&store, || assert!(!client.remove(&number.to_be_bytes()).expect("a delete")));
        assert_eq!((again.fences, again.words_stored), (0, 0), "there is nothing to delete: {again:?}");
    }
    assert_eq!(store.stats().records, 1);
}

/// Fences for each block that is freed, and records that move for each, of a store half of whose records are
/// dead.
fn fences_of_reclamation(techniques: Techniques) -> (u64, u64) {
    let (store, mut client) = warm(techniques);
    const KEYS: u64 = 4000;
    (0..KEYS).for_each(|number| put(&mut client, number, 0));
    (0..KEYS).step_by(2).for_each(|number| put(&mut client, number, 1));
    let mut done = (0, 0);
    let cost = cost_of(&store, || done = store.compact().expect("room"));
    let (freed, moved) = done;
    assert!(freed >= 10, "{freed} blocks");
    (cost.fences / freed, moved / ENTRY / freed)
}

#[test]
fn the_copies_of_a_block_are_one_fence() {
    let (fences, records) = fences_of_reclamation(Techniques::ALL);
    // One for the copies, one for the words that let them count, one for the mark that the block is free; and
    // two copies fill one block, which has three when it is begun.
    assert!(records > 100, "{records} records");
    assert!(fences <= 6, "{fences} fences for a block");
    let (fences, records) = fences_of_reclamation(BATCH_OFF);
    assert!(fences + 1 >= 2 * records, "{fences} fences for {records} records");
    let (fences, records) = fences_of_reclamation(Techniques::RAW);
    assert!(fences + 1 >= 3 * records, "{fences} fences for {records} records");
}

#[test]
fn settings_are_remembered_and_what_cannot_be_is_refused() {
    let (store, client) = warm(BATCH_OFF);
    let settings = store.settings();
    let value = |name| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    assert_eq!(
        ["pacman", "reduce", "separate", "batch"].map(value),
        [Some("in part"), Some("on"), Some("on"), Some("off")]
    );
    assert_eq!((value("form"), value("offset-map"), value("shortcut")), (None, None, None));
    drop(client);
    let region = store.region().clone();
    drop(store);
    let found = Store::open_on(region, &Options::default()).expect("it opens").settings();
    assert_eq!(found, settings);
    let mut options = Options::new().design(Design::VIPER_PACMAN);
    options = options.set("pacman", "off").expect("it has it");
    options = options.set("batch", "on").expect("it has it");
    let region = Region::sim(SimOptions { len: 8 << 20, ..SimOptions::default() });
    let error = Store::create_on(region, &options).expect_err("no such store").to_string();
    assert!(error.contains("batch needs reduce"), "{error}");
}
