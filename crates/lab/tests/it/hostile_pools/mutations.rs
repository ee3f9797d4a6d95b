//! Random mutations of small pools: whatever happens to the bytes, opening neither panics nor hangs, and
//! never shows a value that was not written.

use super::script::Ground;
use super::victim::{COPY, Victim, contents_of};
use quipu_lab::contract::{Contents, value_of};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

const MUTATIONS: u64 = 500;
const KEYS: u64 = 60;
const VERSIONS: u64 = 12;

fn value(key: &[u8], version: u64) -> Vec<u8> {
    value_of(key, version, 30 + (version * 11) as usize)
}

/// A pool whose keys have several versions, some of them deleted.
fn small(closed: bool) -> Victim {
    Victim::new(256 << 10, 16 << 10, closed, |store| {
        let mut contents = Contents::new();
        let mut client = store.client();
        for version in 0..VERSIONS {
            for number in (0..KEYS).filter(|number| (number + version) % 3 != 0) {
                let key = format!("k{number}").into_bytes();
                if (number * version) % 7 == 6 {
                    client.delete(&key).unwrap();
                    contents.remove(&key);
                } else {
                    client.put(&key, &value(&key, version)).unwrap();
                    contents.insert(key.clone(), value(&key, version));
                }
            }
        }
        contents
    })
}

/// Changes a byte, a few, or a stretch, among superblocks, the zone table, the starts of segments, their
/// records, and anywhere.
fn mutate(victim: &Victim, bytes: &mut [u8], random: &mut SmallRng) {
    let zones = victim.zones();
    let used: Vec<_> = victim.segments();
    for _ in 0..[1, 1, 1, 3, 8][random.random_range(0..5)] {
        let segment = &used[random.random_range(0..used.len())];
        let end = segment.records.last().map_or(segment.start + 64, |record| record.end);
        let at = match random.random_range(0..5) {
            0 => random.random_range(0..2 * COPY),
            1 => random.random_range(zones[0].0 - 128..zones[zones.len() - 1].0 + 16),
            2 => segment.start + random.random_range(0..64),
            3 => random.random_range(segment.start..end),
            _ => random.random_range(0..bytes.len()),
        };
        match random.random_range(0..4) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => {
                let end = (at + random.random_range(1..64)).min(bytes.len());
                random.fill_bytes(&mut bytes[at..end]);
            }
            _ => {
                let end = (at + random.random_range(1..600)).min(bytes.len());
                bytes[at..end].fill(0);
            }
        }
    }
}

fn survives(closed: bool) {
    let victim = small(closed);
    let entries: Vec<_> = victim.zones().into_iter().map(|(table, _)| table).collect();
    let (mut refused, mut whole, mut partial) = (0, 0, 0);
    for seed in 0..MUTATIONS {
        let mut random = SmallRng::seed_from_u64(seed);
        let bytes = victim.damaged(|bytes| mutate(&victim, bytes, &mut random));
        let Ok(mut store) = victim.open(&bytes) else {
            refused += 1;
            continue;
        };
        let found = contents_of(&store);
        for (key, value) in &found {
            let was = (0..VERSIONS).any(|version| *value == self::value(key, version));
            assert!(was, "seed {seed}: {} has a value that was never written", key.escape_ascii());
        }
        if found == victim.contents {
            whole += 1;
        } else {
            // A segment whose commit bit is gone takes its records along; see `segments`.
            let bit_lost =
                |table: &usize| victim.bytes[table + 7] & 0x80 != 0 && bytes[table + 7] & 0x80 == 0;
            let tail = !closed;
            assert!(
                tail || entries.iter().any(bit_lost),
                "seed {seed}: a closed pool opened without its records"
            );
            partial += 1;
        }
        let report = store.check(&|_, _| {}).unwrap();
        assert_eq!(report.keys, found.len() as u64, "seed {seed}");
        store.client().put(b"later", b"write").unwrap();
        drop(store);
        let store = victim.reopen();
        assert_eq!(store.client().get(b"later").unwrap().as_deref(), Some(&b"write"[..]), "seed {seed}");
    }
    println!("closed {closed}: {refused} refused, {whole} whole, {partial} partial");
    assert!(
        refused > 100 && whole > 20,
        "the mutations hit something, and not always: {refused} and {whole}"
    );
}

#[test]
fn of_a_pool_that_was_closed() {
    survives(true);
}

#[test]
fn of_a_pool_that_was_dropped() {
    survives(false);
}

/// A seeded sample of what the fuzz target `pool` does.
#[test]
fn of_pools_that_prove_themselves_again() {
    const SCRIPTS: u64 = 1500;
    for closed in [true, false] {
        let ground = Ground::new(closed);
        let mut accepted = 0;
        for seed in 0..SCRIPTS {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut script = vec![0; random.random_range(4..60)];
            random.fill_bytes(&mut script);
            accepted += u64::from(ground.survive(&script));
        }
        println!("closed {closed}: {accepted} of {SCRIPTS} accepted");
        assert!((SCRIPTS / 20..SCRIPTS / 2).contains(&accepted), "the scripts hit something, and not always");
    }
}
