//! Opening what is, and what is not, a pool: each fault gets its own error, and nothing is changed.

use quipu_medium::{Pages, Region};
use quipu_parts::space::{
    FORMAT_VERSION, FormatOptions, FreeListKind, PoolSpec, SETTINGS_LEN, Space, SpaceError, format_tables,
};
use twox_hash::XxHash3_64;

const LEN: u64 = 1 << 20;
const COPY: usize = 4096;

fn options() -> FormatOptions {
    FormatOptions {
        zone_size: 16 << 10,
        design: 5,
        settings: [7; SETTINGS_LEN],
        pools: vec![PoolSpec { id: 3, object_size: 128, count: 10 }],
        free_list: FreeListKind::Persistent,
        secret: [9; 32],
        boot_id: [4; 16],
    }
}

fn formatted() -> Region {
    let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
    Space::format(region.clone(), &options()).expect("format");
    region
}

fn image(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len() as usize];
    region.read_racing(0, &mut bytes);
    bytes
}

/// The error of opening, after checking that neither probe nor open has changed a byte.
fn refused(region: &Region) -> SpaceError {
    let before = image(region);
    let error = Space::open(region.clone()).err().expect("open refuses");
    let _ = Space::probe(region);
    assert!(image(region) == before, "a refused pool was changed");
    error
}

fn field(table: &str, name: &str) -> (usize, usize) {
    let tables = format_tables();
    let (_, fields) = tables.iter().find(|(found, _)| *found == table).expect("a table");
    let (_, offset, size) = fields.iter().find(|(found, ..)| *found == name).expect("a field");
    (*offset, *size)
}

