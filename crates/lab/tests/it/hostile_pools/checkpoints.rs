//! Checkpoints that are damaged, forged, or of a pool whose records are damaged: an open falls back to
//! scanning, or what follows does without panics and never leaves the pool's bytes.

use super::victim::{COPY, Victim, contents_of, patch_superblock, superblock_field, trusting};
use quipu::{Design, Store};
use quipu_lab::contract::{Contents, value_of, verify};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use std::ops::Range;

/// Bytes of the head of each zone of a checkpoint.
const HEAD: usize = 64;
/// Bytes of what it tells of a segment, and of a zone of a memtable and a table.
const ENTRY: usize = 192;
const ZONE_ENTRY: usize = 40;
const TABLE_ENTRY: usize = 16;

/// A pool that was closed with a checkpoint, and where that lies.
struct Ground {
    victim: Victim,
    /// Of each zone of the checkpoint, in order, where it begins and the bytes that it uses.
    zones: Vec<(usize, usize)>,
}

impl Ground {
    /// A pool of these many keys for each design that leaves checkpoints, in zones of 16 KiB.
    fn each(keys: u64) -> impl Iterator<Item = (Design, Ground)> {
        let designs = Design::ALL.iter().filter(|design| design.can().checkpoints);
        designs.map(move |design| (*design, Ground::new(*design, keys)))
    }

    fn new(design: Design, keys: u64) -> Ground {
        let victim = Victim::of(design, 2 << 20, 16 << 10, true, |store| {
            let mut client = store.client();
            let pair = |number: u64| {
                let key = format!("key {number:05}").into_bytes();
                let value = value_of(&key, 0, 100 + number as usize % 200);
                (key, value)
            };
            let mut contents: Contents = (0..keys).map(pair).collect();
            contents.iter().for_each(|(key, value)| client.put(key, value).unwrap());
            for number in (0..keys).step_by(11) {
                let (key, _) = pair(number);
                client.delete(&key).unwrap();
                contents.remove(&key);
            }
            contents
        });
        Ground::of(victim)
    }

    /// A closed pool.
    fn of(victim: Victim) -> Ground {
        let entry = victim.superblock.checkpoint().expect("a checkpoint");
        let zone_size = victim.superblock.zone_size() as usize;
        let (mut left, mut zone) = (entry.len.get() as usize, entry.first_zone.get());
        let mut zones = Vec::new();
        while left > 0 {
            let start = victim.zones()[zone as usize].1;
            let used = left.min(zone_size - HEAD);
            zones.push((start, HEAD + used));
            zone = u32::from_le_bytes(victim.bytes[start + 28..start + 32].try_into().unwrap());
            left -= used;
        }
        Ground { victim, zones }
    }

    /// Makes all checks hold again, as someone can who knows the pool's secret.
    fn certify(&self, bytes: &mut [u8]) {
        let certifier = self.victim.certifier();
        let key = certifier.life_key(self.victim.superblock.run.get(), u64::MAX);
        let mut checks = Vec::new();
        for (number, (start, used)) in self.zones.iter().enumerate() {
            let zone = &mut bytes[*start..start + used];
            let check = certifier.check(key, number as u64, &zone[8..]).to_le_bytes();
            zone[..8].copy_from_slice(&check);
            checks.extend(check);
        }
        let check = certifier.check(key, u64::MAX, &checks).to_le_bytes();
        for copy in 0..2 {
            let at = superblock_field("checkpoint") + 16;
            bytes[copy * COPY + at..][..8].copy_from_slice(&check);
            patch_superblock(bytes, &[copy], "reserved_a", &[0; 4]);
        }
    }

    /// Where the contents of the checkpoint go on, counted without heads.
    fn contents_at(&self, at: usize) -> usize {
        let room = self.victim.superblock.zone_size() as usize - HEAD;
        self.zones[at / room].0 + HEAD + at % room
    }

