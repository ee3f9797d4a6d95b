//! The structures in persistent memory, byte by byte: the header of a chunk, the first word of a page, the
//! word before each entry of a log.

use super::error::Damage;
use crate::record::{Certifier, mix};
use crate::space::ZoneId;
use crate::table;
use crate::table::Table;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a chunk's header.
pub(super) const HEADER_LEN: u64 = 64;
/// Where the count of used blocks stands in it.
pub(super) const USED_AT: u64 = 40;
/// Bits of that word that count; the others are its check.
const USED: u64 = u32::MAX as u64;
/// Where a page's bitset or log begins, behind the header word.
pub(super) const LOG_START: u64 = 8;
/// Bytes of an entry before its key: length word and sequence number.
pub const ENTRY_HEAD: u64 = 16;
/// Bytes of a block of overflow before the value: header word and sequence number.
pub(super) const OVERFLOW_HEAD: u64 = 16;
/// Bytes that the body of an entry of kind [`EntryKind::Overflow`] has for the value's length, and for each
/// block.
pub(super) const DESCRIPTOR_WORD: u64 = 8;

/// The header of a chunk, as it stands at the start of its zone.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ChunkHeader {
    check: U64,
    magic: [u8; 4],
    zone: U32,
    life: U64,
    pub(super) chunk: U32,
    pub(super) blocks: U32,
    nonce: U64,
    used: U64,
    reserved: [u8; 16],
}

const MAGIC: [u8; 4] = *b"QVCH";
const _: () = assert!(size_of::<ChunkHeader>() == HEADER_LEN as usize);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, used) == USED_AT as usize);

impl ChunkHeader {
    /// The header of a zone that becomes a chunk, none of its blocks used.
    pub(super) fn new(
        certifier: &Certifier,
        zone: ZoneId,
        (life, nonce): (u64, u64),
        chunk: u32,
        blocks: u64,
    ) -> ChunkHeader {
        let mut header = ChunkHeader {
            check: 0.into(),
            magic: MAGIC,
            zone: zone.0.into(),
            life: life.into(),
            chunk: chunk.into(),
            blocks: (blocks as u32).into(),
            nonce: nonce.into(),
            used: 0.into(),
            reserved: [0; 16],
        };
        header.check.set(header.expected_check(certifier));
        header.used.set(header.seed(certifier).used_word(0));
        header
    }

    fn expected_check(&self, certifier: &Certifier) -> u64 {
        // Headers prove themselves without a life, since the life stands in them.
        certifier.check(certifier.life_key(0, 0), 0, &self.as_bytes()[8..USED_AT as usize])
    }

    /// Whether the header was written here, for this zone. Its count of used blocks proves itself.
    pub(super) fn is_valid(&self, certifier: &Certifier, zone: ZoneId) -> bool {
        self.magic == MAGIC && self.zone.get() == zone.0 && self.check.get() == self.expected_check(certifier)
    }

    /// The word that counts used blocks, with its check.
    pub(super) fn used(&self) -> u64 {
        self.used.get()
    }

    /// The life number.
    pub(super) fn life(&self) -> u64 {
        self.life.get()
    }

    /// The seed of the checks of its pages, from its life.
    pub(super) fn seed(&self, certifier: &Certifier) -> Seed {
        let life = certifier.life_key(self.life.get(), self.nonce.get());
        Seed(certifier.check(life, 0, &[]))
    }
}

/// The part of the pages' checks that comes from their chunk's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(pub(super) u64);

impl Seed {
    /// The tag of a page, which proves that its header was written in this life for a block of this kind, and
    /// is as it was written.
    fn page_tag(self, page: u64, kind: BlockKind) -> u64 {
        mix(self.0 ^ page ^ (kind as u64) << 32) >> 32
    }

    /// The header word of a page.
    pub(super) fn page_word(self, page: u64, kind: BlockKind) -> u64 {
        self.page_tag(page, kind) << 32 | (kind as u64) << 8
    }

    /// The kind that a header word tells, if it is one of this page.
    pub(super) fn read_page_word(self, page: u64, word: u64) -> Option<BlockKind> {
        let kind = BlockKind::from_byte((word >> 8) as u8)?;
        (word == self.page_word(page, kind)).then_some(kind)
    }

