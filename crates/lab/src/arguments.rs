//! Arguments that several command lines take, and the settings of runs as the command line reads them.
//!
//! The settings of a run are declared once: its `Config` is read from a command line, and its defaults are
//! those of a command line that says nothing.

use crate::crash::Broken::{self, Chain, Medium, PaperTies, Store};
use crate::suggest::{nearest, with_nearest};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};
use quipu::internals::{ChainTwin, Twin};
use quipu::{Design, Setting};
use quipu_medium::sim::Fault;

/// Arguments as a command line of these words has them.
///
/// # Panics
/// If the words are no such command line.
pub fn of_words<A: Args>(words: &[&str]) -> A {
    let command = A::augment_args(Command::new("lab").no_binary_name(true));
    A::from_arg_matches(&command.get_matches_from(words)).expect("clap has read these arguments")
}

/// Reads the name of a design.
///
/// # Errors
/// The names that there are, and the one that was probably meant.
pub fn design(name: &str) -> Result<Design, String> {
    let names = Design::ALL.iter().map(|design| design.name());
    name.parse().map_err(|refusal| with_nearest(refusal, name, names))
}

/// Reads a setting of a design and its value, `NAME=VALUE`. Whether there is such a setting depends on the
/// design.
///
/// # Errors
/// Text of another form, and a name that is nearly that of a setting.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write a setting and its value as NAME=VALUE; `quipu designs` lists what each design has")?;
    let known = || Design::ALL.iter().flat_map(|design| Setting::of(*design)).map(|setting| setting.name);
    if !known().any(|setting| setting == name) && nearest(name, known()).is_some() {
        return Err(with_nearest(format!("no setting is called {name:?}"), name, known()));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Stores and media broken on purpose: each with its name on command lines, and behind a colon its help.
const BROKEN: [(Broken, &str); 41] = [
    (Store(Twin::PublishBeforePersist), "publish-before-persist: readers see a record before it is durable"),
    (Store(Twin::LifeLeftOut), "life-left-out: the check of a record ignores the life of its segment"),
    (
        Store(Twin::AppendAfterRecovery),
        "append-after-recovery: recovery appends to a segment of an earlier run",
    ),
    (Store(Twin::TombstoneDroppedEarly), "tombstone-dropped-early: tombstones go before older segments"),
    (Store(Twin::FreedInDramOnly), "freed-in-dram-only: a segment counts as gone before it is durably free"),
    (Store(Twin::BatchInPieces), "batch-in-pieces: the records of an atomic batch are written one by one"),
    (Store(Twin::StaleCheckpoint), "stale-checkpoint: open believes a checkpoint after the pool has changed"),
    (Store(Twin::ValueCommittedLate), "value-committed-late: zones of a value are committed after its head"),
    (
        PaperTies(Twin::PageFreeBeforeRelease),
        "block-order: pages are free too early; block order breaks ties",
    ),
    (
        Store(Twin::ReleasedBeforePersist),
        "released-before-persist: the old record goes before the new is durable",
    ),
    (Store(Twin::OldNotReleased), "old-not-released: the record that another has replaced stays marked"),
    (
        Store(Twin::KeyFreeBeforeRelease),
        "key-free-before-release: a key is free before its old record is gone",
    ),
    (Store(Twin::LosingCopyKept), "losing-copy-kept: reclamation's copy of a superseded record counts"),
    (Store(Twin::VictimFreedEarly), "victim-freed-early: a block is free while its records are being copied"),
    (Store(Twin::LastRepointedUnflushed), "last-repointed-unflushed: a cleaner's last change is not flushed"),
    (
        Store(Twin::AcknowledgedEarly),
        "acknowledged-early: a write returns though one before it may not be durable",
    ),
    (Store(Twin::RecycledEarly), "recycled-early: a block or memtable is used again while it may be read"),
    (Store(Twin::NeededReleased), "needed-released: a memtable goes although a snapshot needs it"),
    (Store(Twin::RangeDroppedEarly), "range-dropped-early: range tombstones go before older memtables"),
    (Store(Twin::RangeSweptEarly), "range-swept-early: a range delete forgets keys that a snapshot shows"),
    (Store(Twin::RangeCopyRenewed), "range-copy-renewed: a copied range tombstone deletes newer keys"),
    (Store(Twin::LevelsForgotten), "levels-forgotten: tombstones go although the levels have their keys"),
    (Store(Twin::LevelsNotRaised), "levels-not-raised: levels change before the pool knows that they will"),
    (
        Store(Twin::RangeForgottenEarly),
        "range-forgotten-early: a range delete forgets keys that are on the levels",
    ),
    (
        Store(Twin::FlushedBeforePublished),
        "flushed-before-published: memtables count as dumped before the files have names",
    ),
    (Store(Twin::ReleasedBeforeFlushed), "released-before-flushed: memtables go before they count as dumped"),
    (Store(Twin::FlushedNotNoted), "flushed-not-noted: memtables that were dumped go one by one"),
    (
        Store(Twin::LaterMergedAlone),
        "later-merged-alone: a dump merges the latest memtable, and leaves those before it out",
    ),
    (Store(Twin::FrozenEarly), "frozen-early: a layer is dumped although items of it are under way"),
    (Store(Twin::DeletionsNotDumped), "deletions-not-dumped: a dump leaves out what hides older values"),
    (Store(Twin::RangesNotDumped), "ranges-not-dumped: a dump leaves range tombstones out"),
    (Store(Twin::NewerRunsDropped), "newer-runs-dropped: a range delete takes files with newer keys"),
    (
        Store(Twin::LevelsOfAnotherView),
        "levels-of-another-view: a scan misses keys that are dumped meanwhile",
    ),
    (Chain(ChainTwin::FlushedByObject), "flushed-by-object: a dump remembers memtables by their objects"),
    (
        Chain(ChainTwin::PiecesNotCounted),
        "pieces-not-counted: an item counts though pieces of it are missing",
    ),
    (Chain(ChainTwin::OrderNotFollowed), "order-not-followed: an item counts though the one before does not"),
    (Chain(ChainTwin::NotEnded), "not-ended: recovery leaves memtables open, and what it cut off comes back"),
    (Chain(ChainTwin::FoundNotFlushed), "found-not-flushed: recovery acts on what may not be durable"),
    (Chain(ChainTwin::ThroughNotRaised), "through-not-raised: memtables go before the anchor tells of them"),
    (
        Chain(ChainTwin::LivesIgnored),
        "lives-ignored: zones and chunks of an earlier life of a memtable count",
    ),
    // Enough fences remain for the store to get anywhere.
    (Medium(Fault::FenceOmitted { every: 3 }), "fence-left-out: some fences do nothing"),
];

/// The breaks with their names and helps.
fn named() -> impl Iterator<Item = (Broken, &'static str, &'static str)> {
    BROKEN
        .iter()
        .filter_map(|(broken, words)| words.split_once(": ").map(|(name, help)| (*broken, name, help)))
}

/// Reads the names of breaks, those of `choice` alone unless that is empty.
pub(crate) fn broken(choice: &[&str]) -> impl TypedValueParser<Value = Broken> + use<> {
    let chosen = named().filter(|(_, name, _)| choice.is_empty() || choice.contains(name));
    let names: Vec<_> = chosen.map(|(_, name, help)| PossibleValue::new(name).help(help)).collect();
    PossibleValuesParser::new(names).try_map(|name| {
        named().find(|(_, known, _)| *known == name).map(|(broken, ..)| broken).ok_or("unknown")
    })
}

/// The argument that breaks a store in this way, with a space before it; nothing for one that is not broken.
pub(crate) fn twin_argument(broken: Option<Broken>) -> String {
    let known = named().find(|(known, ..)| Some(*known) == broken);
    known.map_or(String::new(), |(_, name, _)| format!(" --twin {name}"))
}
