//! The named designs. Each file composes one, or a family, of parts, and holds no mechanism: read side by side, these files are
//! the comparison.
//!
//! To add a design of existing parts, write a file with its [`Recipe`] and its constant of [`Design`], and add the recipe to
//! the one list here.

pub mod flatstore;
pub mod mpkv;
pub mod quipu;
pub mod viper;
pub mod viper_pacman;

use crate::error::Error;
use crate::options::Options;
use crate::settings::Setting;
use crate::site::{Opened, Site};
use quipu_medium::MediumKind;
use quipu_parts::space::{Feature, SETTINGS_LEN};
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
    #[cfg(test)]
    &crate::engine::toy::RECIPE,
];

/// How a design is put together.
pub(crate) struct Recipe {
    pub(crate) design: Design,
    pub(crate) description: Description,
    /// What can be chosen.
    pub(crate) settings: &'static [&'static Setting],
    /// What the superblock of a new pool remembers of these options.
    pub(crate) remember: fn(&Options, &NewPool) -> [u8; SETTINGS_LEN],
    /// Sets the options to what a superblock remembers.
    pub(crate) recall: fn(&[u8; SETTINGS_LEN], &mut Options) -> Result<(), Error>,
    /// Opens the walk of a pool.
    pub(crate) open: fn(Site<'_>) -> Result<Opened, Error>,
}

/// A pool that is about to be created.
pub(crate) struct NewPool {
    pub(crate) zone_size: u64,
    pub(crate) medium: MediumKind,
}

/// A design that a pool can be created with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Design(
    /// Its number in the superblock; frozen.
    pub(crate) u32,
);

/// What a design is, for people who choose one.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// Part and choice, in the order of a put's way.
    pub parts: &'static [(&'static str, &'static str)],
    /// What it cannot do, or not yet.
    pub limits: &'static [&'static str],
    /// What it can do.
    pub can: Capabilities,
}

/// What a design can do. It follows from its parts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether keys have an order (range scans).
    pub ordered: bool,
    /// Whether it writes atomic batches.
    pub batches: bool,
    /// Whether values can have a time at which they go.
    pub expiry: bool,
    /// Whether keys have [versions](crate::Client::version).
    pub versions: bool,
    /// Whether a guard lends values in place.
    pub lends: bool,
    /// Whether values may be longer than a quarter of a zone.
    pub large_values: bool,
    /// Whether such values stand in zones of their own.
    pub value_zones: bool,
    /// Whether records stand in blocks of pages, many to a zone. If not, a zone is a segment.
    pub has_blocks: bool,
    /// Whether its index is always in the pool, and believed when that is opened.
    pub index_in_pool: bool,
    /// What the bytes of its parts have beyond the first form of the format.
    pub(crate) features: &'static [Feature],
    /// Bytes that its pools have less than, since words of its index name no place beyond.
    pub pools_below: u64,
    /// Bytes of a zone at least, unless another size is asked for.
    pub(crate) least_zone: u64,
    /// Whether a clean close leaves a checkpoint.
    pub checkpoints: bool,
    /// Whether records of one size are updated in place.
    pub updates_in_place: bool,
    /// Whether of two puts that meet at a key one may return for the other.
    pub eliminates: bool,
    /// Per cent of what records take that zones and pages lose beside them in a small pool, at most: tells how large a pool must
    /// be.
    pub waste: u64,
    /// Whether a damaged pool can be salvaged: records prove themselves, and tell which of them count.
    pub salvages: bool,
    /// What nobody can prove of its pools, since its format has no check for it (`docs/PAPERS.md` has the table): damage there
    /// does not show.
    pub unproved: &'static [&'static str],
}

impl Capabilities {
    /// Those of a walk that can do nothing but what all do, on pools of any size.
    pub(crate) const NONE: Capabilities = Capabilities {
        ordered: false,
        batches: false,
        expiry: false,
        versions: false,
        lends: false,
        large_values: false,
        value_zones: false,
        has_blocks: false,
        index_in_pool: false,
        features: &[],
        pools_below: u64::MAX,
        least_zone: 64 << 10,
        checkpoints: false,
        updates_in_place: false,
        eliminates: false,
        waste: 0,
        salvages: false,
        unproved: &[],
    };
}

/// What can be chosen for every design besides its [settings](crate::Setting), with what each does.
pub const SWITCHES: &[(&str, &str)] = &[
    ("zone-size", "bytes of a zone, a power of two from 16 KiB to 4 MiB"),
    ("free-list", "persistent (Halloc's log-free list) or volatile (rebuilt from the commit bits)"),
    ("cleaner", "whether a thread compacts ahead of the writers"),
    ("recovery-threads", "threads that scan segments, or load a checkpoint, at open"),
];

impl Design {
    /// Every design, in the order of the papers.
    pub const ALL: &'static [Design] = &{
        let mut all = [Design(0); RECIPES.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = RECIPES[i].design;
            i += 1;
        }
        all
    };

    pub(crate) fn recipe(self) -> &'static Recipe {
        RECIPES.iter().find(|recipe| recipe.design == self).expect("every design is in the list")
    }

    /// What this design is.
    pub fn description(self) -> &'static Description {
        &self.recipe().description
    }

    /// What this design can do.
    pub fn can(self) -> &'static Capabilities {
        &self.description().can
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