    /// The word that counts so many blocks of the chunk as used. Its upper half is a check, as in the end
    /// mark of a segment; both halves change by one exchange.
    pub(super) fn used_word(self, blocks: u64) -> u64 {
        debug_assert!(blocks <= USED);
        mix(mix(self.0) ^ blocks) & !USED | blocks
    }

    /// How many blocks this word of the chunk's header counts as used.
    ///
    /// # Errors
    /// [`Damage`] if it does not prove itself.
    pub(super) fn read_used(self, word: u64, at: u64) -> Result<u64, Damage> {
        let blocks = word & USED;
        let damaged = Damage { what: "the count of used blocks of a chunk", offset: at };
        if word == self.used_word(blocks) { Ok(blocks) } else { Err(damaged) }
    }

    fn entry_check(self, place: u64, word: u64) -> u64 {
        mix(mix(self.0 ^ !place) ^ (word & CHECKED)) >> CHECK_SHIFT
    }
}

/// The use of a block: byte 1 of the header word of its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum BlockKind {
    /// Pages of records.
    Pages = 0,
    /// Free: its pages hold nothing that counts.
    Free = 1,
    /// All its pages are one page.
    Large = 2,
    /// A part of one value.
    Overflow = 3,
}

impl BlockKind {
    fn from_byte(byte: u8) -> Option<BlockKind> {
        [BlockKind::Pages, BlockKind::Free, BlockKind::Large, BlockKind::Overflow]
            .get(usize::from(byte))
            .copied()
    }
}

/// The use of an entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Key and value.
    Plain = 0,
    /// A key whose value is the first entry of the next page.
    Continued = 1,
    /// The value of a key on the page before.
    Part = 2,
    /// A key whose value fills blocks of its own, which the body names.
    Overflow = 3,
    /// A key that was deleted, where bits in DRAM tell which records are dead.
    Tombstone = 4,
}

/// The word before each entry of a log, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: EntryKind,
    pub(super) key: u64,
    /// Bytes of the value; of an entry of kind [`EntryKind::Overflow`], those of its descriptor.
    pub(super) body: u64,
    pub(super) set: bool,
}

/// The bit that tells a record that counts.
pub(super) const SET: u64 = 1;
const CHECK_SHIFT: u32 = 48;
/// The bits that the check covers.
const CHECKED: u64 = ((1 << CHECK_SHIFT) - 1) & !SET;
/// Bits of the length of a body.
const BODY_BITS: u32 = 16 + 13;

impl Entry {
    /// The word at this place: the number of its page in the chunk, and the position there.
    pub(super) fn word(&self, seed: Seed, place: u64) -> u64 {
        debug_assert!(self.key < 1 << 15 && self.body < 1 << BODY_BITS);
        let word =
            (self.body & 0xffff) << 1 | self.key << 17 | (self.kind as u64) << 32 | (self.body >> 16) << 35;
        word | seed.entry_check(place, word) << CHECK_SHIFT | u64::from(self.set)
    }

    /// The entry that a word tells: `None` where the log ends.
    ///
    /// # Errors
    /// [`Damage`] if it cannot be one of this place, of a log with room for `room` more bytes.
    pub(super) fn read(
        word: u64,
        seed: Seed,
        place: u64,
        (at, room): (u64, u64),
    ) -> Result<Option<Entry>, Damage> {
        if word == 0 {
            return Ok(None);
        }
        let damaged = Damage { what: "the length of a record", offset: at };
        let kind = match word >> 32 & 7 {
            0 => EntryKind::Plain,
            1 => EntryKind::Continued,
            2 => EntryKind::Part,
            3 => EntryKind::Overflow,
            4 => EntryKind::Tombstone,
            _ => return Err(damaged),
        };
        let body = (word >> 1 & 0xffff) | (word >> 35 & 0x1fff) << 16;
        let entry = Entry { kind, key: word >> 17 & 0x7fff, body, set: word & SET != 0 };
        let has_key = (entry.key == 0) == (kind == EntryKind::Part);
        let has_its_body = kind != EntryKind::Tombstone || body == 0;
        let is_right = seed.entry_check(place, word) == word >> CHECK_SHIFT;
        if !is_right || !has_key || !has_its_body || entry.len() > room {
            return Err(damaged);
        }
        Ok(Some(entry))
    }

