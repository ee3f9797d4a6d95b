//! The pool of a run: small, so that zones run out and are used again, and of another make in every run.
//!
//! The traits of a run beyond the settings that all designs share are drawn apart, from its seed alone, so
//! that the runs of a design without it do not depend on it.

use super::records::{KEYS, MANY_KEYS, Records};
use super::report::{Broken, CrashConfig};
use crate::settings;
use quipu::internals::{
    FreeList, NodePlace, OffsetMap, RecordForm, SlotSettings, Techniques, Testing, TieBreak,
};
use quipu::{Design, Error, Options};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Bytes of a pool, and of one that is crowded: about sixty zones, and about ten.
const LEN: u64 = 1 << 20;
const CROWDED: u64 = 12 * ZONE;

/// Bytes of a zone unless blocks need more.
const ZONE: u64 = 16 << 10;

/// Bytes of a zone, and pages of a block that then leave little of it unused: most often several blocks a
/// zone, or one that is almost all of a small one.
const BLOCKS: [(u64, u8); 8] =
    [(ZONE, 1), (ZONE, 1), (ZONE, 3), (ZONE, 3), (ZONE, 3), (2 * ZONE, 2), (2 * ZONE, 6), (4 * ZONE, 4)];

/// Bytes of a zone, pages of a block, and zones, of a crowded pool with ten or a dozen blocks. Two clients,
/// each with a block for hot records and one for others, the cleaner and the reserve leave next to none.
const CROWDED_BLOCKS: [(u64, u8, u64); 3] = [(ZONE, 1, 5), (ZONE, 3, 11), (2 * ZONE, 2, 5)];

/// Bytes of its zones that an index in the pool uses in half of the wide runs: a handful of nodes or segments
/// each. Of buckets half as many are a handful.
const INDEX_ZONES: [u64; 2] = [1 << 10, 2 << 10];

/// Key and value of records of one size. There are two to sixty in a page; the fewer, the more blocks are
/// filled and reclaimed.
const SIZES: [(u16, u32); 6] = [(8, 40), (13, 491), (8, 992), (16, 992), (6, 1306), (16, 2000)];

/// The setting that every run chooses for itself: its keys and values follow from it.
const OWN: &str = "form";

/// The traits of some runs.
struct Traits {
    /// Many keys, so that the index splits.
    wide: bool,
    /// Every key is a word.
    words: bool,
    /// Bytes of a zone of the index, if few.
    index_zone: Option<u64>,
    /// Values expire while the run lasts.
    moves_clock: bool,
}

impl Traits {
    /// Those of a run. The short runs, which are explored in full, have none. The moduli have no factor in
    /// common with those that decide on other things, so that everything meets everything; and of the first
    /// ten seeds, some have each.
    fn of(seed: u64, config: &CrashConfig) -> Traits {
        let can = config.design.can();
        let is_long = !seed.is_multiple_of(64);
        let wide = is_long && matches!(seed % 11, 1 | 4 | 7 | 10);
        let has_buckets = matches!(config.design, Design::MPKV | Design::MPKV_BASELINE);
        let may_link = wide && (can.index_in_pool || config.design == Design::VIPER);
        Traits {
            wide,
            words: is_long && matches!(seed % 7, 2 | 4),
            index_zone: (may_link && seed.is_multiple_of(2))
                .then_some(INDEX_ZONES[(seed / 2 % 2) as usize] >> has_buckets as u32),
            moves_clock: is_long && can.expiry && matches!(seed % 13, 1 | 3 | 4 | 6),
        }
    }
}

/// See the module's documentation.
pub(super) struct Pool {
    options: Options,
    records: Records,
    len: u64,
    crowded: bool,
    moves_clock: bool,
}

impl Pool {
    /// Holds the settings against the design.
    pub(super) fn check(config: &CrashConfig) -> Result<(), Error> {
        if let Some((name, _)) = config.settings.iter().find(|(name, _)| name == OWN) {
            return Err(Error::Option(format!("every run chooses the setting {name} itself")));
        }
        settings::check(&config.settings, &[config.design])
    }