    /// Where the image of the index begins in the contents, behind the summary and the entries.
    fn image_at(&self) -> usize {
        match self.victim.chunks().len() {
            0 => 32 + ENTRY * self.victim.segments().len(),
            zones => 32 + ZONE_ENTRY * zones + TABLE_ENTRY,
        }
    }

    /// Where records stand, of each zone in use.
    fn records(&self) -> Vec<Vec<Range<usize>>> {
        let segments = self.victim.segments().into_iter().map(|segment| segment.records);
        segments.chain(self.victim.chunks()).collect()
    }

    /// Where the words of the index stand in the contents, or may stand, each within one zone.
    fn words(&self, design: Design) -> Vec<usize> {
        let (mut at, mut words) = (self.image_at() + 32, Vec::new());
        while at < self.contents_len() {
            words.push(at);
            at += match design {
                Design::QUIPU => 8,
                Design::NSTORE => 16,
                _ => {
                    let rest = [10, 11].map(|byte| self.victim.bytes[self.contents_at(at + byte)]);
                    12 + usize::from(u16::from_le_bytes(rest))
                }
            };
        }
        let room = self.victim.superblock.zone_size() as usize - HEAD;
        words.retain(|at| at % room + 8 <= room);
        words
    }

    fn contents_len(&self) -> usize {
        self.zones.iter().map(|(_, used)| used - HEAD).sum()
    }
}

/// Does whatever a client can do, and puts so many more keys, for the panics alone.
fn live_through(mut store: Store, keys: &Contents, more: u64) {
    let mut client = store.client();
    for (number, key) in keys.keys().enumerate() {
        let _ = client.get(key);
        match number % 5 {
            0 => drop(client.put(key, b"new")),
            1 => drop(client.remove(key)),
            2 => drop(client.update(key, |old| old.map(<[u8]>::to_vec))),
            3 => drop(client.delete(key)),
            _ => drop(client.put(&[&key[..], b"more"].concat(), &[5; 300])),
        }
    }
    // So many that the index asks the records for their hashes.
    for number in 0..more {
        let _ = client.put(format!("{number}").as_bytes(), b"");
    }
    let _ = client.pin().iter().count();
    drop(client);
    let _ = store.compact();
    let _ = store.check(&|_, _| {});
    let _ = store.stats();
    let _ = store.close();
}

#[test]
fn a_checkpoint_is_believed_and_says_what_a_scan_says() {
    for (design, ground) in Ground::each(3000) {
        assert!(ground.zones.len() > 2, "{design}: the checkpoint has several zones");
        let mut store = ground.victim.open_with(&ground.victim.bytes, &trusting()).unwrap();
        assert!(store.recovery().from_checkpoint && store.recovery().was_clean);
        let believed = store.stats();
        verify(&mut store, &ground.victim.contents);
        drop(store);
        let mut store = ground.victim.open(&ground.victim.bytes).unwrap();
        assert!(!store.recovery().from_checkpoint && store.recovery().was_clean);
        let scanned = store.stats();
        verify(&mut store, &ground.victim.contents);
        assert_eq!(
            (believed.records, believed.record_bytes, believed.garbage_bytes, believed.free_zones),
            (scanned.records, scanned.record_bytes, scanned.garbage_bytes, scanned.free_zones),
            "{design}"
        );
    }
}

#[test]
fn a_damaged_checkpoint_is_passed_over() {
    for (design, ground) in Ground::each(1000) {
        let mut random = SmallRng::seed_from_u64(1);
        let mut places: Vec<usize> =
            ground.zones.iter().flat_map(|(start, _)| *start..start + HEAD).collect();
        places.extend((0..200).map(|_| ground.contents_at(random.random_range(0..ground.contents_len()))));
        for at in places {
            let bytes = ground.victim.damaged(|bytes| bytes[at] ^= 0x10);
            let store = ground.victim.open_with(&bytes, &trusting()).unwrap();
            assert!(!store.recovery().from_checkpoint, "{design}, byte {at}");
            assert!(contents_of(&store) == ground.victim.contents, "{design}, byte {at}");
        }
    }
}

