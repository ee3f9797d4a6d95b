//! The costs of writes into files of a node, counted exactly on the simulator (NStore, section III).
//!
//! A record has its lines for itself: a header of 24 bytes, a parent of 8, key and value, in whole lines. A
//! file takes a fence for its header and one for its zone, one for each further chunk of its high water, and
//! one for its end mark.

use crate::shared::cost;

use cost::cost_of;
use quipu::internals::FreeList;
use quipu::{Client, Design, Error, Options, Store};
use quipu_medium::sim::{Cost, SimArena, SimOptions, sched};
use quipu_medium::{LINE, Node, Region};
use quipu_parts::space::{FormatOptions, Space};
use std::ops::Bound;

const ZONE: u64 = 256 << 10;
/// The high water rises by so much.
const CHUNK: u64 = 64 << 10;

fn store_on(nodes: u16) -> Store {
    Store::create_on(region(nodes), &options()).unwrap()
}

fn region(nodes: u16) -> Region {
    Region::sim(SimOptions { len: 64 << 20, nodes, ..SimOptions::default() })
}

fn options() -> Options {
    Options::new().design(Design::NSTORE).zone_size(ZONE).cleaner(false)
}

/// Options for entries whose first word is written last.
fn op_last() -> Options {
    options().set("entry", "op-last").unwrap()
}

/// Bytes of a record's lines.
fn lines(value: usize) -> u64 {
    (24 + 8 + 8 + value as u64).next_multiple_of(8).div_ceil(LINE)
}

/// Keys of eight bytes, which c-ALEX tells apart by itself.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Opens the file of each key's cluster, so that the writes that follow open none.
fn warm(client: &mut Client, keys: u64) {
    (0..keys).for_each(|number| client.put(&key(number), b"first").unwrap());
}

/// Writes of all kinds to a store: each takes its own lines, so many fences for so many lines, and reads
/// nothing.
fn check_writes(store: &Store, fences_of: impl Fn(u64) -> u64) {
    let mut client = store.client();
    warm(&mut client, 200);
    let check = |cost: Cost, value: usize, what: &str| {
        let lines = lines(value);
        assert_eq!((cost.fences, cost.reads), (fences_of(lines), 0), "{what} of {value}: {cost:?}");
        assert_eq!(cost.lines_persisted(), lines, "{what} of {value}: {cost:?}");
    };
    // With header, parent and key, 24 bytes fill a line.
    for (number, len) in (0..200u64).zip([0, 1, 24, 25, 88, 200].into_iter().cycle()) {
        let value = vec![7; len];
        let new = 1000 + number;
        check(cost_of(store, || client.put(&key(new), &value).unwrap()), len, "a new key");
        check(cost_of(store, || client.put(&key(number), &value).unwrap()), len, "an update");
        check(cost_of(store, || client.delete(&key(new)).unwrap()), 0, "a deletion");
        let cost = cost_of(store, || client.delete(&key(new)).unwrap());
        assert_eq!((cost.fences, cost.lines_persisted()), (0, 0), "there is nothing to delete");
    }
}

#[test]
fn a_write_is_one_fence_and_its_own_lines_and_reads_nothing() {
    check_writes(&store_on(1), |_| 1);
}

#[test]
fn a_file_takes_a_fence_for_each_step_of_its_life() {
    let store = store_on(1);
    let mut client = store.client();
    client.put(&key(0), b"first").unwrap();
    // One key, and so one cluster: files of it are filled one after the other.
    let value = vec![7; 1000];
    let of_file = (ZONE - LINE) / (lines(1000) * LINE);
    // The first file has been opened, and the last one is not full.
    let files = 3;
    let cost = cost_of(&store, || {
        (0..files * of_file).for_each(|_| client.put(&key(0), &value).unwrap());
    });
    let (opened, sealed, raised) = (2 * (files - 1), files - 1, files * (ZONE / CHUNK - 1));
    assert_eq!(cost.fences, files * of_file + opened + sealed + raised, "{cost:?}");
}

