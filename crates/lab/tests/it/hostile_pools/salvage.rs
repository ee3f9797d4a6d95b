//! Salvage: all that proves itself is kept, what is lost is named, and the damaged pool stays as it was.

use super::victim::{Victim, contents_of, options, without};
use quipu::{Design, Error, ErrorKind, Instead, Levels, LostKey, Options, SalvageReport, Store};
use quipu_lab::contract::{Contents, value_of, verify};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Salvages these bytes and proves the new pool.
fn salvaged(victim: &Victim, bytes: &[u8]) -> Result<(SalvageReport, Contents), Error> {
    let folder = tempfile::tempdir().unwrap();
    let (path, into) = (folder.path().join("damaged"), folder.path().join("new"));
    std::fs::write(&path, bytes).unwrap();
    let result = Store::salvage(&path, &into, &options().accept_copy(true), &|_, _| {});
    assert!(std::fs::read(&path).unwrap() == bytes, "the damaged pool was changed");
    let report = result.inspect_err(|_| assert!(!into.exists(), "a new pool is left behind"))?;
    let mut store = Store::open(&into, &options()).unwrap();
    let contents = contents_of(&store);
    verify(&mut store, &contents);
    assert_eq!(report.keys, contents.len() as u64);
    for (key, value) in &contents {
        let known = victim.contents.get(key) == Some(value) || key.starts_with(b"old ");
        assert!(known, "{} has a value that nobody gave it", key.escape_ascii());
    }
    Ok((report, contents))
}

#[test]
fn a_sound_pool_is_copied_whole() {
    for closed in [true, false] {
        let victim = Victim::usual(closed);
        let (report, contents) = salvaged(&victim, &victim.bytes).unwrap();
        assert!(report.damage.places.is_empty() && report.lost.is_empty(), "{report:?}");
        assert!(contents == victim.contents);
    }
}

#[test]
fn records_that_do_not_prove_themselves_are_named_and_the_others_kept() {
    let victim = Victim::usual(true);
    let segments = victim.segments();
    let hit: Vec<_> =
        segments.iter().flat_map(|segment| [&segment.records[3], &segment.records[9]]).collect();
    // In the value: the key stays legible.
    let bytes = victim.damaged(|bytes| hit.iter().for_each(|record| bytes[record.start + 60] ^= 1));
    let (report, contents) = salvaged(&victim, &bytes).unwrap();
    let mut keys: Vec<_> = hit.iter().map(|record| victim.key_at(record).to_vec()).collect();
    assert!(contents == without(&victim.contents, &keys));
    keys.sort();
    let lost: Vec<_> = report.lost.iter().map(|lost| lost.key.clone()).collect();
    assert_eq!(lost, keys);
    assert!(report.lost.iter().all(|lost| lost.instead == Instead::Nothing));
    assert_eq!(report.damage.places.len(), hit.len());
}

/// The same in place: what does not prove itself is given up, once, and the pool goes on.
#[test]
fn accepted_damage_names_the_keys_and_is_gone() {
    for closed in [true, false] {
        let victim = Victim::usual(closed);
        let segments = victim.segments();
        let hit = &segments[1].records[5];
        // A record, and the end mark of another segment, which loses nothing.
        let bytes = victim.damaged(|bytes| {
            bytes[hit.start + 60] ^= 1;
            bytes[segments[2].start + 40] ^= 1;
        });
        assert!(matches!(victim.refused(&bytes), Error::Damaged(_)));
        let accepting = options().accept_damage(true);
        let mut store = victim.open_with(&bytes, &accepting).unwrap();
        let key = victim.key_at(hit).to_vec();
        let lost = store.recovery().lost_keys.clone();
        assert_eq!(lost, [LostKey { key: key.clone(), instead: Instead::Nothing }], "closed: {closed}");
        assert!(store.recovery().lost.len() >= 2, "{:?}", store.recovery().lost);
        let expected = without(&victim.contents, &[key]);
        verify(&mut store, &expected);
        drop(store);
        for _ in 0..2 {
            let mut store = victim.reopen();
            assert!(store.recovery().lost.is_empty());
            verify(&mut store, &expected);
            store.close().unwrap();
        }
    }
}

#[test]
fn a_segment_without_header_or_end_mark_loses_no_more_than_itself() {
    let victim = Victim::usual(true);
    let segment = &victim.segments()[2];
    let keys: Vec<_> = segment.records.iter().map(|record| victim.key_at(record).to_vec()).collect();
    let headless = victim.damaged(|bytes| bytes[segment.start + 16] ^= 1);
    let (report, contents) = salvaged(&victim, &headless).unwrap();
    assert!(contents == without(&victim.contents, &keys));
    assert_eq!(report.lost.iter().map(|lost| lost.key.clone()).collect::<Vec<_>>(), keys);

    let endless = victim.damaged(|bytes| bytes[segment.start + 40] ^= 1);
    let (report, contents) = salvaged(&victim, &endless).unwrap();
    assert!(contents == victim.contents && report.lost.is_empty());
    assert_eq!(report.damage.places.len(), 1);
}