    /// The pool of a run whose settings were checked.
    pub(super) fn of(seed: u64, config: &CrashConfig) -> Pool {
        let Traits { wide, words, index_zone, moves_clock } = Traits::of(seed, config);
        let testing = Testing {
            index_zone,
            twin: config.twin.and_then(Broken::twin),
            tiny_index: true,
            clock_block: Some(64),
            // In half of the runs keys share stripes, and clients often throw numbers away. Of two stripes
            // hardly anything stays parked until its client publishes it.
            handful: (seed % 4 < 2).then_some(3),
            stripes: (seed % 4 < 2).then_some(if seed % 8 < 4 { 2 } else { 16 }),
            // In four of eight, two clients may compact at a time.
            compactors: (seed / 4 % 2 == 1).then_some(2),
            ..Testing::default()
        };
        let free_list = if seed.is_multiple_of(2) { FreeList::Persistent } else { FreeList::Volatile };
        // As many as it takes for two states of five to fall during compaction. Viper's blocks would leave
        // too little of such a pool to updates in place.
        let crowded = match config.design {
            Design::VIPER => false,
            Design::VIPER_PACMAN => seed % 5 != 2,
            _ => matches!(seed % 5, 0 | 4),
        };
        // An index of many zones leaves no room for segments in such a pool.
        let crowded = crowded && index_zone.is_none();
        let mut len = if crowded { CROWDED } else { LEN };
        let mut options =
            Options::new().design(config.design).zone_size(ZONE).recovery_threads(2).with(|options| {
                options.free_list = free_list;
                // Puts are published before they return in one run of four, as papers have it.
                options.late = seed % 4 != 2;
                options.testing = testing;
            });
        if config.design.can().updates_in_place {
            let (zone_size, slots) = slots(seed, config.twin);
            // The index in the pool is written in five runs of ten.
            let nodes = if (seed + 3) / 5 % 2 == 1 { NodePlace::Pm } else { NodePlace::Dram };
            let offset_map = OffsetMap { nodes, ..OffsetMap::default() };
            options = options
                .zone_size(zone_size)
                .with(|options| options.slots = slots)
                .with(|options| options.offset_map = offset_map);
        }
        if config.design == Design::VIPER_PACMAN {
            let (mut zone_size, slots) = slots(seed, config.twin);
            let mut slots = SlotSettings { form: RecordForm::Variable, ..slots };
            if crowded {
                let (size, pages_per_block, zones) =
                    CROWDED_BLOCKS[(seed / 5) as usize % CROWDED_BLOCKS.len()];
                (zone_size, len) = (size, zones * size);
                slots = SlotSettings { pages_per_block, alignment_shift: 0, ..slots };
            }
            // Records move one by one in one run of four, and hot ones lie with the others in another.
            let techniques = Techniques { batch: seed % 4 != 3, separate: seed % 4 != 1, ..Techniques::ALL };
            options = options
                .zone_size(zone_size)
                .with(|options| options.slots = slots)
                .with(|options| options.techniques = techniques);
        }
        let options =
            settings::apply(&config.settings, config.design, options).expect("settings that were checked");
        let records = Records::new(options.slots.form, if wide { MANY_KEYS } else { KEYS }, words);
        Pool { options, records, len, crowded, moves_clock }
    }

    /// Bytes of the pool.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is so little room that zones are soon used again; somebody compacts all the time then.
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Whether the clock moves, and values expire.
    pub(super) fn moves_clock(&self) -> bool {
        self.moves_clock
    }

    /// The options that it is created and opened with.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Its keys and values.
    pub(super) fn records(&self) -> Records {
        self.records
    }
}

/// Bytes of a zone, and slots of some make: in half of the runs of one size.
fn slots(seed: u64, twin: Option<Broken>) -> (u64, SlotSettings) {
    let mut random = SmallRng::seed_from_u64(!seed);
    let (zone, pages_per_block) = *BLOCKS.choose(&mut random).expect("there are some");
    let (key, value) = *SIZES.choose(&mut random).expect("there are some");
    let form =
        if random.random_ratio(1, 2) { RecordForm::Fixed { key, value } } else { RecordForm::Variable };
    // It costs the smallest zone too much.
    let alignment_shift = if zone > ZONE && random.random_ratio(1, 3) { 2048 } else { 0 };
    let tie_break = twin.map_or(TieBreak::Sequence, Broken::tie_break);
    (zone, SlotSettings { form, pages_per_block, alignment_shift, tie_break, ..SlotSettings::default() })
}
