//! The make of a pool, and of its calls: drawn from a seed.

use crate::calls::{Scope, vary};
use crate::contract::{Fixture, Medium};
use quipu::internals::{Merging, RecordForm};
use quipu::{Design, Levels};
use quipu_bench::settings::capabilities;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::path::{Path, PathBuf};

/// Zones this small fill up and change hands often.
pub(super) const ZONE: u64 = 16 << 10;

/// Bytes of the pool for a key: several times what its value takes, so that there is always something to
/// clean, and seldom want of room.
const BYTES_PER_KEY: u64 = 1024;

/// Bytes of the smallest pool, and of the smallest with levels below it.
const LEAST: u64 = 2 << 20;
const LEAST_ABOVE: u64 = 1 << 20;

/// Zones for clients, which each have some open.
const OPEN: u64 = 8;

/// A pool and the calls on it.
pub(super) struct Make {
    /// The pool.
    pub(super) fixture: Fixture,
    /// The extent of each thread's calls.
    pub(super) scope: Scope,
    /// The form of its records.
    pub(super) form: RecordForm,
    /// Whether there are levels below it.
    pub(super) has_levels: bool,
}

impl Make {
    /// That of a seed. Levels, if any, are in this folder.
    pub(super) fn new(
        design: Design,
        threads: usize,
        seed: u64,
        (folder, levels): (Option<&PathBuf>, &Path),
    ) -> Make {
        let mut random = SmallRng::seed_from_u64(seed);
        let can = design.can();
        let tables = if can.tables { 3 } else { 1 };
        let keys = *[16, 100, 700].choose(&mut random).expect("there are some");
        let odd_values = *[0, 0, 100].choose(&mut random).expect("there are some");
        let has_levels = can.levels && random.random_ratio(3, 4);
        let all_keys = u64::from(keys) * (threads * tables) as u64;
        let size = match has_levels {
            // The rest goes to the levels.
            true => LEAST_ABOVE << random.random_range(0..3),
            false => LEAST.max(all_keys * BYTES_PER_KEY),
        };
        let large = if odd_values > 0 { all_keys / 25 * ZONE } else { 0 };
        let size = (size + large + threads as u64 * OPEN * ZONE).next_multiple_of(4096);
        let medium = folder.map_or(Medium::Dram, |folder| Medium::File(folder.clone()));
        let mut fixture = Fixture::new(design, &medium, size, ZONE);
        vary(&mut fixture.options, design, random.random());
        if has_levels {
            fixture.options = fixture.options.clone().levels(Levels::Folder(levels.to_owned()));
            let merging = [Merging::Direct, Merging::Key, Merging::Off];
            fixture.options.merging = *merging.choose(&mut random).expect("there are some");
            // In two of three pools dumps are frequent.
            fixture.options.testing.dump_at = random.random_ratio(2, 3).then_some(6);
        }
        let scope = Scope {
            can: Some(capabilities(&fixture.options, design)),
            keys,
            tables,
            lives: if random.random_ratio(1, 2) { 300 } else { 0 },
            odd_values,
            is_alone: false,
            deletes: if random.random_ratio(1, 2) { 50 } else { 10 },
            compacts: 3000,
            looks: if random.random_ratio(1, 3) { 40 } else { 0 },
        };
        let form = fixture.options.slots.form;
        Make { fixture, scope, form, has_levels }
    }
}