#[test]
fn what_stands_for_a_lost_record_is_told() {
    let victim = Victim::new(4 << 20, 64 << 10, true, |store| {
        let mut client = store.client();
        for key in [&b"old value"[..], b"old deleted", b"old superseded"] {
            client.put(key, b"the older value").unwrap();
        }
        client.put(b"old value", b"the later value").unwrap();
        client.delete(b"old deleted").unwrap();
        client.put(b"old superseded", b"the later value").unwrap();
        client.put(b"old superseded", b"the last value").unwrap();
        Contents::from([(b"other".to_vec(), value_of(b"other", 0, 10))])
    });
    let segments = victim.segments();
    let records: Vec<_> = segments.iter().flat_map(|segment| &segment.records).collect();
    let bytes = victim.damaged(|bytes| {
        for record in &records[3..6] {
            bytes[record.start] ^= 1;
        }
    });
    let (report, contents) = salvaged(&victim, &bytes).unwrap();
    let lost: Vec<_> = report.lost.iter().map(|lost| (&lost.key[..], lost.instead)).collect();
    assert_eq!(lost, [(&b"old deleted"[..], Instead::DeletedValue), (b"old value", Instead::OlderValue)]);
    assert_eq!(contents[&b"old value"[..]], b"the older value");
    assert_eq!(contents[&b"old superseded"[..]], b"the last value");
}

#[test]
fn a_pool_cut_short_is_salvaged_up_to_there() {
    let victim = Victim::usual(true);
    let segments = victim.segments();
    // A mapping takes whole pages.
    let cut = segments[segments.len() / 2].records[20].start / 4096 * 4096;
    let (report, contents) = salvaged(&victim, &victim.bytes[..cut]).unwrap();
    let mut gone = Vec::new();
    for record in segments.iter().flat_map(|segment| &segment.records) {
        if record.end > cut {
            gone.push(victim.key_at(record).to_vec());
        }
    }
    assert!(contents == without(&victim.contents, &gone));
    assert!(!report.damage.places.is_empty());
    assert!(matches!(salvaged(&victim, &victim.bytes[..4096 * 2]), Err(Error::Space(_))));
}

#[test]
fn whatever_is_hit_nothing_wrong_is_salvaged() {
    let victim = Victim::usual(true);
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for _ in 0..60 {
        let bytes = victim.damaged(|bytes| {
            for _ in 0..40 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (random >> 20) as usize % bytes.len();
                let len = (random >> 8) as usize % 300;
                let end = (at + len).min(bytes.len());
                // One superblock copy has to stay.
                if at >= 8192 {
                    bytes[at..end].fill(random as u8);
                }
            }
        });
        if let Err(error) = salvaged(&victim, &bytes) {
            assert!(matches!(error, Error::Space(_)), "{error}");
        }
    }
}

/// The designs that can be salvaged, each with options for its pools and a place for one.
fn salvaged_designs() -> impl Iterator<Item = (Design, Options, tempfile::TempDir)> {
    Design::ALL.iter().filter(|design| design.can().salvages).map(|design| {
        let options = Options::new().design(*design).size(16 << 20).levels(Levels::Off);
        (*design, options, tempfile::tempdir().unwrap())
    })
}

/// These designs, with a pool of so many keys that was closed.
fn closed_pools(keys: u64) -> impl Iterator<Item = (Design, Vec<u8>, Contents)> {
    salvaged_designs().map(move |(design, options, folder)| {
        let path = folder.path().join("pool");
        let store = Store::create(&path, &options).unwrap();
        let mut contents = Contents::new();
        let mut client = store.client();
        for number in 0..keys {
            let key = format!("key {number:06}").into_bytes();
            let value = value_of(&key, number, 100);
            client.put(&key, &value).unwrap();
            contents.insert(key, value);
        }
        drop(client);
        store.close().unwrap();
        (design, std::fs::read(&path).unwrap(), contents)
    })
}

/// The contents and the report of a salvage of these bytes, which an opening refuses.
fn salvaged_from(design: Design, bytes: &[u8]) -> (SalvageReport, Contents) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    std::fs::write(&path, bytes).unwrap();
    let opened = Store::open(&path, &Options::new().levels(Levels::Off)).map(|_| ());
    assert_eq!(opened.expect_err("damaged").kind(), ErrorKind::Damaged, "{design}");
    assert_eq!(Store::design_of(&path).unwrap(), design);
    rescued_from(bytes)
}

/// The contents and the report of a salvage of these bytes.
fn rescued_from(bytes: &[u8]) -> (SalvageReport, Contents) {
    let folder = tempfile::tempdir().unwrap();
    let (path, into) = (folder.path().join("damaged"), folder.path().join("new"));
    std::fs::write(&path, bytes).unwrap();
    let options = Options::new().levels(Levels::Off);
    let report = Store::salvage(&path, &into, &options, &|_, _| {}).unwrap();
    (report, contents_of(&Store::open(&into, &options).unwrap()))
}

