//! Damage is never silent: pools of every design are damaged, a bit, a line or a page at a time, and then
//! read by every tool.
//!
//! A [`Ground`] is a pool that has lived: keys of many sizes, overwritten, deleted, compacted, closed or not.
//! A seed draws a [`Strike`]: a region of it, and the damage there. A verdict opens the damaged image and
//! compares each answer with the truth. A refusal to open, which leaves every byte as it was, and an answer
//! that names damage are as good as the truth. Anything else is a *silent wrong answer*.
//!
//! The keys whose own bytes, or whose own entry of an index, were struck are a strike's *own* keys. Where a
//! paper's format has no check for them, damage to these cannot show; [`CANNOT_TELL`] lists these places, and
//! a test holds the table of `docs/PAPERS.md` against it. For any other key there is no exception.
//!
//! After the answers the pool is written on, compacted, and opened again, since damage that nobody has
//! noticed may do its harm then.

mod ground;
mod judge;
mod place;
mod strike;

pub use ground::Ground;
pub use judge::{Silent, Tool, Verdict};
pub use place::Place;
pub use strike::{Blow, Strike};

use quipu::Design;
use std::collections::BTreeMap;
use std::fmt;

/// Where a design's format has no check for a record's own value or presence, so that damage there may not
/// show: the design, and the places.
pub const CANNOT_TELL: &[(Design, &[Place])] = &[
    (Design::QUIPU, LOGS),
    (Design::FLATSTORE_H, LOGS),
    (Design::FLATSTORE_M, LOGS),
    (Design::FLATSTORE_PH, INDEX_IN_POOL),
    (Design::FLATSTORE_FF, INDEX_IN_POOL),
    (Design::MPKV, INDEX_IN_POOL),
    (Design::MPKV_BASELINE, INDEX_IN_POOL),
    (Design::VIPER, &[Place::PageRecord, Place::LengthWord, Place::SlotBits, Place::PageRest]),
    (Design::VIPER_PACMAN, &[Place::PageRecord, Place::LengthWord, Place::PageRest]),
    (Design::XP, LOGS),
    (Design::NSTORE, LOGS),
];

/// Of designs over logs whose index is in DRAM.
const LOGS: &[Place] = &[Place::OpenRecord, Place::ZoneHeader];

/// Of designs whose index is in the pool and believed.
const INDEX_IN_POOL: &[Place] = &[Place::Index, Place::IndexHeader, Place::ZoneHeader];

/// The outcomes of the strikes of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Strikes.
    pub strikes: u64,
    /// Pools that were refused, unchanged.
    pub refused: u64,
    /// Pools of which some tool said that it is damaged.
    pub told: u64,
    /// Pools that answered the truth, and nothing else was to be told.
    pub harmless: u64,
    /// Pools in which an own key was answered wrongly, where the format cannot tell.
    pub excepted: u64,
    /// Pools with a silent wrong answer that has no exception.
    pub silent: u64,
}

/// The findings of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By design and place.
    pub tallies: BTreeMap<(String, Place), Tally>,
    /// Silent wrong answers, each with the words that replay it.
    pub violations: Vec<String>,
}

impl Report {
    /// Strikes in all.
    pub fn strikes(&self) -> u64 {
        self.tallies.values().map(|tally| tally.strikes).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, place), tally) in &self.tallies {
            let Tally { strikes, refused, told, harmless, excepted, silent } = tally;
            writeln!(
                f,
                "{name:24} {place:18} {strikes:5} strikes: {refused:5} refused, {told:5} told, {harmless:5} harmless, \
                 {excepted:4} excepted, {silent:4} silent"
            )?;
        }
        self.violations.iter().try_for_each(|violation| writeln!(f, "{violation}"))
    }
}

/// The answers of a ground without a strike.
pub fn untouched(ground: &Ground) -> Verdict {
    judge::judge(ground, &Strike::none(ground))
}

/// Strikes each ground of a design once with each of these seeds.
pub fn campaign(design: Design, seeds: std::ops::Range<u64>) -> Report {
    let mut report = Report::default();
    for ground in Ground::all(design) {
        for seed in seeds.clone() {
            strike(&ground, seed, &mut report);
        }
    }
    report
}

/// Strikes a ground with one seed.
pub fn strike(ground: &Ground, seed: u64, report: &mut Report) {
    let strike = Strike::draw(ground, seed);
    let verdict = judge::judge(ground, &strike);
    let struck = ground.places_in(&strike.range);
    let cannot_tell = |(design, places): &(Design, &[Place])| {
        *design == ground.design() && places.iter().any(|place| struck.contains(place))
    };
    let excepted = CANNOT_TELL.iter().any(cannot_tell);
    let tally = report.tallies.entry((ground.name().to_owned(), strike.place)).or_default();
    tally.strikes += 1;
    match verdict {
        Verdict::Refused => tally.refused += 1,
        Verdict::Harmless => tally.harmless += 1,
        Verdict::Told => tally.told += 1,
        Verdict::Silent(found) if excepted && found.iter().all(Silent::is_own) => tally.excepted += 1,
        Verdict::Silent(found) => {
            tally.silent += 1;
            let answers: Vec<String> = found.iter().take(4).map(ToString::to_string).collect();
            report.violations.push(format!(
                "{} seed {seed}: {strike}: {} silent, {}",
                ground.name(),
                found.len(),
                answers.join("; ")
            ));
        }
    }
}
