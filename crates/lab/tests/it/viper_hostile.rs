//! Pools of design `viper` whose bytes have been changed, by accident or by somebody who knows the pool's
//! secret and makes the checks agree again. Opening, reading, writing and checking must neither panic nor
//! hang, whatever they answer.

use quipu::internals::{NodePlace, OffsetMap, RecordForm, SlotSettings};
use quipu::{Design, Error, Options, Store};
use quipu_medium::{Pages, Region};
use quipu_parts::index::cceh::CcehSettings;
use quipu_parts::record::Certifier;
use quipu_parts::space::Space;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

const LEN: u64 = 2 << 20;
const ZONE: u64 = 32 << 10;
const PAGE: u64 = 4096;
/// Bytes of a superblock copy, of which there are two.
const COPY: usize = 4096;

fn region(bytes: &[u8]) -> Region {
    let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
    region.write(0, bytes);
    region
}

fn options(form: RecordForm, nodes: NodePlace) -> Options {
    let slots = SlotSettings { form, pages_per_block: 2, ..SlotSettings::default() };
    let offset_map = OffsetMap { nodes, shape: CcehSettings { bucket_bits: 2, ..CcehSettings::paper() } };
    Options::new()
        .design(Design::VIPER)
        .zone_size(ZONE)
        .with(|options| options.slots = slots)
        .with(|options| options.offset_map = offset_map)
        .cleaner(false)
}

