//! The settings of a heap of slots.

use super::error::SlotError;
use super::geometry::Geometry;
use std::fmt;
use std::str::FromStr;

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

impl fmt::Display for RecordForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordForm::Fixed { key, value } => write!(f, "fixed:{key}:{value}"),
            RecordForm::Variable => f.write_str("variable"),
        }
    }
}

impl FromStr for RecordForm {
    type Err = SlotError;

    fn from_str(text: &str) -> Result<RecordForm, SlotError> {
        let fixed = || {
            let (key, value) = text.strip_prefix("fixed:")?.split_once(':')?;
            let key = key.parse().ok().filter(|key| *key > 0)?;
            Some(RecordForm::Fixed { key, value: value.parse().ok()? })
        };
        let known = if text == "variable" { Some(RecordForm::Variable) } else { fixed() };
        known.ok_or(SlotError::Settings { reason: "the form of records is variable, or fixed:KEY:VALUE" })
    }
}

/// Which of PACMAN's techniques a heap has (Wang et al., "Pacman", USENIX ATC 2022); none is Viper itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotTechniques {
    /// Bits in DRAM instead of marks in the pool tell which records are dead (3.2). A deletion is a record
    /// then.
    pub reduce: bool,
    /// Hot records lie in blocks of their own (3.4).
    pub separate: bool,
    /// Reclamation copies many records under one fence (3.3). Only with `reduce`: where marks count, nobody
    /// may use a copy before the mark of its original is clear.
    pub batch: bool,
}

impl SlotTechniques {
    /// All of them.
    pub const ALL: SlotTechniques = SlotTechniques { reduce: true, separate: true, batch: true };
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
    /// Whether a client begins each block at a random page, so that clients spread over the DIMMs (section
    /// 4.1).
    pub random_first_page: bool,
    /// Bytes by which pages are moved off the boundaries of the DIMMs: 0, or 2048 as in figure 11 of the
    /// paper.
    pub alignment_shift: u16,
    /// Percent of a block that must be free before it is worth reclaiming (section 4.6).
    pub reclaim_percent: u8,
    /// Percent of all blocks that must be used before more are allocated (section 3.2.1).
    pub fill_percent: u8,
    /// Which of PACMAN's techniques it has.
    pub techniques: SlotTechniques,
}

impl Default for SlotSettings {
    /// The paper's blocks of six pages of 4 KiB, for records of any size.
    fn default() -> SlotSettings {
        SlotSettings {
            page_size: PAGE_UNIT as u32,
            pages_per_block: 6,
            form: RecordForm::Variable,
            random_first_page: true,
            alignment_shift: 0,
            reclaim_percent: 33,
            fill_percent: 95,
            techniques: SlotTechniques::default(),
        }
    }
}

impl SlotSettings {
    /// These settings for zones of this size: with the most pages a block, up to their own number, that leave
    /// at most a quarter of a zone unused at its ends.
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
        match self.form {
            RecordForm::Fixed { key: 0, .. } => refuse("a key has at least one byte"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_fitted_to_small_zones() {
        let pages = |zone| SlotSettings::default().fitted(zone).pages_per_block;
        assert_eq!([16, 32, 64, 128, 256, 4096].map(|kib| pages(kib << 10)), [3, 6, 4, 6, 6, 6]);
        let smaller = SlotSettings { pages_per_block: 2, ..SlotSettings::default() };
        assert_eq!(smaller.fitted(4 << 20), smaller);
        assert_eq!(smaller.fitted(100), smaller, "nothing fits: that is said elsewhere");
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
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
