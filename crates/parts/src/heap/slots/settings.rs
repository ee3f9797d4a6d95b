//! What a heap of slots is made of, and how the superblock remembers it.

use super::error::SlotError;
use super::geometry::Geometry;
use crate::table;
use crate::table::Table;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Unit of page sizes: the interleave of the DIMMs (section 2.1).
pub const PAGE_UNIT: u64 = 4096;
/// Most pages of a block: five bits of an offset.
pub const MAX_PAGES: u8 = 32;
/// Most bytes of a block whose records have no fixed size: positions count 8 bytes, in 16 bits.
pub const MAX_LOG_BLOCK: u64 = 8 << 16;
/// Longest key of a record without fixed size: 15 bits.
pub const MAX_KEY: u64 = (1 << 15) - 1;

/// How records stand in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordForm {
    /// All keys and all values have one size each; a page is an array of slots (section 3.2.2).
    Fixed {
        /// Bytes of a key.
        key: u16,
        /// Bytes of a value.
        value: u32,
    },
    /// Any sizes; a page is a log (section 3.2.3).
    Variable,
}

/// Which of two records of a key counts, where a crash has left both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// That of the higher sequence number.
    Sequence,
    /// That of the higher block, page and position, as in the paper (section 4.2). Blocks are reused, so it may be the older
    /// one, though someone has read the newer if its page was unlocked too early. And an older copy that reclamation was
    /// making may win whose value fills blocks that are given up with the other copy. Kept for comparison.
    BlockOrder,
}

/// Where the version lock of a page lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// 32 bits in DRAM.
    Dram32,
    /// A byte in the page, as in the paper. It is the same again after 128 writes, which a reader then does not notice: a
    /// broken twin, kept for comparison.
    PageByte,
}

/// Which of PACMAN's techniques a heap has (Wang et al., "Pacman", USENIX ATC 2022); none is Viper as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotTechniques {
    /// Bits in DRAM tell what is superseded or deleted, and not marks in the pool (3.2): a deletion is a record then.
    pub reduce: bool,
    /// Hot records lie in blocks of their own (3.4).
    pub separate: bool,
    /// Reclamation copies many records under one fence (3.3). Only with `reduce`: where marks count, a copy may not be used
    /// before the mark of its original is clear.
    pub batch: bool,
}

impl SlotTechniques {
    /// All of them.
    pub const ALL: SlotTechniques = SlotTechniques { reduce: true, separate: true, batch: true };

    fn bits(self) -> u8 {
        u8::from(self.reduce) | u8::from(self.separate) << 1 | u8::from(self.batch) << 2
    }

    fn from_bits(bits: u8) -> Option<SlotTechniques> {
        let is_on = |bit: u8| bits >> bit & 1 != 0;
        let techniques = SlotTechniques { reduce: is_on(0), separate: is_on(1), batch: is_on(2) };
        (techniques.bits() == bits).then_some(techniques)
    }
}

/// The settings of a heap; they never change during the life of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSettings {
    /// Bytes of a page, a multiple of 4096.
    pub page_size: u32,
    /// Pages of a block: the DIMMs of an interleaved set.
    pub pages_per_block: u8,
    /// How records stand in a page.
    pub form: RecordForm,
    /// Whether a client begins each block at a random page, so that clients spread over the DIMMs (section 4.1).
    pub random_first_page: bool,
    /// Bytes by which pages are moved off the boundaries of the DIMMs: 0, or 2048 as in figure 11 of the paper.
    pub alignment_shift: u16,
    /// Which of two records of a key counts.
    pub tie_break: TieBreak,
    /// Where version locks live.
    pub lock: LockKind,
    /// Percent of a block that must be free before it is worth reclaiming (section 4.6).
    pub reclaim_percent: u8,
    /// Percent of all blocks that must be used before more are allocated (section 3.2.1).
    pub fill_percent: u8,
    /// Which of PACMAN's techniques it has.
    pub techniques: SlotTechniques,
}

impl Default for SlotSettings {
    /// The paper's blocks of six pages of 4 KiB, for records of any size, without the paper's two mistakes.
    fn default() -> SlotSettings {
        SlotSettings {
            page_size: PAGE_UNIT as u32,
            pages_per_block: 6,
            form: RecordForm::Variable,
            random_first_page: true,
            alignment_shift: 0,
            tie_break: TieBreak::Sequence,
            lock: LockKind::Dram32,
            reclaim_percent: 33,
            fill_percent: 95,
            techniques: SlotTechniques::default(),
        }
    }
}

/// The settings as they stand in the superblock.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SettingsImage {
    magic: [u8; 4],
    page_size: U32,
    value_size: U32,
    key_size: U16,
    alignment_shift: U16,
    pages_per_block: u8,
    form: u8,
    tie_break: u8,
    lock: u8,
    random_first_page: u8,
    reclaim_percent: u8,
    fill_percent: u8,
    techniques: u8,
    reserved: [u8; 40],
}