    /// Bytes of the body that stand in the entry itself.
    #[inline]
    pub(super) fn inline_body(&self) -> u64 {
        if self.kind == EntryKind::Continued { 0 } else { self.body }
    }

    /// Bytes of the entry in its log.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        super::geometry::entry_len(self.key, self.inline_body())
    }

    /// Bytes of the record, its part on the next page included.
    #[inline]
    pub(super) fn record_len(&self) -> u64 {
        let continued = self.kind == EntryKind::Continued;
        self.len() + if continued { super::geometry::entry_len(0, self.body) } else { 0 }
    }
}

/// The structures and their fields, for the check of `docs/FORMAT.md` against the code.
pub fn format_tables() -> Vec<Table> {
    vec![table!(ChunkHeader: check, magic, zone, life, chunk, blocks, nonce, used, reserved)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed(0x1234_5678_9abc_def0);

    #[test]
    fn an_entry_survives_its_word_set_or_cleared() {
        use EntryKind::*;
        for kind in [Plain, Continued, Part, Overflow, Tombstone] {
            for (key, body) in
                [(1, 0), (32767, 0), (16, 200), (9, 65535), (9, 65536), (1, (1 << BODY_BITS) - 1)]
            {
                let key = if kind == EntryKind::Part { 0 } else { key };
                let body = if kind == EntryKind::Tombstone { 0 } else { body };
                let entry = Entry { kind, key, body, set: true };
                let word = entry.word(SEED, 77);
                assert_eq!(Entry::read(word, SEED, 77, (0, u64::MAX)), Ok(Some(entry)));
                let cleared = Entry { set: false, ..entry };
                assert_eq!(Entry::read(word & !SET, SEED, 77, (0, u64::MAX)), Ok(Some(cleared)));
                assert!(Entry::read(word, SEED, 77, (0, entry.len() - 1)).is_err(), "beyond the page");
            }
        }
        assert_eq!(Entry::read(0, SEED, 77, (0, 100)), Ok(None));
    }

    #[test]
    fn a_changed_word_or_one_of_elsewhere_is_damage() {
        let word = Entry { kind: EntryKind::Plain, key: 16, body: 200, set: true }.word(SEED, 77);
        for bit in 1..64 {
            assert!(Entry::read(word ^ 1 << bit, SEED, 77, (0, u64::MAX)).is_err(), "bit {bit}");
        }
        assert!(Entry::read(word, SEED, 78, (0, u64::MAX)).is_err());
        assert!(Entry::read(word, Seed(1), 77, (0, u64::MAX)).is_err());
    }

    #[test]
    fn a_count_of_used_blocks_proves_itself() {
        for blocks in [0, 1, 40, USED] {
            let word = SEED.used_word(blocks);
            assert_eq!(SEED.read_used(word, 0), Ok(blocks));
            assert!(Seed(1).read_used(word, 0).is_err(), "of another chunk");
            assert!((0..64).all(|bit| SEED.read_used(word ^ 1 << bit, 0).is_err()), "{blocks}");
        }
        assert!(SEED.read_used(0, 0).is_err(), "a line that was lost counts nothing");
    }

    #[test]
    fn a_header_is_that_of_its_zone_and_its_life() {
        let certifier = Certifier::new(&[7; 32]);
        let header = ChunkHeader::new(&certifier, ZoneId(3), (9, 11), 5, 40);
        assert!(header.is_valid(&certifier, ZoneId(3)) && !header.is_valid(&certifier, ZoneId(4)));
        assert!(!header.is_valid(&Certifier::new(&[8; 32]), ZoneId(3)));
        let other = ChunkHeader::new(&certifier, ZoneId(3), (10, 11), 5, 40);
        let (seed, other) = (header.seed(&certifier), other.seed(&certifier));
        let word = seed.page_word(7, BlockKind::Large);
        assert_eq!(seed.read_page_word(7, word), Some(BlockKind::Large));
        assert_eq!(seed.read_page_word(8, word), None);
        assert_eq!(other.read_page_word(7, word), None);
        for bit in 0..64 {
            assert_eq!(seed.read_page_word(7, word ^ 1 << bit), None, "bit {bit}, which may tell the kind");
        }
    }
}
