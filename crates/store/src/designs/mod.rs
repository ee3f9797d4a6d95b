//! The named designs. Each file composes one design, or a family, of parts, and holds no mechanism. Side by
//! side, these files are the comparison.
//!
//! To add a design of existing parts, write a file with its recipe and its constant of [`Design`], and add
//! the recipe to the one list here.

pub mod flatstore;
mod given;
pub mod mpkv;
pub mod nstore;
pub mod quipu;
pub(crate) mod settings;
pub mod viper;
pub mod viper_pacman;
pub mod xp;

use crate::engine::site::{NewPool, Opened, Site};
use crate::options::Options;
pub use crate::types::design::{Capabilities, Description, Design};
use crate::types::error::Error;
use quipu_parts::space::{PoolSpec, SETTINGS_LEN};
use settings::Setting;
use std::fmt;
use std::str::FromStr;

/// Every recipe, in the order of the papers.
const RECIPES: &[&Recipe] = &[
    &quipu::RECIPE,
    &viper::RECIPE,
    &flatstore::H,
    &flatstore::M,
    &flatstore::PH,
    &flatstore::FF,
    &viper_pacman::RECIPE,
    &mpkv::MPKV,
    &mpkv::BASELINE,
    &xp::RECIPE,
    &nstore::RECIPE,
    #[cfg(test)]
    &crate::engine::toy::RECIPE,
];

/// How a design is put together.
pub(crate) struct Recipe {
    pub(crate) design: Design,
    pub(crate) description: Description,
    /// The settings that its pools keep, by the parts that have them.
    pub(crate) settings: &'static [&'static [Setting]],
    /// The object pools of a new pool; most designs have none.
    pub(crate) object_pools: fn(&NewPool) -> Vec<PoolSpec>,
    /// The settings of a new pool with these options, for its superblock.
    pub(crate) remember: fn(&Options, &NewPool) -> [u8; SETTINGS_LEN],
    /// Sets the options to the settings in a superblock.
    pub(crate) recall: fn(&[u8; SETTINGS_LEN], &mut Options) -> Result<(), Error>,
    /// Opens the walk of a pool.
    pub(crate) open: fn(Site<'_>) -> Result<Opened, Error>,
}

/// The object pools of a design that has none.
const NO_OBJECTS: fn(&NewPool) -> Vec<PoolSpec> = |_| Vec::new();

/// Choices of every design besides its [settings](crate::Setting), with their meaning.
pub const SWITCHES: &[(&str, &str)] = &[
    ("zone-size", "of a pool: bytes of a zone, a power of two from 16 KiB to 4 MiB"),
    (
        "free-list",
        "of a pool: persistent (Halloc's log-free list) or volatile (rebuilt from the commit bits)",
    ),
    ("cleaner", "of a handle: whether a thread compacts ahead of the writers"),
    ("recovery-threads", "of a handle: threads that scan segments, or load a checkpoint, at open"),
];

/// Whether a design has a limit, and its words.
type Limit = (fn(&Capabilities) -> bool, &'static str);

const LIMITS: &[Limit] = &[
    (|can| !can.when_ordered().ordered, "no order: no range scans"),
    (|can| can.orders_on_request(), "order, and so range scans, only for handles with index=alex"),
    (|can| !can.tables, "no tables, snapshots or range deletes"),
    (|can| !can.batches, "no atomic batches"),
    (|can| !can.transactions, "no transactions"),
    (|can| !can.expiry, "no expiry"),
    (|can| !can.versions, "no versions"),
    (|can| !can.updates_in_place, "no updates in place"),
    (|can| !can.large_values, "values up to a quarter of a zone"),
    (|can| can.value_zones, "values up to 1 GiB, as far as the pool has room"),
    (|can| !can.salvages, "no salvage: records do not show which of them count"),
    (
        |can| !can.salvages,
        "a file is refused after a crash of the operating system, since its losses could not be found",
    ),
];

impl Design {
    /// Every design, in the order of the papers.
    pub const ALL: &'static [Design] = &{
        let mut all = [Design(0); RECIPES.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = RECIPES[i].design;
            let mut other = 0;
            while other < i {
                assert!(all[other].0 != all[i].0, "two designs have one number");
                other += 1;
            }
            i += 1;
        }
        all
    };

    pub(crate) fn recipe(self) -> &'static Recipe {
        RECIPES.iter().find(|recipe| recipe.design == self).expect("every design is in the list")
    }

    /// A description for people who choose a design.
    pub fn description(self) -> &'static Description {
        &self.recipe().description
    }

    /// The capabilities of this design.
    pub fn can(self) -> &'static Capabilities {
        &self.description().can
    }

    /// The limits of this design, in words.
    pub fn limits(self) -> impl Iterator<Item = String> {
        let can = self.can();
        let has = |(has, what): &Limit| has(can).then(|| (*what).to_owned());
        let pool =
            (can.pools_below < u64::MAX).then(|| format!("pools of less than {} TiB", can.pools_below >> 40));
        let unproved = can.unproved.iter().map(|what| format!("does not prove {what}"));
        LIMITS.iter().filter_map(has).chain(pool).chain(unproved)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Its number in the superblock.
    pub(crate) fn id(self) -> u32 {
        self.0
    }

    pub(crate) fn from_id(id: u32) -> Option<Design> {
        Design::ALL.iter().copied().find(|design| design.id() == id)
    }
}

impl Default for Design {
    fn default() -> Design {
        Design::QUIPU
    }
}

impl fmt::Debug for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Design {
    type Err = String;

    fn from_str(name: &str) -> Result<Design, String> {
        Design::ALL.iter().copied().find(|design| design.name() == name).ok_or_else(|| {
            let known: Vec<_> = Design::ALL.iter().map(|design| design.name()).collect();
            format!("no design is called {name:?}; known are: {}", known.join(", "))
        })
    }
}