const MAGIC: [u8; 4] = *b"QVP1";
const _: () = assert!(size_of::<SettingsImage>() == SlotSettings::LEN);

impl SlotSettings {
    /// Bytes of the settings in the superblock.
    pub const LEN: usize = 64;

    /// The settings for the superblock.
    pub fn encode(&self) -> [u8; SlotSettings::LEN] {
        let (form, key, value) = match self.form {
            RecordForm::Fixed { key, value } => (1, key, value),
            RecordForm::Variable => (2, 0, 0),
        };
        let image = SettingsImage {
            magic: MAGIC,
            page_size: self.page_size.into(),
            value_size: value.into(),
            key_size: key.into(),
            alignment_shift: self.alignment_shift.into(),
            pages_per_block: self.pages_per_block,
            form,
            tie_break: 1 + u8::from(self.tie_break == TieBreak::BlockOrder),
            lock: 1 + u8::from(self.lock == LockKind::PageByte),
            random_first_page: u8::from(self.random_first_page),
            reclaim_percent: self.reclaim_percent,
            fill_percent: self.fill_percent,
            techniques: self.techniques.bits(),
            reserved: [0; 40],
        };
        zerocopy::transmute!(image)
    }

    /// The settings that a superblock holds.
    ///
    /// # Errors
    /// [`SlotError::Settings`] if these are no settings of a heap of slots, or some that it does not know.
    pub fn decode(bytes: &[u8; SlotSettings::LEN]) -> Result<SlotSettings, SlotError> {
        let image: SettingsImage = zerocopy::transmute!(*bytes);
        let unknown =
            || SlotError::Settings { reason: "the superblock holds some that this release does not know" };
        let known = image.magic == MAGIC && image.reserved == [0; 40] && image.random_first_page <= 1;
        let sizes = (image.key_size.get(), image.value_size.get());
        let form = match (image.form, sizes) {
            (1, (key, value)) => Some(RecordForm::Fixed { key, value }),
            (2, (0, 0)) => Some(RecordForm::Variable),
            _ => None,
        };
        let settings = SlotSettings {
            page_size: image.page_size.get(),
            pages_per_block: image.pages_per_block,
            form: form.filter(|_| known).ok_or_else(unknown)?,
            random_first_page: image.random_first_page == 1,
            alignment_shift: image.alignment_shift.get(),
            tie_break: match image.tie_break {
                1 => TieBreak::Sequence,
                2 => TieBreak::BlockOrder,
                _ => return Err(unknown()),
            },
            lock: match image.lock {
                1 => LockKind::Dram32,
                2 => LockKind::PageByte,
                _ => return Err(unknown()),
            },
            reclaim_percent: image.reclaim_percent,
            fill_percent: image.fill_percent,
            techniques: SlotTechniques::from_bits(image.techniques).ok_or_else(unknown)?,
        };
        settings.check()?;
        Ok(settings)
    }

    /// The same settings with as many pages a block, up to those that these have, as leave at most a quarter of a zone unused
    /// at its ends.
    pub fn fitted(self, zone_size: u64) -> SlotSettings {
        let with = |pages_per_block| SlotSettings { pages_per_block, ..self };
        let uses_most = |settings: &SlotSettings| {
            let used = Geometry::new(settings, zone_size)
                .map(|geometry| geometry.blocks_per_chunk * geometry.block_size);
            used.is_ok_and(|used| used * 4 >= zone_size * 3)
        };
        (1..=self.pages_per_block).rev().map(with).find(uses_most).unwrap_or(self)
    }

    /// Whether the settings agree with each other.
    ///
    /// # Errors
    /// [`SlotError::Settings`] that says what to change.
    pub fn check(&self) -> Result<(), SlotError> {
        let refuse = |reason| Err(SlotError::Settings { reason });
        let page = u64::from(self.page_size);
        if page == 0 || !page.is_multiple_of(PAGE_UNIT) {
            return refuse("the page size must be a multiple of 4096");
        }
        if self.pages_per_block == 0 || self.pages_per_block > MAX_PAGES {
            return refuse("a block has between 1 and 32 pages");
        }
        if page * u64::from(self.pages_per_block) > MAX_LOG_BLOCK {
            return refuse("a block has at most 512 KiB");
        }
        if !matches!(self.alignment_shift, 0 | 2048) {
            return refuse("pages are moved by 0 or by 2048 bytes");
        }
        if self.reclaim_percent == 0 || self.reclaim_percent > 100 || self.fill_percent > 100 {
            return refuse("a share is at most 100 percent, and that of reclamation at least 1");
        }
        let SlotTechniques { reduce, batch, .. } = self.techniques;
        if batch && !reduce {
            return refuse("batch needs reduce: where marks count, records move one by one");
        }
        if self.techniques != SlotTechniques::default() && self.form != RecordForm::Variable {
            return refuse("the techniques of PACMAN are for records of any size");
        }
        if reduce && (self.tie_break, self.lock) != (TieBreak::Sequence, LockKind::Dram32) {
            return refuse("reduce needs sequence numbers, and locks in DRAM");
        }
        match self.form {
            RecordForm::Fixed { key: 0, .. } => refuse("a key has at least one byte"),
            _ => Ok(()),
        }
    }
}