/// Each bit of a small one.
#[test]
fn a_checkpoint_with_a_flipped_bit_is_passed_over() {
    for (design, ground) in Ground::each(6) {
        for bit in 8 * ground.image_at()..8 * ground.contents_len() {
            let at = ground.contents_at(bit / 8);
            let bytes = ground.victim.damaged(|bytes| bytes[at] ^= 1 << (bit % 8));
            let store = ground.victim.open_with(&bytes, &trusting()).unwrap();
            assert!(!store.recovery().from_checkpoint, "{design}, bit {bit}");
            assert!(contents_of(&store) == ground.victim.contents, "{design}, bit {bit}");
        }
    }
}

/// The superblock's words on a checkpoint are protected by a check that anyone can compute.
#[test]
fn a_superblock_that_names_anything_is_passed_over() {
    for (design, ground) in Ground::each(1000) {
        let at = superblock_field("checkpoint");
        let entry = ground.victim.bytes[at..at + 32].to_vec();
        let mut random = SmallRng::seed_from_u64(2);
        for round in 0..300 {
            let mut forged = entry.clone();
            let field = random.random_range(0..7) * 4;
            match round % 3 {
                0 => forged[field..field + 4].copy_from_slice(&random.random::<[u8; 4]>()),
                1 => forged[field] = forged[field].wrapping_add(random.random_range(1..3)),
                _ => random.fill_bytes(&mut forged[field..28]),
            }
            if forged == entry {
                continue;
            }
            let bytes =
                ground.victim.damaged(|bytes| patch_superblock(bytes, &[0, 1], "checkpoint", &forged));
            let store = ground.victim.open_with(&bytes, &trusting()).unwrap();
            assert!(!store.recovery().from_checkpoint, "{design}, round {round}: {forged:?}");
            assert!(contents_of(&store) == ground.victim.contents, "{design}, round {round}");
        }
        // As pools were before there were checkpoints.
        let bytes = ground.victim.damaged(|bytes| patch_superblock(bytes, &[0, 1], "checkpoint", &[0; 32]));
        let store = ground.victim.open_with(&bytes, &trusting()).unwrap();
        assert!(!store.recovery().from_checkpoint && store.recovery().was_clean);
    }
}

#[test]
fn another_version_is_passed_over() {
    for (design, ground) in Ground::each(1000) {
        for (version, expected) in [(2, true), (1, true), (0, false), (3, false)] {
            let bytes = ground.victim.damaged(|bytes| {
                ground.zones.iter().for_each(|(start, _)| bytes[start + 12] = version);
                ground.certify(bytes);
            });
            let store = ground.victim.open_with(&bytes, &trusting()).unwrap();
            assert_eq!(
                store.recovery().from_checkpoint,
                expected,
                "{design}: certifying works, and version {version} counts"
            );
        }
        // That of the index's image.
        let (behind, own) = if design == Design::QUIPU { (0, 2) } else { (b"SORT".len(), 1) };
        let at = ground.contents_at(ground.image_at() + behind);
        for version in [own - 1, own + 1] {
            let bytes = ground.victim.damaged(|bytes| {
                assert_eq!(bytes[at], own);
                bytes[at] = version;
                ground.certify(bytes);
            });
            assert!(!ground.victim.open_with(&bytes, &trusting()).unwrap().recovery().from_checkpoint);
        }
    }
}