fn key(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn value(form: RecordForm, number: u64) -> Vec<u8> {
    let len = match form {
        RecordForm::Fixed { value, .. } => value as usize,
        // Within a page, over two, a block, and blocks of its own.
        RecordForm::Variable => [20, 700, 3000, 6000, 30_000, 0][(number % 6) as usize],
    };
    (0..len as u64).map(|i| (i * 7 + number) as u8).collect()
}

/// A pool and a map of the bytes that are worth changing.
struct Ground {
    form: RecordForm,
    options: Options,
    bytes: Vec<u8>,
    certifier: Certifier,
    zones: Vec<u64>,
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// A word as damage or malice would choose it.
fn odd_word(random: &mut SmallRng) -> u64 {
    match random.random_range(0..4) {
        0 => random.random_range(0..64),
        1 => random.random_range(0u64..64).wrapping_neg(),
        2 => 1u64.rotate_left(random.random_range(0..64)),
        _ => random.random(),
    }
}

impl Ground {
    fn new(form: RecordForm, nodes: NodePlace, closed: bool) -> Ground {
        Ground::of(form, options(form, nodes), closed)
    }

    fn of(form: RecordForm, options: Options, closed: bool) -> Ground {
        let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
        let store = Store::create_on(region.clone(), &options).expect("a new pool");
        let mut client = store.client();
        for round in 0..3 {
            for number in 0..40 {
                let number = number + round;
                if (number * round) % 7 == 3 {
                    client.delete(&key(number)).expect("a delete");
                } else {
                    client.put(&key(number), &value(form, number)).expect("room");
                }
            }
        }
        drop(client);
        if closed {
            store.close().expect("closed");
        } else {
            drop(store);
        }
        let mut bytes = vec![0; LEN as usize];
        region.read_racing(0, &mut bytes);
        let (space, _) = Space::examine(region).expect("a pool");
        let certifier = Certifier::new(space.superblock().secret());
        let zones = space.committed_zones().into_iter().map(|zone| space.zone_offset(zone)).collect();
        Ground { form, options, bytes, certifier, zones }
    }

    fn sign_superblocks(bytes: &mut [u8]) {
        for copy in bytes[..2 * COPY].chunks_mut(COPY) {
            let check = XxHash3_64::oneshot(&copy[8..]);
            copy[..8].copy_from_slice(&check.to_le_bytes());
        }
    }

    /// Lets a header of a zone prove itself again: that of a chunk or of a piece of the index.
    fn sign_header(&self, bytes: &mut [u8], zone: usize) {
        let end = if &bytes[zone + 8..zone + 12] == b"QCEH" { 32 } else { 40 };
        let check = self.certifier.check(self.certifier.life_key(0, 0), 0, &bytes[zone + 8..zone + end]);
        set_word(bytes, zone, check);
    }

    fn seed(&self, zone: usize) -> u64 {
        let life = self.certifier.life_key(word(&self.bytes, zone + 16), word(&self.bytes, zone + 32));
        self.certifier.check(life, 0, &[])
    }

    /// The zones that are chunks.
    fn chunks(&self) -> impl Iterator<Item = usize> {
        let zones = self.zones.iter().map(|zone| *zone as usize);
        zones.filter(|zone| &self.bytes[zone + 8..zone + 12] == b"QVCH")
    }

    /// Why a pool of these bytes is refused, unchanged; or what it holds.
    fn opened(&self, bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, String> {
        let region = region(bytes);
        let store = Store::open_on(region.clone(), &self.options).map_err(|error| {
            let mut after = vec![0; bytes.len()];
            region.read_racing(0, &mut after);
            assert!(after == bytes, "refused, and yet changed");
            match error {
                Error::Damaged(damage) => damage.places.into_iter().map(|place| place.what + "; ").collect(),
                error => error.to_string(),
            }
        })?;
        let client = store.client();
        Ok(client.pin().iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
    }

    /// Pages of a chunk, as numbers and offsets.
    fn pages(&self, zone: usize) -> Vec<(u64, usize)> {
        let base = (zone as u64 + 64).next_multiple_of(2 * PAGE);
        let blocks =
            u64::from_le_bytes(self.bytes[zone + 28..zone + 36].try_into().expect("eight")) & 0xffff_ffff;
        (0..blocks * 2).map(|page| (page, (base + page * PAGE) as usize)).collect()
    }

    fn change(&self, bytes: &mut [u8], random: &mut SmallRng) {
        let zone = self.zones[random.random_range(0..self.zones.len())] as usize;
        let is_chunk = &self.bytes[zone + 8..zone + 12] == b"QVCH";
        match random.random_range(0..8) {
            0 => {
                // A superblock's settings, or any other byte of it.
                let at = [152 + random.random_range(0..128), random.random_range(8..400)]
                    [random.random_range(0..2)];
                let byte = random.random();
                bytes[at] = byte;
                bytes[COPY + at] = byte;
                Ground::sign_superblocks(bytes);
            }
            1 => {
                let at = zone + 12 + 4 * random.random_range(0..9);
                let odd = odd_word(random);
                set_word(bytes, at, odd);
                self.sign_header(bytes, zone);
            }
            2 | 3 if is_chunk => {
                let pages = self.pages(zone);
                let (number, page) = pages[random.random_range(0..pages.len())];
                let kind = random.random_range(0..4);
                let tag = mix(self.seed(zone) ^ number ^ kind << 32) >> 32;
                set_word(bytes, page, tag << 32 | kind << 8);
            }
            4 | 5 if is_chunk => {
                // A length word that proves itself, somewhere in the log of a page.
                let pages = self.pages(zone);
                let (number, page) = pages[random.random_range(0..pages.len())];
                let mut position = 1;
                for _ in 0..random.random_range(0..4) {
                    let length = word(bytes, page + position * 8);
                    let body = if length >> 32 & 7 == 1 {
                        0
                    } else {
                        (length >> 1 & 0xffff) | (length >> 35 & 0x1fff) << 16
                    };
                    let len = (16 + (length >> 17 & 0x7fff) + body).div_ceil(8);
                    if length == 0 || position as u64 + len > 2 * PAGE / 8 {
                        break;
                    }
                    position += len as usize;
                }
                let at = page + position * 8;
                let old = word(bytes, at);
                let changed = match random.random_range(0..4) {
                    0 => old ^ 1,
                    1 => old & !(7 << 32) | random.random_range(0..5) << 32,
                    2 => old ^ (1 << random.random_range(0..48)),
                    _ => odd_word(random),
                };
                let place = number << 20 | position as u64;
                let checked = changed & ((1 << 48) - 1) & !1;
                let check = mix(mix(self.seed(zone) ^ !place) ^ checked) >> 48;
                set_word(bytes, at, checked | check << 48 | changed & 1);
                if random.random_range(0..3) == 0 {
                    // The body of a head: lengths and blocks.
                    let at = at + 16 + 8 + 8 * random.random_range(0..5);
                    let odd = odd_word(random);
                    set_word(bytes, at, odd);
                }
            }
            6 => {
                let at = random.random_range(0..bytes.len() / 8) * 8;
                let odd = odd_word(random);
                set_word(bytes, at, odd);
            }
            _ => {
                let at = zone + random.random_range(0..ZONE as usize / 8) * 8;
                let odd = odd_word(random);
                set_word(bytes, at, odd);
            }
        }
    }

    /// Whether a pool with these bytes opens; if so it is used in every way.
    fn survive(&self, bytes: &[u8]) -> bool {
        let region = region(bytes);
        let mut store = match Store::open_on(region.clone(), &self.options) {
            Ok(store) => store,
            Err(_) => {
                let mut after = vec![0; bytes.len()];
                region.read_racing(0, &mut after);
                assert!(after == bytes, "refused, and yet changed");
                return false;
            }
        };
        let mut client = store.client();
        let found: Vec<_> = client.pin().iter().map(|(key, value)| (key.into_owned(), value.len())).collect();
        for (key, _) in &found {
            let _ = client.get(key);
        }
        for number in 0..60 {
            let _ = client.get(&key(number));
            let _ = client.put(&key(number), &value(self.form, number + 1));
            let _ = client.update_in_place(&key(number), 0, |old| old ^ 1);
            if number % 3 == 0 {
                let _ = client.remove(&key(number));
            }
        }
        drop(client);
        let _ = store.compact();
        let _ = store.stats();
        store.check(&|_, _| {}).expect("a report");
        let _ = store.close();
        if let Ok(store) = Store::open_on(region, &self.options) {
            let _ = store.client().pin().iter().count();
        }
        true
    }
}

#[test]
fn of_pools_that_prove_themselves_again() {
    const ROUNDS: u64 = 150;
    for form in [RecordForm::Variable, RecordForm::Fixed { key: 8, value: 40 }] {
        for (nodes, closed) in [(NodePlace::Dram, true), (NodePlace::Dram, false), (NodePlace::Pm, true)] {
            let ground = Ground::new(form, nodes, closed);
            assert!(ground.survive(&ground.bytes));
            let mut accepted = 0;
            for seed in 0..ROUNDS {
                let mut random = SmallRng::seed_from_u64(seed);
                let mut bytes = ground.bytes.clone();
                for _ in 0..random.random_range(1..4) {
                    ground.change(&mut bytes, &mut random);
                }
                accepted += u64::from(ground.survive(&bytes));
            }
            println!("{form:?} {nodes:?} closed {closed}: {accepted} of {ROUNDS} accepted");
            assert!(
                (ROUNDS / 5..ROUNDS * 4 / 5).contains(&accepted),
                "the changes hit something, and not always"
            );
        }
    }
}

/// A life number from which the clock would come to the end of all numbers.
#[test]
fn a_life_that_no_run_draws_is_refused() {
    for form in [RecordForm::Variable, RecordForm::Fixed { key: 8, value: 40 }] {
        let ground = Ground::new(form, NodePlace::Dram, true);
        for life in [u64::MAX, u64::MAX - 1, 1 << 60] {
            let mut bytes = ground.bytes.clone();
            let zone = ground.zones[0] as usize;
            set_word(&mut bytes, zone + 16, life);
            let nonce = word(&bytes, zone + 32);
            ground.sign_header(&mut bytes, zone);
            // Its pages are those of that life, and empty.
            let seed = ground.certifier.check(ground.certifier.life_key(life, nonce), 0, &[]);
            for (number, page) in ground.pages(zone) {
                bytes[page..page + PAGE as usize].fill(0);
                set_word(&mut bytes, page, mix(seed ^ number) >> 32 << 32);
            }
            assert!(!ground.survive(&bytes), "{form:?}: life {life:#x}");
        }
    }
}

/// One flipped bit would make a block of records a free one.
#[test]
fn a_block_does_not_become_free_by_one_bit() {
    for nodes in [NodePlace::Dram, NodePlace::Pm] {
        let ground = Ground::new(RecordForm::Fixed { key: 8, value: 40 }, nodes, true);
        let pages = ground.chunks().flat_map(|zone| ground.pages(zone));
        let is_used = |page: &usize| word(&ground.bytes, page + 8) != 0;
        let used: Vec<usize> = pages.map(|(_, page)| page).filter(is_used).collect();
        assert!(!used.is_empty());
        for page in used {
            let mut bytes = ground.bytes.clone();
            bytes[page + 1] ^= 1;
            assert!(!ground.survive(&bytes), "page at {page:#x}");
        }
    }
}

/// A lower count of used blocks would hide the records behind it and hand their blocks out as new ones; a
/// later run would find what was deleted meanwhile.
#[test]
fn no_bit_of_a_count_of_used_blocks_hides_a_record() {
    for form in [RecordForm::Variable, RecordForm::Fixed { key: 8, value: 40 }] {
        for nodes in [NodePlace::Dram, NodePlace::Pm] {
            let ground = Ground::new(form, nodes, true);
            let sound = ground.opened(&ground.bytes);
            let mut refused = 0;
            for (number, zone) in ground.chunks().enumerate() {
                for bit in (number % 8..64).step_by(8) {
                    let mut bytes = ground.bytes.clone();
                    bytes[zone + 40 + bit / 8] ^= 1 << (bit % 8);
                    let refusal = ground.opened(&bytes).expect_err("a count that does not prove itself");
                    assert!(refusal.contains("the count of used blocks of a chunk"), "bit {bit}: {refusal}");
                }
                // Those that prove themselves, as a line has them whose last writes the medium has lost.
                for earlier in 0..word(&ground.bytes, zone + 40) & 0xffff_ffff {
                    let mut bytes = ground.bytes.clone();
                    let check = mix(mix(ground.seed(zone)) ^ earlier) >> 32 << 32;
                    set_word(&mut bytes, zone + 40, check | earlier);
                    let opened = ground.opened(&bytes);
                    let is_named =
                        opened.as_ref().is_err_and(|text| text.contains("a block that was never used"));
                    assert!(is_named || opened == sound, "{earlier}: {:?}", opened.err());
                    refused += u32::from(is_named);
                }
            }
            assert!(refused > 0, "{form:?} {nodes:?}: {refused}");
        }
    }
}

/// A value that would be read from one block twice, and give it to two others when it is deleted.
#[test]
fn a_value_that_names_a_block_twice_is_refused() {
    let ground = Ground::new(RecordForm::Variable, NodePlace::Dram, true);
    let len = 30_000;
    let heads: Vec<usize> = (0..ground.bytes.len())
        .step_by(8)
        .filter(|at| {
            let names_blocks = (1..=4).all(|block| word(&ground.bytes, at + 8 * block) < 256);
            word(&ground.bytes, *at) == len && names_blocks
        })
        .collect();
    assert!(!heads.is_empty());
    let refused = heads.iter().filter(|at| {
        let mut bytes = ground.bytes.clone();
        set_word(&mut bytes, **at + 8, word(&ground.bytes, **at + 16));
        !ground.survive(&bytes)
    });
    // Some are of records that have been deleted since.
    let refused = refused.count();
    assert!(refused >= 5, "{refused} of {}", heads.len());
}
