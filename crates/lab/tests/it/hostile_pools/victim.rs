//! A pool file to damage, with a map of what lies where in it.

use quipu::internals::Testing;
use quipu::{Design, Error, Levels, MediumKind, Options, Store};
use quipu_lab::contract::{Contents, value_of};
use quipu_medium::{Durability, LINE, Region};
use quipu_parts::heap::chain::{self, FIRST_CHUNK};
use quipu_parts::heap::segments::{self, FIRST_RECORD};
use quipu_parts::record::{self, Certifier};
use quipu_parts::space::{Space, Superblock, format_tables};
use quipu_parts::table::Table;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use twox_hash::XxHash3_64;

/// Bytes of a superblock copy, of which there are two.
pub const COPY: usize = 4096;

/// See the module's documentation.
pub struct Victim {
    _folder: tempfile::TempDir,
    path: PathBuf,
    /// The file as it was left.
    pub bytes: Vec<u8>,
    /// The contents of the pool.
    pub contents: Contents,
    pub superblock: Superblock,
}

/// A segment of the pool.
pub struct Segment {
    /// Offset of its zone.
    pub start: usize,
    pub life: u64,
    pub nonce: u64,
    pub sealed: bool,
    /// Its records, in order.
    pub records: Vec<Range<usize>>,
}

impl Victim {
    /// A pool of `size` bytes with zones of `zone`, worked on by `work`, then closed, or dropped with its
    /// client.
    pub fn new(size: u64, zone: u64, closed: bool, work: impl FnOnce(&Store) -> Contents) -> Victim {
        Victim::of(Design::QUIPU, size, zone, closed, work)
    }

