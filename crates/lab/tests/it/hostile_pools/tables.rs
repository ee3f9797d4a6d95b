//! Salvage of a pool with tables: all that proves itself is kept in its table, and nothing that was deleted,
//! dropped or never finished comes back.

use super::victim::Victim;
use quipu::{Design, Instead, SalvageReport, Store, WriteBatch};
use quipu_lab::contract::{Contents, value_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The contents of each table.
type Tables = BTreeMap<String, Contents>;

const NAMES: [&str; 3] = ["default", "herd", "wool"];

/// Deletes in several ways, batches over all tables, a table that is dropped, and some memtables.
fn lived(closed: bool) -> (Victim, Tables) {
    let mut tables = Tables::new();
    let victim = Victim::of(Design::XP, 4 << 20, 16 << 10, closed, |store| {
        let (herd, wool) = (store.create_table("herd").unwrap(), store.create_table("wool").unwrap());
        let dropped = store.create_table("dropped").unwrap();
        let mut all = NAMES.map(|_| Contents::new());
        let clients = [store.client(), store.client().on(&herd).unwrap(), store.client().on(&wool).unwrap()];
        for (nth, (mut client, contents)) in clients.into_iter().zip(&mut all).enumerate() {
            for number in 0..600u64 {
                let key = format!("key {:04}", number * 7 % 500).into_bytes();
                let value = value_of(&key, number + 1000 * nth as u64, 40 + (number as usize + nth) % 200);
                client.put(&key, &value).unwrap();
                contents.insert(key, value);
            }
            for number in (0..500).step_by(9) {
                let key = format!("key {number:04}").into_bytes();
                client.delete(&key).unwrap();
                contents.remove(&key);
            }
            let (from, to) = (&b"key 0300"[..], &b"key 0350"[..]);
            client.delete_range(Bound::Included(from), Bound::Excluded(to)).unwrap();
            contents.retain(|key, _| !(from..to).contains(&&key[..]));
        }
        store.client().on(&dropped).unwrap().put(b"dropped", b"with its table").unwrap();
        store.drop_table(&dropped).unwrap();
        for number in 0..20u64 {
            let key = format!("batch {number:02}").into_bytes();
            let mut batch = WriteBatch::new();
            batch.put(&key, b"of the default table");
            batch.on(&herd).put(&key, b"of the herd");
            batch.on(&wool).put(&key, b"of the wool");
            store.client().write(&batch).unwrap();
            for (contents, value) in
                all.iter_mut().zip(["of the default table", "of the herd", "of the wool"])
            {
                contents.insert(key.clone(), value.into());
            }
        }
        tables = NAMES.iter().map(|name| name.to_string()).zip(all).collect();
        Contents::new()
    });
    (victim, tables)
}

/// Salvages these bytes.
fn salvaged(bytes: &[u8]) -> (SalvageReport, Tables) {
    let folder = tempfile::tempdir().unwrap();
    let (path, into) = (folder.path().join("damaged"), folder.path().join("new"));
    std::fs::write(&path, bytes).unwrap();
    let report =
        Store::salvage(&path, &into, &super::victim::options().accept_copy(true), &|_, _| {}).unwrap();
    assert!(std::fs::read(&path).unwrap() == bytes, "the damaged pool was changed");
    let store = Store::open(&into, &super::victim::options()).unwrap();
    let tables = store.tables().unwrap().into_iter().map(|table| {
        let client = store.client().on(&table).unwrap();
        let pairs = client.pin().iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        (table.name().to_owned(), pairs)
    });
    let tables: Tables = tables.collect();
    assert_eq!(report.keys, tables.values().map(|contents| contents.len() as u64).sum::<u64>());
    (report, tables)
}

/// The keys that two states of tables do not have in common.
fn differing(some: &Tables, others: &Tables) -> Vec<(String, String)> {
    let pairs = |tables: &Tables| -> BTreeSet<(String, Vec<u8>, Vec<u8>)> {
        let of_table = |(name, contents): (&String, &Contents)| {
            let name = name.clone();
            contents.clone().into_iter().map(move |(key, value)| (name.clone(), key, value))
        };
        tables.iter().flat_map(of_table).collect()
    };
    let differ = pairs(some).symmetric_difference(&pairs(others)).cloned().collect::<Vec<_>>();
    differ.into_iter().map(|(name, key, _)| (name, String::from_utf8_lossy(&key).into_owned())).collect()
}

/// The one place of these bytes.
fn place_of(bytes: &[u8], wanted: &[u8]) -> usize {
    let mut places = bytes.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted);
    let (place, _) = places.next().expect("they are there");
    assert!(places.next().is_none(), "in two places");
    place
}