/// The fields in the superblock as (name, offset, size).
pub(super) fn format_table() -> Table {
    table!(SettingsImage as "SlotSettings"; magic, page_size, value_size, key_size, alignment_shift, pages_per_block, form, tie_break, lock, random_first_page, reclaim_percent, fill_percent, techniques, reserved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn settings_survive_the_superblock() {
        for form in [RecordForm::Variable, RecordForm::Fixed { key: 16, value: 200 }] {
            for twin in [false, true] {
                let settings = SlotSettings {
                    form,
                    page_size: 8192,
                    pages_per_block: 4,
                    random_first_page: !twin,
                    alignment_shift: if twin { 2048 } else { 0 },
                    tie_break: if twin { TieBreak::BlockOrder } else { TieBreak::Sequence },
                    lock: if twin { LockKind::PageByte } else { LockKind::Dram32 },
                    reclaim_percent: 40,
                    fill_percent: 80,
                    techniques: SlotTechniques::default(),
                };
                assert_eq!(SlotSettings::decode(&settings.encode()).expect("the same settings"), settings);
            }
        }
    }

    #[test]
    fn techniques_survive_it_too_and_others_are_refused() {
        for bits in 0..=u8::MAX {
            let mut bytes = SlotSettings::default().encode();
            bytes[offset_of!(SettingsImage, techniques)] = bits;
            let techniques = SlotTechniques::from_bits(bits);
            // The third needs the first.
            let is_sound = bits < 8 && bits & 0b101 != 0b100;
            let decoded = SlotSettings::decode(&bytes).ok();
            assert_eq!(
                decoded.map(|settings| settings.techniques),
                techniques.filter(|_| is_sound),
                "{bits}"
            );
        }
        assert_eq!(SlotTechniques::from_bits(7), Some(SlotTechniques::ALL));
    }

    #[test]
    fn blocks_are_fitted_to_small_zones() {
        let pages = |zone| SlotSettings::default().fitted(zone).pages_per_block;
        assert_eq!([16, 32, 64, 128, 256, 4096].map(|kib| pages(kib << 10)), [3, 6, 4, 6, 6, 6]);
        let smaller = SlotSettings { pages_per_block: 2, ..SlotSettings::default() };
        assert_eq!(smaller.fitted(4 << 20), smaller);
        assert_eq!(smaller.fitted(100), smaller, "nothing fits: that is said elsewhere");
    }

    #[test]
    fn every_byte_of_the_image_is_looked_at() {
        let bytes = SlotSettings::default().encode();
        let mut seen = 0;
        for at in 0..SlotSettings::LEN {
            let mut other = bytes;
            other[at] ^= 0x40;
            match SlotSettings::decode(&other) {
                Ok(settings) => assert_ne!(settings, SlotSettings::default(), "byte {at} says nothing"),
                Err(_) => seen += 1,
            }
        }
        assert!(seen > 40, "{seen} bytes are checked");
    }

    #[test]
    fn settings_that_contradict_themselves_are_refused() {
        const ALL: SlotTechniques = SlotTechniques::ALL;
        let sound = SlotSettings::default();
        for wrong in [
            SlotSettings { page_size: 0, ..sound },
            SlotSettings { page_size: 5000, ..sound },
            SlotSettings { pages_per_block: 0, ..sound },
            SlotSettings { pages_per_block: 33, ..sound },
            SlotSettings { page_size: 128 << 10, ..sound },
            SlotSettings { alignment_shift: 1024, ..sound },
            SlotSettings { reclaim_percent: 0, ..sound },
            SlotSettings { fill_percent: 101, ..sound },
            SlotSettings { form: RecordForm::Fixed { key: 0, value: 8 }, ..sound },
            SlotSettings { techniques: SlotTechniques { reduce: false, ..ALL }, ..sound },
            SlotSettings { techniques: ALL, form: RecordForm::Fixed { key: 8, value: 8 }, ..sound },
            SlotSettings { techniques: ALL, tie_break: TieBreak::BlockOrder, ..sound },
            SlotSettings { techniques: ALL, lock: LockKind::PageByte, ..sound },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