fn noise(bytes: &mut [u8], seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    random.fill(bytes);
}

/// Both copies of the superblock lie in the first 8 KiB, and a third one further on.
#[test]
fn noise_at_the_head_loses_no_record_that_lies_elsewhere() {
    for (design, bytes, contents) in closed_pools(5000) {
        for len in [5 << 10, 64 << 10] {
            let mut damaged = bytes.clone();
            noise(&mut damaged[..len], len as u64);
            let (report, found) = salvaged_from(design, &damaged);
            assert!(found == contents, "{design}, {len} bytes: {} of {}", found.len(), contents.len());
            assert_eq!((report.missing, report.lost.len()), (Some(0), 0), "{design}, {len} bytes");
        }
    }
}

/// A copy that an opening has mended does not count keys of then.
#[test]
fn a_third_copy_of_a_closed_pool_tells_nothing_of_its_close() {
    for (design, options, folder) in salvaged_designs() {
        let path = folder.path().join("pool");
        let mut contents = Contents::new();
        let mut put = |store: Store, numbers: std::ops::Range<u64>| {
            let mut client = store.client();
            for number in numbers {
                let key = number.to_le_bytes().to_vec();
                let value = value_of(&key, number, 700);
                client.put(&key, &value).unwrap();
                contents.insert(key, value);
            }
            drop(client);
            store.close().unwrap();
        };
        put(Store::create(&path, &options).unwrap(), 0..100);
        let mut bytes = std::fs::read(&path).unwrap();
        let third = bytes.windows(8).position(|eight| eight == b"QUIPU3RD").expect("a third copy") - 8;
        bytes[third..third + 64].fill(7);
        std::fs::write(&path, &bytes).unwrap();
        put(Store::open(&path, &options).unwrap(), 100..101);
        put(Store::open(&path, &options).unwrap(), 101..5000);
        let mut bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[third + 8..][..8], b"QUIPU3RD", "{design}: an opening mends it");
        noise(&mut bytes[..8192], 1);
        noise(&mut bytes[2 << 20..][..20_000], 2);
        let (report, found) = salvaged_from(design, &bytes);
        let missing = (contents.len() - found.len()) as u64;
        assert!(missing > 0 && report.missing.is_none_or(|told| told == missing), "{design}: {report:?}");
        assert!(!report.damage.to_string().contains("zones in use"), "{design}: {}", report.damage);
    }
}

/// Values that had expired are not missing.
#[test]
fn a_salvage_does_not_miss_what_has_expired() {
    for (design, options, folder) in salvaged_designs() {
        let path = folder.path().join("pool");
        let store = Store::create(&path, &options).unwrap();
        let mut client = store.client();
        for number in 0..2000u64 {
            let (key, value) = (number.to_le_bytes(), value_of(b"", number, 700));
            match number % 4 {
                0 => client.put_for(&key, &value, std::time::Duration::from_millis(1)).unwrap(),
                _ => client.put(&key, &value).unwrap(),
            }
        }
        drop(client);
        std::thread::sleep(std::time::Duration::from_millis(5));
        store.close().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let value = value_of(b"", 1001, 700);
        let at = bytes.windows(700).position(|window| window == value).expect("a record");
        noise(&mut bytes[at..][..5000], 3);
        // An opening from a checkpoint may not meet it.
        let (report, found) = rescued_from(&bytes);
        let missing = 1500 - found.len() as u64;
        // One whose record is gone may have expired.
        assert!(
            missing > 0 && report.missing.is_some_and(|told| (missing..missing + 5).contains(&told)),
            "{design}: {report:?}"
        );
    }
}

/// A salvage tells how many keys are gone, and not only those that are still legible.
#[test]
fn a_salvage_counts_what_is_missing() {
    for (design, bytes, contents) in closed_pools(20_000) {
        let mut damaged = bytes.clone();
        let start = (1 << 20) + 500_000;
        for place in 0..3 {
            let at = start + place * 700_000;
            noise(&mut damaged[at..at + 5000], at as u64);
        }
        let (report, found) = salvaged_from(design, &damaged);
        let missing = contents.keys().filter(|key| !found.contains_key(*key)).count();
        assert!(missing > 50, "{design}: {missing}");
        assert_eq!(report.missing, Some(missing as u64), "{design}");
        assert!(found.iter().all(|(key, value)| contents.get(key) == Some(value)), "{design}");
        let named = report.lost.iter().filter(|lost| contents.contains_key(&lost.key)).count();
        // Without an index of the last close, noise may look like a key.
        let noise = report.named() - named;
        assert!(noise == 0 || !design.can().checkpoints && noise < 10, "{design}: {:?}", report.lost);
        assert_eq!(report.lost.len(), report.named(), "{design}: nothing had been deleted");
    }
}
