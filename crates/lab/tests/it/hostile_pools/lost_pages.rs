//! The operating system crashed under a pool whose durability covers processes only: pages are missing, and
//! what they held is reported as lost. The rest is right, and can be worked with.

use super::victim::{COPY, Victim, options, patch_superblock, without};
use quipu::{Design, Durability, Error, Options, Store};
use quipu_lab::contract::{Contents, verify};
use std::ops::Range;

const PAGE: usize = 4096;

/// The file of another boot, with these pages as they were before anything was written.
fn rebooted(victim: &Victim, pages: &[usize]) -> Vec<u8> {
    victim.damaged(|bytes| {
        patch_superblock(bytes, &[0, 1], "boot_id", &[0x5a; 16]);
        pages.iter().for_each(|page| bytes[*page..*page + PAGE].fill(0));
    })
}

fn overlaps(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Insists that a place that was reported covers all of this.
#[track_caller]
fn reported(store: &Store, hole: &Range<usize>) {
    let covers = |place: &quipu::DamagedPlace| {
        place.offset as usize <= hole.start && hole.end <= (place.offset + place.len) as usize
    };
    let lost = &store.recovery().lost;
    assert!(lost.iter().any(covers), "{hole:?} is not in {lost:?}");
}

/// Works on, and leaves the pool in both ways: no later open finds anything amiss.
fn lives_on(victim: &Victim, mut store: Store, mut expected: Contents) {
    verify(&mut store, &expected);
    let mut client = store.client();
    for (key, value) in &victim.contents {
        if !expected.contains_key(key) || key.ends_with(b"7") {
            let value = value[..100].to_vec();
            client.put(key, &value).unwrap();
            expected.insert(key.clone(), value);
        }
    }
    drop(client);
    verify(&mut store, &expected);
    drop(store);
    let mut store = victim.reopen();
    assert!(store.recovery().lost.is_empty(), "{:?}", store.recovery().lost);
    verify(&mut store, &expected);
    store.close().unwrap();
    let mut store = victim.reopen();
    assert!(store.recovery().was_clean && store.recovery().lost.is_empty());
    verify(&mut store, &expected);
}

#[test]
fn holes_in_sealed_segments_are_reported_as_lost() {
    let victim = Victim::usual(false);
    let segments = victim.segments();
    // One page, two pages in a row, the page of a header, and the last page of records.
    let ends = segments[5].records.last().unwrap().end / PAGE * PAGE;
    let holes = [
        segments[1].start + 3 * PAGE..segments[1].start + 4 * PAGE,
        segments[2].start + PAGE..segments[2].start + 3 * PAGE,
        segments[3].start..segments[3].start + PAGE,
        ends..ends + PAGE,
    ];
    let pages: Vec<_> = holes.iter().flat_map(|hole| hole.clone().step_by(PAGE)).collect();
    let store = victim.open(&rebooted(&victim, &pages)).unwrap();
    let headless = segments[3].start..segments[3].start + victim.superblock.zone_size() as usize;
    let mut gone = Vec::new();
    for record in segments.iter().flat_map(|segment| &segment.records) {
        if holes.iter().chain([&headless]).any(|hole| overlaps(hole, record)) {
            gone.push(victim.key_at(record).to_vec());
        }
    }
    assert!(gone.len() > 150);
    for hole in holes[..2].iter().chain([&headless]) {
        reported(&store, hole);
    }
    reported(&store, &(ends..segments[5].records.last().unwrap().end));
    lives_on(&victim, store, without(&victim.contents, &gone));
}

#[test]
fn holes_in_an_open_segment_are_reported_and_what_follows_them_is_kept() {
    let victim = Victim::usual(false);
    let segments = victim.segments();
    let open = segments.iter().find(|segment| !segment.sealed).unwrap();
    let middle = open.records[open.records.len() / 2].start / PAGE * PAGE;
    let tail = open.records.last().unwrap().start / PAGE * PAGE;
    assert!(open.start < middle && middle < tail, "the open segment has several pages");
    let holes = [middle..middle + PAGE, tail..tail + PAGE];
    let store = victim.open(&rebooted(&victim, &[middle, tail])).unwrap();
    let lost = |record: &&Range<usize>| holes.iter().any(|hole| overlaps(hole, record));
    let gone: Vec<_> =
        open.records.iter().filter(lost).map(|record| victim.key_at(record).to_vec()).collect();
    // Nothing proves that there was more behind the last record that is left, so only the hole between two is
    // known.
    reported(&store, &holes[0]);
    lives_on(&victim, store, without(&victim.contents, &gone));
}

/// Of an item that is lost in part, the rest would have to go, and all items behind it.
#[test]
fn a_pool_with_one_order_is_refused_after_such_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = Options::new().design(Design::XP).durability(Durability::Process);
    let store = Store::create(&path, &options.clone().size(16 << 20)).unwrap();
    store.client().put(b"key", b"value").unwrap();
    drop(store);
    let written = std::fs::read(&path).unwrap();
    let mut rebooted = written.clone();
    patch_superblock(&mut rebooted, &[0, 1], "boot_id", &[0x5a; 16]);
    std::fs::write(&path, &rebooted).unwrap();
    assert!(matches!(Store::open(&path, &options), Err(Error::Damaged(_))));
    assert!(std::fs::read(&path).unwrap() == rebooted, "a pool that is refused is left as it is");
    std::fs::write(&path, &written).unwrap();
    let store = Store::open(&path, &options).unwrap();
    assert_eq!(store.client().get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn without_holes_nothing_is_lost() {
    let victim = Victim::usual(false);
    let store = victim.open(&rebooted(&victim, &[])).unwrap();
    assert!(store.recovery().lost.is_empty());
    lives_on(&victim, store, victim.contents.clone());
}

#[test]
fn a_pool_that_was_closed_has_no_excuse_for_holes() {
    let victim = Victim::usual(true);
    let page = victim.segments()[1].start + 3 * PAGE;
    assert!(matches!(victim.refused(&rebooted(&victim, &[page])), quipu::Error::Damaged(_)));
}

#[test]
fn the_process_alone_leaves_no_holes() {
    let victim = Victim::usual(false);
    let page = victim.segments()[1].start + 3 * PAGE;
    let bytes = victim.damaged(|bytes| bytes[page..page + PAGE].fill(0));
    assert!(matches!(victim.refused(&bytes), quipu::Error::Damaged(_)));
}

/// Pages are written back in no order, so records may arrive that are newer than any superblock that did.
#[test]
fn a_superblock_that_is_older_than_the_records_does_not_set_the_clock_back() {
    let young = Victim::new(1 << 20, 16 << 10, false, |_| Contents::new());
    let victim = Victim::new(1 << 20, 16 << 10, false, |store| {
        let mut client = store.client();
        (0..500u64).for_each(|version| client.put(b"key", &version.to_le_bytes()).unwrap());
        Contents::from([(b"key".to_vec(), 499u64.to_le_bytes().to_vec())])
    });
    let mut bytes = rebooted(&victim, &[]);
    // As they were when the pool was made: same secret, nothing drawn yet.
    patch_superblock(&mut bytes, &[0, 1], "clock_ceiling", &[0; 8]);
    patch_superblock(&mut bytes, &[0, 1], "run", &[0; 8]);
    assert_eq!(young.superblock.clock_ceiling.get(), 0, "this is what a superblock begins with");
    let mut store = victim.open(&bytes).unwrap();
    verify(&mut store, &victim.contents);
    store.client().put(b"key", b"newest").unwrap();
    drop(store);
    let expected = Contents::from([(b"key".to_vec(), b"newest".to_vec())]);
    verify(&mut victim.reopen(), &expected);
    assert!(bytes.len() > 2 * COPY);
}

/// A gap too short for any record was not made by losing records, and nothing could cover it: damage, found
/// before the first change.
#[test]
fn a_gap_that_no_record_fits_is_damage() {
    let victim = Victim::usual(false);
    let segments = victim.segments();
    let sealed = segments
        .iter()
        .find(|segment| {
            segment.sealed
                && segment.records.last().unwrap().end + 8
                    <= segment.start + victim.superblock.zone_size() as usize
        })
        .expect("a sealed segment with some bytes left");
    let end = (sealed.records.last().unwrap().end - sealed.start + 8) as u64;
    let certifier = victim.certifier();
    let mark = certifier.check_word(certifier.life_key(sealed.life, sealed.nonce), end);
    let mut bytes = rebooted(&victim, &[]);
    bytes[end as usize - 8 + sealed.start..][..8].fill(0);
    bytes[sealed.start + 40..][..8].copy_from_slice(&(end >> 3 | u64::from(mark) << 32).to_le_bytes());
    assert!(matches!(victim.refused(&bytes), quipu::Error::Damaged(_)));
}

/// A pool with a segment that holds nothing but what is superseded: the first.
fn with_garbage() -> (Victim, usize) {
    let victim = Victim::new(1 << 20, 16 << 10, false, |store| {
        let mut client = store.client();
        let mut contents = Contents::new();
        for version in 0..4u8 {
            for number in 0..100u64 {
                let (key, value) = (number.to_le_bytes().to_vec(), vec![version; 100]);
                client.put(&key, &value).unwrap();
                contents.insert(key, value);
            }
        }
        contents
    });
    let segments = victim.segments();
    let oldest = segments.iter().min_by_key(|segment| segment.life).unwrap();
    assert!(oldest.sealed && oldest.records.len() <= 300);
    let table = victim.zones().into_iter().find(|(_, zone)| *zone == oldest.start).unwrap().0;
    (victim, table)
}

/// The zone of a cleaned segment was freed, and of header and zone table only the table was written back. The
/// first open excuses that, and so leaves nothing to the next, which has no excuse.
#[test]
fn a_segment_that_the_table_takes_for_free_is_excused_once_and_for_all() {
    let (victim, table) = with_garbage();
    let mut bytes = rebooted(&victim, &[]);
    bytes[table + 7] ^= 0x80;
    let mut store = victim.open(&bytes).unwrap();
    assert!(store.recovery().lost.is_empty(), "{:?}", store.recovery().lost);
    verify(&mut store, &victim.contents);
    store.client().put(b"another", b"value").unwrap();
    drop(store);
    let mut expected = victim.contents.clone();
    expected.insert(b"another".to_vec(), b"value".to_vec());
    for _ in 0..2 {
        let mut store = victim.reopen();
        assert!(store.recovery().lost.is_empty(), "{:?}", store.recovery().lost);
        verify(&mut store, &expected);
        drop(store);
    }
}

#[test]
fn without_such_a_crash_a_segment_that_the_table_takes_for_free_is_damage() {
    let (victim, table) = with_garbage();
    let bytes = victim.damaged(|bytes| bytes[table + 7] ^= 0x80);
    assert!(matches!(victim.refused(&bytes), quipu::Error::Damaged(_)));
    // A pool that was closed before the machine was started again has no excuse either.
    let (victim, table) = {
        let victim = Victim::usual(true);
        let table =
            victim.zones().into_iter().find(|(_, zone)| *zone == victim.segments()[1].start).unwrap().0;
        (victim, table)
    };
    let mut bytes = rebooted(&victim, &[]);
    bytes[table + 7] ^= 0x80;
    assert!(victim.open(&bytes).is_err());
}

/// Damage that is accepted is told, even where a crash of the system would excuse it.
#[test]
fn accepted_damage_names_a_segment_that_the_table_takes_for_free() {
    let victim = Victim::usual(false);
    let segment = &victim.segments()[1];
    let table = victim.zones().into_iter().find(|(_, zone)| *zone == segment.start).unwrap().0;
    let mut bytes = rebooted(&victim, &[]);
    bytes[table + 7] ^= 0x80;
    let accepting = options().accept_damage(true);
    let mut store = victim.open_with(&bytes, &accepting).unwrap();
    reported(&store, &(segment.start..segment.start + victim.superblock.zone_size() as usize));
    let mut gone: Vec<_> = segment.records.iter().map(|record| victim.key_at(record).to_vec()).collect();
    gone.sort();
    let named: Vec<_> = store.recovery().lost_keys.iter().map(|lost| lost.key.clone()).collect();
    assert_eq!(named, gone);
    let expected = without(&victim.contents, &gone);
    verify(&mut store, &expected);
    drop(store);
    verify(&mut victim.reopen(), &expected);
}