/// A scan of records on all nodes, with threads that read near and without: with them no line comes from
/// another node (section III-E).
#[test]
fn scans_read_no_line_of_another_node_if_threads_read_for_them() {
    for (nodes, design) in [(2, Design::NSTORE), (4, Design::NSTORE), (2, Design::QUIPU)] {
        let region = Region::sim(SimOptions { len: 64 << 20, nodes, ..SimOptions::default() });
        let options = Options::new().design(design).zone_size(ZONE).cleaner(false);
        let options = if design == Design::QUIPU { options.set("index", "alex").unwrap() } else { options };
        Store::create_on(region.clone(), &options).unwrap().close().unwrap();
        let [read_far, copied] = ["0", "2"].map(|readers| {
            let options = options.clone().set("readers", readers).unwrap();
            let store = Store::open_on(region.clone(), &options).unwrap();
            for node in 0..nodes {
                region.pin(Node(node)).unwrap();
                let mut client = store.client();
                for number in (u64::from(node)..800).step_by(usize::from(nodes)) {
                    client.put(&number.to_be_bytes(), &[number as u8; 3000]).unwrap();
                }
            }
            region.pin(Node(1)).unwrap();
            let client = store.client();
            let guard = client.pin();
            let expected = |number: u64| (number.to_be_bytes().to_vec(), vec![number as u8; 3000]);
            let owned = |pair: Result<quipu::KeyValue<'_>, quipu::Error>| {
                let (key, value) = pair.unwrap();
                (key.into_owned(), value.into_owned())
            };
            let cost = cost_of(&store, || {
                let all = || guard.range(Bound::Unbounded, Bound::Unbounded).unwrap();
                assert!(all().map(owned).eq((0..800).map(expected)));
                assert!(all().rev().map(owned).eq((0..800).rev().map(expected)));
            });
            assert_eq!(region.current_node(), Some(Node(1)));
            let far = 1.0 - 1.0 / f64::from(nodes);
            let expected = if readers == "0" { 0.0 } else { 1600.0 * far };
            assert_eq!(store.stats().copied_records as f64, expected, "{design}, {nodes} nodes");
            (cost.remote_lines_read, cost.lines_read)
        });
        println!(
            "{design}, {nodes} nodes: remote lines, and all, without threads {read_far:?}, with {copied:?}"
        );
        assert_eq!(copied.0, 0, "{design}, {nodes} nodes");
        assert!(read_far.0 * u64::from(nodes) >= read_far.1 * u64::from(nodes - 1), "{read_far:?}");
    }
}

/// A copy that has expired before its turn is not shown.
#[test]
fn scans_show_no_copy_that_has_expired_meanwhile() {
    let store = store_on(2);
    let (region, start) = (store.region(), store.region().now());
    for number in 0..40u64 {
        region.pin(Node(number as u16 % 2)).unwrap();
        store.client().put_until(&number.to_be_bytes(), &[7; 2000], start + 10 + number / 20).unwrap();
    }
    let (client, now) = (store.client(), |time| region.simulator().unwrap().set_now(start + time));
    now(9);
    let guard = client.pin();
    let mut pairs = guard.range(Bound::Unbounded, Bound::Unbounded).unwrap();
    assert!(pairs.next().is_some());
    assert_eq!(store.stats().copied_records, 16, "of the first 32 words");
    now(10);
    assert_eq!(pairs.count(), 20, "those that expire later");
}

/// It may end with the first of them.
#[test]
fn a_scan_has_few_bytes_before_it() {
    let store = store_on(2);
    let region = store.region();
    for number in 0..40u64 {
        region.pin(Node(number as u16 % 2)).unwrap();
        store.client().put(&number.to_be_bytes(), &[7; 16 << 10]).unwrap();
    }
    let client = store.client();
    let guard = client.pin();
    assert!(guard.range(Bound::Unbounded, Bound::Unbounded).unwrap().next().is_some());
    let copied = store.stats().copied_records;
    assert!((7..=8).contains(&copied), "{copied}: half of 256 KiB");
}

