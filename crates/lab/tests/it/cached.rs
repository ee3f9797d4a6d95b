//! The cache in front of an index, as clients meet it.

use quipu::{Design, Options, Store};
use quipu_medium::{Pages, Region};

/// A store with a cache of 1 MiB.
fn cached(design: Design) -> Store {
    let region = Region::dram(8 << 20, Pages::Ordinary).unwrap();
    let options = Options::new().design(design).cleaner(false).set("cache", "1048576").unwrap();
    Store::create_on(region, &options).unwrap()
}

/// The hits of a client that goes round so many keys, in per cent of its reads, by this way to read them.
fn hits(store: &Store, keys: u64, way: fn(&quipu::Client, &[[u8; 8]])) -> u64 {
    const READS: u64 = 60_000;
    let keys: Vec<_> = (0..keys).map(u64::to_le_bytes).collect();
    let mut writer = store.client();
    // Out of the cache.
    keys.iter().for_each(|key| writer.put(key, &[1; 100]).unwrap());
    let (client, before) = (store.client(), store.stats());
    (0..READS / keys.len() as u64).for_each(|_| way(&client, &keys));
    let after = store.stats();
    let reads = after.cache_reads - before.cache_reads;
    assert!(reads + 200 > READS && reads < READS + 200, "{reads} reads");
    (after.cache_hits - before.cache_hits) * 100 / reads
}

/// A way to read all of these keys.
type Way = fn(&quipu::Client, &[[u8; 8]]);

/// Each n-th read is of the same few keys, if n has a factor in common with the number of keys.
#[test]
fn a_client_that_goes_round_its_keys_hits_however_many_they_are() {
    let ways: [Way; 3] = [
        |client, keys| keys.iter().for_each(|key| assert!(client.get(key).unwrap().is_some())),
        |client, keys| {
            let guard = client.pin();
            keys.iter().for_each(|key| assert!(guard.get(key).unwrap().is_some()));
        },
        |client, keys| {
            let mut found = 0;
            client.get_many(keys, |_, value| found += usize::from(value == Some(&[1; 100]))).unwrap();
            assert_eq!(found, keys.len());
        },
    ];
    for (nth, way) in ways.into_iter().enumerate() {
        let store = cached(Design::NSTORE);
        let found: Vec<u64> = (2..=100).map(|keys| hits(&store, keys, way)).collect();
        let (least, most) = (found.iter().min().unwrap(), found.iter().max().unwrap());
        assert!(most - least <= 10 && *least > 85, "way {nth}: {found:?}");
    }
}

/// Keys of a batch behind one that is not cached come out of the cache too.
#[test]
fn a_batch_hits_behind_a_miss() {
    for design in [Design::QUIPU, Design::NSTORE, Design::MPKV] {
        let store = cached(design);
        let mut client = store.client();
        let keys: Vec<_> = (0..32u64).map(u64::to_le_bytes).collect();
        keys.iter().for_each(|key| client.put(key, b"value").unwrap());
        for _ in 0..1000 {
            keys[1..].iter().for_each(|key| assert!(client.get(key).unwrap().is_some()));
        }
        drop(client);
        let mut client = store.client();
        let before = store.stats();
        for _ in 0..100 {
            // It is never cached.
            client.put(&keys[0], b"value").unwrap();
            let mut found = 0;
            client.get_many(&keys, |_, value| found += usize::from(value.is_some())).unwrap();
            assert_eq!(found, 32);
        }
        let after = store.stats();
        let (reads, hits) = (after.cache_reads - before.cache_reads, after.cache_hits - before.cache_hits);
        assert!(reads > 3000 && hits * 100 / reads > 90, "{design}: {hits} hits of {reads}");
    }
}
