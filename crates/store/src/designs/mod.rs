//! The named designs. Each is one short file that names its parts and their settings, and holds no mechanism: read
//! side by side, these files are the comparison.

pub mod flatstore;
pub mod mpkv;
pub mod quipu;
pub mod viper;
pub mod viper_pacman;

use quipu_parts::space::Feature;
use std::fmt;
use std::str::FromStr;

/// A design that a pool can be created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Design {
    /// Our own; see [`quipu`].
    #[default]
    Quipu,
    /// Viper, of VLDB 2021; see [`viper`].
    Viper,
    /// FlatStore-H: CCEH in DRAM; see [`flatstore`].
    FlatstoreH,
    /// FlatStore-M: Masstree in DRAM.
    FlatstoreM,
    /// FlatStore-PH: CCEH in the pool.
    FlatstorePh,
    /// FlatStore-FF: FAST&FAIR in the pool.
    FlatstoreFf,
    /// Viper with PACMAN's techniques; see [`viper_pacman`].
    ViperPacman,
    /// MPKV: a bucket index in the pool, with locks in DRAM; see [`mpkv`].
    Mpkv,
    /// MPKV's baseline: the same with locks in the buckets.
    MpkvBaseline,
}

/// What a design is, for people who choose one.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// Part and choice, in the order of the spine's questions.
    pub parts: &'static [(&'static str, &'static str)],
    /// What can be chosen besides its [settings](crate::Setting), with what each does.
    pub switches: &'static [(&'static str, &'static str)],
    /// What it cannot do, or not yet.
    pub limits: &'static [&'static str],
    /// Whether keys have an order (range scans).
    pub ordered: bool,
    /// Whether it writes atomic batches.
    pub batches: bool,
    /// Whether values can have a time at which they go.
    pub expiry: bool,
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
    /// Whether a clean close leaves a checkpoint.
    pub checkpoints: bool,
    /// Whether records of one size are updated in place.
    pub updates_in_place: bool,
    /// Whether of two puts that meet at a key one may return for the other.
    pub eliminates: bool,
    /// Per cent of what records take that zones and pages lose beside them in a small pool, at most: for who has to know how
    /// large a pool must be.
    pub waste: u64,
    /// Whether a damaged pool can be salvaged: records prove themselves, and tell which of them count.
    pub salvages: bool,
    /// What nobody can prove of its pools, since its format has no check for it (`docs/PAPERS.md` has the table): damage there
    /// does not show.
    pub unproved: &'static [&'static str],
}

/// What records do not prove that stand in slots or in the logs of pages.
const OF_SLOTS: &[&str] = &[
    "the bytes of keys and values",
    "the sequence numbers of records",
    "the marks that tell which records count",
];

/// What an index in the pool does not prove.
const OF_INDEX_IN_POOL: &[&str] = &["that the index has every key, and for each the latest of its records"];

impl Design {
    /// Every design, in the order of the papers.
    pub const ALL: &'static [Design] = &[
        Design::Quipu,
        Design::Viper,
        Design::FlatstoreH,
        Design::FlatstoreM,
        Design::FlatstorePh,
        Design::FlatstoreFf,
        Design::ViperPacman,
        Design::Mpkv,
        Design::MpkvBaseline,
    ];

    /// What this design is.
    pub fn description(self) -> &'static Description {
        match self {
            Design::Quipu => &quipu::DESCRIPTION,
            Design::Viper => &viper::DESCRIPTION,
            Design::FlatstoreH => &flatstore::H,
            Design::FlatstoreM => &flatstore::M,
            Design::FlatstorePh => &flatstore::PH,
            Design::FlatstoreFf => &flatstore::FF,
            Design::ViperPacman => &viper_pacman::DESCRIPTION,
            Design::Mpkv => &mpkv::MPKV,
            Design::MpkvBaseline => &mpkv::BASELINE,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Its number in the superblock; frozen.
    pub(crate) fn id(self) -> u32 {
        match self {
            Design::Quipu => 1,
            Design::Viper => 2,
            Design::FlatstoreH => 3,
            Design::FlatstoreM => 4,
            Design::FlatstorePh => 5,
            Design::FlatstoreFf => 6,
            Design::ViperPacman => 7,
            Design::Mpkv => 8,
            Design::MpkvBaseline => 9,
        }
    }

    /// Whether its records stand in slots of pages, and not in segments.
    pub(crate) fn has_slots(self) -> bool {
        matches!(self, Design::Viper | Design::ViperPacman)
    }

    pub(crate) fn from_id(id: u32) -> Option<Design> {
        Design::ALL.iter().copied().find(|design| design.id() == id)
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
