//! The pool of a run: small, so that zones run out and are used again, and of another make in every run.
//!
//! The traits of a run beyond the settings that all designs share are drawn apart, from its seed alone, so
//! that the runs of a design without it do not depend on it.

use super::ledger::Grants;
use super::records::{KEYS, MANY_KEYS, Records};
use super::report::CrashConfig;
use super::transfers;
use crate::sim_levels::{SimFaults, SimPublishFault};
use quipu::internals::{
    CacheSize, EntryForm, FreeList, IndexChoice, Merging, NodePlace, RecordForm, SlotSettings, Techniques,
    Testing, Twin,
};
use quipu::{Design, Error, Options};
use quipu_bench::settings;
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

/// Tables of a run with several, and bytes of its pool if it is crowded: each of them has a zone that it
/// writes to, and one that is ready.
pub(super) const TABLES: usize = 4;
const CROWDED_TABLES: u64 = 28 * ZONE;

/// Zones in use at which a table is dumped: short runs fill few.
const DUMP_AT: u32 = 8;

/// The setting that every run chooses for itself: its keys and values follow from it.
const OWN: &str = "form";

/// See the module's documentation.
pub(super) struct Pool {
    /// The options that it is created and opened with.
    pub(super) options: Options,
    /// Its keys and values.
    pub(super) records: Records,
    /// Bytes of the pool.
    pub(super) len: u64,
    /// Nodes that its bytes lie on, and so its parts. Its clients are on all of them in turn.
    pub(super) nodes: u16,
    /// There is so little room that zones are soon used again; somebody compacts all the time then.
    pub(super) is_crowded: bool,
    /// The clock moves, and values expire.
    pub(super) moves_clock: bool,
    /// There are levels below the pool, and these of their changes fail.
    pub(super) levels: Option<SimFaults>,
    /// The grants of a design that puts all writes of a pool into one order.
    pub(super) grants: Option<Grants>,
}

impl Pool {
    /// Holds the settings against the design.
    pub(super) fn check(config: &CrashConfig) -> Result<(), Error> {
        if let Some((name, _)) = config.settings.iter().find(|(name, _)| name == OWN) {
            return Err(Error::Option(format!("every run chooses the setting {name} itself")));
        }
        if config.transfers && !config.design.can().transactions {
            return Err(Error::Option(format!("{} has no transactions, which transfers are", config.design)));
        }
        settings::check(&config.settings, &[config.design])
    }