/// Changes a superblock field in both copies and seals them again.
fn forge(region: &Region, name: &str, value: u64) {
    let (offset, size) = field("Superblock", name);
    let mut bytes = image(region);
    for copy in [0, COPY] {
        bytes[copy + offset..copy + offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
        let checksum = XxHash3_64::oneshot(&bytes[copy + 8..copy + COPY]);
        bytes[copy..copy + 8].copy_from_slice(&checksum.to_le_bytes());
        region.write(copy as u64, &bytes[copy..copy + COPY]);
    }
}

fn flip(region: &Region, offset: usize) {
    let mut byte = [0];
    region.read_racing(offset as u64, &mut byte);
    region.write(offset as u64, &[byte[0] ^ 0x40]);
}

#[test]
fn a_new_pool_says_what_it_was_made_with() {
    let region = formatted();
    let superblock = Space::probe(&region).expect("a pool");
    assert_eq!(superblock.design.get(), 5);
    assert_eq!(superblock.settings, [7; SETTINGS_LEN]);
    assert_eq!(superblock.secret(), &[9; 32]);
    assert_eq!(superblock.boot_id, [4; 16]);
    assert_eq!(superblock.pool_len(), LEN);
    assert_eq!(superblock.zone_size(), 16 << 10);
    assert_eq!((superblock.version(), superblock.generation()), (FORMAT_VERSION, 1));
    assert!(!superblock.is_clean());
    assert!(!format!("{superblock:?}").contains("9, 9"), "the secret is not printed");
    let (space, recovery) = Space::open(region).expect("open");
    assert_eq!(space.free_zones(), space.zone_count());
    assert_eq!((recovery.leaked_reclaimed, recovery.links_repaired), (0, 0));
    assert!(!recovery.superblock_copy_lost);
}

#[test]
fn foreign_regions_are_not_pools() {
    for region in [
        Region::dram(4096, Pages::Ordinary).expect("memory"),
        Region::dram(LEN, Pages::Ordinary).expect("memory"),
    ] {
        assert!(matches!(refused(&region), SpaceError::NotAPool));
        region.write(0, &[0xab; 4096]);
        assert!(matches!(refused(&region), SpaceError::NotAPool));
    }
}

#[test]
fn truncated_pools_are_named() {
    let whole = image(&formatted());
    for len in [LEN - 4096, 65536, 8192, 4096] {
        let region = Region::dram(len, Pages::Ordinary).expect("memory");
        region.write(0, &whole[..len as usize]);
        match refused(&region) {
            SpaceError::Truncated { expected: LEN, found } => assert_eq!(found, len),
            other => panic!("{len}: {other}"),
        }
    }
    let region = Region::dram(4096, Pages::Ordinary).expect("memory");
    region.write(0, &whole[..4096]);
    flip(&region, 100);
    assert!(matches!(refused(&region), SpaceError::Truncated { expected: 8192, found: 4096 }));
}

#[test]
fn a_longer_region_is_opened() {
    let whole = image(&formatted());
    let region = Region::dram(2 * LEN, Pages::Ordinary).expect("memory");
    region.write(0, &whole);
    Space::open(region).expect("the pool is all there");
}

#[test]
fn other_formats_are_refused() {
    let region = formatted();
    let (newer, older) = (FORMAT_VERSION + 1, FORMAT_VERSION - 1);
    forge(&region, "version", newer.into());
    assert!(
        matches!(refused(&region), SpaceError::NewerFormat { version, known: FORMAT_VERSION } if version == newer)
    );
    forge(&region, "version", older.into());
    assert!(
        matches!(refused(&region), SpaceError::OlderFormat { version, known: FORMAT_VERSION } if version == older)
    );
    assert!(matches!(Space::probe(&region), Err(SpaceError::OlderFormat { .. })));
}

#[test]
fn impossible_geometry_is_refused() {
    for (name, value) in [("zone_size", 100), ("zone_count", 3), ("extent_count", 0), ("pool_count", 9)] {
        let region = formatted();
        forge(&region, name, value);
        assert!(matches!(refused(&region), SpaceError::Geometry { .. }), "{name}");
    }
}

#[test]
fn one_damaged_copy_does_not_matter_and_two_do() {
    for offset in [0, 8, 20, 500, 4095] {
        let region = formatted();
        flip(&region, offset);
        let (_, recovery) = Space::open(region.clone()).expect("the other copy is whole");
        assert!(recovery.superblock_copy_lost);
        flip(&region, COPY + 100);
        match refused(&region) {
            SpaceError::Damaged { .. } => {}
            other => panic!("{offset}: {other}"),
        }
    }
}

/// Every byte that is covered by a check word or has one right value: damage is found before anything is
/// changed.
#[test]
fn damaged_metadata_is_found() {
    let region = formatted();
    let superblock = Space::probe(&region).expect("a pool");
    let metadata = superblock.pools()[0].metadata.get() as usize;
    let extent = superblock.extents()[0].start.get() as usize;
    let location = field("ZoneEntry", "location").0;
    let mut offsets: Vec<usize> = (0..64).flat_map(|byte| [metadata + byte, extent + byte]).collect();
    offsets.extend((0..8).map(|byte| extent + 128 + 5 * 16 + location + byte));
    for offset in offsets {
        let region = formatted();
        flip(&region, offset);
        assert!(matches!(refused(&region), SpaceError::Damaged { .. }), "byte {offset}");
    }
}

#[test]
fn updates_alternate_and_the_newest_counts() {
    let region = formatted();
    let (space, _) = Space::open(region.clone()).expect("open");
    for round in 1..=5 {
        space.update_superblock(|superblock| superblock.run.set(round));
        assert_eq!(space.superblock().run.get(), round);
        let probed = Space::probe(&region).expect("a pool");
        assert_eq!((probed.run.get(), probed.generation()), (round, round + 1));
    }
    // The copy that the last update wrote is lost: the one before it counts.
    let newest =
        if image(&region)[..COPY] == *zerocopy::IntoBytes::as_bytes(&space.superblock()) { 0 } else { COPY };
    flip(&region, newest + 300);
    drop(space);
    let (space, recovery) = Space::open(region).expect("open");
    assert!(recovery.superblock_copy_lost);
    assert_eq!(space.superblock().run.get(), 4);
    // The next update repairs the lost copy rather than overwriting the whole one.
    space.update_superblock(|superblock| superblock.run.set(6));
    let region = space.region().clone();
    drop(space);
    let (space, recovery) = Space::open(region).expect("open");
    assert!(!recovery.superblock_copy_lost);
    assert_eq!(space.superblock().run.get(), 6);
}

#[test]
fn a_clean_pool_is_opened_without_a_change() {
    for free_list in [FreeListKind::Persistent, FreeListKind::Volatile] {
        let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
        let space = Space::format(region.clone(), &FormatOptions { free_list, ..options() }).expect("format");
        let pool = space.pool(3).expect("the pool");
        for round in 0..7 {
            let zone = space.get_zone(None, 0).expect("sound").expect("a zone");
            space.commit_zone(zone);
            let object = pool.get().expect("sound").expect("an object");
            pool.commit(object);
            if round % 2 == 0 {
                space.release_zone(zone);
                pool.release(object);
            }
        }
        space.update_superblock(|superblock| superblock.set_clean(true));
        let before = image(&region);
        drop(space);
        let (space, recovery) = Space::open(region.clone()).expect("open");
        assert!(recovery.was_clean);
        assert_eq!((recovery.committed_zones, recovery.committed_objects), (3, 3));
        assert_eq!((recovery.leaked_reclaimed, recovery.links_repaired), (0, 0));
        assert!(image(&region) == before);
        let audit = space.audit().expect("sound");
        assert_eq!((audit.zones.committed, audit.zones.gotten), (3, 0));
    }
}

#[test]
fn garbage_left_on_a_device_does_not_matter() {
    let region = Region::dram(LEN, Pages::Ordinary).expect("memory");
    region.write(0, &vec![0xff; LEN as usize]);
    let space = Space::format(region, &options()).expect("format");
    let audit = space.audit().expect("sound");
    assert_eq!(audit.zones.free, u64::from(space.zone_count()));
    assert_eq!(audit.pools[0].1.free, 10);
}