/// The worst that someone can write who knows the secret: every check holds, and nothing else is as it should
/// be.
#[test]
fn a_forged_checkpoint_brings_no_panic() {
    for (design, ground) in Ground::each(400) {
        let (segments, words) = (ground.records().len(), ground.words(design));
        let mut believed = 0;
        for seed in 0..200u64 {
            let mut random = SmallRng::seed_from_u64(seed);
            let bytes = ground.victim.damaged(|bytes| {
                for _ in 0..[1, 2, 40][seed as usize % 3] {
                    let at = match random.random_range(0..4) {
                        0 => random.random_range(0..ground.image_at() + 32) / 8 * 8,
                        1 => words[random.random_range(0..40)],
                        _ => words[random.random_range(0..words.len())],
                    };
                    let at = ground.contents_at(at);
                    let word = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                    let word = match random.random_range(0..5) {
                        0 => random.random(),
                        1 => 0,
                        2 => word ^ 1 << random.random_range(0..64),
                        // Another place that may hold a record, or the middle of one.
                        3 => word & !0xffff_ffff | random.random_range(0..(segments as u64 + 1) << 11),
                        _ => word.wrapping_add(random.random_range(0..9)).wrapping_sub(4),
                    };
                    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                }
                ground.certify(bytes);
            });
            let store = ground.victim.open_with(&bytes, &trusting()).unwrap();
            believed += u64::from(store.recovery().from_checkpoint);
            live_through(store, &ground.victim.contents, 0);
            // Such a store leaves a pool again.
            drop(Store::open(ground.victim.path(), &trusting()).unwrap());
        }
        assert!((30..180).contains(&believed), "{design}: {believed} of 200 were believed");
    }
}

/// A table's memtables are released when it is dropped, also if an index names their records.
#[test]
fn a_word_that_leads_into_another_table_is_passed_over() {
    let victim = Victim::of(Design::XP, 2 << 20, 16 << 10, true, |store| {
        let herd = store.create_table("herd").unwrap();
        for mut client in [store.client(), store.client().on(&herd).unwrap()] {
            (0..300u32).for_each(|number| client.put(&number.to_be_bytes(), &[7; 100]).unwrap());
        }
        Contents::new()
    });
    let ground = Ground::of(victim);
    // One entry more than a pool of one table has, and behind them the image of the default table.
    let first = ground.image_at() + TABLE_ENTRY;
    let at = ground.contents_at(ground.image_at() - TABLE_ENTRY + 8);
    let len = u64::from_le_bytes(ground.victim.bytes[at..at + 8].try_into().unwrap());
    let second = first + len.next_multiple_of(8) as usize;
    let words = [first, second].map(|image| ground.contents_at(image + 32));
    for (from, to, believed) in [(words[0], words[0], true), (words[1], words[0], false)] {
        let bytes = ground.victim.damaged(|bytes| {
            bytes.copy_within(from..from + 8, to);
            ground.certify(bytes);
        });
        let store = ground.victim.open_with(&bytes, &trusting()).unwrap();
        assert_eq!(store.recovery().from_checkpoint, believed);
    }
}

/// With a checkpoint no record is proved at open. Damage to them causes no panics, a check finds it, and so
/// does an open that was told to.
#[test]
fn damaged_records_bring_no_panic() {
    for (design, ground) in Ground::each(1500) {
        let segments = ground.records();
        for seed in 0..80u64 {
            let mut random = SmallRng::seed_from_u64(seed);
            let bytes = ground.victim.damaged(|bytes| {
                for _ in 0..[1, 5, 100][seed as usize % 3] {
                    let segment = &segments[random.random_range(0..segments.len())];
                    let record = segment[random.random_range(0..segment.len())].clone();
                    match random.random_range(0..3) {
                        0 => bytes[record.start + random.random_range(0..record.len())] ^= 0x10,
                        1 => random.fill_bytes(&mut bytes[record.start..record.start + 24]),
                        _ => random.fill_bytes(&mut bytes[record]),
                    }
                }
            });
            assert!(ground.victim.open(&bytes).is_err(), "{design}, seed {seed}: every record is proved");
            let mut store = ground.victim.open_with(&bytes, &trusting()).unwrap();
            assert!(store.recovery().from_checkpoint, "{design}, seed {seed}");
            assert!(!store.check(&|_, _| {}).unwrap().is_sound(), "{design}, seed {seed}");
            live_through(store, &ground.victim.contents, if seed.is_multiple_of(10) { 12_000 } else { 0 });
        }
    }
}