#[test]
fn a_sound_pool_is_copied_whole() {
    for closed in [true, false] {
        let (victim, expected) = lived(closed);
        let (report, tables) = salvaged(&victim.bytes);
        assert!(report.damage.places.is_empty() && report.lost.is_empty(), "{report:?}");
        assert!(tables == expected, "closed: {closed}");
    }
}

/// A chunk is one put here, so that the others are kept.
#[test]
fn a_record_that_does_not_prove_itself_is_named() {
    for closed in [true, false] {
        let (victim, mut expected) = lived(closed);
        let key = b"key 0001".to_vec();
        let value = expected["herd"][&key].clone();
        let at = place_of(&victim.bytes, &[&key[..], &value].concat());
        let (report, tables) = salvaged(&victim.damaged(|bytes| bytes[at + 20] ^= 1));
        let herd = expected.get_mut("herd").unwrap();
        let [lost] = &report.lost[..] else { panic!("{:?}", report.lost) };
        assert_eq!(lost.key, key);
        match tables["herd"].get(&key) {
            Some(older) => assert!(lost.instead == Instead::OlderValue && *older != value),
            None => assert_eq!(lost.instead, Instead::Nothing),
        }
        herd.remove(&key);
        let mut tables = tables;
        tables.get_mut("herd").unwrap().remove(&key);
        assert!(tables == expected, "closed: {closed}");
        assert!(!report.damage.places.is_empty());
    }
}

#[test]
fn the_half_of_an_item_that_may_not_have_ended_does_not_count() {
    let (victim, mut expected) = lived(false);
    let halves = place_of(&victim.bytes, b"batch 19of the herd");
    let (report, tables) = salvaged(&victim.damaged(|bytes| bytes[halves] ^= 1));
    expected.values_mut().for_each(|contents| drop(contents.remove(&b"batch 19"[..])));
    assert!(tables == expected, "{:?}, {report:?}", differing(&tables, &expected));
    // Of one that was durable, all but the damaged part does.
    let (victim, mut expected) = lived(true);
    let halves = place_of(&victim.bytes, b"batch 19of the herd");
    let (_, tables) = salvaged(&victim.damaged(|bytes| bytes[halves + 8] ^= 1));
    expected.get_mut("herd").unwrap().remove(&b"batch 19"[..]);
    assert!(tables == expected);
}

#[test]
fn without_the_header_of_a_zone_its_records_are_lost_alone() {
    let (victim, expected) = lived(true);
    let zones = victim.chunks();
    for chunks in [&zones[0], &zones[1], &zones[zones.len() - 1]] {
        let zone = chunks[0].start - 64;
        let (report, tables) = salvaged(&victim.damaged(|bytes| bytes[zone + 20] ^= 1));
        assert!(report.damage.places.iter().any(|place| place.offset == zone as u64), "{report:?}");
        let (kept, all): (usize, usize) =
            (tables.values().map(Contents::len).sum(), expected.values().map(Contents::len).sum());
        assert!(kept * 2 > all, "{kept} of {all}");
        for (name, contents) in &tables {
            let unknown = contents.keys().filter(|key| !expected[name].contains_key(*key)).count();
            // Deletions may be lost, too.
            assert!(unknown < 100, "{name}: {unknown}");
        }
    }
}

#[test]
fn without_the_names_of_tables_their_records_are_kept() {
    let (victim, mut expected) = lived(true);
    let objects = victim.objects(b"QSUB");
    // Those of the default table and the herd.
    let bytes = victim.damaged(|bytes| objects[..2].iter().for_each(|at| bytes[at + 40] ^= 1));
    let (report, tables) = salvaged(&bytes);
    assert!(report.damage.places.len() >= 2, "{report:?}");
    let herd = tables.keys().find(|name| name.starts_with("unnamed ")).expect("a table without its name");
    let contents = expected.remove("herd").unwrap();
    expected.insert(herd.clone(), contents);
    assert!(tables == expected);
}

