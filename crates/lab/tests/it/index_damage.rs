//! Damage in an index that lies in the pool is not silent. The tests damage bits, lines and pages of it, in
//! pools that were closed and in others. Then an open refuses the pool; or a check names the damage and every
//! key that is no longer found; or all keys are as they were.

use quipu::internals::Testing;
use quipu::{Design, Options, Store};
use quipu_medium::{LINE, Pages, Region};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const LEN: u64 = 1 << 20;
const ZONE: u64 = 16 << 10;
const PAGE: u64 = 4 << 10;
const KEYS: u64 = 260;
/// Damages of each design, half of them of a pool that was closed.
const DAMAGES: u64 = 500;
/// A slot of a bucket that is free.
const FREE: u64 = 0x9D3A_06C5_58E1_2B4F;

fn options(design: Design) -> Options {
    let testing = Testing { tiny_index: true, ..Testing::default() };
    let (zone_size, cleaner) = (Some(ZONE), false);
    Options::new()
        .design(design)
        .with(|options| options.zone_size = zone_size)
        .cleaner(cleaner)
        .recovery_threads(1)
        .with(|options| options.testing = testing)
}

/// Some of eight bytes, some longer.
fn key(number: u64) -> String {
    if number.is_multiple_of(2) { format!("k{number:07}") } else { format!("key-{number:05}") }
}

fn value(number: u64) -> Option<Vec<u8>> {
    let len = 20 + (number % 5) as usize * 8;
    (!number.is_multiple_of(7)).then(|| vec![number as u8; len])
}

fn write(region: &Region, design: Design, closes: bool) {
    let store = Store::create_on(region.clone(), &options(design)).expect("a new pool");
    let mut client = store.client();
    for round in 0..2 {
        for number in (0..KEYS).filter(|number| round == 0 || number.is_multiple_of(3)) {
            client
                .put(key(number).as_bytes(), &vec![number as u8; value(number).map_or(9, |it| it.len())])
                .expect("room");
        }
    }
    for number in (0..KEYS).filter(|number| value(*number).is_none()) {
        client.delete(key(number).as_bytes()).expect("deleted");
    }
    drop(client);
    if closes {
        store.close().expect("closed");
    }
}

fn bytes_of(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; LEN as usize];
    region.read_racing(0, &mut bytes);
    bytes
}

/// First bytes of the zones of the index.
fn zones(bytes: &[u8]) -> Vec<u64> {
    let is_of_index = |start: &u64| {
        let magic = &bytes[*start as usize + 8..][..4];
        [b"QFFT", b"QBKT", b"QBKL", b"QCEH"].iter().any(|known| *known == magic)
    };
    (0..LEN).step_by(PAGE as usize).filter(is_of_index).collect()
}

/// Damages a piece of the index that is in use, and says what.
fn damage(region: &Region, sound: &[u8], zones: &[u64], random: &mut SmallRng) -> String {
    loop {
        let zone = zones[random.random_range(0..zones.len())];
        let kind = random.random_range(0..6);
        let len = [8, 8, LINE, LINE, PAGE, PAGE][kind];
        let place = zone + random.random_range(0..ZONE / len) * len;
        let piece = &sound[place as usize..][..len as usize];
        let mut words =
            piece.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        if words.all(|word| word == 0 || word == FREE) {
            continue;
        }
        let mut damaged = piece.to_vec();
        match kind {
            0 | 1 => damaged[random.random_range(0..8)] ^= 1 << random.random_range(0..8),
            2 | 4 => damaged.fill(0),
            _ => random.fill(&mut damaged[..]),
        }
        region.write(place, &damaged);
        return format!(
            "{} at {place}",
            ["a bit", "a bit", "a line of zeros", "a line", "a page of zeros", "a page"][kind]
        );
    }
}