    /// The pool of a run whose settings were checked.
    pub(super) fn of(seed: u64, config: &CrashConfig) -> Pool {
        // Some runs have these traits. The short ones, which are explored in full, have none. The moduli have
        // no factor in common with those that decide on other things, so that everything meets everything. Of
        // the first ten seeds, some have each.
        let (can, is_long) = (config.design.can(), !seed.is_multiple_of(64));
        // Many keys, so that the index splits.
        let wide = is_long && matches!(seed % 11, 1 | 4 | 7 | 10);
        // Every key is a word.
        let words = is_long && matches!(seed % 7, 2 | 4);
        let moves_clock = is_long && can.expiry && matches!(seed % 13, 1 | 3 | 4 | 6);
        let has_buckets = matches!(config.design, Design::MPKV | Design::MPKV_BASELINE);
        let may_link = wide && (can.index_in_pool || config.design == Design::VIPER);
        let index_zone = (may_link && seed.is_multiple_of(2))
            .then_some(INDEX_ZONES[(seed / 2 % 2) as usize] >> has_buckets as u32);
        let grants = can.tables.then(Grants::default);
        let tables = match config.transfers {
            true => transfers::TABLES,
            false if can.tables && is_long && seed % 17 % 4 != 2 => TABLES,
            false => 1,
        };
        let levels = (can.levels && is_long && !(seed % 19).is_multiple_of(3)).then(|| faults(seed));
        let mut options = Options::new().design(config.design).zone_size(ZONE).recovery_threads(2);
        options.free_list = if seed.is_multiple_of(2) { FreeList::Persistent } else { FreeList::Volatile };
        // In two of five, memtables have indexes of their own.
        options.merging = match seed / 3 % 5 {
            _ if levels.is_none() => Merging::Direct,
            1 => Merging::Key,
            3 => Merging::Off,
            _ => Merging::Direct,
        };
        // Half of the runs have the one index, where there is a choice, and half the other.
        if can.chooses_index && can.ordered && seed / 5 % 2 == 1 {
            options.index = IndexChoice::Alex;
        }
        // Puts are published before they return in one run of four, as papers have it.
        options.late = seed % 4 != 2;
        // Keys have an order on request in half of these runs, and in some of the others.
        let may_order = seed / 5 % 2 == 1 && (!options.late || seed.is_multiple_of(3));
        if can.orders_on_request() && may_order {
            options.index = IndexChoice::Alex;
        }
        // One run of four has a cache, unless another rule than those of caches is broken: runs whose seeds
        // are pinned stay as they are.
        let may_cache = config.twin.is_none_or(|twin| twin.twin() == Some(Twin::CacheNotToldOfWrites));
        if can.caches && may_cache && seed % 4 == 1 {
            options.cache = CacheSize::Bytes(16 << 10);
        }
        // One run of four writes the first word of an entry last, unless another rule is broken, as above.
        let may_write_last = match config.twin {
            None => is_long && seed % 29 % 4 == 1,
            Some(twin) => twin.twin() == Some(Twin::OpBesideEntry),
        };
        if can.common_files && may_write_last {
            options.files.entry = EntryForm::OpLast;
        }
        options.testing = Testing {
            cache_sample: Some(1 + seed as u32 / 4 % 3),
            index_zone,
            granted: grants.as_ref().map(Grants::listener),
            dump_at: Some(DUMP_AT),
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
        // As many as it takes for two states of five to fall during compaction. Viper's blocks would leave
        // too little of such a pool to updates in place.
        let is_crowded = match config.design {
            Design::VIPER => false,
            Design::VIPER_PACMAN => seed % 5 != 2,
            _ => matches!(seed % 5, 0 | 4),
        };
        // An index of many zones leaves no room for segments in such a pool.
        let is_crowded = is_crowded && index_zone.is_none();
        let mut len = match is_crowded {
            true if tables > 1 => CROWDED_TABLES,
            true => CROWDED,
            false => LEN,
        };
        if can.updates_in_place {
            let (zone_size, slots) = slots(seed);
            (options.zone_size, options.slots) = (Some(zone_size), slots);
            // The index in the pool is written in five runs of ten.
            options.offset_map.nodes = if (seed + 3) / 5 % 2 == 1 { NodePlace::Pm } else { NodePlace::Dram };
        }
        if config.design == Design::VIPER_PACMAN {
            let (zone_size, slots) = slots(seed);
            (options.zone_size, options.slots) = (Some(zone_size), slots);
            options.slots.form = RecordForm::Variable;
            if is_crowded {
                let (size, pages_per_block, zones) =
                    CROWDED_BLOCKS[(seed / 5) as usize % CROWDED_BLOCKS.len()];
                (options.zone_size, len) = (Some(size), zones * size);
                (options.slots.pages_per_block, options.slots.alignment_shift) = (pages_per_block, 0);
            }
            // Records move one by one in one run of four, and hot ones lie with the others in another.
            let (batch, separate) = (seed % 4 != 3, seed % 4 != 1);
            options.techniques = Techniques { batch, separate, ..Techniques::ALL };
        }
        // Few: a pool of several parts differs from others only in its allocator.
        let nodes = if is_long && seed % 37 == 5 { 2 } else { 1 };
        if nodes > 1 && is_crowded {
            // Headers, tables and alignment of each part would leave next to no zones.
            len += 4 * options.zone_size.unwrap_or(ZONE);
        }
        let options =
            settings::apply(&config.settings, config.design, options).expect("settings that were checked");
        // Indexes of memtables need levels.
        let levels = levels.or_else(|| (options.merging != Merging::Direct).then(|| faults(seed)));
        let records = Records::new(options.slots.form, if wide { MANY_KEYS } else { KEYS }, words);
        let records = records.in_tables(tables);
        Pool { options, records, len, nodes, is_crowded, moves_clock, levels, grants }
    }
}

impl Pool {
    /// The pool of a history. All that is optional is there in every second one, or oftener, and small.
    pub(super) fn of_history(seed: u64, config: &CrashConfig) -> Pool {
        // Of a long run.
        let mut pool = Pool::of(if seed.is_multiple_of(64) { seed + 1 } else { seed }, config);
        let (can, mut random) = (config.design.can(), SmallRng::seed_from_u64(seed ^ (u64::MAX / 5)));
        let caches = can.caches && random.random_ratio(1, 2);
        pool.options.cache = if caches { CacheSize::Bytes(16 << 10) } else { CacheSize::Off };
        pool.moves_clock = can.expiry && random.random_ratio(1, 2);
        pool.options.testing.dump_at = Some(random.random_range(1..=DUMP_AT));
        pool
    }
}

/// The changes of levels that fail: none in half of the runs.
fn faults(seed: u64) -> SimFaults {
    let mut random = SmallRng::seed_from_u64(seed ^ (u64::MAX / 3));
    let nth = random.random_range(1..5);
    match random.random_range(0..12) {
        0 | 1 => SimFaults { write: Some(nth), ..SimFaults::default() },
        2 => SimFaults { publish: Some((nth, SimPublishFault::NotNamed)), ..SimFaults::default() },
        3 => SimFaults { publish: Some((nth, SimPublishFault::PoisonedBefore)), ..SimFaults::default() },
        4 => SimFaults { publish: Some((nth, SimPublishFault::PoisonedAfter)), ..SimFaults::default() },
        5 => SimFaults { compact: Some(nth), ..SimFaults::default() },
        _ => SimFaults::default(),
    }
}

/// Bytes of a zone, and slots of some make: in half of the runs of one size.
fn slots(seed: u64) -> (u64, SlotSettings) {
    let mut random = SmallRng::seed_from_u64(!seed);
    let (zone, pages_per_block) = *BLOCKS.choose(&mut random).expect("there are some");
    let (key, value) = *SIZES.choose(&mut random).expect("there are some");
    let form =
        if random.random_ratio(1, 2) { RecordForm::Fixed { key, value } } else { RecordForm::Variable };
    // It costs the smallest zone too much.
    let alignment_shift = if zone > ZONE && random.random_ratio(1, 3) { 2048 } else { 0 };
    (zone, SlotSettings { form, pages_per_block, alignment_shift, ..SlotSettings::default() })
}