#[test]
fn without_the_anchor_all_is_kept() {
    let (victim, expected) = lived(true);
    let anchors = victim.objects(b"QANC");
    let bytes = victim.damaged(|bytes| anchors.iter().for_each(|at| bytes[at + 16] ^= 1));
    let (report, tables) = salvaged(&bytes);
    let told: Vec<&str> = report.damage.places.iter().map(|place| &place.what[..]).collect();
    assert_eq!(told, ["the anchor of the memtables"]);
    assert!(tables == expected);
}

/// The end marks are all that tells where an earlier recovery has cut the order off, but for the numbers.
#[test]
fn an_item_that_was_cut_off_stays_away_without_the_end_marks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = super::victim::options().size(4 << 20).zone_size(16 << 10).design(Design::XP);
    let store = Store::create(&path, &options).unwrap();
    let herd = store.create_table("herd").unwrap();
    store.client().put(b"llama", b"old").unwrap();
    store.client().on(&herd).unwrap().put(b"llama", b"old").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"llama", b"never finished");
    batch.put(b"vicuna", b"half of the default table");
    batch.on(&herd).put(b"vicuna", b"half of the herd");
    store.client().write(&batch).unwrap();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let half = place_of(&bytes, b"half of the herd");
    bytes[half] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let store = Store::open(&path, &options).unwrap();
    assert_eq!(store.client().get(b"vicuna").unwrap(), None);
    store.client().put(b"later", b"one").unwrap();
    store.client().put(b"later", b"another").unwrap();
    store.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(64).filter(|at| bytes[at + 8..at + 12] == *b"QMEM").collect::<Vec<_>>()
    {
        bytes[at + 70] ^= 1;
    }
    let (_, tables) = salvaged(&bytes);
    let expected: Contents = [(&b"llama"[..], &b"old"[..]), (b"later", b"another")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    assert_eq!(tables["default"], expected);
    assert!(!tables["herd"].contains_key(&b"vicuna"[..]));
}

#[test]
fn a_key_of_a_hole_that_a_range_delete_took_is_not_lost() {
    let victim = Victim::of(Design::XP, 4 << 20, 16 << 10, false, |store| {
        let mut client = store.client();
        client.put(b"key 1", b"an older value").unwrap();
        client.put(b"key 1", b"the damaged value").unwrap();
        client.delete_range(Bound::Included(b"key"), Bound::Unbounded).unwrap();
        client.put(b"other", b"value").unwrap();
        Contents::new()
    });
    let at = place_of(&victim.bytes, b"the damaged value");
    let (report, tables) = salvaged(&victim.damaged(|bytes| bytes[at] ^= 1));
    assert!(report.lost.is_empty() && !report.damage.places.is_empty(), "{report:?}");
    assert_eq!(tables["default"].len(), 1);
}

#[test]
fn a_full_pool_fits_one_of_its_size() {
    let victim = Victim::of(Design::XP, 8 << 20, 64 << 10, true, |store| {
        let (mut client, mut number) = (store.client(), 0u64);
        loop {
            let pairs: Vec<_> = (0..64).map(|next| ((number + next).to_be_bytes(), [1; 16])).collect();
            if client.put_many(&pairs).is_err() {
                return Contents::new();
            }
            number += 64;
        }
    });
    let (report, _) = salvaged(&victim.bytes);
    assert!(report.keys > 100_000 && report.damage.places.is_empty(), "{}", report.keys);
}

#[test]
fn a_value_that_looks_like_chunks_costs_no_other_record() {
    let victim = Victim::of(Design::XP, 8 << 20, 64 << 10, true, |store| {
        let mut client = store.client();
        client.put(b"hostile key 0001", &super::unproved::like_chunks(12 << 10)).unwrap();
        (0..300).for_each(|number| client.put(format!("key {number}").as_bytes(), b"value").unwrap());
        Contents::new()
    });
    // The checkpoint has the key, too.
    let at = place_of(&victim.bytes, &[&b"hostile key 0001"[..], &[0; 20]].concat());
    let (_, tables) = salvaged(&victim.damaged(|bytes| bytes[at - 16 - 64 + 8] ^= 1));
    assert_eq!(tables["default"].len(), 300, "the damaged one alone is lost");
}