/// Whether the damage was noticed; the error says what was wrong in silence.
fn judge(region: &Region, design: Design, is_zeros: bool) -> Result<bool, String> {
    let Ok(mut store) = Store::open_on(region.clone(), &options(design)) else { return Ok(true) };
    let client = store.client();
    let found: Vec<_> = (0..KEYS).map(|number| client.get(key(number).as_bytes())).collect();
    drop(client);
    let report = match store.check(&|_, _| {}) {
        Ok(report) if report.is_sound() => None,
        Ok(report) => {
            Some(report.damage.places.iter().map(|place| format!("{}\n", place.what)).collect::<String>())
        }
        Err(error) => Some(error.to_string()),
    };
    for (number, found) in (0..KEYS).zip(found) {
        let key = key(number);
        match (found, value(number), &report) {
            (Err(_), _, _) => {}
            (Ok(found), expected, _) if found == expected => {}
            // A lookup that misses a key notices zeros, except those in the keys of a tree.
            (Ok(None), Some(_), _) if is_zeros && design != Design::FLATSTORE_FF => {
                return Err(format!("a get of {key} finds nothing among zeros"));
            }
            (Ok(None), Some(_), Some(report))
                if report.contains(&format!("the key {key} is perhaps lost")) => {}
            (Ok(None), Some(_), Some(report)) if report.contains("more keys are perhaps lost") => {}
            (Ok(found), ..) => return Err(format!("{key} is {found:?}; the check says: {report:?}")),
        }
    }
    Ok(report.is_some())
}

fn survive(design: Design) {
    let mut random = SmallRng::seed_from_u64(20);
    let (mut noticed, mut silent) = (0, Vec::new());
    for closes in [true, false] {
        let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
        write(&region, design, closes);
        let sound = bytes_of(&region);
        let zones = zones(&sound);
        assert!(!zones.is_empty(), "{design} has no index in the pool");
        assert!(!judge(&region, design, false).expect("undamaged"), "{design}: sound as it is");
        for _ in 0..DAMAGES / 2 {
            region.write(0, &sound);
            let what = damage(&region, &sound, &zones, &mut random);
            match judge(&region, design, what.contains("zeros")) {
                Ok(is_noticed) => noticed += u64::from(is_noticed),
                Err(error) => silent.push(format!("{what}, closed {closes}: {error}\n")),
            }
        }
    }
    println!("{design}: {noticed} of {DAMAGES} noticed, {} silent", silent.len());
    assert!(silent.is_empty(), "{design}: {}", silent.concat());
    assert!(noticed > DAMAGES / 2, "{design}: {noticed} noticed");
}

#[test]
fn damage_in_the_index_of_flatstore_ph_is_noticed() {
    survive(Design::FLATSTORE_PH);
}

#[test]
fn damage_in_the_index_of_flatstore_ff_is_noticed() {
    survive(Design::FLATSTORE_FF);
}

#[test]
fn damage_in_the_index_of_mpkv_is_noticed() {
    survive(Design::MPKV);
}

#[test]
fn damage_in_the_index_of_mpkv_baseline_is_noticed() {
    survive(Design::MPKV_BASELINE);
}

/// The word of a removed entry in a node of FAST&FAIR, and of the place behind its last one.
const HOLE: u64 = 0xE5B9_6A3C_D214_7F93;
const END: u64 = 0x5A46_95C3_2DEB_806C;

/// An end in place of a hole hid the entries behind it, and the first writer erased them. Now each who comes
/// there is told, nothing is erased, and once the word is right again all keys are there.
#[test]
fn nothing_is_erased_behind_a_hole_that_has_become_an_end() {
    let design = Design::FLATSTORE_FF;
    let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
    write(&region, design, true);
    let sound = bytes_of(&region);
    let words = sound.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    // Not those of links.
    let holes =
        words.enumerate().filter(|(at, word)| *word == HOLE && at % 64 > 5).map(|(at, _)| at as u64 * 8);
    let (mut refused, mut holes_seen) = (0, 0);
    for hole in holes {
        holes_seen += 1;
        for damaged in [END, 0, 1 << 63, HOLE ^ 1] {
            region.write(0, &sound);
            region.store(hole, damaged);
            if let Ok(store) = Store::open_on(region.clone(), &options(design)) {
                let mut client = store.client();
                for number in 0..KEYS {
                    let put = value(number).map(|value| client.put(key(number).as_bytes(), &value));
                    refused += u64::from(put.is_some_and(|put| put.is_err()));
                }
                drop(client);
                let _ = store.close();
            }
            // As it was: nothing but the word, and what was put, has changed.
            if region.load(hole) == damaged {
                region.store(hole, HOLE);
            }
            let store = Store::open_on(region.clone(), &options(design)).expect("mended");
            let client = store.client();
            for number in 0..KEYS {
                let found = client.get(key(number).as_bytes()).expect("mended");
                assert_eq!(found, value(number), "key {number} after {damaged:#x} at {hole}");
            }
        }
    }
    assert!(holes_seen > 5 && refused > 50, "{holes_seen} holes, {refused} refused");
}