/// The counters of a file are right at each moment, while it is cleaned and waits for readers too.
#[test]
fn a_moved_record_is_garbage_where_it_was() {
    const KEYS: u64 = 4000;
    let region = Region::sim(SimOptions { len: 2 << 20, ..SimOptions::default() });
    let options = options().zone_size(64 << 10).set("clusters", "1").unwrap();
    let store = Store::create_on(region, &options).unwrap();
    let mut client = store.client();
    (0..KEYS).for_each(|number| client.put(&key(number), &[1; 200]).unwrap());
    for round in 0..20_000u64 {
        client.put(&key((round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % KEYS), &[2; 200]).unwrap();
        let stats = store.stats();
        let live = stats.record_bytes - stats.garbage_bytes;
        assert_eq!(live, KEYS * lines(200) * LINE, "after {round}, {} moved", stats.moved_records);
    }
    assert!(store.stats().moved_records > 0);
}

/// Recovery reads each line of a record once, on its node (section III-G).
#[test]
fn recovery_reads_every_line_once_and_on_its_node() {
    const KEYS: u64 = 2000;
    for nodes in [2, 4] {
        let region = Region::sim(SimOptions { len: 64 << 20, nodes, ..SimOptions::default() });
        let options = Options::new().design(Design::NSTORE).zone_size(ZONE).cleaner(false);
        let store = Store::create_on(region.clone(), &options).unwrap();
        for node in 0..nodes {
            region.pin(Node(node)).unwrap();
            let mut client = store.client();
            for number in (u64::from(node)..KEYS).step_by(usize::from(nodes)) {
                client.put(&key(number), &[7; 1000]).unwrap();
            }
        }
        let files = store.stats().zones - store.stats().free_zones;
        // Without a close.
        drop(store);
        let mut cost = Cost::default();
        let open = || {
            let options = options.clone().recovery_threads(usize::from(nodes));
            let before = region.simulator().unwrap().cost();
            let store = Store::open_on(region.clone(), &options).unwrap();
            cost = region.simulator().unwrap().cost() - before;
            assert_eq!(store.stats().records, KEYS);
        };
        sched::run(1, vec![Box::new(open)]).unwrap();
        // Each open file is read up to its high water.
        let most = KEYS * lines(1000) + (files + 1) * (CHUNK / LINE);
        assert!(
            (KEYS * lines(1000)..most).contains(&cost.lines_read),
            "{nodes} nodes, {files} files: {cost:?}"
        );
        // The opener, on the first node, looks at the table of all zones, and at zones that are free.
        for from in 0..usize::from(nodes) {
            for to in (0..usize::from(nodes)).filter(|to| *to != from) {
                let zones = 256 / u64::from(nodes);
                let allowed = if from == 0 { 6 * zones } else { 0 };
                let read = cost.read_by_nodes[from][to];
                assert!(read <= allowed, "{nodes} nodes: {read} lines of node {to} read from node {from}");
            }
        }
    }
}

/// Every key is changed by clients of other nodes than the one that wrote it. Only a cleaner, which marks the
/// records that were replaced, writes to other nodes.
#[test]
fn writes_stay_on_their_node_and_marks_do_not() {
    for nodes in [2, 4] {
        let mut store = store_on(nodes);
        let region = store.region().clone();
        let cost_on = |node: u16, work: &mut dyn FnMut(&mut Client)| {
            region.pin(Node(node)).unwrap();
            cost_of(&store, || work(&mut store.client()))
        };
        // The run begins, and each node has its first files.
        for node in 0..nodes {
            cost_on(node, &mut |client| warm(client, 200));
        }
        for round in 0..4u64 {
            for node in 0..nodes {
                let cost = cost_on(node, &mut |client| {
                    for number in 0..200 {
                        let of = (u64::from(node) + round) % u64::from(nodes);
                        client.put(&key(of << 32 | number), &[round as u8; 100]).unwrap();
                    }
                });
                assert_eq!(cost.remote_lines_written, 0, "round {round}, node {node} of {nodes}");
            }
        }
        region.pin(Node(0)).unwrap();
        let cost = cost_of(&store, || {
            store.compact().unwrap();
        });
        assert!(cost.remote_lines_written > 0, "{cost:?}");
        assert!(store.check(&|_, _| {}).unwrap().is_sound());
    }
}

/// The paper's way to make an entry count: its first word last. Nothing orders the lines of an entry but a
/// fence between them.
#[test]
fn an_entry_whose_op_word_is_written_last_takes_a_fence_within_a_line_and_two_beyond() {
    let store = Store::create_on(region(1), &op_last()).unwrap();
    check_writes(&store, |lines| if lines == 1 { 1 } else { 2 });
}

/// A cleaner writes the first lines of up to 32 copies behind one further fence.
#[test]
fn copies_share_the_fence_before_their_first_lines() {
    for (len, further) in [(8, 0), (100, 1)] {
        let [checked, last] = [options(), op_last()].map(|options| {
            let store = Store::create_on(region(1), &options.set("clusters", "1").unwrap()).unwrap();
            let mut client = store.client();
            // Each second key of the first file is written again.
            (0..6000).for_each(|number| client.put(&key(number), &vec![1; len]).unwrap());
            (0..6000).step_by(2).for_each(|number| client.put(&key(number), &vec![2; len]).unwrap());
            drop(client);
            let cost = cost_of(&store, || {
                store.compact().unwrap();
            });
            (cost.fences, store.stats().moved_records)
        });
        assert_eq!(checked.1, last.1);
        let (fences, most) = (last.0 - checked.0, further * checked.1.div_ceil(32));
        println!("values of {len}: {} records moved, {fences} further fences", last.1);
        assert!(checked.1 > 0 && (most..most + 16 * further + 1).contains(&fences), "{fences} for {most}");
    }
}

/// A pool from before there was a choice keeps zeros.
#[test]
fn a_pool_that_keeps_zeros_has_checked_entries() {
    let region = region(1);
    let options = FormatOptions {
        zone_size: ZONE,
        design: 11,
        settings: [0; _],
        pools: Vec::new(),
        free_list: FreeList::Persistent,
        secret: [1; 32],
        boot_id: region.boot_id(),
    };
    drop(Space::format(region.clone(), &options).unwrap());
    let refused = Store::open_on(region.clone(), &op_last()).unwrap_err().to_string();
    assert!(refused.contains("was created with entry=checked"), "{refused}");
    let store = Store::open_on(region.clone(), &Options::new()).unwrap();
    assert_eq!(store.design(), Design::NSTORE);
    assert!(store.settings().contains(&("entry", "checked".into())), "{:?}", store.settings());
    let mut client = store.client();
    warm(&mut client, 10);
    let cost = cost_of(&store, || client.put(&key(1), &[7; 100]).unwrap());
    assert_eq!((cost.fences, cost.lines_persisted()), (1, lines(100)));
    drop(client);
    store.close().unwrap();
    let mut store = Store::open_on(region, &Options::new().verify(true)).unwrap();
    assert_eq!(store.client().get(&key(1)).unwrap(), Some(vec![7; 100]));
    assert!(store.check(&|_, _| {}).unwrap().unproved.is_empty());
}

/// An entry that is checked proves all of its bytes, one whose op word was written last its header alone.
#[test]
fn damage_behind_the_header_shows_in_checked_entries_only() {
    // The index in the checkpoint has it as a number, the other way round.
    const KEY: &[u8; 8] = b"abcdefgh";
    const HEADER: u64 = 24;
    for (options, proves_all) in [(options(), true), (op_last(), false)] {
        let region = region(1);
        let store = Store::create_on(region.clone(), &options).unwrap();
        let mut client = store.client();
        client.put(b"LLLLLLLL", &[6; 100]).unwrap();
        client.put(KEY, &[7; 100]).unwrap();
        drop(client);
        store.close().unwrap();
        let mut bytes = vec![0; region.len() as usize];
        region.read_racing(0, &mut bytes);
        let at_key = bytes.chunks_exact(8).position(|word| word == KEY).unwrap() as u64 * 8;
        let record = at_key - HEADER - 8;
        let snapshot = region.simulator().unwrap().snapshot();
        let mut arena = SimArena::new();
        let mut with_flipped = |at: u64| {
            let region = arena.boot(&snapshot, &snapshot.everything(), 1);
            let byte = bytes[at as usize] ^ 1;
            region.write(at, &[byte]);
            region.persist(at, 1);
            Store::open_on(region, &Options::new().verify(true).cleaner(false))
        };
        for at in record..record + HEADER {
            assert!(matches!(with_flipped(at), Err(Error::Damaged(_))), "byte {} of the header", at - record);
        }
        // Bytes of the value.
        for at in [at_key + 8, at_key + 8 + 99] {
            match with_flipped(at) {
                Err(Error::Damaged(damage)) => {
                    assert!(proves_all, "byte {} of the record: {damage:?}", at - record)
                }
                opened => {
                    let mut store = opened.unwrap();
                    assert!(!proves_all, "byte {} of the record", at - record);
                    let client = store.client();
                    assert_ne!(client.get(KEY).unwrap(), Some(vec![7; 100]), "the damage stays");
                    assert_eq!(client.get(b"LLLLLLLL").unwrap(), Some(vec![6; 100]));
                    drop(client);
                    let report = store.check(&|_, _| {}).unwrap();
                    assert!(report.is_sound());
                    assert!(report.unproved[0].contains("values"), "and says so: {:?}", report.unproved);
                }
            }
        }
    }
}