    /// The same, of any design over logs.
    pub fn of(
        design: Design,
        size: u64,
        zone: u64,
        closed: bool,
        work: impl FnOnce(&Store) -> Contents,
    ) -> Victim {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        // A pool of `xp` that is not closed has what its writes have left, whatever a cleaner would do next:
        // one that releases memtables proves that all before was durable.
        let has_cleaner = closed || design != Design::XP;
        let options = options().design(design).size(size).zone_size(zone).cleaner(has_cleaner);
        let store = Store::create(&path, &options).unwrap();
        let contents = work(&store);
        if closed {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let region = Region::open(&path, Some(MediumKind::File), Durability::Process).unwrap();
        let superblock = Space::probe(&region).unwrap();
        drop(region);
        let bytes = std::fs::read(&path).unwrap();
        Victim { _folder: folder, path, bytes, contents, superblock }
    }

    /// About 2,000 records in a dozen sealed segments.
    pub fn usual(closed: bool) -> Victim {
        Victim::new(4 << 20, 64 << 10, closed, |store| {
            let mut client = store.client();
            let pair = |number: u64| {
                let key = format!("key {number:05}").into_bytes();
                let value = value_of(&key, 0, 200 + number as usize % 200);
                (key, value)
            };
            let contents: Contents = (0..2000).map(pair).collect();
            contents.iter().for_each(|(key, value)| client.put(key, value).unwrap());
            contents
        })
    }

    /// A damaged copy of the file's bytes.
    pub fn damaged(&self, damage: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        damage(&mut bytes);
        bytes
    }

    /// Opens a file of these bytes. If that is refused, the file is still the same.
    #[track_caller]
    pub fn open(&self, bytes: &[u8]) -> Result<Store, Error> {
        self.open_with(bytes, &options())
    }

    /// The same, with these options.
    #[track_caller]
    pub fn open_with(&self, bytes: &[u8], options: &Options) -> Result<Store, Error> {
        std::fs::write(&self.path, bytes).unwrap();
        let opened = Store::open(&self.path, options);
        if let Err(error) = &opened {
            assert!(
                std::fs::read(&self.path).unwrap() == bytes,
                "the file was changed, and yet refused: {error}"
            );
        }
        opened
    }

    /// Opens what the last store left.
    pub fn reopen(&self) -> Store {
        self.reopened().unwrap()
    }

    /// The same, where it may be refused.
    pub fn reopened(&self) -> Result<Store, Error> {
        Store::open(&self.path, &options())
    }

    /// Insists that these bytes are refused.
    #[track_caller]
    pub fn refused(&self, bytes: &[u8]) -> Error {
        self.open(bytes).expect_err("damage is noticed")
    }

    /// Where the file is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The certifier of the pool.
    pub fn certifier(&self) -> Certifier {
        Certifier::new(self.superblock.secret())
    }

    /// The word at an offset.
    pub fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Offsets of the entries of the zone table, with those of the zones.
    pub fn zones(&self) -> Vec<(usize, usize)> {
        let header = structure("PoolHeader");
        let entry = structure("ZoneEntry");
        let mut zones = Vec::new();
        for extent in self.superblock.extents() {
            for zone in 0..extent.zone_count.get() as usize {
                let table = extent.start.get() as usize + header + zone * entry;
                zones
                    .push((table, extent.zones.get() as usize + zone * self.superblock.zone_size() as usize));
            }
        }
        zones
    }

    /// The segments in use, from the commit bits.
    pub fn segments(&self) -> Vec<Segment> {
        self.committed(b"QSEG").map(|start| self.segment(start)).collect()
    }

    /// The chunks of each zone of a memtable.
    pub fn chunks(&self) -> Vec<Vec<Range<usize>>> {
        let table = chain::format_tables().into_iter().find(|table| table.0 == "ChainChunk").unwrap();
        let len = field(&table, "len");
        let of_zone = |start: usize| {
            let (mut at, end, mut chunks) =
                (start + FIRST_CHUNK as usize, start + self.zone_size(), Vec::new());
            while at < end {
                let len = u32::from_le_bytes(self.bytes[at + len..][..4].try_into().unwrap()) as usize;
                if len == 0 {
                    break;
                }
                chunks.push(at..at + len);
                at += len.next_multiple_of(LINE as usize);
            }
            chunks
        };
        self.committed(b"QMTZ").map(of_zone).collect()
    }

    /// Where structures with this magic stand outside of zones.
    pub fn objects(&self, magic: &[u8; 4]) -> Vec<usize> {
        let zones = self.zones().into_iter().map(|(_, start)| start).min().unwrap();
        (0..zones).step_by(64).filter(|at| self.bytes[at + 8..at + 12] == *magic).collect()
    }

    fn zone_size(&self) -> usize {
        self.superblock.zone_size() as usize
    }

    /// Where the zones of large values begin, by their lives.
    pub fn values(&self) -> BTreeMap<u64, Vec<usize>> {
        let mut values = BTreeMap::<u64, Vec<usize>>::new();
        self.committed(b"QVAL")
            .for_each(|start| values.entry(self.word(start + 16)).or_default().push(start));
        values
    }

    /// Committed zones with this magic.
    fn committed(&self, magic: &[u8; 4]) -> impl Iterator<Item = usize> {
        let is_committed = |table: usize| self.word(table) >> 63 == 1;
        let zones = self.zones().into_iter().filter(move |(table, _)| is_committed(*table));
        zones.map(|(_, start)| start).filter(|start| self.bytes[start + 8..start + 12] == *magic)
    }

    fn segment(&self, start: usize) -> Segment {
        let mark = self.word(start + field(&segments::format_table(), "end_mark"));
        let sealed = mark != 0;
        let limit = self.zone_size();
        let end = if sealed { (mark as u32 as usize) << 3 } else { limit };
        let table = record::format_table();
        let mut records = Vec::new();
        let mut at = FIRST_RECORD as usize;
        while at + 24 <= end && self.word(start + at) != 0 {
            let lengths = |name: &str| start + at + field(&table, name);
            let key = u16::from_le_bytes(self.bytes[lengths("key_len")..][..2].try_into().unwrap());
            let value = u32::from_le_bytes(self.bytes[lengths("value_len")..][..4].try_into().unwrap());
            let len = record::padded(record::HEADER + u64::from(key) + u64::from(value)) as usize;
            records.push(start + at..start + at + len);
            at += len;
        }
        let word = |name| self.word(start + field(&segments::format_table(), name));
        Segment { start, life: word("life"), nonce: word("nonce"), sealed, records }
    }

    /// The key in the record of this range.
    pub fn key_at(&self, record: &Range<usize>) -> &[u8] {
        let len = record.start + field(&record::format_table(), "key_len");
        let len = u16::from_le_bytes(self.bytes[len..len + 2].try_into().unwrap());
        &self.bytes[record.start + 24..][..usize::from(len)]
    }
}

/// Options to open with: all records are proved, whether the pool has a checkpoint or not.
pub fn options() -> Options {
    trusting().verify(true)
}

/// Options to open with that leave a checkpoint to be believed.
pub fn trusting() -> Options {
    // A small index, so that its image is short beside small segments.
    let testing = Testing { tiny_index: true, ..Testing::default() };
    // Some fill a pool.
    let options = Options::new().medium(MediumKind::File).levels(Levels::Off);
    options.recovery_threads(2).with(|options| options.testing = testing)
}

/// Where a structure has a field.
fn field(table: &Table, name: &str) -> usize {
    table.1.iter().find(|(field, ..)| *field == name).unwrap().1
}

fn table(name: &str) -> Table {
    format_tables().into_iter().find(|table| table.0 == name).unwrap()
}

/// Bytes of a structure.
fn structure(name: &str) -> usize {
    table(name).1.iter().map(|(.., size)| size).sum()
}

/// Offset of a field within a superblock copy.
pub fn superblock_field(name: &str) -> usize {
    field(&table("Superblock"), name)
}

/// Overwrites a field in these superblock copies, which prove themselves afterwards.
pub fn patch_superblock(bytes: &mut [u8], copies: &[usize], name: &str, new: &[u8]) {
    let at = superblock_field(name);
    for copy in copies {
        let copy = &mut bytes[copy * COPY..][..COPY];
        copy[at..at + new.len()].copy_from_slice(new);
        let check = XxHash3_64::oneshot(&copy[8..]);
        copy[..8].copy_from_slice(&check.to_le_bytes());
    }
}

/// The contents of a store, by iteration.
pub fn contents_of(store: &Store) -> Contents {
    store.client().pin().iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Keys and values of `expected` but for those of these keys.
pub fn without(expected: &Contents, gone: &[Vec<u8>]) -> Contents {
    expected
        .iter()
        .filter(|(key, _)| !gone.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
